/*
 * large_sizes.c - problems of the sizes that users run (see cover_problems.h).
 *
 * A kernel that is right on a thousand rows can be wrong on a million. The table has a line for every size that can wrap round: rows and
 * keys past 8k, 32k, 64k and 1M, sequences and heads past 256 and 64k, products of them, pages by the ten thousand, K and V of more bytes than caches hold,
 * where kernels change their ways; the other sizes are small, so that a problem costs about as much as a second of one core at most. Everything else is drawn as for the covering array: masks, modifiers, layouts,
 * packing, contents.
 *
 * All rows are judged where that is affordable. Where it is not, those are that lie on either side of a power of two, of their number
 * as well as of their head's and their sequence's, the first and the last, and others at random.
 */
#include "cover_problems.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem_space.h"
#include "base/random.h"

/* Multiplications of one evaluation by the oracle up to which all rows are judged, and what the chosen ones may cost otherwise. */
#define ALL_ROWS_WORK 1e8
#define CHOSEN_WORK   3e7

#define MOST_ELEMENTS 2.5e7
#define USUAL_WORK    1.5e5
#define MOST_WORK     4e6

enum {
    TRIES = 60,
    SEED_LARGE = 700,
    SEED_SIZES,
    SEED_VALUES,
    SEED_INPUTS,
    SEED_ROWS,
    SEED_HEADS,
    SEED_DECLARED,
    WRAP_LEAST = 3,
    WRAP_MOST = 31
};

/* What a size is drawn from; {0, 0}: as the row of the array says. */
struct range {
    int64_t low, high;
};

