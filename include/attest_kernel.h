/*
 * attest_kernel.h - what a CPU kernel is, in C11. EXPERIMENTAL: this part of the interface may change with a minor version.
 *
 * The kernels of the library and kernels from elsewhere are the same thing: a table (attest_cpu_kernel) with a function that
 * computes one task. A kernel from elsewhere is a shared object that exports one function,
 *
 *     const attest_cpu_kernel *attest_cpu_kernel_entry(void);
 *
 * `attest new NAME --cpu` writes one that works, and `attest prove FILE` proves it. A source names the compiler flags it needs
 * beyond -O3 in its first comment, in a line of its own:
 *
 *     attest-flags: -mavx2 -mfma
 *
 * RULES FOR KERNELS
 * - The library owns the threads: it cuts a problem into tasks and calls `tile` for each, on any thread, in any order. A task is a
 *   function of its arguments alone. So a kernel starts no threads, keeps no state between calls, allocates nothing, prints
 * nothing.
 * - Problems, lengths and page tables have been checked. Tensors are aligned to their elements and to nothing more; scratch is
 *   aligned to 64 bytes and full of rubbish.
 * - What a kernel cannot do it declares in `dtypes`, `refuses` and `needs`; it is then never asked.
 * - Bits must not depend on where a task begins or ends, except for the pieces of a split (`partial`), which do not depend on
 *   threads or batch either.
 */
#ifndef ATTEST_KERNEL_H
#define ATTEST_KERNEL_H

#include <attest.h>

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------------ task -- */

/*
 * What one call computes: some rows of one KV head of one sequence, against some of its keys.
 *
 * The query heads that share a KV head are handled together: "row" r of a KV head is query row r / group of query head
 * head_kv * group + r % group, where group = heads_q / heads_kv. attest_row_get finds it.
 */
typedef struct attest_task {
    const attest_problem *problem;
    const attest_tensors *tensors;
    int64_t batch, head_kv;     /* of the sequence and its KV head */
    int64_t q_first, q_count;   /* query rows of the sequence; q_first is its first row in a packed Q, else 0 */
    int64_t kv_first, kv_count; /* keys of the sequence; kv_first is its first key in a packed K and V, else 0 */
    int64_t kv_start;           /* keys before this one do not exist (ATTEST_KV_STARTS) */
    int64_t place;              /* of query row 0 among the keys (SEMANTICS 3) */
    int64_t row_begin, row_end; /* rows of this task, row_begin < row_end */
    int64_t key_begin, key_end; /* keys of this task; keys outside belong to other tasks and must not be used */
    float *partial;             /* NULL: write O and LSE. Else write a partial result, row after row: see ATTEST_PARTIAL_EXTRA */
    void *shared;               /* what `prepare` made for this KV head */
} attest_task;

/* A partial result is, for each row of the task, dim_v floats of the unnormalised output sum_j exp(s_j - m) v_j, then the maximum m
 * of the scores in natural units, then the sum of exp(s_j - m); for a row that sees no key: rubbish, -inf, 0. Without the sink. */
enum { ATTEST_PARTIAL_EXTRA = 2 };

/* ---------------------------------------------------------------------------------------------------------- kernel -- */

enum { ATTEST_KERNEL_ABI = 2 };

/* Bits of `dtypes`. */
enum { ATTEST_TAKES_F32 = 1 << ATTEST_F32, ATTEST_TAKES_F16 = 1 << ATTEST_F16, ATTEST_TAKES_BF16 = 1 << ATTEST_BF16 };

typedef struct attest_cpu_kernel {
    uint32_t abi;        /* ATTEST_KERNEL_ABI */
    uint32_t dtypes;     /* of Q, K and V: ATTEST_TAKES_* */
    uint64_t refuses;    /* flags of problems that it does not take */
    const char *name;    /* letters, digits and _ */
    const char *needs;   /* CPU feature, as in attest_context_features, such as "avx512"; "" for plain C */
    const char *summary; /* one line on how it works */

    /* Computes a task. `scratch` has scratch_size bytes and belongs to the calling thread. */
    void (*tile)(const attest_task *task, void *scratch);
    size_t (*scratch_size)(const attest_problem *problem, int64_t tile_rows);

    /* A kernel that wants V in another form has it made once for all tiles of a KV head: prepare is called before any tile, for
     * each piece of ATTEST_PREPARE_KEYS keys (key_begin .. key_end) with all rows. shared_size is the room for one KV head.
     * Sequences with at most ATTEST_PREPARE_ROWS rows are not prepared. Both NULL where tiles do their own packing. */
    size_t (*shared_size)(const attest_problem *problem);
    void (*prepare)(const attest_task *task, void *scratch);

    int64_t row_step;    /* the rows of a task are a multiple of this, but for the last of a head, */
    int64_t rows_wanted; /* and best about this many */
} attest_cpu_kernel;

