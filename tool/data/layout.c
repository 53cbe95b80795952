/*
 * layout.c - where the elements of a problem lie, and which keys a row may see (see layout.h).
 */
#include "layout.h"

#include <stdlib.h>

/* Windows and lengths beyond this are as good as without limit, and sums of them do not overflow. */
#define FAR (INT64_C(1) << 60)

static bool has(const struct layout *layout, uint64_t flag)
{
    return (layout->problem->flags & flag) != 0;
}
static int64_t at_least(int64_t value, int64_t low)
{
    return value > low ? value : low;
}
static int64_t at_most(int64_t value, int64_t high)
{
    return value < high ? value : high;
}

int64_t layout_rows(const struct layout *layout, int64_t b)
{
    if (layout->rows)
        return layout->rows[b];
    return has(layout, ATTEST_VARLEN_Q) ? (int64_t)layout->cu_q[b + 1] - layout->cu_q[b] : layout->problem->seq_q;
}

int64_t layout_keys(const struct layout *layout, int64_t b)
{
    if (has(layout, ATTEST_KV_LENGTHS))
        return layout->lengths[b];
    return has(layout, ATTEST_VARLEN_KV) ? (int64_t)layout->cu_kv[b + 1] - layout->cu_kv[b] : layout->problem->seq_kv;
}

int64_t layout_total_rows(const struct layout *layout)
{
    int64_t rows = 0;
    for (int64_t b = 0; b < layout->problem->batch; b++)
        rows += layout_rows(layout, b);
    return rows * layout->problem->heads_q;
}

int64_t layout_row_at(const struct layout *layout, const int64_t stride[3], int64_t b, int64_t h, int64_t i)
{
    if (has(layout, ATTEST_VARLEN_Q))
        return h * stride[1] + (layout->cu_q[b] + i) * stride[2];
    return b * stride[0] + h * stride[1] + i * stride[2];
}

int64_t layout_key_at(const struct layout *layout, const int64_t stride[3], int64_t b, int64_t h, int64_t j)
{
    const attest_problem *problem = layout->problem;
    if (has(layout, ATTEST_PAGED)) {
        int64_t page = layout->pages[b * problem->stride_page_table + j / problem->page_size];
        return page * stride[0] + h * stride[1] + j % problem->page_size * stride[2];
    }
    if (has(layout, ATTEST_VARLEN_KV))
        return h * stride[1] + (layout->cu_kv[b] + j) * stride[2];
    return b * stride[0] + h * stride[1] + j * stride[2];
}

/* Keys that rows first .. last may see between them: their intervals overlap or touch, so the union is one interval. */
static void visible_to(const struct layout *layout, int64_t b, int64_t first, int64_t last, int64_t *begin, int64_t *end)
{
    const attest_problem *problem = layout->problem;
    int64_t keys = layout_keys(layout, b);
    int64_t shift = layout->offsets ? layout->offsets[b] : has(layout, ATTEST_BOTTOM_RIGHT) ? keys - layout_rows(layout, b) : 0;
    int64_t left = has(layout, ATTEST_WINDOW_LEFT) ? at_most(problem->window_left, FAR) : FAR;
    int64_t right = has(layout, ATTEST_WINDOW_RIGHT) ? at_most(problem->window_right, FAR) : FAR;
    if (has(layout, ATTEST_CAUSAL))
        right = at_most(right, 0);
    *begin = at_least(first + shift - left, layout->starts ? layout->starts[b] : 0);
    *end = at_least(at_most(last + shift + right + 1, keys), *begin);
}

void layout_visible(const struct layout *layout, int64_t b, int64_t i, int64_t *begin, int64_t *end)
{
    visible_to(layout, b, i, i, begin, end);
}

void layout_live(const struct layout *layout, int64_t b, int64_t *begin, int64_t *end)
{
    int64_t rows = layout_rows(layout, b);
    *begin = *end = 0;
    if (rows > 0)
        visible_to(layout, b, 0, rows - 1, begin, end);
}

double layout_flops(const struct layout *layout)
{
    const attest_problem *problem = layout->problem;
    double pairs = 0;
    for (int64_t b = 0; b < problem->batch; b++) {
        for (int64_t i = 0; i < layout_rows(layout, b); i++) {
            int64_t begin, end;
            layout_visible(layout, b, i, &begin, &end);
            pairs += (double)(end - begin);
        }
    }
    return 2 * pairs * (double)problem->heads_q * (double)(problem->dim + problem->dim_v);
}

double layout_kv_bytes(const struct layout *layout)
{
    const attest_problem *problem = layout->problem;
    double keys = 0;
    for (int64_t b = 0; b < problem->batch; b++) {
        int64_t begin, end;
        layout_live(layout, b, &begin, &end);
        keys += (double)(end - begin);
    }
    return keys * (double)problem->heads_kv * (double)(problem->dim + problem->dim_v) * (double)element_size(problem->dtype);
}

