/*
 * What the library says of operations and tensors, against facts that are written down here again: names, places, roles and flags,
 * shapes and strides of problems that were worked out by hand, the bytes of drawn ones by brute force, and a run on memory that has no
 * more than those bytes.
 */
#include "gen.h"
#include "drive.h"
#include "tap.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TENSORS = (sizeof(attest_tensors) - sizeof(uint64_t)) / sizeof(void *) };
enum { IN = ATTEST_ROLE_INPUT, OUT = ATTEST_ROLE_OUTPUT };

/* Every tensor, from the text of attest.h. */
static const struct {
    const char *name;
    size_t offset;
    uint64_t flag;
    uint32_t role;
    size_t stride_offset;
    uint32_t stride_count;
} facts[] = {
#define AT(name)     offsetof(attest_tensors, name)
#define STRIDE(name) offsetof(attest_problem, name)
    {"q", AT(q), 0, IN, STRIDE(stride_q), 3},
    {"k", AT(k), 0, IN, STRIDE(stride_k), 3},
    {"v", AT(v), 0, IN, STRIDE(stride_v), 3},
    {"o", AT(o), 0, OUT, STRIDE(stride_o), 3},
    {"lse", AT(lse), ATTEST_LSE, OUT, STRIDE(stride_lse), 3},
    {"bias", AT(bias), ATTEST_BIAS, IN, STRIDE(stride_bias), 4},
    {"alibi_slopes", AT(alibi_slopes), ATTEST_ALIBI, IN, STRIDE(stride_alibi_slopes), 1},
    {"sinks", AT(sinks), ATTEST_SINK, IN, 0, 0},
    {"cu_seqlens_q", AT(cu_seqlens_q), ATTEST_VARLEN_Q, IN, 0, 0},
    {"cu_seqlens_kv", AT(cu_seqlens_kv), ATTEST_VARLEN_KV, IN, 0, 0},
    {"kv_lengths", AT(kv_lengths), ATTEST_KV_LENGTHS, IN, 0, 0},
    {"page_table", AT(page_table), ATTEST_PAGED, IN, STRIDE(stride_page_table), 1},
    {"mask", AT(mask), ATTEST_MASK, IN, STRIDE(stride_mask), 4},
    {"row_offsets", AT(row_offsets), ATTEST_ROW_OFFSETS, IN, 0, 0},
    {"kv_starts", AT(kv_starts), ATTEST_KV_STARTS, IN, 0, 0},
    {"q_lengths", AT(q_lengths), ATTEST_Q_LENGTHS, IN, 0, 0},
#undef STRIDE
#undef AT
};
enum { FACTS = sizeof facts / sizeof *facts };

static bool get(const attest_problem *p, size_t index, attest_tensor_info *info)
{
    memset(info, 0, sizeof *info);
    info->size = sizeof *info;
    return tap_check(attest_tensor_get(p, index, info) == ATTEST_OK, "there is no tensor %zu", index);
}

static bool parse(const char *line, attest_problem *p)
{
    char why[256] = "";
    return tap_check(attest_problem_parse(line, p, why, sizeof why) == ATTEST_OK, "%s: %s", line, why);
}

/* The index of a tensor by its name; -1 and a failure if there is none. */
static int find(const attest_problem *p, const char *name, attest_tensor_info *info)
{
    for (size_t i = 0; i < attest_tensor_count(); i++)
        if (get(p, i, info) && !strcmp(info->name, name))
            return (int)i;
    tap_check(false, "no tensor is called %s", name);
    return -1;
}

/* ---------------------------------------------------------------------------------------------------------------- rows -- */

