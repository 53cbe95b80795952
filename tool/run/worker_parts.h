/*
 * worker_parts.h - what the files of the worker share: worker.c (the conversation, running), worker_kernel.c (closing the process off, loading
 * the kernel), worker_memory.c (tensors and workspace).
 */
#ifndef ATTEST_WORKER_PARTS_H
#define ATTEST_WORKER_PARTS_H

#include "cuda/cuda_index.h"
#include "protocol.h"
#include "sandbox.h"
#include "worker_device.h"

struct mapping {
    unsigned char *base; /* of everything that was reserved */
    size_t size;
};

struct worker_slot {
    struct mapping mapping;
    struct device_slot device; /* on a GPU, instead of the mapping */
    attest_plan *plan;
    attest_tensors tensors;
};

struct worker {
    struct hello hello;
    attest_context *context;
    struct board *board;
    const char *kernel; /* name to make plans with; NULL: the library's choice */
    bool on_device;
    struct cuda_loaded loaded; /* the candidate on a GPU */
    struct device_workspace device_workspace;
    struct kernel_facts facts;
    struct worker_slot slots[EXECUTOR_SLOTS];
    struct mapping room; /* of the workspace */
    unsigned char *workspace;
    size_t workspace_size;
    bool filtered; /* system calls are */
    enum sandbox_level level;
    void (*poison)(void const volatile *, size_t), (*unpoison)(void const volatile *, size_t); /* of AddressSanitizer, or NULL */
};

extern struct worker worker;
extern struct ready worker_answer; /* to the request that is being served */

/* Notes why a request cannot be served. Returns false, so that a function can end with it. */
bool worker_refuse(enum execution_end end, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Everything that comes before a byte of the kernel. On a GPU no code of the kernel's runs in this process: it needs the driver, and no
 * sandbox. An emulated device runs it here, and is closed off as the worker of a CPU kernel is. */
bool worker_set_up(void);
bool worker_set_up_device(void);
bool worker_set_up_emulated(void);

bool worker_load_kernel(void);

/* Looks at the registers of all threads that may have run a kernel, and at its table. */
void worker_look_at_threads(void);

/* The tensors of a slot, and the workspace for the largest plan. */
bool worker_load_slot(const struct load *load, const int files[2]);

#endif
