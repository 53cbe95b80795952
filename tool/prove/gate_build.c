/*
 * gate_build.c - the build gate: compiles clean, exports one function, loads, and is what it says.
 *
 * details: log (what the compiler said, cut), exports, imports (names), needs_missing (features this machine lacks).
 * artefacts: build_log, image. Fills candidate.image and candidate.facts.
 */
#include "gate.h"

#include <attest_kernel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build.h"
#include "cuda_build.h"
#include "evidence/digest.h"
#include "proof.h"

/* The names that `nm` prints for one kind of symbols, as an array. NULL if there is no nm. */
static json_t *symbols(const char *image, const char *kind)
{
    char log[BUILD_LOG_SIZE], *rest = NULL;
    char *argv[] = {(char *)(uintptr_t) "nm", (char *)(uintptr_t) "-D", (char *)(uintptr_t) "-P",
                    (char *)(uintptr_t)kind,  (char *)(uintptr_t)image, NULL};
    if (build_command(argv, 60, log, sizeof log) != 0)
        return NULL;
    json_t *names = json_array();
    for (char *line = strtok_r(log, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        line[strcspn(line, " @")] = '\0';
        json_add(names, json_string(line));
    }
    return names;
}

static bool compile_candidate(struct proof *proof, struct gate_result *result)
{
    struct candidate *candidate = &proof->candidate;
    char log[BUILD_LOG_SIZE], compiler[256], line[480];
    char *flags = candidate_flags(candidate->source), *all = flags ? build_flags(flags) : NULL;
    char *image = gate_path(proof, "%s.so", candidate->name);
    bool built = false;
    build_compiler(compiler, sizeof compiler);
    if (!all || !image) {
        gate_say(result, VERDICT_INCONCLUSIVE, "%s cannot be read, or memory ran out", candidate->source);
    } else if (!*compiler) {
        gate_say(result, VERDICT_INCONCLUSIVE, "no C compiler here; install gcc, or set ATTEST_CC");
    } else if (!(built = build_image(candidate->source, flags, image, false, log, sizeof log))) {
        build_first_error(log, line, sizeof line);
        gate_say(result, VERDICT_FAIL, "it does not compile without warnings: %s", line);
    }
    if (all && *compiler) {
        json_put(result->details, "log", json_stringn(log, strnlen(log, 2000)));
        gate_write(proof, result, "build_log", "build.log", log);
    }
    if (built) {
        json_t *sources = build_sources(candidate->source, flags);
        char digest[DIGEST_TEXT] = "";
        json_t *closure = json_pack("{s:O, s:s}", "sources", sources, "flags", all);
        if (closure)
            digest_of_json(closure, digest);
        json_decref(closure);
        json_put(candidate->facts, "source", json_string(candidate->source));
        json_put(candidate->facts, "sources", sources);
        json_put(candidate->facts, "flags", json_string(all));
        json_put(candidate->facts, "closure", json_string(digest));
        json_put(candidate->facts, "compiler", json_string(compiler));
        candidate->image = image;
        image = NULL;
    }
    free(flags);
    free(all);
    free(image);
    return built;
}

/* One function, and it is the right one. A prebuilt image may export more. */
static bool exports_are_right(struct proof *proof, struct gate_result *result)
{
    json_t *exports = symbols(proof->candidate.image, "--defined-only"),
           *imports = symbols(proof->candidate.image, "--undefined-only");
    size_t i;
    json_t *name;
    bool there = false, other = false;
    if (!exports) {
        gate_say(result, VERDICT_INCONCLUSIVE, "nm cannot read the image, or is not here; install binutils");
        json_decref(imports);
        return false;
    }
    json_array_foreach(exports, i, name)
    {
        bool entry = strcmp(json_string_value(name), ATTEST_CPU_KERNEL_ENTRY) == 0;
        there = there || entry;
        if (!entry && !other && proof->candidate.source) {
            gate_say(result, VERDICT_FAIL,
                     "it exports %s too; a kernel exports " ATTEST_CPU_KERNEL_ENTRY " alone: make the rest static",
                     json_string_value(name));
            other = true;
        }
    }
    json_put(result->details, "exports", exports);
    json_put(result->details, "imports", imports ? imports : json_array());
    if (!there)
        gate_say(result, VERDICT_FAIL, "it does not export " ATTEST_CPU_KERNEL_ENTRY "; see attest_kernel.h");
    return there && !other;
}

static json_t *dtype_names(uint32_t dtypes)
{
    json_t *names = json_array();
    if (dtypes & ATTEST_TAKES_F32)
        json_add(names, json_string("f32"));
    if (dtypes & ATTEST_TAKES_F16)
        json_add(names, json_string("f16"));
    if (dtypes & ATTEST_TAKES_BF16)
        json_add(names, json_string("bf16"));
    return names;
}

static bool loads(struct proof *proof, struct gate_result *result)
{
    struct candidate *candidate = &proof->candidate;
    struct executor *executor = gate_open(proof, GUARD_BANDS, result);
    if (!executor)
        return false;
    executor_close(executor, NULL);
    const struct kernel_facts *facts = &proof->facts;
    json_put(candidate->facts, "name", json_string(facts->name));
    json_put(candidate->facts, "needs", json_string(facts->needs));
    json_put(candidate->facts, "summary", json_string(facts->summary));
    json_put(candidate->facts, "dtypes", dtype_names(facts->dtypes));
    json_put(candidate->facts, "refuses", flag_names(facts->refuses));
    return true;
}

static void name_image(struct proof *proof, struct gate_result *result)
{
    char digest[DIGEST_TEXT] = "";
    struct stat status = {0};
    digest_of_file(proof->candidate.image, digest);
    stat(proof->candidate.image, &status);
    json_put(result->artefacts, "image", json_string(proof->candidate.image)); /* kept: it may become the champion to beat */
    json_put(proof->candidate.facts, "image", json_string(digest));
    json_put(proof->candidate.facts, "image_bytes", json_integer((json_int_t)status.st_size));
}

void gate_build(struct proof *proof, struct gate_result *result)
{
    char missing[64];
    if (proof->candidate.cuda) {
        cuda_gate_build(proof, result);
        return;
    }
    if (proof->candidate.source && !compile_candidate(proof, result))
        return;
    name_image(proof, result);
    if (!exports_are_right(proof, result) || !loads(proof, result))
        return;
    missing_features(proof->facts.needs, attest_context_features(proof->session->context), missing, sizeof missing);
    if (*missing) {
        json_put(result->details, "needs_missing", json_string(missing));
        gate_say(result, VERDICT_PASS, "compiles without warnings and exports one function; needs %s, which is not to be had here",
                 missing);
        return;
    }
    gate_say(result, VERDICT_PASS,
             proof->candidate.source ? "compiles without warnings, exports one function, loads"
                                     : "exports the entry function and loads; it was built elsewhere");
}
