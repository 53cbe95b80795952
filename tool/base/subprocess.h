/*
 * subprocess.h - other processes: the one place that starts them, and work that is done in one and comes back as JSON.
 *
 * A process that was started here is killed when the thread that started it ends, so that an interrupted command leaves nobody behind.
 */
#ifndef ATTEST_SUBPROCESS_H
#define ATTEST_SUBPROCESS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* As fork(), with nothing left in the buffers of streams. The new process gets the signal when the thread that called this ends. */
pid_t subprocess_fork(int death_signal);

/* Waits for a process, whatever signals come meanwhile; its status as waitpid gives it, or -1 if there is no such process. */
int subprocess_wait(pid_t process);

/* Kills a process and waits for it; nothing where there is none (<= 0). */
void subprocess_end(pid_t process);

/* Why a process ended: "ended with signal 9", "ended with status 1". */
void subprocess_ending(int status, char *text, size_t size);

/* Work in another process. All zeros: none. */
struct subprocess {
    pid_t process;
    FILE *answer;
};

/* Calls `work` in another process, which gets SIGALRM after `seconds` (0: never). What it returns is for subprocess_answer. False if
 * there is no memory or no process; errno says why. */
bool subprocess_begin(struct subprocess *subprocess, json_t *(*work)(void *matter), void *matter, unsigned seconds);

/* Waits until one of several ends, which must be the only children of this process; places without a process are passed over. Its
 * number, or -1 if there is none. */
int subprocess_await_one(struct subprocess *const *subprocesses, int count, int *status);

/* What the work returned, of a process that has ended with this status; NULL if it returned NULL or crashed. A new reference. */
json_t *subprocess_answer(struct subprocess *subprocess);

#endif