static const struct large {
    const char *name;
    struct range batch, group, heads_kv, rows, keys, dim, page, window_left;
    /* Not 0: a problem in every dtype that the kernel takes, since each may have a way of its own, and in each of so many parts of the range
     * of groups: a tail may be wrong for one number of rows. */
    int parts;
    /* Every row sees one key of some, all of about the same weight, and each shows in one column of O: a key that is lost, or counted
     * twice, is noticed wherever it is. */
    bool even;
} larges[] = {
    {"rows past 8k", {1, 2}, {1, 3}, {1, 2}, {8193, 9000}, {2, 40}, {4, 16}, {0, 0}, {0, 0}, 0, false},
    {"rows past 32k", {1, 1}, {1, 2}, {1, 1}, {32769, 60000}, {2, 12}, {2, 8}, {0, 0}, {0, 0}, 0, false},
    {"rows past 64k", {1, 1}, {1, 2}, {1, 1}, {65560, 66000}, {2, 12}, {2, 8}, {0, 0}, {0, 0}, 0, false},
    {"rows past 1M", {1, 1}, {1, 1}, {1, 1}, {1048600, 1048800}, {2, 3}, {1, 4}, {0, 0}, {0, 0}, 0, false},
    {"rows of a group past 64k", {1, 1}, {47, 100}, {1, 2}, {1400, 2000}, {2, 12}, {2, 8}, {0, 0}, {0, 0}, 0, false},
    {"rows of a group past 1M", {1, 1}, {101, 128}, {1, 1}, {10400, 10500}, {2, 2}, {1, 2}, {0, 0}, {0, 0}, 0, false},
    {"rows of a batch past 64k", {33, 70}, {1, 3}, {1, 2}, {1990, 2500}, {2, 5}, {1, 4}, {0, 0}, {0, 0}, 0, false},
    {"keys past 8k", {1, 3}, {3, 7}, {1, 3}, {1, 8}, {8193, 16384}, {8, 64}, {0, 0}, {0, 0}, 0, false},
    {"keys past 32k, few rows", {1, 2}, {1, 7}, {1, 1}, {1, 2}, {32769, 60000}, {8, 32}, {0, 0}, {0, 0}, 0, false},
    {"keys past 32k, many rows", {1, 1}, {1, 3}, {1, 1}, {9, 60}, {32769, 60000}, {4, 16}, {0, 0}, {0, 0}, 0, false},
    {"keys past 64k, many rows", {1, 1}, {1, 3}, {1, 1}, {9, 60}, {65537, 70000}, {4, 16}, {0, 0}, {0, 0}, 0, false},
    {"keys past 64k", {1, 1}, {1, 7}, {1, 1}, {1, 4}, {65537, 66000}, {8, 32}, {0, 0}, {0, 0}, 0, false},
    {"keys past 1M", {1, 1}, {1, 2}, {1, 1}, {1, 1}, {1048600, 1049000}, {4, 8}, {0, 0}, {0, 0}, 0, false},
    {"sequences past 256", {257, 600}, {1, 7}, {1, 3}, {1, 4}, {1, 40}, {4, 16}, {0, 0}, {0, 0}, 0, false},
    {"sequences past 64k", {65560, 66000}, {1, 1}, {1, 1}, {1, 1}, {1, 3}, {1, 4}, {0, 0}, {0, 0}, 0, false},
    {"heads past 256", {1, 3}, {1, 7}, {257, 600}, {1, 4}, {1, 40}, {4, 16}, {0, 0}, {0, 0}, 0, false},
    {"heads past 64k", {1, 1}, {1, 1}, {65560, 66000}, {1, 1}, {1, 3}, {1, 4}, {0, 0}, {0, 0}, 0, false},
    {"heads of a batch past 64k", {257, 270}, {1, 1}, {257, 270}, {1, 1}, {1, 3}, {1, 4}, {0, 0}, {0, 0}, 0, false},
    {"sequences and heads past 64", {67, 80}, {1, 7}, {67, 80}, {1, 3}, {2, 8}, {1, 8}, {0, 0}, {0, 0}, 0, false},
    {"rows and keys past 8k", {1, 1}, {1, 1}, {1, 1}, {8193, 9000}, {8193, 9000}, {4, 8}, {0, 0}, {1001, 2000}, 0, false},
    {"many pages", {1, 3}, {1, 7}, {1, 2}, {1, 4}, {16385, 70000}, {4, 16}, {1, 7}, {0, 0}, 0, false},
    {"pages that are no power of two", {2, 9}, {3, 7}, {1, 3}, {1, 3}, {4097, 9000}, {8, 32}, {97, 300}, {0, 0}, 0, false},
    {"large pages", {1, 3}, {3, 7}, {1, 2}, {1, 8}, {2049, 40000}, {8, 32}, {513, 1500}, {0, 0}, 0, false},
    {"K and V past the caches, few rows", {1, 1}, {1, 8}, {1, 2}, {1, 1}, {27000, 31000}, {128, 160}, {0, 0}, {0, 0}, 4, false},
    {"K and V past the caches, some rows", {1, 1}, {4, 16}, {2, 3}, {2, 5}, {27000, 31000}, {128, 160}, {0, 0}, {0, 0}, 2, false},
    {"K and V past the caches, many rows", {1, 1}, {1, 2}, {4, 8}, {33, 96}, {6300, 9000}, {112, 144}, {0, 0}, {0, 0}, 1, false},
    {"K and V past the caches, in a batch", {3, 6}, {4, 8}, {1, 1}, {1, 1}, {9000, 11000}, {128, 144}, {0, 0}, {0, 0}, 1, false},
    {"a batch of long sequences", {9, 40}, {3, 7}, {1, 2}, {1, 2}, {1025, 4096}, {8, 32}, {0, 0}, {0, 0}, 0, false},
    {"keys past 8k, all of one weight", {1, 2}, {1, 3}, {1, 2}, {16, 80}, {8193, 20000}, {32, 64}, {0, 0}, {0, 0}, 1, true},
    {"keys past 32k, all of one weight", {1, 1}, {8, 16}, {1, 1}, {1, 3}, {32769, 70000}, {32, 64}, {0, 0}, {0, 0}, 1, true},
    {"keys past 64k, all of one weight", {1, 1}, {1, 2}, {1, 1}, {16, 20}, {65537, 132000}, {32, 64}, {0, 0}, {0, 0}, 1, true},
};

