/*
 * emulation_problems.c - see emulation_problems.h.
 *
 * The covering array has the fields of the correctness gate; sizes are others. A problem of the emulated device costs by its tiles, not
 * by its elements, so the levels of sizes stand for places next to the ends of tiles: one row, a few, a tile less one, a tile, one more.
 * Most rows are for the smallest dim, every third for another one. In three rows of eight one size is at or next to a number that the kernel
 * compares with (kernel_constants.h), in one there are many keys, in windows and pages of all sizes: what is right with each alone may not be with
 * two of them.
 */
#include "emulation_problems.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/far_strides.h"
#include "gate.h"
#include "theory/problem_space.h"
#include "base/random.h"

enum {
    MOST_TELLING = 400,
    MANY = 260,
    MANY_KEYS = 65600,
    MOST_OWN = 1 << 17,     /* of a number of the kernel that a size is put at */
    OWN_KEYS_TIME = 260000, /* of such problems together, in keys of one row */
    BLOCK_TIME = 60,        /* that a block takes by itself, likewise */
    MOST_ROWS = 1100,
    MOST_KEYS = 5000,
    SEED_ARRAY = 71,
    SEED_ROWS,
    SEED_SUITE,
    SEED_INPUTS,
    SEED_FEATURES,
    SEED_OWN
};

#define MOST_TILE_WORK  1.5e7 /* multiplications of a problem of the covering array, whole tiles counted */
#define MOST_BLOCKS     40    /* and its blocks */
#define MOST_ELEMENTS   4e5   /* of a tensor */
#define MOST_SUITE_WORK 3e7

struct emulation_problems {
    const struct proof *proof;
    const struct cuda_emulation *emulation;
    struct problem_space space;
    struct covering *covering;
    int drawn;                         /* rows of the covering array */
    int own;                           /* numbers of the kernel that were taken */
    struct emulation_problem *telling; /* [count] */
    int count, next;
};

/* ---- the covering array -------------------------------------------------------------------------------------------------- */

/* Levels of sizes that are used, with what they stand for in draw_sizes. */
enum { ROWS_ONE, ROWS_FEW, ROWS_TILE };
enum { KEYS_ONE, KEYS_FEW, KEYS_TILE, KEYS_TILES = 4 };
static const struct {
    int field;
    unsigned levels; /* bits */
} size_levels[] = {
    {FIELD_rows, 1u << ROWS_ONE | 1u << ROWS_FEW | 1u << ROWS_TILE},
    {FIELD_keys, 1u << KEYS_ONE | 1u << KEYS_FEW | 1u << KEYS_TILE | 1u << KEYS_TILES},
    {FIELD_batch, 7},
    {FIELD_heads_kv, 3},
    {FIELD_group, 0x1ff},
};

static bool candidate_takes(const void *data, const attest_problem *problem)
{
    const struct emulation_problems *problems = data;
    return gate_takes(problems->proof, problem) && cuda_emulation_group(problems->proof, problems->emulation, problem) >= 0;
}

static void make_space(struct emulation_problems *problems)
{
    struct problem_space *space = &problems->space;
    int dim = 0;
    problem_space_make(space, (struct taker){candidate_takes, problems}, 1e12, 1e15);
    for (int n = 0; n < COUNT_OF(size_levels); n++)
        for (int level = 0; level < field_levels(size_levels[n].field); level++)
            if (!(size_levels[n].levels >> level & 1))
                space->refused[size_levels[n].field][level] = true;
    while (dim + 1 < field_levels(FIELD_dim) && space->refused[FIELD_dim][dim])
        dim++;
    for (int level = 0; level < field_levels(FIELD_dim); level++) /* the images say which */
        space->refused[FIELD_dim][level] = level != dim;
}

struct dice {
    uint64_t seed, rolled;
};
static int64_t roll(struct dice *dice, int64_t sides)
{
    return random_below(random_bits(dice->seed, SEED_ROWS, dice->rolled++), sides - 1);
}

/* A tile less one, a tile, or one more. */
static int64_t next_to(struct dice *dice, int64_t tile)
{
    int64_t size = tile + roll(dice, 3) - 1;
    return size > 2 ? size : 2;
}