/* Every pointer of attest_tensors belongs to exactly one row. */
static void every_pointer(void)
{
    attest_problem p;
    if (!parse("fwd:f32:h2:s4:d8", &p))
        return;
    tap_check(attest_tensor_count() == TENSORS, "%zu rows for %d pointers", attest_tensor_count(), TENSORS);
    tap_check((int)FACTS == (int)TENSORS, "this test knows %d of %d pointers", FACTS, TENSORS);
    int seen[TENSORS] = {0};
    for (size_t i = 0; i < attest_tensor_count(); i++) {
        attest_tensor_info info;
        if (!get(&p, i, &info))
            continue;
        size_t slot = (info.offset - sizeof(uint64_t)) / sizeof(void *);
        tap_check(slot == i && info.offset == sizeof(uint64_t) + slot * sizeof(void *), "%s is tensor %zu and at %" PRIu64,
                  info.name, i, info.offset);
        if (slot < TENSORS)
            seen[slot]++;
        if (i < FACTS)
            tap_check(!strcmp(info.name, facts[i].name) && info.offset == facts[i].offset && info.flag == facts[i].flag &&
                          info.role == facts[i].role && info.stride_offset == facts[i].stride_offset &&
                          info.stride_count == facts[i].stride_count,
                      "%s is not as attest.h has it", info.name);
    }
    for (int i = 0; i < TENSORS; i++)
        tap_check(seen[i] == 1, "%d rows name pointer %d", seen[i], i);
}

/* A tensor is there if its flag is set, and if it is not all that says how is 0. */
static void presence(void)
{
    for (int n = 0; n < tap_amount(50, 500, 5000); n++) {
        struct rng rng = {tap.seed * 0x2545F491 + (uint64_t)n};
        attest_problem p;
        gen_problem(&rng, &p, gen_flags(&rng), 1e5, true);
        for (size_t i = 0; i < FACTS; i++) {
            attest_tensor_info info, none;
            if (!get(&p, i, &info))
                continue;
            bool want = !facts[i].flag || p.flags & facts[i].flag;
            tap_check(info.present == want, "%s is %s with flags 0x%" PRIx64, info.name, want ? "absent" : "present", p.flags);
            none = info;
            none.dtype = none.element_size = none.rank = 0;
            none.first_byte = none.bytes = 0;
            memset(none.shape, 0, sizeof none.shape);
            memset(none.stride, 0, sizeof none.stride);
            memset(none.axes, 0, sizeof none.axes);
            tap_check(want || !memcmp(&info, &none, sizeof info), "%s is absent, and not all zeros", info.name);
            tap_check(!want || (info.rank >= 1 && info.rank <= 4 && info.element_size && info.axes[0]), "%s has no shape",
                      info.name);
        }
    }
}

/* -------------------------------------------------------------------------------------------------------------- shapes -- */

