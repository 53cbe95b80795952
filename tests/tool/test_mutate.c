/*
 * Tests of the mutation engine: the lexer, every operator on small texts with exactly the edits that it has to make, draws from a
 * seed, diffs, and the interval of a rate. What becomes of mutants is in kill_rate.t.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mutate/c_tokens.h"
#include "mutate/explained.h"
#include "mutate/kill_rate.h"
#include "mutate/mutant_draw.h"
#include "mutate/text_diff.h"
#include "tap.h"

/* ---- tokens ------------------------------------------------------------------------------------------------------------------ */

/* The tokens separated by spaces; those of a #define after a #, those that stay as they are in ~. To be freed. */
static char *tokens_text(const char *text)
{
    struct tokens tokens;
    char *joined = NULL;
    size_t size;
    FILE *out = open_memstream(&joined, &size);
    if (!tap_check(tokens_read(&tokens, text, strlen(text)), "out of memory"))
        return NULL;
    for (int i = 0; i < tokens.count; i++)
        fprintf(out, "%s%s%s%.*s", i ? " " : "", tokens.list[i].directive ? "#" : "", tokens.list[i].frozen ? "~" : "",
                (int)token_length(&tokens, i), text + tokens.list[i].begin);
    fclose(out);
    tokens_free(&tokens);
    return joined;
}

static void test_tokens(void)
{
    static const struct {
        const char *text, *tokens;
    } cases[] = {
        {"a+=b<<2;", "a += b << 2 ;"},
        {"x /* y = 1; */ z // w\nv", "x z v"},
        {"s = \"a // b \\\" c\"; c = '\\'';", "s = \"a // b \\\" c\" ; c = '\\'' ;"},
        {"0x1.8p-3f + 1e+5 - 0xe-1 .5f", "0x1.8p-3f + 1e+5 - 0xe - 1 .5f"},
        {"#include <a.h>\n#if X > 1\nint a;\n#endif\n", "int a ;"},
        {"#define N 4\nint a[N];", "#4 int a [ N ] ;"},
        {"#define F(x, y) \\\n    ((x) + \\\n     (y))\nb", "#( #( #x #) #+ #( #y #) #) b"},
        {"// a \\\nb\nc", "c"},
        {"/* open", ""},
        {"_Static_assert(N == 4, \"x\"); a", "~_Static_assert ~( ~N ~== ~4 ~, ~\"x\" ~) ; a"},
        {"asm volatile(\"x\" : : \"r\"(1)); b", "~asm ~volatile ~( ~\"x\" ~: ~: ~\"r\" ~( ~1 ~) ~) ; b"},
        {"__builtin_prefetch(p + 64, 0, 2); c", "~__builtin_prefetch ~( ~p ~+ ~64 ~, ~0 ~, ~2 ~) ; c"},
    };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        char *found = tokens_text(cases[i].text);
        tap_check(found && strcmp(found, cases[i].tokens) == 0, "'%s' is '%s', not '%s'", cases[i].text, found ? found : "",
                  cases[i].tokens);
        free(found);
    }
}

/* ---- operators --------------------------------------------------------------------------------------------------------------- */

/* What the operator makes of the text, each with a | behind it, without the code around the edits. To be freed. */
static char *edits_text(const char *name, const char *text, const struct edits_options *options)
{
    struct edits edits;
    char *joined = NULL;
    size_t size;
    FILE *out = open_memstream(&joined, &size);
    if (!tap_check(edits_find(&edits, text, strlen(text), options), "out of memory"))
        return NULL;
    for (int i = 0; i < edits.count; i++)
        if (strcmp(mutation_operators[edits.list[i].operator_index].name, name) == 0) {
            char *changed = edit_apply(&edits.list[i], text, strlen(text));
            fprintf(out, "%s|", changed ? changed : "");
            free(changed);
        }
    fclose(out);
    edits_free(&edits);
    return joined;
}

