/*
 * merge.c - joins attention over disjoint sets of keys: the softmax-weighted mean of partial outputs.
 */
#include "internal.h"

#include <math.h>

static attest_status check_array(const char *name, const void *data, size_t align, struct text why)
{
    if (!data)
        return fail(why, ATTEST_ERROR_ARGUMENT, "%s is NULL", name);
    if ((uintptr_t)data % align)
        return fail(why, ATTEST_ERROR_ARGUMENT, "%s is not aligned to its element size, %zu bytes", name, align);
    return ATTEST_OK;
}

/* Output and part may be the same array, never overlapping ones. */
static bool clash(const void *out, int64_t out_bytes, const void *part, int64_t part_bytes, bool same_shape)
{
    uintptr_t a = (uintptr_t)out, b = (uintptr_t)part;
    return !(a == b && same_shape) && a < b + (uintptr_t)part_bytes && b < a + (uintptr_t)out_bytes;
}

static attest_status check(const attest_merge_args *a, struct text why)
{
    if (a->parts < 1)
        return fail(why, ATTEST_ERROR_ARGUMENT, "parts is %lld; it must be 1 or more", (long long)a->parts);
    if (a->rows < 0)
        return fail(why, ATTEST_ERROR_ARGUMENT, "rows is %lld; it must be 0 or more", (long long)a->rows);
    if (a->dim_v < 1 || a->dim_v > DIM_MAX)
        return fail(why, ATTEST_ERROR_ARGUMENT, "dim_v is %lld; it must be 1 to %d", (long long)a->dim_v, DIM_MAX);
    if (a->dtype_parts < ATTEST_F32 || a->dtype_parts > ATTEST_BF16 || a->dtype_o < ATTEST_F32 || a->dtype_o > ATTEST_BF16)
        return fail(why, ATTEST_ERROR_ARGUMENT, "%s is not ATTEST_F32, ATTEST_F16 or ATTEST_BF16",
                    a->dtype_o < ATTEST_F32 || a->dtype_o > ATTEST_BF16 ? "dtype_o" : "dtype_parts");
    if (a->stride_o_parts < a->dim_v || a->stride_o < a->dim_v)
        return fail(why, ATTEST_ERROR_ARGUMENT, "%s is less than dim_v", a->stride_o < a->dim_v ? "stride_o" : "stride_o_parts");
    if (!a->rows)
        return ATTEST_OK;
    int64_t out_bytes, part_bytes;
    if (a->stride_o > INT64_MAX / 4 || __builtin_mul_overflow(a->rows, a->stride_o * 4, &out_bytes) ||
        a->stride_o_parts > INT64_MAX / 4 || __builtin_mul_overflow(a->rows, a->stride_o_parts * 4, &part_bytes))
        return fail(why, ATTEST_ERROR_ARGUMENT, "rows times a stride does not fit 63 bits");
    out_bytes = ((a->rows - 1) * a->stride_o + a->dim_v) * (int64_t)dtype_size(a->dtype_o);
    part_bytes = ((a->rows - 1) * a->stride_o_parts + a->dim_v) * (int64_t)dtype_size(a->dtype_parts);
    TRY(check_array("o", a->o, dtype_size(a->dtype_o), why));
    if (a->lse)
        TRY(check_array("lse", a->lse, sizeof(float), why));
    if (!a->o_parts || !a->lse_parts)
        return fail(why, ATTEST_ERROR_ARGUMENT, "%s is NULL", a->o_parts ? "lse_parts" : "o_parts");
    bool same_shape = a->dtype_o == a->dtype_parts && a->stride_o == a->stride_o_parts;
    for (int64_t i = 0; i < a->parts; i++) {
        TRY(check_array("an entry of o_parts", a->o_parts[i], dtype_size(a->dtype_parts), why));
        TRY(check_array("an entry of lse_parts", a->lse_parts[i], sizeof(float), why));
        if (clash(a->o, out_bytes, a->o_parts[i], part_bytes, same_shape) ||
            clash(a->o, out_bytes, a->lse_parts[i], a->rows * 4, false))
            return fail(why, ATTEST_ERROR_ARGUMENT, "o overlaps part %lld in memory", (long long)i);
        if (a->lse && (clash(a->lse, a->rows * 4, a->lse_parts[i], a->rows * 4, true) ||
                       clash(a->lse, a->rows * 4, a->o_parts[i], part_bytes, false)))
            return fail(why, ATTEST_ERROR_ARGUMENT, "lse overlaps part %lld in memory", (long long)i);
    }
    if (a->lse && clash(a->lse, a->rows * 4, a->o, out_bytes, false))
        return fail(why, ATTEST_ERROR_ARGUMENT, "lse overlaps o in memory");
    return ATTEST_OK;
}

static void merge_row(const attest_merge_args *a, int64_t row)
{
    float top = -INFINITY;
    for (int64_t i = 0; i < a->parts; i++)
        if (!isnan(top) && !(a->lse_parts[i][row] <= top)) /* a NaN wins and stays */
            top = a->lse_parts[i][row];
    double total = 0;
    for (int64_t i = 0; i < a->parts; i++)
        if (a->lse_parts[i][row] != -INFINITY)
            total += exp((double)a->lse_parts[i][row] - (double)top);
    double sum[DIM_MAX] = {0};
    for (int64_t i = 0; i < a->parts; i++) {
        if (a->lse_parts[i][row] == -INFINITY)
            continue;
        double weight = exp((double)a->lse_parts[i][row] - (double)top);
        for (int64_t d = 0; d < a->dim_v; d++)
            sum[d] += weight * (double)attest_load(a->o_parts[i], a->dtype_parts, row * a->stride_o_parts + d);
    }
    for (int64_t d = 0; d < a->dim_v; d++)
        attest_store(a->o, a->dtype_o, row * a->stride_o + d, top == -INFINITY ? 0.0f : (float)(sum[d] / total));
    if (a->lse)
        a->lse[row] = top == -INFINITY ? top : (float)((double)top + log(total));
}

attest_status attest_merge(attest_context *context, const attest_merge_args *args)
{
    if (!context)
        return ATTEST_ERROR_ARGUMENT;
    struct text why = context_text(context);
    attest_merge_args own;
    TRY(struct_read(&own, sizeof own, MERGE_SIZE_0_1, args, "args", why));
    TRY(check(&own, why));
    for (int64_t row = 0; row < own.rows; row++)
        merge_row(&own, row);
    return ATTEST_OK;
}
