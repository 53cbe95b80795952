/*
 * shapes.c - the table of tensors, from tensors.def, and what each of them is in a problem: its shape, its strides, those that leave no
 * gaps, and the bytes that it covers.
 */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an axis counts: axis_get has the sizes. */
enum axis { BATCH, BATCH_ENDS, BATCH_Q, BATCH_KV, HEADS_Q, HEADS_KV, SEQ_Q, SEQ_KV, ROWS_Q, ROWS_KV, PAGES, DIM, DIM_V };

enum { ROLE_NO = 0, ROLE_IN = ATTEST_ROLE_INPUT, ROLE_OUT = ATTEST_ROLE_OUTPUT };

#define ALWAYS          0
#define OF(field)       .dtype_at = offsetof(attest_problem, field)
#define FIXED(number)   .dtype = (number)
#define AXES(...)       .rank = sizeof((enum axis[]){__VA_ARGS__}) / sizeof(enum axis), .axis = {__VA_ARGS__}
#define STRIDES(field)  .stride_name = #field, .stride_at = offsetof(attest_problem, field), STRIDE_COUNT(field)
#define STRIDE_COUNT(x) .stride_count = sizeof(((attest_problem *)0)->x) / sizeof(int64_t)
#define SHARED(field)   STRIDES(field), .shared = true
#define DENSE           .stride_count = 0
#define TENSOR(field, present, type, shape, strides, letter, fwd)                                                                  \
    [TENSOR_##field] = {.name = #field,                                                                                            \
                        .at = offsetof(attest_tensors, field),                                                                     \
                        .flag = (present),                                                                                         \
                        .word = (letter),                                                                                          \
                        .role = {[OP_fwd] = ROLE_##fwd},                                                                           \
                        type,                                                                                                      \
                        shape,                                                                                                     \
                        strides},
const struct tensor_row tensor_rows[TENSORS] = {
#include "tensors.def"
};
#undef TENSOR

_Static_assert(sizeof(attest_tensors) == offsetof(attest_tensors, q) + TENSORS * sizeof(void *), "a row for each pointer");

/* ---- shapes ---------------------------------------------------------------------------------------------------------------- */

struct axis_size {
    const char *name;
    int64_t size;
};

/* Packed sequences are one tensor without an outer axis, which then has size 1; pages take the place of sequences. */
static struct axis_size axis_get(const attest_problem *p, enum axis axis)
{
    bool packed_q = has(p, ATTEST_VARLEN_Q), packed_kv = has(p, ATTEST_VARLEN_KV), paged = has(p, ATTEST_PAGED) && !packed_kv;
    switch (axis) {
    case BATCH:
        return (struct axis_size){"batch", p->batch};
    case BATCH_ENDS: /* where each sequence begins, and where the last one ends */
        return (struct axis_size){"batch + 1", p->batch + 1};
    case BATCH_Q:
        return packed_q ? (struct axis_size){"1", 1} : axis_get(p, BATCH);
    case BATCH_KV:
        return packed_kv ? (struct axis_size){"1", 1}
               : paged   ? (struct axis_size){"page_count", p->page_count}
                         : axis_get(p, BATCH);
    case HEADS_Q:
        return (struct axis_size){"heads_q", p->heads_q};
    case HEADS_KV:
        return (struct axis_size){"heads_kv", p->heads_kv};
    case SEQ_Q:
        return (struct axis_size){"seq_q", p->seq_q};
    case SEQ_KV:
        return (struct axis_size){"seq_kv", p->seq_kv};
    case ROWS_Q:
        return packed_q ? (struct axis_size){"total_q", p->total_q} : axis_get(p, SEQ_Q);
    case ROWS_KV:
        return packed_kv ? (struct axis_size){"total_kv", p->total_kv}
               : paged   ? (struct axis_size){"page_size", p->page_size}
                         : axis_get(p, SEQ_KV);
    case PAGES: /* of one sequence; pages without a size are an error that problem_read finds later */
        return (struct axis_size){"seq_kv / page_size",
                                  p->page_size > 0 ? p->seq_kv / p->page_size + (p->seq_kv % p->page_size != 0) : 0};
    case DIM:
        return (struct axis_size){"dim", p->dim};
    default:
        return (struct axis_size){"dim_v", p->dim_v};
    }
}

uint64_t tensor_packed_by(int tensor)
{
    unsigned char outer = tensor_rows[tensor].axis[0];
    return outer == BATCH_Q ? ATTEST_VARLEN_Q : outer == BATCH_KV ? ATTEST_VARLEN_KV : 0;
}

bool tensor_has_columns(int tensor)
{
    const struct tensor_row *row = &tensor_rows[tensor];
    unsigned char inner = row->axis[row->rank - 1];
    return inner == DIM || inner == DIM_V;
}

/* Whether rows lie outside of heads if there are no gaps: those of packed tensors and in pages, unless they are single numbers. */
static bool has_rows_outside(const attest_problem *p, int tensor)
{
    uint64_t moved = tensor_packed_by(tensor) | (tensor_rows[tensor].axis[0] == BATCH_KV ? ATTEST_PAGED : 0);
    return tensor_has_columns(tensor) && has(p, moved);
}

/* Products of sizes that have not been checked yet wrap instead of being undefined. */
static int64_t times(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

struct shape shape_get(const attest_problem *p, int tensor)
{
    const struct tensor_row *row = &tensor_rows[tensor];
    const int64_t *stride = tensor_strides(p, tensor);
    struct shape s = {.present = tensor_present(p, tensor), .dtype = tensor_dtype(p, tensor)};
    int64_t inner = 1;
    for (int i = row->rank - 1; i >= 0 && s.present; i--) {
        s.size[i] = axis_get(p, row->axis[i]).size;
        s.stride[i] = i < row->stride_count ? stride[i] : inner;
        inner = times(inner, s.size[i]);
    }
    for (int i = row->rank; i < RANK_MOST && s.present; i++)
        s.size[i] = 1;
    return s;
}

bool shape_extent(const struct shape *s, int64_t *first, int64_t *count)
{
    int64_t low = 0, high = 0, bytes, element = (int64_t)element_size(s->dtype);
    bool empty = !s->present, fits = true;
    for (int i = 0; i < RANK_MOST; i++)
        empty = empty || s->size[i] == 0;
    for (int i = 0; i < RANK_MOST && !empty; i++) {
        int64_t reach;
        fits = fits && !__builtin_mul_overflow(s->size[i] - 1, s->stride[i], &reach);
        if (fits)
            fits = !__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
    }
    fits = fits && !__builtin_sub_overflow(high, low, count) && !__builtin_add_overflow(*count, 1, count) &&
           !__builtin_mul_overflow(high > -low ? high : -low, element, &bytes) && !__builtin_mul_overflow(*count, element, &bytes);
    if (empty || !fits)
        *count = 0;
    *first = low;
    return fits;
}

bool shape_distinct(const struct shape *s)
{
    bool used[RANK_MOST];
    int64_t inner = 0;
    for (int i = 0; i < RANK_MOST; i++)
        used[i] = s->size[i] <= 1; /* its stride does not matter */
    for (;;) {
        int smallest = -1;
        for (int i = 0; i < RANK_MOST; i++)
            if (!used[i] && (smallest < 0 || llabs(s->stride[i]) < llabs(s->stride[smallest])))
                smallest = i;
        if (smallest < 0)
            return true;
        used[smallest] = true;
        int64_t stride = llabs(s->stride[smallest]);
        if (stride <= inner)
            return false;
        inner += (s->size[smallest] - 1) * stride;
    }
}

/* ---- strides without gaps -------------------------------------------------------------------------------------------------- */

static void pack(attest_problem *p, bool rows_outside)
{
    for (int tensor = 0; tensor < TENSORS; tensor++) {
        const struct tensor_row *row = &tensor_rows[tensor];
        if (!row->stride_count)
            continue;
        struct shape s = shape_get(p, tensor);
        int64_t *stride = (int64_t *)((char *)p + row->stride_at), inner = 1;
        int order[RANK_MOST] = {0, 1, 2, 3};
        if (has_rows_outside(p, tensor) || (rows_outside && tensor_has_columns(tensor))) {
            order[1] = 2;
            order[2] = 1;
        }
        for (int i = row->rank - 1; i >= 0; i--) {
            if (order[i] < row->stride_count)
                stride[order[i]] = s.present ? inner : 0;
            inner = times(inner, s.size[order[i]]);
        }
        if (has(p, tensor_packed_by(tensor)) || row->shared)
            stride[0] = 0;
    }
}

void attest_problem_pack(attest_problem *problem)
{
    if (problem)
        pack(problem, false);
}

void problem_pack_bshd(attest_problem *p)
{
    pack(p, true);
}

/* ---- public ---------------------------------------------------------------------------------------------------------------- */

attest_status attest_problem_extent(const attest_problem *problem, char tensor, int64_t *first, int64_t *count)
{
    attest_problem p;
    TRY(problem_read(&p, problem, (struct text){0}));
    const char word[2] = {tensor};
    for (int i = 0; i < TENSORS && tensor && first && count; i++)
        if (tensor_rows[i].word && !strcmp(tensor_rows[i].word, word)) {
            struct shape s = shape_get(&p, i);
            return shape_extent(&s, first, count) ? ATTEST_OK : ATTEST_ERROR_ARGUMENT;
        }
    return ATTEST_ERROR_ARGUMENT;
}

size_t attest_tensor_count(void)
{
    return TENSORS;
}

/* The axes in the order in which they lie if there are no gaps. */
static void info_axes(attest_tensor_info *info, const attest_problem *p, int tensor)
{
    const struct tensor_row *row = &tensor_rows[tensor];
    struct shape s = shape_get(p, tensor);
    bool outside = has_rows_outside(p, tensor), packed = has(p, tensor_packed_by(tensor));
    size_t used = 0;
    for (int i = packed ? 1 : 0; i < row->rank; i++) {
        int axis = outside && (i == 1 || i == 2) ? 3 - i : i;
        info->shape[info->rank] = s.size[axis];
        info->stride[info->rank++] = s.stride[axis];
        used += (size_t)snprintf(info->axes + used, sizeof info->axes - used, "%s%s", used ? ", " : "",
                                 axis_get(p, row->axis[axis]).name);
    }
}

attest_status attest_tensor_get(const attest_problem *problem, size_t index, attest_tensor_info *info)
{
    attest_problem p;
    attest_tensor_info own;
    TRY(struct_read(&own, sizeof own, TENSOR_INFO_SIZE_0_1, info, "info", (struct text){0}));
    TRY(problem_read(&p, problem, (struct text){0}));
    if (index >= TENSORS)
        return ATTEST_ERROR_ARGUMENT;
    int tensor = (int)index;
    const struct tensor_row *row = &tensor_rows[tensor];
    own = (attest_tensor_info){.size = info->size,
                               .name = row->name,
                               .offset = row->at,
                               .flag = row->flag,
                               .stride_offset = row->stride_count ? row->stride_at : 0,
                               .stride_count = (uint32_t)row->stride_count,
                               .role = row->role[p.op],
                               .present = tensor_present(&p, tensor)};
    if (own.present) {
        struct shape s = shape_get(&p, tensor);
        int64_t first, count;
        shape_extent(&s, &first, &count);
        own.dtype = s.dtype;
        own.element_size = (uint32_t)element_size(s.dtype);
        own.first_byte = first * own.element_size;
        own.bytes = count * own.element_size;
        info_axes(&own, &p, tensor);
    }
    memcpy(info, &own, info->size < sizeof own ? (size_t)info->size : sizeof own);
    return ATTEST_OK;
}
