/* The judge: see tolerance.h for the rule. */
#include "tolerance.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_ROWS = 64, DIM_MOST = 512, NOT_READ = -1 };

int64_t judge_row(const struct instance *in, int64_t b, int64_t h, int64_t i)
{
    const attest_problem *p = &in->problem;
    if (p->flags & ATTEST_VARLEN_Q)
        return h * p->total_q + in->tensors.cu_seqlens_q[b] + i;
    return (b * p->heads_q + h) * p->seq_q + i;
}

void basis_destroy(struct verdict_basis *basis)
{
    free(basis->o);
    memset(basis, 0, sizeof *basis);
}

static void load_magnitudes(double *out, uint32_t dtype, const void *data, int64_t offset, int64_t count)
{
    for (int64_t d = 0; d < count; d++)
        out[d] = fabs(load(dtype, data, offset + d));
}

/* The sum of a[d] b[d], in parts that do not wait for each other. */
static double product_of(const double *a, const double *b, int64_t count)
{
    enum { PARTS = 4 };
    double sums[PARTS] = {0};
    int64_t d = 0;
    for (; d + PARTS <= count; d += PARTS)
        for (int n = 0; n < PARTS; n++)
            sums[n] += a[d + n] * b[d + n];
    for (; d < count; d++)
        sums[0] += a[d] * b[d];
    return sums[0] + sums[1] + sums[2] + sums[3];
}

/* The largest sum of magnitudes that goes into a score of this row, and how many keys the row sees. `magnitudes` are those of the
 * keys of its head, which begin with NOT_READ where no row has seen them. */
static void measure_row(struct verdict_basis *basis, const struct instance *in, int64_t b, int64_t h, int64_t i, double *magnitudes)
{
    const attest_problem *p = &in->problem;
    int64_t n_kv = instance_keys(in, b), row = judge_row(in, b, h, i);
    int64_t place = i + (p->flags & ATTEST_BOTTOM_RIGHT ? n_kv - instance_rows(in, b) : 0);
    double most = 0, keys = 0, query[DIM_MOST];
    load_magnitudes(query, p->dtype, in->q.data, offset_q(in, b, h, i), p->dim);
    for (int64_t j = 0; j < n_kv; j++) {
        if (!instance_seen(in, b, h, i, j))
            continue;
        double *key = magnitudes + j * p->dim;
        if (*key == NOT_READ)
            load_magnitudes(key, p->dtype, in->k.data, offset_k(in, b, h / (p->heads_q / p->heads_kv), j), p->dim);
        double sum = product_of(query, key, p->dim) * fabs((double)p->scale);
        if (p->flags & ATTEST_ALIBI)
            sum += fabs(load(ATTEST_F32, in->alibi.data, h) * (double)(place - j));
        if (p->flags & ATTEST_BIAS)
            sum += fabs(load(p->dtype_bias, in->bias.data, offset_bias(in, b, h, i, j)));
        most = fmax(most, sum);
        keys++;
    }
    if (p->flags & ATTEST_SINK) {
        double sink = load(ATTEST_F32, in->sinks.data, h);
        if (isfinite(sink))
            most = fmax(most, fabs(sink));
        keys++;
    }
    basis->score[row] = most;
    basis->keys[row] = keys;
}

static bool measure_rows(struct verdict_basis *basis, const struct instance *in)
{
    const attest_problem *p = &in->problem;
    int64_t group = p->heads_q / p->heads_kv;
    double *magnitudes = malloc(((size_t)(p->seq_kv * p->dim) + 1) * sizeof *magnitudes);
    if (!magnitudes)
        return false;
    for (int64_t head = 0; head < p->batch * p->heads_kv; head++) {
        int64_t b = head / p->heads_kv, h_kv = head % p->heads_kv;
        for (int64_t j = 0; j < p->seq_kv; j++)
            magnitudes[j * p->dim] = NOT_READ;
        for (int64_t h = h_kv * group; h < (h_kv + 1) * group; h++)
            for (int64_t i = 0; i < instance_rows(in, b); i++)
                measure_row(basis, in, b, h, i, magnitudes);
    }
    free(magnitudes);
    return true;
}

/* The oracle on |V|: a copy of the whole buffer with the signs cleared. */
static bool run_on_magnitudes(double *size, attest_context *context, const struct instance *in, const attest_problem *compact)
{
    unsigned char *copy = malloc(in->v.size + 1);
    if (!copy)
        return false;
    memcpy(copy, in->v.bytes, in->v.size);
    size_t element = type_bytes(compact->dtype);
    for (size_t at = element - 1; at < in->v.size; at += element)
        copy[at] &= 0x7F;
    attest_tensors tensors = in->tensors;
    tensors.v = (const void *)((uintptr_t)in->v.data - (uintptr_t)in->v.bytes + (uintptr_t)copy);
    int64_t rows = compact->batch * compact->heads_q * compact->seq_q;
    bool good = attest_reference(context, compact, &tensors, ATTEST_EXACT, 0, rows, size, NULL) == ATTEST_OK;
    free(copy);
    return good;
}