/* Worked out by hand from attest.h: "type [axes] = [shape] by [strides], bytes from the first one". */
static void by_hand(void)
{
    static const struct {
        const char *line, *tensor, *want;
    } table[] = {
        {"fwd:f16:b2:hq4:hkv2:sq3:skv5:d8:dv6", "q",
         "f16 [batch, heads_q, seq_q, dim] = [2, 4, 3, 8] by [96, 24, 8, 1], 384 bytes from 0"},
        {"fwd:f16:b2:hq4:hkv2:sq3:skv5:d8:dv6", "k",
         "f16 [batch, heads_kv, seq_kv, dim] = [2, 2, 5, 8] by [80, 40, 8, 1], 320 bytes from 0"},
        {"fwd:f16:b2:hq4:hkv2:sq3:skv5:d8:dv6", "v",
         "f16 [batch, heads_kv, seq_kv, dim_v] = [2, 2, 5, 6] by [60, 30, 6, 1], 240 bytes from 0"},
        {"fwd:f16:b2:hq4:hkv2:sq3:skv5:d8:dv6", "o",
         "f16 [batch, heads_q, seq_q, dim_v] = [2, 4, 3, 6] by [72, 18, 6, 1], 288 bytes from 0"},
        {"fwd:f16:b2:hq4:hkv2:sq3:skv5:d8:dv6:o=f32", "o",
         "f32 [batch, heads_q, seq_q, dim_v] = [2, 4, 3, 6] by [72, 18, 6, 1], 576 bytes from 0"},
        {"fwd:f16:b2:hq4:hkv2:sq3:skv5:d8:lse", "lse", "f32 [batch, heads_q, seq_q] = [2, 4, 3] by [12, 3, 1], 96 bytes from 0"},
        {"fwd:f16:b2:hq4:hkv2:sq3:skv5:d8:bias", "bias",
         "f16 [batch, heads_q, seq_q, seq_kv] = [2, 4, 3, 5] by [60, 15, 5, 1], 240 bytes from 0"},
        {"fwd:f16:b2:hq4:hkv2:sq3:skv5:d8:bias=f32:bs=0,0,5,1", "bias",
         "f32 [batch, heads_q, seq_q, seq_kv] = [2, 4, 3, 5] by [0, 0, 5, 1], 60 bytes from 0"},
        {"fwd:bf16:b2:hq4:hkv2:sq3:skv5:d8:alibi", "alibi_slopes", "f32 [batch, heads_q] = [2, 4] by [0, 1], 16 bytes from 0"},
        {"fwd:bf16:b2:hq4:hkv2:sq3:skv5:d8:alibi:as=-6", "alibi_slopes",
         "f32 [batch, heads_q] = [2, 4] by [-6, 1], 40 bytes from -24"},
        {"fwd:f16:b2:hq4:hkv2:sq3:skv5:d8:mask", "mask",
         "u8 [batch, heads_q, seq_q, seq_kv] = [2, 4, 3, 5] by [60, 15, 5, 1], 120 bytes from 0"},
        {"fwd:f16:b2:hq4:hkv2:sq3:skv5:d8:mask:ms=0,0,-5,1", "mask",
         "u8 [batch, heads_q, seq_q, seq_kv] = [2, 4, 3, 5] by [0, 0, -5, 1], 15 bytes from -10"},
        {"fwd:f16:b2:hq4:hkv2:sq3:skv5:d8:offsets:starts:qlens", "kv_starts", "i32 [batch] = [2] by [1], 8 bytes from 0"},
        {"fwd:bf16:b2:hq4:hkv2:sq3:skv5:d8:sink", "sinks", "f32 [heads_q] = [4] by [1], 16 bytes from 0"},
        {"fwd:bf16:b2:hq4:hkv2:sq3:skv5:d8:lens", "kv_lengths", "i32 [batch] = [2] by [1], 8 bytes from 0"},
        /* Packed: rows lie outside of heads, and there is no axis for sequences; LSE keeps its heads outside. */
        {"fwd:f32:b2:hq4:hkv2:sq3:skv5:d8:varlenq=6:varlenkv=9:lse", "q",
         "f32 [total_q, heads_q, dim] = [6, 4, 8] by [32, 8, 1], 768 bytes from 0"},
        {"fwd:f32:b2:hq4:hkv2:sq3:skv5:d8:varlenq=6:varlenkv=9:lse", "k",
         "f32 [total_kv, heads_kv, dim] = [9, 2, 8] by [16, 8, 1], 576 bytes from 0"},
        {"fwd:f32:b2:hq4:hkv2:sq3:skv5:d8:varlenq=6:varlenkv=9:lse", "lse",
         "f32 [heads_q, total_q] = [4, 6] by [6, 1], 96 bytes from 0"},
        {"fwd:f32:b2:hq4:hkv2:sq3:skv5:d8:varlenq=6:varlenkv=9:lse", "cu_seqlens_q",
         "i32 [batch + 1] = [3] by [1], 12 bytes from 0"},
        {"fwd:f32:b2:hq4:hkv2:sq3:skv5:d8:varlenq=6:varlenkv=9:lse", "cu_seqlens_kv",
         "i32 [batch + 1] = [3] by [1], 12 bytes from 0"},
        {"fwd:f32:b2:hq4:hkv2:sq3:skv5:d8:varlenq=6:bias", "bias",
         "f32 [batch, heads_q, seq_q, seq_kv] = [2, 4, 3, 5] by [60, 15, 5, 1], 480 bytes from 0"},
        {"fwd:f32:b2:hq4:hkv2:sq3:skv5:d8:varlenq=6", "v",
         "f32 [batch, heads_kv, seq_kv, dim_v] = [2, 2, 5, 8] by [80, 40, 8, 1], 640 bytes from 0"},
        /* Paged: five keys are two pages of four. */
        {"fwd:f32:b2:hq4:hkv2:sq3:skv5:d8:page=4,7", "k",
         "f32 [page_count, page_size, heads_kv, dim] = [7, 4, 2, 8] by [64, 16, 8, 1], 1792 bytes from 0"},
        {"fwd:f32:b2:hq4:hkv2:sq3:skv5:d8:page=4,7", "page_table",
         "i32 [batch, seq_kv / page_size] = [2, 2] by [2, 1], 16 bytes from 0"},
        {"fwd:f32:b2:hq4:hkv2:sq3:skv5:d8:page=4,7:pts=9", "page_table",
         "i32 [batch, seq_kv / page_size] = [2, 2] by [9, 1], 44 bytes from 0"},
        {"fwd:f32:b2:hq4:hkv2:sq3:skv5:d8:page=4,7", "q",
         "f32 [batch, heads_q, seq_q, dim] = [2, 4, 3, 8] by [96, 24, 8, 1], 768 bytes from 0"},
        /* The axes keep their order, whatever the strides are. */
        {"fwd:f32:b2:hq4:hkv2:sq3:skv5:d8:layout=bshd", "q",
         "f32 [batch, heads_q, seq_q, dim] = [2, 4, 3, 8] by [96, 8, 32, 1], 768 bytes from 0"},
        /* Negative strides reach before the pointer, strides of 0 reach nowhere, gaps count but for those behind the end. */
        {"fwd:f16:b2:hq4:hkv2:sq3:skv5:d8:qs=-100,-24,8", "q",
         "f16 [batch, heads_q, seq_q, dim] = [2, 4, 3, 8] by [-100, -24, 8, 1], 392 bytes from -344"},
        {"fwd:f16:b2:hq4:hkv2:sq3:skv5:d8:ks=0,0,-8", "k",
         "f16 [batch, heads_kv, seq_kv, dim] = [2, 2, 5, 8] by [0, 0, -8, 1], 80 bytes from -64"},
        {"fwd:f16:b2:hq4:hkv2:sq3:skv5:d8:ks=0,0,0", "k",
         "f16 [batch, heads_kv, seq_kv, dim] = [2, 2, 5, 8] by [0, 0, 0, 1], 16 bytes from 0"},
        {"fwd:f32:b2:hq4:hkv2:sq3:skv5:d8:vs=1000,100,20", "v",
         "f32 [batch, heads_kv, seq_kv, dim_v] = [2, 2, 5, 8] by [1000, 100, 20, 1], 4752 bytes from 0"},
        {"fwd:f32:b2:hq4:hkv2:sq3:skv5:d8:bias:bs=0,0,-5,-1", "bias",
         "f32 [batch, heads_q, seq_q, seq_kv] = [2, 4, 3, 5] by [0, 0, -5, -1], 60 bytes from -56"},
        {"fwd:f32:b2:hq4:hkv2:sq3:skv5:d8:lse:ls=-12,3,1", "lse",
         "f32 [batch, heads_q, seq_q] = [2, 4, 3] by [-12, 3, 1], 96 bytes from -48"},
        /* Empty tensors are present, and cover nothing. */
        {"fwd:f32:b0:hq4:hkv2:sq3:skv5:d8:lens", "q",
         "f32 [batch, heads_q, seq_q, dim] = [0, 4, 3, 8] by [96, 24, 8, 1], 0 bytes from 0"},
        {"fwd:f32:b0:hq4:hkv2:sq3:skv5:d8:lens", "kv_lengths", "i32 [batch] = [0] by [1], 0 bytes from 0"},
        {"fwd:f32:b0:hq4:hkv2:sq3:skv5:d8:varlenq=0", "cu_seqlens_q", "i32 [batch + 1] = [1] by [1], 4 bytes from 0"},
        {"fwd:f32:b2:hq4:hkv2:sq3:skv0:d8", "v",
         "f32 [batch, heads_kv, seq_kv, dim_v] = [2, 2, 0, 8] by [0, 0, 8, 1], 0 bytes from 0"},
        {"fwd:f32:b2:hq4:hkv2:sq3:skv0:d8:page=4,7", "page_table",
         "i32 [batch, seq_kv / page_size] = [2, 0] by [0, 1], 0 bytes from 0"},
    };
    for (size_t n = 0; n < sizeof table / sizeof *table; n++) {
        attest_problem p;
        attest_tensor_info info;
        if (!parse(table[n].line, &p) || find(&p, table[n].tensor, &info) < 0)
            continue;
        char got[256];
        const char *type = info.dtype == ATTEST_I32 ? "i32" : info.dtype == ATTEST_U8 ? "u8" : type_name(info.dtype);
        int used = snprintf(got, sizeof got, "%s [%s] = [", type, info.axes);
        for (uint32_t i = 0; i < info.rank; i++)
            used += snprintf(got + used, sizeof got - (size_t)used, "%s%" PRId64, i ? ", " : "", info.shape[i]);
        used += snprintf(got + used, sizeof got - (size_t)used, "] by [");
        for (uint32_t i = 0; i < info.rank; i++)
            used += snprintf(got + used, sizeof got - (size_t)used, "%s%" PRId64, i ? ", " : "", info.stride[i]);
        snprintf(got + used, sizeof got - (size_t)used, "], %" PRId64 " bytes from %" PRId64, info.bytes, info.first_byte);
        tap_check(!strcmp(got, table[n].want), "%s of %s is %s, not %s", table[n].tensor, table[n].line, got, table[n].want);
        tap_check(info.present == 1 && info.element_size == (strstr(type, "32")   ? 4
                                                             : strstr(type, "16") ? 2
                                                                                  : 1),
                  "%s of %s has elements of %u bytes", table[n].tensor, table[n].line, info.element_size);
        for (uint32_t i = info.rank; i < 4; i++)
            tap_check(!info.shape[i] && !info.stride[i], "%s of %s has more axes than its rank", table[n].tensor, table[n].line);
    }
}

