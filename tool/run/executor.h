/*
 * executor.h - runs a kernel in a process of its own, and believes nothing it says.
 *
 * The supervisor (this process) holds the inputs, the reference, the clock, the seeds and the verdict. The worker (the same
 * program, started again as `attest worker`) sees the tensors in shared memory, the inputs read-only, runs the kernel through
 * libattest, and says "done". It runs in a sandbox (sandbox.c): no network, no files but its scratch folder, no other processes,
 * limits on time and memory. Whatever it prints is kept for the log and means nothing.
 */
#ifndef ATTEST_EXECUTOR_H
#define ATTEST_EXECUTOR_H

#include "data/inputs.h"

/* Where the tensors lie in the worker. */
enum guard {
    GUARD_BANDS, /* between bands of bytes that are checked after each run, at places that are drawn */
    GUARD_END,   /* each tensor ends at a page that cannot be touched */
    GUARD_START, /* each tensor begins right behind such a page */
    GUARD_FAR,   /* likewise; and the outermost dimension of each tensor is EXECUTOR_FAR elements apart: see far_strides.h */
    GUARD_DRAWN  /* on a CPU each tensor as in one of the first three, drawn for each load; scratch memory as in GUARD_BANDS */
};

/* A stride that fits in 32 bits, and twice that does not. */
#define EXECUTOR_FAR (INT64_C(3) << 29)

struct executor_spec {
    const char *image;              /* the .so, or the index of CUDA images; NULL: a kernel of the library */
    const char *kernel;             /* its name, for `image` NULL; NULL: the library's choice, problem by problem */
    const char *device;             /* "cuda", "cuda:1": it runs on a GPU; NULL: on the CPU */
    bool emulated;                  /* the GPU is emulated, by the library in LD_LIBRARY_PATH of `environment`: in the sandbox */
    int threads;                    /* 0: as many as the machine has */
    enum guard guard;               /* on a GPU all but GUARD_FAR are GUARD_BANDS */
    double seconds;                 /* wall time allowed for each call, and for loading, unless it is for a GPU; 0: the policy's */
    int64_t memory;                 /* bytes the worker may use beyond the tensors; 0: the policy's */
    const char *const *wrapper;     /* NULL, or a command and its arguments, ended by NULL, that the worker is run under */
    const char *const *environment; /* NULL, or NAME=VALUE strings, ended by NULL, to be added */
    const char *scratch;            /* NULL, or a folder where the worker may write; without, it can write no file at all */
    bool aligned; /* for timing: tensors begin at multiples of 64 bytes, as most do; else only at those of their elements */
    bool lifted;  /* the kernel is asked for what it refuses, too; only for looking at what runs then */
    bool relaxed; /* for sanitizers and valgrind: a sandbox in which they can work, and no limit of memory */
};

/* How a request to the worker ended. Only EXECUTION_DONE says that the kernel ran, and even that says nothing of its output. */
enum execution_end {
    EXECUTION_DONE,
    EXECUTION_REFUSED, /* the kernel declares that it does not take this problem; the worker is still there */
    EXECUTION_CRASHED, /* a signal; sentence has its name and, for a bad address, the tensor and the distance to it */
    EXECUTION_HUNG,    /* past its time; killed */
    EXECUTION_EXITED,  /* it left by itself, whatever its status */
    EXECUTION_GREEDY,  /* past its memory; killed */
    EXECUTION_INVALID, /* no attest_cpu_kernel_entry, wrong ABI, a table that libattest does not take, an answer out of turn */
    EXECUTION_LACKING  /* this machine lacks something; nothing is said about the kernel */
};

struct execution {
    enum execution_end end;
    double seconds;     /* from "go" to "done", by the supervisor's clock */
    char sentence[640]; /* if not DONE: what happened, for people */
};

/* Whether the worker is still there. */
static inline bool execution_survived(const struct execution *execution)
{
    return execution->end == EXECUTION_DONE || execution->end == EXECUTION_REFUSED || execution->end == EXECUTION_LACKING;
}

/* What the kernel declares of itself. */
struct kernel_facts {
    char name[128];
    char needs[64];
    char summary[256];
    uint32_t dtypes;
    uint64_t refuses;
};

struct executor;

/* Starts the worker and loads the kernel. NULL unless it ends in EXECUTION_DONE. The worker is this very program (/proc/self/exe)
 * with the one argument "worker"; see worker.h. */
struct executor *executor_open(const struct executor_spec *spec, struct execution *execution);
const struct kernel_facts *executor_facts(const struct executor *executor);

/* Puts a problem with its inputs into slot `slot` (0 <= slot < EXECUTOR_SLOTS), replacing what was there, with poisoned outputs. */
enum { EXECUTOR_SLOTS = 64 };
bool executor_load(struct executor *executor, int slot, const struct inputs *inputs, struct execution *execution);

