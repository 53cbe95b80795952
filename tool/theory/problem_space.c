/*
 * problem_space.c - problems by the levels of their fields (see problem_space.h).
 *
 * Two levels agree if a problem can have both and both can make a difference: a batch stride of 0 needs two sequences, the kind of a
 * bias needs a bias. Fields that belong to a feature have their first level while it is off, and count for nothing then.
 */
#include "problem_space.h"

#include <math.h>
#include <string.h>

#include "base/random.h"

struct level {
    const char *name;
    long double low, high;
};

enum kind { KIND_WHOLE, KIND_REAL, KIND_CHOICE, KIND_FILLED };

struct field {
    const char *name, *covers;
    enum kind kind;
    int content; /* of FILLED */
    int count;
    struct level levels[COVERING_LEVELS];
};

#define LEVELS(...)                                                                                                                \
    COUNT_OF(((struct level[]){__VA_ARGS__})),                                                                                     \
    {                                                                                                                              \
        __VA_ARGS__                                                                                                                \
    }
#define WHOLE(name, covers, ...)  {#name, covers, KIND_WHOLE, 0, LEVELS(__VA_ARGS__)},
#define REAL(name, covers, ...)   {#name, covers, KIND_REAL, 0, LEVELS(__VA_ARGS__)},
#define CHOICE(name, covers, ...) {#name, covers, KIND_CHOICE, 0, LEVELS(__VA_ARGS__)},
#define FILLED(name, covers)      {#name, covers, KIND_FILLED, CONTENT_##name, 0, {{NULL, 0, 0}}},
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
static const struct field fields[FIELD_COUNT] = {
#include "problem_fields.def"
};
#pragma GCC diagnostic pop

enum { DTYPE_O_SAME, DTYPE_O_F32 };
enum { DIM_V_SAME, DIM_V_SMALLER, DIM_V_LARGER, DIM_V_FEW, DIM_V_OTHER };
enum { MASK_NONE, MASK_CAUSAL, MASK_CAUSAL_BR, MASK_BR };
enum { SCALE_DEFAULT, SCALE_ONE, SCALE_NEGATIVE, SCALE_ZERO, SCALE_SMALL, SCALE_LARGE };
enum { BIAS_NONE, BIAS_SAME, BIAS_F32 };
enum { ALIBI_BY_SEQUENCE = 2 };
enum {
    BIAS_FULL,
    BIAS_WIDE_ROWS,
    BIAS_ONE_SEQUENCE,
    BIAS_ONE_HEAD,
    BIAS_ONE_ROW,
    BIAS_ONE_MASK,
    BIAS_ONE_LINE,
    BIAS_KEY_0,
    BIAS_KEY_2,
    BIAS_KEY_NEGATIVE,
    BIAS_ROW_NEGATIVE,
    BIAS_TRANSPOSED
};
enum { PACKING_DENSE, PACKING_Q, PACKING_KV, PACKING_BOTH };
enum { PITCH_EXACT, PITCH_WIDER, PITCH_MUCH_WIDER };
enum {
    LAYOUT_BHSD,
    LAYOUT_BSHD,
    LAYOUT_SBHD,
    LAYOUT_HBSD,
    LAYOUT_GAPS,
    LAYOUT_ODD_GAPS,
    LAYOUT_BATCH_NEGATIVE,
    LAYOUT_HEAD_NEGATIVE,
    LAYOUT_ROW_NEGATIVE,
    LAYOUT_ONE_SEQUENCE,
    LAYOUT_ONE_HEAD,
    LAYOUT_ONE_ROW
};

/* Elements of Q, K or V that a problem of the array may have. */
#define MOST_ELEMENTS 1e6

const char *field_name(int field)
{
    return fields[field].name;
}

const char *field_covers(int field)
{
    return fields[field].covers;
}

int field_levels(int field)
{
    return fields[field].kind == KIND_FILLED ? content_words((enum content)fields[field].content) : fields[field].count;
}

const char *field_level_name(int field, int level)
{
    return fields[field].kind == KIND_FILLED ? content_word((enum content)fields[field].content, level)
                                             : fields[field].levels[level].name;
}

