/*
 * Bad input of every kind: its status, a sentence that names the argument, no crash and no write. One table row a mistake; each
 * row starts from a good problem with good data and spoils one thing.
 */
#include "gen.h"
#include "drive.h"
#include "tap.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------------- problems -- */

static void good_problem(attest_problem *p, const char *line)
{
    char why[256] = "";
    tap_check(attest_problem_parse(line, p, why, sizeof why) == ATTEST_OK, "%s: %s", line, why);
}

/* One field of a good problem is replaced; the sentence must name it. */
static void bad_problems(void)
{
    static const struct {
        const char *line;
        size_t offset;
        char kind; /* i: int64, u: uint32, f: float */
        double value;
        const char *part;
    } table[] = {
#define FIELD(name) offsetof(attest_problem, name)
        {"fwd:f32:h2:s4:d8", FIELD(op), 'u', 0, "op"},
        {"fwd:f32:h2:s4:d8", FIELD(op), 'u', 2, "op"},
        {"fwd:f32:h2:s4:d8", FIELD(dtype), 'u', 0, "dtype"},
        {"fwd:f32:h2:s4:d8", FIELD(dtype), 'u', 4, "dtype"},
        {"fwd:f32:h2:s4:d8", FIELD(dtype), 'u', 4294967295.0, "dtype"},
        {"fwd:f32:h2:s4:d8", FIELD(dtype_o), 'u', 0, "dtype_o"},
        {"fwd:f32:h2:s4:d8", FIELD(dtype_o), 'u', ATTEST_F16, "dtype_o"},
        {"fwd:f16:h2:s4:d8", FIELD(dtype_o), 'u', ATTEST_BF16, "dtype_o"},
        {"fwd:f32:h2:s4:d8", FIELD(dtype_bias), 'u', ATTEST_F32, "dtype_bias"},
        {"fwd:f32:h2:s4:d8:bias", FIELD(dtype_bias), 'u', 0, "dtype_bias"},
        {"fwd:f32:h2:s4:d8:bias", FIELD(dtype_bias), 'u', ATTEST_F16, "dtype_bias"},
        {"fwd:f32:h2:s4:d8", FIELD(batch), 'i', -1, "batch"},
        {"fwd:f32:h2:s4:d8", FIELD(batch), 'i', -0x1p63, "batch"},
        {"fwd:f32:h2:s4:d8", FIELD(batch), 'i', 0x1p62, "batch"},
        {"fwd:f32:h2:s4:d8", FIELD(heads_q), 'i', 0, "heads_q"},
        {"fwd:f32:h2:s4:d8", FIELD(heads_q), 'i', -2, "heads_q"},
        {"fwd:f32:h2:s4:d8", FIELD(heads_q), 'i', 3, "heads_q"},
        {"fwd:f32:h2:s4:d8", FIELD(heads_kv), 'i', 0, "heads_kv"},
        {"fwd:f32:h2:s4:d8", FIELD(heads_kv), 'i', -1, "heads_kv"},
        {"fwd:f32:h2:s4:d8", FIELD(heads_kv), 'i', 4, "heads_kv"},
        {"fwd:f32:h2:s4:d8", FIELD(seq_q), 'i', -1, "seq_q"},
        {"fwd:f32:h2:s4:d8", FIELD(seq_q), 'i', 0x1p40, "seq_q"},
        {"fwd:f32:h2:s4:d8", FIELD(seq_kv), 'i', -1, "seq_kv"},
        {"fwd:f32:h2:s4:d8", FIELD(seq_kv), 'i', -0x1p63, "seq_kv"},
        {"fwd:f32:h2:s4:d8", FIELD(dim), 'i', 0, "dim"},
        {"fwd:f32:h2:s4:d8", FIELD(dim), 'i', -8, "dim"},
        {"fwd:f32:h2:s4:d8", FIELD(dim), 'i', 513, "dim"},
        {"fwd:f32:h2:s4:d8", FIELD(dim_v), 'i', 0, "dim_v"},
        {"fwd:f32:h2:s4:d8", FIELD(dim_v), 'i', 513, "dim_v"},
        {"fwd:f32:h2:s4:d8", FIELD(total_q), 'i', 8, "total_q"},
        {"fwd:f32:h2:s4:d8:varlenq=8", FIELD(total_q), 'i', -1, "total_q"},
        {"fwd:f32:h2:s4:d8", FIELD(total_kv), 'i', 8, "total_kv"},
        {"fwd:f32:h2:s4:d8:varlenkv=8", FIELD(total_kv), 'i', -1, "total_kv"},
        {"fwd:f32:h2:s4:d8", FIELD(page_size), 'i', 4, "page_size"},
        {"fwd:f32:h2:s4:d8:page=2,4", FIELD(page_size), 'i', 0, "page_size"},
        {"fwd:f32:h2:s4:d8:page=2,4", FIELD(page_size), 'i', -1, "page_size"},
        {"fwd:f32:h2:s4:d8", FIELD(page_count), 'i', 4, "page_count"},
        {"fwd:f32:h2:s4:d8:page=2,4", FIELD(page_count), 'i', -1, "page_count"},
        {"fwd:f32:h2:s4:d8", FIELD(stride_page_table), 'i', 4, "stride_page_table"},
        {"fwd:f32:h2:s4:d8:page=2,4", FIELD(stride_page_table), 'i', -1, "stride_page_table"},
        {"fwd:f32:b4:h2:s4:d8:page=2,4", FIELD(stride_page_table), 'i', 0x1p62, "stride_page_table"},
        {"fwd:f32:h2:s4:d8", FIELD(window_left), 'i', 4, "window_left"},
        {"fwd:f32:h2:s4:d8:wl=3", FIELD(window_left), 'i', -1, "window_left"},
        {"fwd:f32:h2:s4:d8:wl=3", FIELD(window_left), 'i', -0x1p63, "window_left"},
        {"fwd:f32:h2:s4:d8", FIELD(window_right), 'i', 4, "window_right"},
        {"fwd:f32:h2:s4:d8:wr=3", FIELD(window_right), 'i', -1, "window_right"},
        {"fwd:f32:h2:s4:d8", FIELD(scale), 'f', NAN, "scale"},
        {"fwd:f32:h2:s4:d8", FIELD(scale), 'f', INFINITY, "scale"},
        {"fwd:f32:h2:s4:d8", FIELD(scale), 'f', -INFINITY, "scale"},
        {"fwd:f32:h2:s4:d8", FIELD(softcap), 'f', 3, "softcap"},
        {"fwd:f32:h2:s4:d8", FIELD(softcap), 'f', NAN, "softcap"},
        {"fwd:f32:h2:s4:d8:softcap=3", FIELD(softcap), 'f', 0, "softcap"},
        {"fwd:f32:h2:s4:d8:softcap=3", FIELD(softcap), 'f', -3, "softcap"},
        {"fwd:f32:h2:s4:d8:softcap=3", FIELD(softcap), 'f', NAN, "softcap"},
        {"fwd:f32:h2:s4:d8:softcap=3", FIELD(softcap), 'f', INFINITY, "softcap"},
        {"fwd:f32:h2:s4:d8", FIELD(stride_lse[1]), 'i', 4, "stride_lse"},
        {"fwd:f32:h2:s4:d8", FIELD(stride_bias[3]), 'i', 1, "stride_bias"},
        {"fwd:f32:h2:s4:d8:varlenq=8", FIELD(stride_q[0]), 'i', 1, "stride_q"},
        {"fwd:f32:h2:s4:d8:varlenq=8", FIELD(stride_o[0]), 'i', 1, "stride_o"},
        {"fwd:f32:h2:s4:d8:varlenq=8:lse", FIELD(stride_lse[0]), 'i', 1, "stride_lse"},
        {"fwd:f32:h2:s4:d8:varlenkv=8", FIELD(stride_k[0]), 'i', 1, "stride_k"},
        {"fwd:f32:h2:s4:d8:varlenkv=8", FIELD(stride_v[0]), 'i', 1, "stride_v"},
        {"fwd:f32:b2:h2:s4:d8", FIELD(stride_q[0]), 'i', 0x1p62, "stride_q"},
        {"fwd:f32:b3:h2:s4:d8", FIELD(stride_q[0]), 'i', -0x1p63, "stride_q"},
        {"fwd:f32:b2:h2:s4:d8", FIELD(stride_k[1]), 'i', 0x1p62, "stride_k"},
        {"fwd:f32:b2:h2:s4:d8", FIELD(stride_v[2]), 'i', -0x1p62, "stride_v"},
        {"fwd:f32:b2:h2:s4:d8", FIELD(stride_o[2]), 'i', 0x1p62, "stride_o"},
        {"fwd:f32:b2:h2:s4:d8:lse", FIELD(stride_lse[2]), 'i', 0x1p62, "stride_lse"},
        {"fwd:f32:b2:h2:s4:d8:bias", FIELD(stride_bias[3]), 'i', 0x1p62, "stride_bias"},
        {"fwd:f32:b2:h2:s4:d8", FIELD(stride_o[0]), 'i', 0, "stride_o"},
        {"fwd:f32:b2:h2:s4:d8", FIELD(stride_o[1]), 'i', 7, "stride_o"},
        {"fwd:f32:b2:h2:s4:d8", FIELD(stride_o[2]), 'i', 7, "stride_o"},
        {"fwd:f32:b2:h2:s4:d8", FIELD(stride_o[2]), 'i', -7, "stride_o"},
        {"fwd:f32:b2:h2:s4:d8:lse", FIELD(stride_lse[2]), 'i', 0, "stride_lse"},
        {"fwd:f32:b2:h2:s4:d8:lse", FIELD(stride_lse[0]), 'i', 3, "stride_lse"},
#undef FIELD
    };
    attest_context *context = drive_context(1);
    for (size_t n = 0; n < sizeof table / sizeof *table; n++) {
        if (!tap_case("%zu", n))
            continue;
        attest_problem p;
        good_problem(&p, table[n].line);
        unsigned char *at = (unsigned char *)&p + table[n].offset;
        if (table[n].kind == 'i')
            memcpy(at, &(int64_t){(int64_t)table[n].value}, sizeof(int64_t));
        else if (table[n].kind == 'u')
            memcpy(at, &(uint32_t){(uint32_t)table[n].value}, sizeof(uint32_t));
        else
            memcpy(at, &(float){(float)table[n].value}, sizeof(float));

        char why[512] = "", text[ATTEST_PROBLEM_TEXT] = "";
        int64_t first, count;
        attest_plan *plan = NULL;
        attest_tensors t = {.size = sizeof t};
        double value;
        tap_check(attest_problem_check(&p, why, sizeof why) == ATTEST_ERROR_ARGUMENT, "%s with %s %g is accepted", table[n].line,
                  table[n].part, table[n].value);
        tap_check(strstr(why, table[n].part) != NULL, "%s: '%s' is not in the sentence: %s", table[n].line, table[n].part, why);
        tap_check(attest_problem_check(&p, NULL, 0) == ATTEST_ERROR_ARGUMENT, "without a text it is accepted");
        tap_check(attest_problem_print(&p, text, sizeof text) == ATTEST_ERROR_ARGUMENT, "it prints as %s", text);
        tap_check(attest_problem_extent(&p, 'q', &first, &count) == ATTEST_ERROR_ARGUMENT, "it has an extent");
        tap_check(attest_plan_create(context, &p, NULL, &plan) == ATTEST_ERROR_ARGUMENT && !plan, "it has a plan");
        tap_check(strstr(attest_context_detail(context), table[n].part) != NULL, "plan: '%s' is not in the sentence: %s",
                  table[n].part, attest_context_detail(context));
        tap_check(attest_forward(&p, &t, why, sizeof why) == ATTEST_ERROR_ARGUMENT && strstr(why, table[n].part), "forward: %s",
                  why);
        tap_check(attest_explain(context, &p, why, sizeof why) == ATTEST_ERROR_ARGUMENT, "explain explains it");
        tap_check(attest_kernel_refusal(context, 0, &p, why, sizeof why) == ATTEST_ERROR_ARGUMENT && strstr(why, table[n].part),
                  "refusal: %s", why);
        tap_check(attest_reference(context, &p, &t, ATTEST_EXACT, 0, 1, &value, NULL) == ATTEST_ERROR_ARGUMENT,
                  "the oracle takes it");
    }
    attest_context_destroy(context);
}

