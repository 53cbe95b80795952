/*
 * shape_variants.c - random problems near those of a suite (see shape_variants.h).
 *
 * A neighbour begins as a problem of the suite. Its sizes move by one, to the edge of a tile, or to a prime; its heads are grouped
 * otherwise; features that the kernel takes come and go; its tensors get other orders, gaps, negative strides (which also means
 * that they begin at an address that no vector likes) and dimensions that are broadcast.
 */
#include "shape_variants.h"

#include <math.h>
#include <string.h>

#include "base/random.h"

/* Neighbours stay small: what is looked for here are edges. */
enum { MOST_ROWS = 300, MOST_KEYS = 1100, TRIES = 64 };
#define MOST_WORK 3e7

/* A stream of random numbers. */
struct dice {
    uint64_t seed, rolled;
};
static int64_t roll(struct dice *dice, int64_t sides)
{
    return random_below(random_bits(dice->seed, 900, dice->rolled++), sides - 1);
}
#define PICK(dice, array) ((array)[roll((dice), COUNT_OF(array))])

bool taker_takes(struct taker taker, const attest_problem *problem)
{
    return taker.takes(taker.data, problem);
}

/* ---- sizes --------------------------------------------------------------------------------------------------------- */

static int64_t near_size(struct dice *dice, int64_t size, int64_t most)
{
    static const int64_t tiles[] = {16, 32, 48, 64, 96, 128};
    static const int64_t primes[] = {2, 3, 5, 7, 11, 13, 17, 31, 61, 97, 127, 131, 193, 251, 257};
    int64_t drawn = size;
    switch (roll(dice, 5)) {
    case 0:
        break;
    case 1:
        drawn = size + (roll(dice, 2) ? 1 : -1);
        break;
    case 2:
    case 3:
        drawn = PICK(dice, tiles) * (1 + roll(dice, 2)) + roll(dice, 3) - 1;
        break;
    default:
        drawn = roll(dice, 6) ? PICK(dice, primes) : 1;
    }
    return drawn < 1 ? 1 : drawn > most ? most : drawn;
}

static int64_t near_dim(struct dice *dice, int64_t dim)
{
    static const int64_t dims[] = {1, 2, 5, 8, 16, 24, 32, 40, 48, 63, 64, 65, 72, 80, 96, 112, 127, 128, 129, 192, 256};
    return roll(dice, 2) ? dim : PICK(dice, dims);
}

static void move_sizes(struct dice *dice, attest_problem *problem)
{
    static const int64_t ratios[] = {1, 1, 2, 3, 4, 8};
    problem->seq_q = near_size(dice, problem->seq_q, MOST_ROWS);
    problem->seq_kv = near_size(dice, problem->seq_kv, problem->seq_q > 8 ? MOST_ROWS : MOST_KEYS);
    int64_t dim = near_dim(dice, problem->dim);
    problem->dim_v = roll(dice, 3) ? dim : near_dim(dice, problem->dim_v);
    if (dim != problem->dim && roll(dice, 4))
        problem->scale = 1 / sqrtf((float)dim);
    problem->dim = dim;
    if (roll(dice, 2))
        problem->batch = 1 + roll(dice, 3);
    if (roll(dice, 2)) {
        int64_t ratio = PICK(dice, ratios);
        problem->heads_kv = 1 + roll(dice, ratio > 3 ? 1 : 2);
        problem->heads_q = ratio * problem->heads_kv;
    }
}

/* ---- features ------------------------------------------------------------------------------------------------------ */

/* Fields that belong to a flag have a value if it is on, and are 0 if it is off. */
static void set_fields(struct dice *dice, attest_problem *problem)
{
    static const int64_t windows[] = {0, 1, 7, 31, 32, 65, 100};
    static const int64_t pages[] = {1, 3, 7, 16, 48, 64};
    uint64_t flags = problem->flags;
    problem->window_left = flags & ATTEST_WINDOW_LEFT ? PICK(dice, windows) : 0;
    problem->window_right = flags & ATTEST_WINDOW_RIGHT ? PICK(dice, windows) : 0;
    problem->softcap = flags & ATTEST_SOFTCAP ? (float)(2 + roll(dice, 40)) : 0;
    problem->dtype_bias = !(flags & ATTEST_BIAS) ? 0 : roll(dice, 2) ? problem->dtype : (uint32_t)ATTEST_F32;
    problem->total_q = problem->total_kv = problem->page_size = problem->page_count = 0;
    if (flags & ATTEST_VARLEN_Q)
        problem->total_q = problem->batch * problem->seq_q * (2 + roll(dice, 3)) / 4;
    if (flags & ATTEST_VARLEN_KV)
        problem->total_kv = problem->batch * problem->seq_kv * (2 + roll(dice, 3)) / 4;
    if (flags & ATTEST_PAGED) {
        problem->page_size = PICK(dice, pages);
        problem->page_count = problem->batch * ((problem->seq_kv + problem->page_size - 1) / problem->page_size) + roll(dice, 4);
    }
}