static void test_operators(void)
{
    static const struct {
        const char *name, *text, *edits;
    } cases[] = {
        {"constant_near", "x = 8;", "x = 9;|x = 7;|"},
        {"constant_near", "x = 0xff;", "x = (0xff + 1);|x = (0xff - 1);|"},
        {"constant_near", "#define N 4\n", "#define N 5\n|#define N 3\n|"},
        {"constant_near", "enum { TUNED = 8, B = 1 };", "enum { TUNED = 8, B = 2 };|enum { TUNED = 8, B = 0 };|"},
        {"constant_near", "#if X == 4\n#pragma GCC unroll 8\n#endif\n/* 5 */ s = \"6\"; _Static_assert(7 > 1, \"\");", ""},
        {"constant_wrong", "x = 8;", "x = 0;|x = 1;|x = 16;|x = 4;|x = (-8);|"},
        {"number_wrong", "x = 0.5f;", "x = 0.0f;|x = 1.0f;|x = (2 * 0.5f);|x = (0.5f / 2);|x = (-0.5f);|"},
        {"comparison_shifted", "a = b < c;", "a = b <= c;|"},
        {"comparison_flipped", "a = b >= c;", "a = b < c;|a = b <= c;|"},
        {"comparison_flipped", "a = b == c;", "a = b != c;|"},
        {"arithmetic_swapped", "a = b + c;", "a = b - c;|"},
        {"arithmetic_swapped", "float *a; a = -b; i++;", "float *a; a = -b; i--;|"},
        {"arithmetic_swapped", "a = (b && c) << d % e;",
         "a = (b || c) << d % e;|a = (b && c) >> d % e;|a = (b && c) << d / e;|a = (b && c) << d * e;|"},
        {"unary_dropped", "a = !b - -c;", "a = b - -c;|a = !b - c;|"},
        {"call_swapped", "vf_max(a, b); vf_min(c, d);", "vf_min(a, b); vf_min(c, d);|vf_max(a, b); vf_max(c, d);|"},
        {"call_swapped", "vf_max(a, b);", ""}, /* there is no vf_min */
        {"tensor_swapped", "p->stride_k[2] + p->stride_v[2]", "p->stride_v[2] + p->stride_v[2]|p->stride_k[2] + p->stride_k[2]|"},
        {"loop_variable_swapped", "{ for (int u = 0; u < 4; u++) for (int w = 0; w < u; w++) a[w] = 0; b[w]; }",
         "{ for (int u = 0; u < 4; u++) for (int w = 0; w < u; w++) a[u] = 0; b[w]; }|"},
        {"index_swapped", "x = a[i][2];", "x = a[2][i];|x = a[(i) + 1][2];|x = a[(i) - 1][2];|x = a[0][2];|"},
        {"arguments_swapped", "f(a, g(b, c), 1);", "f(g(b, c), a, 1);|f(a, 1, g(b, c));|f(a, g(c, b), 1);|"},
        {"call_replaced", "x = f(a, b + 1);", "x = (a);|x = (b + 1);|"},
        {"call_replaced", "static struct s f(int a);", ""}, /* a declaration */
        {"statement_dropped", "{ a = b; int c = 1; f(c); if (d) e++; }",
         "{ (void)0; int c = 1; f(c); if (d) e++; }|{ a = b; int c = 1; (void)0; if (d) e++; }|{ a = b; int c = 1; f(c); if (d) "
         "(void)0; }|"},
        {"statements_swapped", "{ a = b;\n  c = a; int e; }", "{ c = a;\n  a = b; int e; }|"},
        {"statements_swapped", "{ f(x->y, 1); b = x->y; }", "{ b = x->y; f(x->y, 1); }|"},
        {"statements_swapped", "{ x->a = b; x->c = d; }", ""},     /* neither needs the other */
        {"statements_swapped", "{ a = b;\n#else\n  c = a; }", ""}, /* two sides of a condition */
        {"jump_dropped", "{ while (a) { break; } return; }",
         "{ while (a) { (void)0; } return; }|{ while (a) { continue; } return; }|{ while (a) { break; } (void)0; }|"},
        {"term_dropped", "x = a * b[1] + (float)f(c);",
         "x = a + (float)f(c);|x = b[1] + (float)f(c);|x = a * b[1];|x = (float)f(c);|"},
        {"term_dropped", "{ if (a)\n *b = 1; }", ""}, /* a pointer, and no product */
        {"condition_dropped", "x = a && b < 1 || c;", "x = a || c;|x = b < 1 || c;|x = a && b < 1;|x = c;|"},
        {"type_narrowed", "int64_t a = (double)b; int64_t *c;",
         "int32_t a = (double)b; int64_t *c;|int16_t a = (double)b; int64_t *c;|int8_t a = (double)b; int64_t *c;|int64_t a = "
         "(float)b; int64_t *c;|"},
        {"value_rounded", "{ float a = b + 1; }", "{ float a = attest_from_bf16(attest_to_bf16(b + 1)); }|"},
        {"loop_bound", "{ for (int i = 0; i < n && a; i++) b(); }",
         "{ for (int i = 0; i < (n) + 1 && a; i++) b(); }|{ for (int i = 0; i < (n) - 1 && a; i++) b(); }|"},
        {"loop_step", "{ for (i = 0; i < n; i++) ; for (; i < n; i += N) ; }",
         "{ for (i = 0; i < n; i += 2) ; for (; i < n; i += N) ; }|{ for (i = 0; i < n; i++) ; for (; i < n; i += 2 * (N)) ; }|"},
        {"condition_forced", "{ if (a > b) c = d ? e : f; }",
         "{ if (1) c = d ? e : f; }|{ if (0) c = d ? e : f; }|{ if (a > b) c = 1 ? e : f; }|{ if (a > b) c = 0 ? e : f; }|"},
        {"value_returned", "{ return a; }", "{ return 0; }|{ return (a) + 1; }|{ return -(a); }|{ return !(a); }|"},
        {"sync_dropped", "{ a = b; __syncthreads(); }", "{ a = b; (void)0; }|"},
        {"sync_moved", "{ a = b; __syncthreads(); for (;;) c(); }",
         "{ __syncthreads(); a = b; for (;;) c(); }|{ a = b; for (;;) c(); __syncthreads(); }|"},
        {"arrival_doubled", "{ barrier_arrive(x); }", "{ barrier_arrive(x); barrier_arrive(x); }|"},
        {"wait_shifted", "{ wgmma_wait<1>(); }", "{ wgmma_wait<1 + 1>(); }|"},
        {"wait_shifted", "{ barrier_wait(at, parity); }",
         "{ barrier_wait(at, (parity) ^ 1); }|{ barrier_wait(at, (parity) + 1); }|"},
        {"wait_shifted", "{ barrier_expect(at, bytes); }",
         "{ barrier_expect(at, (bytes) / 2); }|{ barrier_expect(at, (bytes) + 16); }|{ barrier_expect(at, (bytes) - 16); }|"},
    };
    bool tried[64] = {false};
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct edits_options options = {.cuda = true, .fixed = "TUNED OTHER"};
        char *found = edits_text(cases[i].name, cases[i].text, &options);
        tap_check(found && strcmp(found, cases[i].edits) == 0, "%s of '%s':\n  found    %s\n  expected %s", cases[i].name,
                  cases[i].text, found ? found : "", cases[i].edits);
        free(found);
        for (int n = 0; n < mutation_operator_count; n++)
            tried[n] = tried[n] || (strcmp(mutation_operators[n].name, cases[i].name) == 0 && *cases[i].edits);
    }
    for (int n = 0; n < mutation_operator_count; n++)
        tap_check(tried[n], "no case for %s", mutation_operators[n].name);
    struct edits_options cpu = {0};
    char *none = edits_text("sync_dropped", "{ barrier_arrive(x); }", &cpu);
    tap_check(none && !*none, "barriers in a kernel that is not for a GPU");
    free(none);
}

