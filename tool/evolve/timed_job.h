/*
 * timed_job.h - work that is done in a process of its own, with a deadline, and comes back as JSON; and programs that are asked
 * something. Whatever the process leaves running is ended with it.
 */
#ifndef ATTEST_TIMED_JOB_H
#define ATTEST_TIMED_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Once, before the first job: processes whose parents ended become children of this one, so that they can be ended. */
void timed_jobs_begin(void);

struct timed_job {
    const char *folder; /* for what is temporary; made, and left to the caller */
    double deadline;    /* by seconds_now */
    void (*tick)(void *data);
    void *data; /* for tick, which is called a few times a second */
    bool late;  /* it was ended because of the deadline */
};

/* Calls `work` in another process. What it returns is written there and read here: a new reference. NULL if it was late, if it
 * crashed, or if it returned NULL; then `why` is a sentence. */
json_t *timed_job_work(struct timed_job *job, json_t *(*work)(void *matter), void *matter, char *why, size_t why_size);

/* Runs a command of the shell with `input` on its standard input. Returns what it wrote to standard output, with a zero byte behind
 * it; to be freed. NULL if it was late, did not end with status 0, or wrote more than `most` bytes. */
char *timed_job_ask(struct timed_job *job, const char *command, const char *input, size_t most, size_t *size, char *why,
                    size_t why_size);

#endif
