/*
 * internal.h - what the files of lib/ share and nobody else sees.
 */
#ifndef ATTEST_INTERNAL_H
#define ATTEST_INTERNAL_H

#include <attest_kernel.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { DIM_MAX = 512, THREADS_MAX = 1024, WORKSPACE_ALIGN = 64 };

/* CPU features a kernel can need, in the order in which each builds on those before it. */
enum { FEATURE_AVX2 = 1, FEATURE_AVX512 = 2, FEATURE_AVX512BF16 = 4, FEATURE_AMX = 8 };

struct gpu;                /* cuda/gpu.h */
struct attest_cuda_kernel; /* attest_kernel_cuda.h */

struct attest_context {
    int threads;
    unsigned features;                           /* FEATURE_* found on this machine and not disabled */
    char feature_text[64];                       /* the same as a list of names */
    char detail[512];                            /* sentence of the last error */
    const attest_cpu_kernel *added;              /* attest_context_add_kernel */
    const struct attest_cuda_kernel *added_cuda; /* attest_context_add_cuda_kernel */
    struct gpu *gpu;                             /* NULL on the CPU */
    attest_status unusable;                      /* why it has no device, though it should */
    char unusable_text[256];
    char device[16], device_class[128];
};

/* ATTEST_OK, or why nothing can be done with the context. Begins every call that works on the device. */
attest_status context_ready(attest_context *context);

/* A place for the sentence that says what went wrong; `data` may be NULL. */
struct text {
    char *data;
    size_t size;
};