static int64_t draw(uint64_t seed, uint64_t stream, uint64_t index, struct range range)
{
    uint64_t bits = random_bits(seed, stream, index);
    return range.high == 0 ? 0 : bits % 4 == 0 ? range.low : range.low + random_below(bits >> 2, range.high - range.low);
}

/* One of the parts of a range that are about as large. */
static struct range part_of(struct range range, int part, int parts)
{
    const int64_t span = range.high - range.low + 1;
    return (struct range){range.low + span * part / parts, range.low + span * (part + 1) / parts - 1};
}

static struct problem_sizes draw_sizes(const struct large *large, int part, uint64_t seed, int tries)
{
    static const int64_t usual_dims[] = {64, 128, 32}; /* for kernels that take no others */
    const struct range group = large->parts ? part_of(large->group, part, large->parts) : large->group;
    const struct range *ranges[] = {&large->batch, &group,      &large->heads_kv, &large->rows,
                                    &large->keys,  &large->dim, &large->page,     &large->window_left};
    int64_t drawn[COUNT_OF(ranges)];
    for (int n = 0; n < COUNT_OF(ranges); n++)
        drawn[n] = draw(seed, SEED_SIZES, (uint64_t)n, *ranges[n]);
    if (tries > TRIES * 2 / 3)
        drawn[5] = usual_dims[tries % COUNT_OF(usual_dims)];
    bool full = seed % 4 != 0 || large->batch.high < 9 || large->batch.high > 1000;
    return (struct problem_sizes){.batch = drawn[0],
                                  .group = drawn[1],
                                  .heads_kv = drawn[2],
                                  .rows = drawn[3],
                                  .keys = drawn[4],
                                  .dim = drawn[5],
                                  .dim_v = large->parts ? draw(seed, SEED_SIZES, COUNT_OF(ranges), large->dim) : 0,
                                  .page = drawn[6],
                                  .window_left = drawn[7],
                                  .full = full};
}

/* ---- which rows ------------------------------------------------------------------------------------------------------- */

struct picks {
    const struct inputs *inputs;
    int64_t *numbers, count, most;
};

