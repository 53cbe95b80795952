/*
 * Tests of what keeps timing honest: fresh inputs (timed_inputs.h), and the referee that compares what two kernels wrote. The outputs are
 * those of a kernel of the library, spoilt in the ways in which a kernel that wants to look fast would spoil them.
 */
#include "gates/referee.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/runner.h"
#include "tap.h"

static const char *const problems[] = {
    "fwd:f32:b2:h2:s40:d16:lse",
    "fwd:f16:b1:hq4:hkv2:sq33:skv70:d24:dv8:causal:br",
    "fwd:bf16:b2:h2:sq20:skv90:d16:lens:lse",
    "fwd:f32:b3:h2:s30:d8:varlenq=60:varlenkv=80:causal:lse",
    "fwd:f32:b2:h2:sq40:skv50:d24:qs=-4000,-2000,-50:ks=3400,1700,-34:vs=3203,1601,31:os=-9000,-4500,77",
    "fwd:bf16:b1:h1:sq4:skv300:d8:page=16,40:lens:sink:lse",
};

struct match {
    struct feed feed;
    struct outputs a, b;
};

static bool compute(const struct inputs *inputs, struct outputs *outputs)
{
    struct runner runner;
    char why[512] = "";
    attest_status status = runner_make(&runner, &inputs->problem, NULL, 1, why, sizeof why);
    outputs_poison(outputs);
    if (status == ATTEST_OK) {
        attest_tensors tensors = outputs_tensors(inputs, outputs);
        status = runner_run(&runner, &tensors, why, sizeof why);
        runner_free(&runner);
    }
    return tap_check(status == ATTEST_OK, "%s", why);
}

/* Both outputs right, for set `number`. */
static bool match_make(struct match *match, const char *text, uint64_t number)
{
    attest_problem problem;
    enum exit_code code;
    char why[512] = "";
    *match = (struct match){0};
    if (!tap_check(attest_problem_parse(text, &problem, why, sizeof why) == ATTEST_OK, "%s: %s", text, why) ||
        !tap_check(feed_make(&match->feed, &problem, tap.seed, &code, why, sizeof why), "%s: %s", text, why) ||
        !tap_check(outputs_make(&match->a, &match->feed.inputs) && outputs_make(&match->b, &match->feed.inputs), "out of memory"))
        return false;
    feed_turn(&match->feed, number);
    return compute(&match->feed.inputs, &match->a) && compute(&match->feed.inputs, &match->b);
}

static void match_free(struct match *match)
{
    outputs_free(&match->a);
    outputs_free(&match->b);
    feed_free(&match->feed);
}

static attest_tensors tensors_of(const struct outputs *outputs)
{
    return (attest_tensors){.o = outputs->o.at, .lse = outputs->lse.at};
}

/* A row that sees something; NULL if no row does, which can be where lengths are drawn. */
static void *some_row(struct match *match, struct outputs *outputs, float **lse)
{
    const struct inputs *inputs = &match->feed.inputs;
    const attest_problem *problem = &inputs->problem;
    for (int64_t b = 0; b < problem->batch; b++)
        for (int64_t i = layout_rows(&inputs->layout, b) - 1; i >= 0; i--) {
            int64_t begin, end, h = problem->heads_q - 1;
            layout_visible(&inputs->layout, b, i, &begin, &end);
            if (end <= begin)
                continue;
            *lse = outputs->lse.at ? (float *)outputs->lse.at + layout_row_at(&inputs->layout, problem->stride_lse, b, h, i) : NULL;
            return (char *)outputs->o.at +
                   layout_row_at(&inputs->layout, problem->stride_o, b, h, i) * (int64_t)element_size(problem->dtype_o);
        }
    return NULL;
}

static void expect(struct match *match, uint64_t number, enum ruling ruling, const char *what)
{
    char why[512] = "";
    enum ruling got = referee_compare(&match->feed, number, tensors_of(&match->a), tensors_of(&match->b), why, sizeof why);
    tap_check(got == ruling, "%s: ruling %d, not %d: %s", what, (int)got, (int)ruling, why);
    tap_check(ruling == RULING_RIGHT || *why, "%s: nothing was said", what);
}

