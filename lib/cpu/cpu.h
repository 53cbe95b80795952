/*
 * cpu.h - what a CPU kernel is: code for one instruction set that computes one task. Which tasks there are, and on which thread
 * each runs, is decided outside (schedule.c), so the thread count cannot change a bit of the result.
 */
#ifndef ATTEST_CPU_H
#define ATTEST_CPU_H

#include "../internal.h"

/*
 * The query heads that share one KV head are handled together: "row" r of a KV head is query row r / group of query head
 * hkv * group + r % group, where group = heads_q / heads_kv.
 */
struct cpu_task {
    const attest_problem *p;
    const attest_tensors *t;
    struct sequence seq;
    int64_t b, hkv;
    int64_t row_begin, row_end; /* rows of this KV head */
    int64_t key_begin, key_end; /* keys of this sequence */
    float *partial;             /* NULL: write O and LSE. Else [rows][dim_v + PARTIAL_EXTRA] */
    void *shared;               /* what `prepare` made of the keys and values of this KV head */
};

/* A partial result is the unnormalised output followed by the maximum, in natural units, and the sum; both without the sink. */
enum { PARTIAL_EXTRA = 2 };

/* Sequences with so few rows are computed with the head dimension in vector lanes instead of the rows (decode_tile.h), and
 * those with at most SPLIT_ROWS rows are split over keys. Both depend on the sequence alone, so bits do not depend on its batch. */
enum { DECODE_ROWS = 8, SPLIT_ROWS = 64, SPLIT_KEYS = 1024, PREPARE_KEYS = 256 };

struct cpu_code {
    void (*tile)(const struct cpu_task *task, void *scratch);
    size_t (*scratch_size)(const attest_problem *p, int64_t tile_rows);
    /* A kernel that wants V in another form has it made once for all tiles: prepare takes keys key_begin .. key_end, which are one
     * block of PREPARE_KEYS, and all rows; shared_size is for one KV head. Both NULL where tiles do their own packing. */
    size_t (*shared_size)(const attest_problem *p);
    void (*prepare)(const struct cpu_task *task, void *scratch);
    int64_t row_step;    /* a tile is a multiple of this many rows, */
    int64_t rows_wanted; /* best this many */
};

extern const struct cpu_code cpu_code_scalar, cpu_code_avx2, cpu_code_avx512, cpu_code_avx512bf16, cpu_code_amx;

void cpu_plan(struct attest_plan *plan); /* sets tile_rows and workspace */
void cpu_run(const struct attest_plan *plan, const attest_tensors *t, void *workspace);

/* Scores are kept in units of log2, so that the exponential is a power of two; with a bias, which may be as large as a float can
 * be, in natural units. */
#define LOG2E 1.44269504088896340736
static inline bool scores_are_natural(const attest_problem *p)
{
    return has(p, ATTEST_BIAS);
}

/* What a dot product is multiplied by to become a score, or with a softcap the argument of its tanh. */
static inline float score_scale(const attest_problem *p)
{
    if (has(p, ATTEST_SOFTCAP))
        return p->scale / p->softcap;
    return scores_are_natural(p) ? p->scale : (float)(p->scale * LOG2E);
}

#endif
