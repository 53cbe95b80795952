/*
 * problem.c - the problem struct: defaults, packed strides, extents, and the check that every other call relies on.
 */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t KNOWN_FLAGS = ATTEST_CAUSAL | ATTEST_BOTTOM_RIGHT | ATTEST_WINDOW_LEFT | ATTEST_WINDOW_RIGHT |
                                    ATTEST_SOFTCAP | ATTEST_ALIBI | ATTEST_BIAS | ATTEST_SINK | ATTEST_LSE | ATTEST_VARLEN_Q |
                                    ATTEST_VARLEN_KV | ATTEST_KV_LENGTHS | ATTEST_PAGED | ATTEST_INVARIANT;

#define OP(name, word, summary) " or ATTEST_OP_" #name
static const char OP_NAMES[] =
#include "ops.def"
    ;
#undef OP

const char *dtype_name(uint32_t dtype)
{
    switch (dtype) {
    case ATTEST_F32:
        return "f32";
    case ATTEST_F16:
        return "f16";
    case ATTEST_BF16:
        return "bf16";
    default:
        return "unknown";
    }
}

/* ---- strides and extents --------------------------------------------------------------------------------------------------- */

/* Products of sizes that have not been checked yet wrap instead of being undefined. */
static int64_t times(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static void set3(int64_t *stride, int64_t outer, int64_t head, int64_t row)
{
    stride[0] = outer;
    stride[1] = head;
    stride[2] = row;
}

/* One of Q, O (heads_q, seq_q) or K, V: packed or paged tensors have rows outside of heads, dense ones as `rows_first` says. */
static void pack_tensor(int64_t *stride, bool packed, bool paged, bool rows_first, int64_t heads, int64_t rows, int64_t page,
                        int64_t dim)
{
    if (packed)
        set3(stride, 0, dim, times(heads, dim));
    else if (paged)
        set3(stride, times(times(page, heads), dim), dim, times(heads, dim));
    else if (rows_first)
        set3(stride, times(times(rows, heads), dim), dim, times(heads, dim));
    else
        set3(stride, times(times(heads, rows), dim), times(rows, dim), dim);
}

static void pack(attest_problem *p, bool rows_first)
{
    bool varlen_q = has(p, ATTEST_VARLEN_Q), varlen_kv = has(p, ATTEST_VARLEN_KV), paged = has(p, ATTEST_PAGED);
    pack_tensor(p->stride_q, varlen_q, false, rows_first, p->heads_q, p->seq_q, 0, p->dim);
    pack_tensor(p->stride_o, varlen_q, false, rows_first, p->heads_q, p->seq_q, 0, p->dim_v);
    pack_tensor(p->stride_k, varlen_kv, paged, rows_first, p->heads_kv, p->seq_kv, p->page_size, p->dim);
    pack_tensor(p->stride_v, varlen_kv, paged, rows_first, p->heads_kv, p->seq_kv, p->page_size, p->dim_v);
    memset(p->stride_lse, 0, sizeof p->stride_lse);
    if (has(p, ATTEST_LSE)) {
        if (varlen_q)
            set3(p->stride_lse, 0, p->total_q, 1);
        else
            set3(p->stride_lse, times(p->heads_q, p->seq_q), p->seq_q, 1);
    }
    memset(p->stride_bias, 0, sizeof p->stride_bias);
    if (has(p, ATTEST_BIAS)) {
        int64_t square = times(p->seq_q, p->seq_kv);
        set3(p->stride_bias, times(p->heads_q, square), square, p->seq_kv);
        p->stride_bias[3] = 1;
    }
    p->stride_page_table = paged && p->page_size > 0 ? p->seq_kv / p->page_size + (p->seq_kv % p->page_size != 0) : 0;
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

void attest_problem_init(attest_problem *problem, attest_dtype dtype, int64_t batch, int64_t heads_q, int64_t heads_kv,
                         int64_t seq_q, int64_t seq_kv, int64_t dim)
{
    if (!problem)
        return;
    *problem = (attest_problem){.size = sizeof *problem,
                                .op = ATTEST_OP_FORWARD,
                                .dtype = dtype,
                                .dtype_o = dtype,
                                .batch = batch,
                                .heads_q = heads_q,
                                .heads_kv = heads_kv,
                                .seq_q = seq_q,
                                .seq_kv = seq_kv,
                                .dim = dim,
                                .dim_v = dim,
                                .scale = dim > 0 ? (float)(1.0 / sqrt((double)dim)) : 1.0f};
    pack(problem, false);
}

/* One tensor as a list of (extent, stride) pairs. */
struct shape {
    int64_t extent[4];
    int64_t stride[4];
    size_t element;
    bool present;
};

static struct shape shape_get(const attest_problem *p, char tensor)
{
    bool query = tensor == 'q' || tensor == 'o' || tensor == 'l';
    bool packed = has(p, query ? ATTEST_VARLEN_Q : ATTEST_VARLEN_KV), paged = !query && has(p, ATTEST_PAGED);
    struct shape s = {.present = true, .element = dtype_size(p->dtype)};
    s.extent[0] = packed ? 1 : paged ? p->page_count : p->batch;
    s.extent[1] = query ? p->heads_q : p->heads_kv;
    s.extent[2] = query ? (packed ? p->total_q : p->seq_q) : (packed ? p->total_kv : paged ? p->page_size : p->seq_kv);
    s.stride[3] = 1;
    const int64_t *outer = NULL;
    switch (tensor) {
    case 'q':
        outer = p->stride_q;
        s.extent[3] = p->dim;
        break;
    case 'k':
        outer = p->stride_k;
        s.extent[3] = p->dim;
        break;
    case 'v':
        outer = p->stride_v;
        s.extent[3] = p->dim_v;
        break;
    case 'o':
        outer = p->stride_o;
        s.extent[3] = p->dim_v;
        s.element = dtype_size(p->dtype_o);
        break;
    case 'l':
        outer = p->stride_lse;
        s.extent[3] = 1;
        s.element = 4;
        s.present = has(p, ATTEST_LSE);
        break;
    default: /* the bias: always indexed by sequence, row and key, packed or not */
        outer = p->stride_bias;
        s.extent[0] = p->batch;
        s.extent[1] = p->heads_q;
        s.extent[2] = p->seq_q;
        s.extent[3] = p->seq_kv;
        s.stride[3] = p->stride_bias[3];
        s.element = dtype_size(p->dtype_bias);
        s.present = has(p, ATTEST_BIAS);
        break;
    }
    memcpy(s.stride, outer, 3 * sizeof *outer);
    return s;
}

/* False if an offset in bytes does not fit 63 bits. */
static bool shape_extent(const struct shape *s, int64_t *first, int64_t *count)
{
    int64_t low = 0, high = 0, bytes;
    bool empty = !s->present, fits = true;
    for (int i = 0; i < 4; i++)
        empty = empty || s->extent[i] == 0;
    for (int i = 0; i < 4 && !empty; i++) {
        int64_t reach;
        fits = fits && !__builtin_mul_overflow(s->extent[i] - 1, s->stride[i], &reach);
        if (fits)
            fits = !__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
    }
    fits = fits && !__builtin_sub_overflow(high, low, count) && !__builtin_add_overflow(*count, 1, count) &&
           !__builtin_mul_overflow(high > -low ? high : -low, (int64_t)s->element, &bytes) &&
           !__builtin_mul_overflow(*count, (int64_t)s->element, &bytes);
    if (empty || !fits)
        *count = 0;
    *first = low;
    return fits;
}

bool problem_extent(const attest_problem *p, char tensor, int64_t *first, int64_t *count)
{
    struct shape s = shape_get(p, tensor);
    return shape_extent(&s, first, count);
}

attest_status attest_problem_extent(const attest_problem *problem, char tensor, int64_t *first, int64_t *count)
{
    attest_problem p;
    TRY(problem_read(&p, problem, (struct text){0}));
    if (!tensor || !strchr("qkvolb", tensor) || !first || !count)
        return ATTEST_ERROR_ARGUMENT;
    return problem_extent(&p, tensor, first, count) ? ATTEST_OK : ATTEST_ERROR_ARGUMENT;
}

/* Sufficient for all elements to be distinct: sorted by stride, each stride reaches beyond everything inside it. */
static bool shape_distinct(const struct shape *s)
{
    bool used[4];
    int64_t inner = 0;
    for (int i = 0; i < 4; i++)
        used[i] = s->extent[i] <= 1; /* its stride does not matter */
    for (;;) {
        int smallest = -1;
        for (int i = 0; i < 4; i++)
            if (!used[i] && (smallest < 0 || llabs(s->stride[i]) < llabs(s->stride[smallest])))
                smallest = i;
        if (smallest < 0)
            return true;
        used[smallest] = true;
        int64_t stride = llabs(s->stride[smallest]);
        if (stride <= inner)
            return false;
        inner += (s->extent[smallest] - 1) * stride;
    }
}

/* ---- check ----------------------------------------------------------------------------------------------------------------- */

static attest_status check_sizes(const attest_problem *p, struct text why)
{
    const struct {
        const char *name;
        int64_t value, least, most;
    } sizes[] = {
        {"batch", p->batch, 0, INT32_MAX},
        {"heads_q", p->heads_q, 1, INT32_MAX},
        {"heads_kv", p->heads_kv, 1, INT32_MAX},
        {"seq_q", p->seq_q, 0, INT32_MAX},
        {"seq_kv", p->seq_kv, 0, INT32_MAX},
        {"dim", p->dim, 1, DIM_MAX},
        {"dim_v", p->dim_v, 1, DIM_MAX},
        {"total_q", p->total_q, 0, INT32_MAX},
        {"total_kv", p->total_kv, 0, INT32_MAX},
        {"page_size", p->page_size, 0, INT32_MAX},
        {"page_count", p->page_count, 0, INT32_MAX},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value < sizes[i].least || sizes[i].value > sizes[i].most)
            return fail(why, ATTEST_ERROR_ARGUMENT, "%s is %lld; it must be %lld to %lld", sizes[i].name, (long long)sizes[i].value,
                        (long long)sizes[i].least, (long long)sizes[i].most);
    if (p->heads_q % p->heads_kv)
        return fail(why, ATTEST_ERROR_ARGUMENT, "heads_q is %lld, which is not a multiple of heads_kv, %lld", (long long)p->heads_q,
                    (long long)p->heads_kv);
    int64_t rows;
    if (__builtin_mul_overflow(p->batch, p->heads_q, &rows) || __builtin_mul_overflow(rows, p->seq_q, &rows) ||
        rows > INT64_MAX / 4096)
        return fail(why, ATTEST_ERROR_ARGUMENT, "batch * heads_q * seq_q is %lld * %lld * %lld, which is too large",
                    (long long)p->batch, (long long)p->heads_q, (long long)p->seq_q);
    return ATTEST_OK;
}

/* A field that belongs to a flag must be 0 while the flag is off: it says that the caller forgot the flag. */
static attest_status check_flags(const attest_problem *p, struct text why)
{
    if (p->flags & ~KNOWN_FLAGS)
        return fail(why, ATTEST_ERROR_ARGUMENT, "flags has unknown bits: 0x%llx", (unsigned long long)(p->flags & ~KNOWN_FLAGS));
    bool bias_strides = false, lse_strides = false;
    for (int i = 0; i < 4; i++)
        bias_strides = bias_strides || p->stride_bias[i];
    for (int i = 0; i < 3; i++)
        lse_strides = lse_strides || p->stride_lse[i];
    const struct {
        uint64_t flag;
        const char *flag_name, *field;
        bool set;
    } fields[] = {
        {ATTEST_WINDOW_LEFT, "ATTEST_WINDOW_LEFT", "window_left", p->window_left != 0},
        {ATTEST_WINDOW_RIGHT, "ATTEST_WINDOW_RIGHT", "window_right", p->window_right != 0},
        {ATTEST_SOFTCAP, "ATTEST_SOFTCAP", "softcap", p->softcap != 0 || signbit(p->softcap)},
        {ATTEST_BIAS, "ATTEST_BIAS", "dtype_bias", p->dtype_bias != 0},
        {ATTEST_BIAS, "ATTEST_BIAS", "stride_bias", bias_strides},
        {ATTEST_LSE, "ATTEST_LSE", "stride_lse", lse_strides},
        {ATTEST_VARLEN_Q, "ATTEST_VARLEN_Q", "total_q", p->total_q != 0},
        {ATTEST_VARLEN_KV, "ATTEST_VARLEN_KV", "total_kv", p->total_kv != 0},
        {ATTEST_PAGED, "ATTEST_PAGED", "page_size", p->page_size != 0},
        {ATTEST_PAGED, "ATTEST_PAGED", "page_count", p->page_count != 0},
        {ATTEST_PAGED, "ATTEST_PAGED", "stride_page_table", p->stride_page_table != 0},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!has(p, fields[i].flag) && fields[i].set)
            return fail(why, ATTEST_ERROR_ARGUMENT, "%s is set, but the flag %s is not", fields[i].field, fields[i].flag_name);
    if (has(p, ATTEST_PAGED) && has(p, ATTEST_VARLEN_KV))
        return fail(why, ATTEST_ERROR_ARGUMENT,
                    "flags has both ATTEST_PAGED and ATTEST_VARLEN_KV; keys are paged or packed, not both");
    if (has(p, ATTEST_PAGED) && p->page_size < 1)
        return fail(why, ATTEST_ERROR_ARGUMENT, "page_size is %lld; it must be 1 or more", (long long)p->page_size);
    if (has(p, ATTEST_PAGED) && p->stride_page_table < 0)
        return fail(why, ATTEST_ERROR_ARGUMENT, "stride_page_table is %lld; it must be 0 or more", (long long)p->stride_page_table);
    if (has(p, ATTEST_PAGED) && p->stride_page_table > INT64_MAX / 8 / (p->batch ? p->batch : 1))
        return fail(why, ATTEST_ERROR_ARGUMENT, "stride_page_table makes offsets that do not fit 63 bits");
    if (p->window_left < 0 || p->window_right < 0)
        return fail(why, ATTEST_ERROR_ARGUMENT, "%s is %lld; it must be 0 or more (leave the flag off for no limit)",
                    p->window_left < 0 ? "window_left" : "window_right",
                    (long long)(p->window_left < 0 ? p->window_left : p->window_right));
    if (!isfinite(p->scale))
        return fail(why, ATTEST_ERROR_ARGUMENT, "scale is %g; it must be finite", (double)p->scale);
    if (has(p, ATTEST_SOFTCAP) && !(isfinite(p->softcap) && p->softcap >= 0x1p-60f && p->softcap <= 0x1p60f))
        return fail(why, ATTEST_ERROR_ARGUMENT, "softcap is %g; it must be 2^-60 to 2^60", (double)p->softcap);
    return ATTEST_OK;
}

static attest_status check_dtypes(const attest_problem *p, struct text why)
{
    if (!op_is_known(p->op))
        return fail(why, ATTEST_ERROR_ARGUMENT, "op is %u; it must be %s", p->op, OP_NAMES + sizeof " or " - 1);
    if (p->dtype < ATTEST_F32 || p->dtype > ATTEST_BF16)
        return fail(why, ATTEST_ERROR_ARGUMENT, "dtype is %u; it must be ATTEST_F32, ATTEST_F16 or ATTEST_BF16", p->dtype);
    if (p->dtype_o != p->dtype && p->dtype_o != ATTEST_F32)
        return fail(why, ATTEST_ERROR_ARGUMENT, "dtype_o is %s; it must be %s, as dtype, or f32", dtype_name(p->dtype_o),
                    dtype_name(p->dtype));
    if (has(p, ATTEST_BIAS) && p->dtype_bias != p->dtype && p->dtype_bias != ATTEST_F32)
        return fail(why, ATTEST_ERROR_ARGUMENT, "dtype_bias is %s; it must be %s, as dtype, or f32", dtype_name(p->dtype_bias),
                    dtype_name(p->dtype));
    return ATTEST_OK;
}

static attest_status check_strides(const attest_problem *p, struct text why)
{
    static const struct {
        char letter;
        const char *name;
    } tensors[] = {{'q', "stride_q"}, {'k', "stride_k"},   {'v', "stride_v"},
                   {'o', "stride_o"}, {'l', "stride_lse"}, {'b', "stride_bias"}};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        struct shape s = shape_get(p, tensors[i].letter);
        int64_t first, count;
        if (!shape_extent(&s, &first, &count))
            return fail(why, ATTEST_ERROR_ARGUMENT, "%s makes offsets that do not fit 63 bits", tensors[i].name);
        if (count && strchr("ol", tensors[i].letter) && !shape_distinct(&s))
            return fail(why, ATTEST_ERROR_ARGUMENT,
                        "%s lets elements of the output overlap: sorted by size, each stride must reach beyond those inside it",
                        tensors[i].name);
    }
    if (has(p, ATTEST_VARLEN_Q) && (p->stride_q[0] || p->stride_o[0] || p->stride_lse[0]))
        return fail(why, ATTEST_ERROR_ARGUMENT, "%s is not 0; packed sequences have no batch stride",
                    p->stride_q[0]   ? "stride_q[0]"
                    : p->stride_o[0] ? "stride_o[0]"
                                     : "stride_lse[0]");
    if (has(p, ATTEST_VARLEN_KV) && (p->stride_k[0] || p->stride_v[0]))
        return fail(why, ATTEST_ERROR_ARGUMENT, "%s is not 0; packed sequences have no batch stride",
                    p->stride_k[0] ? "stride_k[0]" : "stride_v[0]");
    return ATTEST_OK;
}

attest_status problem_read(attest_problem *own, const attest_problem *theirs, struct text why)
{
    TRY(struct_read(own, sizeof *own, PROBLEM_SIZE_0_1, theirs, "problem", why));
    TRY(check_dtypes(own, why));
    TRY(check_sizes(own, why));
    TRY(check_flags(own, why));
    return check_strides(own, why);
}

attest_status attest_problem_check(const attest_problem *problem, char *text, size_t text_size)
{
    attest_problem own;
    struct text why = {text, text_size};
    if (text && text_size)
        text[0] = 0;
    return problem_read(&own, problem, why);
}
