/*
 * reference.c - the oracle as a public call (attest_reference) and as the last kernel of the table (ref_fwd).
 */
#include "internal.h"
#include "reference.h"
#include "ref/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t scratch_size(const attest_problem *p)
{
    return (size_t)p->seq_kv * (sizeof(double) + 1) + 64;
}

/* Where row i goes in a query tensor with these strides. */
static int64_t place(const attest_problem *p, const attest_tensors *t, const int64_t stride[3], int64_t b, int64_t h, int64_t i)
{
    return b * (has(p, ATTEST_VARLEN_Q) ? 0 : stride[0]) + h * stride[1] + (sequence_get(p, t, b).q_row + i) * stride[2];
}

struct row {
    int64_t b, h, i;
};

static struct row row_at(const attest_problem *p, int64_t index)
{
    return (struct row){index / p->seq_q / p->heads_q, index / p->seq_q % p->heads_q, index % p->seq_q};
}

attest_status attest_reference(attest_context *context, const attest_problem *problem, const attest_tensors *tensors,
                               attest_precision precision, int64_t row_begin, int64_t row_end, double *o, double *lse)
{
    if (!context)
        return ATTEST_ERROR_ARGUMENT;
    struct text why = context_text(context);
    attest_problem p;
    attest_tensors t;
    TRY(problem_read(&p, problem, why));
    struct buffer buffers[TENSORS];
    buffers_get(buffers, &p);
    TRY(tensors_read(&t, tensors, &p, buffers, false, why));
    if (precision != ATTEST_EXACT && precision != ATTEST_NAIVE)
        return fail(why, ATTEST_ERROR_ARGUMENT, "precision is %d; it must be ATTEST_EXACT or ATTEST_NAIVE", (int)precision);
    int64_t rows = p.batch * p.heads_q * p.seq_q;
    if (row_begin < 0 || row_end < row_begin || row_end > rows)
        return fail(why, ATTEST_ERROR_ARGUMENT, "rows %lld to %lld are not within 0 to %lld", (long long)row_begin,
                    (long long)row_end, (long long)rows);
    if (!o)
        return fail(why, ATTEST_ERROR_ARGUMENT, "o is NULL");

    /* LSE strides are 0 in a problem that does not ask for it; the caller then gets it packed. */
    attest_problem with_lse = p;
    if (!has(&p, ATTEST_LSE)) {
        with_lse.flags |= ATTEST_LSE;
        attest_problem_pack(&with_lse);
    }
    void *scratch = malloc(scratch_size(&p));
    if (!scratch)
        return fail(why, ATTEST_ERROR_MEMORY, "no memory for %zu bytes of scores", scratch_size(&p));
    for (int64_t index = row_begin; index < row_end; index++) {
        struct row r = row_at(&p, index);
        if (r.i >= sequence_get(&p, &t, r.b).q_len)
            continue;
        double *out = o + place(&p, &t, p.stride_o, r.b, r.h, r.i), sum;
        (precision == ATTEST_EXACT ? oracle_exact : oracle_naive)(&p, &t, r.b, r.h, r.i, scratch, out, &sum);
        if (lse)
            lse[place(&p, &t, with_lse.stride_lse, r.b, r.h, r.i)] = sum;
    }
    free(scratch);
    return ATTEST_OK;
}

/* A float that rounds to 16 bits as the double would: cut off, with the last bit set if anything was lost (round to odd). */
static float keep_rounding(double value)
{
    float cut = (float)value;
    if (isnan(value) || (double)cut == value)
        return cut;
    if (fabs((double)cut) > fabs(value))
        cut = nextafterf(cut, 0);
    uint32_t bits;
    memcpy(&bits, &cut, sizeof bits);
    bits |= 1;
    memcpy(&cut, &bits, sizeof cut);
    return cut;
}

/* ---- as a kernel ----------------------------------------------------------------------------------------------------------- */

size_t reference_workspace(const attest_problem *p)
{
    return scratch_size(p);
}

void reference_run(const attest_problem *p, const attest_tensors *t, void *workspace)
{
    for (int64_t index = 0; index < row_count(p); index++) {
        struct row r = row_at(p, index);
        if (r.i >= sequence_get(p, t, r.b).q_len)
            continue;
        double out[DIM_MAX], lse;
        oracle_exact(p, t, r.b, r.h, r.i, workspace, out, &lse);
        int64_t at = place(p, t, p->stride_o, r.b, r.h, r.i);
        for (int64_t d = 0; d < p->dim_v; d++)
            attest_store(t->o, p->dtype_o, at + d, p->dtype_o == ATTEST_F32 ? (float)out[d] : keep_rounding(out[d]));
        if (t->lse)
            t->lse[place(p, t, p->stride_lse, r.b, r.h, r.i)] = (float)lse;
    }
}
