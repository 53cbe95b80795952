/*
 * cuda_sanitizer.h - runs a worker under compute-sanitizer and reads what it found.
 */
#ifndef ATTEST_CUDA_SANITIZER_H
#define ATTEST_CUDA_SANITIZER_H

#include "build/cuda_finding.h"

enum cuda_check { CUDA_MEMCHECK, CUDA_RACECHECK, CUDA_INITCHECK, CUDA_SYNCCHECK, CUDA_CHECK_COUNT };
const char *cuda_check_name(enum cuda_check check); /* "memcheck" ... */
int cuda_check_status(enum cuda_check check);       /* the exit status that means: it found something. Another for each check */

/* The words to put before the command of the worker, ended by NULL; what the tool says goes to the file `log`, where the worker's
 * own words cannot get. Returns how many they are. */
int cuda_sanitizer_words(enum cuda_check check, const char *program, const char *log, const char *words[CUDA_MOST_WORDS]);

/* From the exit status, what the tool logged, and what the worker printed. */
void cuda_sanitizer_judge(enum cuda_check check, int status, const char *log, const char *printed, const char *marker,
                          struct cuda_finding *finding);

/* All of it: `program` is the path of compute-sanitizer, `log` that of a file to be written. */
void cuda_sanitizer_run(enum cuda_check check, const char *program, const struct cuda_worker *worker, double seconds,
                        const char *log, struct cuda_finding *finding);

#endif
