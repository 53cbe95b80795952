/*
 * The problem struct and its text: parse(print(p)) == p for random problems, every word of the grammar, every kind of bad line
 * with the words its sentence must have, and extents against brute force.
 */
#include "gen.h"
#include "tap.h"

#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool text_has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static bool round_trips(const attest_problem *p, char *line)
{
    attest_problem back;
    char why[512] = "";
    memset(&back, 0xA5, sizeof back);
    if (!tap_check(attest_problem_print(p, line, ATTEST_PROBLEM_TEXT) == ATTEST_OK, "a valid problem does not print"))
        return false;
    if (!tap_check(attest_problem_parse(line, &back, why, sizeof why) == ATTEST_OK, "%s does not parse: %s", line, why))
        return false;
    tap_check(why[0] == '\0', "%s: a sentence after success: %s", line, why);
    return tap_check(memcmp(p, &back, sizeof back) == 0, "%s parses to another problem", line);
}

/* A value from the whole range, with the ends and the powers of two more often than a uniform draw has them. */
static int64_t any_size(struct rng *rng)
{
    int64_t value = (int64_t)(rng_next(rng) >> (34 + rng_below(rng, 29)));
    return rng_chance(rng, 20) ? INT32_MAX : value;
}

static void round_trip(void)
{
    int kept = 0, wanted = tap_amount(2000, 100000, 2000000);
    for (int n = 0; n < wanted; n++) {
        if (!tap_case("%d", n))
            continue;
        struct rng rng = {tap.seed * 0x9E3779B9 + (uint64_t)n};
        attest_problem p;
        char line[ATTEST_PROBLEM_TEXT], why[256];
        gen_problem(&rng, &p, gen_flags(&rng), 1e7, true);
        if (rng_chance(&rng, 2)) {
            uint32_t bits = (uint32_t)rng_next(&rng); /* any float at all that is finite */
            float scale;
            memcpy(&scale, &bits, sizeof scale);
            if (isfinite(scale))
                p.scale = scale;
        }
        if (rng_chance(&rng, 4)) {
            p.seq_q = any_size(&rng);
            p.seq_kv = any_size(&rng);
            p.batch = any_size(&rng) & 0xFFFF;
            attest_problem_pack(&p);
        }
        if (rng_chance(&rng, 8)) {
            int64_t *const strides[] = {p.stride_q, p.stride_k, p.stride_v, p.stride_o};
            strides[rng_below(&rng, 4)][rng_below(&rng, 3)] = (int64_t)rng_next(&rng) >> rng_below(&rng, 60);
        }
        if (attest_problem_check(&p, why, sizeof why) != ATTEST_OK) {
            tap_check(why[0] != '\0', "refused without a sentence");
            tap_check(attest_problem_print(&p, line, sizeof line) == ATTEST_ERROR_ARGUMENT, "an invalid problem prints as %s",
                      line);
            continue;
        }
        kept++;
        round_trips(&p, line);
    }
    if (!tap.one_case)
        tap_check(kept > wanted / 2, "only %d of %d drawn problems are valid", kept, wanted);
}

