/*
 * far_strides.c - offsets that need more than 32 bits (see far_strides.h).
 */
#include "far_strides.h"

#include <unistd.h>

struct dimension {
    int64_t extent, *stride;
};

/* The dimensions of a tensor outside of its columns; the number of them. */
static int dimensions_of(attest_problem *p, char tensor, struct dimension dims[4])
{
    bool query = tensor == 'q' || tensor == 'o' || tensor == 'l';
    bool packed = (p->flags & (query ? ATTEST_VARLEN_Q : ATTEST_VARLEN_KV)) != 0, paged = !query && p->flags & ATTEST_PAGED;
    int64_t *stride = tensor == 'q'   ? p->stride_q
                      : tensor == 'k' ? p->stride_k
                      : tensor == 'v' ? p->stride_v
                      : tensor == 'o' ? p->stride_o
                      : tensor == 'l' ? p->stride_lse
                                      : p->stride_bias;
    if (tensor == 'b') {
        const int64_t extents[4] = {p->batch, p->heads_q, p->seq_q, p->seq_kv};
        for (int n = 0; n < 4; n++)
            dims[n] = (struct dimension){extents[n], &stride[n]};
        return 4;
    }
    int64_t rows = query ? (packed ? p->total_q : p->seq_q) : packed ? p->total_kv : paged ? p->page_size : p->seq_kv;
    dims[0] = (struct dimension){packed ? 1 : paged ? p->page_count : p->batch, &stride[0]};
    dims[1] = (struct dimension){query ? p->heads_q : p->heads_kv, &stride[1]};
    dims[2] = (struct dimension){rows, &stride[2]};
    return 3;
}

static const struct {
    char letter;
    const char *name;
} tensors[] = {{'q', "q"}, {'k', "k"}, {'v', "v"}, {'b', "bias"}, {'o', "o"}, {'l', "lse"}};

static size_t element_of(const attest_problem *p, char tensor)
{
    return tensor == 'l' ? sizeof(float) : element_size(tensor == 'o' ? p->dtype_o : tensor == 'b' ? p->dtype_bias : p->dtype);
}

static bool is_there(const attest_problem *p, char tensor)
{
    return (tensor != 'l' || p->flags & ATTEST_LSE) && (tensor != 'b' || p->flags & ATTEST_BIAS);
}

attest_problem far_strides(const attest_problem *near, struct far_spread spreads[TENSORS_MOST])
{
    attest_problem far = *near;
    struct tensor_list list;
    int64_t page = sysconf(_SC_PAGESIZE);
    for (int n = 0; n < TENSORS_MOST; n++)
        spreads[n] = (struct far_spread){0, 0};
    if (!tensor_list_get(near, &list))
        return far;
    for (int n = 0; n < COUNT_OF(tensors); n++) {
        struct dimension dims[4], *outer = NULL;
        if (!is_there(near, tensors[n].letter))
            continue;
        int64_t element = (int64_t)element_of(near, tensors[n].letter);
        int count = dimensions_of(&far, tensors[n].letter, dims);
        for (int d = 0; d < count; d++)
            if (dims[d].extent > 1 && (!outer || *dims[d].stride > *outer->stride))
                outer = &dims[d];
        if (!outer || *outer->stride <= 0 || *outer->stride * element % page != 0)
            continue;
        spreads[tensor_find(&list, tensors[n].name)] =
            (struct far_spread){(size_t)(*outer->stride * element), EXECUTOR_FAR * (size_t)element};
        *outer->stride = EXECUTOR_FAR;
    }
    return far;
}

size_t far_reach(const struct piece *piece, struct far_spread spread)
{
    if (!spread.run)
        return (size_t)piece->size;
    size_t runs = ((size_t)piece->size + spread.run - 1) / spread.run;
    return (runs - 1) * spread.step + spread.run;
}

/* ---- problems ----------------------------------------------------------------------------------------------------------- */

enum kind { KIND_ROWS, KIND_HEADS, KIND_SEQUENCES, KIND_PAGES, KIND_PACKED, KIND_KEYS };

const char *far_name(int kind)
{
    static const char *const names[FAR_KINDS] = {"rows", "heads", "sequences", "pages", "packed rows", "keys of the bias"};
    return names[kind];
}

/* Which dimension is outermost. */
static int outermost(enum kind kind, char tensor)
{
    switch (kind) {
    case KIND_HEADS:
        return 1;
    case KIND_SEQUENCES:
    case KIND_PAGES:
        return 0;
    case KIND_KEYS:
        return tensor == 'b' ? 3 : 2;
    default:
        return 2;
    }
}

/* The strides of all tensors: one dimension outside of the others, by whole pages. */
static void set_strides(attest_problem *p, enum kind kind)
{
    int64_t page = sysconf(_SC_PAGESIZE);
    for (int n = 0; n < COUNT_OF(tensors); n++) {
        char letter = tensors[n].letter;
        struct dimension dims[4];
        if (!is_there(p, letter))
            continue;
        int count = dimensions_of(p, letter, dims), outer = outermost(kind, letter);
        int64_t reach = letter == 'q' || letter == 'k' ? p->dim : letter == 'v' || letter == 'o' ? p->dim_v : 1;
        for (int d = count - 1; d >= 0; d--)
            if (d != outer) {
                *dims[d].stride = reach;
                reach *= dims[d].extent;
            }
        int64_t elements = page / (int64_t)element_of(p, letter);
        *dims[outer].stride = (reach + elements - 1) / elements * elements;
        if ((p->flags & ATTEST_VARLEN_Q && (letter == 'q' || letter == 'o' || letter == 'l')) ||
            (p->flags & ATTEST_VARLEN_KV && (letter == 'k' || letter == 'v')))
            *dims[0].stride = 0;
    }
}

bool far_problem(int kind, uint32_t dtype, int64_t dim, bool few, uint64_t refused, attest_problem *near)
{
    if (few && kind != KIND_ROWS)
        return false;
    if (kind == KIND_ROWS)
        attest_problem_init(near, (attest_dtype)dtype, 1, 1, 1, few ? 3 : 9, few ? 3 : 17, dim);
    else
        attest_problem_init(near, (attest_dtype)dtype, 5, 10, 5, 6, 19, dim);
    if (kind != KIND_ROWS)
        near->flags |= (ATTEST_LSE | ATTEST_BIAS) & ~refused;
    if (kind == KIND_PAGES) {
        near->flags |= ATTEST_PAGED;
        near->page_size = 3;
        near->page_count = 40;
    }
    if (kind == KIND_PACKED) {
        near->flags |= ATTEST_VARLEN_Q | ATTEST_VARLEN_KV;
        near->total_q = 24;
        near->total_kv = 60;
    }
    if (near->flags & refused || (kind == KIND_KEYS && !(near->flags & ATTEST_BIAS)))
        return false;
    near->dtype_bias = near->flags & ATTEST_BIAS ? dtype : 0;
    attest_problem_pack(near);
    set_strides(near, (enum kind)kind);
    return true;
}
