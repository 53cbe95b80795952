/*
 * cmd_verify.c - attest verify: the evidence against itself, and the kernels here against the evidence.
 *
 * First every statement is checked (files and chain: statement.c; contents: audit.c). A statement with a finding proves nothing.
 * Then every kernel of the library needs a statement that says PROVEN of the sources that are here; of these the one that lacks the
 * fewest gates of the present policy is shown, and of equals the newest. If it lacks any, the kernel is BEHIND, and the gates are named.
 * One that was rejected later, with the same sources, is not proven any more. Kernels from elsewhere that have evidence are checked
 * too if their sources are here.
 */
#include "commands.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "verify/audit.h"
#include "evidence/continuation.h"
#include "evidence/decision.h"
#include "evidence/dsse.h"
#include "evidence/evidence_folder.h"
#include "evidence/member.h"
#include "evidence/statement.h"
#include "evidence/policy_number.h"

struct verifying {
    struct session *session;
    struct audit audit;
    json_t *statements;
    char key[KEY_TEXT]; /* "" if any key, or none, will do */
    int is_signed, bad, failed, passed, behind;
};

/* ---- statements ------------------------------------------------------------------------------------------------------------ */

/* Kernels and files must differ in more than capital letters: some file systems, and many readers, take them for the same. */
static void check_case(const struct verifying *verifying, const json_t *entry, json_t *findings)
{
    attest_kernel_info info = {.size = sizeof info};
    const char *kernel = text_at(statement_predicate(entry), "kernel"), *file = text_at(entry, "file");
    const json_t *other;
    size_t index;
    for (size_t i = 0; i < attest_kernel_count(); i++)
        if (attest_kernel_get(i, &info) == ATTEST_OK && strcasecmp(info.name, kernel) == 0 && strcmp(info.name, kernel) != 0)
            json_add(findings, json_text("its kernel is called %s, and that of the library %s", kernel, info.name));
    json_array_foreach(verifying->statements, index, other)
    {
        if (strcasecmp(text_at(other, "file"), file) == 0 && !text_is(other, "file", file)) {
            json_add(findings, json_text("its file and %s differ in capital letters alone", text_at(other, "file")));
            return;
        }
    }
}

/* Checks a statement; what was found is put into its entry as "findings". */
static void check_entry(struct verifying *verifying, json_t *entry)
{
    json_t *findings = json_array();
    const json_t *problem = json_object_get(entry, "problem");
    if (problem)
        json_add(findings, json_incref(json_object_get(entry, "problem")));
    else
        audit_statement(&verifying->audit, entry, findings);
    check_case(verifying, entry, findings);
    if (!problem && verifying->key[0] && !text_is(entry, "key", verifying->key))
        json_add(findings, json_string(json_is_true(json_object_get(entry, "signed")) ? "it is signed with another key"
                                                                                      : "it is not signed"));
    verifying->is_signed += json_is_true(json_object_get(entry, "signed"));
    verifying->bad += json_array_size(findings) > 0;
    json_put(entry, "findings", findings);
}

static void check_statements(struct verifying *verifying)
{
    static const struct column columns[] = {{"file", "statement", -32}, {"line", "line", 4}, {"state", "state", -5}};
    json_t *entry;
    size_t index;
    json_array_foreach(verifying->statements, index, entry) check_entry(verifying, entry);
    if (!verifying->bad)
        return;
    report_table(&verifying->session->report, "findings", columns, COUNT_OF(columns), NULL);
    json_array_foreach(verifying->statements, index, entry)
    {
        json_t *findings = json_object_get(entry, "findings");
        if (json_array_size(findings) > 0)
            report_row(&verifying->session->report,
                       json_pack("{s:O, s:O, s:s, s:O}", "file", json_object_get(entry, "file"), "line",
                                 json_object_get(entry, "line"), "state", "FAIL", "notes", findings));
    }
}

/* ---- kernels --------------------------------------------------------------------------------------------------------------- */

/* Whether the entry is a proof of the kernel that can be relied on. A file that has the name of a kernel of the library is not it.
 */
static bool is_proof_of(const json_t *entry, const char *kernel, bool shipped)
{
    return text_is(statement_predicate(entry), "kind", "shipped") == shipped &&
           json_array_size(json_object_get(entry, "findings")) == 0 && text_is(statement_predicate(entry), "kernel", kernel) &&
           text_is(json_object_get(entry, "statement"), "predicateType", PREDICATE_PROOF);
}

/* The newest proof that the kernel is PROVEN with a sequence below `before`; NULL if there is none. */
static const json_t *proof_before(const struct verifying *verifying, const char *kernel, bool shipped, json_int_t before)
{
    const json_t *entry, *newest = NULL;
    size_t index;
    json_array_foreach(verifying->statements, index, entry)
    {
        if (is_proof_of(entry, kernel, shipped) && text_is(statement_predicate(entry), "verdict", "PROVEN") &&
            statement_sequence(entry) < before && (!newest || statement_sequence(entry) > statement_sequence(newest)))
            newest = entry;
    }
    return newest;
}

