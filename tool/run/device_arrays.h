/*
 * device_arrays.h - the tensors of a problem in the memory of a context's device, between guard bands.
 */
#ifndef ATTEST_DEVICE_ARRAYS_H
#define ATTEST_DEVICE_ARRAYS_H

#include "base/session.h"
#include "data/tensor_list.h"

enum { DEVICE_BAND = 4096 };

struct device_arrays {
    attest_context *context;
    struct tensor_list list; /* of the problem */
    unsigned char
        *memory[TENSORS_MOST]; /* on the device, with the tensor's bytes `band` behind its beginning; NULL: there is none */
    size_t band;
    attest_tensors tensors; /* pointers of the device */
};

/* Makes room for every tensor that `host` has, with bands of `band` bytes (a multiple of 256, or 0) round each. Nothing is filled
 * but the bands. On failure the status and a sentence. */
attest_status device_arrays_make(struct device_arrays *arrays, attest_context *context, const attest_problem *problem,
                                 const attest_tensors *host, size_t band, char *why, size_t why_size);
void device_arrays_free(struct device_arrays *arrays);

/* Moves the inputs, or the outputs with the gaps in them, to the device; and the outputs back. */
attest_status device_arrays_put_inputs(struct device_arrays *arrays, const attest_tensors *host);
attest_status device_arrays_put_outputs(struct device_arrays *arrays, const attest_tensors *host);
attest_status device_arrays_get_outputs(struct device_arrays *arrays, const attest_tensors *host);

/* False, with a sentence, if a band or an input is not as it was. */
bool device_arrays_intact(struct device_arrays *arrays, const attest_tensors *host, char *why, size_t why_size);

/* Whether the context computes in this process's own memory. */
bool context_on_cpu(const attest_context *context);

#endif
