/*
 * Tests of who is proven and who reigns: the decision matrix, the champions and their history, the classes of machines, and the
 * post-mortem.
 */
#include "evidence/champions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/decision.h"
#include "evidence/member.h"
#include "evidence/postmortem.h"
#include "evidence/statement.h"
#include "make_record.h"
#include "base/random.h"
#include "tap.h"

/* ---- the decision matrix -------------------------------------------------------------------------------------------------------
 */

/* A gate is one letter: P PASS, F FAIL, I INCONCLUSIVE, N NOT APPLICABLE, - not run, in the order of gates.def; C is a cheat. */
static json_t *record_of_letters(const char *letters, const char *opponent, const char *speed, double ratio, bool reigns)
{
    static const char *const names[] = {"build", "oracle", "memory", "determinism", "correctness", "speed", "profile"};
    json_t *results = json_array();
    for (int i = 0; i < 7; i++) {
        const char *verdict = letters[i] == 'P'                        ? "PASS"
                              : letters[i] == 'F' || letters[i] == 'C' ? "FAIL"
                              : letters[i] == 'I'                      ? "INCONCLUSIVE"
                                                                       : "NOT APPLICABLE";
        json_t *details = json_object();
        if (letters[i] == '-') {
            json_decref(details);
            continue;
        }
        if (letters[i] == 'C')
            json_put(details, "cheat", json_string("memoised"));
        if (i == 5 && speed)
            json_put(details, "suite", json_pack("{s:s, s:f}", "speed", speed, "ratio", ratio));
        json_add(results, json_pack("{s:s, s:s, s:s, s:o}", "gate", names[i], "verdict", verdict, "sentence", "so it is", "details",
                                    details));
    }
    return json_pack("{s:o, s:s?, s:b, s:s, s:{s:[s, s]}}", "gates", results, "opponent", opponent, "reigns", (int)reigns,
                     "problem_class", "fwd:any", "candidate", "dtypes", "f32", "bf16");
}