/* Lines and the fields they set. */
static void words(void)
{
    static const struct {
        const char *line;
        size_t offset;
        int64_t value;
    } table[] = {
#define FIELD(name) offsetof(attest_problem, name)
        {"fwd:f32:h8:s512:d64", FIELD(batch), 1},
        {"fwd:f32:b3:h8:s512:d64", FIELD(batch), 3},
        {"fwd:f32:h8:s512:d64", FIELD(heads_q), 8},
        {"fwd:f32:h8:s512:d64", FIELD(heads_kv), 8},
        {"fwd:f32:hq8:s512:d64", FIELD(heads_kv), 8},
        {"fwd:f32:hkv2:hq8:s512:d64", FIELD(heads_kv), 2},
        {"fwd:f32:h8:s512:d64", FIELD(seq_q), 512},
        {"fwd:f32:h8:s512:d64", FIELD(seq_kv), 512},
        {"fwd:f32:h8:sq3:d64", FIELD(seq_kv), 3},
        {"fwd:f32:d64:skv7:h8:sq3", FIELD(seq_kv), 7},
        {"fwd:f32:h8:s512:d64", FIELD(dim_v), 64},
        {"fwd:f32:h8:s512:d64:dv32", FIELD(dim_v), 32},
        {"fwd:f32:h8:s512:d64:wl=5", FIELD(window_left), 5},
        {"fwd:f32:h8:s512:d64:wr=0", FIELD(window_right), 0},
        {"fwd:f32:h8:s512:d64:varlenq=700", FIELD(total_q), 700},
        {"fwd:f32:h8:s512:d64:varlenkv=600", FIELD(total_kv), 600},
        {"fwd:f32:h8:s512:d64:page=16,40", FIELD(page_size), 16},
        {"fwd:f32:h8:s512:d64:page=16,40", FIELD(page_count), 40},
        {"fwd:f32:h8:s512:d64:page=16,40", FIELD(stride_page_table), 32},
        {"fwd:f32:h8:s512:d64:page=16,40:pts=50", FIELD(stride_page_table), 50},
        {"fwd:f32:h8:s512:d64", FIELD(stride_q[0]), 8 * 512 * 64},
        {"fwd:f32:h8:s512:d64:layout=bshd", FIELD(stride_q[1]), 64},
        {"fwd:f32:h8:s512:d64:layout=bshd", FIELD(stride_k[2]), 8 * 64},
        {"fwd:f32:h8:s512:d64:qs=1,-2,0", FIELD(stride_q[1]), -2},
        {"fwd:f32:h8:s512:d64:ks=1,2,3", FIELD(stride_k[2]), 3},
        {"fwd:f32:h8:s512:d64:vs=7,2,3", FIELD(stride_v[0]), 7},
        {"fwd:f32:h8:s512:d64:os=0,64,512", FIELD(stride_o[2]), 512},
        {"fwd:f32:h8:s512:d64:lse:ls=0,1,8", FIELD(stride_lse[2]), 8},
        {"fwd:f32:h8:s512:d64:bias:bs=0,0,512,1", FIELD(stride_bias[2]), 512},
        {"fwd:f32:h8:s512:d64:bias", FIELD(stride_bias[1]), 512 * 512},
#undef FIELD
    };
    for (size_t n = 0; n < sizeof table / sizeof *table; n++) {
        attest_problem p;
        char why[512] = "", line[ATTEST_PROBLEM_TEXT];
        attest_status status = attest_problem_parse(table[n].line, &p, why, sizeof why);
        if (!tap_check(status == ATTEST_OK, "%s: %s", table[n].line, why))
            continue;
        int64_t got;
        memcpy(&got, (const char *)&p + table[n].offset, sizeof got);
        tap_check(got == table[n].value, "%s: the field at %zu is %" PRId64 ", not %" PRId64, table[n].line, table[n].offset, got,
                  table[n].value);
        round_trips(&p, line);
    }
}

static void flag_words(void)
{
    static const struct {
        const char *words;
        uint64_t flags;
    } table[] = {
        {"", 0},
        {":causal", ATTEST_CAUSAL},
        {":br", ATTEST_BOTTOM_RIGHT},
        {":wl=1", ATTEST_WINDOW_LEFT},
        {":wr=1", ATTEST_WINDOW_RIGHT},
        {":softcap=30", ATTEST_SOFTCAP},
        {":alibi", ATTEST_ALIBI},
        {":bias", ATTEST_BIAS},
        {":bias=f32", ATTEST_BIAS},
        {":sink", ATTEST_SINK},
        {":lse", ATTEST_LSE},
        {":varlenq=9", ATTEST_VARLEN_Q},
        {":varlenkv=9", ATTEST_VARLEN_KV},
        {":lens", ATTEST_KV_LENGTHS},
        {":page=4,9", ATTEST_PAGED},
        {":invariant", ATTEST_INVARIANT},
        {":invariant:lens:sink:br:causal",
         ATTEST_INVARIANT | ATTEST_KV_LENGTHS | ATTEST_SINK | ATTEST_BOTTOM_RIGHT | ATTEST_CAUSAL},
    };
    for (size_t n = 0; n < sizeof table / sizeof *table; n++) {
        attest_problem p;
        char line[128], why[512] = "";
        snprintf(line, sizeof line, "fwd:bf16:h2:s9:d8%s", table[n].words);
        if (tap_check(attest_problem_parse(line, &p, why, sizeof why) == ATTEST_OK, "%s: %s", line, why))
            tap_check(p.flags == table[n].flags, "%s sets flags 0x%" PRIx64, line, p.flags);
    }
    attest_problem p;
    tap_check(attest_problem_parse("fwd:bf16:h2:s9:d8:bias", &p, NULL, 0) == ATTEST_OK && p.dtype_bias == ATTEST_BF16,
              "bias dtype");
    tap_check(attest_problem_parse("fwd:bf16:h2:s9:d8:bias=f32:o=f32", &p, NULL, 0) == ATTEST_OK && p.dtype_bias == ATTEST_F32 &&
                  p.dtype_o == ATTEST_F32,
              "f32 bias and output");
    tap_check(attest_problem_parse("fwd:f32:h2:s9:d16", &p, NULL, 0) == ATTEST_OK && p.scale == 0.25f, "default scale");
    tap_check(attest_problem_parse("fwd:f32:h2:s9:d16:scale=-2.5", &p, NULL, 0) == ATTEST_OK && p.scale == -2.5f, "scale");
    tap_check(attest_problem_parse("fwd:f32:h2:s9:d16:softcap=30", &p, NULL, 0) == ATTEST_OK && p.softcap == 30, "softcap");
}