/* ---- which levels agree ---------------------------------------------------------------------------------------------- */

/* Fields that say nothing while another has its first level. */
static const struct {
    int field, owner;
} owned[] = {
    {FIELD_slopes, FIELD_alibi}, {FIELD_bias_layout, FIELD_bias_type}, {FIELD_bias, FIELD_bias_type},
    {FIELD_sinks, FIELD_sink},   {FIELD_layout_lse, FIELD_lse},        {FIELD_pages, FIELD_page},
    {FIELD_pitch, FIELD_page},   {FIELD_ends, FIELD_packing},
};

static bool has_two(int field, int level)
{
    return fields[field].levels[level].low > 1;
}

/* What a layout needs more than one of: the field, or -1. */
static int layout_needs(int layout, bool keys)
{
    switch (layout) {
    case LAYOUT_BATCH_NEGATIVE:
    case LAYOUT_ONE_SEQUENCE:
        return FIELD_batch;
    case LAYOUT_ROW_NEGATIVE:
    case LAYOUT_ONE_ROW:
    case LAYOUT_SBHD:
        return keys ? FIELD_keys : FIELD_rows;
    case LAYOUT_HEAD_NEGATIVE:
    case LAYOUT_ONE_HEAD:
    case LAYOUT_HBSD:
        return FIELD_heads_kv;
    default:
        return -1;
    }
}

static int bias_needs(int layout)
{
    switch (layout) {
    case BIAS_ONE_SEQUENCE:
        return FIELD_batch;
    case BIAS_ONE_HEAD:
    case BIAS_ONE_MASK:
        return FIELD_heads_kv;
    case BIAS_ONE_ROW:
    case BIAS_ONE_LINE:
    case BIAS_ROW_NEGATIVE:
    case BIAS_WIDE_ROWS:
        return FIELD_rows;
    case BIAS_KEY_0:
    case BIAS_KEY_2:
    case BIAS_KEY_NEGATIVE:
    case BIAS_TRANSPOSED:
        return FIELD_keys;
    default:
        return -1;
    }
}

static bool is_packed(int packing, bool keys)
{
    return packing == PACKING_BOTH || packing == (keys ? PACKING_KV : PACKING_Q);
}

/* Of a layout with the level of another field. */
static bool layout_agrees(int field, int layout, int other, int level)
{
    bool keys = field == FIELD_layout_k || field == FIELD_layout_v;
    int needs = layout_needs(layout, keys);
    if (other == needs && !has_two(other, level))
        return false;
    if (other == FIELD_packing && is_packed(level, keys)) /* there is no batch stride */
        return needs != FIELD_batch && layout != LAYOUT_SBHD && layout != LAYOUT_HBSD;
    /* rows of equal keys make every score the same: what scores are made of would not be seen */
    return !(field == FIELD_layout_k && layout == LAYOUT_ONE_ROW && other == FIELD_lse && level == 0);
}

/* NaN in Q or K and infinite biases stay where every weight is moderate. V may be infinite or NaN at a weight that underflows: it reaches the
 * row all the same. */
static bool special_agrees(int special, int other, int level)
{
    enum { INF_IN_V = 2, INF_IN_BIAS = 5, NAN_BEHIND_BIAS = 6 }; /* and NaN in the bias */
    if (special <= INF_IN_V)
        return true;
    if (special >= INF_IN_BIAS && other == FIELD_bias_type && level == BIAS_NONE)
        return false;
    if (special == NAN_BEHIND_BIAS &&
        ((other == FIELD_bias_layout && level == BIAS_KEY_0) || (other == FIELD_keys && !has_two(other, level)) ||
         (other == FIELD_layout_k && level >= LAYOUT_ONE_SEQUENCE) || (other == FIELD_layout_v && level >= LAYOUT_ONE_SEQUENCE) ||
         (other == FIELD_page && level)))
        return false;
    return !(other == FIELD_scale && (level == SCALE_LARGE || level == SCALE_ONE)) && !(other == FIELD_slopes && level) &&
           !(other == FIELD_alibi && level) && !(other == FIELD_bias && level >= 4) && !(other == FIELD_sinks && level >= 3);
}

