/*
 * attest.h - attention that comes with proof: the whole public interface of libattest, and its manual.
 *
 *     O = softmax(scale * Q K^T + modifiers) V          softmax over the keys each row may see
 *
 * In ten lines:
 *
 *     attest_problem p;
 *     attest_problem_init(&p, ATTEST_F32, batch, heads_q, heads_kv, seq_q, seq_kv, dim);
 *     p.flags |= ATTEST_CAUSAL;
 *     attest_tensors t = {.size = sizeof t, .q = q, .k = k, .v = v, .o = o};
 *     char why[256];
 *     if (attest_forward(&p, &t, why, sizeof why) != ATTEST_OK)
 *         fprintf(stderr, "%s\n", why);
 *
 * Programs that call often make a context and a plan once and then call attest_run, which allocates nothing.
 *
 * RULES FOR ALL ARGUMENTS
 * - Every function that can fail returns an attest_status; ATTEST_OK is 0. The sentence that says what was wrong, and with
 *   which argument, is in the context (attest_context_detail) or in the text buffer of the call. On any error no output
 *   tensor has been written.
 * - Structs start with `size`, set to sizeof by their init function or by you. A library that is older than your header
 *   refuses a struct whose unknown tail is not zero; a newer one reads the missing tail as zero.
 * - A feature is on when its flag is set. A field that belongs to a flag that is not set must be 0.
 * - Pointers must be aligned to their element type; some kernels for GPUs want more (below). The library never frees or keeps them.
 * - Nothing here aborts, exits, prints, or changes signal handlers or floating-point state that outlives the call.
 * - A context may be used by one thread at a time. A plan is immutable and may be used by many threads at once, each with its
 *   own context and workspace.
 *
 * TENSORS, in elements:
 *     Q [batch, heads_q,  seq_q,  dim  ]     K [batch, heads_kv, seq_kv, dim  ]     LSE [batch, heads_q, seq_q] float32
 *     O [batch, heads_q,  seq_q,  dim_v]     V [batch, heads_kv, seq_kv, dim_v]     bias [batch, heads_q, seq_q, seq_kv]
 *                                                                                     mask, bytes, like the bias
 * Each has explicit int64 strides in elements: {batch, head, row}, and {batch, head, row, key} for bias and mask. The innermost
 * stride of Q, K, V and O is 1. Input strides may be anything, 0 and negative included (0 broadcasts); the elements of O and
 * of LSE must be distinct. heads_q is a multiple of heads_kv: query head h reads KV head h / (heads_q / heads_kv).
 *
 * SEMANTICS, the same for every kernel on every device. For query row i and key j of one sequence of n_q rows and n_kv keys:
 * 1. s = scale * dot(q_i, k_j)
 * 2. with ATTEST_SOFTCAP:  s = softcap * tanh(s / softcap)
 * 3. r = i; or i + n_kv - n_q with ATTEST_BOTTOM_RIGHT; or i + row_offsets[b] with ATTEST_ROW_OFFSETS: the row's place among the keys
 *    (it may be negative)
 * 4. with ATTEST_ALIBI:    s = s - slope[b,h] * |r - j|
 * 5. with ATTEST_BIAS:     s = s + bias[b,h,i,j]; a key whose bias is -inf is invisible
 * 6. key j is invisible if ATTEST_CAUSAL and j > r, if ATTEST_WINDOW_LEFT and j < r - window_left, if ATTEST_WINDOW_RIGHT and
 *    j > r + window_right, if ATTEST_KV_STARTS and j < kv_starts[b], or if ATTEST_MASK and mask[b,h,i,j] is 0
 * 7. P = softmax over the visible keys; with ATTEST_SINK the denominator also has exp(sink[h])
 * 8. O = P V, rounded once to dtype_o; LSE = ln of the denominator (natural logarithm, of unshifted scores)
 * - A row that sees no key has O = 0 and LSE = -inf (LSE = sink[h] with ATTEST_SINK). Zero batch, zero rows, zero keys and
 *   zero-length sequences are valid.
 * - What no row of a sequence may see (keys beyond its length, padding, unused page slots, keys outside every row's mask)
 *   never reaches an output, not even as NaN. A non-finite value that some rows see reaches those rows, and may reach other
 *   rows of the same KV head.
 * - Arithmetic is float32 or better. Kernels that multiply 16-bit numbers in hardware round P to their type once before the product
 *   with V, and on CPUs take subnormal bf16 numbers as 0. Sums are normalised at the end: |v| times the number of keys must be
 *   finite in float32.
 * - The same problem on the same device gives the same bits, for any number of threads. A sequence has the same bits
 *   alone, in a batch, packed or padded, and under any page layout (on the CPU always; on a GPU with ATTEST_INVARIANT, among
 *   problems with the same seq_q).
 *
 * DEVICES. A context is on the CPU or on one NVIDIA GPU (attest_context_create_on), and everything that is planned and run with it
 * happens there. A program that takes its memory from attest_memory_alloc and moves its data with attest_memory_put and _get runs
 * unchanged on both: examples/gpu.c.
 * - On a GPU the tensors and the workspace of attest_run are memory of that GPU, from attest_memory_alloc or from anybody else who
 *   uses the GPU's primary context: cudaMalloc, PyTorch. attest_run puts its work into `stream`, a CUstream or cudaStream_t (NULL
 *   is the default stream), and returns: it allocates nothing, waits for nothing, and can be captured into a CUDA graph.
 * - NULL, alignment and overlap are checked as on the CPU. Lengths, page tables, slopes and sinks lie on the GPU and are not:
 *   kernels clamp lengths and pages to what the problem allows and never read outside of a tensor.
 * - Q, K, V and O are read and written fastest where their pointers, and the strides between rows, heads and batches, are multiples
 *   of 16 bytes. A kernel may insist on it, as those for Hopper do: strides are looked at when the plan is made, and another
 *   kernel runs; pointers when it is run, and that is an error, with a sentence.
 * - No CUDA is needed to build against this library, to link it, or to load it: the driver is looked for when a context wants it.
 * - What the driver or the GPU complains of is ATTEST_ERROR_DEVICE and a sentence. After an error that ends a GPU's work for the
 *   rest of the process (an illegal address, say) every call with a context on it says so and does nothing.
 *
 * Licence: MIT.
 */
