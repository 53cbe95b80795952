/*
 * strategy.c - the built-in proposers. See strategy.h.
 *
 * grid       the points in their order.
 * random     any point that was not tried, all equally likely.
 * local      a neighbour of the best point: one knob, one step. When it has no untried neighbour left, one of the next best.
 * evolution  parents are the elites, the best few points that were right. Half of the children are crossovers, which take each knob
 *            from one of two parents; every knob of a child then mutates with a probability of one in their number, and at least one
 *            does if there was no crossover. The first generation is random: children of one parent have little to inherit.
 * model      a Gaussian process is fitted to all scores, and the point is tried whose improvement on the best, in expectation, is
 *            the largest. The first few points are random, so that there is something to fit.
 *
 * Points that do not fit the resources are never proposed, and no point twice.
 */
#include "strategy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

enum { ELITES = 4, CHILDREN = 64, SEED_POINTS = 5 };

const char *const strategy_names[STRATEGY_COUNT] = {"grid", "random", "local", "evolution", "model"};

/* What a strategy works on. */
struct turn {
    const struct space *space;
    const struct tried *history;
    int count;
    unsigned char *open; /* [size]: fits, and was not tried */
    int64_t open_count;
    uint64_t seed, drawn;
    struct proposal *proposal;
};

static int64_t draw(struct turn *turn, int64_t high)
{
    return random_below(random_bits(turn->seed, 700, turn->drawn++), high);
}

static bool is_open(const struct turn *turn, const struct point *point)
{
    return turn->open[space_number(turn->space, point)];
}

static bool propose(struct turn *turn, const struct point *point, const char *origin, int parent, int other)
{
    *turn->proposal = (struct proposal){.point = *point, .origin = origin, .parents = {parent, other}};
    return true;
}

/* The index in the history of the best right point but `skip` better ones; -1 if there are not so many. */
static int best_of(const struct turn *turn, int skip)
{
    for (int i = 0; i < turn->count; i++) {
        int better = 0;
        for (int k = 0; turn->history[i].right && k < turn->count; k++)
            better += turn->history[k].right && (turn->history[k].score > turn->history[i].score ||
                                                 (turn->history[k].score == turn->history[i].score && k < i));
        if (turn->history[i].right && better == skip)
            return i;
    }
    return -1;
}

static bool next_grid(struct turn *turn)
{
    int64_t number = 0;
    while (!turn->open[number])
        number++;
    struct point point = space_point(turn->space, number);
    return propose(turn, &point, "grid", -1, -1);
}

static bool next_random(struct turn *turn)
{
    int64_t skip = draw(turn, turn->open_count - 1), number = 0;
    while (!turn->open[number] || skip-- > 0)
        number++;
    struct point point = space_point(turn->space, number);
    return propose(turn, &point, "random", -1, -1);
}

/* A step up or down; between words, which have no order, a step to any other. */
static bool is_step(const struct knob *knob, int from, int to)
{
    return knob->numeric ? abs(from - to) == 1 : from != to;
}

static bool next_local(struct turn *turn)
{
    const struct space *space = turn->space;
    int centre;
    for (int skip = 0; (centre = best_of(turn, skip)) >= 0; skip++) {
        struct point found = {{0}};
        int seen = 0;
        for (int i = 0; i < space->count; i++)
            for (int value = 0; value < space->knobs[i].count; value++) {
                struct point near = turn->history[centre].point;
                if (!is_step(&space->knobs[i], near.at[i], value))
                    continue;
                near.at[i] = value;
                if (is_open(turn, &near) && draw(turn, seen++) == 0) /* each of those that are open is as likely */
                    found = near;
            }
        if (seen)
            return propose(turn, &found, "neighbour", turn->history[centre].trial, -1);
    }
    return next_random(turn);
}

static void mutate(struct turn *turn, struct point *point, bool surely)
{
    const struct space *space = turn->space;
    int chosen = surely ? (int)draw(turn, space->count - 1) : -1;
    for (int i = 0; i < space->count; i++) {
        const struct knob *knob = &space->knobs[i];
        if (knob->count < 2 || (i != chosen && draw(turn, space->count - 1) != 0))
            continue;
        int step = draw(turn, 1) ? 1 : -1;
        if (knob->numeric && point->at[i] + step >= 0 && point->at[i] + step < knob->count)
            point->at[i] += step;
        else
            point->at[i] = (point->at[i] + 1 + (int)draw(turn, knob->count - 2)) % knob->count;
    }
}

static bool next_evolution(struct turn *turn)
{
    int elites[ELITES], count = 0;
    while (count < ELITES && (elites[count] = best_of(turn, count)) >= 0)
        count++;
    for (int child = 0; turn->count >= SEED_POINTS && count && child < CHILDREN; child++) {
        const struct tried *mother = &turn->history[elites[draw(turn, count - 1)]],
                           *father = &turn->history[elites[draw(turn, count - 1)]];
        struct point point = mother->point;
        bool crossed = mother != father && draw(turn, 1);
        for (int i = 0; crossed && i < turn->space->count; i++)
            if (draw(turn, 1))
                point.at[i] = father->point.at[i];
        mutate(turn, &point, !crossed);
        if (is_open(turn, &point))
            return propose(turn, &point, crossed ? "crossover" : "mutation", mother->trial, crossed ? father->trial : -1);
    }
    return next_random(turn);
}

/* The improvement on `best` that a normal value has in expectation. */
static double expected_gain(double mean, double deviation, double best)
{
    if (deviation <= 0)
        return mean > best ? mean - best : 0;
    double z = (mean - best) / deviation;
    return (mean - best) * 0.5 * erfc(-z * sqrt(0.5)) + deviation * exp(-z * z / 2) / sqrt(2 * M_PI);
}

static bool next_model(struct turn *turn)
{
    int best = best_of(turn, 0);
    struct surrogate *surrogate =
        best >= 0 && turn->count >= SEED_POINTS ? surrogate_fit(turn->space, turn->history, turn->count) : NULL;
    if (!surrogate)
        return next_random(turn);
    double most = -1;
    struct point chosen = {{0}};
    for (int64_t number = 0; number < turn->space->size; number++) {
        if (!turn->open[number])
            continue;
        struct point point = space_point(turn->space, number);
        double mean, deviation;
        surrogate_predict(surrogate, &point, &mean, &deviation);
        double gain = expected_gain(mean, deviation, turn->history[best].score);
        if (gain > most) {
            most = gain;
            chosen = point;
        }
    }
    surrogate_free(surrogate);
    return most < 0 ? next_random(turn) : propose(turn, &chosen, "model", turn->history[best].trial, -1);
}

bool strategy_next(enum strategy strategy, const struct space *space, const struct tried *history, int count, uint64_t seed,
                   struct proposal *proposal)
{
    static bool (*const next[STRATEGY_COUNT])(struct turn *) = {next_grid, next_random, next_local, next_evolution, next_model};
    struct turn turn = {.space = space, .history = history, .count = count, .seed = seed, .proposal = proposal};
    if (!space->count || !(turn.open = malloc((size_t)space->size)))
        return false;
    memcpy(turn.open, space->fits, (size_t)space->size);
    for (int i = 0; i < count; i++)
        turn.open[space_number(space, &history[i].point)] = 0;
    for (int64_t number = 0; number < space->size; number++)
        turn.open_count += turn.open[number];
    bool found = turn.open_count > 0 && next[strategy](&turn);
    free(turn.open);
    return found;
}