/* K and V of one memory have the same layout, which is K's. */
static bool shared_agrees(int shared, int other, int level)
{
    switch (shared) {
    case SHARED_K_V:
        return !((other == FIELD_dim_v || other == FIELD_layout_v || other == FIELD_v || other == FIELD_special) && level) &&
               !(other == FIELD_layout_k && level >= LAYOUT_ONE_SEQUENCE);
    case SHARED_CU_SEQLENS:
        return !(other == FIELD_packing && level != PACKING_BOTH);
    case SHARED_SLOPES_SINKS:
        return !((other == FIELD_alibi || other == FIELD_sink) && !level) && !(other == FIELD_sinks && level);
    default:
        return true;
    }
}

static bool one_way(int a, int la, int b, int lb)
{
    for (int n = 0; n < COUNT_OF(owned); n++)
        if (owned[n].field == a && owned[n].owner == b && lb == 0 && la != 0)
            return false;
    switch (a) {
    case FIELD_layout_q:
    case FIELD_layout_k:
    case FIELD_layout_v:
    case FIELD_layout_o:
    case FIELD_layout_lse:
        return layout_agrees(a, la, b, lb);
    case FIELD_bias_layout:
        return !(b == bias_needs(la) && !has_two(b, lb));
    case FIELD_bytes:
        return !(la && b == bias_needs(la - 1) && !has_two(b, lb));
    case FIELD_special:
        return special_agrees(la, b, lb);
    case FIELD_shared:
        return shared_agrees(la, b, lb);
    case FIELD_page:
        return !(la && b == FIELD_packing && is_packed(lb, true));
    case FIELD_lengths: /* of key lengths, or of packed sequences */
        return !(la && b == FIELD_batch && !has_two(b, lb) && la >= 2 && la <= 4);
    case FIELD_dtype:
        return !(la == 0 && b == FIELD_dtype_o && lb) && !(la == 0 && b == FIELD_bias_type && lb == BIAS_F32);
    case FIELD_mask: /* a right window is nothing beside causal, but must not harm */
        return true;
    case FIELD_dim_v:
        return !(la == DIM_V_SMALLER && b == FIELD_dim && lb == 0) &&
               !(la == DIM_V_LARGER && b == FIELD_dim && lb == field_levels(FIELD_dim) - 1);
    case FIELD_ends:
        return !(la && b == FIELD_packing && lb == PACKING_DENSE);
    default:
        return true;
    }
}

static bool agree(const void *data, int a, int la, int b, int lb)
{
    const struct problem_space *space = data;
    return !space->refused[a][la] && !space->refused[b][lb] && one_way(a, la, b, lb) && one_way(b, lb, a, la);
}

/* ---- from levels to a problem ---------------------------------------------------------------------------------------- */

struct dice {
    uint64_t seed, rolled;
};
static int64_t roll(struct dice *dice, int64_t sides)
{
    return random_below(random_bits(dice->seed, 1500, dice->rolled++), sides - 1);
}

static int64_t draw_whole(struct dice *dice, int field, int level)
{
    const struct level *drawn = &fields[field].levels[level];
    int64_t low = (int64_t)drawn->low, high = (int64_t)drawn->high;
    uint64_t bits = random_bits(dice->seed, 1500, dice->rolled++), width = (uint64_t)high - (uint64_t)low + 1;
    return bits % 4 == 0 ? low : bits % 4 == 1 ? high : low + (int64_t)((bits >> 2) % width);
}

static double draw_real(struct dice *dice, int field, int level)
{
    const struct level *drawn = &fields[field].levels[level];
    double part = (double)roll(dice, 1 << 20) / (1 << 20);
    return drawn->high > 0 ? exp(log((double)drawn->low) + part * log((double)(drawn->high / drawn->low))) : 0;
}