static void test_decisions(void)
{
    static const struct {
        const char *letters, *opponent, *speed;
        double ratio;
        bool reigns;
        const char *verdict, *champion, *sentence;
    } rows[] = {
        {"PPPPPNP", NULL, NULL, 0, false, "PROVEN", "FIRST", "proven, and the first of its class: promoted"},
        {"PPPPPPP", "X", "FASTER", 1.31, false, "PROVEN", "CHAMPION", "proven, and 1.31 x as fast as X: promoted"},
        {"PPPPPFP", "X", "SLOWER", 1 / 2.4, false, "PROVEN", "SLOWER", "proven, 2.40 x slower than X"},
        {"PPPPPFP", "X", "SAME", 1.0, false, "PROVEN", "SAME", "proven, and as fast as X, which stays"},
        {"PPPPPIP", "X", "INCONCLUSIVE", 1.01, false, "PROVEN", "INCONCLUSIVE",
         "proven; whether it is faster than X was not settled: so it is"},
        {"PPPPPIP", "X", NULL, 0, false, "PROVEN", "INCONCLUSIVE", "proven; whether it is faster than X was not settled: so it is"},
        {"PPPPPNP", NULL, NULL, 0, true, "PROVEN", "REIGNS", "proven again, and it reigns already"},
        {"PPPPP-P", "X", NULL, 0, false, "PROVEN", "NOT ASKED", "proven; its speed was not asked for"},
        {"PPNPPNN", NULL, NULL, 0, false, "PROVEN", "FIRST", "proven, and the first of its class: promoted"},
        {"F------", "X", NULL, 0, false, "REJECTED", "NOT PROVEN", "rejected by the build gate: so it is"},
        {"PF-----", "X", NULL, 0, false, "REJECTED", "NOT PROVEN", "rejected by the oracle gate: so it is"},
        {"PIPPFPP", "X", "FASTER", 2, false, "REJECTED", "NOT PROVEN", "rejected by the correctness gate: so it is"},
        {"PPPPPPF", "X", "FASTER", 2, false, "REJECTED", "NOT PROVEN", "rejected by the profile gate: so it is"},
        {"PPPPPCP", "X", "FASTER", 9, false, "REJECTED", "NOT PROVEN", "rejected by the speed gate: so it is"},
        {"PPIPPPP", "X", "FASTER", 2, false, "INCONCLUSIVE", "NOT PROVEN", "the memory gate is inconclusive: so it is"},
        {"PPPPPPI", "X", "FASTER", 2, false, "INCONCLUSIVE", "NOT PROVEN", "the profile gate is inconclusive: so it is"},
        {"PPPPP--", "X", NULL, 0, false, "INCONCLUSIVE", "NOT PROVEN", "the profile gate was not run"},
        {"-------", NULL, NULL, 0, false, "INCONCLUSIVE", "NOT PROVEN", "the build gate was not run"},
        {"PPPPNPP", "X", "FASTER", 2, false, "INCONCLUSIVE", "NOT PROVEN",
         "nothing was shown to be right: the correctness gate does not apply: so it is"},
        {"PNPPPPP", "X", "FASTER", 2, false, "INCONCLUSIVE", "NOT PROVEN",
         "nothing was shown to be right: the oracle gate does not apply: so it is"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!tap_case("%s %s", rows[i].letters, rows[i].champion))
            continue;
        json_t *record = record_of_letters(rows[i].letters, rows[i].opponent, rows[i].speed, rows[i].ratio, rows[i].reigns);
        decision_make(record);
        tap_check(text_is(record, "verdict", rows[i].verdict), "verdict %s", text_at(record, "verdict"));
        tap_check(text_is(record, "champion", rows[i].champion), "champion %s", text_at(record, "champion"));
        tap_check(text_is(record, "decision", rows[i].sentence), "decision '%s'", text_at(record, "decision"));
        bool won = strcmp(rows[i].champion, "FIRST") == 0 || strcmp(rows[i].champion, "CHAMPION") == 0;
        char *promoted = canonical_text(json_object_get(record, "promoted"));
        tap_check(promoted && strcmp(promoted, won ? "[\"fwd:f32\",\"fwd:bf16\"]" : "[]") == 0, "promoted in %s", promoted);
        free(promoted);
        json_decref(record);
    }
    /* Whatever the gates say, a kernel with a failing needed gate is never proven, and an unproven one never promoted. */
    for (uint64_t i = 0; i < 4000; i++) {
        char letters[8] = "";
        for (uint64_t k = 0; k < 7; k++)
            letters[k] = "PPPFINC-"[random_bits(tap.seed, 3, 8 * i + k) % 8];
        struct decision decision;
        json_t *record = record_of_letters(letters, i % 2 ? "X" : NULL, "FASTER", 2, false);
        decide(record, &decision);
        bool needed = true, failed = letters[5] == 'C';
        for (int k = 0; k < 7; k++) {
            needed = needed && (k == 5 || letters[k] == 'P' || letters[k] == 'N');
            failed = failed || (k != 5 && (letters[k] == 'F' || letters[k] == 'C'));
        }
        needed = needed && letters[1] == 'P' && letters[4] == 'P' && letters[5] != 'C';
        tap_check((strcmp(decision.verdict, "PROVEN") == 0) == needed, "%s is %s", letters, decision.verdict);
        tap_check((strcmp(decision.verdict, "REJECTED") == 0) == failed, "%s is %s", letters, decision.verdict);
        tap_check(needed || strcmp(decision.champion, "NOT PROVEN") == 0, "%s is %s", letters, decision.champion);
        json_decref(record);
    }
}

/* ---- champions -----------------------------------------------------------------------------------------------------------------
 */

static const char *reigns_now(const char *evidence, const char *device, const char *class)
{
    static char name[128];
    char why[512];
    json_t *statements = statements_load(evidence, why, sizeof why);
    const char *champion = champion_of(statements, device, class);
    snprintf(name, sizeof name, "%s", champion ? champion : "nobody");
    json_decref(statements);
    return name;
}

