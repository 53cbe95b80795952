/*
 * repeated_call.c - see repeated_call.h.
 *
 * The part that is another is one that a kernel might take for nothing new: the last rows of one tensor, those of the last head or
 * sequence, one tensor of several, lengths; or everything.
 */
#include "repeated_call.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "data/same_bits.h"

enum { STREAM_PART = 1600, STREAM_VALUE };
enum { PART_Q, PART_K, PART_V, PART_KEYS, PART_BIAS, PART_HEADS, PART_LENGTHS, PART_ALL, PARTS };
static const char *const names[PARTS] = {"Q", "K", "V", "K and V", "the bias", "slopes and sinks", "lengths", "all inputs"};

/* Which rows of the part are others. */
enum { ROWS_ALL, ROWS_LATE, ROW_LAST, ROWS_OF_LAST_HEAD, ROWS_OF_LAST_SEQUENCE, ROW_KINDS };

static bool is_another(int kind, const int64_t place[3], const int64_t count[3])
{
    switch (kind) {
    case ROWS_LATE:
        return place[2] >= (count[2] + 1) / 2;
    case ROW_LAST:
        return place[2] == count[2] - 1;
    case ROWS_OF_LAST_HEAD:
        return place[1] == count[1] - 1;
    case ROWS_OF_LAST_SEQUENCE:
        return place[0] == count[0] - 1;
    default:
        return true;
    }
}

/* A copy of Q, K, V or the bias in which some rows have other numbers. Places that hold no number stay as they are. False if there is no
 * memory. */
static bool change_buffer(const struct inputs *inputs, char tensor, int kind, uint64_t seed, struct buffer *made)
{
    const attest_problem *problem = &inputs->problem;
    const struct layout *layout = &inputs->layout;
    const bool keys = tensor == 'k' || tensor == 'v';
    const struct buffer *of = tensor == 'q' ? &inputs->q : tensor == 'k' ? &inputs->k : tensor == 'v' ? &inputs->v : &inputs->bias;
    if (!of->base)
        return true;
    *made = *of;
    made->base = malloc(of->bytes + 1);
    if (!made->base)
        return false;
    memcpy(made->base, of->base, of->bytes);
    made->at = made->base + ((unsigned char *)of->at - of->base);
    int64_t count[3] = {problem->batch, keys ? problem->heads_kv : problem->heads_q, 0}, place[3];
    for (place[0] = 0; place[0] < count[0]; place[0]++) {
        const int64_t b = place[0];
        count[2] = keys ? layout_keys(layout, b) : layout_rows(layout, b);
        for (place[1] = 0; place[1] < count[1]; place[1]++)
            for (place[2] = 0; place[2] < count[2]; place[2]++) {
                const int64_t h = place[1], i = place[2];
                int64_t columns = tensor == 'v' ? problem->dim_v : problem->dim, step = 1, at;
                if (tensor == 'b') {
                    at = b * problem->stride_bias[0] + h * problem->stride_bias[1] + i * problem->stride_bias[2];
                    columns = layout_keys(layout, b);
                    step = problem->stride_bias[3];
                } else {
                    at = tensor == 'q'   ? layout_row_at(layout, problem->stride_q, b, h, i)
                         : tensor == 'k' ? layout_key_at(layout, problem->stride_k, b, h, i)
                                         : layout_key_at(layout, problem->stride_v, b, h, i);
                }
                for (int64_t d = 0; d < columns && is_another(kind, place, count); d++)
                    if (isfinite(element_load(made->at, of->dtype, at + d * step)))
                        element_store(made->at, of->dtype, at + d * step,
                                      random_normal(random_bits(seed, STREAM_VALUE, (uint64_t)(at + d * step))));
            }
    }
    return true;
}

static float *change_heads(const float *of, int64_t count)
{
    float *made = of ? malloc((size_t)count * sizeof *made + 1) : NULL;
    for (int64_t n = 0; made && n < count; n++)
        made[n] = isfinite(of[n]) ? 0.5f * of[n] + 0.125f : 0;
    return made;
}