static int64_t draw_dim_v(struct dice *dice, int level, int64_t dim)
{
    switch (level) {
    case DIM_V_SMALLER:
        return dim > 1 ? 1 + roll(dice, dim - 1) : 1;
    case DIM_V_LARGER:
        return dim < 512 ? dim + 1 + roll(dice, dim < 480 ? (dim < 16 ? 2 * dim : 32) : 512 - dim) : dim;
    case DIM_V_FEW:
        return 1 + roll(dice, 7);
    case DIM_V_OTHER:
        return 8 * (1 + roll(dice, dim < 64 ? 8 : 16));
    default:
        return dim;
    }
}

/* What a size adds to the work: a row costs as much as some keys, and a key as much as some columns. */
static double size_cost(int field, int64_t size)
{
    return (double)(size + (field == FIELD_keys ? 16 : field == FIELD_dim ? 8 : 0));
}

/* Sizes become smaller, one at random at a time, until the work is within `usual` or every size is the least of its level. */
static void draw_sizes(struct dice *dice, const int *row, double usual, const struct problem_sizes *asked, attest_problem *problem)
{
    static const int sized[] = {FIELD_batch, FIELD_group, FIELD_heads_kv, FIELD_rows, FIELD_keys, FIELD_dim};
    int64_t size[COUNT_OF(sized)];
    double least = 2;
    for (int n = 0; n < COUNT_OF(sized); n++) {
        size[n] = draw_whole(dice, sized[n], row[sized[n]]);
        least *= size_cost(sized[n], (int64_t)fields[sized[n]].levels[row[sized[n]]].low);
    }
    usual = usual > 3 * least ? usual : 3 * least; /* so that values other than the least are drawn */
    for (int tries = 0; tries < 64; tries++) {
        double work = 2;
        for (int n = 0; n < COUNT_OF(sized); n++)
            work *= size_cost(sized[n], size[n]);
        if (work <= usual)
            break;
        int n = (int)roll(dice, COUNT_OF(sized));
        int64_t low = (int64_t)fields[sized[n]].levels[row[sized[n]]].low;
        size[n] = low + (size[n] - low) / 4;
    }
    /* Numbers next to multiples of 16 and of 64 are where tiles end. */
    for (int n = 0; n < COUNT_OF(sized); n++) {
        const struct level *level = &fields[sized[n]].levels[row[sized[n]]];
        int64_t tile = roll(dice, 2) ? 16 : 64, edge = size[n] / tile * tile + roll(dice, 3) - 1;
        if (roll(dice, 2) && size[n] > 16 && edge >= (int64_t)level->low && edge <= (int64_t)level->high)
            size[n] = edge;
    }
    const int64_t wanted[COUNT_OF(sized)] = {asked->batch, asked->group, asked->heads_kv, asked->rows, asked->keys, asked->dim};
    for (int n = 0; n < COUNT_OF(sized); n++)
        size[n] = wanted[n] ? wanted[n] : size[n];
    problem->batch = size[0];
    problem->heads_kv = size[2];
    problem->heads_q = size[1] * size[2];
    problem->seq_q = size[3];
    problem->seq_kv = size[4];
    problem->dim = size[5];
    int64_t dim_v = draw_dim_v(dice, row[FIELD_dim_v], size[5]);
    problem->dim_v = asked->dim_v ? asked->dim_v : dim_v;
}

static float draw_scale(struct dice *dice, int level, int64_t dim)
{
    float usual = 1 / sqrtf((float)dim), part = (float)roll(dice, 1024) / 1024;
    switch (level) {
    case SCALE_ONE:
        return 1;
    case SCALE_NEGATIVE:
        return -usual * (0.25f + part);
    case SCALE_ZERO:
        return 0;
    case SCALE_SMALL:
        return usual * exp2f(-2 - 3 * part);
    case SCALE_LARGE:
        return usual * exp2f(2 + 3 * part);
    default:
        return usual;
    }
}

