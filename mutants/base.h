/*
 * base.h - flash attention in plain C, small and right, with a hook at every stage. The mutants are this kernel with a hook or two
 * replaced: a file of this folder defines what it changes and includes base.h last. As it stands it takes every problem and passes
 * every gate; harmless_base.c is it.
 *
 * Algorithm, for the rows of a task and each tile of TILE_KEYS keys (tiles begin at multiples of TILE_KEYS, whatever the task is,
 * so that bits do not depend on how rows are cut):
 *     s  = scale q k, softcap, ALiBi, bias                       score
 *     m' = max(m, max s)                                         over the keys that are seen
 *     p  = exp(s - m'), l = l exp(m - m') + sum p                P, and its sum
 *     o  = o exp(m - m') + p V                                   rescale and PV
 * and at the end O = o / l and LSE = m + ln l, where the sink joins.
 *
 * Scratch (R rows of the task, D columns of K, Dv of V):
 *     row [R]   q [R][D]   o [R][Dv]   m [R]   l [R]   k [D][TILE_KEYS]   v [TILE_KEYS][Dv]
 * K lies with its keys next to each other, so that the compiler makes vectors of them.
 *
 * The hooks come in the order of the computation. A hook may use the names of the function that it stands in.
 */
#include <attest_kernel.h>

/* Functions of their own, so that their text is there once and a mutant is compiled soon. */
static __attribute__((noinline, unused)) float load(const void *data, uint32_t dtype, int64_t at)
{
    return attest_load(data, dtype, at);
}
static __attribute__((noinline, unused)) void store(void *data, uint32_t dtype, int64_t at, float value)
{
    attest_store(data, dtype, at, value);
}

/* ---- the table ------------------------------------------------------------------------------------------------------------- */

#ifndef NAME
#define NAME "mutant"
#endif
#ifndef NEEDS
#define NEEDS ""
#endif
#ifndef ABI
#define ABI ATTEST_KERNEL_ABI
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
#define ROWS_WANTED 64
#endif
#ifndef TILE_KEYS
#define TILE_KEYS 32
#endif
#ifndef SCRATCH_EXTRA /* bytes beyond those that are needed */
#define SCRATCH_EXTRA 0
#endif
#ifndef PASSES /* 2: the maximum is found in a pass of its own */
#define PASSES 1
#endif
#ifndef real /* the type of scores, sums and outputs before they are stored */
#define real float
#endif

/* ---- the hooks ------------------------------------------------------------------------------------------------------------- */

/* Before and after a task. A statement; the first may return. */
#ifndef TASK_BEGIN
#define TASK_BEGIN(task, scratch) ((void)0)
#endif
#ifndef TASK_END
#define TASK_END(task, scratch) ((void)0)
#endif

/* Where things lie: changes what attest_row_get says of row r; the pointers to keys; an element of Q, K and V; columns in order. */
#ifndef ADJUST_ROW
#define ADJUST_ROW(task, row, r) ((void)0)
#endif
#ifndef KEY_POINTERS
#define KEY_POINTERS(task, is_v, first, count, out) attest_key_pointers(task, is_v, first, count, out)
#endif
#ifndef LOAD
#define LOAD(data, dtype, at) load(data, dtype, at)
#endif
#ifndef PACK_Q
#define PACK_Q(value, p, r, d) (value)
#endif
#ifndef PACK_K
#define PACK_K(value, j, d) (value)
#endif
#ifndef PACK_KEYS
#define PACK_KEYS(tile, task, first, count) pack_k(tile, task, first, count)
#endif
#ifndef PACK_V
#define PACK_V(tile, task, first, count) pack_v(tile, task, first, count)
#endif
#ifndef COLUMN /* the order in which columns of V are kept */
#define COLUMN(d, count) (d)
#endif
#ifndef V_COLUMN
#define V_COLUMN(d, count) COLUMN(d, count)
#endif

/* Scores of key j, in their order. */
#ifndef SCALE
#define SCALE(p) ((p)->scale)
#endif
#ifndef CAP
#define CAP(p, s) ((real)(p)->softcap * (real)tanh((double)((s) / (real)(p)->softcap)))
#endif
#ifndef ALIBI
#define ALIBI(row, j) ((real)((row)->slope * fabsf((float)((row)->place - (j)))))
#endif
#ifndef BIAS
#define BIAS(p, row, j) ((real)load((row)->bias, (p)->dtype_bias, (p)->stride_bias[3] * (j)))
#endif
#ifndef MODIFY
#define MODIFY(p, row, j, s) modify(p, row, j, s)
#endif