/* What is printed is pinned where documents and suites quote it. */
static void printed_form(void)
{
    static const char *const lines[] = {
        "fwd:f16:b2:hq8:hkv8:sq512:skv512:d64:causal",
        "fwd:f32:b1:hq32:hkv8:sq1:skv8192:d128",
        "fwd:bf16:b1:hq4:hkv2:sq3:skv5:d64:dv32:o=f32:causal:br:wl=7:wr=2",
    };
    for (size_t n = 0; n < sizeof lines / sizeof *lines; n++) {
        attest_problem p;
        char line[ATTEST_PROBLEM_TEXT] = "";
        tap_check(attest_problem_parse(lines[n], &p, NULL, 0) == ATTEST_OK, "%s does not parse", lines[n]);
        tap_check(attest_problem_print(&p, line, sizeof line) == ATTEST_OK && !strcmp(line, lines[n]), "%s prints as %s", lines[n],
                  line);
    }
}

/* Bad lines: the status and a part of the sentence. */
static void bad_lines(void)
{
    static const struct {
        const char *line;
        attest_status status;
        const char *part;
    } table[] = {
        {"", ATTEST_ERROR_PARSE, "fwd"},
        {"bwd:f32:h1:s1:d1", ATTEST_ERROR_PARSE, "bwd"},
        {"f32:h1:s1:d1", ATTEST_ERROR_PARSE, "fwd"},
        {"fwd", ATTEST_ERROR_PARSE, "dtype"},
        {"fwd:", ATTEST_ERROR_PARSE, "dtype"},
        {"fwd:f64:h1:s1:d1", ATTEST_ERROR_PARSE, "f64"},
        {"fwd:h1:f32:s1:d1", ATTEST_ERROR_PARSE, "dtype"},
        {"fwd:f32:s1:d1", ATTEST_ERROR_PARSE, "head"},
        {"fwd:f32:h1:d1", ATTEST_ERROR_PARSE, "length"},
        {"fwd:f32:h1:s1", ATTEST_ERROR_PARSE, "dim"},
        {"fwd:f32:h1:s1:d1:", ATTEST_ERROR_PARSE, "word"},
        {"fwd:f32::h1:s1:d1", ATTEST_ERROR_PARSE, "word"},
        {"fwd:f32:h1:s1:d1:casual", ATTEST_ERROR_PARSE, "casual"},
        {"fwd:f32:h1:s1:d1:causal:causal", ATTEST_ERROR_PARSE, "twice"},
        {"fwd:f32:h1:s1:d1:d1", ATTEST_ERROR_PARSE, "twice"},
        {"fwd:f32:h1:s1:d1:bias:bias=f32", ATTEST_ERROR_PARSE, "twice"},
        {"fwd:f32:h1:s1:d1:scale=1:scale=1", ATTEST_ERROR_PARSE, "twice"},
        {"fwd:f32:h1:s1:d1:softcap=1:softcap=1", ATTEST_ERROR_PARSE, "twice"},
        {"fwd:f32:h1:s1:d1:page=1,1:page=1,1", ATTEST_ERROR_PARSE, "twice"},
        {"fwd:f32:h1:s1:d1:o=f32:o=f32", ATTEST_ERROR_PARSE, "twice"},
        {"fwd:f32:h1:s1:d1:qs=1,1,1:qs=1,1,1", ATTEST_ERROR_PARSE, "twice"},
        {"fwd:f32:h1:s1:d1:layout=bshd:layout=bshd", ATTEST_ERROR_PARSE, "twice"},
        {"fwd:f32:h2:hq2:s1:d1", ATTEST_ERROR_PARSE, "'h'"},
        {"fwd:f32:h2:hq2:s1:d1", ATTEST_ERROR_PARSE, "'h'"},
        {"fwd:f32:h2:s1:sq1:d1", ATTEST_ERROR_PARSE, "'s'"},
        {"fwd:f32:h2:s1:sq1:d1", ATTEST_ERROR_PARSE, "'s'"},
        {"fwd:f32:h1:s1:d1x", ATTEST_ERROR_PARSE, "d1x"},
        {"fwd:f32:h1:s1:d1.5", ATTEST_ERROR_PARSE, "d1.5"},
        {"fwd:f32:h1:s1:d", ATTEST_ERROR_PARSE, "'d'"},
        {"fwd:f32:h1:s1: d1", ATTEST_ERROR_PARSE, " d1"},
        {"fwd:f32:h1:s1:d 1", ATTEST_ERROR_PARSE, "d 1"},
        {"fwd:f32:h1:s1:d+1", ATTEST_ERROR_PARSE, "d+1"},
        {"fwd:f32:h1:s1:D1", ATTEST_ERROR_PARSE, "D1"},
        {"fwd:f32:h1:s99999999999999999999:d1", ATTEST_ERROR_PARSE, "64 bits"},
        {"fwd:f32:h1:s1:d1:wl", ATTEST_ERROR_PARSE, "wl"},
        {"fwd:f32:h1:s1:d1:wl=", ATTEST_ERROR_PARSE, "wl="},
        {"fwd:f32:h1:s1:d1:wl=x", ATTEST_ERROR_PARSE, "wl=x"},
        {"fwd:f32:h1:s1:d1:scale=", ATTEST_ERROR_PARSE, "scale="},
        {"fwd:f32:h1:s1:d1:scale=one", ATTEST_ERROR_PARSE, "scale=one"},
        {"fwd:f32:h1:s1:d1:scale=1x", ATTEST_ERROR_PARSE, "scale=1x"},
        {"fwd:f32:h1:s1:d1:scale=nan", ATTEST_ERROR_PARSE, "finite"},
        {"fwd:f32:h1:s1:d1:scale=inf", ATTEST_ERROR_PARSE, "finite"},
        {"fwd:f32:h1:s1:d1:scale=1e99", ATTEST_ERROR_PARSE, "finite"},
        {"fwd:f32:h1:s1:d1:o=f64", ATTEST_ERROR_PARSE, "o=f64"},
        {"fwd:f32:h1:s1:d1:bias=", ATTEST_ERROR_PARSE, "bias="},
        {"fwd:f32:h1:s1:d1:bias=u8", ATTEST_ERROR_PARSE, "bias=u8"},
        {"fwd:f32:h1:s1:d1:page=1", ATTEST_ERROR_PARSE, "page=1"},
        {"fwd:f32:h1:s1:d1:page=1,2,3", ATTEST_ERROR_PARSE, "page=1,2,3"},
        {"fwd:f32:h1:s1:d1:page=,2", ATTEST_ERROR_PARSE, "page=,2"},
        {"fwd:f32:h1:s1:d1:pts=2", ATTEST_ERROR_PARSE, "pts"},
        {"fwd:f32:h1:s1:d1:qs=1,2", ATTEST_ERROR_PARSE, "qs=1,2"},
        {"fwd:f32:h1:s1:d1:qs=1,2,3,4", ATTEST_ERROR_PARSE, "qs=1,2,3,4"},
        {"fwd:f32:h1:s1:d1:bs=1,2,3", ATTEST_ERROR_PARSE, "bs=1,2,3"},
        {"fwd:f32:h1:s1:d1:qs=", ATTEST_ERROR_PARSE, "qs="},
        {"fwd:f32:h1:s1:d1:layout=bhsd2", ATTEST_ERROR_PARSE, "layout"},
        {"fwd:f32:h0:s1:d1", ATTEST_ERROR_ARGUMENT, "heads_q"},
        {"fwd:f32:b-1:h1:s1:d1", ATTEST_ERROR_ARGUMENT, "batch"},
        {"fwd:f32:hq3:hkv2:s1:d1", ATTEST_ERROR_ARGUMENT, "heads_kv"},
        {"fwd:f32:h1:s1:d0", ATTEST_ERROR_ARGUMENT, "dim"},
        {"fwd:f32:h1:s1:d513", ATTEST_ERROR_ARGUMENT, "dim"},
        {"fwd:f32:h1:s1:d1:dv0", ATTEST_ERROR_ARGUMENT, "dim_v"},
        {"fwd:f32:h1:s1:d1:dv513", ATTEST_ERROR_ARGUMENT, "dim_v"},
        {"fwd:f32:h1:s1:d1:o=f16", ATTEST_ERROR_ARGUMENT, "dtype_o"},
        {"fwd:f16:h1:s1:d1:o=bf16", ATTEST_ERROR_ARGUMENT, "dtype_o"},
        {"fwd:f16:h1:s1:d1:bias=bf16", ATTEST_ERROR_ARGUMENT, "dtype_bias"},
        {"fwd:f32:h1:s1:d1:wl=-1", ATTEST_ERROR_ARGUMENT, "window_left"},
        {"fwd:f32:h1:s1:d1:wr=-1", ATTEST_ERROR_ARGUMENT, "window_right"},
        {"fwd:f32:h1:s1:d1:softcap=0", ATTEST_ERROR_ARGUMENT, "softcap"},
        {"fwd:f32:h1:s1:d1:softcap=-1", ATTEST_ERROR_ARGUMENT, "softcap"},
        {"fwd:f32:h1:s1:d1:page=0,1", ATTEST_ERROR_ARGUMENT, "page_size"},
        {"fwd:f32:h1:s1:d1:page=1,1:varlenkv=1", ATTEST_ERROR_ARGUMENT, "ATTEST_PAGED"},
        {"fwd:f32:h1:s1:d1:ls=1,1,1", ATTEST_ERROR_ARGUMENT, "stride_lse"},
        {"fwd:f32:h1:s1:d1:bs=1,1,1,1", ATTEST_ERROR_ARGUMENT, "stride_bias"},
        {"fwd:f32:h2:s1:d1:os=1,0,1", ATTEST_ERROR_ARGUMENT, "stride_o"},
        {"fwd:f32:h2:s2:d1:lse:ls=1,1,1", ATTEST_ERROR_ARGUMENT, "stride_lse"},
        {"fwd:f32:h2:s2:d1:qs=1,9223372036854775807,1", ATTEST_ERROR_ARGUMENT, "stride_q"},
        {"fwd:f32:h2:s2:d1:varlenq=4:qs=5,2,1", ATTEST_ERROR_ARGUMENT, "stride_q"},
        {"fwd:f32:h2:s2:d1:varlenkv=4:vs=5,2,1", ATTEST_ERROR_ARGUMENT, "stride_v"},
    };
    for (size_t n = 0; n < sizeof table / sizeof *table; n++) {
        attest_problem p, before;
        char why[512] = "";
        memset(&p, 0xA5, sizeof p);
        before = p;
        attest_status status = attest_problem_parse(table[n].line, &p, why, sizeof why);
        tap_check(status == table[n].status, "'%s': status %s, sentence: %s", table[n].line, attest_status_name(status), why);
        tap_check(text_has(why, table[n].part), "'%s': '%s' is not in the sentence: %s", table[n].line, table[n].part, why);
        tap_check(memcmp(&p, &before, sizeof p) == 0, "'%s': the problem was written", table[n].line);
        for (size_t size = 0; size < 8; size++) {
            char small[16];
            memset(small, '#', sizeof small);
            attest_problem_parse(table[n].line, &p, small, size);
            tap_check(small[size] == '#' && (size == 0 || memchr(small, '\0', size)), "'%s': a text of %zu bytes overflows",
                      table[n].line, size);
        }
    }
}

