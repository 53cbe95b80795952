/*
 * stages_cause.c - known mistakes, tried out. For each the reference computes what a kernel would give that makes this mistake on
 * these inputs; if that, and not what is right, was found in every row, the mistake is named. Nothing is named on likeness.
 */
#include "stages_inquiry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A problem and tensors with a mistake in them, and what had to be allocated for it. */
struct variant {
    attest_problem problem;
    attest_tensors tensors;
    struct buffer k, v;
    float *numbers;
    char text[256];
    unsigned stages;
};

struct mistake {
    enum question question;
    bool (*make)(const struct lab *lab, int number, struct variant *variant); /* false: does not apply */
    int count;                                                                /* numbers 0 to count - 1 are tried */
};

static const char *const tensor_names[] = {"Q", "K", "V", "O"};

/* ---- scores and values ------------------------------------------------------------------------------------------------------- */

static bool swap_k_and_v(const struct lab *lab, int number, struct variant *variant)
{
    int64_t stride[3];
    (void)number;
    if (lab->problem.dim != lab->problem.dim_v)
        return false;
    memcpy(stride, variant->problem.stride_k, sizeof stride);
    memcpy(variant->problem.stride_k, variant->problem.stride_v, sizeof stride);
    memcpy(variant->problem.stride_v, stride, sizeof stride);
    variant->tensors.k = lab->inputs.tensors.v;
    variant->tensors.v = lab->inputs.tensors.k;
    snprintf(variant->text, sizeof variant->text, "K and V are swapped");
    return true;
}

static bool k_for_v(const struct lab *lab, int number, struct variant *variant)
{
    (void)number;
    if (lab->problem.dim != lab->problem.dim_v)
        return false;
    memcpy(variant->problem.stride_v, variant->problem.stride_k, sizeof variant->problem.stride_v);
    variant->tensors.v = lab->inputs.tensors.k;
    variant->stages = STAGE_PV;
    snprintf(variant->text, sizeof variant->text, "K is read in place of V");
    return true;
}

enum { RIGHT_HEAD = -1 };

/* The KV head that a wrong formula takes for query head h. */
static int64_t wrong_head(const attest_problem *problem, int formula, int64_t h)
{
    switch (formula) {
    case 0:
        return h % problem->heads_kv;
    case 1:
        return 0;
    case 2:
        return h < problem->heads_kv ? h : problem->heads_kv - 1;
    case 3:
        return problem->heads_kv - 1 - h / (problem->heads_q / problem->heads_kv);
    default:
        return h / (problem->heads_q / problem->heads_kv);
    }
}

static const char *const head_formulas[] = {"h % heads_kv", "0", "h, and the last one beyond", "counted from the last"};

/* Copies rows of K or V from the KV head that the formula takes to every query head. */
static void copy_heads(const struct lab *lab, int formula, const struct variant *variant, bool is_v)
{
    const attest_problem *problem = &lab->problem;
    struct layout layout = lab->inputs.layout;
    int64_t size = (int64_t)element_size(problem->dtype), dim = is_v ? problem->dim_v : problem->dim;
    char *to = is_v ? variant->v.at : variant->k.at;
    const char *from = is_v ? lab->inputs.v.at : lab->inputs.k.at;
    layout.problem = &variant->problem;
    for (int64_t b = 0; b < problem->batch; b++)
        for (int64_t h = 0; h < problem->heads_q; h++)
            for (int64_t j = 0; j < layout_keys(&layout, b); j++) {
                int64_t taken = wrong_head(problem, formula, h);
                int64_t at = layout_key_at(&layout, is_v ? variant->problem.stride_v : variant->problem.stride_k, b, h, j);
                int64_t source = layout_key_at(&lab->inputs.layout, is_v ? problem->stride_v : problem->stride_k, b, taken, j);
                memcpy(to + at * size, from + source * size, (size_t)(dim * size));
            }
}