#ifndef ATTEST_H
#define ATTEST_H

#include <stddef.h>
#include <stdint.h>

#define ATTEST_VERSION_MAJOR 0
#define ATTEST_VERSION_MINOR 1
#define ATTEST_VERSION_PATCH 0

#if defined(__GNUC__)
#define ATTEST_API __attribute__((visibility("default")))
#else
#define ATTEST_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------------------- status -- */

/* The numbers are part of the ABI and never change. */
typedef enum attest_status {
    ATTEST_OK = 0,
    ATTEST_ERROR_ARGUMENT = 1,    /* an argument is wrong or contradicts another one */
    ATTEST_ERROR_PARSE = 2,       /* a problem string does not parse */
    ATTEST_ERROR_UNSUPPORTED = 3, /* the kernel asked for does not take this problem */
    ATTEST_ERROR_UNAVAILABLE = 4, /* this machine lacks what the kernel needs, or the feature is disabled */
    ATTEST_ERROR_WORKSPACE = 5,   /* the workspace is missing, too small or not aligned to 64 bytes */
    ATTEST_ERROR_MEMORY = 6,      /* the system gave no memory */
    ATTEST_ERROR_INTERNAL = 7,    /* a defect in the library: please report it */
    ATTEST_ERROR_DEVICE = 8       /* the GPU or its driver reported an error: see DEVICES */
} attest_status;

/* "ok", "argument", "parse" ...: one word for each status, "unknown" for any other number. */
ATTEST_API const char *attest_status_name(attest_status status);