/* The first and last byte that some element has, by visiting all of them. */
static void brute_force(const attest_tensor_info *info, int64_t *first, int64_t *bytes)
{
    int64_t size[4] = {1, 1, 1, 1}, low = INT64_MAX, high = INT64_MIN;
    for (uint32_t i = 0; i < info->rank; i++)
        size[i] = info->shape[i];
    for (int64_t a = 0; a < size[0]; a++)
        for (int64_t b = 0; b < size[1]; b++)
            for (int64_t c = 0; c < size[2]; c++)
                for (int64_t d = 0; d < size[3]; d++) {
                    int64_t at = a * info->stride[0] + b * info->stride[1] + c * info->stride[2] + d * info->stride[3];
                    low = at < low ? at : low;
                    high = at > high ? at : high;
                }
    *bytes = low <= high ? (high - low + 1) * info->element_size : 0;
    *first = low <= high ? low * info->element_size : 0;
}

static void drawn(void)
{
    static const char letters[] = "qkvolb";
    for (int n = 0; n < tap_amount(50, 500, 5000); n++) {
        if (!tap_case("%d", n))
            continue;
        struct rng rng = {tap.seed * 0x9E3779B1 + (uint64_t)n};
        attest_problem p;
        gen_problem(&rng, &p, gen_flags(&rng), 1e4, true);
        for (size_t i = 0; i < FACTS; i++) {
            attest_tensor_info info;
            int64_t first, bytes, count;
            if (!get(&p, i, &info) || !info.present)
                continue;
            brute_force(&info, &first, &bytes);
            tap_check(info.bytes == bytes && (info.first_byte == first || !bytes),
                      "%s covers %" PRId64 " bytes from %" PRId64 ", not %" PRId64 " from %" PRId64, info.name, info.bytes,
                      info.first_byte, bytes, first);
            if (i < sizeof letters - 1)
                tap_check(attest_problem_extent(&p, letters[i], &first, &count) == ATTEST_OK &&
                              info.bytes == count * info.element_size && (!count || info.first_byte == first * info.element_size),
                          "%s is not as attest_problem_extent has it", info.name);
        }
    }
}

