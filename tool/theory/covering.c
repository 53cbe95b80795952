/*
 * covering.c - covering arrays of strength 3 (see covering.h).
 *
 * A row begins with a triple that is missing, drawn at random. The other fields follow in random order; each takes the level that adds
 * most missing triples with the fields that are set (Cohen and others 1997, AETG). Of a few such rows the best is kept.
 * A triple that no row could be completed from, in several attempts, is counted as infeasible, and so are those of which two levels do
 * not agree or that are too much work already.
 */
#include "covering.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

enum { CANDIDATES = 3, ATTEMPTS = 12, TRIES = 2000, RANDOM_STREAM = 1300 };

enum triple_state { MISSING, COVERED, INFEASIBLE, EXCLUDED /* infeasible, and to be in no row */ };

struct covering {
    struct covering_space space;
    uint64_t seed, rolled;
    int32_t base[COVERING_FIELDS][COVERING_FIELDS][COVERING_FIELDS]; /* of the triples of fields a < b < c */
    double least[COVERING_FIELDS];                                   /* the least work of a field */
    bool *agree;                                                     /* [field a][level][field b][level] */
    unsigned char *state;                                            /* [triple] */
    int64_t triples, infeasible, covered;
};

static int64_t roll(struct covering *covering, int64_t sides)
{
    return random_below(random_bits(covering->seed, RANDOM_STREAM, covering->rolled++), sides - 1);
}

static size_t pair_index(int a, int la, int b, int lb)
{
    return (((size_t)a * COVERING_LEVELS + (size_t)la) * COVERING_FIELDS + (size_t)b) * COVERING_LEVELS + (size_t)lb;
}

static bool agree(const struct covering *covering, int a, int la, int b, int lb)
{
    return covering->agree[pair_index(a, la, b, lb)];
}

/* Fields in rising order. */
static int64_t triple_index(const struct covering *covering, int a, int la, int b, int lb, int c, int lc)
{
    const int *levels = covering->space.levels;
    return covering->base[a][b][c] + ((int64_t)la * levels[b] + lb) * levels[c] + lc;
}

static void swap(int *a, int *b)
{
    int kept = *a;
    *a = *b;
    *b = kept;
}

static int64_t any_triple(const struct covering *covering, int a, int la, int b, int lb, int c, int lc)
{
    if (a > b) {
        swap(&a, &b);
        swap(&la, &lb);
    }
    if (b > c) {
        swap(&b, &c);
        swap(&lb, &lc);
    }
    if (a > b) {
        swap(&a, &b);
        swap(&la, &lb);
    }
    return triple_index(covering, a, la, b, lb, c, lc);
}

/* Calls that are needed for every triple of levels. */
static void find_infeasible(struct covering *covering)
{
    const struct covering_space *space = &covering->space;
    double floor = 0;
    for (int f = 0; f < space->fields; f++)
        floor += covering->least[f];
    for (int a = 0; a < space->fields; a++)
        for (int b = a + 1; b < space->fields; b++)
            for (int c = b + 1; c < space->fields; c++)
                for (int la = 0; la < space->levels[a]; la++)
                    for (int lb = 0; lb < space->levels[b]; lb++)
                        for (int lc = 0; lc < space->levels[c]; lc++) {
                            double work = floor + space->work[a][la] - covering->least[a] + space->work[b][lb] -
                                          covering->least[b] + space->work[c][lc] - covering->least[c];
                            if (work <= space->most && agree(covering, a, la, b, lb) && agree(covering, a, la, c, lc) &&
                                agree(covering, b, lb, c, lc))
                                continue;
                            covering->state[triple_index(covering, a, la, b, lb, c, lc)] = INFEASIBLE;
                            covering->infeasible++;
                        }
}

struct covering *covering_make(const struct covering_space *space, uint64_t seed)
{
    struct covering *covering = calloc(1, sizeof *covering);
    size_t pairs = (size_t)COVERING_FIELDS * COVERING_LEVELS * COVERING_FIELDS * COVERING_LEVELS;
    if (!covering)
        return NULL;
    covering->space = *space;
    covering->seed = seed;
    covering->agree = malloc(pairs);
    for (int a = 0; a < space->fields && covering->agree; a++)
        for (int la = 0; la < space->levels[a]; la++)
            for (int b = 0; b < space->fields; b++)
                for (int lb = 0; lb < space->levels[b]; lb++)
                    covering->agree[pair_index(a, la, b, lb)] =
                        a != b && (a < b ? space->agree(space->data, a, la, b, lb) : space->agree(space->data, b, lb, a, la));
    for (int f = 0; f < space->fields; f++) {
        covering->least[f] = space->work[f][0];
        for (int l = 1; l < space->levels[f]; l++)
            covering->least[f] = space->work[f][l] < covering->least[f] ? space->work[f][l] : covering->least[f];
    }
    int64_t count = 0;
    for (int a = 0; a < space->fields; a++)
        for (int b = a + 1; b < space->fields; b++)
            for (int c = b + 1; c < space->fields; c++) {
                covering->base[a][b][c] = (int32_t)count;
                count += (int64_t)space->levels[a] * space->levels[b] * space->levels[c];
            }
    covering->triples = count;
    covering->state = calloc((size_t)count + 1, 1);
    if (!covering->agree || !covering->state) {
        covering_free(covering);
        return NULL;
    }
    find_infeasible(covering);
    return covering;
}