/* Which keys of a tile a row sees. */
#ifndef SEES
#define SEES(task, row, j, bias) ((j) >= (row)->lo && (j) < (row)->hi && (bias) != -INFINITY)
#endif

/* P: the first maximum, the exponential, the weight of a score, the sum and what is carried of it. */
#ifndef MAX_FIRST
#define MAX_FIRST (-INFINITY)
#endif
#ifndef MAX_NEXT
#define MAX_NEXT(m, tile_max) ((m) > (tile_max) ? (m) : (tile_max))
#endif
#ifndef EXP
#define EXP(x) ((real)exp((double)(x)))
#endif
#ifndef WEIGHT
#define WEIGHT(s, m, tile_max) EXP((s) - (m))
#endif
#ifndef DECAY
#define DECAY(before, now) EXP((before) - (now))
#endif
#ifndef TILE_SUM
#define TILE_SUM(weights, seen, m) tile_sum(weights, seen)
#endif
#ifndef SUM
#define SUM(l, decay, sum) ((l) * (decay) + (sum))
#endif

/* PV: keys that are left out, what P is rounded to, the rescaling of o, the row of V, and one step of the product. */
#ifndef LEAVES_OUT
#define LEAVES_OUT(seen) (!(seen))
#endif
#ifndef P_ROUND
#define P_ROUND(weight) (weight)
#endif
#ifndef RESCALE
#define RESCALE(o, decay) ((o) * (decay))
#endif
#ifndef PV_STEP
#define PV_STEP(o, weight, v) ((o) + (weight) * (v))
#endif
#ifndef V_ROW
#define V_ROW(n) (n)
#endif

/* The end of a row: factor and LSE, an element of O, LSE, and the factor of a partial result. */
#ifndef ENDING
#define ENDING(p, m, l, sink) attest_row_ending(p, (double)(m), (float)(l), sink)
#endif
#ifndef STORE
#define STORE(row, dtype, d, value) store((row)->o, dtype, d, value)
#endif
#ifndef STORE_LSE
#define STORE_LSE(row, m, l, value) (*(row)->lse = (value))
#endif
#ifndef PARTIAL_FACTOR
#define PARTIAL_FACTOR(l) 1
#endif

/* ---- the kernel ------------------------------------------------------------------------------------------------------------ */

struct tile {
    attest_row *row; /* [rows] */
    real *q;         /* [rows][dim] */
    real *o;         /* [rows][dim_v] */
    real *m, *l;     /* [rows] */
    real *k;         /* [dim][TILE_KEYS] */
    real *v;         /* [TILE_KEYS][dim_v] */
};

static struct tile carve(const attest_problem *p, int64_t rows, void *scratch)
{
    struct tile tile = {.row = scratch};
    tile.q = (real *)(tile.row + rows);
    tile.o = tile.q + rows * p->dim;
    tile.m = tile.o + rows * p->dim_v;
    tile.l = tile.m + rows;
    tile.k = tile.l + rows;
    tile.v = tile.k + p->dim * TILE_KEYS;
    return tile;
}

static size_t scratch_size(const attest_problem *p, int64_t rows)
{
    int64_t numbers = rows * (p->dim + p->dim_v + 2) + (p->dim + p->dim_v) * TILE_KEYS;
    return (size_t)rows * sizeof(attest_row) + (size_t)numbers * sizeof(real) + SCRATCH_EXTRA;
}

static inline real tile_sum(const real *weights, const bool *seen)
{
    real sum = 0;
    for (int64_t j = 0; j < TILE_KEYS; j++)
        if (seen[j])
            sum += weights[j];
    return sum;
}

static inline real modify(const attest_problem *p, const attest_row *row, int64_t j, real s)
{
    if (attest_has(p, ATTEST_SOFTCAP))
        s = CAP(p, s);
    if (attest_has(p, ATTEST_ALIBI))
        s -= ALIBI(row, j);
    if (attest_has(p, ATTEST_BIAS))
        s += BIAS(p, row, j);
    return s;
}

