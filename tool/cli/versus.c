/*
 * versus.c - attest bench A --vs B: two kernels, timed and judged exactly as the speed gate does it (gates/measure.c). Words that
 * begin with fwd: are problems, the other one is A. Without problems the shapes of the speed gate are timed.
 */
#include "versus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/embedded.h"
#include "build/build.h"
#include "gates/measure.h"
#include "gates/proof.h"
#include "run/runner.h"

/* A kernel that was named by a word, and the files it needed. */
struct side {
    struct proof proof; /* of a CUDA candidate: for its build gate */
    struct candidate candidate;
    struct contestant contestant;
    bool cuda;
    char *built; /* an image that was made here, or NULL */
};

static bool is_problem(const char *word)
{
    return strncmp(word, "fwd:", 4) == 0;
}

/* A kernel of the library, which needs no file. */
static enum exit_code find_shipped(struct session *session, const char *word, struct side *side)
{
    attest_kernel_info info = {.size = sizeof info};
    const char *names[64];
    int count = 0;
    char hint[256];
    for (size_t i = 0; i < attest_kernel_count(); i++) {
        if (attest_kernel_get(i, &info) != ATTEST_OK)
            continue;
        if (strcmp(info.name, word) == 0) {
            side->contestant = (struct contestant){.name = info.name, .kernel = info.name};
            side->cuda = strcmp(info.backend, "cuda") == 0;
            return EXIT_PASS;
        }
        if (count < COUNT_OF(names))
            names[count++] = info.name;
    }
    const char *near = nearest_word(word, names, count);
    snprintf(hint, sizeof hint, near ? "did you mean %s?" : "attest list names the kernels; a file ends in .c, .so or .cu", near);
    return give_up(session, EXIT_USAGE, hint, "%s is no kernel of this build, no file of a kernel, and no problem", word);
}

static enum exit_code build_side(struct session *session, struct side *side)
{
    char log[4096] = "", *flags = candidate_flags(side->candidate.source);
    const char *base = getenv("TMPDIR");
    enum exit_code code = EXIT_PASS;
    int file = -1;
    if (asprintf(&side->built, "%s/attest-bench-XXXXXX.so", base && *base ? base : "/tmp") < 0)
        side->built = NULL;
    if (!flags || !side->built || (file = mkstemps(side->built, 3)) < 0)
        code = give_up(session, EXIT_LACKING, "set TMPDIR to a folder that can be written", "no room to build %s",
                       side->candidate.word);
    else if (!build_image(side->candidate.source, flags, side->built, false, log, sizeof log))
        code = give_up(session, EXIT_FAILED, "attest prove says more", "%s does not compile:\n%s", side->candidate.word, log);
    if (file >= 0)
        close(file);
    free(flags);
    return code;
}

/* As the build gate does it. */
static enum exit_code build_cuda(struct session *session, const char *word, struct side *side)
{
    struct gate_result result = {.verdict = VERDICT_INCONCLUSIVE, .details = json_object(), .artefacts = json_object()};
    enum exit_code code = proof_open(session, word, &side->proof);
    if (code == EXIT_PASS) {
        gate_build(&side->proof, &result);
        if (result.verdict != VERDICT_PASS)
            code = give_up(session, result.verdict == VERDICT_FAIL ? EXIT_FAILED : EXIT_LACKING, "attest prove says more", "%s: %s",
                           word, result.sentence);
    }
    side->cuda = true;
    side->contestant = (struct contestant){.name = side->proof.candidate.name, .image = side->proof.candidate.image};
    json_decref(result.details);
    json_decref(result.artefacts);
    return code;
}

static enum exit_code side_open(struct session *session, const char *word, struct side *side)
{
    *side = (struct side){0};
    if (!strchr(word, '.') && !strchr(word, '/'))
        return find_shipped(session, word, side);
    const char *ending = strrchr(word, '.');
    if (ending && (strcmp(ending, ".cu") == 0 || strcmp(ending, ".cubin") == 0 || strcmp(ending, ".ptx") == 0))
        return build_cuda(session, word, side);
    enum exit_code code = candidate_open(session, word, &side->candidate);
    if (code == EXIT_PASS && side->candidate.kind == CANDIDATE_C)
        code = build_side(session, side);
    side->contestant =
        (struct contestant){.name = side->candidate.name, .image = side->built ? side->built : side->candidate.image};
    return code;
}

static void side_close(struct side *side)
{
    if (side->built)
        unlink(side->built);
    free(side->built);
    if (side->candidate.word)
        candidate_close(&side->candidate);
    if (side->proof.session)
        proof_close(&side->proof);
}