/* "0.1.0", and an identifier of the sources this library was built from (12 hexadecimal digits). */
ATTEST_API const char *attest_version(void);
ATTEST_API const char *attest_build_id(void);

/* --------------------------------------------------------------------------------------------------------- problem -- */

enum { ATTEST_OP_FORWARD = 1 };

/* One operation. */
typedef struct attest_op_info {
    uint64_t size;       /* sizeof(attest_op_info) */
    const char *name;    /* "fwd": begins its problems' text, and is the second word of its kernels' names */
    const char *summary; /* one line on what it computes */
} attest_op_info;

/* Operation `op`, ATTEST_OP_FORWARD; they are numbered from 1 on, without gaps. ATTEST_ERROR_ARGUMENT if there is none. */
ATTEST_API attest_status attest_op_get(uint32_t op, attest_op_info *info);

/* ATTEST_I32, int32_t, is the type of lengths and page tables, ATTEST_U8, uint8_t, that of masks: a problem sets the other ones. */
typedef enum attest_dtype { ATTEST_F32 = 1, ATTEST_F16 = 2, ATTEST_BF16 = 3, ATTEST_I32 = 16, ATTEST_U8 = 17 } attest_dtype;

/* Feature flags of attest_problem.flags. Written as UINT64_C constants so that C and C++ agree on their type. */
#define ATTEST_CAUSAL       (UINT64_C(1) << 0)  /* see SEMANTICS 6 */
#define ATTEST_BOTTOM_RIGHT (UINT64_C(1) << 1)  /* causal, window and ALiBi count from the last row and key (SEMANTICS 3) */
#define ATTEST_WINDOW_LEFT  (UINT64_C(1) << 2)  /* uses window_left */
#define ATTEST_WINDOW_RIGHT (UINT64_C(1) << 3)  /* uses window_right */
#define ATTEST_SOFTCAP      (UINT64_C(1) << 4)  /* uses softcap */
#define ATTEST_ALIBI        (UINT64_C(1) << 5)  /* uses tensors.alibi_slopes */
#define ATTEST_BIAS         (UINT64_C(1) << 6)  /* uses dtype_bias, stride_bias, tensors.bias */
#define ATTEST_SINK         (UINT64_C(1) << 7)  /* uses tensors.sinks */
#define ATTEST_LSE          (UINT64_C(1) << 8)  /* writes tensors.lse; uses stride_lse */
#define ATTEST_VARLEN_Q     (UINT64_C(1) << 9)  /* Q, O, LSE are packed: uses total_q, tensors.cu_seqlens_q */
#define ATTEST_VARLEN_KV    (UINT64_C(1) << 10) /* K, V are packed: uses total_kv, tensors.cu_seqlens_kv */
#define ATTEST_KV_LENGTHS   (UINT64_C(1) << 11) /* uses tensors.kv_lengths */
#define ATTEST_PAGED        (UINT64_C(1) << 12) /* K, V are paged: uses page_size, page_count, stride_page_table */
#define ATTEST_INVARIANT    (UINT64_C(1) << 13) /* a sequence's bits must not depend on batch, split or page layout */
#define ATTEST_ROW_OFFSETS  (UINT64_C(1) << 14) /* uses tensors.row_offsets (SEMANTICS 3); not with ATTEST_BOTTOM_RIGHT */
#define ATTEST_KV_STARTS    (UINT64_C(1) << 15) /* uses tensors.kv_starts */
#define ATTEST_Q_LENGTHS    (UINT64_C(1) << 16) /* uses tensors.q_lengths */
#define ATTEST_MASK         (UINT64_C(1) << 17) /* uses stride_mask, tensors.mask */