/* Strides of a tensor [outer, heads, rows, columns]; `padded`: rows are rounded up to whole vectors, whatever the layout is. */
static void set_layout(struct dice *dice, int layout, int64_t stride[3], const int64_t extent[3], int64_t columns, bool packed,
                       bool padded)
{
    static const int orders[][3] = {{2, 1, 0}, {1, 2, 0}, {1, 0, 2}, {2, 0, 1}}; /* from the inside */
    const int *order = orders[layout <= LAYOUT_HBSD ? layout : roll(dice, 2)];
    int64_t reach = columns;
    if ((layout == LAYOUT_GAPS && roll(dice, 2)) || padded) /* as vectors like them */
        reach = (reach + 7) / 8 * 8;
    for (int n = 0; n < 3; n++) {
        int64_t gap = layout == LAYOUT_GAPS ? 8 * (1 + roll(dice, 3)) : layout == LAYOUT_ODD_GAPS ? 1 + 2 * roll(dice, 6) : 0;
        stride[order[n]] = reach += gap;
        reach *= extent[order[n]] > 0 ? extent[order[n]] : 1;
    }
    if (layout >= LAYOUT_BATCH_NEGATIVE && layout <= LAYOUT_ROW_NEGATIVE)
        stride[layout - LAYOUT_BATCH_NEGATIVE] *= -1;
    if (layout >= LAYOUT_ONE_SEQUENCE)
        stride[layout - LAYOUT_ONE_SEQUENCE] = 0;
    /* Now and then a second dimension likewise. */
    int other = (int)roll(dice, 9);
    if (layout >= LAYOUT_ONE_SEQUENCE && other < 3 && columns > 0)
        stride[other] = 0;
    else if (layout >= LAYOUT_BATCH_NEGATIVE && other < 3 && other != layout - LAYOUT_BATCH_NEGATIVE)
        stride[other] = -stride[other];
    if (packed)
        stride[0] = 0;
}

/* Of a bias or a mask. */
static void set_pair_layout(struct dice *dice, int layout, const attest_problem *problem, int64_t stride[4])
{
    int64_t keys = problem->seq_kv, rows = problem->seq_q;
    int64_t key = layout == BIAS_KEY_2 ? 2 + roll(dice, 3) : 1, row = keys * key;
    if (layout == BIAS_WIDE_ROWS)
        row += 1 + roll(dice, 9);
    if (layout == BIAS_TRANSPOSED) {
        row = 1;
        key = rows;
    }
    int64_t head = layout == BIAS_TRANSPOSED ? rows * keys : row * rows;
    int64_t set[4] = {head * problem->heads_q, head, row, key};
    memcpy(stride, set, sizeof set);
    if (layout == BIAS_ONE_SEQUENCE || layout == BIAS_ONE_MASK)
        stride[0] = 0;
    if (layout == BIAS_ONE_HEAD || layout == BIAS_ONE_MASK)
        stride[1] = 0;
    if (layout == BIAS_ONE_ROW)
        stride[2] = 0;
    if (layout == BIAS_ONE_LINE) {
        stride[0] = keys;
        stride[1] = stride[2] = 0;
    }
    if (layout == BIAS_KEY_0)
        stride[3] = 0;
    if (layout == BIAS_KEY_NEGATIVE)
        stride[3] = -stride[3];
    if (layout == BIAS_ROW_NEGATIVE)
        stride[2] = -stride[2];
    if (layout >= BIAS_KEY_2 && roll(dice, 2)) /* and one of the others broadcast */
        stride[roll(dice, 3)] = 0;
}

