/*
 * worker_device.h - the worker's part for kernels that run on a GPU: tensors of a slot in the GPU's memory, and a candidate from
 * the index of its images (cuda_index.h).
 *
 * A CUDA candidate brings no code for this process: what the worker says of it can be believed, and needs no sandbox. The tensors
 * lie on the GPU as they lie in the two files of the slot, bands and all, and after a run the outputs are copied back into
 * theirs, where the supervisor looks at them as at those of any kernel. Inputs and their bands are compared here.
 */
#ifndef ATTEST_WORKER_DEVICE_H
#define ATTEST_WORKER_DEVICE_H

#include "far_strides.h"
#include "protocol.h"

struct device_slot {
    attest_context *context;
    bool far; /* each piece has an allocation of its own */
    struct piece pieces[TENSORS_MOST];
    unsigned char *files[2];            /* inputs, outputs, mapped */
    size_t sizes[2];                    /* of the files */
    unsigned char *bases[TENSORS_MOST]; /* of the pieces, on the device */
    struct far_spread spreads[TENSORS_MOST];
    void *memory[TENSORS_MOST]; /* what was allocated; NULL: nothing */
    unsigned char *copy;        /* room for what comes back */
    attest_tensors tensors;
};

/* Makes the slot that `load` describes; `far` as GUARD_FAR. On failure an end and a sentence. */
bool device_slot_make(struct device_slot *slot, attest_context *context, const struct load *load, const int files[2], bool far,
                      enum execution_end *end, char *why, size_t why_size);
void device_slot_free(struct device_slot *slot);

/* Copies everything to the device; and the outputs back. device_slot_get also says, with false and a sentence, if
 * inputs changed. */
attest_status device_slot_put(struct device_slot *slot);
bool device_slot_get(struct device_slot *slot, enum execution_end *end, char *why, size_t why_size);

/* A workspace between bands. */
struct device_workspace {
    attest_context *context;
    unsigned char *memory;
    size_t size, room;
};
attest_status device_workspace_make(struct device_workspace *workspace, attest_context *context, size_t size);
void device_workspace_free(struct device_workspace *workspace);
void *device_workspace_at(const struct device_workspace *workspace);
/* Tells an emulated device where tensors and workspace begin and end: what lies beside them is nobody's, and what is in outputs and
 * workspace was not written. */
void device_slot_extents(const struct device_slot *slot, const struct device_workspace *workspace);

bool device_workspace_intact(const struct device_workspace *workspace, char *why, size_t why_size);

#endif
