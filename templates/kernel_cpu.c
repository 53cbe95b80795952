/*
 * kernel_cpu.c - forward attention for CPUs in plain C: complete, simple and right; not fast. Begin here, and let
 * `attest prove kernel_cpu.c` say what holds. attest_kernel.h is the manual of everything that begins with attest_.
 *
 * Contract: f32, f16 and bf16; any sizes and strides; causal masks, windows, packed sequences, lengths, pages, sinks, LSE. Refuses
 * softcap, ALiBi and biases: what a kernel lists in `refuses` it is never asked.
 *
 * The algorithm, for the rows of a task and each block of BLOCK_KEYS keys (FlashAttention: one pass, no matrix of scores):
 *     s_j = scale q . k_j                          for the keys that the row sees
 *     m'  = max(m, max_j s_j)                      the largest score so far
 *     p_j = exp(s_j - m')
 *     l   = l exp(m - m') + sum_j p_j              the denominator, relative to m'
 *     o   = o exp(m - m') + sum_j p_j v_j          the output, likewise
 * and at the end O = o / l and LSE = m + ln l.
 *
 * Flags for the compiler beyond -O3 go into a line of this comment such as the next one; with -mavx2, `needs` must say "avx2".
 * attest-flags: -fno-math-errno
 *
 * What `attest evolve` may try: values of the constants below.
 * attest-space: BLOCK_KEYS 8 16 32 64 128
 * attest-space: ROWS_WANTED 16 32 64 128
 */
#include <attest_kernel.h>

/* Blocks begin at multiples of BLOCK_KEYS and a row does the same whatever task it is in: so bits depend on no cut and no thread.
 */
enum { BLOCK_KEYS = 32, ROWS_WANTED = 64 };

/* What a task needs, carved out of its scratch. Scratch is full of rubbish, aligned to 64 bytes, and belongs to one thread. */
struct block {
    attest_row *row; /* [rows] */
    float *q;        /* [rows][dim] */
    float *o;        /* [rows][dim_v], not yet divided by l */
    float *m, *l;    /* [rows] */
    float *k;        /* [dim][BLOCK_KEYS]: keys next to each other, so that the compiler makes vectors of them */
    float *v;        /* [BLOCK_KEYS][dim_v] */
};

static size_t scratch_size(const attest_problem *p, int64_t rows)
{
    int64_t numbers = rows * (p->dim + p->dim_v + 2) + BLOCK_KEYS * (p->dim + p->dim_v);
    return (size_t)rows * sizeof(attest_row) + (size_t)numbers * sizeof(float);
}

static struct block carve(const attest_problem *p, int64_t rows, void *scratch)
{
    struct block block = {.row = scratch};
    block.q = (float *)(block.row + rows);
    block.o = block.q + rows * p->dim;
    block.m = block.o + rows * p->dim_v;
    block.l = block.m + rows;
    block.k = block.l + rows;
    block.v = block.k + p->dim * BLOCK_KEYS;
    return block;
}

/* Keys first .. first + count as floats, whatever their type is and wherever they lie. */
static void load_keys(const struct block *block, const attest_task *task, int64_t first, int64_t count)
{
    const attest_problem *p = task->problem;
    const void *k[BLOCK_KEYS], *v[BLOCK_KEYS];
    attest_key_pointers(task, false, first, count, k);
    attest_key_pointers(task, true, first, count, v);
    for (int64_t n = 0; n < count; n++) {
        for (int64_t d = 0; d < p->dim; d++)
            block->k[d * BLOCK_KEYS + n] = attest_load(k[n], p->dtype, d);
        for (int64_t d = 0; d < p->dim_v; d++)
            block->v[n * p->dim_v + d] = attest_load(v[n], p->dtype, d);
    }
}