/* ---- draws, diffs, rates ------------------------------------------------------------------------------------------------------- */

/* The first draws of a seed as a text; to be freed. */
static char *draws_text(struct session *session, uint64_t seed, int count)
{
    struct mutant_field field;
    struct mutant_draw draw = {0};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (tap_check(mutant_field_open(session, NULL, seed, &field) == EXIT_PASS, "no kernels: run this in the source tree"))
        for (int i = 0; i < count && tap_check(mutant_next(&field, &draw), "no draw %d", i); i++)
            fprintf(out, "%lld %s %s %zu %s\n", (long long)draw.number, draw.kernel->word, draw.file->path, draw.edit->begin,
                    draw.edit->text);
    fclose(out);
    mutant_field_close(&field);
    return text;
}

static void test_draws(void)
{
    enum { COUNT = 60 };
    struct session session = {0};
    tap_check(attest_context_create(&session.context) == ATTEST_OK, "no context");
    char *first = draws_text(&session, 5, COUNT), *again = draws_text(&session, 5, COUNT), *other = draws_text(&session, 6, COUNT);
    tap_check(first && again && strcmp(first, again) == 0, "the same seed draws other mutants");
    tap_check(first && other && strcmp(first, other) != 0, "another seed draws the same mutants");
    static const char *const places[] = {"lib/cpu/rows_tile.h", "lib/cpu/decode_tile.h", "templates/kernel_cpu.c", "scalar"};
    for (int i = 0; i < COUNT_OF(places); i++)
        tap_check(first && strstr(first, places[i]), "%d draws, and none is in %s", COUNT, places[i]);
    tap_check(first && !strstr(first, "internal.h"), "a file that belongs to no kernel is changed");
    free(first);
    free(again);
    free(other);
    /* A header that is included by the name of a macro. */
    struct mutant_field field;
    bool found = false;
    if (tap_check(mutant_field_open(&session, "lib/cpu/cpu_fwd_amx.c", 5, &field) == EXIT_PASS, "no field of a file"))
        for (int i = 0; i < field.file_count; i++)
            found = found || strcmp(field.files[i]->path, "lib/cpu/decode_amx.h") == 0;
    tap_check(found, "lib/cpu/decode_amx.h is not among the files of the kernel that includes it");
    mutant_field_close(&field);
    attest_context_destroy(session.context);
}