/* Sets differ, come back bit by bit, and keep NaN where it is. */
static void test_feed(void)
{
    for (size_t n = 0; n < sizeof problems / sizeof *problems; n++) {
        if (!tap_case("%s", problems[n]))
            continue;
        struct match match;
        if (match_make(&match, problems[n], 0)) {
            struct feed *feed = &match.feed;
            uint64_t first = inputs_digest(&feed->inputs), digests[3];
            unsigned char *copy = malloc(feed->inputs.k.bytes);
            memcpy(copy, feed->inputs.k.base, feed->inputs.k.bytes);
            for (uint64_t set = 1; set <= 3; set++) {
                feed_turn(feed, set);
                digests[set - 1] = inputs_digest(&feed->inputs);
                tap_check(digests[set - 1] != first, "set %d is set 0", (int)set);
            }
            tap_check(digests[0] != digests[1] && digests[1] != digests[2] && digests[0] != digests[2], "two sets are the same");
            size_t size = element_size(feed->inputs.problem.dtype), count = feed->inputs.k.bytes / size;
            int64_t turned = 0, others = 0, numbers = 0;
            for (size_t i = 0; i < count; i++) {
                float old = element_load(copy, feed->inputs.problem.dtype, (int64_t)i);
                float new = element_load(feed->inputs.k.base, feed->inputs.problem.dtype, (int64_t)i);
                turned += old == -new;
                numbers += !isnan(old);
                others += old != new &&old != -new && !(isnan(old) && isnan(new));
            }
            tap_check(others == 0, "%d elements of K changed by more than their sign", (int)others);
            tap_check(turned >= numbers / 3, "only %d of %d signs of K were changed", (int)turned, (int)numbers);
            feed_turn(feed, 2);
            tap_check(inputs_digest(&feed->inputs) == digests[1], "set 2 is not what it was");
            feed_turn(feed, 0);
            tap_check(inputs_digest(&feed->inputs) == first, "set 0 is not what it was");
            free(copy);
        }
        match_free(&match);
    }
}

static void test_compare(void)
{
    for (size_t n = 0; n < sizeof problems / sizeof *problems; n++) {
        if (!tap_case("%s", problems[n]))
            continue;
        struct match match;
        float *lse;
        if (match_make(&match, problems[n], 5)) {
            const attest_problem *problem = &match.feed.inputs.problem;
            size_t row_bytes = (size_t)problem->dim_v * element_size(problem->dtype_o);
            expect(&match, 5, RULING_RIGHT, "two right outputs");
            if (!some_row(&match, &match.a, &lse)) {
                match_free(&match);
                continue;
            }
            memset(some_row(&match, &match.a, &lse), 0, row_bytes);
            expect(&match, 5, RULING_A_WRONG, "a row of zeros");
            compute(&match.feed.inputs, &match.a);
            memset(some_row(&match, &match.b, &lse), 0, row_bytes);
            expect(&match, 5, RULING_B_WRONG, "a row of zeros of B");
            compute(&match.feed.inputs, &match.b);
            memset(some_row(&match, &match.a, &lse), 0xff, row_bytes);
            expect(&match, 5, RULING_A_WRONG, "a row that was never written");
            outputs_poison(&match.a);
            outputs_poison(&match.b);
            expect(&match, 5, RULING_A_WRONG, "neither wrote anything");

            compute(&match.feed.inputs, &match.b);
            feed_turn(&match.feed, 4);
            compute(&match.feed.inputs, &match.a);
            expect(&match, 5, RULING_A_WRONG, "the output of an earlier call");
            feed_turn(&match.feed, 5);
            compute(&match.feed.inputs, &match.a);
            some_row(&match, &match.a, &lse);
            if (lse) {
                *lse += 0.25f + fabsf(*lse) * 0.01f;
                expect(&match, 5, RULING_A_WRONG, "a wrong LSE");
                compute(&match.feed.inputs, &match.a);
            }
            /* The feed has moved on since the call; the referee goes back to the right set by itself. */
            memset(some_row(&match, &match.a, &lse), 0, row_bytes);
            feed_turn(&match.feed, 9);
            expect(&match, 5, RULING_A_WRONG, "a row of zeros, noticed later");
            tap_check(match.feed.number == 5, "the feed is at set %d", (int)match.feed.number);
        }
        match_free(&match);
    }
}

/* What is right to an eighth is for the judge: a precision that is too low. */
static void test_judge(void)
{
    struct match match;
    char why[512] = "";
    if (match_make(&match, "fwd:f32:b1:h2:s130:d32:lse", 3)) {
        const attest_problem *problem = &match.feed.inputs.problem;
        tap_check(referee_judge(&match.feed, 3, tensors_of(&match.a), why, sizeof why) == RULING_RIGHT, "a right output: %s", why);
        int64_t count = problem->heads_q * problem->seq_q * problem->dim_v;
        float *o = match.a.o.at;
        for (int64_t i = 0; i < count; i++)
            o[i] = attest_bf16_to_float(attest_bf16_from_float(o[i]));
        expect(&match, 3, RULING_RIGHT, "an output in bf16");
        tap_check(referee_judge(&match.feed, 3, tensors_of(&match.a), why, sizeof why) == RULING_A_WRONG, "bf16 passed for f32");
        tap_check(referee_judge(&match.feed, 2, tensors_of(&match.b), why, sizeof why) == RULING_A_WRONG, "another set passed");
    }
    match_free(&match);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {{"feed", test_feed}, {"compare", test_compare}, {"judge", test_judge}};
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
