/*
 * stages_layout.c - LSE is right and weights stand in the wrong place of O: which rows, heads, keys or columns are mixed up.
 */
#include "stages_inquiry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows and heads that are mixed up ---------------------------------------------------------------------------------------- */

/* Whether O as found in `row` is what is expected in row `source` with V of head (b, head_kv): the number of weights that say so, 0
 * if it is not. Keys go by columns of V, which are shifted from head to head. */
static int64_t row_matches(const struct lab *lab, const struct reading *reading, int64_t row, int64_t source, int64_t b,
                           int64_t head_kv)
{
    int64_t width = lab->problem.dim_v, evidence = 0;
    const struct place *to = &lab->rows[row];
    for (int64_t block = 0; block * width < reading->columns; block++)
        for (int64_t d = 0; d < width; d++) {
            int64_t found = design_column(lab, block, to->b, lab_head_kv(lab, to->h), d);
            int64_t expected = design_column(lab, block, b, head_kv, d);
            if (found < 0)
                continue;
            double value = reading->o[row * reading->columns + found];
            double wanted = expected < 0 ? 0 : reading->o_expected[source * reading->columns + expected];
            double bound = expected < 0 ? 1e-6 : 2 * reading->o_bound[source * reading->columns + expected];
            if (!(fabs(value - wanted) <= bound))
                return 0;
            evidence += wanted > bound;
        }
    return evidence;
}

/* What a wrong row is if it is right elsewhere: the row whose O it holds, the head whose V it took; -1 if there is none. */
struct source {
    int64_t row, batch, head_kv, evidence;
};

static struct source find_source(const struct lab *lab, const struct reading *reading, int64_t row)
{
    const attest_problem *problem = &lab->problem;
    const struct place *own = &lab->rows[row];
    struct source source = {-1, -1, -1, 0};
    for (int64_t other = 0; other < reading->rows && source.row < 0; other++) {
        const struct place *place = &lab->rows[other];
        int64_t evidence = other == row ? 0 : row_matches(lab, reading, row, other, place->b, lab_head_kv(lab, place->h));
        if (evidence > 0) {
            source.row = other;
            source.evidence = evidence;
        }
    }
    for (int64_t bh = 0; bh < problem->batch * problem->heads_kv && source.head_kv < 0; bh++) {
        int64_t b = bh / problem->heads_kv, h = bh % problem->heads_kv;
        bool own_head = b == own->b && h == lab_head_kv(lab, own->h);
        int64_t evidence = own_head ? 0 : row_matches(lab, reading, row, row, b, h);
        if (evidence > 0)
            source = (struct source){source.row, b, h, evidence > source.evidence ? evidence : source.evidence};
    }
    return source;
}

static void conclude_rows(struct inquiry *inquiry, const struct reading *reading, int64_t row, int64_t source, bool also_v)
{
    const struct lab *lab = inquiry->lab;
    const struct place *to = &lab->rows[row], *from = &lab->rows[source];
    const char *what = to->h != from->h && to->i == from->i && to->b == from->b ? "heads are mixed up"
                       : to->h == from->h && to->b == from->b                   ? "rows are mixed up"
                                                                                : "the strides of O are mixed up";
    conclude(inquiry, STAGE_EPILOGUE | (lab->lse ? 0 : STAGE_S) | (also_v ? STAGE_PV : 0), reading, SIGHT_O,
             "%s: O of (sequence, head, row) (%lld, %lld, %lld) is what belongs to (%lld, %lld, %lld)%s", what, (long long)to->b,
             (long long)to->h, (long long)to->i, (long long)from->b, (long long)from->h, (long long)from->i,
             also_v ? ", or was made with V of another head" : "");
}

