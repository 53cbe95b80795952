/*
 * frame.h - what the harmless kernels that are no variants of base.h have in common: the table, what happens to a score, and how a row
 * ends. How rows and keys are gone through, how products, exponentials and sums are made, and in which precision, is each file's own.
 *
 * A file defines NAME, SUMMARY and what else it changes of the table, includes this header, and defines
 *     static void compute_task(const attest_task *task, void *scratch)
 *     static size_t scratch_bytes(const attest_problem *p, int64_t rows)
 */
#ifndef FRAME_H
#define FRAME_H

#include <attest_kernel.h>

#ifndef NEEDS
#define NEEDS ""
#endif
#ifndef DTYPES
#define DTYPES (ATTEST_TAKES_F32 | ATTEST_TAKES_F16 | ATTEST_TAKES_BF16)
#endif
#ifndef REFUSES
#define REFUSES 0
#endif
#ifndef ROW_STEP
#define ROW_STEP 1
#endif
#ifndef ROWS_WANTED
#define ROWS_WANTED 32
#endif
#ifndef SHARED_BYTES
#define SHARED_BYTES NULL
#define PREPARE_TASK NULL
#endif

static void compute_task(const attest_task *task, void *scratch);
static size_t scratch_bytes(const attest_problem *p, int64_t rows);

/* A key that the mask hides, or a bias of -inf. */
static inline __attribute__((unused)) bool is_hidden(const attest_problem *p, const attest_row *row, int64_t j)
{
    if (row->mask && !row->mask[p->stride_mask[3] * j])
        return true;
    return row->bias && attest_load(row->bias, p->dtype_bias, p->stride_bias[3] * j) == -INFINITY;
}

/* What becomes of a score that is scaled already. */
static inline __attribute__((unused)) double adjust(const attest_problem *p, const attest_row *row, int64_t j, double s)
{
    if (attest_has(p, ATTEST_SOFTCAP))
        s = p->softcap * tanh(s / p->softcap);
    if (attest_has(p, ATTEST_ALIBI))
        s -= row->slope * fabs((double)row->place - (double)j);
    if (attest_has(p, ATTEST_BIAS))
        s += attest_load(row->bias, p->dtype_bias, p->stride_bias[3] * j);
    return s;
}

static inline __attribute__((unused)) const void *key_at(const attest_task *task, int64_t j)
{
    const void *at;
    attest_key_pointers(task, false, j, 1, &at);
    return at;
}
static inline __attribute__((unused)) const void *value_at(const attest_task *task, int64_t j)
{
    const void *at;
    attest_key_pointers(task, true, j, 1, &at);
    return at;
}

/* Writes row r of the task: O and LSE, or a partial result. `output` has any type. */
#define END_ROW(task, row, r, m, l, output)                                                                                        \
    do {                                                                                                                           \
        const attest_problem *p_ = (task)->problem;                                                                                \
        float *part_ = (task)->partial ? (task)->partial + (r) * (p_->dim_v + ATTEST_PARTIAL_EXTRA) : NULL;                        \
        attest_ending ending_ = attest_row_ending(p_, (double)(m), (float)(l), (row)->sink);                                       \
        for (int64_t d_ = 0; d_ < p_->dim_v; d_++) {                                                                               \
            if (part_)                                                                                                             \
                part_[d_] = (float)(output)[d_];                                                                                   \
            else                                                                                                                   \
                attest_store((row)->o, p_->dtype_o, d_, (float)((output)[d_] * ending_.factor));                                   \
        }                                                                                                                          \
        if (part_) {                                                                                                               \
            part_[p_->dim_v] = (float)(m);                                                                                         \
            part_[p_->dim_v + 1] = (float)(l);                                                                                     \
        } else if ((row)->lse) {                                                                                                   \
            *(row)->lse = ending_.lse;                                                                                             \
        }                                                                                                                          \
    } while (0)

const attest_cpu_kernel *attest_cpu_kernel_entry(void)
{
    static const attest_cpu_kernel table = {
        .abi = ATTEST_KERNEL_ABI,
        .dtypes = DTYPES,
        .refuses = REFUSES,
        .name = NAME,
        .needs = NEEDS,
        .summary = SUMMARY,
        .tile = compute_task,
        .scratch_size = scratch_bytes,
        .shared_size = SHARED_BYTES,
        .prepare = PREPARE_TASK,
        .row_step = ROW_STEP,
        .rows_wanted = ROWS_WANTED,
    };
    return &table;
}

#endif
