/*
 * problem_text.c - a problem as one line of text, and back.
 *
 * A line is a list of words between colons. The first is the operation, the second the dtype; the others may come in any order,
 * each at most once. Defaults are left out when printing, so a line says what is special about a problem and no more.
 */
#include "internal.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words that are a flag and nothing else. */
static const struct {
    const char *word;
    uint64_t flag;
} flag_words[] = {
    {"causal", ATTEST_CAUSAL},    {"br", ATTEST_BOTTOM_RIGHT}, {"alibi", ATTEST_ALIBI},         {"sink", ATTEST_SINK},
    {"lse", ATTEST_LSE},          {"lens", ATTEST_KV_LENGTHS}, {"invariant", ATTEST_INVARIANT}, {"offsets", ATTEST_ROW_OFFSETS},
    {"starts", ATTEST_KV_STARTS}, {"qlens", ATTEST_Q_LENGTHS}, {"mask", ATTEST_MASK},
};

/* Words that are an integer, with a flag (or 0) that they set. `h` and `s` stand for two sizes each. */
enum field { B, H, HQ, HKV, S, SQ, SKV, D, DV, WL, WR, VARLENQ, VARLENKV, FIELDS };
static const struct {
    const char *word;
    size_t offset;
    uint64_t flag;
} number_words[FIELDS] = {
    [B] = {"b", offsetof(attest_problem, batch), 0},
    [H] = {"h", offsetof(attest_problem, heads_q), 0},
    [HQ] = {"hq", offsetof(attest_problem, heads_q), 0},
    [HKV] = {"hkv", offsetof(attest_problem, heads_kv), 0},
    [S] = {"s", offsetof(attest_problem, seq_q), 0},
    [SQ] = {"sq", offsetof(attest_problem, seq_q), 0},
    [SKV] = {"skv", offsetof(attest_problem, seq_kv), 0},
    [D] = {"d", offsetof(attest_problem, dim), 0},
    [DV] = {"dv", offsetof(attest_problem, dim_v), 0},
    [WL] = {"wl=", offsetof(attest_problem, window_left), ATTEST_WINDOW_LEFT},
    [WR] = {"wr=", offsetof(attest_problem, window_right), ATTEST_WINDOW_RIGHT},
    [VARLENQ] = {"varlenq=", offsetof(attest_problem, total_q), ATTEST_VARLEN_Q},
    [VARLENKV] = {"varlenkv=", offsetof(attest_problem, total_kv), ATTEST_VARLEN_KV},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static int64_t *field_at(attest_problem *p, size_t offset)
{
    return (int64_t *)((char *)p + offset);
}

static const char *const EXAMPLE = "fwd:f16:b2:hq8:hkv8:sq512:skv512:d64:causal";

/* ---- print ----------------------------------------------------------------------------------------------------------------- */

/* Numbers have a point whatever the program's locale says. The object lives as long as the program. */
static locale_t the_c_locale;

static void make_c_locale(void)
{
    the_c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static locale_t c_locale(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_c_locale);
    return the_c_locale;
}

struct line {
    char *data;
    size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void put(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t room = line->used < line->size ? line->size - line->used : 0;
    int length = vsnprintf(room ? line->data + line->used : NULL, room, format, arguments);
    va_end(arguments);
    line->used += length > 0 ? (size_t)length : 0;
}

static bool same_strides(const attest_problem *a, const attest_problem *b, int tensor)
{
    return !memcmp(tensor_strides(a, tensor), tensor_strides(b, tensor), tensor_rows[tensor].stride_count * sizeof(int64_t));
}

static void put_strides(struct line *line, const attest_problem *p)
{
    attest_problem packed = *p, bshd = *p;
    attest_problem_pack(&packed);
    problem_pack_bshd(&bshd);
    bool is_packed = true, is_bshd = true;
    for (int i = 0; i < TENSORS; i++) {
        is_packed = is_packed && (same_strides(p, &packed, i) || !tensor_has_columns(i));
        is_bshd = is_bshd && (same_strides(p, &bshd, i) || !tensor_has_columns(i));
    }
    if (is_bshd && !is_packed)
        put(line, ":layout=bshd");
    for (int i = 0; i < TENSORS; i++) {
        if (same_strides(p, &packed, i) || (is_bshd && tensor_has_columns(i)))
            continue;
        put(line, ":%ss=", tensor_rows[i].word);
        for (int k = 0; k < tensor_rows[i].stride_count; k++)
            put(line, "%s%lld", k ? "," : "", (long long)tensor_strides(p, i)[k]);
    }
}

static float default_scale(const attest_problem *p)
{
    return (float)(1.0 / sqrt((double)p->dim));
}

attest_status attest_problem_print(const attest_problem *problem, char *text, size_t text_size)
{
    if (!text || !text_size)
        return ATTEST_ERROR_ARGUMENT;
    text[0] = 0;
    attest_problem p;
    TRY(problem_read(&p, problem, (struct text){0}));
    char buffer[ATTEST_PROBLEM_TEXT];
    struct line line = {buffer, sizeof buffer, 0};
    locale_t theirs = uselocale(c_locale());
    put(&line, "%s:%s:b%lld:hq%lld:hkv%lld:sq%lld:skv%lld:d%lld", ops[p.op].word, dtype_name(p.dtype), (long long)p.batch,
        (long long)p.heads_q, (long long)p.heads_kv, (long long)p.seq_q, (long long)p.seq_kv, (long long)p.dim);
    if (p.dim_v != p.dim)
        put(&line, ":dv%lld", (long long)p.dim_v);
    if (p.dtype_o != p.dtype)
        put(&line, ":o=%s", dtype_name(p.dtype_o));
    for (size_t i = 0; i < COUNT(flag_words); i++)
        if (has(&p, flag_words[i].flag))
            put(&line, ":%s", flag_words[i].word);
    for (size_t i = WL; i <= VARLENKV; i++)
        if (has(&p, number_words[i].flag))
            put(&line, ":%s%lld", number_words[i].word, (long long)*field_at(&p, number_words[i].offset));
    float scale = default_scale(&p);
    if (memcmp(&p.scale, &scale, sizeof scale))
        put(&line, ":scale=%.9g", (double)p.scale);
    if (has(&p, ATTEST_SOFTCAP))
        put(&line, ":softcap=%.9g", (double)p.softcap);
    if (has(&p, ATTEST_BIAS))
        put(&line, p.dtype_bias == p.dtype ? ":bias" : ":bias=f32");
    if (has(&p, ATTEST_PAGED))
        put(&line, ":page=%lld,%lld", (long long)p.page_size, (long long)p.page_count);
    put_strides(&line, &p);
    uselocale(theirs);
    if (line.used >= text_size || line.used >= sizeof buffer)
        return ATTEST_ERROR_ARGUMENT;
    memcpy(text, buffer, line.used + 1);
    return ATTEST_OK;
}

/* ---- parse ----------------------------------------------------------------------------------------------------------------- */

/* What has been read so far; strides are kept aside until all sizes are known. */
struct parse {
    attest_problem p;
    bool number_seen[FIELDS], stride_seen[TENSORS], flag_seen[COUNT(flag_words)];
    int64_t strides[TENSORS][RANK_MOST];
    bool scale_seen, softcap_seen, bias_seen, page_seen, out_seen, bshd;
    const char *word; /* the one being read, for sentences */
    int index;
    struct text why;
};

static attest_status bad(struct parse *s, const char *what)
{
    return fail(s->why, ATTEST_ERROR_PARSE, "word %d, '%.60s': %s; an example is %s", s->index, s->word, what, EXAMPLE);
}

static attest_status once(struct parse *s, bool *seen)
{
    if (*seen)
        return bad(s, "given twice");
    *seen = true;
    return ATTEST_OK;
}

/* Reads `count` integers between commas that fill the rest of the word. */
static attest_status integers(struct parse *s, const char *at, int64_t *out, int count)
{
    for (int i = 0; i < count; i++) {
        char *end;
        errno = 0;
        if (!((*at >= '0' && *at <= '9') || *at == '-'))
            return bad(s, count == 1 ? "a whole number is missing" : "whole numbers between commas are missing");
        out[i] = strtoll(at, &end, 10);
        if (errno || end == at)
            return bad(s, "the number does not fit 64 bits");
        if (*end != (i + 1 < count ? ',' : 0))
            return bad(s, i + 1 < count ? "more numbers between commas are missing" : "there is something behind the number");
        at = end + 1;
    }
    return ATTEST_OK;
}

static attest_status real(struct parse *s, const char *at, float *out)
{
    char *end;
    if (!*at || strspn(at, "0123456789+-.eE") != strlen(at))
        return bad(s, "a finite decimal number is missing");
    *out = strtof_l(at, &end, c_locale());
    if (end == at || *end)
        return bad(s, "a finite decimal number is missing");
    if (!isfinite(*out))
        return bad(s, "the number is not finite as a float32");
    return ATTEST_OK;
}

static bool dtype_parse(const char *word, uint32_t *dtype)
{
    for (uint32_t d = ATTEST_F32; d <= ATTEST_BF16; d++)
        if (!strcmp(word, dtype_name(d))) {
            *dtype = d;
            return true;
        }
    return false;
}

#define OP(name, word, summary) " or '" #word "'"
static const char OP_WORDS[] =
#include "ops.def"
    ;
#undef OP

static attest_status op_word(struct parse *s, const char *word)
{
    char what[128];
    snprintf(what, sizeof what, "the first word must be the operation, %s", OP_WORDS + sizeof " or " - 1);
    return op_find(word, &s->p.op) ? ATTEST_OK : bad(s, what);
}

static const char *after(const char *word, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(word, prefix, length) ? NULL : word + length;
}

/* The part of the word behind its name, where the name is letters: "hkv8" is {"hkv", "8"}, "hq=8" is no such word. */
static attest_status number_word(struct parse *s, const char *word, bool *known)
{
    for (size_t i = 0; i < FIELDS; i++) {
        const char *rest = after(word, number_words[i].word);
        bool plain = !strchr(number_words[i].word, '=');
        if (!rest || (plain && !(*rest >= '0' && *rest <= '9') && *rest != '-'))
            continue;
        *known = true;
        TRY(once(s, &s->number_seen[i]));
        s->p.flags |= number_words[i].flag;
        int64_t value;
        TRY(integers(s, rest, &value, 1));
        *field_at(&s->p, number_words[i].offset) = value;
        return ATTEST_OK;
    }
    return ATTEST_OK;
}

static attest_status one_word(struct parse *s, const char *word)
{
    const char *rest;
    for (size_t i = 0; i < COUNT(flag_words); i++)
        if (!strcmp(word, flag_words[i].word)) {
            s->p.flags |= flag_words[i].flag;
            return once(s, &s->flag_seen[i]);
        }
    for (int i = 0; i < TENSORS; i++)
        if (tensor_rows[i].word && (rest = after(word, tensor_rows[i].word)) && (rest = after(rest, "s="))) {
            TRY(once(s, &s->stride_seen[i]));
            return integers(s, rest, s->strides[i], tensor_rows[i].stride_count);
        }
    bool known = false;
    TRY(number_word(s, word, &known));
    if (known)
        return ATTEST_OK;
    if ((rest = after(word, "scale="))) {
        TRY(once(s, &s->scale_seen));
        return real(s, rest, &s->p.scale);
    }
    if ((rest = after(word, "softcap="))) {
        TRY(once(s, &s->softcap_seen));
        s->p.flags |= ATTEST_SOFTCAP;
        return real(s, rest, &s->p.softcap);
    }
    if (!strcmp(word, "bias") || after(word, "bias=")) {
        TRY(once(s, &s->bias_seen));
        s->p.flags |= ATTEST_BIAS;
        s->p.dtype_bias = s->p.dtype;
        if (word[4] && !dtype_parse(word + 5, &s->p.dtype_bias))
            return bad(s, "the dtype is not f32, f16 or bf16");
        return ATTEST_OK;
    }
    if ((rest = after(word, "o="))) {
        TRY(once(s, &s->out_seen));
        return dtype_parse(rest, &s->p.dtype_o) ? ATTEST_OK : bad(s, "the dtype is not f32, f16 or bf16");
    }
    if ((rest = after(word, "page="))) {
        TRY(once(s, &s->page_seen));
        s->p.flags |= ATTEST_PAGED;
        int64_t page[2];
        TRY(integers(s, rest, page, 2));
        s->p.page_size = page[0];
        s->p.page_count = page[1];
        return ATTEST_OK;
    }
    if (!strcmp(word, "layout=bshd"))
        return once(s, &s->bshd);
    return bad(s, "not a word of a problem");
}

/* `h` with `hq`, and `s` with `sq`, would say one thing twice; `h8:hkv2` is `hq8:hkv2`. */
static attest_status check_words(struct parse *s)
{
    const bool *seen = s->number_seen;
    if ((seen[H] && seen[HQ]) || (seen[S] && seen[SQ]))
        return fail(s->why, ATTEST_ERROR_PARSE, "'%s' and '%s' give the same size", seen[H] && seen[HQ] ? "h" : "s",
                    seen[H] && seen[HQ] ? "hq" : "sq");
    const char *missing = !(seen[H] || seen[HQ]) ? "heads (hN or hqN)" : !(seen[S] || seen[SQ]) ? "length (sN or sqN)" : NULL;
    if (!seen[D])
        missing = "head dimension (dN)";
    if (missing)
        return fail(s->why, ATTEST_ERROR_PARSE, "the %s is missing; an example is %s", missing, EXAMPLE);
    if (s->stride_seen[TENSOR_page_table] && !s->page_seen)
        return fail(s->why, ATTEST_ERROR_PARSE, "'pts' is given without 'page'");
    return ATTEST_OK;
}

static void finish(struct parse *s)
{
    attest_problem *p = &s->p;
    const bool *seen = s->number_seen;
    if (!seen[B])
        p->batch = 1;
    if (!seen[HKV])
        p->heads_kv = p->heads_q;
    if (!seen[SKV])
        p->seq_kv = p->seq_q;
    if (!seen[DV])
        p->dim_v = p->dim;
    if (!s->out_seen)
        p->dtype_o = p->dtype;
    if (!s->scale_seen)
        p->scale = p->dim > 0 ? default_scale(p) : 1.0f;
    if (s->bshd)
        problem_pack_bshd(p);
    else
        attest_problem_pack(p);
    for (int i = 0; i < TENSORS; i++)
        if (s->stride_seen[i])
            memcpy(field_at(p, tensor_rows[i].stride_at), s->strides[i], tensor_rows[i].stride_count * sizeof(int64_t));
}

attest_status attest_problem_parse(const char *line, attest_problem *problem, char *text, size_t text_size)
{
    struct parse s = {.p = {.size = sizeof s.p}, .why = {text, text_size}};
    if (text && text_size)
        text[0] = 0;
    if (!line || !problem)
        return fail(s.why, ATTEST_ERROR_ARGUMENT, "%s is NULL", line ? "problem" : "line");
    if (strlen(line) >= ATTEST_PROBLEM_TEXT)
        return fail(s.why, ATTEST_ERROR_PARSE, "the line is longer than %d characters", ATTEST_PROBLEM_TEXT - 1);
    char words[ATTEST_PROBLEM_TEXT];
    strcpy(words, line);
    char *next = words;
    while (next) {
        s.word = next;
        s.index++;
        next = strchr(next, ':');
        if (next)
            *next++ = 0;
        if (s.index == 1)
            TRY(op_word(&s, s.word));
        if (s.index == 2 && !dtype_parse(s.word, &s.p.dtype))
            return bad(&s, "the second word must be the dtype, f32, f16 or bf16");
        if (s.index > 2)
            TRY(one_word(&s, s.word));
    }
    if (s.index < 2)
        return fail(s.why, ATTEST_ERROR_PARSE, "the dtype is missing; an example is %s", EXAMPLE);
    TRY(check_words(&s));
    finish(&s);
    attest_problem own;
    TRY(problem_read(&own, &s.p, s.why));
    *problem = own;
    return ATTEST_OK;
}
