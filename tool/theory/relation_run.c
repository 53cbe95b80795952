/*
 * relation_run.c - how a relation is asked (see relation_run.h). Within rounding is twice the component bound of judge.c, with the largest |v|
 * for A.
 */
#include "relation_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "judge/examine.h"

double *result_o(const struct result *result, int64_t b, int64_t h, int64_t i)
{
    return result->o + ((b * result->heads + h) * result->rows + i) * result->dim_v;
}
double *result_lse(const struct result *result, int64_t b, int64_t h, int64_t i)
{
    return result->lse + (b * result->heads + h) * result->rows + i;
}
int64_t result_rows(const attest_problem *problem)
{
    return problem->batch * problem->heads_q * problem->seq_q;
}

bool asking_end(struct asking *asking, enum verdict verdict, const char *sentence)
{
    asking->verdict->verdict = verdict;
    snprintf(asking->verdict->sentence, sizeof asking->verdict->sentence, "%.470s", sentence);
    return false;
}

/* Packed sequences all have the full length here: the relation is that packing changes nothing. */
static void set_lengths(struct inputs *inputs)
{
    for (int64_t b = 0; b <= inputs->problem.batch; b++) {
        if (inputs->cu_q)
            inputs->cu_q[b] = (int32_t)(b * inputs->problem.seq_q);
        if (inputs->cu_kv)
            inputs->cu_kv[b] = (int32_t)(b * inputs->problem.seq_kv);
    }
}

/* Fills a tensor and returns the largest norm of a row, or for V the largest element. */
static double fill(const struct asking *asking, struct inputs *inputs, char tensor, value_function *values)
{
    const attest_problem *problem = &inputs->problem;
    bool query = tensor == 'q';
    const struct buffer *buffer = query ? &inputs->q : tensor == 'k' ? &inputs->k : &inputs->v;
    const int64_t *stride = query ? problem->stride_q : tensor == 'k' ? problem->stride_k : problem->stride_v;
    int64_t heads = query ? problem->heads_q : problem->heads_kv, rows = query ? problem->seq_q : problem->seq_kv;
    double most = 0;
    for (int64_t b = 0; b < problem->batch; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t row = 0; row < rows; row++) {
                int64_t at = (query ? layout_row_at : layout_key_at)(&inputs->layout, stride, b, h, row);
                double squares = 0;
                for (int64_t d = 0; d < (tensor == 'v' ? problem->dim_v : problem->dim); d++) {
                    float value = (float)values(asking, tensor, b, h, row, d);
                    element_store(buffer->at, problem->dtype, at + d, value);
                    squares = tensor == 'v' ? fmax(squares, (double)(value * value)) : squares + (double)(value * value);
                }
                most = fmax(most, sqrt(squares));
            }
    return most;
}

static void fill_bias(const struct asking *asking, struct inputs *inputs, value_function *values)
{
    const attest_problem *problem = &inputs->problem;
    const int64_t *stride = problem->stride_bias;
    for (int64_t b = 0; b < problem->batch; b++)
        for (int64_t h = 0; h < problem->heads_q; h++)
            for (int64_t i = 0; i < problem->seq_q; i++)
                for (int64_t j = 0; j < problem->seq_kv; j++)
                    element_store(inputs->bias.at, problem->dtype_bias,
                                  b * stride[0] + h * stride[1] + i * stride[2] + j * stride[3],
                                  (float)values(asking, 'b', b, h, i, j));
}

static double unit_of(uint32_t dtype)
{
    return dtype == ATTEST_F32 ? 0x1p-24 : dtype == ATTEST_F16 ? 0x1p-11 : 0x1p-8;
}

static void measure_slack(struct result *result, const attest_problem *problem, double q, double k, double v)
{
    double keys = fmax((double)problem->seq_kv, 1), reach = 2 * fabs((double)problem->scale) * q * k + log(keys);
    double units = 0x1p-24 * (16 + 4 * reach + 2 * sqrt(keys)), unit_p = problem->dtype == ATTEST_F32 ? 0 : unit_of(problem->dtype);
    result->slack_lse = 2 * units;
    result->slack_o = 2 * v * (2 * unit_of(problem->dtype_o) + 2 * unit_p + units) + 0x1p-23;
}