bool inquire_rows(struct inquiry *inquiry, const struct reading *reading)
{
    const struct lab *lab = inquiry->lab;
    struct source first = {-1, -1, -1, 0};
    int64_t row = -1;
    bool rows = true, heads = true, certain = false;
    for (int64_t n = 0; n < reading->rows && (rows || heads); n++) {
        if (!row_is_wrong(reading, n))
            continue;
        struct source source = find_source(lab, reading, n);
        rows = rows && source.row >= 0;
        heads = heads && source.head_kv >= 0;
        certain = certain || source.evidence > 1; /* one weight of 1 is the same in every row */
        if (row < 0) {
            row = n;
            first = source;
        }
    }
    if (row < 0 || !certain || !(rows || heads))
        return false;
    if (rows) {
        conclude_rows(inquiry, reading, row, first.row, heads);
        return true;
    }
    const struct place *place = &lab->rows[row];
    struct cause cause;
    bool formula = cause_find(inquiry, reading, QUESTION_VALUES, &cause);
    conclude(inquiry, STAGE_PV, reading, SIGHT_O,
             "V of the wrong head: head %lld of sequence %lld takes V of KV head %lld of sequence %lld, not of %lld%s%s",
             (long long)place->h, (long long)place->b, (long long)first.head_kv, (long long)first.batch,
             (long long)lab_head_kv(lab, place->h), formula ? "; " : "", formula ? cause.text : "");
    return true;
}

/* ---- keys and columns -------------------------------------------------------------------------------------------------------- */

/* The column whose number stands in this one, where each has its own; -1 if there is none. */
static int64_t column_source(const struct reading *reading, int64_t row, int64_t column)
{
    for (int64_t c = 0; c < reading->columns; c++) {
        int64_t at = row * reading->columns + c;
        if (c != column && fabs(reading->o[row * reading->columns + column] - reading->o_expected[at]) <= reading->o_bound[at])
            return c;
    }
    return -1;
}

/* A column of O that holds another one, if every wrong column of every row does; false if not. */
static bool columns_moved(const struct reading *reading, int64_t *column, int64_t *source)
{
    *column = -1;
    for (int64_t at = 0; at < reading->rows * reading->columns; at++) {
        int64_t row = at / reading->columns, c = at % reading->columns;
        if (!reading_wrong_o(reading, row, c))
            continue;
        int64_t from = column_source(reading, row, c);
        if (from < 0)
            return false;
        if (*column < 0) {
            *column = c;
            *source = from;
        }
    }
    return *column >= 0;
}

/* A key of the first ones for which, alone, all columns of O are right; -1 if there is none. What is written wrong is so for any key;
 * what is read wrong from V need not be, because where a key's row lies and how it is swizzled depends on its number. */
static int64_t key_with_right_columns(struct inquiry *inquiry)
{
    for (int64_t key = 0; key < 8 && key < inquiry->lab->problem.seq_kv; key++) {
        struct experiment alone = {.scores = SCORES_FIRST, .values = VALUES_COLUMNS, .at = key};
        struct reading reading;
        if (!ask(inquiry, &alone, &reading))
            return -1;
        bool right = reading.o_right;
        reading_free(&reading);
        if (right)
            return key;
    }
    return -1;
}