static void long_lines(void)
{
    char *line = malloc(1 << 20), why[256] = "";
    attest_problem p;
    memset(line, 'x', (1 << 20) - 1);
    line[(1 << 20) - 1] = '\0';
    memcpy(line, "fwd:f32:", 8);
    tap_check(attest_problem_parse(line, &p, why, sizeof why) == ATTEST_ERROR_PARSE && why[0], "a long line: %s", why);
    size_t at = (size_t)sprintf(line, "fwd:f32:h1:s1:d1");
    for (int n = 0; n < 1000; n++)
        at += (size_t)sprintf(line + at, ":causal");
    tap_check(attest_problem_parse(line, &p, why, sizeof why) == ATTEST_ERROR_PARSE && why[0], "many words: %s", why);
    free(line);
    tap_check(attest_problem_parse(NULL, &p, why, sizeof why) == ATTEST_ERROR_ARGUMENT && text_has(why, "line"), "no line: %s",
              why);
    tap_check(attest_problem_parse("fwd:f32:h1:s1:d1", NULL, why, sizeof why) == ATTEST_ERROR_ARGUMENT && text_has(why, "problem"),
              "no problem: %s", why);
    attest_problem_parse("fwd:f32:h1:s1:d1", &p, NULL, 0);
    for (size_t size = 0; size < 40; size++) {
        char small[64];
        memset(small, '#', sizeof small);
        attest_status status = attest_problem_print(&p, small, size);
        size_t needed = sizeof "fwd:f32:b1:hq1:hkv1:sq1:skv1:d1";
        tap_check((status == ATTEST_OK) == (size >= needed), "printing into %zu bytes: %s", size, attest_status_name(status));
        tap_check(small[size] == '#', "printing into %zu bytes overflows", size);
    }
    tap_check(attest_problem_print(&p, NULL, 0) == ATTEST_ERROR_ARGUMENT, "printing into nothing");
    tap_check(attest_problem_print(NULL, why, sizeof why) == ATTEST_ERROR_ARGUMENT, "printing nothing");
}