static void unknown_flags(void)
{
    for (int bit = 18; bit < 64; bit++) {
        attest_problem p;
        char why[256] = "";
        good_problem(&p, "fwd:f32:h2:s4:d8");
        p.flags |= UINT64_C(1) << bit;
        tap_check(attest_problem_check(&p, why, sizeof why) == ATTEST_ERROR_ARGUMENT && strstr(why, "flags"), "bit %d: %s", bit,
                  why);
    }
}

/* Strides with no extent behind them are any number at all. */
static void odd_strides_accepted(void)
{
    static const int64_t odd[] = {0, 1, -1, INT64_MAX, INT64_MIN, INT64_MIN + 1};
    for (size_t n = 0; n < sizeof odd / sizeof *odd; n++) {
        attest_problem p;
        char why[256] = "";
        good_problem(&p, "fwd:f32:b1:h1:s1:d8:lse");
        for (int d = 0; d < 3; d++)
            p.stride_q[d] = p.stride_k[d] = p.stride_v[d] = p.stride_o[d] = p.stride_lse[d] = odd[n];
        tap_check(attest_problem_check(&p, why, sizeof why) == ATTEST_OK, "stride %lld of extent 1: %s", (long long)odd[n], why);
    }
}

/* ------------------------------------------------------------------------------------------------------------ size tags -- */

