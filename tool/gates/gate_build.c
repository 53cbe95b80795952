/*
 * gate_build.c - the build gate: compiles clean, is a pure function of its arguments as far as an image can show it (purity.c),
 * loads, and is what it says. Nothing of the image runs before it has been judged.
 *
 * details: log (what the compiler said, cut), compiler_sandbox (version of Landlock; 0: none here), exports, imports, needed (names),
 * instructions, indirect (numbers), needs_missing (features this machine lacks).
 * artefacts: build_log, image. Fills candidate.image and candidate.facts.
 */
#include "gate.h"

#include <attest_kernel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build/build.h"
#include "build/compiler_flags.h"
#include "cuda_build.h"
#include "base/digest.h"
#include "proof.h"
#include "build/purity.h"
#include "run/sandbox.h"

#define RULE_MARK "error: " /* begins what build_image says of rules, in contrast to a compiler, which begins with a file */

static bool compile_candidate(struct proof *proof, struct gate_result *result)
{
    struct candidate *candidate = &proof->candidate;
    char log[BUILD_LOG_SIZE], compiler[256], line[480];
    char *flags = candidate_flags(candidate->source), *all = flags ? build_flags(flags) : NULL;
    char *image = gate_path(proof, "%s.so", candidate->name);
    bool built = false, broken = false;
    build_compiler(compiler, sizeof compiler);
    if (!all || !image) {
        gate_say(result, VERDICT_INCONCLUSIVE, "%s cannot be read, or memory ran out", candidate->source);
    } else if (!*compiler) {
        gate_say(result, VERDICT_INCONCLUSIVE, "no C compiler here; install gcc, or set ATTEST_CC");
    } else if (!compiler_flags_check(flags, log, sizeof log)) {
        gate_say(result, VERDICT_FAIL, "%.600s", log);
    } else if (!(built = build_image(candidate->source, flags, image, BUILD_SHIPPED, log, sizeof log))) {
        bool rule = strncmp(log, RULE_MARK, sizeof RULE_MARK - 1) == 0;
        build_first_error(log, line, sizeof line);
        gate_say(result, VERDICT_FAIL, "%s%s%s",
                 rule ? "" : "it does not compile without warnings: ", line + (rule ? sizeof RULE_MARK - 1 : 0),
                 strstr(line, "Permission denied")
                     ? "; compilers read the folders of the system, of the source and those that -I names"
                     : "");
        if (rule && proof->past_build) {
            build_ignore_rules();
            built = build_image(candidate->source, flags, image, BUILD_SHIPPED, log, sizeof log);
            broken = true;
        }
    }
    if (all && *compiler) {
        json_put(result->details, "compiler_sandbox", json_integer(sandbox_version()));
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
    return built && !broken;
}

/* ---- purity ----------------------------------------------------------------------------------------------------------------- */

/* The function or variable that an address of the image belongs to, such as " (in add_keys)", from an image with names. */
static void name_place(struct proof *proof, uint64_t address, char *text, size_t size)
{
    char log[BUILD_LOG_SIZE], *flags = candidate_flags(proof->candidate.source), *image = gate_path(proof, "named.so"),
                              *rest = NULL;
    const char *argv[] = {"nm", "-n", image, NULL};
    text[0] = '\0';
    if (flags && image && build_image(proof->candidate.source, flags, image, BUILD_NAMED, log, sizeof log) &&
        build_command((char *const *)(uintptr_t)argv, 60, log, sizeof log) == 0)
        for (char *line = strtok_r(log, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
            char *end = NULL;
            uint64_t at = strtoull(line, &end, 16);
            if (end == line || strlen(end) < 4 || at > address)
                continue;
            snprintf(text, size, " (in %.100s)", end + 3);
        }
    free(flags);
    free(image);
}

/* A kernel is a pure function of its arguments, and the image shows it. */
static bool is_pure(struct proof *proof, struct gate_result *result)
{
    struct purity_finding finding;
    char log[1024], place[128] = "", *empty = gate_path(proof, "empty.so");
    bool there = empty && build_empty_image(empty, log, sizeof log);
    enum purity purity = purity_judge(proof->candidate.image, there ? empty : NULL, result->details, &finding);
    free(empty);
    if (purity == PURITY_BROKEN && finding.address && proof->candidate.source)
        name_place(proof, finding.address, place, sizeof place);
    if (purity != PURITY_HOLDS)
        gate_say(result, purity == PURITY_BROKEN ? VERDICT_FAIL : VERDICT_INCONCLUSIVE, "%s%s", finding.sentence, place);
    return purity == PURITY_HOLDS;
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
    struct executor *executor = gate_open(proof, GUARD_DRAWN, result);
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
    if (!is_pure(proof, result) || !loads(proof, result))
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
