/*
 * protocol.h - what the supervisor (executor.c) and the worker (worker.c) say to each other, over a socket that keeps messages
 * apart.
 *
 *     supervisor                                  worker
 *     HELLO   threads, device; the board's fd     closes itself off              -> READY with what could be enforced
 *     KERNEL                                      loads the kernel               -> READY with facts, or a refusal
 *     LOAD    a problem, where its tensors lie;   maps them, makes a plan        -> READY, or a refusal
 *             the fds of inputs and outputs
 *     RUN     slots, rubbish                      fills the workspace, runs the kernel on the slots -> DONE, or how it failed
 *     CHECK                                       looks at the registers of all threads  -> READY
 *     END                                         exits with status 0
 *
 * Between two requests the worker is stopped. Before KERNEL nothing of a candidate is in the process: what it says until then can be
 * believed, and what the system says of it then is what everything later is compared with (state.c). The clock of RUN starts before
 * the worker is woken and ends when DONE arrives, so nothing of a kernel can run that the clock does not cover.
 *
 * Every answer repeats the number of its request, which the supervisor draws at random. An answer of another length, kind or number
 * ends the conversation, and so does a message while no request is under way. The tensors of a slot lie in two files in memory, one for
 * inputs (which the worker can only read) and one for outputs; a tensor has whole pages of its file to itself, its piece.
 */
#ifndef ATTEST_PROTOCOL_H
#define ATTEST_PROTOCOL_H

#include <attest.h>
#include <stddef.h>

#include "data/tensor_list.h"
#include "executor.h"
#include "state.h"

enum { CONTROL_FILE = 3 }; /* the worker's end of the socket */

/* Statuses that a worker leaves with when it cannot go on: nobody to speak to, no memory for guarded scratch. */
enum { EXIT_LOST = 125, EXIT_MEMORY = 124 };

/* Where a tensor lies. All in bytes. */
struct piece {
    uint64_t offset; /* of the piece in its file; a multiple of the page size */
    uint64_t size;   /* of the piece, whole pages; 0: the problem has no such tensor */
    uint64_t start;  /* of the tensor's extent in the piece */
    uint64_t bytes;  /* of the extent */
    int64_t at;      /* of the tensor's pointer, from the beginning of the piece */
    uint64_t output; /* 1: its file is that of the outputs */
};

enum message_kind {
    MESSAGE_HELLO = 1,
    MESSAGE_KERNEL,
    MESSAGE_LOAD,
    MESSAGE_RUN,
    MESSAGE_CHECK,
    MESSAGE_END,
    MESSAGE_READY,
    MESSAGE_DONE
};

struct message_head {
    uint32_t kind;
    uint32_t end; /* of an answer: enum execution_end */
    uint64_t number;
};

struct hello {
    struct message_head head;
    int32_t threads;
    uint32_t guard;
    uint32_t relaxed;
    uint32_t lifted; /* the kernel is asked for what it refuses, too */
    uint32_t is_image;
    uint32_t emulated;  /* the device */
    char name[4096];    /* path of the image, or name of the kernel */
    char scratch[4096]; /* folder where the worker may write, or "" */
    char device[32];    /* as of attest_context_create_on */
    uint64_t seed;      /* of the environment that the kernel is shown */
};

struct load {
    struct message_head head;
    int32_t slot;
    uint32_t shift; /* pages left free before the tensors, so that they come to lie somewhere else */
    attest_problem problem;
    struct piece pieces[TENSORS_MOST]; /* by the number of the tensor (attest_tensor_get) */
};

struct run {
    struct message_head head;
    int32_t count;
    int32_t rubbish; /* as of executor_run */
    uint64_t seed;   /* of EXECUTOR_DRAWN */
    int32_t replays; /* 0: run; else time a graph of these calls, replayed so often, by the clock of the GPU, */
    int32_t moved;   /* and move the tensors of so many of them, the first ones, to the GPU before and back afterwards */
    int32_t slots[EXECUTOR_SLOTS];
};

/* READY, with facts after KERNEL, and DONE. If head.end is not EXECUTION_DONE, `sentence` says why. */
struct ready {
    struct message_head head;
    double seconds; /* of one call, if it was timed */
    char sentence[640];
    struct kernel_facts facts;
    int32_t landlock;                       /* after HELLO: version of its interface, 0: none */
    int32_t own_code, no_counter, no_cpuid; /* after HELLO: whether these could be enforced, see sandbox.h */
    struct state_places places;             /* after HELLO */
};

/* What a kernel must leave as it was in a thread (registers.c). */
enum register_state {
    REGISTERS_KEPT,
    REGISTERS_FLUSH,     /* flush-to-zero or denormals-are-zero */
    REGISTERS_ROUNDING,  /* rounding mode, of vectors or of the x87 */
    REGISTERS_MASKS,     /* exceptions that are not masked */
    REGISTERS_PRECISION, /* the rest of the x87 control word */
    REGISTERS_STACK,     /* values on the x87 stack, or MMX registers in use */
    REGISTERS_DIRECTION, /* direction flag */
    REGISTERS_ALIGNMENT, /* alignment-check flag */
    REGISTERS_COUNT
};

/* Instructions that fault in the worker. */
enum faulting { FAULTING_OTHER, FAULTING_COUNTER, FAULTING_CPUID };

/* A page that both see. The worker notes here where the pieces are, what state a kernel has left, and its signal handler why it dies.
 * For sentences only, and for nothing but the address of a crash is anything but a number or a choice taken from it. */
struct board {
    uint64_t bases[EXECUTOR_SLOTS][TENSORS_MOST];
    uint64_t scratch_begin, scratch_end; /* guarded scratch memory of the thread that died; 0: none */
    int64_t overrun;                     /* byte behind the end of scratch memory that was written, from 1 on; 0: none */
    uint64_t address, stack;             /* that was touched, and of the stack */
    int32_t signal;
    int32_t call;     /* number of the system call that was refused */
    int32_t foreign;  /* 1: because it was made by code that is not the worker's */
    int32_t faulting; /* enum faulting: the instruction that got SIGSEGV */
    int32_t written;  /* 1: the address was written, 0: it was read, -1: not known */
    int32_t state;    /* enum register_state, the first that was found to have changed, */
    int32_t place;    /* enum kernel_function, after which */
    uint32_t value;   /* and the register that shows it */
    int32_t swapped;  /* 1: the kernel has changed its table */
};

/* Functions of a kernel. */
enum kernel_function { FUNCTION_ENTRY, FUNCTION_SIZES, FUNCTION_PREPARE, FUNCTION_TILE, FUNCTION_ANY, FUNCTION_COUNT };

#endif