static int64_t ceiling(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* ---- numbers of the kernel ------------------------------------------------------------------------------------------------ */

enum own_target { BATCH, GROUP, HEADS, ROWS, KEYS, DIM, DIM_V, PAGE, WINDOW_LEFT, WINDOW_RIGHT, TARGETS };

/* The n-th size and value: first every size at every number, then next to them, in an order that the seed draws. False: there is none. */
static bool own_value(const struct kernel_constants *constants, uint64_t seed, int number, int *target, int64_t *value)
{
    static const int sides[] = {0, 1, -1, 2};
    const int pairs = constants->whole_count * TARGETS;
    if (pairs == 0)
        return false;
    int step = 1 + (int)(random_bits(seed, SEED_OWN, 0) % (uint64_t)pairs);
    for (int a = step, b = pairs; b;) { /* steps that meet every pair have no factor in common with their number */
        int rest = a % b;
        a = b;
        b = rest;
        if (b == 0 && a > 1) {
            a = ++step;
            b = pairs;
        }
    }
    const int pair = (int)((int64_t)number * step % pairs);
    *target = pair % TARGETS;
    *value = constants->whole[pair / TARGETS] + sides[number / pairs % COUNT_OF(sides)];
    return true;
}

/* One size at a number of the kernel or next to it; the others are so small that it can be. False if the image has no such problem. */
static bool put_at_own(struct dice *dice, int target, int64_t value, const struct cuda_configuration *image,
                       const struct cuda_manifest *manifest, int below, struct problem_sizes *sizes)
{
    const int64_t most[TARGETS] = {
        [BATCH] = MANY,     [GROUP] = 64,         [HEADS] = MANY,     [ROWS] = MOST_ROWS,        [KEYS] = MOST_KEYS,
        [DIM] = image->dim, [DIM_V] = image->dim, [PAGE] = MOST_KEYS, [WINDOW_LEFT] = MOST_KEYS, [WINDOW_RIGHT] = MOST_KEYS};
    int64_t *const place[TARGETS] = {[BATCH] = &sizes->batch,
                                     [GROUP] = &sizes->group,
                                     [HEADS] = &sizes->heads_kv,
                                     [ROWS] = &sizes->rows,
                                     [KEYS] = &sizes->keys,
                                     [DIM] = &sizes->dim,
                                     [DIM_V] = &sizes->dim_v,
                                     [PAGE] = &sizes->page,
                                     [WINDOW_LEFT] = &sizes->window_left,
                                     [WINDOW_RIGHT] = &sizes->window_right};
    const int64_t rows_most = image->numbers[CUDA_ROWS_MOST] / (manifest->packs ? sizes->group : 1);
    const bool is_dim = target == DIM || target == DIM_V, is_window = target == WINDOW_LEFT || target == WINDOW_RIGHT;
    if (value > most[target] || value < 1 || (is_dim && (!manifest->padding || value <= below)) ||
        (target == ROWS && image->numbers[CUDA_ROWS_MOST] && value > rows_most))
        return false;
    if (!is_dim) {
        sizes->batch = 1 + roll(dice, 2);
        sizes->heads_kv = 1;
        sizes->group = sizes->group < 3 ? sizes->group : 2;
        sizes->rows = target != ROWS && sizes->rows > 9 ? 1 + roll(dice, 5) : sizes->rows;
        sizes->keys = sizes->keys > 90 ? 1 + roll(dice, 90) : sizes->keys;
    }
    *place[target] = value;
    if (is_window)
        sizes->keys = value + 2 + roll(dice, 40);
    return true;
}

static double blocks_of(const struct problem_sizes *sizes, const int64_t *n, bool packs)
{
    return (double)(sizes->batch * sizes->heads_kv *
                    (packs ? ceiling(sizes->rows * sizes->group, n[CUDA_TILE_Q])
                           : sizes->group * ceiling(sizes->rows, n[CUDA_TILE_Q])));
}

/* Sizes for a row of levels, fewer where they would be too much. */
static struct problem_sizes draw_sizes(struct dice *dice, const int *row, const struct cuda_configuration *image, int below,
                                       const struct cuda_manifest *manifest)
{
    const int64_t *n = image->numbers, q = n[CUDA_TILE_Q], kv = n[CUDA_TILE_KV];
    struct problem_sizes sizes = {.batch = row[FIELD_batch] < 2 ? row[FIELD_batch] + 1 + roll(dice, row[FIELD_batch] + 1)
                                                                : 4 + roll(dice, 2),
                                  .heads_kv = row[FIELD_heads_kv] + 1 + roll(dice, row[FIELD_heads_kv] + 1),
                                  .group = row[FIELD_group] < 8 ? row[FIELD_group] + 1 : 9 + roll(dice, 4),
                                  .dim = image->dim};
    sizes.rows = row[FIELD_rows] == ROWS_ONE ? 1 : row[FIELD_rows] == ROWS_FEW ? 2 + roll(dice, 6) : next_to(dice, q);
    sizes.keys = row[FIELD_keys] == KEYS_ONE    ? 1
                 : row[FIELD_keys] == KEYS_FEW  ? 2 + roll(dice, 12)
                 : row[FIELD_keys] == KEYS_TILE ? next_to(dice, kv)
                                                : kv * (1 + roll(dice, 3)) + 1 + roll(dice, kv);
    const int64_t most = n[CUDA_ROWS_MOST] / (manifest->packs ? sizes.group : 1);
    if (n[CUDA_ROWS_MOST] && sizes.rows > most)
        sizes.rows = most > 2 ? most : 2;
    if (manifest->padding && roll(dice, 2)) {
        const int64_t step = roll(dice, 2) ? 8 : 1;
        sizes.dim = (below / step + 1 + roll(dice, (image->dim - below) / step)) * step;
    }
    sizes.padded = sizes.dim % 8 && (n[CUDA_ALIGN] || roll(dice, 2)); /* columns behind the last are in the same vector, and NaN */
    const double block = (double)(q * kv) * (double)image->dim;
    for (int step = 0; step < 6; step++) {
        double blocks = blocks_of(&sizes, n, manifest->packs);
        if (blocks <= MOST_BLOCKS && blocks * block * (double)ceiling(sizes.keys, kv) <= MOST_TILE_WORK)
            break;
        if (step == 0)
            sizes.batch = sizes.batch < 2 ? sizes.batch : 2;
        else if (step == 1)
            sizes.keys = sizes.keys < kv + 1 ? sizes.keys : kv + 1;
        else if (step == 2)
            sizes.heads_kv = sizes.heads_kv < 2 ? sizes.heads_kv : 2;
        else if (step == 3)
            sizes.rows = sizes.rows < q / sizes.group ? sizes.rows : q / sizes.group + 2;
        else
            sizes.keys = step == 4 && sizes.keys > kv - 1 ? kv - 1 : sizes.keys;
    }
    return sizes;
}

/* The group of this dtype: the smallest dim for most rows, every other one in turn. `below` is the largest dim before it. */
static int choose_group(const struct emulation_problems *problems, uint32_t dtype, int number, int *below)
{
    const struct cuda_emulation *emulation = problems->emulation;
    int groups[EMULATION_MOST_GROUPS], count = 0;
    for (int i = 0; i < emulation->group_count; i++) {
        int at = count;
        if (emulation->groups[i].dtype != dtype)
            continue;
        for (; at > 0 && emulation->groups[groups[at - 1]].dim > emulation->groups[i].dim; at--)
            groups[at] = groups[at - 1];
        groups[at] = i;
        count++;
    }
    int chosen = number % 3 == 2 ? number / 3 % (count ? count : 1) : 0;
    *below = chosen ? emulation->groups[groups[chosen - 1]].dim : 0;
    return count ? groups[chosen] : -1;
}

/* Many keys, of which a window begins anywhere, and pages of whole tiles and others. */
static void put_at_many_keys(const struct problem_space *space, struct dice *dice, const struct cuda_configuration *image,
                             int row[COVERING_FIELDS], struct problem_sizes *sizes)
{
    enum { CAUSAL_BR = 2, BR };
    const int64_t kv = image->numbers[CUDA_TILE_KV], most = (int64_t)(MOST_ELEMENTS / 2) / (image->dim + 8);
    sizes->batch = 1 + roll(dice, 2);
    sizes->heads_kv = 1;
    sizes->group = sizes->group < 3 ? sizes->group : 3;
    sizes->rows = sizes->rows > 9 && roll(dice, 2) ? 1 + roll(dice, 5) : sizes->rows;
    sizes->keys = kv * (4 + roll(dice, 16)) + 1 + roll(dice, kv);
    sizes->keys = sizes->keys < most ? sizes->keys : most;
    if (roll(dice, 2)) { /* of few rows it begins behind the first key if they are the last */
        sizes->window_left = 1 + roll(dice, sizes->keys);
        row[FIELD_mask] = CAUSAL_BR + (int)roll(dice, 2);
    }
    if (roll(dice, 2) && !space->refused[FIELD_page][1]) {
        sizes->page = roll(dice, 2) ? kv << roll(dice, 3) : 8 * (1 + roll(dice, 8));
        row[FIELD_packing] &= 1;
        row[FIELD_page] = row[FIELD_page] ? row[FIELD_page] : 1;
    }
    sizes->full = roll(dice, 2);
    if (sizes->full) {
        row[FIELD_lengths] = 1;
        row[FIELD_ends] = 0;
    }
}

/* The next size at a number of the kernel that this image has problems for, if there is one: packed sequences and lengths are full then, and
 * keys are not packed where they are paged. */
static void put_at_next_own(struct emulation_problems *problems, struct dice *dice, const struct cuda_configuration *image,
                            int below, int row[COVERING_FIELDS], struct problem_sizes *sizes)
{
    for (int tries = 0; tries < 40; tries++) {
        int target;
        int64_t value;
        if (!own_value(&problems->emulation->constants, problems->proof->seed, problems->own++, &target, &value))
            return;
        if (!put_at_own(dice, target, value, image, problems->proof->manifest, below, sizes))
            continue;
        sizes->full = true;
        row[FIELD_lengths] = 1;
        row[FIELD_ends] = 0;
        if (target == PAGE)
            row[FIELD_packing] &= 1;
        return;
    }
}

static bool next_covering(struct emulation_problems *problems, struct emulation_problem *next)
{
    const struct cuda_emulation *emulation = problems->emulation;
    int row[COVERING_FIELDS], below;
    for (int tries = 0; tries < 200 && problems->covering && covering_next(problems->covering, row); tries++) {
        const int number = problems->drawn++;
        const int group = choose_group(problems, (uint32_t)row[FIELD_dtype] + ATTEST_F32, number, &below);
        const int device = emulation->devices[number % emulation->device_count];
        for (int again = 0; group >= 0 && again < 4; again++) {
            struct dice dice = {.seed = random_bits(problems->proof->seed, SEED_ROWS, (uint64_t)(4 * number + again))};
            struct problem_sizes sizes =
                draw_sizes(&dice, row, cuda_emulation_image(emulation, group, device), below, problems->proof->manifest);
            if (again == 3 && sizes.rows > 2)
                sizes.rows = 2;
            if (number % 8 == 3 && again < 3)
                put_at_many_keys(&problems->space, &dice, cuda_emulation_image(emulation, group, device), row, &sizes);
            else if (number % 2 && again < 3)
                put_at_next_own(problems, &dice, cuda_emulation_image(emulation, group, device), below, row, &sizes);
            if (!problem_space_draw_sized(&problems->space, row, dice.seed, &sizes, MOST_ELEMENTS, &next->problem, &next->contents))
                continue;
            next->kind = EMULATION_COVERING;
            next->orders = EMULATION_COVERING_ORDERS;
            memcpy(next->row, row, sizeof next->row);
            next->device = device;
            next->group = cuda_emulation_group(problems->proof, emulation, &next->problem);
            next->seed = 1 + random_bits(problems->proof->seed, SEED_INPUTS, (uint64_t)number) % 999999999;
            if (next->group >= 0)
                return true;
        }
    }
    return false;
}

/* ---- larger problems ----------------------------------------------------------------------------------------------------- */

/* The struct has all but a seed and a group. */
static bool add_made(struct emulation_problems *problems, struct emulation_problem made)
{
    if (problems->count == MOST_TELLING || !gate_takes(problems->proof, &made.problem))
        return false;
    made.kind = EMULATION_TELLING;
    made.seed = problems->proof->seed + (uint64_t)problems->count;
    made.group = cuda_emulation_group(problems->proof, problems->emulation, &made.problem);
    if (made.group >= 0)
        problems->telling[problems->count++] = made;
    return made.group >= 0;
}

static bool add(struct emulation_problems *problems, const char *text, int device, int orders)
{
    struct emulation_problem made = {.device = device, .orders = orders};
    return attest_problem_parse(text, &made.problem, NULL, 0) == ATTEST_OK && add_made(problems, made);
}

/* Offsets that need more than 32 bits, by the stride of this kind (far_strides.h), first with a bias and LSE. */
static void add_far(struct emulation_problems *problems, const struct cuda_configuration *image, int kind)
{
    struct emulation_problem made = {.device = cuda_limits[image->arch].number, .orders = 1, .far = true};
    struct far_spread spreads[TENSORS_MOST];
    for (int n = 0; n < 2; n++)
        if (far_problem(kind, image->dtype, image->dim, false, n ? ATTEST_BIAS | ATTEST_LSE : 0, &made.problem)) {
            const attest_problem far = far_strides(&made.problem, spreads);
            if (gate_takes(problems->proof, &far) && add_made(problems, made))
                return;
        }
}

/* Likewise, with contents: what only shows where they are not the usual. */
static void add_filled(struct emulation_problems *problems, const char *text, int device, const char *contents)
{
    if (!add(problems, text, device, EMULATION_COVERING_ORDERS))
        return;
    struct emulation_problem *made = &problems->telling[problems->count - 1];
    made->filled = contents_parse(contents, &made->contents, (char[256]){0}, 256);
}

/* With its LSE if the kernel writes one. */
static void add_with(struct emulation_problems *problems, int device, int orders, const char *base, const char *words)
{
    char text[ATTEST_PROBLEM_TEXT];
    snprintf(text, sizeof text, "%s%s:lse", base, words);
    if (add(problems, text, device, orders))
        return;
    snprintf(text, sizeof text, "%s%s", base, words);
    add(problems, text, device, orders);
}

enum {
    ROUND_RING,
    ROUND_GRID,
    ROUND_PIECES,
    ROUND_ODD_ROWS,
    ROUND_NOTHING,
    ROUND_FAR,
    ROUND_MOST_PIECES,
    ROUND_MANY,
    ROUND_DRIFT,
    ROUNDS
};

/* Features, each in a problem in which rings of stages and persistent grids go round: what is done in a later round, or in a buffer
 * that is used again, may be wrong with one of them alone. */
static const struct {
    const char *words, *contents;
} features[] = {
    {":scale=2", "v=by-row"},
    {":alibi:br", "slopes=large"},
    {":causal", "qk=by-row"},
    {":causal:br", "v=by-row"},
    {":wl=70:wr=3", ""},
    {":softcap=2.5", "qk=by-head"},
    {":alibi", "slopes=mixed"},
    {":bias", "bias=tail-hidden"},
    {":bias=f32", "bias=low"},
    {":bias", "special=nan-behind-bias"},
    {":sink", "sinks=low"},
    {":lens", "lengths=zeros"},
    {":lens:causal:br", "lengths=zeros-first"},
    {":o=f32", "v=by-column"},
    {":invariant", "qk=by-row"},
    {":lens:bias", "bias=rows-hidden"},
    {":sink:wl=200", "sinks=large"},
};
enum {
    PAGED_FEATURES = 3,
    PACKED_FEATURES = 2,
    FEATURES = COUNT_OF(features) + PAGED_FEATURES + PACKED_FEATURES,
    FEATURES_OF_IMAGE = 4
};

static void add_feature(struct emulation_problems *problems, const struct cuda_configuration *image, int feature)
{
    const int64_t *n = image->numbers;
    const int tile_kv = (int)n[CUDA_TILE_KV], stages = n[CUDA_STAGES] > 0 ? (int)n[CUDA_STAGES] : 1,
              few = n[CUDA_ROWS_MOST] ? 1 : (int)n[CUDA_TILE_Q] / 2 + 3, device = cuda_limits[image->arch].number,
              other = feature - COUNT_OF(features);
    /* Keys that are not cut into pieces, because there are tiles enough, are what a ring goes round with. */
    const bool pieces = problems->proof->manifest->launch == ATTEST_LAUNCH_SPLIT ||
                        problems->proof->manifest->launch == ATTEST_LAUNCH_JOINED,
               whole = pieces && (problems->proof->seed >> feature % 32 & 1);
    const int batch = whole ? 9 : 3, keys = tile_kv * (stages + (whole ? 2 : stages / 2 + 2)) + 5;
    const char *dtype = cuda_dtype_name(image->dtype);
    char text[ATTEST_PROBLEM_TEXT];
    int used =
        snprintf(text, sizeof text, "fwd:%s:b%d:hq2:hkv%d:sq%d:skv%d:d%d", dtype, batch, 1 + feature % 2, few, keys, image->dim);
    if (other < 0) {
        snprintf(text + used, sizeof text - (size_t)used, "%s", features[feature].words);
    } else if (other < PAGED_FEATURES) {
        /* The last in pages that no tile is made of, and to the bit as without pages. */
        const int page = other == 0 ? tile_kv : other == 1 ? 16 : 24;
        snprintf(text + used, sizeof text - (size_t)used, ":lens%s:page=%d,%d", other == 2 ? ":invariant:lse" : "", page,
                 batch * ((keys + page - 1) / page) + 2);
    } else {
        snprintf(text + used, sizeof text - (size_t)used, "%s:varlenq=%d:varlenkv=%d", other == PAGED_FEATURES ? "" : ":causal:br",
                 batch * few, batch * keys);
    }
    add_filled(problems, text, device,
               other < 0                ? features[feature].contents
               : other == 2             ? "lengths=full"
               : other < PAGED_FEATURES ? "lengths=zeros-last"
                                        : "ends=both");
}

static void add_round(struct emulation_problems *problems, const struct cuda_configuration *image, int round)
{
    const int64_t *n = image->numbers;
    const bool smallest = image->dim == problems->proof->manifest->dims.values[0],
               persistent = problems->proof->manifest->launch == ATTEST_LAUNCH_PERSISTENT;
    const int tile_kv = (int)n[CUDA_TILE_KV], stages = n[CUDA_STAGES] > 0 ? (int)n[CUDA_STAGES] : 1,
              few = n[CUDA_ROWS_MOST] ? 1 : (int)n[CUDA_TILE_Q] / 2 + 3, device = cuda_limits[image->arch].number;
    const int orders = image == problems->emulation->telling ? EMULATION_ORDERS : EMULATION_COVERING_ORDERS;
    const char *dtype = cuda_dtype_name(image->dtype);
    char base[160];
    switch (round) {
    case ROUND_RING:
        snprintf(base, sizeof base, "fwd:%s:b1:hq2:hkv1:sq%d:skv%d:d%d", dtype, few,
                 tile_kv * (smallest ? 3 * stages + 2 : stages + stages / 2 + 2) + 5, image->dim);
        add_with(problems, device, orders, base, smallest ? "" : ":scale=2"); /* in which maxima rise from block to block */
        break;
    case ROUND_FAR: /* of the first image every kind, of the others one, which the seed draws */
        for (int kind = 0; kind < FAR_KINDS; kind++)
            if (image == problems->emulation->telling ||
                (uint64_t)kind == (problems->proof->seed + (uint64_t)(image - problems->emulation->telling)) % FAR_KINDS)
                add_far(problems, image, kind);
        break;
    case ROUND_ODD_ROWS: { /* of Q, K and V in turn, where vectors would be misaligned */
        const int odd = (int)(problems->proof->seed % 3), keys = tile_kv + 9, column = image->dim + 1;
        snprintf(base, sizeof base, "fwd:%s:b1:hq2:hkv2:sq%d:skv%d:d%d:%cs=%d,%d,%d", dtype, few, keys, image->dim, "qkv"[odd],
                 2 * (odd ? keys : few) * column, (odd ? keys : few) * column, column);
        add_with(problems, device, EMULATION_COVERING_ORDERS, base, "");
        break;
    }
    case ROUND_GRID: /* with tiles of all lengths */
        snprintf(base, sizeof base, "fwd:%s:b%d:hq2:hkv1:sq%d:skv%d:d%d", dtype,
                 !persistent ? 2
                 : smallest  ? 13
                             : 7,
                 few, tile_kv + 9, image->dim);
        add_with(problems, device, orders, base, ":causal:br");
        break;
    case ROUND_PIECES: /* one tile: keys are cut into pieces, of which no row sees the last */
        snprintf(base, sizeof base, "fwd:%s:b1:h1:sq3:skv%d:d%d", dtype, 5 * tile_kv + 5, image->dim);
        add_with(problems, device, orders, base, ":causal");
        add_with(problems, device, orders, base, "");
        break;
    case ROUND_NOTHING:
        snprintf(base, sizeof base, "fwd:%s:b2:h2:sq%d:skv0:d%d", dtype, few, image->dim);
        add_with(problems, device, orders, base, "");
        break;
    case ROUND_MOST_PIECES: /* as many as there can be, of one row */
        if (problems->proof->manifest->launch == ATTEST_LAUNCH_SPLIT || problems->proof->manifest->launch == ATTEST_LAUNCH_JOINED) {
            snprintf(base, sizeof base, "fwd:%s:b1:hq1:hkv1:sq1:skv%d:d%d", dtype, 40 * tile_kv + 5, image->dim);
            add_with(problems, device, EMULATION_COVERING_ORDERS, base, "");
        }
        if (n[CUDA_SPLIT_KEYS]) { /* pieces of a size of its own, which scores rise in, or do not */
            snprintf(base, sizeof base, "fwd:%s:b1:h1:sq1:skv%" PRId64 ":d%d:invariant:lse", dtype,
                     n[CUDA_SPLIT_KEYS] * (17 + (int64_t)(problems->proof->seed % 16)) + 5, image->dim);
            add(problems, base, device, 1);
            snprintf(base + strlen(base), sizeof base - strlen(base), ":alibi:br");
            add_filled(problems, base, device, problems->proof->seed % 2 ? "slopes=large" : "slopes=mixed");
        }
        break;
    case ROUND_DRIFT: /* the maximum stays for many blocks, and is so large that rounding it twice makes a difference */
        if (image == problems->emulation->telling) {
            snprintf(base, sizeof base, "fwd:%s:b1:h1:sq3:skv%d:d%d:scale=1000", dtype, 33 * tile_kv + 5, image->dim);
            add_with(problems, device, 1, base, "");
        }
        break;
    case ROUND_MANY: /* more tiles, heads and sequences than a byte counts: of the first image alone, and in one order */
        for (int which = 0; which < 3 && image == problems->emulation->telling; which++) {
            snprintf(base, sizeof base, "fwd:%s:b%d:h%d:sq%d:skv3:d%d", dtype, which == 0 ? MANY : 1, which == 1 ? MANY : 1,
                     which < 2               ? 1
                     : n[CUDA_ROWS_MOST] > 0 ? (int)n[CUDA_ROWS_MOST]
                                             : MANY * (int)n[CUDA_TILE_Q],
                     image->dim);
            add_with(problems, device, 1, base, "");
        }
        if (image == problems->emulation->telling &&
            !n[CUDA_ROWS_MOST]) { /* and as many tiles of several heads, in numbers that the seed draws */
            const int tiles = MANY / 8 + (int)(problems->proof->seed % (MANY / 4));
            snprintf(base, sizeof base, "fwd:%s:b1:h%d:sq%d:skv3:d%d", dtype, MANY / tiles + 1,
                     tiles * (int)n[CUDA_TILE_Q] - (int)(problems->proof->seed % (uint64_t)n[CUDA_TILE_Q]), image->dim);
            add_with(problems, device, 1, base, "");
        }
        if (image == problems->emulation->telling) { /* and more keys than 16 bits count */
            snprintf(base, sizeof base, "fwd:%s:b1:h1:sq1:skv%d:d%d", dtype, MANY_KEYS, image->dim);
            add_with(problems, device, 1, base, "");
            /* and more sequences, of which few have rows, behind 33,000 that have none */
            snprintf(base, sizeof base, "fwd:%s:b66600:h1:sq1:skv1:d%d:varlenq=40", dtype, image->dim);
            add_filled(problems, base, device, "lengths=zeros-first");
        }
        break;
    default:
        break;
    }
}

/* Numbers of the kernel that are too large for the covering array, as a size of the first image: of keys, in pages if they may be, of rows, heads or
 * sequences, as many as there is time for. */
static void add_own(struct emulation_problems *problems, const struct cuda_configuration *image)
{
    const struct kernel_constants *constants = &problems->emulation->constants;
    const int64_t tile_q = image->numbers[CUDA_TILE_Q];
    const int tile_kv = (int)image->numbers[CUDA_TILE_KV];
    int64_t time = OWN_KEYS_TIME;
    for (int n = 0, target; n < constants->whole_count * TARGETS; n++) {
        int64_t value;
        char text[160], pages[40];
        if (!own_value(constants, problems->proof->seed, n, &target, &value) || value > MOST_OWN)
            continue;
        const int64_t size = value + 1 + (int64_t)(problems->proof->seed % 40);
        const int64_t asked[TARGETS] = {[KEYS] = value > MOST_KEYS ? size : 0,
                                        [ROWS] =
                                            value > MOST_ROWS && !image->numbers[CUDA_ROWS_MOST] ? size / tile_q * BLOCK_TIME : 0,
                                        [HEADS] = value > MANY ? size * BLOCK_TIME : 0,
                                        [BATCH] = value > MANY ? size * BLOCK_TIME : 0};
        if (!asked[target] || asked[target] > time)
            continue;
        time -= asked[target];
        snprintf(text, sizeof text, "fwd:%s:b%" PRId64 ":h%" PRId64 ":sq%" PRId64 ":skv%" PRId64 ":d%d",
                 cuda_dtype_name(image->dtype), target == BATCH ? size : 1, target == HEADS ? size : 1, target == ROWS ? size : 1,
                 target == KEYS ? size : 3, image->dim);
        snprintf(pages, sizeof pages, ":page=%d,%" PRId64, tile_kv, ceiling(size, tile_kv) + 2);
        const int before = problems->count;
        if (target == KEYS && n % 2)
            add_with(problems, cuda_limits[image->arch].number, 1, text, pages);
        if (problems->count == before)
            add_with(problems, cuda_limits[image->arch].number, 1, text, "");
    }
}

static double work_of(const attest_problem *p)
{
    return (double)p->batch * (double)p->heads_q * (double)(p->seq_q + 8) * (double)(p->seq_kv + 8) * (double)(p->dim + p->dim_v);
}

/* A suite that was asked for comes first, as it is; of the usual one come problems that are small enough, last, in an order that the
 * seed draws. */
static void add_suite(struct emulation_problems *problems, bool asked_for)
{
    const struct problem_list *suite = &problems->proof->suite;
    const struct cuda_emulation *emulation = problems->emulation;
    for (int n = 0; n < suite->count; n++) {
        uint64_t bits = random_bits(problems->proof->seed, SEED_SUITE, (uint64_t)n);
        const struct problem_entry *entry = &suite->entries[asked_for ? (uint64_t)n : bits % (uint64_t)suite->count];
        if (asked_for || work_of(&entry->problem) <= MOST_SUITE_WORK)
            add(problems, entry->text, emulation->devices[(bits >> 32) % (uint64_t)emulation->device_count], EMULATION_ORDERS);
    }
}

/* Each image goes round its ring, so that none is left out where time is short. Then the first image, which is the smallest, has
 * everything; the others have the rounds in fewer orders, and some features each. */
static void add_rounds(struct emulation_problems *problems)
{
    const struct cuda_emulation *emulation = problems->emulation;
    const int first = (int)(random_bits(problems->proof->seed, SEED_FEATURES, 0) % FEATURES);
    for (int i = 0; i < emulation->different; i++)
        if (emulation->telling[i].tile == 0)
            add_round(problems, &emulation->telling[i], ROUND_RING);
    for (int i = 0; i < emulation->different; i++) {
        const struct cuda_configuration *image = &emulation->telling[i];
        for (int round = ROUND_RING + 1; round < ROUNDS && image->tile == 0; round++)
            add_round(problems, image, round);
        if (i == 0)
            add_own(problems, image);
        for (int n = 0; n < (i ? FEATURES_OF_IMAGE : FEATURES) && image->tile == 0; n++)
            add_feature(problems, image, (first + i * FEATURES_OF_IMAGE + n) % FEATURES);
    }
}

/* ---- all ------------------------------------------------------------------------------------------------------------------ */

struct emulation_problems *emulation_problems_make(const struct proof *proof, const struct cuda_emulation *emulation)
{
    struct emulation_problems *problems = calloc(1, sizeof *problems);
    if (!problems)
        return NULL;
    problems->proof = proof;
    problems->emulation = emulation;
    problems->telling = calloc(MOST_TELLING, sizeof *problems->telling);
    if (!problems->telling) {
        emulation_problems_free(problems);
        return NULL;
    }
    const bool asked_for = proof->session->options.suite != NULL;
    if (asked_for)
        add_suite(problems, true);
    add_rounds(problems);
    if (!asked_for)
        add_suite(problems, false);
    make_space(problems);
    problems->covering = covering_make(&problems->space.covering, random_bits(proof->seed, SEED_ARRAY, 0));
    return problems;
}

void emulation_problems_free(struct emulation_problems *problems)
{
    if (problems) {
        covering_free(problems->covering);
        free(problems->telling);
    }
    free(problems);
}

bool emulation_problems_next(struct emulation_problems *problems, enum emulation_kind kind, struct emulation_problem *next)
{
    if (kind == EMULATION_COVERING)
        return next_covering(problems, next);
    if (problems->next == problems->count)
        return false;
    *next = problems->telling[problems->next++];
    return true;
}

void emulation_problems_mark(struct emulation_problems *problems, const struct emulation_problem *run,
                             const bool observed[COVERING_FIELDS])
{
    if (run->kind == EMULATION_COVERING)
        covering_mark(problems->covering, run->row, observed);
}

int emulation_problems_left(const struct emulation_problems *problems)
{
    return problems->count - problems->next;
}