enum { ATTEST_PREPARE_KEYS = 256, ATTEST_PREPARE_ROWS = 8 };

/* The function a shared object exports. */
#define ATTEST_CPU_KERNEL_ENTRY "attest_cpu_kernel_entry"
ATTEST_API const attest_cpu_kernel *attest_cpu_kernel_entry(void);

/* Adds a kernel to those that plans of this context can be made with, by its name: attest_plan_create(context, problem, name, ...).
 * The library never chooses it by itself. The table must outlive the context and its plans. One kernel a context; a second
 * call replaces the first. */
ATTEST_API attest_status attest_context_add_kernel(attest_context *context, const attest_cpu_kernel *kernel);

/* -------------------------------------------------------------------------------------------------------- elements -- */

/* The 16-bit types, by integer arithmetic, the same on every machine. */
static inline uint32_t attest_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float attest_bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t attest_to_bf16(float value)
{
    uint32_t bits = attest_float_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((bits >> 16) | 0x40u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static inline float attest_from_bf16(uint16_t bits)
{
    return attest_bits_float((uint32_t)bits << 16);
}

static inline uint16_t attest_to_f16(float value)
{
    uint32_t bits = attest_float_bits(value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14 the result is a multiple of 2^-24: let a float addition round to it */
        float shifted = attest_bits_float(magnitude) + 0.5f;
        return (uint16_t)(sign | (attest_float_bits(shifted) - 0x3f000000u));
    }
    uint32_t rebased = magnitude - 0x38000000u; /* exponent bias 127 becomes 15 */
    return (uint16_t)(sign | ((rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13));
}

static inline float attest_from_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = (half >> 10) & 0x1fu, mantissa = half & 0x3ffu;
    if (exponent == 0x1f)
        return attest_bits_float(sign | 0x7f800000u | (mantissa ? 0x400000u : 0u) | (mantissa << 13));
    if (exponent == 0) {
        float magnitude = (float)mantissa * 0x1p-24f;
        return attest_bits_float(sign | attest_float_bits(magnitude));
    }
    return attest_bits_float(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

/* Element `at` of a tensor as a float, and a float rounded once to an element. */
static inline float attest_load(const void *data, uint32_t dtype, int64_t at)
{
    if (dtype == ATTEST_F32)
        return ((const float *)data)[at];
    uint16_t bits = ((const uint16_t *)data)[at];
    return dtype == ATTEST_F16 ? attest_from_f16(bits) : attest_from_bf16(bits);
}

static inline void attest_store(void *data, uint32_t dtype, int64_t at, float value)
{
    if (dtype == ATTEST_F32)
        ((float *)data)[at] = value;
    else
        ((uint16_t *)data)[at] = dtype == ATTEST_F16 ? attest_to_f16(value) : attest_to_bf16(value);
}

static inline const void *attest_element(const void *base, int64_t at, uint32_t dtype)
{
    return (const char *)base + at * (dtype == ATTEST_F32 ? 4 : 2);
}

/* ------------------------------------------------------------------------------------------------- rows and keys -- */

static inline bool attest_has(const attest_problem *problem, uint64_t flag)
{
    return (problem->flags & flag) != 0;
}

/* One row of a task. */
typedef struct attest_row {
    const void *q;
    const void *bias;    /* element of key 0, or NULL; the bias of key j is stride_bias[3] * j elements further */
    const uint8_t *mask; /* likewise, with stride_mask[3]: 0 hides a key */
    void *o;
    float *lse;     /* or NULL */
    int32_t lo, hi; /* keys of the task that lengths and masks by position let the row see: lo <= j < hi; lo == hi == 0 if none */
    int32_t place;  /* the row's place among the keys (SEMANTICS 3), for ALiBi */
    float slope;    /* of ALiBi, or 0 */
    float sink;     /* or 0 */
} attest_row;

static inline int32_t attest_clamp(int64_t x, int64_t low, int64_t high)
{
    return (int32_t)(x < low ? low : x > high ? high : x);
}

/* SEMANTICS 3: the place of query row i among the keys. */
static inline int64_t attest_row_place(const attest_task *task, int64_t i)
{
    return i + task->place;
}

/* Keys lo <= j < hi of the sequence are those that masks by position leave to query row i; none if lo >= hi. */
static inline void attest_row_visible(const attest_task *task, int64_t i, int64_t *lo, int64_t *hi)
{
    const attest_problem *p = task->problem;
    int64_t place = attest_row_place(task, i);
    *lo = task->kv_start;
    *hi = task->kv_count;
    if (attest_has(p, ATTEST_CAUSAL) && place + 1 < *hi)
        *hi = place + 1;
    if (attest_has(p, ATTEST_WINDOW_RIGHT) && p->window_right < INT32_MAX && place + p->window_right + 1 < *hi)
        *hi = place + p->window_right + 1;
    if (attest_has(p, ATTEST_WINDOW_LEFT) && p->window_left < INT64_MAX / 2 && place - p->window_left > *lo)
        *lo = place - p->window_left;
}

/* Row r of the KV head, see attest_task. */
static inline attest_row attest_row_get(const attest_task *task, int64_t r)
{
    const attest_problem *p = task->problem;
    const attest_tensors *t = task->tensors;
    int64_t group = p->heads_q / p->heads_kv, i = r / group, h = task->head_kv * group + r % group;
    int64_t b = attest_has(p, ATTEST_VARLEN_Q) ? 0 : task->batch, packed = task->q_first + i;
    attest_row row = {
        .q = attest_element(t->q, b * p->stride_q[0] + h * p->stride_q[1] + packed * p->stride_q[2], p->dtype),
        .o =
            (char *)t->o + (b * p->stride_o[0] + h * p->stride_o[1] + packed * p->stride_o[2]) * (p->dtype_o == ATTEST_F32 ? 4 : 2),
    };
    if (attest_has(p, ATTEST_LSE))
        row.lse = t->lse + b * p->stride_lse[0] + h * p->stride_lse[1] + packed * p->stride_lse[2];
    if (attest_has(p, ATTEST_BIAS))
        row.bias =
            attest_element(t->bias, task->batch * p->stride_bias[0] + h * p->stride_bias[1] + i * p->stride_bias[2], p->dtype_bias);
    if (attest_has(p, ATTEST_MASK))
        row.mask = t->mask + task->batch * p->stride_mask[0] + h * p->stride_mask[1] + i * p->stride_mask[2];
    if (attest_has(p, ATTEST_ALIBI))
        row.slope = t->alibi_slopes[task->batch * p->stride_alibi_slopes + h];
    if (attest_has(p, ATTEST_SINK))
        row.sink = t->sinks[h];

    int64_t lo, hi;
    attest_row_visible(task, i, &lo, &hi);
    row.place = attest_clamp(attest_row_place(task, i), INT32_MIN, INT32_MAX);
    row.lo = attest_clamp(lo, task->key_begin, task->key_end);
    row.hi = attest_clamp(hi, task->key_begin, task->key_end);
    if (row.lo >= row.hi)
        row.lo = row.hi = 0;
    return row;
}

/* Adds to live[n] what the mask of a row has for key first + n, for keys of that stretch that its place lets it see: 0 stays where no row
 * sees a key. */
static inline void attest_mask_live(const attest_problem *p, const uint8_t *mask, int64_t lo, int64_t hi, int64_t first,
                                    int64_t count, uint8_t *live)
{
    const int64_t stride = p->stride_mask[3], from = lo > first ? lo - first : 0, to = hi - first < count ? hi - first : count;
    if (stride == 1)
        for (int64_t n = from; n < to; n++)
            live[n] |= mask[first + n];
    else
        for (int64_t n = from; n < to; n++)
            live[n] |= mask[(first + n) * stride];
}

/* How a row ends: O is its unnormalised sum times `factor`. */
typedef struct attest_ending {
    float factor, lse;
} attest_ending;

/* `m` is the largest score in natural units and `l` the sum of exp(score - m). The sink joins here, in double, where it is just one
 * more term of the sum. */
static inline attest_ending attest_row_ending(const attest_problem *p, double m, float l, float sink)
{
    if (!attest_has(p, ATTEST_SINK))
        return l == 0 ? (attest_ending){0, -INFINITY} : (attest_ending){(float)(1 / (double)l), (float)(m + log((double)l))};
    if (l == 0)
        return (attest_ending){0, sink};
    double top = m > (double)sink ? m : (double)sink, share = exp(m - top), sum = l * share + exp((double)sink - top);
    return (attest_ending){(float)(share / sum), (float)(top + log(sum))};
}

/* Pointers to keys first .. first + count of K or V. */
static inline void attest_key_pointers(const attest_task *task, bool is_v, int64_t first, int64_t count, const void **out)
{
    const attest_problem *p = task->problem;
    const int64_t *stride = is_v ? p->stride_v : p->stride_k;
    const void *base = attest_element(is_v ? task->tensors->v : task->tensors->k, task->head_kv * stride[1], p->dtype);
    int64_t step = stride[2];
    if (!attest_has(p, ATTEST_PAGED)) {
        int64_t at = (attest_has(p, ATTEST_VARLEN_KV) ? 0 : task->batch * stride[0]) + (task->kv_first + first) * step;
        for (int64_t n = 0; n < count; n++, at += step)
            out[n] = attest_element(base, at, p->dtype);
        return;
    }
    const int32_t *table = task->tensors->page_table + task->batch * p->stride_page_table;
    int64_t page = first / p->page_size, slot = first % p->page_size;
    for (int64_t n = 0; n < count; n++) {
        out[n] = attest_element(base, table[page] * stride[0] + slot * step, p->dtype);
        if (++slot == p->page_size) {
            slot = 0;
            page++;
        }
    }
}

#endif