/* A struct of a newer header is taken while what this library does not know is zero; a smaller one is refused. */
static void size_tags(void)
{
    attest_context *context = drive_context(1);
    union {
        attest_problem p;
        unsigned char bytes[sizeof(attest_problem) + 64];
    } big;
    char why[256] = "";
    memset(&big, 0, sizeof big);
    attest_problem_init(&big.p, ATTEST_F32, 1, 2, 1, 3, 4, 5);
    big.p.size = sizeof big;
    tap_check(attest_problem_check(&big.p, why, sizeof why) == ATTEST_OK, "a larger struct with a zero tail: %s", why);
    for (size_t at = sizeof(attest_problem); at < sizeof big; at++) {
        big.bytes[at] = 1;
        tap_check(attest_problem_check(&big.p, why, sizeof why) == ATTEST_ERROR_ARGUMENT && strstr(why, "problem"),
                  "a tail that is not zero at byte %zu: %s", at, why);
        big.bytes[at] = 0;
    }
    static const uint64_t sizes[] = {0, 1, 7, 8, 9, 303, UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 40};
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        big.p.size = sizes[n];
        tap_check(attest_problem_check(&big.p, why, sizeof why) == ATTEST_ERROR_ARGUMENT && strstr(why, "size"),
                  "problem.size %llu: %s", (unsigned long long)sizes[n], why);
    }
    big.p.size = sizeof big;

    struct instance in;
    attest_problem p;
    good_problem(&p, "fwd:f32:b1:hq2:hkv1:sq3:skv4:d5");
    if (!instance_create(&in, &p, 1, NULL))
        return;
    union {
        attest_tensors t;
        unsigned char bytes[sizeof(attest_tensors) + 32];
    } tensors;
    memset(&tensors, 0, sizeof tensors);
    tensors.t = in.tensors;
    tensors.t.size = sizeof tensors;
    tap_check(attest_forward(&big.p, &tensors.t, why, sizeof why) == ATTEST_OK, "larger structs: %s", why);
    instance_poison(&in);
    tensors.bytes[sizeof tensors - 1] = 1;
    tap_check(attest_forward(&p, &tensors.t, why, sizeof why) == ATTEST_ERROR_ARGUMENT && strstr(why, "tensors"),
              "tensors' tail: %s", why);
    tensors.bytes[sizeof tensors - 1] = 0;
    static const uint64_t tensor_sizes[] = {0, 8, 96, UINT64_MAX}; /* 104 in version 0.1 as it was */
    for (size_t n = 0; n < sizeof tensor_sizes / sizeof *tensor_sizes; n++) {
        tensors.t.size = tensor_sizes[n];
        tap_check(attest_forward(&p, &tensors.t, why, sizeof why) == ATTEST_ERROR_ARGUMENT && strstr(why, "size"),
                  "tensors.size: %s", why);
    }
    tap_check(instance_no_write(&in), "an output was written");
    instance_destroy(&in);

    attest_kernel_info info = {.size = 0};
    tap_check(attest_kernel_get(0, &info) == ATTEST_ERROR_ARGUMENT, "a kernel info without a size");
    union {
        attest_kernel_info info;
        unsigned char bytes[sizeof(attest_kernel_info) + 16];
    } wide;
    memset(&wide, 0, sizeof wide);
    wide.info.size = sizeof wide;
    tap_check(attest_kernel_get(0, &wide.info) == ATTEST_OK && wide.info.name && wide.bytes[sizeof wide - 1] == 0,
              "a larger kernel info");
    attest_context_destroy(context);
}

/* ------------------------------------------------------------------------------------------------------------- tensors -- */

enum spoil {
    S_NULL,      /* the pointer becomes NULL */
    S_EXTRA,     /* the pointer of a feature that is off is given */
    S_UNALIGNED, /* the pointer moves by one byte */
    S_SAME_AS_Q, /* the pointer becomes that of Q */
    S_SAME_AS_O,
    S_INT, /* element `index` of an int32 array becomes `value` */
    S_FLOAT
};