/* Takes the one kernel out of the operands, and loads the rest as problems. */
static enum exit_code sort_words(struct session *session, const char **kernel, bool *chosen)
{
    struct options *options = &session->options;
    static const char usage[] = "type: attest bench KERNEL --vs KERNEL [PROBLEM ...]";
    int kept = 0;
    *kernel = NULL;
    if (options->kernel)
        return give_up(session, EXIT_USAGE, usage,
                       "--kernel chooses kernels of the library by a pattern, and --vs compares two by name");
    for (int i = 0; i < options->word_count; i++) {
        if (is_problem(options->words[i])) {
            options->words[kept++] = options->words[i];
            continue;
        }
        if (*kernel)
            return give_up(session, EXIT_USAGE, usage, "one kernel is compared with %s, and got two: %s and %s", options->vs,
                           *kernel, options->words[i]);
        *kernel = options->words[i];
    }
    options->word_count = kept;
    if (!*kernel)
        return give_up(session, EXIT_USAGE, usage, "there is no kernel to compare with %s", options->vs);
    *chosen = kept > 0 || options->suite;
    return *chosen ? problems_load(session, false) : EXIT_PASS;
}

/* The rows of the table. Problems that were asked for and are refused get one as well. */
static void report_shapes(struct session *session, const json_t *details, bool chosen)
{
    static const struct column columns[] = {{"problem", "problem", -20}, {"speed", "verdict", -12}, {"ratio", "ratio", 8},
                                            {"low", "low", 8},           {"high", "high", 8},       {"a_ms", "ms", 10},
                                            {"b_ms", "ms of other", 11}, {"blocks", "blocks", 6}};
    int widths[COUNT_OF(columns)] = {0}, kernel_width;
    json_t *shape;
    size_t index;
    table_widths(session, &widths[0], &kernel_width);
    report_table(&session->report, "shapes", columns, COUNT_OF(columns), widths);
    json_array_foreach(json_object_get(details, "shapes"), index, shape)
    {
        json_t *row = json_copy(shape);
        json_put(row, "a_ms", json_real(1e3 * json_number_value(json_object_get(row, "median_a_s"))));
        json_put(row, "b_ms", json_real(1e3 * json_number_value(json_object_get(row, "median_b_s"))));
        report_row(&session->report, row);
    }
    json_array_foreach(json_object_get(details, "refused"), index, shape)
    {
        if (chosen)
            report_row(&session->report, json_pack("{s:O, s:n, s:[O]}", "problem", json_object_get(shape, "problem"), "speed",
                                                   "notes", json_object_get(shape, "sentence")));
    }
}

static enum exit_code report_measurement(struct session *session, const struct measurement *measurement,
                                         const struct measure_spec *spec, bool chosen)
{
    struct report *report = &session->report;
    const struct suite_verdict *suite = &measurement->suite;
    if (measurement->end != MEASURE_DONE)
        return give_up(session, measurement->end == MEASURE_WRONG ? EXIT_FAILED : EXIT_LACKING, NULL, "%s", measurement->sentence);
    json_t *details = json_object(), *value;
    const char *key;
    measurement_put(measurement, spec, details);
    report_shapes(session, details, chosen);
    report_put(report, "kernel", json_string(spec->a.name));
    report_put(report, "verdict", json_string(speed_name(suite->speed)));
    report_put(report, "sentence", json_string(suite->sentence));
    json_object_foreach(details, key, value)
    {
        if (report->json && strcmp(key, "shapes") != 0)
            report_put(report, key, json_incref(value));
    }
    if (report->json)
        report_put(report, "samples", measurement_samples(measurement, spec));
    report_put(report, "threads", json_integer(spec->threads));
    report_put(report, "seed", json_integer((json_int_t)spec->seed));
    json_decref(details);
    return suite->below_floor ? EXIT_FAILED : suite->speed == SPEED_INCONCLUSIVE ? EXIT_LACKING : EXIT_PASS;
}

enum exit_code versus_run(struct session *session)
{
    struct side a = {0}, b = {0};
    struct measurement measurement = {0};
    struct simulated_clock clock;
    const char *kernel;
    char why[256];
    bool chosen = false;
    if (session->options.clock && !simulated_clock_parse(session->options.clock, &clock, why, sizeof why))
        return give_up(session, EXIT_USAGE, "such as --simulate-clock a=0.99,b=1", "--simulate-clock: %s", why);
    enum exit_code code = sort_words(session, &kernel, &chosen);
    if (code == EXIT_PASS)
        code = side_open(session, kernel, &a);
    if (code == EXIT_PASS)
        code = side_open(session, session->options.vs, &b);
    if (code == EXIT_PASS && a.cuda != b.cuda)
        code = give_up(session, EXIT_USAGE, NULL, "%s and %s do not run on the same device", a.contestant.name, b.contestant.name);
    if (code == EXIT_PASS && !chosen)
        code = suite_load_embedded(session, &session->problems, a.cuda ? &embedded_gpu_speed_suite : &embedded_speed_suite);
    const char *device = session->options.device ? session->options.device : "cuda";
    if (code == EXIT_PASS) {
        struct measure_spec spec = {.a = a.contestant,
                                    .b = b.contestant,
                                    .problems = &session->problems,
                                    .policy = &default_policy,
                                    .device = a.cuda ? device : NULL,
                                    .threads = attest_context_threads(session->context),
                                    .seed = (uint64_t)session->options.seed,
                                    .clock = session->options.clock};
        measure(&spec, &measurement);
        code = report_measurement(session, &measurement, &spec, chosen);
        measurement_free(&measurement);
    }
    side_close(&a);
    side_close(&b);
    return code;
}