static void set_strides(struct dice *dice, const int *row, bool padded, attest_problem *problem)
{
    bool packed_q = (problem->flags & ATTEST_VARLEN_Q) != 0, packed_kv = (problem->flags & ATTEST_VARLEN_KV) != 0;
    bool paged = (problem->flags & ATTEST_PAGED) != 0;
    int64_t q[3] = {packed_q ? 1 : problem->batch, problem->heads_q, packed_q ? problem->total_q : problem->seq_q};
    int64_t kv[3] = {packed_kv ? 1
                     : paged   ? problem->page_count
                               : problem->batch,
                     problem->heads_kv,
                     packed_kv ? problem->total_kv
                     : paged   ? problem->page_size
                               : problem->seq_kv};
    attest_problem_pack(problem);
    set_layout(dice, row[FIELD_layout_q], problem->stride_q, q, problem->dim, packed_q, padded);
    set_layout(dice, row[FIELD_layout_o], problem->stride_o, q, problem->dim_v, packed_q, padded);
    set_layout(dice, row[FIELD_layout_k], problem->stride_k, kv, problem->dim, packed_kv, padded);
    set_layout(dice, row[FIELD_layout_v], problem->stride_v, kv, problem->dim_v, packed_kv, padded);
    if (row[FIELD_shared] == SHARED_K_V) {
        memcpy(problem->stride_v, problem->stride_k, sizeof problem->stride_v);
        if (roll(dice, 2) && problem->stride_v[1] > 0) /* V of all heads is K of the first */
            problem->stride_v[1] = 0;
    }
    if (problem->flags & ATTEST_LSE)
        set_layout(dice, row[FIELD_layout_lse], problem->stride_lse, q, 1, packed_q, false);
    if (problem->flags & ATTEST_BIAS)
        set_pair_layout(dice, row[FIELD_bias_layout], problem, problem->stride_bias);
    if (problem->flags & ATTEST_MASK) /* its levels are those of a bias, behind none */
        set_pair_layout(dice, row[FIELD_bytes] - 1, problem, problem->stride_mask);
    if (row[FIELD_alibi] == ALIBI_BY_SEQUENCE)
        problem->stride_alibi_slopes = problem->heads_q + roll(dice, 3);
    if (paged)
        problem->stride_page_table += row[FIELD_pitch] == PITCH_WIDER        ? 1 + roll(dice, 3)
                                      : row[FIELD_pitch] == PITCH_MUCH_WIDER ? 20 + roll(dice, 100)
                                                                             : 0;
}

static void set_flags(struct dice *dice, const int *row, const struct problem_sizes *asked, attest_problem *problem)
{
    static const uint64_t masks[] = {0,
                                     ATTEST_CAUSAL,
                                     ATTEST_CAUSAL | ATTEST_BOTTOM_RIGHT,
                                     ATTEST_BOTTOM_RIGHT,
                                     ATTEST_CAUSAL | ATTEST_ROW_OFFSETS,
                                     ATTEST_ROW_OFFSETS};
    static const uint64_t packings[] = {0, ATTEST_VARLEN_Q, ATTEST_VARLEN_KV, ATTEST_VARLEN_Q | ATTEST_VARLEN_KV};
    int64_t left = draw_whole(dice, FIELD_window_left, row[FIELD_window_left]);
    left = asked->window_left ? asked->window_left : left;
    int64_t right = draw_whole(dice, FIELD_window_right, row[FIELD_window_right]);
    right = asked->window_right ? asked->window_right : right;
    double softcap = draw_real(dice, FIELD_softcap, row[FIELD_softcap]);
    softcap = asked->softcap > 0 ? (double)asked->softcap : softcap;
    problem->flags = masks[row[FIELD_mask]] | packings[row[FIELD_packing]] | (left >= 0 ? ATTEST_WINDOW_LEFT : 0) |
                     (right >= 0 ? ATTEST_WINDOW_RIGHT : 0) | (softcap > 0 ? ATTEST_SOFTCAP : 0) |
                     (row[FIELD_alibi] ? ATTEST_ALIBI : 0) | (row[FIELD_bias_type] ? ATTEST_BIAS : 0) |
                     (row[FIELD_sink] ? ATTEST_SINK : 0) | (row[FIELD_lse] ? ATTEST_LSE : 0) |
                     (row[FIELD_lens] ? ATTEST_KV_LENGTHS : 0) | (row[FIELD_page] || asked->page ? ATTEST_PAGED : 0) |
                     (row[FIELD_invariant] ? ATTEST_INVARIANT : 0) | (row[FIELD_bytes] ? ATTEST_MASK : 0) |
                     (row[FIELD_starts] ? ATTEST_KV_STARTS : 0) | (row[FIELD_counts] ? ATTEST_Q_LENGTHS : 0);
    problem->window_left = left >= 0 ? left : 0;
    problem->window_right = right >= 0 ? right : 0;
    problem->softcap = (float)softcap;
    problem->dtype_bias = row[FIELD_bias_type] == BIAS_SAME ? problem->dtype : row[FIELD_bias_type] ? (uint32_t)ATTEST_F32 : 0;
    if (problem->flags & ATTEST_VARLEN_Q)
        problem->total_q = 1 + problem->batch * problem->seq_q * (asked->full ? 4 : 2 + roll(dice, 3)) / 4;
    if (problem->flags & ATTEST_VARLEN_KV)
        problem->total_kv = 1 + problem->batch * problem->seq_kv * (asked->full ? 4 : 2 + roll(dice, 3)) / 4;
    if (problem->flags & ATTEST_PAGED) {
        problem->page_size = draw_whole(dice, FIELD_page, row[FIELD_page]);
        if (row[FIELD_page] == field_levels(FIELD_page) - 1)
            problem->page_size += problem->seq_kv;
        problem->page_size = asked->page ? asked->page : problem->page_size;
        problem->page_count = problem->batch * ((problem->seq_kv + problem->page_size - 1) / problem->page_size) + roll(dice, 4);
    }
}