static void begin_rows(const struct tile *tile, const attest_task *task, int64_t rows)
{
    const attest_problem *p = task->problem;
    for (int64_t r = 0; r < rows; r++) {
        attest_row *row = &tile->row[r];
        *row = attest_row_get(task, task->row_begin + r);
        ADJUST_ROW(task, row, task->row_begin + r);
        for (int64_t d = 0; d < p->dim; d++)
            tile->q[r * p->dim + d] = (real)PACK_Q(LOAD(row->q, p->dtype, d), p, task->row_begin + r, d);
        for (int64_t d = 0; d < p->dim_v; d++)
            tile->o[r * p->dim_v + d] = 0;
        tile->m[r] = MAX_FIRST;
        tile->l[r] = 0;
    }
}

/* Keys first .. first + count of K; those of the tile that are not there are 0. */
static inline void pack_k(const struct tile *tile, const attest_task *task, int64_t first, int64_t count)
{
    const attest_problem *p = task->problem;
    const void *at[TILE_KEYS];
    KEY_POINTERS(task, false, first, count, at);
    for (int64_t d = 0; d < p->dim; d++)
        for (int64_t n = 0; n < TILE_KEYS; n++)
            tile->k[d * TILE_KEYS + n] = 0;
    int64_t from = first % TILE_KEYS;
    for (int64_t n = 0; n < count; n++)
        for (int64_t d = 0; d < p->dim; d++)
            tile->k[d * TILE_KEYS + from + n] = (real)PACK_K(LOAD(at[n], p->dtype, d), first + n, d);
}

static inline void pack_v(const struct tile *tile, const attest_task *task, int64_t first, int64_t count)
{
    const attest_problem *p = task->problem;
    const void *at[TILE_KEYS];
    KEY_POINTERS(task, true, first, count, at);
    for (int64_t d = 0; d < TILE_KEYS * p->dim_v; d++)
        tile->v[d] = 0;
    real *v = tile->v + first % TILE_KEYS * p->dim_v;
    for (int64_t n = 0; n < count; n++)
        for (int64_t d = 0; d < p->dim_v; d++)
            v[n * p->dim_v + d] = (real)LOAD(at[n], p->dtype, V_COLUMN(d, p->dim_v));
}

/* Scores of row r against the keys of the tile that begins at key `first`; seen[j] says which of them count. */
static bool score_row(const struct tile *tile, const attest_task *task, int64_t r, int64_t first, real *s, bool *seen)
{
    const attest_problem *p = task->problem;
    const attest_row *row = &tile->row[r];
    bool any = false;
    for (int64_t n = 0; n < TILE_KEYS; n++)
        s[n] = 0;
    for (int64_t d = 0; d < p->dim; d++) {
        real q = tile->q[r * p->dim + d];
        for (int64_t n = 0; n < TILE_KEYS; n++)
            s[n] += q * tile->k[d * TILE_KEYS + n];
    }
    for (int64_t n = 0; n < TILE_KEYS; n++) {
        int64_t j = first + n;
        bool biased = row->bias && j >= row->lo && j < row->hi;
        seen[n] = SEES(task, row, j, biased ? BIAS(p, row, j) : 0);
        if (row->mask && j >= row->lo && j < row->hi && !row->mask[j * p->stride_mask[3]])
            seen[n] = false;
        any = any || seen[n];
        if (seen[n])
            s[n] = MODIFY(p, row, j, s[n] * (real)SCALE(p));
    }
    return any;
}

static real max_of(const real *s, const bool *seen)
{
    real most = -INFINITY;
    for (int64_t n = 0; n < TILE_KEYS; n++)
        if (seen[n] && s[n] > most)
            most = s[n];
    return most;
}