static void gather(const struct inputs *inputs, const struct outputs *outputs, struct result *result)
{
    const attest_problem *problem = &inputs->problem;
    for (int64_t b = 0; b < problem->batch; b++)
        for (int64_t h = 0; h < problem->heads_q; h++)
            for (int64_t i = 0; i < problem->seq_q; i++) {
                int64_t at = layout_row_at(&inputs->layout, problem->stride_o, b, h, i);
                for (int64_t d = 0; d < problem->dim_v; d++)
                    result_o(result, b, h, i)[d] = (double)element_load(outputs->o.at, problem->dtype_o, at + d);
                *result_lse(result, b, h, i) = NAN;
                if (problem->flags & ATTEST_LSE)
                    *result_lse(result, b, h, i) =
                        (double)((const float *)outputs->lse.at)[layout_row_at(&inputs->layout, problem->stride_lse, b, h, i)];
            }
}

bool asking_compute(struct asking *asking, const attest_problem *problem, value_function *values, struct result *result)
{
    struct inputs inputs;
    struct outputs outputs = {0};
    enum exit_code code;
    char why[640] = "out of memory";
    *result = (struct result){problem->heads_q, problem->seq_q, problem->dim_v, NULL, NULL, 0, 0};
    if (!taker_takes(asking->taker, problem))
        return asking_end(asking, VERDICT_NOT_APPLICABLE, "the kernel does not take such problems");
    if (!inputs_make(problem, asking->seed, NULL, &inputs, &code, why, sizeof why))
        return asking_end(asking, VERDICT_INCONCLUSIVE, why);
    set_lengths(&inputs);
    double q = fill(asking, &inputs, 'q', values), k = fill(asking, &inputs, 'k', values), v = fill(asking, &inputs, 'v', values);
    if (problem->flags & ATTEST_BIAS)
        fill_bias(asking, &inputs, values);
    measure_slack(result, problem, q, k, v);
    result->o = malloc((size_t)(result_rows(problem) * (problem->dim_v + 1) + 1) * sizeof(double));
    bool done = false;
    if (!result->o || !outputs_make(&outputs, &inputs)) {
        asking_end(asking, VERDICT_INCONCLUSIVE, why);
    } else {
        result->lse = result->o + result_rows(problem) * problem->dim_v;
        enum verdict ran =
            subject_run(asking->subject, &inputs, inputs_digest(&inputs), &outputs, &asking->verdict->end, why, sizeof why);
        done = ran == VERDICT_PASS || asking_end(asking, ran, why);
        if (done)
            gather(&inputs, &outputs, result);
    }
    if (!done) {
        free(result->o);
        result->o = NULL;
    }
    outputs_free(&outputs);
    inputs_free(&inputs);
    return done;
}

bool asking_agree(struct asking *asking, int64_t b, int64_t h, int64_t i, int64_t column, double got, double wanted, double slack)
{
    if (isnan(wanted) || got == wanted)
        return true;
    char place[32] = "";
    if (column >= 0)
        snprintf(place, sizeof place, ",%lld", (long long)column);
    if (slack > 0 && fabs(got - wanted) <= slack) {
        asking->verdict->rounded = true;
        return true;
    }
    asking->verdict->verdict = VERDICT_FAIL;
    snprintf(asking->verdict->sentence, sizeof asking->verdict->sentence, "%s[%lld,%lld,%lld%s] is %.9g and should be %.9g, %s",
             column >= 0 ? "O" : "LSE", (long long)b, (long long)h, (long long)i, place, got, wanted,
             slack > 0 ? "within rounding" : "to the bit");
    return false;
}

void asking_compare(struct asking *asking, const struct result *before, const struct result *after, wish_function *wish,
                    bool to_the_bit)
{
    const attest_problem *problem = &asking->problem;
    double slack_o = to_the_bit ? 0 : fmax(before->slack_o, after->slack_o);
    double slack_lse = to_the_bit ? 0 : fmax(before->slack_lse, after->slack_lse);
    bool good = true;
    for (int64_t b = 0; b < problem->batch; b++)
        for (int64_t h = 0; h < after->heads && good; h++)
            for (int64_t i = 0; i < after->rows && good; i++)
                for (int64_t d = 0; d < after->dim_v && good; d++) {
                    double lse, o = wish(asking, before, b, h, i, d, &lse);
                    good = asking_agree(asking, b, h, i, d, result_o(after, b, h, i)[d], o, slack_o) &&
                           (d > 0 || asking_agree(asking, b, h, i, -1, *result_lse(after, b, h, i), lse, slack_lse));
                }
}