/* K and V repeated for every query head, as the wrong formula would find them; V alone if it is about values. */
static bool repeat_heads(const struct lab *lab, int formula, struct variant *variant)
{
    const attest_problem *problem = &lab->problem;
    attest_problem packed = *problem;
    int64_t different = 0;
    for (int64_t h = 0; h < problem->heads_q; h++)
        different += wrong_head(problem, formula, h) != lab_head_kv(lab, h);
    if (different == 0)
        return false;
    packed.heads_kv = packed.heads_q;
    attest_problem_pack(&packed);
    variant->problem.heads_kv = packed.heads_q;
    memcpy(variant->problem.stride_k, packed.stride_k, sizeof packed.stride_k);
    memcpy(variant->problem.stride_v, packed.stride_v, sizeof packed.stride_v);
    if (!buffer_make(&variant->k, &variant->problem, 'k', problem->dtype, 0) ||
        !buffer_make(&variant->v, &variant->problem, 'v', problem->dtype, 0))
        return false;
    copy_heads(lab, variant->stages == STAGE_PV ? RIGHT_HEAD : formula, variant, false);
    copy_heads(lab, formula, variant, true);
    variant->tensors.k = variant->k.at;
    variant->tensors.v = variant->v.at;
    snprintf(variant->text, sizeof variant->text, "query head h of %lld takes KV head %s, not h / %lld",
             (long long)problem->heads_q, head_formulas[formula], (long long)(problem->heads_q / problem->heads_kv));
    return true;
}

/* A tensor taken for one that is packed [batch, head, row, dim] (or, odd numbers, [batch, row, head, dim]). */
static bool other_strides(const struct lab *lab, int number, struct variant *variant)
{
    const attest_problem *problem = &lab->problem;
    int which = number / 2;
    bool rows_first = number % 2;
    int64_t *strides[] = {variant->problem.stride_q, variant->problem.stride_k, variant->problem.stride_v};
    int64_t heads = which == 0 ? problem->heads_q : problem->heads_kv, rows = which == 0 ? problem->seq_q : problem->seq_kv;
    int64_t dim = which == 2 ? problem->dim_v : problem->dim, first, count, first_now, count_now;
    int64_t packed[3] = {heads * rows * dim, rows_first ? dim : rows * dim, rows_first ? heads * dim : dim};
    char letter = "qkv"[which];
    if (problem->flags & (ATTEST_PAGED | (which == 0 ? ATTEST_VARLEN_Q : ATTEST_VARLEN_KV)) ||
        memcmp(packed, strides[which], sizeof packed) == 0)
        return false;
    memcpy(strides[which], packed, sizeof packed);
    if (attest_problem_extent(problem, letter, &first, &count) != ATTEST_OK ||
        attest_problem_extent(&variant->problem, letter, &first_now, &count_now) != ATTEST_OK || first_now < first ||
        first_now + count_now > first + count)
        return false;
    snprintf(variant->text, sizeof variant->text, "%s is read as if it were packed [batch, %s, dim], whatever its strides are",
             tensor_names[which], rows_first ? "row, head" : "head, row");
    return true;
}

/* The first sequence, or the first head, in place of each. */
static bool first_of(const struct lab *lab, int number, struct variant *variant)
{
    const attest_problem *problem = &lab->problem;
    int which = number / 2, axis = number % 2;
    int64_t *strides[] = {variant->problem.stride_q, variant->problem.stride_k, variant->problem.stride_v};
    if (strides[which][axis] == 0 || (problem->flags & ATTEST_PAGED && which > 0 && axis == 0))
        return false;
    strides[which][axis] = 0;
    snprintf(variant->text, sizeof variant->text, "%s of the first %s is read for all of them", tensor_names[which],
             axis ? "head" : "sequence");
    return true;
}

static bool other_strides_of_v(const struct lab *lab, int number, struct variant *variant)
{
    return other_strides(lab, number + 4, variant);
}

static bool first_of_v(const struct lab *lab, int number, struct variant *variant)
{
    return first_of(lab, number + 4, variant);
}

/* ---- modifiers --------------------------------------------------------------------------------------------------------------- */

static bool without(const struct lab *lab, uint64_t flag, const char *name, struct variant *variant)
{
    (void)lab;
    variant->problem.flags &= ~flag;
    if (flag == ATTEST_SOFTCAP)
        variant->problem.softcap = 0;
    if (flag == ATTEST_ALIBI)
        variant->tensors.alibi_slopes = NULL;
    if (flag == ATTEST_SINK)
        variant->tensors.sinks = NULL;
    if (flag == ATTEST_BIAS) {
        variant->tensors.bias = NULL;
        variant->problem.dtype_bias = 0;
        memset(variant->problem.stride_bias, 0, sizeof variant->problem.stride_bias);
    }
    snprintf(variant->text, sizeof variant->text, "%s missing", name);
    return true;
}