static void test_champions(void)
{
    char evidence[256], why[512] = "";
    snprintf(evidence, sizeof evidence, "%s", fresh("evidence"));
    struct recipe scalar = {.kernel = "cpu_fwd_f32_scalar", .device = "cpu-avx2"};
    struct recipe avx2 = {
        .kernel = "cpu_fwd_f32_avx2", .device = "cpu-avx2", .opponent = "cpu_fwd_f32_scalar", .speed = "FASTER", .ratio = 8};
    struct recipe slow = {.kernel = "slow", .device = "cpu-avx2", .opponent = "cpu_fwd_f32_avx2", .speed = "SLOWER", .ratio = 0.5};
    struct recipe mine = {.kernel = "mine", .device = "cpu-avx2", .opponent = "cpu_fwd_f32_avx2", .speed = "FASTER", .ratio = 1.5};
    struct recipe wrong = {
        .kernel = "wrong", .device = "cpu-avx2", .opponent = "mine", .speed = "FASTER", .ratio = 9, .failing = "oracle"};
    struct recipe other = {.kernel = "cpu_fwd_bf16_avx2", .device = "cpu-avx2", .problem_class = "fwd:bf16"};
    tap_check(strcmp(reigns_now(evidence, "cpu-avx2", "fwd:f32"), "nobody") == 0, "somebody reigns over nothing");
    append(evidence, &scalar, NULL, NULL);
    tap_check(strcmp(reigns_now(evidence, "cpu-avx2", "fwd:f32"), "cpu_fwd_f32_scalar") == 0, "the first reigns");
    append(evidence, &avx2, NULL, NULL);
    append(evidence, &slow, NULL, NULL);
    append(evidence, &other, NULL, NULL);
    tap_check(strcmp(reigns_now(evidence, "cpu-avx2", "fwd:f32"), "cpu_fwd_f32_avx2") == 0, "a slower one does not");
    append(evidence, &mine, NULL, NULL);
    append(evidence, &wrong, NULL, NULL);
    tap_check(strcmp(reigns_now(evidence, "cpu-avx2", "fwd:f32"), "mine") == 0, "a rejected one does not");
    tap_check(strcmp(reigns_now(evidence, "cpu-avx2", "fwd:bf16"), "cpu_fwd_bf16_avx2") == 0, "each class has its own");
    tap_check(strcmp(reigns_now(evidence, "cpu-amx", "fwd:f32"), "nobody") == 0, "each device has its own");

    json_t *statements = statements_load(evidence, why, sizeof why), *champions = champions_list(statements);
    const json_t *row = json_array_get(champions, 1), *history = json_object_get(row, "history");
    tap_check(json_array_size(champions) == 2 && text_is(row, "problem_class", "fwd:f32") && json_array_size(history) == 3,
              "the list has %zu rows, the history %zu", json_array_size(champions), json_array_size(history));
    tap_check(text_is(json_array_get(history, 0), "kernel", "cpu_fwd_f32_scalar") &&
                  text_is(json_array_get(history, 2), "kernel", "mine"),
              "the history is from the oldest to the newest");
    char *table = champions_def(champions, statements);
    tap_check(table && strstr(table, "attest champion --write") &&
                  strstr(table, "CHAMPION(\"cpu-avx2\", BF16, \"cpu_fwd_bf16_avx2\", \"a model\")\n"
                                "CHAMPION(\"cpu-avx2\", F32, \"cpu_fwd_f32_avx2\", \"a model\")\n"),
              "the table: %s", table ? table : "none");
    tap_check(table && !strstr(table, "mine"), "a kernel that the library does not have is in its table");
    free(table);
    tap_check(champion_image(statements, "cpu-avx2", "fwd:f32") != NULL, "the champion has no image");
    const char *before = champion_before(statements, "cpu-avx2", "fwd:f32", "mine");
    tap_check(before && strcmp(before, "cpu_fwd_f32_avx2") == 0, "before the champion there was %s", before ? before : "nobody");
    tap_check(!champion_before(statements, "cpu-avx2", "fwd:bf16", "cpu_fwd_bf16_avx2"), "there was somebody before the first");
    json_decref(champions);
    json_decref(statements);

    json_t *restored = json_array();
    tap_check(champion_restore(evidence, "cpu_fwd_f32_avx2", NULL, restored, why, sizeof why) == EXIT_PASS &&
                  json_array_size(restored) == 1,
              "restore: %s", why);
    tap_check(strcmp(reigns_now(evidence, "cpu-avx2", "fwd:f32"), "cpu_fwd_f32_avx2") == 0, "it does not reign again");
    json_array_clear(restored);
    tap_check(champion_restore(evidence, "cpu_fwd_f32_avx2", NULL, restored, why, sizeof why) == EXIT_USAGE &&
                  strstr(why, "reigns already"),
              "who reigns is restored: %s", why);
    tap_check(champion_restore(evidence, "slow", NULL, restored, why, sizeof why) == EXIT_USAGE && strstr(why, "never reigned"),
              "who never reigned is restored: %s", why);
    tap_check(champion_restore(evidence, "mine", NULL, restored, why, sizeof why) == EXIT_PASS, "there and back: %s", why);
    tap_check(strcmp(reigns_now(evidence, "cpu-avx2", "fwd:f32"), "mine") == 0, "there and back");
    tap_check(count_problems(evidence, NULL) == 0, "afterwards the evidence is in order");
    json_decref(restored);
}

