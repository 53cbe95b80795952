/*
 * referee.c - whether what was timed was also computed (see referee.h).
 *
 * Every timed call of both kernels of a pair works on inputs that neither has seen before, into poisoned outputs, and all of what
 * they wrote is compared. A row of O (a vector) must agree within an eighth of its length: no honest rounding comes near that, in
 * any type, and every stale, skipped, half-finished or made-up row is far beyond. That is cheap enough to be done always. Subtler
 * errors, such as a lower precision when it is timed, are for the judge, who sees a sample that the kernel cannot foresee.
 */
#include "referee.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/judge.h"
#include "data/shape_variants.h"
#include "base/random.h"

#define ROW_ROOM    0.125 /* of the length of a row */
#define LSE_ROOM    0.05
#define JUDGED_ROWS (3 * JUDGE_BLOCK) /* the last block of rows, the first, and one at random */

/* One row of an output, wherever it lies. */
struct row {
    const void *o;
    const float *lse; /* or NULL */
};

/* Where a row is, and how far from it another may be: rows that nearly cancel say nothing about relative errors, so the room is at
 * least that of half a mean row of the head. */
struct place_of_row {
    int64_t b, h, i;
    double room;
};

static struct row row_of(const struct inputs *inputs, const struct place_of_row *place, attest_tensors outputs)
{
    const attest_problem *problem = &inputs->problem;
    int64_t at = layout_row_at(&inputs->layout, problem->stride_o, place->b, place->h, place->i);
    struct row row = {(const char *)outputs.o + at * (int64_t)element_size(problem->dtype_o), NULL};
    if (outputs.lse)
        row.lse = outputs.lse + layout_row_at(&inputs->layout, problem->stride_lse, place->b, place->h, place->i);
    return row;
}

/* The distance of two rows, and the length of the second. */
static double distance(const attest_problem *problem, struct row a, struct row b, double *length)
{
    double square = 0, own = 0;
    for (int64_t d = 0; d < problem->dim_v; d++) {
        double x = (double)element_load(a.o, problem->dtype_o, d), y = (double)element_load(b.o, problem->dtype_o, d);
        square += (x - y) * (x - y);
        own += y * y;
    }
    *length = sqrt(own);
    return sqrt(square);
}

/* Negated, so that a NaN is a difference. */
static bool lse_differs(struct row a, struct row b)
{
    return a.lse && *a.lse != *b.lse && !(fabsf(*a.lse - *b.lse) <= LSE_ROOM + 1e-3f * fabsf(*b.lse));
}

/* True if a row differs; the first one is at `place`. The arrays have room for the rows of a head. */
static bool find_difference(const struct inputs *inputs, attest_tensors a, attest_tensors b, double *distances, double *lengths,
                            struct place_of_row *place)
{
    const attest_problem *problem = &inputs->problem;
    for (place->b = 0; place->b < problem->batch; place->b++)
        for (place->h = 0; place->h < problem->heads_q; place->h++) {
            int64_t rows = layout_rows(&inputs->layout, place->b);
            double squares = 0;
            for (place->i = 0; place->i < rows; place->i++) {
                struct row row_a = row_of(inputs, place, a), row_b = row_of(inputs, place, b);
                distances[place->i] = lse_differs(row_a, row_b) ? NAN : distance(problem, row_a, row_b, &lengths[place->i]);
                squares += lengths[place->i] * lengths[place->i];
            }
            double mean = rows > 0 && isfinite(squares) ? sqrt(squares / (double)rows) : 0;
            for (place->i = 0; place->i < rows; place->i++) {
                place->room = ROW_ROOM * fmax(lengths[place->i], 0.5 * mean);
                if (!(distances[place->i] <= place->room))
                    return true;
            }
        }
    return false;
}

/* The oracle's row, in the type that kernels write. `o` has room for a row. */
static bool oracle_row(const struct inputs *inputs, const struct place_of_row *place, void *o, float *lse)
{
    attest_problem problem = inputs->problem;
    attest_context *context = NULL;
    problem.flags |= ATTEST_LSE;
    attest_problem packed = problem;
    attest_problem_pack(&packed);
    memcpy(problem.stride_o, packed.stride_o, sizeof problem.stride_o);
    memcpy(problem.stride_lse, packed.stride_lse, sizeof problem.stride_lse);
    struct layout layout = inputs->layout;
    layout.problem = &problem;
    int64_t first, count = 0, lse_count = 0, number = (place->b * problem.heads_q + place->h) * problem.seq_q + place->i;
    bool good = attest_problem_extent(&packed, 'o', &first, &count) == ATTEST_OK &&
                attest_problem_extent(&packed, 'l', &first, &lse_count) == ATTEST_OK &&
                attest_context_create_on("cpu", &context) == ATTEST_OK;
    double *exact = calloc((size_t)count + 1, sizeof *exact), *exact_lse = calloc((size_t)lse_count + 1, sizeof *exact_lse);
    good = good && exact && exact_lse &&
           attest_reference(context, &problem, &inputs->tensors, ATTEST_EXACT, number, number + 1, exact, exact_lse) == ATTEST_OK;
    int64_t at = layout_row_at(&layout, problem.stride_o, place->b, place->h, place->i);
    for (int64_t d = 0; good && d < problem.dim_v; d++)
        element_store(o, problem.dtype_o, d, (float)exact[at + d]);
    if (good)
        *lse = (float)exact_lse[layout_row_at(&layout, problem.stride_lse, place->b, place->h, place->i)];
    free(exact);
    free(exact_lse);
    attest_context_destroy(context);
    return good;
}