/* Numbers of each head, changed: times a factor, or those of another head. */
static bool changed_heads(const struct lab *lab, const float *from, double factor, int64_t head, struct variant *variant)
{
    int64_t heads = lab->problem.heads_q;
    variant->numbers = malloc(((size_t)heads + 1) * sizeof *variant->numbers);
    for (int64_t h = 0; h < heads && variant->numbers; h++)
        variant->numbers[h] = (float)(factor * (double)from[head < 0 ? h : head]);
    return variant->numbers != NULL;
}

static bool softcap_mistake(const struct lab *lab, int number, struct variant *variant)
{
    if (number == 0)
        return without(lab, ATTEST_SOFTCAP, "the softcap is", variant);
    variant->problem.softcap *= (float)(number == 1 ? 1 / M_LN2 : M_LN2);
    snprintf(variant->text, sizeof variant->text, "the softcap is taken in units of log2");
    return true;
}

static bool alibi_mistake(const struct lab *lab, int number, struct variant *variant)
{
    static const double factors[] = {0, -1, M_LN2, 1 / M_LN2, 1};
    static const char *const texts[] = {"", "ALiBi has the wrong sign", "ALiBi is added in units of log2",
                                        "ALiBi is added in units of log2", "the slope of the first head is used for all"};
    if (number == 0)
        return without(lab, ATTEST_ALIBI, "ALiBi is", variant);
    if (number == 5) {
        variant->problem.flags ^= ATTEST_BOTTOM_RIGHT;
        snprintf(variant->text, sizeof variant->text, "ALiBi counts from the other end: the alignment is not that of the problem");
        return !(lab->problem.flags & (ATTEST_CAUSAL | ATTEST_WINDOW_LEFT | ATTEST_WINDOW_RIGHT));
    }
    if (!changed_heads(lab, lab->inputs.slopes, factors[number], number == 4 ? 0 : -1, variant))
        return false;
    variant->tensors.alibi_slopes = variant->numbers;
    snprintf(variant->text, sizeof variant->text, "%s", texts[number]);
    return true;
}

static bool sink_mistake(const struct lab *lab, int number, struct variant *variant)
{
    double factors[] = {0, M_LN2, 1 / M_LN2, (double)lab->problem.scale, 1};
    static const char *const texts[] = {"", "the sink is taken in units of log2", "the sink is taken in units of log2",
                                        "the sink is multiplied with the scale", "the sink of the first head is used for all"};
    if (number == 0)
        return without(lab, ATTEST_SINK, "the sink is", variant);
    if (!changed_heads(lab, lab->inputs.sinks, factors[number], number == 4 ? 0 : -1, variant))
        return false;
    variant->tensors.sinks = variant->numbers;
    snprintf(variant->text, sizeof variant->text, "%s", texts[number]);
    return true;
}

static bool bias_mistake(const struct lab *lab, int number, struct variant *variant)
{
    static const char *const axes[] = {"", "sequence", "head", "row", "key"};
    int64_t *stride = variant->problem.stride_bias, swapped = stride[2];
    if (number == 0)
        return without(lab, ATTEST_BIAS, "the bias is", variant);
    if (number == 5) {
        if (lab->problem.seq_q != lab->problem.seq_kv)
            return false;
        stride[2] = stride[3];
        stride[3] = swapped;
        snprintf(variant->text, sizeof variant->text, "rows and keys of the bias are swapped");
        return true;
    }
    if (stride[number - 1] == 0)
        return false;
    stride[number - 1] = 0;
    snprintf(variant->text, sizeof variant->text, "the bias of the first %s is used for all", axes[number]);
    return true;
}

/* ---- trying ------------------------------------------------------------------------------------------------------------------ */