/*
 * What is to be computed, without the data. Every field is explicit, there is no padding, and fields are only ever appended.
 *
 * Packed sequences (ATTEST_VARLEN_Q / _KV): sequence b owns rows cu_seqlens[b] .. cu_seqlens[b+1] of a tensor of total_q
 * (total_kv) rows; seq_q (seq_kv) is the longest length allowed, and the batch stride is unused and 0.
 * Paged keys and values (ATTEST_PAGED): page n holds keys in page_size slots; key j of sequence b is slot j % page_size of
 * page page_table[b * stride_page_table + j / page_size]. stride_k[0] and stride_v[0] are then the strides between pages.
 * Key lengths (ATTEST_KV_LENGTHS): only the first kv_lengths[b] keys of sequence b exist, whatever the cache's capacity.
 * First keys (ATTEST_KV_STARTS): keys before kv_starts[b] do not exist either, as with left padding. They keep their numbers: n_kv
 * counts them.
 * Row counts (ATTEST_Q_LENGTHS): only the first q_lengths[b] rows of sequence b exist. O and LSE of the others are not written.
 * No kernel for GPUs takes the last two, row offsets, masks or slopes of each sequence yet: attest_explain says so of each.
 */
typedef struct attest_problem {
    uint64_t size;       /* sizeof(attest_problem) */
    uint64_t flags;      /* ATTEST_CAUSAL ... */
    uint32_t op;         /* ATTEST_OP_FORWARD */
    uint32_t dtype;      /* attest_dtype of Q, K and V */
    uint32_t dtype_o;    /* attest_dtype of O: dtype or ATTEST_F32 */
    uint32_t dtype_bias; /* attest_dtype of the bias: dtype or ATTEST_F32; 0 without ATTEST_BIAS */
    int64_t batch;
    int64_t heads_q;
    int64_t heads_kv;
    int64_t seq_q;
    int64_t seq_kv;
    int64_t dim;   /* of Q and K, 1 to 512 */
    int64_t dim_v; /* of V and O, 1 to 512 */
    int64_t total_q;
    int64_t total_kv;
    int64_t page_size;
    int64_t page_count;
    int64_t window_left;
    int64_t window_right;
    float scale;   /* any finite number; attest_problem_init sets 1/sqrt(dim) */
    float softcap; /* > 0 with ATTEST_SOFTCAP */
    int64_t stride_q[3];
    int64_t stride_k[3];
    int64_t stride_v[3];
    int64_t stride_o[3];
    int64_t stride_lse[3];
    int64_t stride_bias[4];
    int64_t stride_page_table;
    int64_t stride_mask[4];
    int64_t stride_alibi_slopes; /* between sequences; 0: they share their slopes */
} attest_problem;

/* Dense forward problem: no flags, dim_v = dim, dtype_o = dtype, scale = 1/sqrt(dim), strides as attest_problem_pack sets them.
 * Fills the struct only; sizes are checked when it is used. */
ATTEST_API void attest_problem_init(attest_problem *problem, attest_dtype dtype, int64_t batch, int64_t heads_q, int64_t heads_kv,
                                    int64_t seq_q, int64_t seq_kv, int64_t dim);

/* Sets every stride for gap-free tensors, from the sizes and flags that are set now: [batch, head, row, dim] when dense,
 * [row, head, dim] when packed, [page, slot, head, dim] when paged, LSE [batch, head, row] or [head, row], bias and mask [batch,
 * head, row, key], slopes [head] for all sequences. Call it after changing sizes or flags, unless you set the strides yourself. */
ATTEST_API void attest_problem_pack(attest_problem *problem);

/* Checks a problem by itself. `text` (may be NULL) gets the sentence that says what is wrong. */
ATTEST_API attest_status attest_problem_check(const attest_problem *problem, char *text, size_t text_size);

/* A problem as one line, such as fwd:f16:b2:hq8:hkv8:sq512:skv512:d64:causal. Printing writes at most ATTEST_PROBLEM_TEXT bytes
 * with the terminating NUL; ATTEST_ERROR_ARGUMENT if the buffer is too small or the problem is not valid. Parsing a printed line
 * gives the same struct back, bit for bit. docs/problem.md lists the words.  */
#define ATTEST_PROBLEM_TEXT 1024
ATTEST_API attest_status attest_problem_print(const attest_problem *problem, char *text, size_t text_size);
ATTEST_API attest_status attest_problem_parse(const char *line, attest_problem *problem, char *text, size_t text_size);