/* Softmax and PV of row r on one tile. */
static void add_tile(const struct tile *tile, const attest_task *task, int64_t r, int64_t first, real *s, const bool *seen)
{
    const attest_problem *p = task->problem;
    real tile_max = max_of(s, seen), before = tile->m[r], now = MAX_NEXT(before, tile_max);
    real decay = DECAY(before, now);
    (void)first; /* what a hook may do without */
    for (int64_t n = 0; n < TILE_KEYS; n++)
        if (seen[n])
            s[n] = WEIGHT(s[n], now, tile_max);
    tile->l[r] = SUM(tile->l[r], decay, TILE_SUM(s, seen, now));
    tile->m[r] = now;

    real *o = tile->o + r * p->dim_v;
    for (int64_t d = 0; d < p->dim_v; d++)
        o[d] = RESCALE(o[d], decay);
    for (int64_t n = 0; n < TILE_KEYS; n++) {
        if (LEAVES_OUT(seen[n]))
            continue;
        real weight = seen[n] ? P_ROUND(s[n]) : 0;
        const real *v = tile->v + V_ROW(n) * p->dim_v;
        for (int64_t d = 0; d < p->dim_v; d++)
            o[d] = PV_STEP(o[d], weight, v[d]);
    }
}

static void end_row(const struct tile *tile, const attest_task *task, int64_t r)
{
    const attest_problem *p = task->problem;
    const attest_row *row = &tile->row[r];
    real *o = tile->o + r * p->dim_v, m = tile->m[r], l = tile->l[r];
    if (task->partial) {
        float *part = task->partial + r * (p->dim_v + ATTEST_PARTIAL_EXTRA);
        for (int64_t d = 0; d < p->dim_v; d++)
            part[COLUMN(d, p->dim_v)] = (float)(o[d] * PARTIAL_FACTOR(l));
        part[p->dim_v] = (float)m;
        part[p->dim_v + 1] = (float)l;
        return;
    }
    attest_ending ending = ENDING(p, m, l, row->sink);
    for (int64_t d = 0; d < p->dim_v; d++)
        STORE(row, p->dtype_o, COLUMN(d, p->dim_v), (float)(o[d] * (real)ending.factor));
    if (row->lse)
        STORE_LSE(row, m, l, ending.lse);
}

static void compute(const attest_task *task, void *scratch)
{
    int64_t rows = task->row_end - task->row_begin, lo = INT64_MAX, hi = 0;
    struct tile tile = carve(task->problem, rows, scratch);
    begin_rows(&tile, task, rows);
    for (int64_t r = 0; r < rows; r++) {
        if (tile.row[r].lo < tile.row[r].hi && tile.row[r].lo < lo)
            lo = tile.row[r].lo;
        if (tile.row[r].hi > hi)
            hi = tile.row[r].hi;
    }
    for (int pass = 1; pass <= PASSES; pass++)
        for (int64_t first = lo / TILE_KEYS * TILE_KEYS; first < hi; first += TILE_KEYS) {
            int64_t from = first > lo ? first : lo, to = first + TILE_KEYS < hi ? first + TILE_KEYS : hi;
            PACK_KEYS(&tile, task, from, to - from);
            PACK_V(&tile, task, from, to - from);
            for (int64_t r = 0; r < rows; r++) {
                real s[TILE_KEYS];
                bool seen[TILE_KEYS];
                if (!score_row(&tile, task, r, first, s, seen))
                    continue;
                if (PASSES > 1 && pass < PASSES)
                    tile.m[r] = MAX_NEXT(tile.m[r], max_of(s, seen));
                else
                    add_tile(&tile, task, r, first, s, seen);
            }
        }
    for (int64_t r = 0; r < rows; r++)
        end_row(&tile, task, r);
}

static void tile_task(const attest_task *task, void *scratch)
{
    TASK_BEGIN(task, scratch);
    compute(task, scratch);
    TASK_END(task, scratch);
}

#ifndef SHARED_SIZE
#define SHARED_SIZE NULL
#define PREPARE     NULL
#endif

#ifndef ENTRY
#define ENTRY attest_cpu_kernel_entry
#endif

const attest_cpu_kernel *ENTRY(void)
{
    static const attest_cpu_kernel table = {
        .abi = ABI,
        .dtypes = DTYPES,
        .refuses = REFUSES,
        .name = NAME,
        .needs = NEEDS,
        .summary = "flash attention in plain C, for the mutants",
        .tile = tile_task,
        .scratch_size = scratch_size,
        .shared_size = SHARED_SIZE,
        .prepare = PREPARE,
        .row_step = ROW_STEP,
        .rows_wanted = ROWS_WANTED,
    };
    return &table;
}