void covering_free(struct covering *covering)
{
    if (!covering)
        return;
    free(covering->agree);
    free(covering->state);
    free(covering);
}

/* A row in the making: -1 where a field has no level yet. */
struct draft {
    int row[COVERING_FIELDS];
    int set[COVERING_FIELDS], count; /* fields that have one */
    double work;                     /* with the least of those that have none */
    int64_t gain;
};

static bool fits(const struct covering *covering, const struct draft *draft, int field, int level)
{
    if (draft->work - covering->least[field] + covering->space.work[field][level] > covering->space.most)
        return false;
    for (int n = 0; n < draft->count; n++)
        if (!agree(covering, field, level, draft->set[n], draft->row[draft->set[n]]))
            return false;
    return true;
}

/* For every level of a field the missing triples that it makes with two fields that are set; negative if one of its triples is to be in no
 * row. */
static void find_gains(const struct covering *covering, const struct draft *draft, int field, int64_t gains[COVERING_LEVELS])
{
    const int count = covering->space.levels[field];
    memset(gains, 0, COVERING_LEVELS * sizeof *gains);
    for (int m = 0; m < draft->count; m++)
        for (int n = m + 1; n < draft->count; n++) {
            const int a = draft->set[m], b = draft->set[n];
            const int64_t first = any_triple(covering, a, draft->row[a], b, draft->row[b], field, 0);
            const int64_t step = count > 1 ? any_triple(covering, a, draft->row[a], b, draft->row[b], field, 1) - first : 0;
            for (int level = 0; level < count; level++) {
                const unsigned char state = covering->state[first + level * step];
                gains[level] = state == EXCLUDED || gains[level] < 0 ? -1 : gains[level] + (state == MISSING);
            }
        }
}

/* What a gain is worth: rows beyond the usual work cost in proportion to it. */
static double worth(const struct covering *covering, int64_t gain, double work)
{
    return (double)gain / (1 + exp2(work - covering->space.usual));
}

/* `gain` is that of the level, by find_gains. */
static void put(const struct covering *covering, struct draft *draft, int field, int level, int64_t gain)
{
    draft->gain += gain;
    draft->work += covering->space.work[field][level] - covering->least[field];
    draft->row[field] = level;
    draft->set[draft->count++] = field;
}

/* Whether every field that is not set still has a level that fits. Without it, a row ends in a dead end too often. */
static bool has_a_way_on(const struct covering *covering, const struct draft *draft)
{
    for (int f = 0; f < covering->space.fields; f++) {
        bool found = draft->row[f] >= 0;
        for (int l = 0; l < covering->space.levels[f] && !found; l++)
            found = fits(covering, draft, f, l);
        if (!found)
            return false;
    }
    return true;
}

/* The level that gains most, of those that leave every other field a level. */
static bool extend(struct covering *covering, struct draft *draft, int field)
{
    int64_t gains[COVERING_LEVELS];
    double worths[COVERING_LEVELS]; /* -1: it does not fit */
    int count = covering->space.levels[field];
    find_gains(covering, draft, field, gains);
    for (int level = 0; level < count; level++)
        worths[level] =
            gains[level] >= 0 && fits(covering, draft, field, level)
                ? worth(covering, gains[level], draft->work - covering->least[field] + covering->space.work[field][level])
                : -1;
    for (;;) {
        int chosen = -1, ties = 0;
        for (int level = 0; level < count; level++) {
            if (worths[level] < 0 || (chosen >= 0 && worths[level] < worths[chosen]))
                continue;
            ties = chosen >= 0 && worths[level] == worths[chosen] ? ties + 1 : 1;
            if (ties == 1 || roll(covering, ties) == 0)
                chosen = level;
        }
        if (chosen < 0)
            return false;
        struct draft tried = *draft;
        put(covering, &tried, field, chosen, gains[chosen]);
        if (has_a_way_on(covering, &tried)) {
            *draft = tried;
            return true;
        }
        worths[chosen] = -1;
    }
}

static void begin(const struct covering *covering, struct draft *draft)
{
    *draft = (struct draft){0};
    for (int f = 0; f < covering->space.fields; f++) {
        draft->row[f] = -1;
        draft->work += covering->least[f];
    }
}

/* All fields that have no level, in random order. */
static bool complete(struct covering *covering, struct draft *draft)
{
    int order[COVERING_FIELDS], count = 0;
    for (int f = 0; f < covering->space.fields; f++)
        if (draft->row[f] < 0)
            order[count++] = f;
    for (int n = count - 1; n > 0; n--)
        swap(&order[n], &order[roll(covering, n + 1)]);
    for (int n = 0; n < count; n++)
        if (!extend(covering, draft, order[n]))
            return false;
    return true;
}