/* The elements a tensor touches, relative to its pointer: offsets first .. first + count - 1. count is 0 for a tensor that is
 * absent or empty. `tensor` is the letter of the tensor: 'q', 'k', 'v', 'o', 'l' (LSE), 'b' (bias), 'm' (mask) or 'a' (ALiBi slopes).
 * attest_tensor_get has this for all tensors. */
ATTEST_API attest_status attest_problem_extent(const attest_problem *problem, char tensor, int64_t *first, int64_t *count);

/* The data. Pointers of features that are off must be NULL, all others must not be (unless the tensor is empty). */
typedef struct attest_tensors {
    uint64_t size; /* sizeof(attest_tensors) */
    const void *q;
    const void *k;
    const void *v;
    void *o; /* must not overlap any other tensor */
    float *lse;
    const void *bias;
    const float *alibi_slopes;    /* [heads_q], finite; for each sequence, stride_alibi_slopes apart */
    const float *sinks;           /* [heads_q] logits in natural units, not +inf or NaN */
    const int32_t *cu_seqlens_q;  /* [batch + 1], rising from 0 or more to total_q or less */
    const int32_t *cu_seqlens_kv; /* [batch + 1], likewise to total_kv */
    const int32_t *kv_lengths;    /* [batch], each 0 to seq_kv (or to the packed sequence's length) */
    const int32_t *page_table;    /* [batch, pages of seq_kv], rows stride_page_table apart; entries in use: 0 to page_count - 1 */
    const uint8_t *mask;          /* 0 hides a key */
    const int32_t *row_offsets;   /* [batch], each -2^30 to 2^30 */
    const int32_t *kv_starts;     /* [batch], each 0 to the sequence's number of keys */
    const int32_t *q_lengths;     /* [batch], each 0 to seq_q (or to the packed sequence's length) */
} attest_tensors;

enum { ATTEST_ROLE_INPUT = 1, ATTEST_ROLE_OUTPUT = 2 };

/*
 * One tensor of attest_tensors, as a problem has it. If it is not present, all that follows `present` is 0.
 *
 * The axes of shape and stride come in the order in which they lie if there are no gaps, whatever the strides are: Q is
 * [batch, heads_q, seq_q, dim], packed [total_q, heads_q, dim]; paged K is [page_count, page_size, heads_kv, dim].
 */
typedef struct attest_tensor_info {
    uint64_t size;          /* sizeof(attest_tensor_info) */
    const char *name;       /* "q", "cu_seqlens_q": the field of attest_tensors */
    uint64_t offset;        /* offsetof(attest_tensors, q): where its pointer is */
    uint64_t flag;          /* ATTEST_LSE: the flag that it belongs to; 0: none, it is always there */
    uint64_t stride_offset; /* offsetof(attest_problem, stride_q): where its strides are set, from {batch, head, row, key}; */
    uint32_t stride_count;  /* how many there are; 0, and stride_offset 0, if it never has gaps */
    uint32_t role;          /* ATTEST_ROLE_INPUT, _OUTPUT or both, in the problem's operation; 0: that has no such tensor */
    uint32_t present;       /* 1: it has a role, and its flag, if any, is set: its pointer is not NULL, unless `bytes` is 0 */
    uint32_t dtype;         /* attest_dtype */
    uint32_t element_size;  /* bytes, and the alignment of the pointer */
    uint32_t rank;          /* how many axes shape and stride have: 1 to 4 */
    int64_t first_byte;     /* it covers the bytes first_byte .. first_byte + bytes - 1, relative to its pointer, gaps between */
    int64_t bytes;          /* its elements included; first_byte is negative where strides are; bytes is 0 if it is empty */
    int64_t shape[4];       /* elements */
    int64_t stride[4];      /* elements */
    char axes[64];          /* names of the axes: "batch, heads_q, seq_q, dim" */
} attest_tensor_info;