static void view_add(struct view *view, int64_t size, int64_t stride)
{
    view->shape[view->rank] = size;
    view->stride[view->rank++] = stride;
}

/* A dimension with stride 0 has size 1 in the array, unless there is nothing in the array anyway. */
static struct view view_done(struct view view)
{
    if (view_count(&view) > 0)
        for (int i = 0; i < view.rank; i++)
            if (view.stride[i] == 0)
                view.shape[i] = 1;
    return view;
}

struct view layout_view(const attest_problem *problem, char tensor)
{
    const int64_t *stride = tensor == 'm' ? problem->stride_mask : problem->stride_bias;
    int64_t heads = problem->heads_q, rows = problem->seq_q, total = problem->total_q, inner = 0;
    bool packed = (problem->flags & ATTEST_VARLEN_Q) != 0;
    bool paged = false;
    struct view view = {0};
    switch (tensor) {
    case 'q':
        stride = problem->stride_q, inner = problem->dim;
        break;
    case 'o':
        stride = problem->stride_o, inner = problem->dim_v;
        break;
    case 'l':
        stride = problem->stride_lse;
        break;
    case 'k':
    case 'v':
        stride = tensor == 'k' ? problem->stride_k : problem->stride_v;
        inner = tensor == 'k' ? problem->dim : problem->dim_v;
        heads = problem->heads_kv, rows = problem->seq_kv, total = problem->total_kv;
        packed = (problem->flags & ATTEST_VARLEN_KV) != 0;
        paged = (problem->flags & ATTEST_PAGED) != 0;
        break;
    default:
        view_add(&view, problem->batch, stride[0]);
        view_add(&view, problem->heads_q, stride[1]);
        view_add(&view, problem->seq_q, stride[2]);
        view_add(&view, problem->seq_kv, stride[3]);
        return view_done(view);
    }
    if (paged) {
        view_add(&view, problem->page_count, stride[0]);
        view_add(&view, problem->page_size, stride[2]);
        view_add(&view, heads, stride[1]);
    } else if (packed && tensor != 'l') {
        view_add(&view, total, stride[2]);
        view_add(&view, heads, stride[1]);
    } else {
        if (!packed)
            view_add(&view, problem->batch, stride[0]);
        view_add(&view, heads, stride[1]);
        view_add(&view, packed ? total : rows, stride[2]);
    }
    if (inner)
        view_add(&view, inner, 1);
    return view_done(view);
}

int64_t view_count(const struct view *view)
{
    int64_t count = 1;
    for (int i = 0; i < view->rank; i++)
        count *= view->shape[i];
    return count;
}

bool layout_distinct(const attest_problem *problem, char tensor)
{
    struct view view = layout_view(problem, tensor);
    int64_t reach = 0; /* of the dimensions with smaller strides */
    bool used[4] = {false};
    for (int i = 0; i < view.rank; i++)
        if (view.stride[i] == 0)
            return false;
    for (int step = 0; step < view.rank; step++) {
        int least = -1;
        for (int i = 0; i < view.rank; i++)
            if (!used[i] && (least < 0 || llabs(view.stride[i]) < llabs(view.stride[least])))
                least = i;
        used[least] = true;
        if (llabs(view.stride[least]) <= reach && view.shape[least] > 1)
            return false;
        reach += (view.shape[least] - 1) * llabs(view.stride[least]);
    }
    return true;
}

int64_t view_at(const struct view *view, int64_t index)
{
    int64_t at = 0;
    for (int i = view->rank - 1; i >= 0; i--) {
        at += index % view->shape[i] * view->stride[i];
        index /= view->shape[i];
    }
    return at;
}

size_t element_size(uint32_t dtype)
{
    return dtype == ATTEST_U8 ? 1 : dtype == ATTEST_F32 ? 4 : 2;
}

const char *element_name(uint32_t dtype)
{
    return dtype == ATTEST_U8 ? "u8" : dtype == ATTEST_F32 ? "f32" : dtype == ATTEST_F16 ? "f16" : "bf16";
}

float element_load(const void *base, uint32_t dtype, int64_t at)
{
    if (dtype == ATTEST_F32)
        return ((const float *)base)[at];
    if (dtype == ATTEST_U8)
        return ((const uint8_t *)base)[at];
    uint16_t bits = ((const uint16_t *)base)[at];
    return dtype == ATTEST_F16 ? attest_f16_to_float(bits) : attest_bf16_to_float(bits);
}

void element_store(void *base, uint32_t dtype, int64_t at, float value)
{
    if (dtype == ATTEST_F32)
        ((float *)base)[at] = value;
    else if (dtype == ATTEST_U8)
        ((uint8_t *)base)[at] = (uint8_t)value;
    else
        ((uint16_t *)base)[at] = dtype == ATTEST_F16 ? attest_f16_from_float(value) : attest_bf16_from_float(value);
}