static bool is_small(const attest_problem *problem, double most)
{
    for (const char *tensor = "qkvobm"; *tensor; tensor++) {
        int64_t first, count;
        if (attest_problem_extent(problem, *tensor, &first, &count) != ATTEST_OK || (double)count > most)
            return false;
    }
    return true;
}

static void build(const int *row, uint64_t seed, double usual, const struct problem_sizes *asked, attest_problem *problem,
                  struct contents *contents)
{
    struct dice dice = {.seed = seed};
    *problem = (attest_problem){.size = sizeof *problem, .op = ATTEST_OP_FORWARD, .dtype = (uint32_t)row[FIELD_dtype] + ATTEST_F32};
    problem->dtype_o = row[FIELD_dtype_o] == DTYPE_O_F32 ? (uint32_t)ATTEST_F32 : problem->dtype;
    draw_sizes(&dice, row, usual, asked, problem);
    float scale = draw_scale(&dice, row[FIELD_scale], problem->dim);
    problem->scale = asked->scale > 0 ? asked->scale : scale;
    set_flags(&dice, row, asked, problem);
    set_strides(&dice, row, asked->padded, problem);
    *contents = (struct contents){0};
    for (int f = 0; f < FIELD_COUNT; f++)
        if (fields[f].kind == KIND_FILLED)
            contents->word[fields[f].content] = row[f];
}

bool problem_space_draw(const struct problem_space *space, const int row[COVERING_FIELDS], uint64_t seed, attest_problem *problem,
                        struct contents *contents)
{
    enum { AS_IT_COMES = 2, ATTEMPTS = 8, SEED_ATTEMPT = 1501 };
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        const struct problem_sizes sizes = {.padded = attempt >= AS_IT_COMES};
        if (problem_space_draw_sized(space, row, attempt ? random_bits(seed, SEED_ATTEMPT, (uint64_t)attempt) : seed, &sizes,
                                     MOST_ELEMENTS, problem, contents))
            return true;
    }
    return false;
}

bool problem_space_draw_sized(const struct problem_space *space, const int row[COVERING_FIELDS], uint64_t seed,
                              const struct problem_sizes *sizes, double elements, attest_problem *problem,
                              struct contents *contents)
{
    build(row, seed, space->usual, sizes, problem, contents);
    return attest_problem_check(problem, NULL, 0) == ATTEST_OK && is_small(problem, elements) && taker_takes(space->taker, problem);
}

/* ---- the space ------------------------------------------------------------------------------------------------------- */

/* Whether the kernel takes a plain problem of one level of a field. The other fields have levels by number: those of the type, the dim and the
 * rows, whether rows are padded, and the values that are drawn within a level. A field that says nothing without another one comes with the
 * first level of that which the kernel takes. */