/* Puts other inputs of the same problem into a slot. The worker sleeps meanwhile, so nothing can be computed before the clock runs:
 * to time a kernel, load all slots first, and then fill them. False if the slot does not hold that problem. */
bool executor_fill(struct executor *executor, int slot, const struct inputs *inputs);

/* Fills O and LSE of a slot with a byte, such as 0xff, which makes NaN of any type; or their elements, and nothing between them, with
 * what is drawn (EXECUTOR_DRAWN): NaN, zeros, numbers or any bits. */
enum { EXECUTOR_LEFT = -1, EXECUTOR_DRAWN = -2 };
void executor_poison(struct executor *executor, int slot, int byte);

/* One request: runs the kernel on each of the slots in turn, from a workspace filled with the byte `rubbish`, with what is drawn
 * (EXECUTOR_DRAWN), or left alone (EXECUTOR_LEFT: for runs that are timed). The
 * clock starts before the worker is woken, and covers what it does until it has answered. Afterwards the worker is stopped (SIGSTOP) until the next request, so that nothing can finish later.
 */
struct execution executor_run(struct executor *executor, const int *slots, int count, int rubbish);

/* From now on the state of the process (signals, limits, environment, files, threads, mappings, code: state.h) is looked at after every
 * run, and the registers of all its threads with it. Otherwise that is done after runs 1, 2, 4, 8 and so on. A call that has left another
 * state than it found ends in EXECUTION_INVALID. */
void executor_watch(struct executor *executor);

/* For workers on a GPU: times a graph of the slots, replayed `replays` times; *seconds is the time of one call by the clock of
 * the GPU (attest_cuda_time). Only the first `moved` of the slots are moved to the GPU before and their outputs back afterwards;
 * the others are there as they were when they were last run or moved. */
struct execution executor_time(struct executor *executor, const int *slots, int count, int replays, int moved, double *seconds);

/* The outputs of a slot, in this process, at the strides of its problem; lse is NULL without ATTEST_LSE. */
attest_tensors executor_outputs(struct executor *executor, int slot);

/* Copies them into outputs that were made for the same problem. */
void executor_copy(struct executor *executor, int slot, struct outputs *outputs);

/* False, with a sentence, if inputs, guard bands or gaps of a slot are not as they were. */
bool executor_intact(struct executor *executor, int slot, char *why, size_t why_size);

/* Reads memory of the worker that stands still: what is at this address of the image, which is loaded somewhere. False if it is not there. */
bool executor_read(const struct executor *executor, const char *image, uint64_t address, void *to, size_t size);

/* Memory and files the worker holds now, to see leaks: private bytes, open file descriptors, threads. */
struct holdings {
    int64_t bytes, files, threads;
};
struct holdings executor_holdings(const struct executor *executor);

/* Processor time of the worker so far; 0 if it has ended. */
double executor_processor_seconds(const struct executor *executor);

/* What the worker and the kernel printed so far (stdout and stderr together), for the log. Borrowed. */
const char *executor_printed(struct executor *executor);

/* What the sandbox could enforce here, as an object: {"landlock": 3 (version; 0: none), "seccomp": true, "own_code_only": true (system
 * calls are those of the worker's own code), "no_time_stamp_counter": true, "no_cpuid": true, "network_namespace": true,
 * "inputs_read_only": true, "state_seen": true (all of state.h could be read), "relaxed": false}. New reference. */
json_t *executor_sandbox(const struct executor *executor);

/* Asks the worker to end, and waits for it. `execution` says whether it ended well: sanitizers report at exit. Nothing can be run
 * any more, but what was printed is still there. */
void executor_end(struct executor *executor, struct execution *execution);

/* Frees everything. A worker that is still there is ended first: asked to, if `execution` is not NULL, or else killed. */
void executor_close(struct executor *executor, struct execution *execution);

/* ---- something that computes problems ------------------------------------------------------------------------------- */

/* What gates and the stage oracle work with: computes the problem of `inputs` into O and LSE of `outputs` (see inputs.h), which
 * have been poisoned. An executor is one; tests make others. */
struct subject {
    struct execution (*run)(void *data, const struct inputs *inputs, struct outputs *outputs);
    /* Computes `inputs` once more where `run` did, after other inputs of the same problem: tensors at the same addresses, and
     * workspace and outputs as that call has left them. NULL: it cannot. */
    struct execution (*run_after)(void *data, const struct inputs *before, const struct inputs *inputs, struct outputs *outputs);
    void *data;
};
struct subject executor_subject(struct executor *executor); /* loads slot 0, runs, copies the outputs */

#endif