/* The longest line a problem can have fits the constant of the header. */
static void longest_line(void)
{
    attest_problem p;
    char line[ATTEST_PROBLEM_TEXT];
    attest_problem_init(&p, ATTEST_BF16, 1, 2147483646, 2147483646, 1, 2147483646, 511);
    p.dim_v = 509;
    p.dtype_o = p.dtype_bias = ATTEST_F32;
    p.flags = ATTEST_CAUSAL | ATTEST_BOTTOM_RIGHT | ATTEST_WINDOW_LEFT | ATTEST_WINDOW_RIGHT | ATTEST_SOFTCAP | ATTEST_ALIBI |
              ATTEST_BIAS | ATTEST_SINK | ATTEST_LSE | ATTEST_KV_LENGTHS | ATTEST_PAGED | ATTEST_INVARIANT;
    p.window_left = p.window_right = INT64_MAX;
    p.page_size = 1;
    p.page_count = 1;
    attest_problem_pack(&p);
    p.scale = -1.17549435e-38f;
    p.softcap = 1.00000012f;
    for (int n = 0; n < 3; n += 2) /* the dimensions of extent 1, whose strides may be anything */
        p.stride_q[n] = p.stride_o[n] = p.stride_k[n] = p.stride_v[n] = p.stride_lse[n] = -INT64_MAX;
    p.stride_bias[0] = p.stride_bias[2] = -INT64_MAX;
    p.stride_bias[1] = p.stride_bias[3] = -500000000;
    p.stride_page_table = 288230376151711744;
    if (tap_check(attest_problem_check(&p, line, sizeof line) == ATTEST_OK, "the problem is refused: %s", line))
        round_trips(&p, line);
}