bool basis_create(struct verdict_basis *basis, attest_context *context, const struct instance *in)
{
    attest_problem compact = in->problem;
    bool packed = compact.flags & ATTEST_VARLEN_Q;
    int64_t dim_v = compact.dim_v, inner = packed ? compact.total_q : compact.seq_q;
    compact.flags |= ATTEST_LSE;
    compact.stride_o[0] = packed ? 0 : compact.heads_q * inner * dim_v;
    compact.stride_o[1] = inner * dim_v;
    compact.stride_o[2] = dim_v;
    compact.stride_lse[0] = packed ? 0 : compact.heads_q * inner;
    compact.stride_lse[1] = inner;
    compact.stride_lse[2] = 1;

    memset(basis, 0, sizeof *basis);
    basis->rows = compact.heads_q * inner * (packed ? 1 : compact.batch);
    basis->dim_v = dim_v;
    size_t rows = (size_t)basis->rows, elements = rows * (size_t)dim_v;
    basis->o = calloc(3 * elements + 4 * rows + 1, sizeof(double));
    if (!basis->o)
        return false;
    basis->size = basis->o + elements;
    basis->naive = basis->size + elements;
    basis->lse = basis->naive + elements;
    basis->lse_naive = basis->lse + rows;
    basis->score = basis->lse_naive + rows;
    basis->keys = basis->score + rows;

    for (size_t n = 0; n < in->v.size / type_bytes(compact.dtype); n++) {
        double v = fabs(load(compact.dtype, in->v.bytes, (int64_t)n));
        basis->largest_v = isfinite(v) ? fmax(basis->largest_v, v) : basis->largest_v;
    }
    int64_t last = compact.batch * compact.heads_q * compact.seq_q;
    const attest_tensors *t = &in->tensors;
    if (attest_reference(context, &compact, t, ATTEST_EXACT, 0, last, basis->o, basis->lse) != ATTEST_OK ||
        attest_reference(context, &compact, t, ATTEST_NAIVE, 0, last, basis->naive, basis->lse_naive) != ATTEST_OK ||
        !run_on_magnitudes(basis->size, context, in, &compact) || !measure_rows(basis, in)) {
        basis_destroy(basis);
        return false;
    }
    return true;
}

/*
 * The bound on the error of one score in float32: dim products and sums of magnitude `score`, the scale, log2(e) and the shift by
 * the maximum, and a softcap whose tanh is good to a few units.
 */
static double score_error(const struct verdict_basis *basis, const attest_problem *p, double score)
{
    double dot = basis->exact_scores ? 0 : (double)p->dim + 2;
    double cap = p->flags & ATTEST_SOFTCAP ? fmin((double)p->softcap, score) : 0;
    return 0x1p-24 * ((dot + 6) * score + 16 * cap + 8);
}

static double ulp(uint32_t dtype, double value)
{
    double magnitude = fabs(value);
    return magnitude > 0 ? fmax(2 * type_unit(dtype) * exp2(floor(log2(magnitude))), type_smallest(dtype)) : type_smallest(dtype);
}

/* One block of rows, as rule 2 sees it. */
struct block {
    double error, naive, size, score;
    int64_t row;
};

static bool place_is_wrong(double got, double want)
{
    return isnan(want) ? !isnan(got) : isinf(want) ? got != want : !isfinite(got);
}

static bool check_block(const struct verdict_basis *basis, const struct block *block, const attest_problem *p, uint32_t p_dtype,
                        bool lse, char *why, size_t why_size)
{
    /* The grain: what one rounding of the result, of P as the kernel holds it, and of a score each can do. */
    double grain = lse ? ulp(ATTEST_F32, block->size) / 2 + 0x1p-24 * (block->score + 1)
                       : ulp(p->dtype_o, block->size) / 2 + block->size * (type_unit(p_dtype) + 0x1p-24 * (block->score + 1));
    if (!lse)
        grain += (double)FLT_MIN * basis->largest_v; /* a weight beyond the range of float32 */
    if (!lse && p_dtype == ATTEST_BF16)
        grain += (double)FLT_MIN; /* the bf16 dot-product instructions flush denormals */
    if (block->error <= 2 * block->naive + 2 * grain)
        return true;
    snprintf(why, why_size, "%s of the block that ends at row %lld: max error %.3g > 2 x naive %.3g + 2 x grain %.3g",
             lse ? "LSE" : "O", (long long)block->row, block->error, block->naive, grain);
    return false;
}