static void test_diff(void)
{
    static const char text[] = "a\nb\nc\nd = 1;\ne\nf\ng\nh\n";
    struct edit edit = {.begin = 10, .end = 11, .text = (char *)(uintptr_t) "2"};
    char *diff = text_diff("k.c", text, sizeof text - 1, &edit);
    static const char expected[] = "--- a/k.c\n+++ b/k.c\n@@ -1,7 +1,7 @@\n a\n b\n c\n-d = 1;\n+d = 2;\n e\n f\n g\n";
    tap_check(diff && strcmp(diff, expected) == 0, "found\n%s", diff ? diff : "");
    free(diff);
    edit = (struct edit){.begin = 0, .end = 4, .text = (char *)(uintptr_t) "x\ny\nz\n"};
    diff = text_diff("k.c", text, sizeof text - 1, &edit);
    tap_check(diff && strcmp(diff, "--- a/k.c\n+++ b/k.c\n@@ -1,5 +1,6 @@\n-a\n-b\n+x\n+y\n+z\n c\n d = 1;\n e\n") == 0,
              "found\n%s", diff ? diff : "");
    free(diff);
}

/* A file of explanations with this text. */
static json_t *explained_text(const char *text, char *why, size_t why_size)
{
    char path[] = "/tmp/attest-explained-XXXXXX";
    int file = mkstemp(path);
    FILE *out = file >= 0 ? fdopen(file, "w") : NULL;
    if (!tap_check(out != NULL, "no temporary file"))
        return NULL;
    fputs(text, out);
    fclose(out);
    json_t *found = explained_load(path, why, why_size);
    unlink(path);
    return found;
}

static void test_explained(void)
{
    static const char diff[] = "--- a/k.c\n+++ b/k.c\n@@ -1,3 +1,3 @@\n a\n-b = 1;\n+b = 2;\n c\n";
    static const char moved[] = "--- a/k.c\n+++ b/k.c\n@@ -9,3 +9,3 @@\n x\n-b = 1;\n+b = 2;\n y\n";
    static const char other[] = "--- a/l.c\n+++ b/l.c\n@@ -1,3 +1,3 @@\n a\n-b = 1;\n+b = 2;\n c\n";
    char key[EXPLAINED_KEY], key_moved[EXPLAINED_KEY], key_other[EXPLAINED_KEY], text[1024], why[256] = "";
    explained_key(diff, key);
    explained_key(moved, key_moved);
    explained_key(other, key_other);
    tap_check(strlen(key) == 12 && strcmp(key, key_moved) == 0, "lines elsewhere are another edit: %s, %s", key, key_moved);
    tap_check(strcmp(key, key_other) != 0, "another file is the same edit");
    snprintf(text, sizeof text, "# T\n\n### %s equivalent\nIt is.\n```diff\n%s```\n\n### %s gap\nWhy.\n```diff\n%s```\n", key, diff,
             key_other, other);
    json_t *found = explained_text(text, why, sizeof why);
    tap_check(found && json_object_size(found) == 2 && strcmp(json_string_value(json_object_get(found, key)), "equivalent") == 0 &&
                  strcmp(json_string_value(json_object_get(found, key_other)), "gap") == 0,
              "two entries: %s", why);
    json_decref(found);
    const char *const wrong[][2] = {{key_other, "equivalent"}, {key, "harmless"}};
    for (int i = 0; i < COUNT_OF(wrong); i++) {
        snprintf(text, sizeof text, "# T\n\n### %s %s\nIt is.\n```diff\n%s```\n", wrong[i][0], wrong[i][1], diff);
        tap_check(!explained_text(text, why, sizeof why) && strstr(why, "entry"), "a wrong entry is taken: %s", text);
    }
    found = explained_load("/no/such/file", why, sizeof why);
    tap_check(found && json_object_size(found) == 0, "no file is no explanation");
    json_decref(found);
}

static void test_interval(void)
{
    static const struct {
        int hits, count;
        double low, high;
    } cases[] = {{97, 100, 0.91548, 0.98974}, {0, 10, 0, 0.27753}, {10, 10, 0.72247, 1}, {0, 0, 0, 1}};
    for (int i = 0; i < COUNT_OF(cases); i++) {
        double low, high;
        kill_rate_interval(cases[i].hits, cases[i].count, &low, &high);
        tap_check(fabs(low - cases[i].low) < 1e-4 && fabs(high - cases[i].high) < 1e-4, "%d of %d: %g to %g", cases[i].hits,
                  cases[i].count, low, high);
    }
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {{"tokens", test_tokens}, {"operators", test_operators}, {"draws", test_draws},
                                            {"diff", test_diff},     {"explained", test_explained}, {"interval", test_interval}};
    return tap_main(argc, argv, tests, COUNT_OF(tests));
}