/* A program that has chosen its language's decimal comma gets the same lines. */
static void decimal_comma(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8"};
    bool found = false;
    for (size_t n = 0; n < sizeof names / sizeof *names && !found; n++)
        found = setlocale(LC_NUMERIC, names[n]) != NULL;
    attest_problem p;
    char line[ATTEST_PROBLEM_TEXT] = "";
    tap_check(attest_problem_parse("fwd:f32:h1:s1:d1:scale=0.5", &p, NULL, 0) == ATTEST_OK && p.scale == 0.5f,
              "0.5 does not parse");
    tap_check(attest_problem_print(&p, line, sizeof line) == ATTEST_OK && text_has(line, "scale=0.5"), "0.5 prints as %s", line);
    setlocale(LC_NUMERIC, "C");
    if (!found)
        tap_note("no locale with a decimal comma is installed; checked in the C locale");
}

static void count_offset(int64_t offset, int64_t *low, int64_t *high, bool *any)
{
    *low = *any && *low < offset ? *low : offset;
    *high = *any && *high > offset ? *high : offset;
    *any = true;
}

static void extent_of(const attest_problem *p, char letter, const int64_t *stride, const int64_t extent[4], int64_t inner)
{
    int64_t low = 0, high = 0, first = -77, count = -77;
    bool any = false;
    for (int64_t a = 0; a < extent[0]; a++)
        for (int64_t h = 0; h < extent[1]; h++)
            for (int64_t r = 0; r < extent[2]; r++)
                for (int64_t d = 0; d<extent[3]; d += extent[3]> 1 ? extent[3] - 1 : 1)
                    count_offset(a * stride[0] + h * stride[1] + r * stride[2] + d * inner, &low, &high, &any);
    tap_check(attest_problem_extent(p, letter, &first, &count) == ATTEST_OK, "no extent of %c", letter);
    int64_t want = any ? high - low + 1 : 0;
    tap_check(count == want && (!any || first == low),
              "extent of %c is %" PRId64 " from %" PRId64 ", not %" PRId64 " from %" PRId64, letter, count, first, want, low);
}

