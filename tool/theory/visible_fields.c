/*
 * visible_fields.c - which fields of a problem show (see visible_fields.h).
 */
#include "visible_fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 10 }; /* rows */

struct sample {
    const struct exam *exam;
    struct judge judge; /* the exam's, with a few of its rows */
    int64_t rows[SAMPLE];
    int64_t number[SAMPLE]; /* of a row among those of the exam */
    double *o, *lse;
    bool empty; /* no row sees a key */
};

/* Whether the variant has another answer, beyond what rounding may do, on a row of the sample. */
static bool differs(struct sample *sample, const attest_problem *variant, const attest_tensors *tensors)
{
    const struct judge *judge = &sample->judge, *whole = &sample->exam->judge;
    const attest_problem *problem = &judge->problem;
    bool lse = (sample->exam->inputs.problem.flags & ATTEST_LSE) != 0, found = false;
    char why[256];
    if (!judge_evaluate(judge, variant, tensors, ATTEST_EXACT, judge->row_count, sample->o, sample->lse, why, sizeof why))
        return true; /* it cannot be told: the library does not take the variant */
    for (int64_t n = 0; n < judge->row_count && !found; n++) {
        struct place place = judge_place(judge, n);
        int64_t at = layout_row_at(&judge->layout, problem->stride_o, place.b, place.h, place.i);
        int64_t at_lse = layout_row_at(&judge->layout, problem->stride_lse, place.b, place.h, place.i);
        found = lse && !(fabs(sample->lse[at_lse] - whole->exact_lse[at_lse]) <= 2 * judge_bound_lse(whole, sample->number[n])) &&
                sample->lse[at_lse] != whole->exact_lse[at_lse];
        for (int64_t d = 0; d < problem->dim_v && !found; d++)
            found = !(fabs(sample->o[at + d] - whole->exact[at + d]) <= 2 * judge_bound(whole, sample->number[n], d));
    }
    return found;
}

static bool sample_make(struct sample *sample, const struct exam *exam)
{
    const struct judge *whole = &exam->judge;
    const attest_problem *problem = &whole->problem;
    int64_t rows = problem->flags & ATTEST_VARLEN_Q ? problem->total_q : problem->batch * problem->seq_q;
    *sample = (struct sample){.exam = exam, .judge = *whole, .empty = true};
    sample->judge.rows = sample->rows;
    sample->judge.layout.problem = &sample->judge.problem;
    sample->judge.row_count = whole->row_count < SAMPLE ? whole->row_count : SAMPLE;
    for (int64_t n = 0; n < sample->judge.row_count; n++) {
        int64_t from = sample->judge.row_count == whole->row_count ? n : (2 * n + 1) * whole->row_count / (2 * SAMPLE);
        sample->rows[n] = whole->rows[from];
        sample->number[n] = from;
    }
    for (int64_t n = 0; n < whole->row_count && sample->empty; n++) {
        struct place place = judge_place(whole, n);
        int64_t begin, end;
        layout_visible(&whole->layout, place.b, place.i, &begin, &end);
        sample->empty = end == begin;
    }
    sample->o = calloc((size_t)(rows * problem->heads_q * problem->dim_v) + 1, sizeof *sample->o);
    sample->lse = calloc((size_t)(rows * problem->heads_q) + 1, sizeof *sample->lse);
    return sample->o && sample->lse;
}

static bool shows_without(struct sample *sample, uint64_t flag)
{
    attest_problem variant = sample->judge.problem;
    attest_tensors tensors = sample->exam->inputs.tensors;
    if (!(variant.flags & flag))
        return true;
    variant.flags &= ~flag;
    switch (flag) {
    case ATTEST_SOFTCAP:
        variant.softcap = 0;
        break;
    case ATTEST_ALIBI:
        variant.stride_alibi_slopes = 0;
        tensors.alibi_slopes = NULL;
        break;
    case ATTEST_MASK:
        memset(variant.stride_mask, 0, sizeof variant.stride_mask);
        tensors.mask = NULL;
        break;
    case ATTEST_KV_STARTS:
        tensors.kv_starts = NULL;
        break;
    case ATTEST_BIAS:
        variant.dtype_bias = 0;
        memset(variant.stride_bias, 0, sizeof variant.stride_bias);
        tensors.bias = NULL;
        break;
    case ATTEST_SINK:
        tensors.sinks = NULL;
        break;
    case ATTEST_WINDOW_LEFT:
        variant.window_left = 0;
        break;
    case ATTEST_WINDOW_RIGHT:
        variant.window_right = 0;
        break;
    default:
        break;
    }
    return differs(sample, &variant, &tensors);
}

/* A field, the flag of its feature, and the fields that show if it does. */
static const struct {
    uint64_t flag;
    int fields[4];
} features[] = {
    {ATTEST_ALIBI, {FIELD_alibi, FIELD_slopes, -1}},
    {ATTEST_BIAS, {FIELD_bias_type, FIELD_bias_layout, FIELD_bias, -1}},
    {ATTEST_CAUSAL, {FIELD_mask, -1}},
    {ATTEST_MASK, {FIELD_bytes, -1}},
    {ATTEST_KV_STARTS, {FIELD_starts, -1}},
};

static bool scores_show(struct sample *sample)
{
    attest_problem variant = sample->judge.problem;
    variant.scale = -variant.scale;
    return variant.scale != 0 && differs(sample, &variant, &sample->exam->inputs.tensors);
}

void observed_fields(const struct exam *exam, const int row[COVERING_FIELDS], bool observed[COVERING_FIELDS])
{
    static const int of_scores[] = {FIELD_dim, FIELD_layout_q, FIELD_layout_k, FIELD_qk};
    const attest_problem *problem = &exam->inputs.problem;
    int64_t reach = problem->seq_kv + problem->seq_q;
    struct sample sample;
    bool made = sample_make(&sample, exam);
    for (int f = 0; f < FIELD_COUNT; f++)
        observed[f] = made && !sample.empty;
    for (int n = 0; n < COUNT_OF(features) && made && !sample.empty; n++) {
        bool shows = shows_without(&sample, features[n].flag);
        for (int i = 0; i < 4 && features[n].fields[i] >= 0; i++)
            observed[features[n].fields[i]] = shows;
    }
    if (made && !sample.empty) {
        bool scores = scores_show(&sample);
        for (int n = 0; n < COUNT_OF(of_scores); n++)
            observed[of_scores[n]] = observed[of_scores[n]] && scores;
        /* A window beyond all keys, a softcap far above all scores and sinks that are all -inf change nothing, and must not. */
        observed[FIELD_window_left] = problem->window_left > reach || shows_without(&sample, ATTEST_WINDOW_LEFT);
        observed[FIELD_window_right] =
            problem->window_right > reach || problem->flags & ATTEST_CAUSAL || shows_without(&sample, ATTEST_WINDOW_RIGHT);
        observed[FIELD_softcap] = problem->softcap >= 1000 || shows_without(&sample, ATTEST_SOFTCAP);
        observed[FIELD_sink] = observed[FIELD_sinks] = row[FIELD_sinks] == 2 || shows_without(&sample, ATTEST_SINK);
        observed[FIELD_lengths] =
            problem->flags & (ATTEST_KV_LENGTHS | ATTEST_VARLEN_Q | ATTEST_VARLEN_KV) || row[FIELD_lengths] == 0;
        observed[FIELD_scale] = row[FIELD_scale] == 0 || scores || row[FIELD_scale] == 3;
    }
    free(sample.o);
    free(sample.lse);
}