/* Strides are where the row says they are: three times as large ones, written there, come back. */
static void stride_fields(void)
{
    attest_problem p;
    attest_tensor_info info;
    if (!parse("fwd:f32:b2:hq4:hkv2:sq3:skv5:d8:lse:bias:page=4,7", &p))
        return;
    for (size_t i = 0; i < FACTS; i++) {
        attest_problem other = p;
        if (!get(&p, i, &info) || !info.stride_count)
            continue;
        for (uint32_t k = 0; k < info.stride_count; k++) {
            int64_t stride;
            unsigned char *at = (unsigned char *)&other + info.stride_offset + k * sizeof stride;
            memcpy(&stride, at, sizeof stride);
            stride *= 3;
            memcpy(at, &stride, sizeof stride);
        }
        int64_t before = 0, after = 0;
        for (uint32_t k = 0; k < info.rank; k++)
            before += k < info.stride_count ? info.stride[k] : 0;
        if (!get(&other, i, &info))
            continue;
        for (uint32_t k = 0; k < info.rank; k++)
            after += k < info.stride_count ? info.stride[k] : 0;
        tap_check(after == 3 * before, "the strides of %s are not at %" PRIu64, info.name, info.stride_offset);
    }
}

/* ---------------------------------------------------------------------------------------------------------------- runs -- */