static const struct mistake mistakes[] = {
    {QUESTION_SCORES, swap_k_and_v, 1},
    {QUESTION_SCORES, repeat_heads, COUNT_OF(head_formulas)},
    {QUESTION_SCORES, other_strides, 4},
    {QUESTION_SCORES, first_of, 4},
    {QUESTION_VALUES, k_for_v, 1},
    {QUESTION_VALUES, repeat_heads, COUNT_OF(head_formulas)},
    {QUESTION_VALUES, other_strides_of_v, 2},
    {QUESTION_VALUES, first_of_v, 2},
    {QUESTION_SOFTCAP, softcap_mistake, 3},
    {QUESTION_ALIBI, alibi_mistake, 6},
    {QUESTION_BIAS, bias_mistake, 6},
    {QUESTION_SINK, sink_mistake, 5},
};

static double error_ratio(double found, double expected, double bound)
{
    if (!isfinite(found) || !isfinite(expected))
        return found == expected ? 0 : INFINITY;
    return fabs(found - expected) / bound;
}

/* How well a variant explains a reading: its worst distance to what was found, and to what is right, in bounds. */
struct fit {
    double found, right;
};

static void fit_add(struct fit *fit, double variant, double found, double right, double bound)
{
    fit->found = fmax(fit->found, error_ratio(found, variant, bound));
    fit->right = fmax(fit->right, error_ratio(right, variant, bound));
}

/* Compares LSE or, for values and where there is no LSE, the columns of O that block 0 shows. Bounds of O are relative, so they are
 * scaled to the variant's number. */
static struct fit variant_fit(struct inquiry *inquiry, const struct reading *reading, enum question question,
                              const struct variant *variant)
{
    struct lab *lab = inquiry->lab;
    const struct layout *layout = &lab->inputs.layout;
    struct fit fit = {0};
    if (!lab_evaluate(lab, &variant->problem, &variant->tensors, lab->o_exact, lab->lse_exact))
        return (struct fit){INFINITY, 0};
    for (int64_t n = 0; n < reading->rows; n++) {
        struct place place = lab->rows[n];
        int64_t at_o = layout_row_at(layout, lab->plain.stride_o, place.b, place.h, place.i);
        int64_t at_lse = layout_row_at(layout, lab->plain.stride_lse, place.b, place.h, place.i);
        if (reading->skip[n])
            continue;
        if (question != QUESTION_VALUES && lab->lse)
            fit_add(&fit, lab->lse_exact[at_lse], reading->lse[n], reading->lse_expected[n], 4 * reading->lse_bound[n]);
        for (int64_t d = 0; d < lab->problem.dim_v && (question == QUESTION_VALUES || !lab->lse); d++) {
            int64_t column = reading->by_key ? design_column(lab, 0, place.b, lab_head_kv(lab, place.h), d) : d;
            if (column < 0)
                continue;
            int64_t at = n * reading->columns + column;
            double expected = reading->o_expected[at], bound = reading->o_bound[at];
            double relative = expected > 0 ? bound / expected : 4 * unit_roundoff(lab->problem.dtype_o);
            bound = fmax(bound, fabs(lab->o_exact[at_o + d]) * relative);
            fit_add(&fit, lab->o_exact[at_o + d], reading->o[at], expected, bound);
        }
    }
    return fit;
}

bool cause_find(struct inquiry *inquiry, const struct reading *reading, enum question question, struct cause *cause)
{
    struct lab *lab = inquiry->lab;
    bool found = false;
    design_scores(lab, &reading->experiment);
    design_values(lab, &reading->experiment, 0);
    for (int m = 0; m < COUNT_OF(mistakes) && !found; m++)
        for (int number = 0; number < mistakes[m].count && mistakes[m].question == question && !found; number++) {
            struct variant variant = {.problem = lab->plain, .tensors = lab->inputs.tensors};
            variant.stages = question == QUESTION_VALUES ? STAGE_PV : question == QUESTION_SINK ? STAGE_NORMALISATION : STAGE_S;
            struct fit fit = {INFINITY, 0};
            if (mistakes[m].make(lab, number, &variant))
                fit = variant_fit(inquiry, reading, question, &variant);
            found = fit.found <= 1 && fit.right > 4 * fit.found + 0.1;
            if (found) {
                cause->stages = variant.stages;
                snprintf(cause->text, sizeof cause->text, "%s", variant.text);
            }
            buffer_free(&variant.k);
            buffer_free(&variant.v);
            free(variant.numbers);
        }
    return found;
}
