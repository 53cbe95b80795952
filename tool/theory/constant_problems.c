/*
 * constant_problems.c - problems on both sides of the numbers that the kernel's code compares with (see cover_problems.h).
 *
 * A kernel changes its ways at thresholds: from so many rows on, at a multiple of that page size, with more heads than this. The table
 * of fields has levels for those that somebody thought of; the kernel's own are in its machine code (kernel_constants.h). A problem has one
 * size, or the softcap or scale, at or next to such a number, or well beyond it; every size at every number of a comparison comes once
 * before any comes again. The other sizes are small or next to another number, so that conditions on two of them meet. One problem in three is
 * plain, one has a few peculiarities, one has many.
 */
#include "cover_problems.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build/kernel_constants.h"
#include "problem_space.h"
#include "base/random.h"

/* Multiplications of one evaluation by the oracle: of a problem whose number asks for no more, of any, and up to which all rows are judged. */
#define USUAL_WORK    2e5
#define MOST_WORK     4e8
#define ALL_ROWS_WORK 5e7
#define MOST_ELEMENTS 1.2e7

enum { TRIES = 6, SEED_PAIR = 800, SEED_DRAW, SEED_VALUES, SEED_INPUTS };

/* What can be at a number. */
enum target {
    BATCH,
    GROUP,
    HEADS_KV,
    HEADS,
    ROWS,
    KEYS,
    DIM,
    DIM_V,
    PAGE,
    PAGES,
    WINDOW_LEFT,
    WINDOW_RIGHT,
    SIZES,
    SOFTCAP = SIZES,
    SCALE,
    TARGETS
};
static const struct {
    int64_t most, small; /* small: what it is up to when something else is at a number; 0: it is left to the row of levels */
} targets[SIZES] = {
    [BATCH] = {600, 2},     [GROUP] = {128, 2},           [HEADS_KV] = {600, 2},
    [HEADS] = {600, 0},     [ROWS] = {1 << 21, 9},        [KEYS] = {1 << 21, 60},
    [DIM] = {512, 24},      [DIM_V] = {512, 0},           [PAGE] = {1 << 20, 0},
    [PAGES] = {1 << 16, 0}, [WINDOW_LEFT] = {1 << 21, 0}, [WINDOW_RIGHT] = {1 << 21, 0},
};

enum side { AT, BELOW, ABOVE, BEYOND, SIDES };

struct dice {
    uint64_t seed, rolled;
};
static int64_t roll(struct dice *dice, int64_t sides)
{
    return random_below(random_bits(dice->seed, SEED_DRAW, dice->rolled++), sides - 1);
}

static int64_t next_to(struct dice *dice, int64_t constant, enum side side)
{
    int64_t value = side == AT      ? constant
                    : side == BELOW ? constant - 1
                    : side == ABOVE ? constant + 1
                                    : constant + 2 + roll(dice, 30);
    return value > 1 ? value : 1;
}

/* ---- the pairs of a size and a number ---------------------------------------------------------------------------------- */

struct pair {
    uint64_t rank; /* drawn; pairs come in this order */
    int target, constant, side;
};

