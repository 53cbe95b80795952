/*
 * out_of_range.c - see out_of_range.h.
 */
#include "out_of_range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "data/same_bits.h"

enum { STREAM_RANGE = 1650 };

/* A number above `most`, or below 0: next to it, or far away. */
static int32_t beyond(uint64_t bits, int64_t most, bool above)
{
    const int64_t step = bits % 3 == 0 ? 0 : bits % 3 == 1 ? random_below(bits >> 2, 1000) : INT32_MAX;
    const int64_t value = above ? most + 1 + step : -1 - step;
    return (int32_t)(value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value);
}

static int32_t *copy_numbers(const int32_t *of, int64_t count)
{
    int32_t *made = of ? malloc((size_t)count * sizeof *made + 1) : NULL;
    if (made)
        memcpy(made, of, (size_t)count * sizeof *made);
    return made;
}

/* Numbers of the sequences that are at an end of their range, which goes from 0 to `most`, or to what a sequence has of a packed tensor.
 * Returns how many were changed. */
static int change_numbers(const int32_t *cumulative, int64_t most, int64_t batch, uint64_t seed, int32_t *numbers)
{
    int changed = 0;
    for (int64_t b = 0; b < batch; b++) {
        const uint64_t bits = random_bits(seed, STREAM_RANGE, (uint64_t)b);
        const int64_t own = cumulative && cumulative[b + 1] - cumulative[b] < most ? cumulative[b + 1] - cumulative[b] : most;
        const bool above = numbers[b] == own;
        if (above || numbers[b] == 0) {
            numbers[b] = beyond(bits, own, above);
            changed++;
        }
    }
    return changed;
}

/* The first and the last of cumulative lengths, where they are 0 and the total. */
static int change_ends(const attest_problem *problem, int64_t total, uint64_t seed, int32_t *cumulative)
{
    int changed = 0;
    if (problem->batch > 0 && cumulative[0] == 0)
        cumulative[0] = beyond(random_bits(seed, STREAM_RANGE, 1 << 20), total, false), changed++;
    if (problem->batch > 0 && cumulative[problem->batch] == total)
        cumulative[problem->batch] = beyond(random_bits(seed, STREAM_RANGE, 1 << 21), total, true), changed++;
    return changed;
}

/* No entry of this sequence is a page. */
static void change_pages(const attest_problem *problem, int64_t sequence, uint64_t seed, int32_t *pages)
{
    const int64_t slots = (problem->seq_kv + problem->page_size - 1) / problem->page_size;
    for (int64_t slot = 0; slot < slots; slot++) {
        const uint64_t bits = random_bits(seed, STREAM_RANGE, (uint64_t)slot + (1 << 22));
        pages[sequence * problem->stride_page_table + slot] = beyond(bits >> 1, problem->page_count - 1, bits & 1);
    }
}

bool right_out_of_range(struct subject subject, const struct inputs *inputs, const struct outputs *outputs, uint64_t seed,
                        struct execution *execution, char *why, size_t why_size)
{
    const attest_problem *problem = &inputs->problem;
    struct inputs wrong = *inputs;
    struct outputs again = {0};
    int64_t left_out = -1; /* the sequence whose pages are none */
    int changed = 0;
    *execution = (struct execution){.end = EXECUTION_REFUSED};
    wrong.lengths = copy_numbers(inputs->lengths, problem->batch);
    wrong.cu_q = copy_numbers(inputs->cu_q, problem->batch + 1);
    wrong.cu_kv = copy_numbers(inputs->cu_kv, problem->batch + 1);
    wrong.pages = copy_numbers(inputs->pages, inputs->page_entries);
    wrong.rows = copy_numbers(inputs->rows, problem->batch);
    wrong.starts = copy_numbers(inputs->starts, problem->batch);
    if (wrong.lengths)
        changed += change_numbers(inputs->cu_kv, problem->seq_kv, problem->batch, seed, wrong.lengths);
    if (wrong.rows)
        changed += change_numbers(inputs->cu_q, problem->seq_q, problem->batch, seed + 2, wrong.rows);
    /* The range of a first key ends with the keys there are: with lengths, at those. */
    if (wrong.starts && !inputs->lengths)
        changed += change_numbers(inputs->cu_kv, problem->seq_kv, problem->batch, seed + 3, wrong.starts);
    const bool apart = inputs->tensors.cu_seqlens_q != inputs->tensors.cu_seqlens_kv; /* one array has two ranges */
    if (wrong.cu_q && apart)
        changed += change_ends(problem, problem->total_q, seed, wrong.cu_q);
    if (wrong.cu_kv && apart)
        changed += change_ends(problem, problem->total_kv, seed + 1, wrong.cu_kv);
    if (wrong.pages && problem->batch > 0 && problem->seq_kv > 0) {
        left_out = random_below(random_bits(seed, STREAM_RANGE, UINT64_MAX), problem->batch - 1);
        change_pages(problem, left_out, seed, wrong.pages);
        changed++;
    }
    inputs_replace(&wrong, inputs->lengths, wrong.lengths);
    if (apart) {
        inputs_replace(&wrong, inputs->cu_q, wrong.cu_q);
        inputs_replace(&wrong, inputs->cu_kv, wrong.cu_kv);
    }
    inputs_replace(&wrong, inputs->pages, wrong.pages);
    inputs_replace(&wrong, inputs->rows, wrong.rows);
    inputs_replace(&wrong, inputs->starts, wrong.starts);
    bool right = true;
    if (changed && outputs_make(&again, inputs)) {
        char what[256] = "";
        *execution = subject.run(subject.data, &wrong, &again);
        for (int64_t b = 0; b < problem->batch && execution->end == EXECUTION_DONE && right; b++)
            right = b == left_out ||
                    same_sequence((struct computed){inputs, outputs}, b, (struct computed){inputs, &again}, b, what, sizeof what);
        if (!right)
            snprintf(why, why_size,
                     "other bits where lengths or pages on the device are out of range, which are to be clamped (%s)", what);
    }
    free(wrong.lengths);
    free(wrong.cu_q);
    free(wrong.cu_kv);
    free(wrong.pages);
    free(wrong.rows);
    free(wrong.starts);
    outputs_free(&again);
    return right;
}