static void turn_features(struct dice *dice, attest_problem *problem, struct taker taker)
{
    for (uint64_t flag = ATTEST_CAUSAL; flag < ATTEST_INVARIANT; flag <<= 1) {
        bool common = (flag & (ATTEST_CAUSAL | ATTEST_BOTTOM_RIGHT | ATTEST_LSE)) != 0;
        if (roll(dice, common ? 3 : 7) > 0)
            continue;
        attest_problem turned = *problem;
        turned.flags ^= flag;
        if (turned.flags & ATTEST_PAGED && turned.flags & ATTEST_VARLEN_KV)
            turned.flags &= ~(flag == ATTEST_PAGED ? ATTEST_VARLEN_KV : ATTEST_PAGED);
        if (taker_takes(taker, &turned))
            *problem = turned;
    }
    if (roll(dice, 5) == 0)
        problem->dtype_o = problem->dtype_o == ATTEST_F32 ? problem->dtype : (uint32_t)ATTEST_F32;
    set_fields(dice, problem);
}

/* ---- layouts ------------------------------------------------------------------------------------------------------- */

static int64_t gap(struct dice *dice)
{
    return roll(dice, 2) ? 0 : 1 + roll(dice, 11);
}

/* Strides of a tensor [outer, heads, rows, columns], in this order or with heads inside rows, with gaps. */
static void set_strides(struct dice *dice, int64_t stride[3], int64_t heads, int64_t rows, int64_t columns, bool heads_inside,
                        bool packed)
{
    int64_t inner = columns + gap(dice);
    int64_t middle = inner * (heads_inside ? heads : rows) + gap(dice);
    stride[heads_inside ? 1 : 2] = inner;
    stride[heads_inside ? 2 : 1] = middle;
    stride[0] = packed ? 0 : middle * (heads_inside ? rows : heads) + gap(dice);
    for (int n = 0; n < 3; n++)
        if (roll(dice, 8) == 0)
            stride[n] = -stride[n];
}

static void change_layout(struct dice *dice, attest_problem *problem)
{
    bool packed_q = (problem->flags & ATTEST_VARLEN_Q) != 0, packed_kv = (problem->flags & ATTEST_VARLEN_KV) != 0;
    bool paged = (problem->flags & ATTEST_PAGED) != 0, inside = roll(dice, 2) != 0;
    int64_t rows = packed_q ? problem->total_q : problem->seq_q;
    int64_t keys = packed_kv ? problem->total_kv : paged ? problem->page_size : problem->seq_kv;
    set_strides(dice, problem->stride_q, problem->heads_q, rows, problem->dim, inside, packed_q);
    set_strides(dice, problem->stride_o, problem->heads_q, rows, problem->dim_v, inside, packed_q);
    set_strides(dice, problem->stride_k, problem->heads_kv, keys, problem->dim, inside, packed_kv);
    set_strides(dice, problem->stride_v, problem->heads_kv, keys, problem->dim_v, inside, packed_kv);
    if (problem->flags & ATTEST_LSE)
        set_strides(dice, problem->stride_lse, problem->heads_q, rows, 1, inside, packed_q);
    if (roll(dice, 6) == 0)
        problem->stride_k[roll(dice, 2)] = 0;
    if (roll(dice, 6) == 0)
        problem->stride_v[roll(dice, 2)] = 0;
    if (problem->flags & ATTEST_BIAS && roll(dice, 2))
        problem->stride_bias[roll(dice, 3)] = 0;
}

static bool fits(const attest_problem *problem)
{
    double rows = (double)problem->batch * (double)problem->heads_q * (double)problem->seq_q;
    return rows * (double)problem->seq_kv * (double)(problem->dim + problem->dim_v) <= MOST_WORK;
}

bool neighbour_draw(const attest_problem *base, struct taker taker, uint64_t seed, attest_problem *neighbour)
{
    struct dice dice = {.seed = seed};
    for (int tries = 0; tries < TRIES; tries++) {
        *neighbour = *base;
        if (tries < TRIES / 2) /* a kernel of few shapes may take none but the suite's; other features and layouts it can have */
            move_sizes(&dice, neighbour);
        turn_features(&dice, neighbour, taker);
        attest_problem_pack(neighbour);
        if (roll(&dice, 2))
            change_layout(&dice, neighbour);
        if (fits(neighbour) && attest_problem_check(neighbour, NULL, 0) == ATTEST_OK && taker_takes(taker, neighbour) &&
            memcmp(neighbour, base, sizeof *base) != 0)
            return true;
    }
    return false;
}

bool neighbour_next_door(const attest_problem *base, int which, attest_problem *neighbour)
{
    *neighbour = *base;
    *(which & 1 ? &neighbour->seq_kv : &neighbour->seq_q) += which & 2 ? 1 : -1;
    if (neighbour->seq_q < 1 || neighbour->seq_kv < 1)
        return false;
    attest_problem_pack(neighbour);
    return attest_problem_check(neighbour, NULL, 0) == ATTEST_OK;
}