static void spoil(struct instance *in, enum spoil what, size_t pointer, int64_t index, double value)
{
    unsigned char *at = (unsigned char *)&in->tensors + pointer;
    unsigned char *target;
    memcpy(&target, at, sizeof target);
    switch (what) {
    case S_NULL:
        target = NULL;
        break;
    case S_EXTRA:
        target = in->k.bytes;
        break;
    case S_UNALIGNED:
        target += 1;
        break;
    case S_SAME_AS_Q:
        target = in->q.data;
        break;
    case S_SAME_AS_O:
        target = in->o.data;
        break;
    case S_INT:
        memcpy(target + index * 4, &(int32_t){(int32_t)value}, 4);
        break;
    default:
        memcpy(target + index * 4, &(float){(float)value}, 4);
        break;
    }
    memcpy(at, &target, sizeof target);
}

static void bad_tensors(void)
{
    static const struct {
        const char *line;
        enum spoil what;
        size_t pointer;
        int64_t index;
        double value;
        const char *part;
    } table[] = {
#define AT(name) offsetof(attest_tensors, name)
        {"fwd:f32:b2:h2:s4:d8", S_NULL, AT(q), 0, 0, "q"},
        {"fwd:f32:b2:h2:s4:d8", S_NULL, AT(k), 0, 0, "k"},
        {"fwd:f32:b2:h2:s4:d8", S_NULL, AT(v), 0, 0, "v"},
        {"fwd:f32:b2:h2:s4:d8", S_NULL, AT(o), 0, 0, "o"},
        {"fwd:f32:b2:h2:s4:d8:lse", S_NULL, AT(lse), 0, 0, "lse"},
        {"fwd:f32:b2:h2:s4:d8:bias", S_NULL, AT(bias), 0, 0, "bias"},
        {"fwd:f32:b2:h2:s4:d8:alibi", S_NULL, AT(alibi_slopes), 0, 0, "alibi_slopes"},
        {"fwd:f32:b2:h2:s4:d8:sink", S_NULL, AT(sinks), 0, 0, "sinks"},
        {"fwd:f32:b2:h2:s4:d8:varlenq=8", S_NULL, AT(cu_seqlens_q), 0, 0, "cu_seqlens_q"},
        {"fwd:f32:b2:h2:s4:d8:varlenkv=8", S_NULL, AT(cu_seqlens_kv), 0, 0, "cu_seqlens_kv"},
        {"fwd:f32:b2:h2:s4:d8:lens", S_NULL, AT(kv_lengths), 0, 0, "kv_lengths"},
        {"fwd:f32:b2:h2:s4:d8:page=2,8", S_NULL, AT(page_table), 0, 0, "page_table"},
        {"fwd:f32:b2:h2:s4:d8", S_EXTRA, AT(lse), 0, 0, "lse"},
        {"fwd:f32:b2:h2:s4:d8", S_EXTRA, AT(bias), 0, 0, "bias"},
        {"fwd:f32:b2:h2:s4:d8", S_EXTRA, AT(alibi_slopes), 0, 0, "alibi_slopes"},
        {"fwd:f32:b2:h2:s4:d8", S_EXTRA, AT(sinks), 0, 0, "sinks"},
        {"fwd:f32:b2:h2:s4:d8", S_EXTRA, AT(cu_seqlens_q), 0, 0, "cu_seqlens_q"},
        {"fwd:f32:b2:h2:s4:d8", S_EXTRA, AT(cu_seqlens_kv), 0, 0, "cu_seqlens_kv"},
        {"fwd:f32:b2:h2:s4:d8", S_EXTRA, AT(kv_lengths), 0, 0, "kv_lengths"},
        {"fwd:f32:b2:h2:s4:d8", S_EXTRA, AT(page_table), 0, 0, "page_table"},
        {"fwd:f32:b2:h2:s4:d8", S_UNALIGNED, AT(q), 0, 0, "q"},
        {"fwd:f16:b2:h2:s4:d8", S_UNALIGNED, AT(k), 0, 0, "k"},
        {"fwd:bf16:b2:h2:s4:d8", S_UNALIGNED, AT(v), 0, 0, "v"},
        {"fwd:f32:b2:h2:s4:d8", S_UNALIGNED, AT(o), 0, 0, "o"},
        {"fwd:f32:b2:h2:s4:d8:lse", S_UNALIGNED, AT(lse), 0, 0, "lse"},
        {"fwd:f16:b2:h2:s4:d8:bias", S_UNALIGNED, AT(bias), 0, 0, "bias"},
        {"fwd:f32:b2:h2:s4:d8:alibi", S_UNALIGNED, AT(alibi_slopes), 0, 0, "alibi_slopes"},
        {"fwd:f32:b2:h2:s4:d8:sink", S_UNALIGNED, AT(sinks), 0, 0, "sinks"},
        {"fwd:f32:b2:h2:s4:d8:varlenq=8", S_UNALIGNED, AT(cu_seqlens_q), 0, 0, "cu_seqlens_q"},
        {"fwd:f32:b2:h2:s4:d8:varlenkv=8", S_UNALIGNED, AT(cu_seqlens_kv), 0, 0, "cu_seqlens_kv"},
        {"fwd:f32:b2:h2:s4:d8:lens", S_UNALIGNED, AT(kv_lengths), 0, 0, "kv_lengths"},
        {"fwd:f32:b2:h2:s4:d8:page=2,8", S_UNALIGNED, AT(page_table), 0, 0, "page_table"},
        {"fwd:f32:b2:h2:s4:d8", S_SAME_AS_Q, AT(o), 0, 0, "overlap"},
        {"fwd:f32:b2:h2:s4:d8", S_SAME_AS_O, AT(k), 0, 0, "overlap"},
        {"fwd:f32:b2:h2:s4:d8", S_SAME_AS_O, AT(v), 0, 0, "overlap"},
        {"fwd:f32:b2:h2:s4:d8:lse", S_SAME_AS_O, AT(lse), 0, 0, "overlap"},
        {"fwd:f32:b2:h2:s4:d8:lse", S_SAME_AS_Q, AT(lse), 0, 0, "overlap"},
        {"fwd:f32:b2:h2:s4:d8:bias", S_SAME_AS_O, AT(bias), 0, 0, "overlap"},
        {"fwd:f32:b2:h2:s4:d8:sink", S_SAME_AS_O, AT(sinks), 0, 0, "overlap"},
        {"fwd:f32:b2:h2:s4:d8:alibi", S_SAME_AS_O, AT(alibi_slopes), 0, 0, "overlap"},
        {"fwd:f32:b2:h2:s4:d8:varlenq=8", S_INT, AT(cu_seqlens_q), 0, -1, "cu_seqlens_q"},
        {"fwd:f32:b2:h2:s4:d8:varlenq=8", S_INT, AT(cu_seqlens_q), 2, 9, "cu_seqlens_q"},
        {"fwd:f32:b2:h2:s4:d8:varlenq=8", S_INT, AT(cu_seqlens_q), 1, 5, "cu_seqlens_q"},
        {"fwd:f32:b2:h2:s4:d8:varlenq=8", S_INT, AT(cu_seqlens_q), 2, -2147483648.0, "cu_seqlens_q"},
        {"fwd:f32:b2:h2:s4:d8:varlenq=8", S_INT, AT(cu_seqlens_q), 1, 2147483647.0, "cu_seqlens_q"},
        {"fwd:f32:b2:h2:s4:d8:varlenkv=8", S_INT, AT(cu_seqlens_kv), 0, -1, "cu_seqlens_kv"},
        {"fwd:f32:b2:h2:s4:d8:varlenkv=8", S_INT, AT(cu_seqlens_kv), 2, 9, "cu_seqlens_kv"},
        {"fwd:f32:b2:h2:s4:d8:varlenkv=8", S_INT, AT(cu_seqlens_kv), 1, 5, "cu_seqlens_kv"},
        {"fwd:f32:b2:h2:s4:d8:lens", S_INT, AT(kv_lengths), 0, -1, "kv_lengths"},
        {"fwd:f32:b2:h2:s4:d8:lens", S_INT, AT(kv_lengths), 1, 5, "kv_lengths"},
        {"fwd:f32:b2:h2:s4:d8:lens", S_INT, AT(kv_lengths), 1, 2147483647.0, "kv_lengths"},
        {"fwd:f32:b2:h2:s4:d8:lens:varlenkv=8", S_INT, AT(kv_lengths), 1, 5, "kv_lengths"},
        {"fwd:f32:b2:h2:s4:d8:page=2,8", S_INT, AT(page_table), 0, -1, "page_table"},
        {"fwd:f32:b2:h2:s4:d8:page=2,8", S_INT, AT(page_table), 3, 8, "page_table"},
        {"fwd:f32:b2:h2:s4:d8:page=2,8", S_INT, AT(page_table), 2, 2147483647.0, "page_table"},
        {"fwd:f32:b2:h2:s4:d8:alibi", S_FLOAT, AT(alibi_slopes), 1, NAN, "alibi_slopes"},
        {"fwd:f32:b2:h2:s4:d8:alibi", S_FLOAT, AT(alibi_slopes), 1, INFINITY, "alibi_slopes"},
        {"fwd:f32:b2:h2:s4:d8:alibi", S_FLOAT, AT(alibi_slopes), 0, -INFINITY, "alibi_slopes"},
        {"fwd:f32:b2:h2:s4:d8:sink", S_FLOAT, AT(sinks), 0, NAN, "sinks"},
        {"fwd:f32:b2:h2:s4:d8:sink", S_FLOAT, AT(sinks), 1, INFINITY, "sinks"},
#undef AT
    };
    attest_context *context = drive_context(2);
    static const int32_t four[] = {4, 4};
    for (size_t n = 0; n < sizeof table / sizeof *table; n++) {
        if (!tap_case("%zu", n))
            continue;
        attest_problem p;
        struct instance in;
        struct instance_options options = {.rows = four, .keys = four};
        attest_plan *plan = NULL;
        char why[512] = "";
        good_problem(&p, table[n].line);
        if (!instance_create(&in, &p, 1, &options))
            continue;
        tap_check(attest_plan_create(context, &p, NULL, &plan) == ATTEST_OK, "no plan: %s", attest_context_detail(context));
        size_t size = attest_plan_workspace_size(plan);
        void *workspace = aligned_alloc(64, (size + 127) / 64 * 64);
        tap_check(attest_run(context, plan, &in.tensors, workspace, size, NULL) == ATTEST_OK, "%s: good data is refused: %s",
                  table[n].line, attest_context_detail(context));
        spoil(&in, table[n].what, table[n].pointer, table[n].index, table[n].value);
        instance_poison(&in);
        attest_status status = attest_run(context, plan, &in.tensors, workspace, size, NULL);
        tap_check(status == ATTEST_ERROR_ARGUMENT, "%s, %s: run says %s", table[n].line, table[n].part, attest_status_name(status));
        tap_check(strstr(attest_context_detail(context), table[n].part) != NULL, "%s: '%s' is not in the sentence: %s",
                  table[n].line, table[n].part, attest_context_detail(context));
        tap_check(attest_forward(&p, &in.tensors, why, sizeof why) == ATTEST_ERROR_ARGUMENT && strstr(why, table[n].part),
                  "forward: %s", why);
        tap_check(instance_no_write(&in), "%s, %s: an output was written", table[n].line, table[n].part);
        free(workspace);
        attest_plan_destroy(plan);
        instance_destroy(&in);
    }
    attest_context_destroy(context);
}