/* Tensor `index` of attest_tensors, in the order of its pointers, from 0 to attest_tensor_count() - 1; one that your header does not
 * have is never present. ATTEST_ERROR_ARGUMENT if there is none, or if the problem is not valid: attest_problem_check says why. */
ATTEST_API size_t attest_tensor_count(void);
ATTEST_API attest_status attest_tensor_get(const attest_problem *problem, size_t index, attest_tensor_info *info);

/* --------------------------------------------------------------------------------------------------------- context -- */

typedef struct attest_context attest_context;

/* A context holds the device, the thread count, the CPU features that may be used, and the text of the last error. The environment
 * variable ATTEST_DISABLE (a list such as "amx,avx512") is read here; if it names an unknown feature the status says so, and the
 * context is there all the same, for its detail text and to be destroyed; likewise if there is no such device. */
ATTEST_API attest_status attest_context_create(attest_context **context); /* on $ATTEST_DEVICE, else on the CPU */

/* `device` is "cpu", "cuda" (the first GPU), "cuda:1", or "auto": the first GPU that this build has kernels for, else the CPU. */
ATTEST_API attest_status attest_context_create_on(const char *device, attest_context **context);
ATTEST_API void attest_context_destroy(attest_context *context); /* NULL is fine */

/* The sentence that belongs to the last error of this context; "" after a success. Valid until the next call with it. */
ATTEST_API const char *attest_context_detail(const attest_context *context);

/* Threads a plan made with this context will use at most: 1 to 1024; the default is what OpenMP would use. */
ATTEST_API attest_status attest_context_set_threads(attest_context *context, int threads);
ATTEST_API int attest_context_threads(const attest_context *context);

/* CPU features found and not disabled, as a comma-separated list, such as "avx2,avx512,avx512bf16". "" is plain C. Disabling
 * adds to what ATTEST_DISABLE took away; a feature takes those that are built on it along (avx2 takes all). */
ATTEST_API const char *attest_context_features(const attest_context *context);
ATTEST_API attest_status attest_context_disable(attest_context *context, const char *features);

/* ---------------------------------------------------------------------------------------------------------- device -- */

/* Where this context computes: "cpu" or "cuda:0"; what that is: "NVIDIA H200"; and the class of machines that it is one of, by
 * which kernels are chosen: "cpu-avx512", "nvidia-h200". */
ATTEST_API const char *attest_context_device(const attest_context *context);
ATTEST_API const char *attest_context_model(const attest_context *context);
ATTEST_API const char *attest_context_class(const attest_context *context);

/* Memory of the context's device, aligned to 256 bytes or more; on the CPU it is ordinary memory. On a GPU `stream` is as in
 * attest_run and the calls take their turn in it; on the CPU it is NULL. put returns when `host` may be used again, get when the
 * data is there, set at once. Zero bytes are fine. */
ATTEST_API attest_status attest_memory_alloc(attest_context *context, size_t bytes, void **memory);
ATTEST_API attest_status attest_memory_free(attest_context *context, void *memory); /* NULL is fine */
ATTEST_API attest_status attest_memory_put(attest_context *context, void *device, const void *host, size_t bytes, void *stream);
ATTEST_API attest_status attest_memory_get(attest_context *context, void *host, const void *device, size_t bytes, void *stream);
ATTEST_API attest_status attest_memory_set(attest_context *context, void *device, int byte, size_t bytes, void *stream);

/* Waits until everything that was put into the stream before is done. */
ATTEST_API attest_status attest_synchronize(attest_context *context, void *stream);

/* One GPU. */
typedef struct attest_device_info {
    uint64_t size;            /* sizeof(attest_device_info) */
    uint64_t memory;          /* bytes */
    uint64_t cache;           /* bytes of the second-level cache */
    uint32_t compute;         /* compute capability: 89 is 8.9, 100 is 10.0 */
    uint32_t multiprocessors; /* SMs */
    uint32_t shared_block;    /* bytes of shared memory that a block can have */
    uint32_t driver;          /* newest CUDA version that the driver knows: 13000 is 13.0 */
    char device[16];          /* as attest_context_device */
    char model[128];          /* as attest_context_model */
    char device_class[128];   /* as attest_context_class */
} attest_device_info;