/* The gates that a proof lacks, all of them if the records it continues are not in order; a new reference. The sentence is that of
 * continuation_sentence. */
static json_t *missing_of(const struct verifying *verifying, const json_t *entry, char *sentence, size_t size)
{
    char why[256];
    json_t *combined = continuation_combine(verifying->statements, entry, why, sizeof why);
    json_t *missing = continuation_missing(combined);
    continuation_sentence(combined ? combined : statement_predicate(entry), missing, sentence, size);
    json_decref(combined);
    return missing;
}

/* The proof that the kernel is PROVEN whose sources are here and that lacks the fewest gates, the newest of equals; else the newest at
 * all; else NULL. Comparing sources may take a compiler: it is done only for a proof that lacks fewer gates than the best so far. */
static const json_t *find_proof(struct verifying *verifying, const char *kernel, bool shipped, enum sameness *sameness, char *why,
                                size_t why_size)
{
    const json_t *newest = proof_before(verifying, kernel, shipped, INT64_MAX), *best = NULL;
    size_t fewest = 0;
    for (const json_t *entry = newest; entry; entry = proof_before(verifying, kernel, shipped, statement_sequence(entry))) {
        char sentence[1024], unused[512];
        json_t *missing = missing_of(verifying, entry, unused, sizeof unused);
        size_t count = json_array_size(missing);
        json_decref(missing);
        if (best && count >= fewest)
            continue;
        enum sameness this = audit_sources(&verifying->audit, statement_predicate(entry), sentence, sizeof sentence);
        bool is_here = this == SAME_SOURCES || this == SAME_IMAGE;
        if (entry == newest || is_here) {
            *sameness = this;
            snprintf(why, why_size, "%s", sentence);
        }
        if (is_here) {
            best = entry;
            fewest = count;
        }
        if (best && fewest == 0)
            break;
    }
    return best ? best : newest;
}

/* A rejection of the same image or the same sources that came after the proof; NULL if there is none. */
static const json_t *find_rejection(const struct verifying *verifying, const char *kernel, bool shipped, const json_t *proof)
{
    const json_t *entry, *proven = json_object_get(statement_predicate(proof), "candidate");
    size_t index;
    json_array_foreach(verifying->statements, index, entry)
    {
        const json_t *candidate = json_object_get(statement_predicate(entry), "candidate");
        if (is_proof_of(entry, kernel, shipped) && text_is(statement_predicate(entry), "verdict", "REJECTED") &&
            statement_sequence(entry) > statement_sequence(proof) &&
            ((*text_at(proven, "closure") && text_is(candidate, "closure", text_at(proven, "closure"))) ||
             (*text_at(proven, "image") && text_is(candidate, "image", text_at(proven, "image")))))
            return entry;
    }
    return NULL;
}