/* Outputs that share one element with an input at its far end overlap, neighbours that touch do not. */
static void overlap_at_the_edge(void)
{
    attest_problem p;
    good_problem(&p, "fwd:f32:b1:h1:s4:d8");
    float *block = calloc(400, sizeof *block);
    char why[256] = "";
    attest_tensors t = {.size = sizeof t, .q = block, .k = block + 32, .v = block + 64};
    t.o = block + 96;
    tap_check(attest_forward(&p, &t, why, sizeof why) == ATTEST_OK, "neighbours: %s", why);
    t.o = block + 95;
    tap_check(attest_forward(&p, &t, why, sizeof why) == ATTEST_ERROR_ARGUMENT && strstr(why, "overlap"), "one element: %s", why);
    t.q = block + 200;
    t.o = block + 200 + 31;
    tap_check(attest_forward(&p, &t, why, sizeof why) == ATTEST_ERROR_ARGUMENT && strstr(why, "overlap"), "one element of Q: %s",
              why);
    t.o = block + 200 + 32;
    tap_check(attest_forward(&p, &t, why, sizeof why) == ATTEST_OK, "next to Q: %s", why);
    p.stride_o[2] = -8;
    t.o = block + 200 + 32 + 24;
    tap_check(attest_forward(&p, &t, why, sizeof why) == ATTEST_OK, "reversed, next to Q: %s", why);
    t.o = block + 200 + 32 + 23;
    tap_check(attest_forward(&p, &t, why, sizeof why) == ATTEST_ERROR_ARGUMENT && strstr(why, "overlap"), "reversed: %s", why);
    p.stride_o[2] = 8;
    t.k = t.v = t.q;
    t.o = block;
    tap_check(attest_forward(&p, &t, why, sizeof why) == ATTEST_OK, "inputs may be the same: %s", why);
    free(block);
}