/* GPU `index` of this machine, from 0 on. ATTEST_ERROR_UNAVAILABLE, with the reason in `text` (may be NULL), if there is none. */
ATTEST_API attest_status attest_device_get(int index, attest_device_info *info, char *text, size_t text_size);

/* --------------------------------------------------------------------------------------------------------- kernels -- */

typedef struct attest_kernel_info {
    uint64_t size;       /* sizeof(attest_kernel_info) */
    const char *name;    /* cpu_fwd_f32_avx512: backend, operation, dtype, architecture */
    const char *backend; /* "cuda", "cpu" or "ref" */
    const char *needs;   /* CPU features it needs, as in attest_context_features, "" for none; GPUs it is for: "sm_80,sm_90" */
    const char *summary; /* one line on how it works */
    uint64_t candidate;  /* 1: not proven yet. It runs when it is asked for, or when no proven kernel takes the problem there */
} attest_kernel_info;

/* All kernels of this build, best first, the reference last. A plan takes the champion of this class of machines if it takes the
 * problem (and no kernel for few rows or tiles does), else the first that does, candidates after all others. */
ATTEST_API size_t attest_kernel_count(void);
ATTEST_API attest_status attest_kernel_get(size_t index, attest_kernel_info *info);

/* ATTEST_OK if kernel `index` takes this problem here; otherwise why not, as a status and, in `text` (may be NULL), a sentence. */
ATTEST_API attest_status attest_kernel_refusal(attest_context *context, size_t index, const attest_problem *problem, char *text,
                                               size_t text_size);

/* Which kernel runs, with its workspace, and for every other kernel why not, one line each. Text that does not fit is cut. */
ATTEST_API attest_status attest_explain(attest_context *context, const attest_problem *problem, char *text, size_t text_size);

/* The same of one kernel. */
typedef struct attest_choice {
    uint64_t size;      /* sizeof(attest_choice) */
    const char *kernel; /* its name */
    const char
        *proven;     /* the model of a machine that it was proven on, this one's if it was; NULL if there is no proof, or no need */
    uint32_t status; /* ATTEST_OK if it takes the problem here, else the status of attest_kernel_refusal */
    uint32_t chosen; /* 1: it is the one that runs */
    uint32_t proven_here; /* 1: `proven` is a machine like this one */
    uint32_t reserved;    /* 0 */
    uint64_t workspace;   /* of the one that runs: bytes, as attest_plan_workspace_size */
    char how[224];        /* of the one that runs: its threads, or its tiles and blocks; "" of others */
    char reason[256];     /* the sentence why it does not take the problem; "" if it does */
} attest_choice;

/* Kernel `index`, for a plan that is made with `kernel`, as in attest_plan_create. The status is that of such a plan: where no kernel
 * runs, attest_kernel_refusal has the reason of each. */
ATTEST_API attest_status attest_explain_kernel(attest_context *context, const attest_problem *problem, const char *kernel,
                                               size_t index, attest_choice *choice);

/* ------------------------------------------------------------------------------------------------------------ plan -- */

typedef struct attest_plan attest_plan;

/* `kernel` is NULL for the library's choice, or a name or a pattern with * and ? to force one: the first match that takes the
 * problem. Nothing is ever substituted silently: if no match takes it, the status and the sentence say so. A CUDA kernel that has
 * several tiles runs with the one that is asked for: "cuda_fwd_f16_wmma@48x64". */
ATTEST_API attest_status attest_plan_create(attest_context *context, const attest_problem *problem, const char *kernel,
                                            attest_plan **plan);
ATTEST_API void attest_plan_destroy(attest_plan *plan); /* NULL is fine */
ATTEST_API const char *attest_plan_kernel(const attest_plan *plan);
ATTEST_API size_t attest_plan_workspace_size(const attest_plan *plan); /* bytes; may be 0; linear in the sizes of the problem */

