/*
 * embedded.h - files of the repository that the program carries, so that it works alone: the headers of the kernel ABI and of
 * the device vocabulary, the suites, a style sheet, the templates.
 */
#ifndef ATTEST_EMBEDDED_H
#define ATTEST_EMBEDDED_H

#include <stdbool.h>

struct embedded {
    const char *name;
    const char *data, *end; /* a zero byte is at end */
};

extern const struct embedded embedded_headers[];
extern const int embedded_header_count;
extern const struct embedded embedded_vocabulary[]; /* <attest/ptx.cuh> ...: one-instruction wrappers for CUDA kernels */
extern const int embedded_vocabulary_count;
extern const struct embedded embedded_device_headers[]; /* of the emulated device, */
extern const int embedded_device_header_count;
extern const struct embedded embedded_emulated_driver; /* and its driver; empty if there was no C++ compiler */
extern const struct embedded embedded_prove_suite, embedded_speed_suite, embedded_gpu_speed_suite;
extern const struct embedded embedded_report_style; /* of the page that report writes */
extern const struct embedded embedded_cpu_template, embedded_cuda_scalar, embedded_cuda_sm80,
    embedded_cuda_sm90; /* what `attest new` writes */

/* Writes files into a folder that is there; those of a folder within it too. */
bool embedded_write(const struct embedded *files, int count, const char *folder);

#endif