static int by_rank(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Numbers from `first` on, in the order of the seed. NULL if there is no memory. */
static struct pair *make_pairs(const struct kernel_constants *constants, int first, int end, bool reals, uint64_t seed, int *count)
{
    struct pair *pairs =
        calloc((size_t)((end - first) * SIZES + constants->real_count * (TARGETS - SIZES)) * SIDES + 1, sizeof *pairs);
    *count = 0;
    for (int target = 0; target < TARGETS && pairs; target++)
        for (int n = target < SIZES ? first : 0; n < (target < SIZES ? end : reals ? constants->real_count : 0); n++)
            for (int side = 0; side < SIDES; side++)
                if (target >= SIZES || constants->whole[n] <= targets[target].most) {
                    pairs[*count] = (struct pair){random_bits(seed, SEED_PAIR, (uint64_t)*count), target, n, side};
                    ++*count;
                }
    if (pairs)
        qsort(pairs, (size_t)*count, sizeof *pairs, by_rank);
    return pairs;
}

/* ---- a problem ----------------------------------------------------------------------------------------------------------- */

/* Levels of all fields: `peculiar` of a hundred fields are not at their first. */
static void draw_levels(const struct problem_space *space, struct dice *dice, int peculiar, int row[COVERING_FIELDS])
{
    memset(row, 0, COVERING_FIELDS * sizeof *row);
    for (int f = 0; f < FIELD_COUNT; f++) {
        int level = (int)roll(dice, field_levels(f)), plain = problem_space_plain(space, f);
        bool drawn = f == FIELD_dtype || f == FIELD_lse || roll(dice, 100) < peculiar;
        row[f] = drawn && f != FIELD_special && !space->refused[f][level] ? level : plain;
        for (int g = 0; g < f && row[f] != plain; g++)
            if (!space->covering.agree(space, f, row[f], g, row[g]))
                row[f] = plain;
    }
}

static double work_of(const int64_t size[SIZES])
{
    return 2 * (double)size[BATCH] * (double)size[GROUP] * (double)size[HEADS_KV] * (double)size[ROWS] * (double)(size[KEYS] + 16) *
           (double)(size[DIM] + 8);
}

/* Sizes with one at its number. Those that are not, and make the work too much, become smaller. */
static void draw_sizes(const struct kernel_constants *constants, struct dice *dice, int primary, int64_t value,
                       struct problem_sizes *sizes)
{
    static const int reduced[] = {BATCH, GROUP, HEADS_KV, ROWS, KEYS, DIM};
    int64_t size[SIZES] = {0};
    for (int n = 0; n < SIZES; n++)
        size[n] = targets[n].small ? 1 + roll(dice, targets[n].small) : 0;
    int more = (int)(roll(dice, 2) ? roll(dice, 3) : 3 + roll(dice, 8));
    for (; more > 0 && constants->compared; more--) {
        static const int others[] = {BATCH, GROUP, HEADS_KV, ROWS, KEYS, DIM, DIM_V, PAGE, WINDOW_LEFT, WINDOW_RIGHT};
        int n = others[roll(dice, COUNT_OF(others))];
        int64_t constant = constants->whole[roll(dice, roll(dice, 4) ? constants->compared : constants->whole_count)];
        if (constant <= targets[n].most && constant <= 4096)
            size[n] = next_to(dice, constant, (enum side)roll(dice, SIDES));
    }
    size[primary] = value;
    if (primary == HEADS) { /* a group that divides their number */
        int64_t group = size[GROUP];
        while (value % group)
            group--;
        size[GROUP] = group;
        size[HEADS_KV] = value / group;
    }
    if (primary == PAGES) {
        size[PAGE] = size[PAGE] ? size[PAGE] % 9 + 1 : 1 + roll(dice, 9);
        size[KEYS] = (value - 1) * size[PAGE] + 1 + roll(dice, size[PAGE]);
    }
    if (primary == WINDOW_LEFT || primary == WINDOW_RIGHT) /* rows of which some see less than all, and none sees nothing */
        size[KEYS] = value + 2 + roll(dice, 60);
    for (int tries = 0; tries < 60 && work_of(size) > USUAL_WORK; tries++) {
        int n = reduced[roll(dice, COUNT_OF(reduced))];
        bool fixed = n == primary || (primary == HEADS && (n == GROUP || n == HEADS_KV)) ||
                     (n == KEYS && (primary == PAGES || primary == WINDOW_LEFT || primary == WINDOW_RIGHT));
        if (!fixed)
            size[n] = 1 + size[n] / 4;
    }
    *sizes = (struct problem_sizes){.batch = size[BATCH],
                                    .group = size[GROUP],
                                    .heads_kv = size[HEADS_KV],
                                    .rows = size[ROWS],
                                    .keys = size[KEYS],
                                    .dim = size[DIM],
                                    .dim_v = size[DIM_V],
                                    .page = size[PAGE],
                                    .window_left = size[WINDOW_LEFT],
                                    .window_right = size[WINDOW_RIGHT],
                                    .full = roll(dice, 4) != 0,
                                    .padded = roll(dice, 8) == 0};
}

/* Half of the time a hair beside the number, and half of the others well beside it. */
static float near_real(struct dice *dice, float constant, enum side side)
{
    float step = roll(dice, 2) ? 0x1p-20f : 0.25f * (float)(1 + roll(dice, 8)) / 8;
    return side == AT ? constant : side == BELOW ? constant * (1 - step) : constant * (1 + step);
}

static bool draw_problem(const struct cover_plan *plan, const struct problem_space *space, const struct pair *pair, uint64_t number,
                         struct cover_outcome *outcome)
{
    const struct kernel_constants *constants = plan->constants;
    for (int tries = 0; tries < TRIES; tries++) {
        struct dice dice = {.seed = random_bits(plan->seed, SEED_VALUES, number * TRIES + (uint64_t)tries)};
        struct problem_sizes sizes;
        int row[COVERING_FIELDS], kind = (int)(number % 3);
        draw_levels(space, &dice, kind == 0 ? 0 : kind == 1 ? 12 : 50, row);
        bool real = pair->target >= SIZES;
        draw_sizes(constants, &dice, real ? DIM : pair->target,
                   real ? 1 + roll(&dice, 64) : next_to(&dice, constants->whole[pair->constant], (enum side)pair->side), &sizes);
        sizes.padded = sizes.padded || tries >= TRIES / 2; /* which many kernels of GPUs need */
        if (pair->target == SOFTCAP)
            sizes.softcap = near_real(&dice, constants->real[pair->constant], (enum side)pair->side);
        if (pair->target == SCALE)
            sizes.scale = near_real(&dice, constants->real[pair->constant], (enum side)pair->side);
        if (sizes.page && row[FIELD_packing] & 2) /* keys are paged or packed */
            row[FIELD_packing] &= 1;
        if (sizes.full) {
            row[FIELD_lengths] = 1; /* full */
            row[FIELD_ends] = 0;
        }
        if (problem_space_draw_sized(space, row, random_bits(dice.seed, SEED_DRAW, UINT64_MAX), &sizes, MOST_ELEMENTS,
                                     &outcome->problem, &outcome->contents) &&
            cover_work(&outcome->problem) < MOST_WORK)
            return true;
    }
    return false;
}

/* ---- all of them --------------------------------------------------------------------------------------------------------- */

void cover_constants(const struct cover_plan *plan, struct cover_summary *summary)
{
    enum { OTHERS_EVERY = 4 };
    struct problem_space space;
    int count[2] = {0, 0};
    if (!plan->constants)
        return;
    struct pair *pairs[2] = {
        make_pairs(plan->constants, 0, plan->constants->compared, true, plan->seed, &count[0]),
        make_pairs(plan->constants, plan->constants->compared, plan->constants->whole_count, false, plan->seed + 1, &count[1])};
    bool going = pairs[0] && pairs[1];
    problem_space_make(&space, plan->taker, USUAL_WORK, MOST_WORK);
    for (int n = 0; n < plan->constant_problems && going; n += COVER_JOBS) {
        struct cover_job jobs[COVER_JOBS] = {0};
        int made = 0;
        for (; made < COVER_JOBS && n + made < plan->constant_problems; made++) {
            int number = n + made, which = number % OTHERS_EVERY == OTHERS_EVERY - 1,
                at = which ? number / OTHERS_EVERY : number - number / OTHERS_EVERY;
            struct cover_job *job = &jobs[made];
            if (count[which] == 0)
                continue;
            job->outcome =
                (struct cover_outcome){.part = "constant", .seed = cover_seed(plan->seed, SEED_INPUTS, (uint64_t)number)};
            job->wanted = draw_problem(plan, &space, &pairs[which][at % count[which]], (uint64_t)number, &job->outcome);
            job->choose = job->wanted && cover_work(&job->outcome.problem) > ALL_ROWS_WORK ? cover_choose_rows : NULL;
        }
        progress("correctness: problem %d of %d next to numbers of the kernel", n + 1, plan->constant_problems);
        cover_examine_jobs(plan, jobs, made);
        for (int k = 0; k < made && going; k++) {
            if (!jobs[k].wanted)
                continue;
            summary->rows_judged += jobs[k].judged;
            summary->constant += jobs[k].outcome.verdict == VERDICT_PASS || jobs[k].outcome.verdict == VERDICT_FAIL;
            going = plan->report(plan->data, &jobs[k].outcome);
        }
    }
    free(pairs[0]);
    free(pairs[1]);
}