/* Writes the sentence and returns the status, so that checks read `return fail(...)`. */
attest_status fail(struct text why, attest_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

struct text context_text(attest_context *context);

#define TRY(expression)                                                                                                            \
    do {                                                                                                                           \
        attest_status try_status_ = (expression);                                                                                  \
        if (try_status_ != ATTEST_OK)                                                                                              \
            return try_status_;                                                                                                    \
    } while (0)

/* Copies a size-tagged struct from the caller into `own`, which is of `own_size` bytes; `least` is its size in version 0.1, and a
 * caller's struct that ends before own_size is read as zeros from there on. `name` is for the sentence. */
attest_status struct_read(void *own, size_t own_size, size_t least, const void *theirs, const char *name, struct text why);
enum {
    PROBLEM_SIZE_0_1 = 304,
    TENSORS_SIZE_0_1 = 104,
    MERGE_SIZE_0_1 = 88,
    KERNEL_INFO_SIZE_0_1 = 40,
    DEVICE_INFO_SIZE_0_1 = 312,
    OP_INFO_SIZE_0_1 = 24,
    TENSOR_INFO_SIZE_0_1 = 208,
    CHOICE_SIZE_0_1 = 528
};

static inline bool has(const attest_problem *p, uint64_t flag)
{
    return (p->flags & flag) != 0;
}

static inline size_t dtype_size(uint32_t dtype)
{
    return dtype == ATTEST_F32 ? 4 : 2;
}

const char *dtype_name(uint32_t dtype);

/* The title of the lowest of these flags, to complete "it does not take ...". */
const char *flag_title(uint64_t flags);
attest_status problem_read(attest_problem *own, const attest_problem *theirs, struct text why);
void problem_pack_bshd(attest_problem *p); /* the dense tensors as [batch, row, head, dim], the others packed */

/* ---- operations ------------------------------------------------------------------------------------------------------------ */

/* OP_fwd is ATTEST_OP_FORWARD, and so on for each row of ops.def. */
enum {
#define OP(name, word, summary) OP_##word = ATTEST_OP_##name,
#include "ops.def"
#undef OP
    OPS_END
};

struct op {
    const char *word, *summary;
};
extern const struct op ops[OPS_END]; /* by number; 0 is none */

static inline bool op_is_known(uint32_t op)
{
    return op > 0 && op < OPS_END;
}

bool op_find(const char *word, uint32_t *op);

/* ---- tensors --------------------------------------------------------------------------------------------------------------- */

/* TENSOR_q, and so on for each row of tensors.def. */
enum {
#define TENSOR(field, flag, dtype, shape, strides, word, fwd) TENSOR_##field,
#include "tensors.def"
#undef TENSOR
    TENSORS
};
enum { RANK_MOST = 4 };

struct tensor_row {
    const char *name;
    size_t at;                                         /* of the pointer in attest_tensors */
    const char *stride_name, *word;                    /* may be NULL */
    uint64_t flag;                                     /* 0: it is always present */
    size_t dtype_at;                                   /* of the dtype in attest_problem, */
    uint32_t dtype;                                    /* if this is 0 */
    uint32_t role[OPS_END];                            /* ATTEST_ROLE_*, by operation */
    unsigned char rank, axis[RANK_MOST], stride_count; /* axis: enum axis of shapes.c, outermost first */
    bool shared;                                       /* the outermost stride is 0 unless the caller sets it */
    size_t stride_at;                                  /* of the strides in attest_problem, if there are any */
};
extern const struct tensor_row tensor_rows[TENSORS];

/* A problem whose operation is not set yet is packed as one of the first. */
static inline bool tensor_present(const attest_problem *p, int tensor)
{
    const struct tensor_row *row = &tensor_rows[tensor];
    return row->role[op_is_known(p->op) ? p->op : 1] && (!row->flag || has(p, row->flag));
}

static inline uint32_t tensor_dtype(const attest_problem *p, int tensor)
{
    const struct tensor_row *row = &tensor_rows[tensor];
    return row->dtype ? row->dtype : *(const uint32_t *)((const char *)p + row->dtype_at);
}

/* The field of the problem, of a tensor that has one. */
static inline const int64_t *tensor_strides(const attest_problem *p, int tensor)
{
    return (const int64_t *)((const char *)p + tensor_rows[tensor].stride_at);
}

static inline const void *tensor_data(const attest_tensors *t, int tensor)
{
    const void *data;
    memcpy(&data, (const char *)t + tensor_rows[tensor].at, sizeof data);
    return data;
}

static inline void tensor_set(attest_tensors *t, int tensor, void *data)
{
    memcpy((char *)t + tensor_rows[tensor].at, &data, sizeof data);
}

/* Bytes of an element of any tensor; dtype_size, which kernels use, is for the dtypes that a problem sets. */
static inline size_t element_size(uint32_t dtype)
{
    return dtype == ATTEST_U8 ? 1 : dtype == ATTEST_I32 ? sizeof(int32_t) : dtype_size(dtype);
}

uint64_t tensor_packed_by(int tensor); /* the flag with which it has no stride between sequences; 0 if there is none */
bool tensor_has_columns(int tensor);   /* its rows are vectors of dim or dim_v numbers: Q, K, V and O */

/* A tensor in a problem: its axes as tensors.def has them, with sizes of 1 behind the last. All sizes are 0 if it is absent. */
struct shape {
    bool present;
    uint32_t dtype;
    int64_t size[RANK_MOST], stride[RANK_MOST];
};
struct shape shape_get(const attest_problem *p, int tensor);

/* The elements that it covers, as in attest_problem_extent: false if an offset in bytes does not fit 63 bits. */
bool shape_extent(const struct shape *s, int64_t *first, int64_t *count);

/* Sufficient for all elements to be distinct: sorted by stride, each stride reaches beyond everything inside it. */
bool shape_distinct(const struct shape *s);

/* What a run has to know of a tensor: whether the problem has it, and the bytes that it covers. */
struct buffer {
    bool wanted;
    bool output;
    size_t align;
    int64_t first, bytes; /* relative to the pointer */
};
void buffers_get(struct buffer *out, const attest_problem *p); /* TENSORS of them */

/* Checks pointers, alignment, overlap, lengths and page table; the problem has been checked before, and `buffers` are its. `outputs` is
 * false for the oracle, which has outputs of its own. */
attest_status tensors_read(attest_tensors *own, const attest_tensors *theirs, const attest_problem *p, const struct buffer *buffers,
                           bool outputs, struct text why);

/* The same for tensors that the host cannot look into. Q, K, V and O must be aligned to `align` bytes, if that is not 0. */
attest_status tensors_read_device(attest_tensors *own, const attest_tensors *theirs, const struct buffer *buffers, uint32_t align,
                                  const char *kernel, struct text why);

/* Where one sequence of the batch lies. */
struct sequence {
    int64_t q_row;    /* first row in a packed Q, 0 when dense */
    int64_t q_len;    /* rows */
    int64_t kv_row;   /* first key in a packed K and V, 0 when dense or paged */
    int64_t kv_len;   /* keys */
    int64_t kv_first; /* keys before this one do not exist */
    int64_t place;    /* of row 0 among the keys (SEMANTICS 3) */
};
struct sequence sequence_get(const attest_problem *p, const attest_tensors *t, int64_t b);

/* ---- kernels --------------------------------------------------------------------------------------------------------------- */

/* A kernel for one dtype. Its code is shared with the kernels for other dtypes, and declares what it takes. */
struct kernel {
    const char *name;
    const char *backend;
    uint32_t op;                           /* ATTEST_OP_* */
    uint32_t dtype;                        /* of Q, K, V; 0 for all that the code takes */
    const attest_cpu_kernel *code;         /* for the CPU, */
    const struct attest_cuda_kernel *cuda; /* or for GPUs; both NULL for the oracle */
    const char *needs;                     /* of those for GPUs */
    bool candidate;                        /* not proven yet: for those who ask for it by name */
};

struct attest_plan {
    attest_problem problem;
    struct buffer buffers[TENSORS]; /* of the problem */
    struct kernel kernel;
    char name[160]; /* of the kernel, with the tiles that were asked for */
    int threads;
    int64_t tile_rows; /* query rows (times heads of one KV head) that one task takes */
    size_t workspace;
    struct cuda_plan *cuda; /* cuda/gpu.h; NULL on the CPU */
};

unsigned cpu_features_found(void);
const char *cpu_model(void);                                   /* what the processor calls itself; "" if it does not */
void device_class(unsigned features, char *text, size_t size); /* "cpu-avx512": the best of the features */
bool feature_find(const char *name, unsigned *feature);        /* the FEATURE_* of a name; 0 for "" */

/* Largest of all rows' count: (b, h, i) numbered as attest_reference numbers them. */
static inline int64_t row_count(const attest_problem *p)
{
    return p->batch * p->heads_q * p->seq_q;
}

#endif