static bool takes_plain(const struct problem_space *space, int field, int level, int number)
{
    static const int dims[] = {8, 11, 4, 0}; /* levels of dim: 64, 128, 16, 1 */
    int row[COVERING_FIELDS] = {0};
    attest_problem problem;
    struct contents contents;
    const struct problem_sizes sizes = {.padded = number / 24 % 2};
    row[FIELD_dtype] = number % 3;
    row[FIELD_dim] = dims[number / 3 % 4];
    row[FIELD_rows] = number / 12 % 2 ? 3 : 0;
    row[FIELD_keys] = 3;
    row[FIELD_heads_kv] = row[FIELD_batch] = 1;
    for (int o = 0; o < COUNT_OF(owned); o++)
        for (int first = 1; owned[o].field == field && level && !row[owned[o].owner] && first < field_levels(owned[o].owner);
             first++)
            row[owned[o].owner] = space->refused[owned[o].owner][first] ? 0 : first;
    row[field] = level;
    build(row, 1 + (uint64_t)number / 48, 1e9, &sizes, &problem, &contents);
    return attest_problem_check(&problem, NULL, 0) != ATTEST_OK || taker_takes(space->taker, &problem);
}

/* Levels that the kernel takes in no plain problem. */
static void find_refused(struct problem_space *space)
{
    enum { PLAIN_PROBLEMS = 4 * 48 };
    for (int f = 0; f < FIELD_COUNT; f++)
        for (int level = 0; level < field_levels(f); level++) {
            bool taken = false;
            for (int number = 0; number < PLAIN_PROBLEMS && !taken; number++)
                taken = takes_plain(space, f, level, number);
            space->refused[f][level] = !taken;
        }
}

int problem_space_plain(const struct problem_space *space, int field)
{
    int level = 0;
    while (level + 1 < field_levels(field) && space->refused[field][level])
        level++;
    return level;
}

int problem_space_blame(const struct problem_space *space, const int row[COVERING_FIELDS], uint64_t seed, int blamed[MOST_BLAMED],
                        int levels[MOST_BLAMED])
{
    enum { SURE = 3 }; /* times that what is left is drawn once more */
    int left[COVERING_FIELDS], count = 0;
    attest_problem problem;
    struct contents contents;
    memcpy(left, row, sizeof left);
    for (int f = 0; f < FIELD_COUNT; f++) {
        left[f] = problem_space_plain(space, f);
        if (left[f] != row[f] && problem_space_draw(space, left, seed, &problem, &contents))
            left[f] = row[f];
    }
    for (int f = 0; f < FIELD_COUNT; f++) {
        if (left[f] == problem_space_plain(space, f))
            continue;
        if (count == MOST_BLAMED)
            return 0;
        blamed[count] = f;
        levels[count++] = left[f];
    }
    for (uint64_t n = 1; n <= SURE; n++)
        if (problem_space_draw(space, left, seed + n, &problem, &contents))
            return 0;
    return count < 2 ? 0 : count;
}

void problem_space_make(struct problem_space *space, struct taker taker, double usual, double most)
{
    static const int sized[] = {FIELD_batch, FIELD_group, FIELD_heads_kv, FIELD_rows, FIELD_keys, FIELD_dim};
    *space = (struct problem_space){.taker = taker, .usual = usual};
    space->covering.fields = FIELD_COUNT;
    space->covering.agree = agree;
    space->covering.data = space;
    space->covering.most = log2(most / 2);
    space->covering.usual = log2(usual / 2);
    for (int f = 0; f < FIELD_COUNT; f++)
        space->covering.levels[f] = field_levels(f);
    for (int n = 0; n < COUNT_OF(sized); n++)
        for (int level = 0; level < field_levels(sized[n]); level++)
            space->covering.work[sized[n]][level] = log2(size_cost(sized[n], (int64_t)fields[sized[n]].levels[level].low));
    find_refused(space);
    /* These are for keys of one weight alone (large_sizes.c): where weights differ, a column may be all made of weights so small that errors
     * of the others are large beside them. */
    space->refused[FIELD_qk][QK_ONE_ROW] = space->refused[FIELD_v][V_ONE_COLUMN] = true;
}