/* Pointers of empty tensors may be NULL, and nothing is computed. */
static void empty_tensors(void)
{
    static const char *const lines[] = {"fwd:f32:b0:h2:s4:d8:lse:bias", "fwd:f16:b2:h2:sq0:skv4:d8:lse",
                                        "fwd:bf16:b0:h1:sq0:skv0:d1"};
    for (size_t n = 0; n < sizeof lines / sizeof *lines; n++) {
        attest_problem p;
        char why[256] = "";
        static uint16_t kv[2 * 2 * 4 * 8];
        good_problem(&p, lines[n]);
        attest_tensors t = {.size = sizeof t, .k = p.batch ? kv : NULL, .v = p.batch ? kv : NULL};
        tap_check(attest_forward(&p, &t, why, sizeof why) == ATTEST_OK, "%s: %s", lines[n], why);
    }
    /* No keys: every row is empty, which is 0 and -inf. */
    attest_problem p;
    char why[256] = "";
    good_problem(&p, "fwd:f32:b1:h2:sq3:skv0:d4:lse");
    float q[24] = {0}, o[24], lse[6];
    memset(o, 0xFF, sizeof o);
    attest_tensors t = {.size = sizeof t, .q = q, .o = o, .lse = lse};
    tap_check(attest_forward(&p, &t, why, sizeof why) == ATTEST_OK, "no keys: %s", why);
    for (int n = 0; n < 24; n++)
        tap_check(o[n] == 0, "O[%d] of a row without keys is %g", n, (double)o[n]);
    for (int n = 0; n < 6; n++)
        tap_check(lse[n] == -INFINITY, "LSE[%d] of a row without keys is %g", n, (double)lse[n]);
}

/* -------------------------------------------------------------------------------------------------- plans, workspace, context --
 */

static void workspaces(void)
{
    static const char *const lines[] = {"fwd:f32:b2:hq8:hkv2:sq70:skv300:d64:lse", "fwd:f16:b1:h2:sq1:skv5000:d64",
                                        "fwd:bf16:b1:h2:sq33:skv65:d40:dv72"};
    attest_context *context = drive_context(3);
    for (size_t n = 0; n < sizeof lines / sizeof *lines; n++) {
        attest_problem p;
        struct instance in;
        attest_kernel_info info = {0};
        good_problem(&p, lines[n]);
        if (!instance_create(&in, &p, 1, NULL))
            continue;
        for (int k = 0; (k = drive_next(context, &p, k, &info)) >= 0; k++) {
            attest_plan *plan = NULL;
            if (!tap_check(attest_plan_create(context, &p, info.name, &plan) == ATTEST_OK, "no plan for %s", info.name))
                continue;
            size_t size = attest_plan_workspace_size(plan);
            unsigned char *workspace = aligned_alloc(64, (size + 191) / 64 * 64);
            instance_poison(&in);
            if (size) {
                tap_check(attest_run(context, plan, &in.tensors, NULL, size, NULL) == ATTEST_ERROR_WORKSPACE, "%s: NULL",
                          info.name);
                tap_check(attest_run(context, plan, &in.tensors, NULL, 0, NULL) == ATTEST_ERROR_WORKSPACE, "%s: nothing",
                          info.name);
                tap_check(attest_run(context, plan, &in.tensors, workspace, size - 1, NULL) == ATTEST_ERROR_WORKSPACE,
                          "%s: a byte short", info.name);
                tap_check(strstr(attest_context_detail(context), "workspace") != NULL, "%s: %s", info.name,
                          attest_context_detail(context));
                for (size_t off = 1; off < 64; off *= 2)
                    tap_check(attest_run(context, plan, &in.tensors, workspace + off, size, NULL) == ATTEST_ERROR_WORKSPACE,
                              "%s: %zu bytes off the alignment", info.name, off);
            }
            tap_check(instance_no_write(&in), "%s: an output was written", info.name);
            tap_check(attest_run(context, plan, &in.tensors, workspace, size + 64, NULL) == ATTEST_OK, "%s: a larger workspace: %s",
                      info.name, attest_context_detail(context));
            tap_check(attest_context_detail(context)[0] == '\0', "a sentence after success: %s", attest_context_detail(context));
            int stream = 0;
            tap_check(attest_run(context, plan, &in.tensors, workspace, size, &stream) == ATTEST_ERROR_ARGUMENT &&
                          strstr(attest_context_detail(context), "stream"),
                      "%s: a stream on the CPU", info.name);
            tap_check(attest_run(NULL, plan, &in.tensors, workspace, size, NULL) == ATTEST_ERROR_ARGUMENT, "no context");
            tap_check(attest_run(context, NULL, &in.tensors, workspace, size, NULL) == ATTEST_ERROR_ARGUMENT, "no plan");
            tap_check(attest_run(context, plan, NULL, workspace, size, NULL) == ATTEST_ERROR_ARGUMENT, "no tensors");
            free(workspace);
            attest_plan_destroy(plan);
        }
        instance_destroy(&in);
    }
    attest_context_destroy(context);
}

