/*
 * subprocess.h - work that is done in a process of its own, with a deadline, and comes back as JSON; and programs that are asked
 * something. Whatever the process leaves running is ended with it.
 */
#ifndef ATTEST_ERRAND_H
#define ATTEST_ERRAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

double errand_clock(void); /* seconds, of a clock that only goes forward */

/* Once, before the first errand: processes whose parents ended become children of this one, so that they can be ended. */
void errand_begin(void);

struct errand {
    const char *folder; /* for what is temporary; made, and left to the caller */
    double deadline;    /* by errand_clock */
    void (*tick)(void *data);
    void *data; /* for tick, which is called a few times a second */
    bool late;  /* it was ended because of the deadline */
};

/* Calls `work` in another process. What it returns is written there and read here: a new reference. NULL if it was late, if it
 * crashed, or if it returned NULL; then `why` is a sentence. */
json_t *errand_work(struct errand *errand, json_t *(*work)(void *matter), void *matter, char *why, size_t why_size);

/* Runs a command of the shell with `input` on its standard input. Returns what it wrote to standard output, with a zero byte behind
 * it; to be freed. NULL if it was late, did not end with status 0, or wrote more than `most` bytes. */
char *errand_ask(struct errand *errand, const char *command, const char *input, size_t most, size_t *size, char *why,
                 size_t why_size);

#endif