/* A missing triple at random: the first from a random place on. -1 if there is none. */
static int64_t missing_triple(struct covering *covering, int fields[3], int levels[3])
{
    const struct covering_space *space = &covering->space;
    const unsigned char *state = covering->state;
    int64_t start = roll(covering, covering->triples), found = -1;
    const unsigned char *at = memchr(state + start, MISSING, (size_t)(covering->triples - start));
    if (!at)
        at = memchr(state, MISSING, (size_t)start);
    if (!at)
        return -1;
    found = at - state;
    for (int a = 0; a < space->fields; a++)
        for (int b = a + 1; b < space->fields; b++)
            for (int c = b + 1; c < space->fields; c++) {
                int64_t base = covering->base[a][b][c], rest = found - base;
                if (rest < 0 || rest >= (int64_t)space->levels[a] * space->levels[b] * space->levels[c])
                    continue;
                fields[0] = a, fields[1] = b, fields[2] = c;
                levels[2] = (int)(rest % space->levels[c]);
                levels[1] = (int)(rest / space->levels[c] % space->levels[b]);
                levels[0] = (int)(rest / space->levels[c] / space->levels[b]);
                return found;
            }
    return -1;
}

/* The best of a few rows that begin with the triple. */
static bool from_triple(struct covering *covering, const int fields[3], const int levels[3], struct draft *best)
{
    bool found = false;
    for (int n = 0, attempt = 0; n < CANDIDATES && attempt < ATTEMPTS; attempt++) {
        struct draft draft;
        begin(covering, &draft);
        for (int i = 0; i < 3; i++) {
            int64_t gains[COVERING_LEVELS];
            find_gains(covering, &draft, fields[i], gains);
            put(covering, &draft, fields[i], levels[i], gains[levels[i]]);
        }
        if (!has_a_way_on(covering, &draft))
            return false;
        if (!complete(covering, &draft))
            continue;
        n++;
        if (!found || worth(covering, draft.gain, draft.work) > worth(covering, best->gain, best->work))
            *best = draft;
        found = true;
    }
    return found;
}

bool covering_next(struct covering *covering, int row[COVERING_FIELDS])
{
    struct draft draft;
    for (int tries = 0; tries < TRIES; tries++) {
        int fields[3], levels[3];
        int64_t triple = missing_triple(covering, fields, levels);
        begin(covering, &draft);
        bool found = triple < 0 ? complete(covering, &draft) : from_triple(covering, fields, levels, &draft);
        if (found) {
            memcpy(row, draft.row, sizeof draft.row);
            return true;
        }
        if (triple >= 0) {
            covering->state[triple] = INFEASIBLE;
            covering->infeasible++;
        }
    }
    return false;
}

void covering_mark(struct covering *covering, const int row[COVERING_FIELDS], const bool observed[COVERING_FIELDS])
{
    const struct covering_space *space = &covering->space;
    for (int a = 0; a < space->fields; a++)
        for (int b = a + 1; b < space->fields && observed[a]; b++)
            for (int c = b + 1; c < space->fields && observed[b]; c++) {
                unsigned char *state = &covering->state[triple_index(covering, a, row[a], b, row[b], c, row[c])];
                if (!observed[c] || *state == COVERED)
                    continue;
                covering->infeasible -= *state != MISSING;
                covering->covered++;
                *state = COVERED;
            }
}

static void exclude_triple(struct covering *covering, int a, int la, int b, int lb, int c, int lc)
{
    unsigned char *state = &covering->state[any_triple(covering, a, la, b, lb, c, lc)];
    covering->infeasible += *state == MISSING;
    *state = *state == COVERED ? COVERED : EXCLUDED;
}

void covering_exclude(struct covering *covering, const int *fields, const int *levels, int count)
{
    const struct covering_space *space = &covering->space;
    if (count == 3) {
        exclude_triple(covering, fields[0], levels[0], fields[1], levels[1], fields[2], levels[2]);
        return;
    }
    covering->agree[pair_index(fields[0], levels[0], fields[1], levels[1])] = false;
    covering->agree[pair_index(fields[1], levels[1], fields[0], levels[0])] = false;
    for (int f = 0; f < space->fields; f++)
        for (int level = 0; level < space->levels[f] && f != fields[0] && f != fields[1]; level++)
            exclude_triple(covering, fields[0], levels[0], fields[1], levels[1], f, level);
}

struct covering_count covering_counts(const struct covering *covering)
{
    return (struct covering_count){covering->triples, covering->infeasible, covering->covered};
}

bool covering_has(const struct covering *covering, int field_a, int level_a, int field_b, int level_b, int field_c, int level_c)
{
    return covering->state[any_triple(covering, field_a, level_a, field_b, level_b, field_c, level_c)] == COVERED;
}
