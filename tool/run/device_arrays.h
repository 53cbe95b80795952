/*
 * device_arrays.h - the tensors of a problem in the memory of a context's device, between guard bands.
 */
#ifndef ATTEST_DEVICE_ARRAYS_H
#define ATTEST_DEVICE_ARRAYS_H

#include "base/session.h"

enum { DEVICE_ARRAYS = 12, DEVICE_BAND = 4096 };

/* One array: its bytes lie `band` bytes behind the beginning of the memory, and the tensor's pointer `at` bytes from its first. */
struct device_array {
    unsigned char *memory; /* on the device; NULL: the problem has no such tensor */
    size_t bytes;
    int64_t at;
};

struct device_arrays {
    attest_context *context;
    struct device_array arrays[DEVICE_ARRAYS];
    size_t band;
    attest_tensors tensors; /* pointers of the device */
};

/* Makes room for every tensor that `host` has, with bands of `band` bytes (a multiple of 256, or 0) round each. Nothing is filled
 * but the bands. On failure the status and a sentence. */
attest_status device_arrays_make(struct device_arrays *arrays, attest_context *context, const attest_problem *problem,
                                 const attest_tensors *host, size_t band, char *why, size_t why_size);
void device_arrays_free(struct device_arrays *arrays);

/* Moves the inputs, or O and LSE with the gaps in them, to the device; and O and LSE back. */
attest_status device_arrays_put_inputs(struct device_arrays *arrays, const attest_tensors *host);
attest_status device_arrays_put_outputs(struct device_arrays *arrays, const attest_tensors *host);
attest_status device_arrays_get_outputs(struct device_arrays *arrays, const attest_tensors *host);

/* False, with a sentence, if a band or an input is not as it was. */
bool device_arrays_intact(struct device_arrays *arrays, const attest_tensors *host, char *why, size_t why_size);

/* Whether the context computes in this process's own memory. */
bool context_on_cpu(const attest_context *context);

#endif
