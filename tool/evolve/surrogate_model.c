/*
 * surrogate_model.c - a Gaussian process over the points of a space: what scores to expect where nothing was tried, and how surely.
 *
 * A knob of numbers has its values at equal distances from 0 to 1 (they are mostly powers of two, or nearly), a knob of words has
 * distance 1 between any two. The covariance is Matern 5/2 with one length for each knob, so that a knob which changes nothing
 * becomes so long that it does not count; lengths and noise are those of the largest likelihood, found knob by knob on a short list.
 * Scores are shifted and scaled to mean 0 and deviation 1. A point that was wrong or did not build is taken to score like the worst:
 * near it there may be more of its kind.
 */
#include "strategy.h"

#include <math.h>
#include <stdlib.h>

static const double lengths[] = {0.25, 0.5, 1, 2, 5, 20};
static const double noises[] = {1e-4, 1e-3, 1e-2, 1e-1};
enum { SWEEPS = 2, MOST_FITTED = 400 };

struct surrogate {
    const struct space *space;
    const struct tried *history;
    int count;
    double length[SPACE_KNOBS], noise;
    double shift, scale;
    double *y;      /* [count] */
    double *factor; /* [count][count]: lower triangle of the Cholesky factor of the covariance */
    double *weight; /* [count]: covariance^-1 y */
    double *row;    /* [count] */
};

static double covariance(const struct surrogate *s, const struct point *a, const struct point *b)
{
    double square = 0;
    for (int i = 0; i < s->space->count; i++) {
        const struct knob *knob = &s->space->knobs[i];
        double step = !knob->numeric    ? a->at[i] != b->at[i]
                      : knob->count > 1 ? (double)(a->at[i] - b->at[i]) / (knob->count - 1)
                                        : 0;
        square += step * step / (s->length[i] * s->length[i]);
    }
    double r = sqrt(5 * square);
    return (1 + r + r * r / 3) * exp(-r);
}

/* Solves with the lower triangle, in place. */
static void solve_lower(const struct surrogate *s, double *x)
{
    for (int i = 0; i < s->count; i++) {
        for (int k = 0; k < i; k++)
            x[i] -= s->factor[i * s->count + k] * x[k];
        x[i] /= s->factor[i * s->count + i];
    }
}

static void solve_upper(const struct surrogate *s, double *x)
{
    for (int i = s->count - 1; i >= 0; i--) {
        for (int k = i + 1; k < s->count; k++)
            x[i] -= s->factor[k * s->count + i] * x[k];
        x[i] /= s->factor[i * s->count + i];
    }
}

/* Factors the covariance for the present lengths and noise, and returns the logarithm of the likelihood but for a constant. */
static double factorise(struct surrogate *s)
{
    int n = s->count;
    double likelihood = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = covariance(s, &s->history[i].point, &s->history[j].point) + (i == j ? s->noise : 0);
            for (int k = 0; k < j; k++)
                sum -= s->factor[i * n + k] * s->factor[j * n + k];
            if (i == j && sum <= 0)
                return -INFINITY;
            s->factor[i * n + j] = i == j ? sqrt(sum) : sum / s->factor[j * n + j];
        }
    for (int i = 0; i < n; i++) {
        s->weight[i] = s->y[i];
        likelihood -= log(s->factor[i * n + i]);
    }
    solve_lower(s, s->weight);
    for (int i = 0; i < n; i++)
        likelihood -= 0.5 * s->weight[i] * s->weight[i];
    solve_upper(s, s->weight);
    return likelihood;
}

/* Sets one number to the choice that is likeliest while the others stay. */
static void choose(struct surrogate *s, double *number, const double *choices, int count)
{
    double best = -INFINITY, chosen = *number;
    for (int i = 0; i < count; i++) {
        *number = choices[i];
        double likelihood = factorise(s);
        if (likelihood > best) {
            best = likelihood;
            chosen = choices[i];
        }
    }
    *number = chosen;
}

static void scale_scores(struct surrogate *s)
{
    double worst = INFINITY, sum = 0, squares = 0;
    for (int i = 0; i < s->count; i++)
        if (s->history[i].right)
            worst = fmin(worst, s->history[i].score);
    for (int i = 0; i < s->count; i++) {
        s->y[i] = s->history[i].right ? s->history[i].score : worst;
        sum += s->y[i];
    }
    s->shift = sum / s->count;
    for (int i = 0; i < s->count; i++)
        squares += (s->y[i] - s->shift) * (s->y[i] - s->shift);
    s->scale = squares > 0 ? sqrt(squares / s->count) : 1;
    for (int i = 0; i < s->count; i++)
        s->y[i] = (s->y[i] - s->shift) / s->scale;
}

struct surrogate *surrogate_fit(const struct space *space, const struct tried *history, int count)
{
    struct surrogate *s = calloc(1, sizeof *s);
    bool right = false;
    if (!s)
        return NULL;
    if (count > MOST_FITTED) { /* the newest are those near the best */
        history += count - MOST_FITTED;
        count = MOST_FITTED;
    }
    for (int i = 0; i < count; i++)
        right = right || history[i].right;
    *s = (struct surrogate){.space = space, .history = history, .count = count, .noise = 1e-3};
    s->y = calloc((size_t)count + 1, sizeof *s->y);
    s->weight = calloc((size_t)count + 1, sizeof *s->weight);
    s->row = calloc((size_t)count + 1, sizeof *s->row);
    s->factor = calloc((size_t)count * (size_t)count + 1, sizeof *s->factor);
    if (!right || !s->y || !s->weight || !s->row || !s->factor) {
        surrogate_free(s);
        return NULL;
    }
    for (int i = 0; i < space->count; i++)
        s->length[i] = 1;
    scale_scores(s);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        for (int i = 0; i < space->count; i++)
            choose(s, &s->length[i], lengths, COUNT_OF(lengths));
        choose(s, &s->noise, noises, COUNT_OF(noises));
    }
    if (!isfinite(factorise(s))) {
        surrogate_free(s);
        return NULL;
    }
    return s;
}

void surrogate_predict(const struct surrogate *s, const struct point *point, double *mean, double *deviation)
{
    double sum = 0, left = 1;
    for (int i = 0; i < s->count; i++) {
        s->row[i] = covariance(s, point, &s->history[i].point);
        sum += s->row[i] * s->weight[i];
    }
    solve_lower(s, s->row);
    for (int i = 0; i < s->count; i++)
        left -= s->row[i] * s->row[i];
    *mean = s->shift + s->scale * sum;
    *deviation = s->scale * sqrt(left > 0 ? left : 0);
}

void surrogate_free(struct surrogate *s)
{
    if (!s)
        return;
    free(s->y);
    free(s->weight);
    free(s->row);
    free(s->factor);
    free(s);
}