/* Twice the keys or rows need at most about twice the workspace. */
static void workspace_is_linear(void)
{
    attest_context *context = drive_context(4);
    for (size_t k = 0; k < attest_kernel_count(); k++) {
        attest_kernel_info info = {.size = sizeof info};
        attest_kernel_get(k, &info);
        size_t sizes[2][2] = {{0}};
        for (int shape = 0; shape < 2; shape++)
            for (int twice = 0; twice < 2; twice++) {
                attest_problem p;
                int64_t keys = 16384 * (1 + twice);
                attest_problem_init(&p,
                                    strstr(info.name, "bf16")  ? ATTEST_BF16
                                    : strstr(info.name, "f16") ? ATTEST_F16
                                                               : ATTEST_F32,
                                    1, 8, 2, shape ? 1 : keys, keys, 64);
                attest_plan *plan = NULL;
                if (attest_plan_create(context, &p, info.name, &plan) == ATTEST_OK)
                    sizes[shape][twice] = attest_plan_workspace_size(plan);
                attest_plan_destroy(plan);
            }
        for (int shape = 0; shape < 2; shape++)
            tap_check(sizes[shape][1] <= 2 * sizes[shape][0] + 4096, "%s: %zu bytes grow to %zu", info.name, sizes[shape][0],
                      sizes[shape][1]);
    }
    attest_context_destroy(context);
}

static void plans(void)
{
    attest_context *context = drive_context(2);
    attest_problem p;
    attest_plan *plan = NULL;
    good_problem(&p, "fwd:f32:h2:s4:d8");
    static const struct {
        const char *kernel;
        attest_status status;
        const char *part;
    } table[] = {
        {"no_such_kernel", ATTEST_ERROR_ARGUMENT, "no_such_kernel"},
        {"", ATTEST_ERROR_ARGUMENT, "kernel"},
        {"cpu_fwd_f32", ATTEST_ERROR_ARGUMENT, "cpu_fwd_f32"},
        {"x*", ATTEST_ERROR_ARGUMENT, "x*"},
    };
    for (size_t n = 0; n < sizeof table / sizeof *table; n++) {
        attest_plan *none = (attest_plan *)(uintptr_t)64;
        attest_status status = attest_plan_create(context, &p, table[n].kernel, &none);
        tap_check(status == table[n].status, "'%s': %s", table[n].kernel, attest_status_name(status));
        tap_check(none == NULL, "'%s': a plan came with the error", table[n].kernel);
        tap_check(strstr(attest_context_detail(context), table[n].part) != NULL, "'%s': %s", table[n].kernel,
                  attest_context_detail(context));
    }
    tap_check(attest_plan_create(NULL, &p, NULL, &plan) == ATTEST_ERROR_ARGUMENT, "no context");
    tap_check(attest_plan_create(context, NULL, NULL, &plan) == ATTEST_ERROR_ARGUMENT &&
                  strstr(attest_context_detail(context), "problem"),
              "no problem: %s", attest_context_detail(context));
    tap_check(attest_plan_create(context, &p, NULL, NULL) == ATTEST_ERROR_ARGUMENT &&
                  strstr(attest_context_detail(context), "plan"),
              "no plan: %s", attest_context_detail(context));
    attest_plan_destroy(NULL);
    attest_context_destroy(NULL);
    tap_check(attest_plan_create(context, &p, "*", &plan) == ATTEST_OK, "*: %s", attest_context_detail(context));
    tap_check(attest_context_detail(context)[0] == '\0', "a sentence after success");
    attest_plan_destroy(plan);
    tap_check(attest_plan_kernel(NULL) == NULL || attest_plan_kernel(NULL)[0] == '\0', "the kernel of no plan");
    tap_check(attest_plan_workspace_size(NULL) == 0, "the workspace of no plan");
    attest_context_destroy(context);
}

static void contexts(void)
{
    tap_check(attest_context_create(NULL) == ATTEST_ERROR_ARGUMENT, "create into NULL");
    attest_context *context = drive_context(2);
    static const int bad[] = {0, -1, 1025, 100000, INT_MAX, INT_MIN};
    for (size_t n = 0; n < sizeof bad / sizeof *bad; n++) {
        tap_check(attest_context_set_threads(context, bad[n]) == ATTEST_ERROR_ARGUMENT, "%d threads", bad[n]);
        tap_check(strstr(attest_context_detail(context), "threads") != NULL, "%d threads: %s", bad[n],
                  attest_context_detail(context));
        tap_check(attest_context_threads(context) == 2, "%d threads changed the count", bad[n]);
    }
    tap_check(attest_context_set_threads(context, 1024) == ATTEST_OK && attest_context_threads(context) == 1024, "1024 threads");
    tap_check(attest_context_set_threads(NULL, 1) == ATTEST_ERROR_ARGUMENT, "threads of no context");
    tap_check(attest_context_threads(NULL) == 0, "threads of no context");

    char before[128];
    snprintf(before, sizeof before, "%s", attest_context_features(context));
    static const char *const unknown[] = {
        "avx3",    "sse", "avx2,bogus",  "AVX2",
        "avx512x", "avx", "avx2;avx512", "a very long name that is no feature of anything at all, is it"};
    for (size_t n = 0; n < sizeof unknown / sizeof *unknown; n++) {
        tap_check(attest_context_disable(context, unknown[n]) == ATTEST_ERROR_ARGUMENT, "disable '%s'", unknown[n]);
        tap_check(strstr(attest_context_detail(context), "feature") != NULL, "disable '%s': %s", unknown[n],
                  attest_context_detail(context));
        tap_check(!strcmp(before, attest_context_features(context)), "disable '%s' disabled something", unknown[n]);
    }
    tap_check(attest_context_disable(context, NULL) == ATTEST_ERROR_ARGUMENT && attest_context_detail(context)[0], "disable NULL");
    tap_check(attest_context_disable(NULL, "avx2") == ATTEST_ERROR_ARGUMENT, "disable without a context");
    tap_check(attest_context_disable(context, "") == ATTEST_OK && !strcmp(before, attest_context_features(context)),
              "disable nothing");
    tap_check(attest_context_disable(context, "avx2") == ATTEST_OK && attest_context_features(context)[0] == '\0',
              "avx2 takes all: '%s' is left", attest_context_features(context));
    tap_check(attest_context_disable(context, "avx2,avx512,avx512bf16,amx") == ATTEST_OK, "disable what is disabled");
    attest_context_destroy(context);

    setenv("ATTEST_DISABLE", "bogus", 1);
    context = NULL;
    attest_status status = attest_context_create(&context);
    tap_check(status == ATTEST_ERROR_ARGUMENT, "ATTEST_DISABLE=bogus: %s", attest_status_name(status));
    tap_check(!context || strstr(attest_context_detail(context), "bogus"), "ATTEST_DISABLE=bogus: %s",
              attest_context_detail(context));
    attest_context_destroy(context);
    attest_problem p;
    char why[256] = "";
    float x[4] = {0}, o[4];
    attest_problem_init(&p, ATTEST_F32, 1, 1, 1, 1, 1, 4);
    attest_tensors t = {.size = sizeof t, .q = x, .k = x, .v = x, .o = o};
    tap_check(attest_forward(&p, &t, why, sizeof why) == ATTEST_ERROR_ARGUMENT && strstr(why, "bogus"), "forward with it: %s", why);
    unsetenv("ATTEST_DISABLE");
    tap_check(attest_context_detail(NULL) != NULL && attest_context_features(NULL) != NULL, "texts of no context");
}