/* Computes. The workspace must be 64-byte aligned and not be used by another run at the same time; its contents do not matter.
 * `stream` is for GPUs, see DEVICES; NULL for the CPU, where lengths and page tables are checked before anything is written. The
 * context must be on the device that the plan was made for. */
ATTEST_API attest_status attest_run(attest_context *context, const attest_plan *plan, const attest_tensors *tensors,
                                    void *workspace, size_t workspace_size, void *stream);

/* One call for everything, with a context, plan and workspace of its own. `text` (may be NULL) gets the error's sentence. The
 * tensors are ordinary memory, always: if $ATTEST_DEVICE is a GPU they are copied there and back. */
ATTEST_API attest_status attest_forward(const attest_problem *problem, const attest_tensors *tensors, char *text, size_t text_size);

/* ----------------------------------------------------------------------------------------------------------- merge -- */

/*
 * Joins attention over disjoint sets of keys: row r of the result is the softmax-weighted mean of row r of every part,
 *     LSE = ln sum_p exp(LSE_p)        O = sum_p exp(LSE_p - LSE) O_p
 * A part whose LSE is -inf is not looked at; if all are, O = 0 and LSE = -inf. Let at most one part carry a sink. O and LSE may
 * be the very arrays of one of the parts (same pointer, dtype and strides), and must not overlap a part otherwise.
 */
typedef struct attest_merge_args {
    uint64_t size; /* sizeof(attest_merge_args) */
    int64_t parts; /* 1 or more */
    int64_t rows;
    int64_t dim_v;                 /* 1 to 512 */
    uint32_t dtype_parts;          /* attest_dtype of o_parts */
    uint32_t dtype_o;              /* attest_dtype of o */
    const void *const *o_parts;    /* [parts] pointers to [rows, dim_v] */
    const float *const *lse_parts; /* [parts] pointers to [rows] */
    int64_t stride_o_parts;        /* elements between rows of a part, dim_v or more */
    void *o;                       /* [rows, dim_v] */
    float *lse;                    /* [rows], or NULL */
    int64_t stride_o;              /* elements between rows of o, dim_v or more */
} attest_merge_args;

/* Computes on the CPU, whatever the context is on. */
ATTEST_API attest_status attest_merge(attest_context *context, const attest_merge_args *args);

/* ---------------------------------------------------------------------------------------------------------- oracle -- */

/*
 * The oracle every kernel is judged by: direct double-precision evaluation of SEMANTICS, no tiling, no tricks, no code shared
 * with any kernel. ATTEST_NAIVE is the same text in float32, with P rounded to dtype: the error a straightforward
 * implementation makes, for scale. Rows are numbered (b * heads_q + h) * seq_q + i; rows row_begin <= row < row_end are
 * computed, others left alone. Results are doubles at the offsets that stride_o and stride_lse give for dtype_o and LSE;
 * nothing is rounded to dtype_o. lse may be NULL; it does not need ATTEST_LSE. tensors->o and ->lse are not used and may be NULL.
 * It computes on the CPU, from ordinary memory, whatever the context is on.
 */
typedef enum attest_precision { ATTEST_EXACT = 0, ATTEST_NAIVE = 1 } attest_precision;
ATTEST_API attest_status attest_reference(attest_context *context, const attest_problem *problem, const attest_tensors *tensors,
                                          attest_precision precision, int64_t row_begin, int64_t row_end, double *o, double *lse);

/* Conversions between float and the 16-bit types: IEEE round to nearest even, NaN stays NaN, overflow is infinite. */
ATTEST_API uint16_t attest_f16_from_float(float value);
ATTEST_API float attest_f16_to_float(uint16_t bits);
ATTEST_API uint16_t attest_bf16_from_float(float value);
ATTEST_API float attest_bf16_to_float(uint16_t bits);

#ifdef __cplusplus
}
#endif
#endif