static bool judge_rows(const struct verdict_basis *basis, const struct instance *in, int64_t b, int64_t h, uint32_t p_dtype,
                       char *why, size_t why_size)
{
    const attest_problem *p = &in->problem;
    struct block o_block = {0}, lse_block = {0};
    int64_t rows = instance_rows(in, b);
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = judge_row(in, b, h, i), at = offset_o(in, b, h, i);
        double score = basis->score[row], keys = basis->keys[row], ds = score_error(basis, p, score);
        double p_error = keys > 1 ? 2 * type_unit(p_dtype) : 0;
        double tolerance = type_unit(p->dtype_o) + p_error + 0x1p-24 * (keys + 8) + fmin(expm1(2 * ds), 1);
        /* A weight that is more than 2^126 times smaller than the largest is beyond the range of float32, and may be 0. */
        double least = type_smallest(p->dtype_o) + (0x1p-149 + (double)FLT_MIN * basis->largest_v) * keys +
                       (p_dtype == ATTEST_BF16 ? (double)FLT_MIN : 0);
        for (int64_t d = 0; d < p->dim_v; d++) {
            double got = load(p->dtype_o, in->o.data, at + d), want = basis->o[row * p->dim_v + d];
            double naive = type_round(p->dtype_o, basis->naive[row * p->dim_v + d]), size = basis->size[row * p->dim_v + d];
            if (place_is_wrong(got, want)) {
                snprintf(why, why_size, "O[%lld,%lld,%lld,%lld] is %g where the oracle has %g", (long long)b, (long long)h,
                         (long long)i, (long long)d, got, want);
                return false;
            }
            if (!isfinite(want))
                continue;
            double error = fabs(got - want);
            if (error > tolerance * size + least) {
                snprintf(why, why_size, "O[%lld,%lld,%lld,%lld] is %.9g, exact %.9g: error %.3g > %.3g x A %.3g", (long long)b,
                         (long long)h, (long long)i, (long long)d, got, want, error, tolerance, size);
                return false;
            }
            o_block.error = fmax(o_block.error, error);
            o_block.naive = fmax(o_block.naive, isfinite(naive) ? fabs(naive - want) : 0);
            o_block.size = fmax(o_block.size, size);
        }
        o_block.score = lse_block.score = fmax(o_block.score, score);
        o_block.row = lse_block.row = i;
        if (p->flags & ATTEST_LSE) {
            double got = load(ATTEST_F32, in->lse.data, offset_lse(in, b, h, i)), want = basis->lse[row], error = fabs(got - want);
            bool misplaced = place_is_wrong(got, want);
            if (misplaced || (isfinite(want) && error > ds + 0x1p-24 * (keys + 8 + 2 * fabs(want)))) {
                snprintf(why, why_size, "LSE[%lld,%lld,%lld] is %.9g, exact %.9g", (long long)b, (long long)h, (long long)i, got,
                         want);
                return false;
            }
            if (isfinite(want)) {
                lse_block.error = fmax(lse_block.error, error);
                lse_block.naive = fmax(lse_block.naive, fabs((double)(float)basis->lse_naive[row] - want));
                lse_block.size = fmax(lse_block.size, fabs(want));
            }
        }
        if (i % BLOCK_ROWS == BLOCK_ROWS - 1 || i == rows - 1) {
            if (!check_block(basis, &o_block, p, p_dtype, false, why, why_size) ||
                !check_block(basis, &lse_block, p, p_dtype, true, why, why_size))
                return false;
            o_block = lse_block = (struct block){0};
        }
    }
    return true;
}

bool judge(const struct verdict_basis *basis, const struct instance *in, uint32_t p_dtype, char *why, size_t why_size)
{
    for (int64_t b = 0; b < in->problem.batch; b++)
        for (int64_t h = 0; h < in->problem.heads_q; h++)
            if (!judge_rows(basis, in, b, h, p_dtype, why, why_size))
                return false;
    return true;
}

void judge_put(const struct verdict_basis *basis, struct instance *in, const double *o, const double *lse)
{
    const attest_problem *p = &in->problem;
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t h = 0; h < p->heads_q; h++)
            for (int64_t i = 0; i < instance_rows(in, b); i++) {
                int64_t row = judge_row(in, b, h, i);
                for (int64_t d = 0; d < p->dim_v; d++)
                    store(p->dtype_o, in->o.data, offset_o(in, b, h, i) + d, o[row * basis->dim_v + d]);
                if (p->flags & ATTEST_LSE)
                    store(ATTEST_F32, in->lse.data, offset_lse(in, b, h, i), lse[row]);
            }
}