/* A run touches no byte that its tensors do not cover: they lie at pages that cannot be touched, made and placed by what is said of
 * them alone. Inputs are zeros, which are valid lengths and pages. */
static void runs(void)
{
    static const enum placement places[] = {PLACE_GUARD_AFTER, PLACE_GUARD_BEFORE};
    for (int n = 0; n < tap_amount(20, 200, 2000); n++) {
        if (!tap_case("%d", n))
            continue;
        struct rng rng = {tap.seed * 0x85EBCA6B + (uint64_t)n};
        attest_problem p;
        gen_problem(&rng, &p, gen_flags(&rng), 1e5, true);
        struct buffer buffers[FACTS] = {{0}};
        attest_tensors t = {.size = sizeof t};
        bool good = true;
        for (size_t i = 0; i < FACTS && good; i++) {
            attest_tensor_info info;
            good = get(&p, i, &info);
            if (!good || !info.present)
                continue;
            int64_t element = info.element_size;
            good = tap_check(
                buffer_create(&buffers[i], places[n % 2], info.first_byte / element, info.bytes / element, info.element_size),
                "no memory for %s", info.name);
            if (good && buffers[i].size)
                memset(buffers[i].bytes, info.role & ATTEST_ROLE_OUTPUT ? 0xff : 0, buffers[i].size);
            memcpy((unsigned char *)&t + info.offset, &buffers[i].data, sizeof buffers[i].data);
        }
        char why[256] = "";
        bool one_page = !(p.flags & ATTEST_PAGED) || p.page_count > 0 || p.flags & ATTEST_KV_LENGTHS || !p.seq_kv || !p.batch;
        if (good && one_page)
            tap_check(attest_forward(&p, &t, why, sizeof why) == ATTEST_OK, "the run fails: %s", why);
        for (size_t i = 0; i < FACTS; i++)
            buffer_destroy(&buffers[i]);
    }
}

/* ----------------------------------------------------------------------------------------------------------- bad calls -- */

