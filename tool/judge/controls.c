/*
 * controls.c - wrong answers that the judge must reject before its word on a kernel counts: zeros, the mean of V, the scale
 * dropped, causal off by one, the last keys dropped. All but the first are right answers to another problem, so the oracle computes
 * them.
 */
#include "judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Controls see at most this many rows: they are wrong everywhere, or, the last keys dropped, in the first block that is judged. */
#define CONTROL_ROWS (8 * JUDGE_BLOCK)

/* Keys in the tile that a kernel may forget; half of the keys where there are fewer than two tiles, so that this is not zeros. */
#define TILE 64

/* A bias larger than this many elements is not copied for the control that needs one. */
#define MOST_BIAS (INT64_C(1) << 27)

/* O as a kernel would write it: rounded to dtype_o, at the places of judge->problem. */
static void store_row(const struct judge *judge, void *o, const double *from, int64_t at)
{
    for (int64_t d = 0; d < judge->problem.dim_v; d++)
        element_store(o, judge->problem.dtype_o, at + d, (float)from[at + d]);
}

/* The judge's word on a control whose exact answer is `wrong`. */
static enum control_state try_control(const struct judge *judge, int64_t rows, const double *wrong, void *o)
{
    const attest_problem *problem = &judge->problem;
    bool same = true;
    for (int64_t n = 0; n < rows; n++) {
        struct place place = judge_place(judge, n);
        int64_t at = layout_row_at(&judge->layout, problem->stride_o, place.b, place.h, place.i);
        for (int64_t d = 0; d < problem->dim_v && same; d++)
            same = fabs(wrong[at + d] - judge->exact[at + d]) <= 0x1p-40 * judge->mass[at + d];
        store_row(judge, o, wrong, at);
    }
    struct finding finding;
    judge_output(judge, rows, o, problem->stride_o, NULL, problem->stride_lse, &finding);
    return same ? CONTROL_SAME : finding.accepted ? CONTROL_ACCEPTED : CONTROL_REJECTED;
}

/* Keys from this one on are dropped from sequence b: up to a tile of the last that any row may see. */
static int64_t first_dropped(const struct judge *judge, int64_t b)
{
    int64_t begin, end;
    layout_live(&judge->layout, b, &begin, &end);
    int64_t half = (end - begin + 1) / 2;
    return end - (half < TILE ? half : TILE);
}

/* The problem with a float32 bias that hides the last keys. Without a bias of its own, one row of it serves a whole sequence. */
static float *make_hiding_bias(const struct judge *judge, attest_problem *problem)
{
    const struct inputs *inputs = judge->inputs;
    bool own = (problem->flags & ATTEST_BIAS) != 0;
    int64_t keys = problem->seq_kv;
    int64_t rows = own ? problem->seq_q : 1;
    int64_t heads = own ? problem->heads_q : 1;
    int64_t count = problem->batch * heads * rows * keys;
    const int64_t *stride = inputs->problem.stride_bias;
    float *bias = count <= MOST_BIAS ? malloc(((size_t)count + 1) * sizeof *bias) : NULL;
    if (!bias)
        return NULL;
    for (int64_t b = 0; b < problem->batch; b++) {
        int64_t hidden = first_dropped(judge, b);
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < rows; i++)
                for (int64_t j = 0; j < keys; j++) {
                    float value = 0;
                    if (j >= hidden)
                        value = -INFINITY;
                    else if (own)
                        value = element_load(inputs->bias.at, inputs->problem.dtype_bias,
                                             b * stride[0] + h * stride[1] + i * stride[2] + j * stride[3]);
                    bias[((b * heads + h) * rows + i) * keys + j] = value;
                }
    }
    problem->flags |= ATTEST_BIAS;
    problem->dtype_bias = ATTEST_F32;
    problem->stride_bias[0] = heads * rows * keys;
    problem->stride_bias[1] = own ? rows * keys : 0;
    problem->stride_bias[2] = own ? keys : 0;
    problem->stride_bias[3] = 1;
    return bias;
}

bool controls_run(const struct judge *judge, struct controls *controls, char *why, size_t why_size)
{
    int64_t rows = judge->row_count < CONTROL_ROWS ? judge->row_count : CONTROL_ROWS;
    const attest_problem *problem = &judge->problem;
    bool packed = (problem->flags & ATTEST_VARLEN_Q) != 0;
    size_t count = (size_t)((packed ? problem->total_q : problem->batch * problem->seq_q) * problem->heads_q * problem->dim_v) + 1;
    double *wrong = calloc(count, sizeof *wrong);
    void *o = calloc(count, sizeof(float));
    float *bias = NULL;
    bool done = wrong && o;
    *controls = (struct controls){.names = {"zeros", "mean of V", "scale dropped", "causal off by one", "last keys dropped"}};
    if (!done)
        snprintf(why, why_size, "out of memory for the controls");
    for (int n = 0; n < CONTROL_COUNT && done; n++) {
        attest_problem variant = *problem;
        attest_tensors tensors = judge->inputs->tensors;
        bool evaluate = true;
        controls->states[n] = CONTROL_SAME;
        switch (n) {
        case 0:
            evaluate = false;
            break;
        case 1:
            variant.flags &= ~(ATTEST_ALIBI | ATTEST_BIAS | ATTEST_SINK | ATTEST_SOFTCAP);
            variant.scale = 0;
            variant.softcap = 0;
            variant.dtype_bias = 0;
            memset(variant.stride_bias, 0, sizeof variant.stride_bias);
            tensors.bias = NULL;
            tensors.alibi_slopes = tensors.sinks = NULL;
            variant.stride_alibi_slopes = 0;
            break;
        case 2:
            variant.scale = 1;
            break;
        case 3:
            if (!(variant.flags & ATTEST_CAUSAL))
                continue;
            variant.flags = (variant.flags & ~ATTEST_CAUSAL) | ATTEST_WINDOW_RIGHT;
            variant.window_right = 1;
            break;
        default:
            if (!(bias = make_hiding_bias(judge, &variant)))
                continue;
            tensors.bias = bias;
        }
        done = !evaluate || judge_evaluate(judge, &variant, &tensors, ATTEST_EXACT, rows, wrong, NULL, why, why_size);
        if (done)
            controls->states[n] = try_control(judge, rows, wrong, o);
        controls->accepted += controls->states[n] == CONTROL_ACCEPTED;
    }
    free(wrong);
    free(o);
    free(bias);
    return done;
}