static void test_device_classes(void)
{
    static const struct {
        const char *disabled, *class;
    } rows[] = {{"avx2", "cpu-scalar"}, {"avx512", "cpu-avx2"}, {"avx512bf16", "cpu-avx512"}, {"amx", "cpu-avx512bf16"}};
    attest_context *context = NULL;
    attest_context_create(&context);
    char all[256], class[64];
    snprintf(all, sizeof all, "%s", attest_context_features(context));
    json_t *machine = machine_json(context);
    tap_check(*text_at(machine, "model") && json_integer_value(json_object_get(machine, "cores")) > 0, "the machine is described");
    json_decref(machine);
    attest_context_destroy(context);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char missing[64];
        missing_features(i + 1 < 4 ? rows[i].class + 4 : "avx512bf16", i ? all : "scalar", missing, sizeof missing);
        if (*missing)
            continue; /* this machine has less */
        attest_context_create(&context);
        attest_context_disable(context, rows[i].disabled);
        device_class(context, NULL, class, sizeof class);
        tap_check(strcmp(class, rows[i].class) == 0, "without %s it is %s", rows[i].disabled, class);
        attest_context_destroy(context);
    }
}

static void test_postmortem(void)
{
    static const char *const words[] = {"# Post-mortem: one",
                                        "The **oracle** gate said FAIL",
                                        "from key 64 on",
                                        "## Evidence",
                                        "## Attempts",
                                        "| 3 |",
                                        "nothing |",
                                        "## Decision",
                                        "2 attempts were rejected",
                                        "## What to try next",
                                        "1/sqrt(D)",
                                        "mask: compare",
                                        "attest prove one --only oracle --seed 12345"};
    const struct recipe bad = {.kernel = "one", .device = "cpu-avx2", .opponent = "X", .failing = "oracle"};
    const struct recipe good = {.kernel = "one", .device = "cpu-avx2", .candidate = made_up_candidate("before")};
    const struct recipe *const newest_first[] = {&bad, &bad, &good};
    json_t *records = json_array();
    for (int i = 0; i < 3; i++) {
        json_t *record = make_record(newest_first[i]);
        json_put(record, "run", json_integer(3 - i));
        json_add(records, record);
    }
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    postmortem_write(stream, records);
    fclose(stream);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        tap_check(strstr(text, words[i]) != NULL, "'%s' is not in:\n%s", words[i], text);
    free(text);
    json_decref(records);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"decisions", test_decisions},
        {"champions", test_champions},
        {"device_classes", test_device_classes},
        {"postmortem", test_postmortem},
    };
    return main_with_folder(argc, argv, tests, sizeof tests / sizeof *tests);
}