static void extents(void)
{
    for (int n = 0; n < tap_amount(100, 2000, 20000); n++) {
        if (!tap_case("%d", n))
            continue;
        struct rng rng = {tap.seed * 0x51ED27 + (uint64_t)n};
        attest_problem p;
        char why[256] = "";
        gen_problem(&rng, &p, gen_flags(&rng), 3e4, true);
        if (!tap_check(attest_problem_check(&p, why, sizeof why) == ATTEST_OK,
                       "a valid problem is refused: %s; O is [%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
                       "], its strides are %" PRId64 ",%" PRId64 ",%" PRId64,
                       why, p.batch, p.heads_q, p.flags & ATTEST_VARLEN_Q ? p.total_q : p.seq_q, p.dim_v, p.stride_o[0],
                       p.stride_o[1], p.stride_o[2]))
            continue;
        bool packed_q = p.flags & ATTEST_VARLEN_Q, packed_kv = p.flags & ATTEST_VARLEN_KV, paged = p.flags & ATTEST_PAGED;
        int64_t rows = packed_q ? p.total_q : p.seq_q, outer_q = packed_q ? 1 : p.batch;
        int64_t keys = packed_kv ? p.total_kv
                       : paged   ? p.page_size
                                 : p.seq_kv,
                outer_kv = packed_kv ? 1
                           : paged   ? p.page_count
                                     : p.batch;
        extent_of(&p, 'q', p.stride_q, (int64_t[4]){outer_q, p.heads_q, rows, p.dim}, 1);
        extent_of(&p, 'o', p.stride_o, (int64_t[4]){outer_q, p.heads_q, rows, p.dim_v}, 1);
        extent_of(&p, 'k', p.stride_k, (int64_t[4]){outer_kv, p.heads_kv, keys, p.dim}, 1);
        extent_of(&p, 'v', p.stride_v, (int64_t[4]){outer_kv, p.heads_kv, keys, p.dim_v}, 1);
        extent_of(&p, 'l', p.stride_lse, (int64_t[4]){p.flags & ATTEST_LSE ? outer_q : 0, p.heads_q, rows, 1}, 1);
        extent_of(&p, 'b', p.stride_bias, (int64_t[4]){p.flags & ATTEST_BIAS ? p.batch : 0, p.heads_q, p.seq_q, p.seq_kv},
                  p.stride_bias[3]);
    }
    attest_problem p;
    int64_t first, count;
    attest_problem_init(&p, ATTEST_F32, 1, 1, 1, 1, 1, 1);
    tap_check(attest_problem_extent(&p, 'x', &first, &count) == ATTEST_ERROR_ARGUMENT, "extent of x");
    tap_check(attest_problem_extent(&p, '\0', &first, &count) == ATTEST_ERROR_ARGUMENT, "extent of nothing");
    tap_check(attest_problem_extent(NULL, 'q', &first, &count) == ATTEST_ERROR_ARGUMENT, "extent without a problem");
    tap_check(attest_problem_extent(&p, 'q', NULL, &count) == ATTEST_ERROR_ARGUMENT, "extent without first");
    tap_check(attest_problem_extent(&p, 'q', &first, NULL) == ATTEST_ERROR_ARGUMENT, "extent without count");
}

