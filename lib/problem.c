/*
 * problem.c - the problem struct: defaults, and the check that every other call relies on.
 */
#include "internal.h"

#include <math.h>

static const struct {
    uint64_t flag;
    const char *name, *title;
} flags[] = {
#define FLAG(name, word, title) {ATTEST_##name, "ATTEST_" #name, title},
#include <attest/flags.def>
#undef FLAG
};
enum { FLAGS = sizeof flags / sizeof *flags };
_Static_assert(ATTEST_MASK == UINT64_C(1) << (FLAGS - 1), "flags.def has every flag, in the order of their bits");
static const uint64_t KNOWN_FLAGS = (UINT64_C(1) << FLAGS) - 1;

const char *flag_title(uint64_t some)
{
    for (int i = 0; i < FLAGS; i++)
        if (some & flags[i].flag)
            return flags[i].title;
    return "a flag that it does not know";
}

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
    attest_problem_pack(problem);
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

static bool any_stride(const attest_problem *p, int tensor)
{
    bool any = false;
    for (int i = 0; i < tensor_rows[tensor].stride_count; i++)
        any = any || tensor_strides(p, tensor)[i];
    return any;
}

/* A field that belongs to a flag must be 0 while the flag is off: it says that the caller forgot the flag. */
static attest_status check_flags(const attest_problem *p, struct text why)
{
    if (p->flags & ~KNOWN_FLAGS)
        return fail(why, ATTEST_ERROR_ARGUMENT, "flags has unknown bits: 0x%llx", (unsigned long long)(p->flags & ~KNOWN_FLAGS));
    const struct {
        uint64_t flag;
        const char *field;
        bool set;
    } fields[] = {
        {ATTEST_WINDOW_LEFT, "window_left", p->window_left != 0},
        {ATTEST_WINDOW_RIGHT, "window_right", p->window_right != 0},
        {ATTEST_SOFTCAP, "softcap", p->softcap != 0 || signbit(p->softcap)},
        {ATTEST_BIAS, "dtype_bias", p->dtype_bias != 0},
        {ATTEST_VARLEN_Q, "total_q", p->total_q != 0},
        {ATTEST_VARLEN_KV, "total_kv", p->total_kv != 0},
        {ATTEST_PAGED, "page_size", p->page_size != 0},
        {ATTEST_PAGED, "page_count", p->page_count != 0},
    };
    for (int n = 0; n < FLAGS; n++) {
        const char *field = NULL;
        if (has(p, flags[n].flag))
            continue;
        for (int i = TENSORS - 1; i >= 0; i--)
            if (tensor_rows[i].flag == flags[n].flag && any_stride(p, i))
                field = tensor_rows[i].stride_name;
        for (int i = (int)(sizeof fields / sizeof *fields) - 1; i >= 0; i--)
            if (fields[i].flag == flags[n].flag && fields[i].set)
                field = fields[i].field;
        if (field)
            return fail(why, ATTEST_ERROR_ARGUMENT, "%s is set, but the flag %s is not", field, flags[n].name);
    }
    if (has(p, ATTEST_PAGED) && has(p, ATTEST_VARLEN_KV))
        return fail(why, ATTEST_ERROR_ARGUMENT,
                    "flags has both ATTEST_PAGED and ATTEST_VARLEN_KV; keys are paged or packed, not both");
    if (has(p, ATTEST_ROW_OFFSETS) && has(p, ATTEST_BOTTOM_RIGHT))
        return fail(why, ATTEST_ERROR_ARGUMENT,
                    "flags has both ATTEST_ROW_OFFSETS and ATTEST_BOTTOM_RIGHT; each of them says where rows stand");
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
    for (int i = 0; i < TENSORS; i++) {
        struct shape s = shape_get(p, i);
        int64_t first, count;
        if (!shape_extent(&s, &first, &count))
            return fail(why, ATTEST_ERROR_ARGUMENT, "%s makes offsets that do not fit 63 bits", tensor_rows[i].stride_name);
        if (count && tensor_rows[i].role[p->op] & ATTEST_ROLE_OUTPUT && !shape_distinct(&s))
            return fail(why, ATTEST_ERROR_ARGUMENT,
                        "%s lets elements of the output overlap: sorted by size, each stride must reach beyond those inside it",
                        tensor_rows[i].stride_name);
    }
    static const uint64_t packed[] = {ATTEST_VARLEN_Q, ATTEST_VARLEN_KV};
    for (size_t k = 0; k < sizeof packed / sizeof *packed; k++)
        for (int i = 0; i < TENSORS && has(p, packed[k]); i++)
            if (tensor_packed_by(i) == packed[k] && tensor_strides(p, i)[0])
                return fail(why, ATTEST_ERROR_ARGUMENT, "%s[0] is not 0; packed sequences have no batch stride",
                            tensor_rows[i].stride_name);
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
