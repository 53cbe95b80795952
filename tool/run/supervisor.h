/*
 * supervisor.h - an executor from the inside: the process it has started (process.c), how that came to its end (worker_end.c), and the
 * requests it answers (executor.c).
 */
#ifndef ATTEST_SUPERVISOR_H
#define ATTEST_SUPERVISOR_H

#include <sys/types.h>

#include "arena.h"
#include "state.h"

enum {
    PRINTED_MOST = 1 << 16, /* bytes kept of what the worker prints */
    PRINTED_LIMIT = 1 << 18 /* more than this, and it is ended */
};

struct executor {
    pid_t pid;           /* 0: gone */
    int control, output; /* our ends of the socket, and of the pipe that it prints to */
    struct board *board;
    double seconds;
    int64_t memory;         /* bytes that it may use beyond the tensors */
    int64_t lent;           /* bytes of the tensors, when they were most */
    int64_t peak;           /* most memory that it was seen to have at any time, tensors included */
    enum guard guard, laid; /* of scratch memory, of tensors */
    bool relaxed, aligned, stopped, on_device;
    struct kernel_facts facts;
    int landlock;                        /* version, as the worker says */
    bool own_code, no_counter, no_cpuid; /* what else could be enforced, as it says before a kernel is there */
    bool seccomp, has_own_network;       /* as the system says */
    struct state *state;                 /* when the kernel had been loaded; NULL on a GPU or under a wrapper */
    struct state_places places;          /* addresses in it */
    double seconds_run;    /* of its threads, when it was last looked at and has not been woken since; negative: it has */
    uint64_t runs;         /* requests to run so far */
    bool watched, wrapped; /* its state is looked at after every run; it is run by another program */
    struct execution end;  /* once the worker is gone: why */
    struct arena slots[EXECUTOR_SLOTS];
    char printed[PRINTED_MOST + 1];
    size_t printed_size;
    int64_t printed_total; /* bytes, with those that were not kept */
};

/* By CLOCK_MONOTONIC. */
/* Starts the worker. False, with the reason, if that failed. *board is a file to be sent to it and closed. */
bool process_start(struct executor *executor, const struct executor_spec *spec, int *board, struct execution *execution);

/* Sends a message, with files. False with errno. */
bool process_send(struct executor *executor, const void *message, size_t size, const int *files, int file_count);

/* Lets it run; makes it stand still (false: it has ended instead, with *status); ends it for good, and returns its status. */
void process_wake(struct executor *executor);
bool process_halt(struct executor *executor, int *status);
int process_bury(struct executor *executor);
bool process_has_ended(const struct executor *executor); /* and waits to be buried */

/* Takes over what it has printed. */
void process_drain(struct executor *executor);

/* One number of /proc/PID/status, in bytes if it is given in kB; 0 if it is not there. */
int64_t process_number(const struct executor *executor, const char *name);

/* Whether it has a network of its own, with nothing in it. */
bool process_is_cut_off(const struct executor *executor);

/* Says how a request, or the worker, came to its end. */
void ending_say(struct execution *execution, enum execution_end end, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Whether the peak is beyond what it may have; then that is said. */
bool ending_greedy(const struct executor *executor, struct execution *execution);

/* Whether a call has left registers in another state than it found them; then that is said. */
bool ending_disorder(const struct executor *executor, struct execution *execution);

/* From the status that the process has left behind. */
void ending_describe(struct executor *executor, int status, struct execution *execution);

/* The line of a sanitizer's or of valgrind's report that says most. False if there is none. */
bool ending_report(struct executor *executor, char *text, size_t size);

/* Makes text of the worker fit to be shown and stored: no control characters, and UTF-8. */
void ending_clean(char *text);

/* Appends to the sentence the first line that was printed, or the last one, if anything was. */
void ending_quote(struct executor *executor, struct execution *execution, bool last_line);

#endif