static void pick(struct picks *picks, int64_t b, int64_t h, int64_t i)
{
    const attest_problem *problem = &picks->inputs->problem;
    if (b < 0 || b >= problem->batch || h < 0 || h >= problem->heads_q || i < 0 || i >= layout_rows(&picks->inputs->layout, b) ||
        picks->count == picks->most)
        return;
    picks->numbers[picks->count++] = (b * problem->heads_q + h) * problem->seq_q + i;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* A row of every head of every sequence, in rounds, as far as `most` goes. */
static void pick_heads(struct picks *picks, uint64_t seed, int64_t most)
{
    const attest_problem *problem = &picks->inputs->problem;
    int64_t heads = problem->batch * problem->heads_q;
    for (int64_t n = 0; heads > 0 && n < most; n++) {
        int64_t b = n % heads / problem->heads_q, rows = layout_rows(&picks->inputs->layout, b);
        pick(picks, b, n % problem->heads_q, rows > 0 ? random_below(random_bits(seed, SEED_HEADS, (uint64_t)n), rows - 1) : 0);
    }
}

int64_t *cover_choose_rows(const struct inputs *inputs, uint64_t seed, int64_t *count)
{
    const attest_problem *problem = &inputs->problem;
    double row_work = (double)(problem->seq_kv + 16) * (double)(problem->dim + problem->dim_v + 8);
    const int64_t extents[3] = {problem->batch, problem->heads_q, problem->seq_q};
    struct picks picks = {.inputs = inputs, .most = (int64_t)(CHOSEN_WORK / row_work) + 8};
    uint64_t rolled = 0;
    picks.numbers = malloc((size_t)picks.most * sizeof *picks.numbers);
    if (picks.numbers)
        pick_heads(&picks, seed, picks.most / 2);
    for (int round = 0; round < 4 && picks.numbers; round++)
        for (int which = 2; which >= 0; which--)
            for (int power = WRAP_MOST; power >= WRAP_LEAST - 2; power--)
                for (int side = -1; side <= 1; side++) {
                    int64_t at[3], wrap = power >= WRAP_LEAST       ? (INT64_C(1) << power) + side
                                          : power == WRAP_LEAST - 1 ? 0
                                                                    : extents[which] - 1;
                    for (int n = 0; n < 3; n++)
                        at[n] = random_below(random_bits(seed, SEED_ROWS, rolled++), extents[n] > 0 ? extents[n] - 1 : 0);
                    if (wrap >= extents[which])
                        continue;
                    at[which] = wrap;
                    pick(&picks, at[0], at[1], at[2]);
                }
    while (picks.numbers && rolled < 4000 && picks.count < picks.most) {
        int64_t at[3];
        for (int n = 0; n < 3; n++)
            at[n] = random_below(random_bits(seed, SEED_ROWS, rolled++), extents[n] > 0 ? extents[n] - 1 : 0);
        pick(&picks, at[0], at[1], at[2]);
    }
    if (!picks.numbers)
        return NULL;
    qsort(picks.numbers, (size_t)picks.count, sizeof *picks.numbers, by_number);
    *count = 0;
    for (int64_t n = 0; n < picks.count; n++)
        if (*count == 0 || picks.numbers[n] != picks.numbers[*count - 1])
            picks.numbers[(*count)++] = picks.numbers[n];
    return picks.numbers;
}

/* ---- the problems ----------------------------------------------------------------------------------------------------- */

double cover_work(const attest_problem *problem)
{
    int64_t seen = problem->seq_kv;
    if (problem->flags & ATTEST_WINDOW_LEFT && problem->flags & (ATTEST_CAUSAL | ATTEST_WINDOW_RIGHT)) {
        double width = (double)problem->window_left + (problem->flags & ATTEST_CAUSAL ? 0 : (double)problem->window_right) + 1;
        seen = width < (double)seen ? (int64_t)width : seen;
    }
    return (double)problem->batch * (double)problem->heads_q * (double)problem->seq_q * (double)(seen + 16) *
           (double)(problem->dim + problem->dim_v + 8);
}

/* What a kernel is asked to compute: no more than it does in a second or two of one core. */
static bool is_affordable(const attest_problem *problem)
{
    return cover_work(problem) < 1.5e9;
}

/* Whether the last row and one before see keys by their places, and so the wraps of this problem can show: at least one key, and where
 * there are to be `most` of them, half. */
static bool shows_its_end(const attest_problem *problem, bool most)
{
    int seen = 0;
    attest_problem one = *problem;
    if (one.flags & ATTEST_ROW_OFFSETS) /* which are drawn later, and are like this for many sequences */
        one.flags |= ATTEST_BOTTOM_RIGHT;
    one.flags &= ~(ATTEST_VARLEN_Q | ATTEST_VARLEN_KV | ATTEST_KV_LENGTHS | ATTEST_PAGED | ATTEST_ROW_OFFSETS | ATTEST_KV_STARTS |
                   ATTEST_Q_LENGTHS);
    struct layout layout = {.problem = &one};
    for (int n = 0; n < 2; n++) {
        int64_t begin, end;
        layout_visible(&layout, 0, (problem->seq_q - 1) * (2 - n) / 2, &begin, &end);
        seen += end - begin > (most ? problem->seq_kv / 2 : 0);
    }
    return seen == 2;
}

/* A row that was drawn in vain is tried again with fewer peculiarities: those that hide most rows first, then those that make tensors
 * large. */
static void simplify(int row[COVERING_FIELDS], int tries)
{
    static const int hiding[] = {FIELD_window_left, FIELD_window_right, FIELD_mask, FIELD_bytes, FIELD_starts, FIELD_counts},
                     wide[] = {FIELD_dim_v, FIELD_bias_type, FIELD_bias_layout, FIELD_bias, FIELD_layout_q, FIELD_layout_o};
    for (int n = 0; n < COUNT_OF(hiding) && tries > TRIES / 4; n++)
        row[hiding[n]] = 0;
    for (int n = 0; n < COUNT_OF(wide) && tries > TRIES / 2; n++)
        row[wide[n]] = 0;
}

/* Levels of fields for a line whose keys all have about the same weight. */
static void make_even(int row[COVERING_FIELDS])
{
    static const int off[] = {FIELD_window_left, FIELD_window_right, FIELD_mask,  FIELD_softcap, FIELD_scale,
                              FIELD_alibi,       FIELD_bias_type,    FIELD_sink,  FIELD_shared,  FIELD_pages,
                              FIELD_bytes,       FIELD_starts,       FIELD_counts};
    for (int n = 0; n < COUNT_OF(off); n++)
        row[off[n]] = 0;
    row[FIELD_qk] = QK_ONE_ROW;
    row[FIELD_v] = V_ONE_COLUMN;
    row[FIELD_lse] = 1;
}

/* A problem of a line of the table. */
struct turn {
    int line, round, part;
    int dtype; /* a level of its field, or -1: any */
};

static uint64_t turn_number(const struct cover_plan *plan, struct turn turn)
{
    return (uint64_t)(((turn.part * COVERING_LEVELS + turn.dtype + 1) * plan->large + turn.round) * COUNT_OF(larges) + turn.line);
}

static bool draw_large(const struct cover_plan *plan, const struct problem_space *space, struct covering *covering,
                       struct turn turn, struct cover_outcome *outcome)
{
    const int dtype = turn.dtype;
    for (int tries = 0; tries < TRIES; tries++) {
        uint64_t index = turn_number(plan, turn) * TRIES + (uint64_t)tries;
        struct problem_sizes sizes = draw_sizes(&larges[turn.line], turn.part, random_bits(plan->seed, SEED_LARGE, index), tries);
        int row[COVERING_FIELDS];
        if (!covering_next(covering, row))
            return false;
        if (sizes.page) {
            row[FIELD_packing] &= 1; /* keys are paged or packed */
            row[FIELD_page] = row[FIELD_page] ? row[FIELD_page] : 1;
        }
        row[FIELD_special] = 0;
        if (row[FIELD_shared] == SHARED_CU_SEQLENS) /* sequences would have as few keys as rows, or as few rows as keys */
            row[FIELD_shared] = 0;
        if (row[FIELD_alibi] && row[FIELD_sink]) /* far from all keys the sink has all the weight, and nothing shows */
            row[tries % 2 ? FIELD_alibi : FIELD_sink] = 0;
        simplify(row, tries);
        if (dtype >= 0) {
            row[FIELD_dtype] = dtype;
            row[FIELD_dtype_o] = row[FIELD_bias_type] = 0;
        }
        if (larges[turn.line].even)
            make_even(row);
        if (sizes.full || larges[turn.line].even) {
            row[FIELD_lengths] = 1; /* full */
            row[FIELD_ends] = 0;
        }
        if (problem_space_draw_sized(space, row, random_bits(plan->seed, SEED_VALUES, index), &sizes, MOST_ELEMENTS,
                                     &outcome->problem, &outcome->contents) &&
            is_affordable(&outcome->problem) &&
            shows_its_end(&outcome->problem, !sizes.window_left && (turn.line + turn.round) % 4 != 0))
            return true;
    }
    return false;
}

static bool examine_and_count(const struct cover_plan *plan, struct cover_summary *summary, struct cover_outcome *outcome,
                              row_chooser *choose)
{
    summary->rows_judged += cover_examine(plan->subject, outcome, choose, plan->threads, NULL, NULL);
    summary->large += outcome->verdict == VERDICT_PASS || outcome->verdict == VERDICT_FAIL;
    summary->refused += outcome->verdict == VERDICT_NOT_APPLICABLE;
    return plan->report(plan->data, outcome);
}

static bool examine_large(const struct cover_plan *plan, const struct problem_space *space, struct covering *covering,
                          struct turn turn, struct cover_summary *summary)
{
    struct cover_outcome outcome = {
        .part = "large", .seed = cover_seed(plan->seed, SEED_INPUTS, turn_number(plan, turn)), .unjudged = plan->unjudged};
    if (!draw_large(plan, space, covering, turn, &outcome)) {
        summary->refused++;
        return true;
    }
    outcome.alone = outcome.problem.batch > 1 && cover_compares_alone(plan, &outcome.problem);
    bool all = cover_work(&outcome.problem) <= ALL_ROWS_WORK;
    return examine_and_count(plan, summary, &outcome, all ? NULL : cover_choose_rows);
}

/* A line's problems of a round. */
static bool examine_line(const struct cover_plan *plan, const struct problem_space *space, struct covering *covering, int line,
                         int round, struct cover_summary *summary)
{
    const int parts = larges[line].parts, dtypes = field_levels(FIELD_dtype);
    bool going = true;
    for (int part = 0; part < parts && going; part++)
        for (int dtype = 0; dtype < dtypes && going; dtype++)
            if (!space->refused[FIELD_dtype][dtype])
                going = examine_large(plan, space, covering, (struct turn){line, round, part, dtype}, summary);
    return parts ? going : examine_large(plan, space, covering, (struct turn){line, round, 0, -1}, summary);
}

/* Packed sequences that are far shorter than the problem says: products of its sizes are 2^42 to 2^46, and there is little to compute. A
 * kernel may prepare as many keys as are declared, in a workspace that counts as memory it uses (memory_mb of the policy), so their number
 * is limited by that, and rows make up for it. */
static bool examine_declared(const struct cover_plan *plan, int round, struct cover_summary *summary)
{
    static const char *const dtypes[] = {"f32", "bf16", "f16"};
    static const int sizes[] = {4, 2, 2};
    static const int dims[] = {64, 128, 32, 40};
    const int64_t most_prepared = (int64_t)1 << 30;
    for (int tries = 0; tries < TRIES; tries++) {
        uint64_t drawn[9];
        char text[160];
        for (int n = 0; n < COUNT_OF(drawn); n++)
            drawn[n] = random_bits(plan->seed, SEED_DECLARED, (uint64_t)(round * TRIES + tries) * COUNT_OF(drawn) + (uint64_t)n);
        const int heads = 2 + (int)(drawn[0] % 8), group = 1 + (int)(drawn[1] % 3), batch = 2 + (int)(drawn[3] % 4),
                  dtype = (int)(drawn[2] % 3), dim = dims[tries % COUNT_OF(dims)];
        const int64_t most_keys = most_prepared / ((int64_t)batch * heads * 2 * dim * sizes[dtype]);
        struct cover_outcome outcome = {
            .part = "large", .seed = cover_seed(plan->seed, SEED_DECLARED, (uint64_t)round), .unjudged = plan->unjudged};
        snprintf(text, sizeof text, "fwd:%s:b%d:hq%d:hkv%d:sq%d:skv%lld:d%d%s:varlenq=%d:varlenkv=%d", dtypes[dtype], batch,
                 heads * group, heads, 1600000 + (int)(drawn[4] % 2400000),
                 (long long)(most_keys - (int64_t)(drawn[5] % (uint64_t)(most_keys / 4))), dim, drawn[6] % 2 ? ":causal:br" : "",
                 30 + (int)(drawn[7] % 60), 30 + (int)(drawn[8] % 200));
        if (attest_problem_parse(text, &outcome.problem, NULL, 0) != ATTEST_OK || !taker_takes(plan->taker, &outcome.problem))
            continue;
        return examine_and_count(plan, summary, &outcome, NULL);
    }
    return true;
}

void cover_large(const struct cover_plan *plan, struct cover_summary *summary)
{
    struct problem_space space;
    problem_space_make(&space, plan->taker, USUAL_WORK, MOST_WORK);
    struct covering *covering = covering_make(&space.covering, random_bits(plan->seed, SEED_LARGE, 0));
    bool going = covering != NULL;
    for (int round = 0; round < plan->large && going; round++) {
        for (int line = 0; line < COUNT_OF(larges) && going; line++) {
            progress("correctness: large sizes, %d of %d: %s", line + 1, COUNT_OF(larges), larges[line].name);
            going = examine_line(plan, &space, covering, line, round, summary);
        }
        going = going && examine_declared(plan, round, summary);
    }
    covering_free(covering);
}