/* Adds keys from .. to of the block to row r: only those that the row sees, so that what it does not see can be NaN. */
static void add_keys(const struct block *block, const attest_problem *p, int64_t r, int64_t from, int64_t to)
{
    float s[BLOCK_KEYS] = {0}, top = block->m[r], sum = 0, *o = block->o + r * p->dim_v;
    for (int64_t d = 0; d < p->dim; d++)
        for (int64_t n = from; n < to; n++)
            s[n] += block->q[r * p->dim + d] * block->k[d * BLOCK_KEYS + n];
    for (int64_t n = from; n < to; n++) {
        s[n] *= p->scale;
        top = s[n] > top ? s[n] : top;
    }
    float decay = expf(block->m[r] - top); /* 0 in the first block, where m is -inf */
    for (int64_t d = 0; d < p->dim_v; d++)
        o[d] *= decay;
    for (int64_t n = from; n < to; n++) {
        float weight = expf(s[n] - top);
        sum += weight;
        for (int64_t d = 0; d < p->dim_v; d++)
            o[d] += weight * block->v[n * p->dim_v + d];
    }
    block->m[r] = top;
    block->l[r] = block->l[r] * decay + sum;
}

/* Writes O and LSE; or, when the library has split the keys of a sequence, a partial result that it joins with others. */
static void finish_row(const struct block *block, const attest_task *task, int64_t r)
{
    const attest_problem *p = task->problem;
    const float *o = block->o + r * p->dim_v;
    if (task->partial) {
        float *part = task->partial + r * (p->dim_v + ATTEST_PARTIAL_EXTRA);
        memcpy(part, o, (size_t)p->dim_v * sizeof(float));
        part[p->dim_v] = block->m[r];
        part[p->dim_v + 1] = block->l[r];
        return;
    }
    attest_ending ending = attest_row_ending(p, (double)block->m[r], block->l[r], block->row[r].sink);
    for (int64_t d = 0; d < p->dim_v; d++)
        attest_store(block->row[r].o, p->dtype_o, d, o[d] * ending.factor);
    if (block->row[r].lse)
        *block->row[r].lse = ending.lse;
}

/* One task: rows row_begin .. row_end of one KV head, against the keys that they see. */
static void tile(const attest_task *task, void *scratch)
{
    const attest_problem *p = task->problem;
    int64_t rows = task->row_end - task->row_begin, lo = INT64_MAX, hi = 0;
    struct block block = carve(p, rows, scratch);
    for (int64_t r = 0; r < rows; r++) {
        attest_row row = block.row[r] = attest_row_get(task, task->row_begin + r); /* masks by position are in lo and hi */
        for (int64_t d = 0; d < p->dim; d++)
            block.q[r * p->dim + d] = attest_load(row.q, p->dtype, d);
        memset(block.o + r * p->dim_v, 0, (size_t)p->dim_v * sizeof(float));
        block.m[r] = -INFINITY;
        block.l[r] = 0;
        lo = row.lo < row.hi && row.lo < lo ? row.lo : lo;
        hi = row.hi > hi ? row.hi : hi;
    }
    for (int64_t first = lo / BLOCK_KEYS * BLOCK_KEYS; first < hi; first += BLOCK_KEYS) {
        load_keys(&block, task, first, hi - first < BLOCK_KEYS ? hi - first : BLOCK_KEYS);
        for (int64_t r = 0; r < rows; r++) {
            int32_t from = attest_clamp(block.row[r].lo - first, 0, BLOCK_KEYS);
            int32_t to = attest_clamp(block.row[r].hi - first, 0, BLOCK_KEYS);
            if (from < to)
                add_keys(&block, p, r, from, to);
        }
    }
    for (int64_t r = 0; r < rows; r++)
        finish_row(&block, task, r);
}

/* The one function that is exported. */
const attest_cpu_kernel *attest_cpu_kernel_entry(void)
{
    static const attest_cpu_kernel table = {
        .abi = ATTEST_KERNEL_ABI,
        .dtypes = ATTEST_TAKES_F32 | ATTEST_TAKES_F16 | ATTEST_TAKES_BF16,
        .refuses = ATTEST_SOFTCAP | ATTEST_ALIBI | ATTEST_BIAS | ATTEST_MASK,
        .name = "kernel_cpu",
        .needs = "",
        .summary = "plain C, 32 keys at a time",
        .tile = tile,
        .scratch_size = scratch_size,
        .row_step = 1,
        .rows_wanted = ROWS_WANTED,
    };
    return &table;
}