/* init and pack do what their comments say, and survive what is checked only later. */
static void init_and_pack(void)
{
    attest_problem p, q;
    memset(&p, 0xFF, sizeof p);
    attest_problem_init(&p, ATTEST_F16, 2, 6, 3, 5, 7, 16);
    tap_check(p.size == sizeof p && p.flags == 0 && p.op == ATTEST_OP_FORWARD && p.dtype == ATTEST_F16 && p.dtype_o == ATTEST_F16 &&
                  p.dtype_bias == 0 && p.dim_v == 16 && p.scale == 0.25f && p.softcap == 0 && p.total_q == 0 && p.page_size == 0,
              "init leaves other defaults than it promises");
    tap_check(attest_problem_check(&p, NULL, 0) == ATTEST_OK, "an initialised problem is refused");
    q = p;
    attest_problem_pack(&q);
    tap_check(memcmp(&p, &q, sizeof p) == 0, "pack changes an initialised problem");
    tap_check(p.stride_q[0] == 6 * 5 * 16 && p.stride_q[1] == 5 * 16 && p.stride_q[2] == 16 && p.stride_k[1] == 7 * 16,
              "packed strides");
    p.flags = ATTEST_VARLEN_Q | ATTEST_PAGED | ATTEST_LSE | ATTEST_BIAS;
    p.dtype_bias = ATTEST_F32;
    p.total_q = 9;
    p.page_size = 4;
    p.page_count = 11;
    attest_problem_pack(&p);
    static const int64_t want_q[3] = {0, 16, 96}, want_k[3] = {4 * 3 * 16, 16, 48}, want_l[3] = {0, 9, 1},
                         want_b[4] = {210, 35, 7, 1};
    tap_check(!memcmp(p.stride_q, want_q, sizeof want_q) && !memcmp(p.stride_k, want_k, sizeof want_k) &&
                  !memcmp(p.stride_lse, want_l, sizeof want_l) && !memcmp(p.stride_bias, want_b, sizeof want_b) &&
                  p.stride_page_table == 2,
              "packed strides of a packed and paged problem");
    attest_problem_init(&p, ATTEST_F32, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MIN, INT64_MIN, INT64_MIN);
    tap_check(attest_problem_check(&p, NULL, 0) == ATTEST_ERROR_ARGUMENT, "absurd sizes are accepted");
    /* Fields of flags that are off are 0 to the bit, or a line would not give them back. */
    attest_problem_init(&p, ATTEST_F32, 1, 1, 1, 1, 1, 1);
    p.softcap = -0.0f;
    tap_check(attest_problem_check(&p, NULL, 0) == ATTEST_ERROR_ARGUMENT, "a softcap of -0 without its flag is accepted");
    attest_problem_init(&p, (attest_dtype)77, 1, 1, 1, 1, 1, 0);
    tap_check(attest_problem_check(&p, NULL, 0) == ATTEST_ERROR_ARGUMENT, "an absurd dtype is accepted");
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"init and pack", init_and_pack}, {"words", words},           {"flag words", flag_words},
        {"printed form", printed_form},   {"bad lines", bad_lines},   {"long lines", long_lines},
        {"longest line", longest_line},   {"round trip", round_trip}, {"extents", extents},
        {"decimal comma", decimal_comma},
    };
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