/* Columns of O that are wrong for any V: where all keys have the same value. */
bool inquire_columns(struct inquiry *inquiry)
{
    struct experiment same = {.scores = SCORES_EQUAL, .values = VALUES_COLUMNS};
    struct reading reading;
    if (!ask(inquiry, &same, &reading))
        return true;
    /* A row that is wrong by one factor in all columns is so because of its keys. */
    bool wrong = false;
    for (int64_t n = 0; n < reading.rows && !wrong; n++)
        wrong = row_is_wrong(&reading, n) && isnan(row_factor(&reading, n));
    bool whole = true;
    for (int64_t at = 0; at < reading.rows * reading.columns && whole; at++)
        whole =
            !row_is_wrong(&reading, at / reading.columns) || reading_wrong_o(&reading, at / reading.columns, at % reading.columns);
    int64_t column, source = -1, key = wrong ? key_with_right_columns(inquiry) : -1;
    if (key >= 0)
        conclude(inquiry, STAGE_PV, &reading, SIGHT_O,
                 "columns of V are mixed up for some keys, and not for others (such as key %lld): where its rows are read from",
                 (long long)key);
    else if (wrong && columns_moved(&reading, &column, &source))
        conclude(inquiry, STAGE_PV | STAGE_EPILOGUE, &reading, SIGHT_O,
                 "columns of V or of O are mixed up: column %lld holds what belongs to column %lld", (long long)column,
                 (long long)source);
    else if (wrong)
        conclude(inquiry, STAGE_PV | STAGE_EPILOGUE, &reading, SIGHT_O, "%s",
                 whole ? "whole rows of O are wrong whatever V is: something else than P V is summed up or written"
                       : "columns of O are wrong whatever V is: its columns are mixed up, or some are left out");
    reading_free(&reading);
    return wrong;
}

/* Whether the weights found in a column are those expected in another one, in every row of a reading. */
static bool column_matches(const struct reading *reading, int64_t column, int64_t source, bool *seen)
{
    for (int64_t n = 0; n < reading->rows; n++) {
        double found = reading->o[n * reading->columns + column];
        if (reading->skip[n])
            continue;
        *seen = *seen || found > 0;
        if (!(fabs(found - reading->o_expected[n * reading->columns + source]) <=
              2 * reading->o_bound[n * reading->columns + source]))
            return false;
    }
    return true;
}

/* The key whose weights are found at this one in every comb there is; -1 if there is none. */
static int64_t source_column(const struct inquiry *inquiry, const struct reading *reading, int64_t column)
{
    for (int64_t c = 0; c < reading->columns; c++) {
        bool seen = false, same = c != column && column_matches(reading, column, c, &seen);
        for (int n = 0; n < COUNT_OF(inquiry->comb) && same; n++)
            same = !inquiry->comb[n].o || column_matches(&inquiry->comb[n], column, c, &seen);
        if (same && seen)
            return c;
    }
    return -1;
}

/* A row that sees one of two keys and not the other: were their scores swapped, LSE would be wrong there. */
static bool told_apart(const struct lab *lab, int64_t key, int64_t other)
{
    for (int64_t n = 0; n < lab->row_count; n++) {
        int64_t begin, end;
        lab_visible(lab, n, &begin, &end);
        if ((key >= begin && key < end) != (other >= begin && other < end))
            return true;
    }
    return false;
}

/* Where LSE cannot tell which keys a row sees, only how many, a mask or rows of O that are shifted look like V that is shifted. */
static unsigned equal_anyway(const struct inquiry *inquiry, const struct reading *reading)
{
    return inquiry->lab->problem.scale == 0 || single_keys(inquiry, reading) ? STAGE_MASK | STAGE_EPILOGUE : 0;
}