bool same_after_another(struct subject subject, const struct inputs *inputs, const struct outputs *outputs, uint64_t seed,
                        char *why, size_t why_size)
{
    const attest_problem *problem = &inputs->problem;
    const uint64_t bits = random_bits(seed, STREAM_PART, 0);
    const int part = (int)(bits % PARTS), kind = part == PART_ALL ? ROWS_ALL : (int)(bits / PARTS % ROW_KINDS);
    struct inputs before = *inputs;
    struct outputs again = {0};
    struct buffer q = {0}, k = {0}, v = {0}, bias = {0};
    float *slopes = NULL, *sinks = NULL;
    int32_t *lengths = NULL;
    bool made = outputs_make(&again, inputs), same = true;
    if (made && (part == PART_Q || part == PART_ALL) && (made = change_buffer(inputs, 'q', kind, seed, &q)))
        before.q = q, inputs_replace(&before, inputs->q.at, q.at);
    if (made && (part == PART_K || part == PART_KEYS || part == PART_ALL) && (made = change_buffer(inputs, 'k', kind, seed, &k)))
        before.k = k, inputs_replace(&before, inputs->k.at, k.at);
    if (made && (part == PART_V || part == PART_KEYS || part == PART_ALL) && (made = change_buffer(inputs, 'v', kind, seed, &v)))
        before.v = v, inputs_replace(&before, inputs->v.at, v.at);
    if (made && (part == PART_BIAS || part == PART_ALL) && (made = change_buffer(inputs, 'b', kind, seed, &bias)) && bias.base)
        before.bias = bias, inputs_replace(&before, inputs->bias.at, bias.at);
    if (part == PART_HEADS || part == PART_ALL) {
        if ((slopes = change_heads(inputs->slopes, inputs->slope_count)))
            before.slopes = slopes, inputs_replace(&before, inputs->slopes, slopes);
        if ((sinks = change_heads(inputs->sinks, problem->heads_q)))
            before.sinks = sinks, inputs_replace(&before, inputs->sinks, sinks);
    }
    if (inputs->lengths && part == PART_LENGTHS && (lengths = malloc((size_t)problem->batch * sizeof *lengths + 1))) {
        for (int64_t b = 0; b < problem->batch; b++)
            lengths[b] = inputs->starts && inputs->starts[b] > inputs->lengths[b] / 2 ? inputs->starts[b] : inputs->lengths[b] / 2;
        before.lengths = lengths, inputs_replace(&before, inputs->lengths, lengths);
    }
    if (made) {
        struct execution execution = subject.run_after(subject.data, &before, inputs, &again);
        char what[256] = "";
        same = execution.end == EXECUTION_DONE &&
               same_bits((struct computed){inputs, outputs}, (struct computed){inputs, &again}, what, sizeof what);
        if (execution.end != EXECUTION_DONE)
            snprintf(why, why_size, "%s, after a call with others of %s in the same memory", execution.sentence, names[part]);
        else if (!same)
            snprintf(
                why, why_size,
                "other bits after a call with others of %s in the same memory: it keeps something in the workspace or in O (%s)",
                names[part], what);
    }
    free(q.base);
    free(k.base);
    free(v.base);
    free(bias.base);
    free(slopes);
    free(sinks);
    free(lengths);
    outputs_free(&again);
    return same;
}

bool same_alone(struct subject subject, const struct inputs *inputs, const struct outputs *outputs, int64_t sequence,
                struct execution *execution, char *what, size_t what_size)
{
    struct inputs alone;
    struct outputs own = {0};
    bool same = true;
    *execution = (struct execution){.end = EXECUTION_REFUSED};
    if (!sequence_alone(inputs, sequence, &alone, what, what_size))
        return true;
    if (outputs_make(&own, &alone))
        *execution = subject.run(subject.data, &alone, &own);
    if (execution->end == EXECUTION_DONE)
        same = same_sequence((struct computed){inputs, outputs}, sequence, (struct computed){&alone, &own}, 0, what, what_size);
    outputs_free(&own);
    inputs_free(&alone);
    return same;
}
