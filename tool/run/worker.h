/*
 * worker.h - the process that a kernel runs in; see executor.h. A program that opens executors must call this when its first
 * argument is "worker", and return what it returns.
 */
#ifndef ATTEST_WORKER_H
#define ATTEST_WORKER_H

int worker_main(void);

#endif