bool inquire_keys(struct inquiry *inquiry, const struct reading *reading)
{
    const struct lab *lab = inquiry->lab;
    int64_t moved = 0, lost = 0, other = 0, first = -1, source = -1;
    bool apart = false;
    for (int64_t c = 0; c < reading->columns; c++) {
        bool wrong = false, zero = true;
        for (int64_t n = 0; n < reading->rows; n++)
            if (reading_wrong_o(reading, n, c)) {
                wrong = true;
                zero = zero && reading->o[n * reading->columns + c] == 0;
            }
        if (!wrong)
            continue;
        int64_t from = zero ? -1 : source_column(inquiry, reading, c);
        lost += zero;
        moved += from >= 0;
        other += !zero && from < 0;
        apart = apart || (from >= 0 && lab->lse && told_apart(lab, lab->keys[c], lab->keys[from]));
        if (from >= 0 && first < 0) {
            first = c;
            source = from;
        }
    }
    if (other > 0 || moved + lost == 0)
        return false;
    unsigned alike = equal_anyway(inquiry, reading);
    if (moved > 0) {
        conclude(inquiry, alike | (apart ? STAGE_PV : STAGE_S | STAGE_PV), reading, SIGHT_O,
                 "V is taken in another order than %s: key %lld has the weight of key %lld", apart ? "P" : "K",
                 (long long)lab->keys[first], (long long)lab->keys[source]);
        snprintf(inquiry->diagnosis->pattern, sizeof inquiry->diagnosis->pattern, "columns permuted, %lld of %lld",
                 (long long)(moved + lost), (long long)reading->columns);
    } else {
        struct pattern pattern = conclude(inquiry, STAGE_PV, reading, SIGHT_O, "%s", "");
        conclude(inquiry, STAGE_PV, reading, SIGHT_O, "the sum has all keys and O has not: it lacks %s", pattern.text);
    }
    return true;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A wrong row: whether its weights add up to what they should, are the same ones, and stand at keys that it must not see. */
struct order {
    bool adds_up, more, same, hidden;
};

static struct order order_of(const struct lab *lab, const struct reading *reading, int64_t row, double *sorted)
{
    int64_t columns = reading->columns, at = row * columns;
    double found = 0, expected = 0, slack = 4 * unit_roundoff(lab->problem.dtype_o) + 2 * unit_roundoff(lab->problem.dtype) + 1e-5;
    struct order order = {.same = true};
    for (int64_t c = 0; c < columns; c++) {
        found += reading->o[at + c];
        expected += reading->o_expected[at + c];
        order.hidden = order.hidden || (reading->o_expected[at + c] == 0 && reading->o[at + c] > 0);
    }
    memcpy(sorted, reading->o + at, (size_t)columns * sizeof *sorted);
    memcpy(sorted + columns, reading->o_expected + at, (size_t)columns * sizeof *sorted);
    qsort(sorted, (size_t)columns, sizeof *sorted, compare_doubles);
    qsort(sorted + columns, (size_t)columns, sizeof *sorted, compare_doubles);
    for (int64_t c = 0; c < columns && order.same; c++)
        order.same = fabs(sorted[c] - sorted[columns + c]) <= slack * sorted[columns + c] + 1e-9;
    order.adds_up = fabs(found - expected) <= slack * expected;
    order.more = !(found <= expected * (1 + slack));
    return order;
}

/* Rows whose weights still add up to 1, but stand at other keys. */
bool inquire_order(struct inquiry *inquiry, const struct reading *reading)
{
    struct lab *lab = inquiry->lab;
    double *sorted = malloc((size_t)(2 * reading->columns + 1) * sizeof *sorted);
    int64_t wrong = 0, adds_up = 0;
    bool same = true, hidden = false, more = reading->columns != lab->problem.seq_kv || !sorted;
    for (int64_t n = 0; n < reading->rows && !more; n++) {
        if (!row_is_wrong(reading, n))
            continue;
        struct order order = order_of(lab, reading, n, sorted);
        wrong++;
        adds_up += order.adds_up;
        more = order.more;
        same = same && order.same;
        hidden = hidden || order.hidden;
    }
    free(sorted);
    if (more || 2 * adds_up < wrong || (!lab->lse && !same)) /* any softmax adds up */
        return false;
    /* Weights at keys that must not be seen, or added to each other, while LSE is right: the order was lost after the sum. */
    bool late = lab->lse && (hidden || !same);
    conclude(inquiry, equal_anyway(inquiry, reading) | (late ? STAGE_PV : STAGE_S | STAGE_PV), reading, SIGHT_O,
             "V is taken in another order than %s: the weights of a row add up, and stand at other keys", late ? "P" : "K");
    return true;
}

bool inquire_layout(struct inquiry *inquiry, const struct reading *reading)
{
    return inquire_rows(inquiry, reading) || inquire_keys(inquiry, reading) || inquire_order(inquiry, reading);
}