static void references(void)
{
    attest_context *context = drive_context(1);
    attest_problem p;
    struct instance in;
    double o[64], lse[8];
    good_problem(&p, "fwd:f32:b1:h2:s4:d8");
    if (!instance_create(&in, &p, 1, NULL))
        return;
    const struct {
        const char *what;
        attest_status status;
    } table[] = {
        {"no context", attest_reference(NULL, &p, &in.tensors, ATTEST_EXACT, 0, 8, o, lse)},
        {"no problem", attest_reference(context, NULL, &in.tensors, ATTEST_EXACT, 0, 8, o, lse)},
        {"no tensors", attest_reference(context, &p, NULL, ATTEST_EXACT, 0, 8, o, lse)},
        {"no output", attest_reference(context, &p, &in.tensors, ATTEST_EXACT, 0, 8, NULL, lse)},
        {"precision 2", attest_reference(context, &p, &in.tensors, (attest_precision)2, 0, 8, o, lse)},
        {"rows from -1", attest_reference(context, &p, &in.tensors, ATTEST_EXACT, -1, 8, o, lse)},
        {"rows to 9", attest_reference(context, &p, &in.tensors, ATTEST_EXACT, 0, 9, o, lse)},
        {"rows 3 to 2", attest_reference(context, &p, &in.tensors, ATTEST_EXACT, 3, 2, o, lse)},
    };
    for (size_t n = 0; n < sizeof table / sizeof *table; n++)
        tap_check(table[n].status == ATTEST_ERROR_ARGUMENT, "%s: %s", table[n].what, attest_status_name(table[n].status));
    for (int n = 0; n < 64; n++)
        o[n] = 77;
    tap_check(attest_reference(context, &p, &in.tensors, ATTEST_EXACT, 2, 5, o, NULL) == ATTEST_OK, "three rows");
    for (int n = 0; n < 64; n++)
        tap_check((o[n] == 77) == (n < 2 * 8 || n >= 5 * 8), "element %d is %g", n, o[n]);
    attest_tensors without = in.tensors;
    without.o = NULL;
    tap_check(attest_reference(context, &p, &without, ATTEST_EXACT, 0, 8, o, lse) == ATTEST_OK, "tensors.o is not needed: %s",
              attest_context_detail(context));
    instance_destroy(&in);
    attest_context_destroy(context);
}

static void statuses(void)
{
    static const char *const names[] = {"ok",        "argument", "parse",    "unsupported", "unavailable",
                                        "workspace", "memory",   "internal", "device"};
    for (int n = 0; n < 9; n++)
        tap_check(!strcmp(attest_status_name((attest_status)n), names[n]), "status %d is '%s'", n,
                  attest_status_name((attest_status)n));
    tap_check(!strcmp(attest_status_name((attest_status)9), "unknown") && !strcmp(attest_status_name((attest_status)-1), "unknown"),
              "other numbers are unknown");
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", ATTEST_VERSION_MAJOR, ATTEST_VERSION_MINOR, ATTEST_VERSION_PATCH);
    tap_check(!strcmp(attest_version(), version), "version is %s", attest_version());
    const char *id = attest_build_id();
    tap_check(strlen(id) == 12 && strspn(id, "0123456789abcdef") == 12, "build id is %s", id);
    tap_check(attest_forward(NULL, NULL, NULL, 0) == ATTEST_ERROR_ARGUMENT, "forward of nothing");
    attest_problem_init(NULL, ATTEST_F32, 1, 1, 1, 1, 1, 1);
    attest_problem_pack(NULL);
    tap_check(attest_problem_check(NULL, NULL, 0) == ATTEST_ERROR_ARGUMENT, "check of nothing");
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"statuses", statuses},
        {"problems", bad_problems},
        {"unknown flags", unknown_flags},
        {"odd strides", odd_strides_accepted},
        {"size tags", size_tags},
        {"tensors", bad_tensors},
        {"overlap at the edge", overlap_at_the_edge},
        {"empty tensors", empty_tensors},
        {"workspaces", workspaces},
        {"workspace is linear", workspace_is_linear},
        {"plans", plans},
        {"contexts", contexts},
        {"references", references},
    };
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
