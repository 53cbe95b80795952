/*
 * embedded.h - files of the repository that the program carries, so that it works alone: the headers of the kernel ABI, the suites, a
 * style sheet, the templates.
 */
#ifndef ATTEST_EMBEDDED_H
#define ATTEST_EMBEDDED_H

struct embedded {
    const char *name;
    const char *data, *end; /* a zero byte is at end */
};

extern const struct embedded embedded_headers[];
extern const int embedded_header_count;
extern const struct embedded embedded_device_headers[]; /* of the emulated device, */
extern const int embedded_device_header_count;
extern const struct embedded embedded_emulated_driver; /* and its driver; empty if there was no C++ compiler */
extern const struct embedded embedded_prove_suite, embedded_speed_suite, embedded_gpu_speed_suite;
extern const struct embedded embedded_report_style;                         /* of the page that report writes */
extern const struct embedded embedded_cpu_template, embedded_cuda_template; /* what `attest new` writes */

#endif