/* Two rows differ: the oracle says which is wrong. */
static enum ruling rule(const struct inputs *inputs, const struct place_of_row *place, attest_tensors a, attest_tensors b,
                        char *what, size_t what_size)
{
    const attest_problem *problem = &inputs->problem;
    float exact[512], lse; /* dim_v is at most 512 */
    double length;
    if (!oracle_row(inputs, place, exact, &lse)) {
        snprintf(what, what_size, "the oracle could not say which of two different outputs is right");
        return RULING_LACKING;
    }
    struct row right = {exact, a.lse ? &lse : NULL}, row_a = row_of(inputs, place, a), row_b = row_of(inputs, place, b);
    /* They are a whole room apart, so at least one of them is half a room away from the truth. */
    bool a_right = distance(problem, row_a, right, &length) <= place->room / 2 && !lse_differs(row_a, right);
    struct row wrong = a_right ? row_b : row_a;
    snprintf(what, what_size, "row %lld of head %lld of sequence %lld begins with %g, and must begin with %g", (long long)place->i,
             (long long)place->h, (long long)place->b, (double)element_load(wrong.o, problem->dtype_o, 0),
             (double)element_load(exact, problem->dtype_o, 0));
    return a_right ? RULING_B_WRONG : RULING_A_WRONG;
}

enum ruling referee_compare(struct feed *feed, uint64_t number, attest_tensors a, attest_tensors b, char *what, size_t what_size)
{
    size_t rows = (size_t)feed->inputs.problem.seq_q + 1;
    double *room = calloc(2 * rows, sizeof *room);
    struct place_of_row place;
    if (!room) {
        snprintf(what, what_size, "out of memory to compare outputs");
        return RULING_LACKING;
    }
    bool differ = find_difference(&feed->inputs, a, b, room, room + rows, &place);
    free(room);
    if (!differ)
        return RULING_RIGHT;
    feed_turn(feed, number);
    return rule(&feed->inputs, &place, a, b, what, what_size);
}

enum ruling referee_judge(struct feed *feed, uint64_t number, attest_tensors outputs, char *what, size_t what_size)
{
    return referee_judge_with(1, feed, number, outputs, what, what_size);
}

enum ruling referee_judge_with(int threads, struct feed *feed, uint64_t number, attest_tensors outputs, char *what,
                               size_t what_size)
{
    const attest_problem *problem = &feed->inputs.problem;
    struct judge judge = {0};
    struct finding finding = {0};
    feed_turn(feed, number);
    if (!judge_make(&judge, &feed->inputs, random_bits(feed->seed, number, 7), JUDGED_ROWS, threads, what, what_size))
        return RULING_LACKING;
    judge_output(&judge, judge.row_count, outputs.o, problem->stride_o, outputs.lse, problem->stride_lse, &finding);
    judge_free(&judge);
    if (finding.accepted)
        return RULING_RIGHT;
    snprintf(what, what_size, "%s", finding.what);
    return RULING_A_WRONG;
}

/* One neighbour. What a kernel refuses is not its business. */
static enum ruling check_neighbour(struct executor *executor, int threads, const attest_problem *problem, uint64_t seed,
                                   int *checked, char *what, size_t what_size)
{
    struct feed feed = {0};
    struct execution execution;
    enum exit_code code = EXIT_INTERNAL;
    enum ruling ruling = RULING_LACKING;
    char text[ATTEST_PROBLEM_TEXT] = "", why[512] = "";
    int slot = 0;
    attest_problem_print(problem, text, sizeof text);
    if (!feed_make(&feed, problem, seed, &code, why, sizeof why)) {
        snprintf(what, what_size, "%.200s: %.300s", text, why);
    } else if (!executor_load(executor, slot, &feed.inputs, &execution) && execution.end == EXECUTION_REFUSED) {
        ruling = RULING_RIGHT;
    } else {
        if (execution.end == EXECUTION_DONE)
            execution = executor_run(executor, &slot, 1, EXECUTOR_DRAWN);
        if (execution.end != EXECUTION_DONE) {
            snprintf(what, what_size, "%.200s: %.400s", text, execution.sentence);
            ruling = execution.end == EXECUTION_LACKING ? RULING_LACKING : RULING_A_WRONG;
        } else {
            ruling = referee_judge_with(threads, &feed, 0, executor_outputs(executor, slot), why, sizeof why);
            snprintf(what, what_size, "%.200s: %.400s", text, why);
            ++*checked;
        }
    }
    feed_free(&feed);
    return ruling;
}

enum ruling referee_neighbours(struct executor *executor, int threads, const attest_problem *problem, uint64_t seed, int *checked,
                               char *what, size_t what_size)
{
    enum ruling ruling = RULING_RIGHT;
    for (int i = 0; i < NEXT_DOOR && ruling == RULING_RIGHT; i++) {
        attest_problem neighbour;
        if (neighbour_next_door(problem, i, &neighbour))
            ruling = check_neighbour(executor, threads, &neighbour, random_bits(seed, 11, (uint64_t)i), checked, what, what_size);
    }
    return ruling;
}