static void add_note(json_t *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_note(json_t *notes, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_add(notes, json_string(text));
}

static void check_kernel(struct verifying *verifying, const char *kernel, bool shipped)
{
    enum sameness sameness = NOT_HERE;
    char why[1024] = "";
    const json_t *proof = find_proof(verifying, kernel, shipped, &sameness, why, sizeof why);
    const json_t *rejection = proof ? find_rejection(verifying, kernel, shipped, proof) : NULL,
                 *record = statement_predicate(proof);
    json_t *notes = json_array(), *row = json_pack("{s:s, s:b}", "kernel", kernel, "shipped", (int)shipped);
    const char *state = "PASS";
    if (!proof && !shipped) { /* it was tried and not proven, and nothing relies on it */
        json_decref(notes);
        json_decref(row);
        return;
    }
    if (!proof) {
        state = "FAIL";
        add_note(notes, "a kernel of the library without a record that says PROVEN; make one: attest prove %s --record", kernel);
    } else if (sameness == CHANGED || (sameness == NOT_HERE && shipped)) {
        state = "FAIL";
        add_note(notes, "%s; prove it again: attest prove %s --record", why, text_at(record, "word"));
    } else if (rejection) {
        state = "FAIL";
        add_note(notes, "it was rejected after it was proven (%s, line %d): %s", text_at(rejection, "file"),
                 (int)json_integer_value(json_object_get(rejection, "line")), text_at(statement_predicate(rejection), "decision"));
    } else if (sameness == NOT_HERE) {
        state = "NOT HERE";
        add_note(notes, "%s: nothing to compare", why);
    } else if (*why) {
        add_note(notes, "%s", why);
    }
    if (proof && strcmp(state, "PASS") == 0) {
        char sentence[512];
        json_t *missing = missing_of(verifying, proof, sentence, sizeof sentence);
        if (*sentence) {
            state = "BEHIND";
            add_note(notes, "%s; run them: attest prove %s --record --missing", sentence, text_at(record, "word"));
        }
        json_put(row, "missing", missing);
    }
    if (proof) {
        json_put(row, "policy_number", json_integer(record_policy(record)));
        json_put(row, "device", json_string(text_at(json_object_get(record, "device"), "class")));
        json_put(row, "proven", json_string(text_at(record, "finished")));
        json_put(row, "record", json_text("%.12s", text_at(proof, "digest")));
        json_put(row, "signed", json_incref(json_object_get(proof, "signed")));
    }
    verifying->failed += strcmp(state, "FAIL") == 0;
    verifying->behind += strcmp(state, "BEHIND") == 0;
    verifying->passed += strcmp(state, "PASS") == 0 || strcmp(state, "BEHIND") == 0;
    json_put(row, "state", json_string(state));
    json_put(row, "notes", notes);
    report_row(&verifying->session->report, row);
}

static bool asked_for(const struct options *options, const char *kernel)
{
    for (int i = 0; i < options->word_count; i++)
        if (kernel_matches(options->words[i], kernel))
            return true;
    return options->word_count == 0;
}

/* The kernels of the library in its order, then those that only the evidence knows: {kernel: shipped}. Candidates are not shipped. */
static json_t *list_kernels(const struct verifying *verifying)
{
    attest_kernel_info info = {.size = sizeof info};
    json_t *kernels = json_object(), *entry;
    size_t index;
    for (size_t i = 0; i < attest_kernel_count(); i++)
        if (attest_kernel_get(i, &info) == ATTEST_OK && strcmp(info.backend, "ref") != 0)
            json_put(kernels, info.name, json_boolean(!info.candidate));
    json_array_foreach(verifying->statements, index, entry)
    {
        const char *kernel = text_at(statement_predicate(entry), "kernel");
        if (*kernel && !json_object_get(kernels, kernel))
            json_put(kernels, kernel, json_false());
    }
    return kernels;
}

static enum exit_code check_kernels(struct verifying *verifying)
{
    static const struct column columns[] = {{"kernel", "kernel", -24}, {"device", "proven on", -14}, {"proven", "when", -20},
                                            {"record", "record", -12}, {"signed", "signed", -6},     {"state", "state", -8}};
    const struct options *options = &verifying->session->options;
    json_t *kernels = list_kernels(verifying), *shipped;
    const char *kernel;
    int count = 0;
    json_object_foreach(kernels, kernel, shipped) count += asked_for(options, kernel);
    if (count == 0) {
        json_decref(kernels);
        return give_up(verifying->session, EXIT_USAGE, "attest list names the kernels of the library",
                       "no kernel of the library or of the evidence is called %s", options->words[0]);
    }
    report_table(&verifying->session->report, "kernels", columns, COUNT_OF(columns), NULL);
    json_object_foreach(kernels, kernel, shipped)
    {
        if (asked_for(options, kernel))
            check_kernel(verifying, kernel, json_is_true(shipped));
    }
    json_decref(kernels);
    return EXIT_PASS;
}

enum exit_code cmd_verify(struct session *session)
{
    const struct options *options = &session->options;
    struct verifying verifying = {.session = session, .audit = {.evidence = options->evidence}};
    struct report *report = &session->report;
    char why[1024] = "";
    if (options->key && !key_read_public(options->key, verifying.key, why, sizeof why))
        return give_up(session, EXIT_USAGE, NULL, "%s", why);
    verifying.statements = statements_load(options->evidence, why, sizeof why);
    if (!verifying.statements)
        return give_up(session, EXIT_FAILED, NULL, "%s", why);
    verifying.audit.statements = verifying.statements;
    size_t statements = json_array_size(verifying.statements);
    evidence_check(options->evidence, verifying.statements); /* whatever is wrong in the folder is told with the statements */
    check_statements(&verifying);
    enum exit_code code = check_kernels(&verifying);
    if (code == EXIT_PASS) {
        bool good = !verifying.bad && !verifying.failed;
        report_put(report, "statements", json_integer((json_int_t)statements));
        report_put(report, "signed", json_integer(verifying.is_signed));
        report_put(report, "artefacts", json_integer(verifying.audit.artefacts));
        report_put(report, "omitted", json_integer(verifying.audit.omitted));
        report_put(report, "kernels_proven", json_integer(verifying.passed));
        report_put(report, "kernels_behind", json_integer(verifying.behind));
        report_put(report, "policy_number", json_integer(POLICY_NUMBER));
        report_put(report, "kernels_failed", json_integer(verifying.failed));
        report_put(report, "statements_bad", json_integer(verifying.bad));
        report_put(report, "verdict", json_string(good ? "PASS" : "FAIL"));
        code = good ? EXIT_PASS : EXIT_FAILED;
    }
    audit_free(&verifying.audit);
    json_decref(verifying.statements);
    return code;
}