static void bad_calls(void)
{
    attest_problem p, bad;
    union {
        attest_tensor_info info;
        unsigned char bytes[sizeof(attest_tensor_info) + 32];
    } wide, before;
    if (!parse("fwd:f32:h2:s4:d8", &p))
        return;
    bad = p;
    bad.dim = 0;
    memset(&wide, 0, sizeof wide);
    wide.info.size = sizeof wide.info;
    before = wide;
    static const size_t indexes[] = {TENSORS, TENSORS + 1, SIZE_MAX};
    for (size_t n = 0; n < sizeof indexes / sizeof *indexes; n++)
        tap_check(attest_tensor_get(&p, indexes[n], &wide.info) == ATTEST_ERROR_ARGUMENT, "tensor %zu", indexes[n]);
    tap_check(attest_tensor_get(NULL, 0, &wide.info) == ATTEST_ERROR_ARGUMENT, "no problem");
    tap_check(attest_tensor_get(&p, 0, NULL) == ATTEST_ERROR_ARGUMENT, "no info");
    tap_check(attest_tensor_get(&bad, 0, &wide.info) == ATTEST_ERROR_ARGUMENT, "a problem that is not valid");
    tap_check(!memcmp(&wide, &before, sizeof wide), "an error wrote into the info");

    static const uint64_t sizes[] = {0, 8, sizeof(attest_tensor_info) - 8, UINT64_MAX};
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        wide.info.size = sizes[n];
        tap_check(attest_tensor_get(&p, 0, &wide.info) == ATTEST_ERROR_ARGUMENT && !wide.info.name, "info.size %" PRIu64, sizes[n]);
    }
    wide.info.size = sizeof wide;
    wide.bytes[sizeof wide - 1] = 1;
    tap_check(attest_tensor_get(&p, 0, &wide.info) == ATTEST_ERROR_ARGUMENT && !wide.info.name, "a tail that is not zero");
    wide.bytes[sizeof wide - 1] = 0;
    tap_check(attest_tensor_get(&p, 0, &wide.info) == ATTEST_OK && wide.info.size == sizeof wide && !strcmp(wide.info.name, "q"),
              "a larger info");
    for (size_t at = sizeof(attest_tensor_info); at < sizeof wide; at++)
        tap_check(wide.bytes[at] == 0, "byte %zu, behind the info, was written", at);
}

/* ---------------------------------------------------------------------------------------------------------- operations -- */

static void operations(void)
{
    attest_problem p;
    char line[ATTEST_PROBLEM_TEXT] = "";
    attest_op_info info = {.size = sizeof info};
    tap_check(attest_op_get(ATTEST_OP_FORWARD, &info) == ATTEST_OK && !strcmp(info.name, "fwd") && strlen(info.summary) > 10,
              "forward is %s", info.name ? info.name : "not there");
    if (!info.name || !parse("fwd:f32:h2:s4:d8", &p))
        return;
    tap_check(attest_problem_print(&p, line, sizeof line) == ATTEST_OK && !strncmp(line, info.name, strlen(info.name)),
              "problems begin as %s", line);
    for (size_t i = 0; i < attest_kernel_count(); i++) {
        attest_kernel_info kernel = {.size = sizeof kernel};
        const char *word = attest_kernel_get(i, &kernel) == ATTEST_OK ? strchr(kernel.name, '_') : NULL;
        tap_check(word && !strncmp(word + 1, info.name, strlen(info.name)), "kernel %zu is not of %s", i, info.name);
    }
    static const uint32_t none[] = {0, 2, UINT32_MAX};
    for (size_t n = 0; n < sizeof none / sizeof *none; n++) {
        attest_op_info other = {.size = sizeof other};
        tap_check(attest_op_get(none[n], &other) == ATTEST_ERROR_ARGUMENT && !other.name, "operation %u", none[n]);
        p.op = none[n];
        tap_check(attest_problem_check(&p, NULL, 0) == ATTEST_ERROR_ARGUMENT, "a problem of operation %u", none[n]);
    }
    tap_check(attest_op_get(ATTEST_OP_FORWARD, NULL) == ATTEST_ERROR_ARGUMENT, "no info");
    attest_op_info small = {.size = 8};
    tap_check(attest_op_get(ATTEST_OP_FORWARD, &small) == ATTEST_ERROR_ARGUMENT && !small.name, "a small info");
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"every pointer", every_pointer}, {"presence", presence}, {"by hand", by_hand},     {"drawn", drawn},
        {"stride fields", stride_fields}, {"runs", runs},         {"bad calls", bad_calls}, {"operations", operations},
    };
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
