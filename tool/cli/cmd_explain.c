/*
 * cmd_explain.c - attest explain: which kernel runs a problem, and why not the others.
 */
#include "run/runner.h"

#include <stdio.h>
#include <string.h>

/* The sentence for every kernel: chosen, could but comes later, or what it refuses. `chosen` may be NULL: then none runs. */
static json_t *explain_kernels(struct session *session, const attest_problem *problem, const char *chosen)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < attest_kernel_count(); i++) {
        attest_choice choice = {.size = sizeof choice};
        attest_kernel_info info = {.size = sizeof info};
        char text[640] = "";
        if (attest_kernel_get(i, &info) != ATTEST_OK)
            continue;
        if (!chosen || attest_explain_kernel(session->context, problem, session->options.kernel, i, &choice) != ATTEST_OK)
            choice.status = (uint32_t)attest_kernel_refusal(session->context, i, problem, choice.reason, sizeof choice.reason);
        const bool oracle = strcmp(info.backend, "ref") == 0;
        bool matches = !session->options.kernel || kernel_matches(session->options.kernel, info.name);
        if (choice.chosen)
            snprintf(text, sizeof text, "chosen%s%s%s",
                     choice.proven ? ", proven on "
                     : oracle      ? ""
                                   : ", not proven yet",
                     choice.proven ? choice.proven : "", choice.proven && !choice.proven_here ? ", not here" : "");
        else if (choice.status == ATTEST_OK && chosen && matches)
            snprintf(text, sizeof text, "takes it too, but %s comes first", chosen);
        else if (choice.status == ATTEST_OK)
            snprintf(text, sizeof text, "takes it, but does not match --kernel %s", session->options.kernel);
        else
            snprintf(text, sizeof text, "%s", choice.reason);
        json_t *row = json_pack("{s:s, s:s, s:s}", "kernel", info.name, "status", attest_status_name((attest_status)choice.status),
                                "why", text);
        if (*choice.how)
            json_put(row, "how", json_string(choice.how));
        json_add(rows, row);
    }
    return rows;
}

/* One problem, as text: its values and a table. As JSON: an object in the array "problems". */
static void explain_text(struct session *session, json_t *object)
{
    static const struct column columns[] = {{"kernel", "kernel", -24}, {"why", "why", -12}};
    struct report *report = &session->report;
    const char *key;
    json_t *value;
    size_t index;
    json_object_foreach(object, key, value) if (!json_is_array(value)) report_put(report, key, json_incref(value));
    report_table(report, "kernels", columns, COUNT_OF(columns), NULL);
    json_array_foreach(json_object_get(object, "kernels"), index, value) report_row(report, json_incref(value));
    json_decref(object);
}

enum exit_code cmd_explain(struct session *session)
{
    enum exit_code worst = EXIT_PASS;
    if (session->report.json)
        report_table(&session->report, "problems", NULL, 0, NULL);
    for (int i = 0; i < session->problems.count; i++) {
        const struct problem_entry *entry = &session->problems.entries[i];
        attest_plan *plan = NULL;
        char printed[ATTEST_PROBLEM_TEXT] = "";
        attest_status status = attest_plan_create(session->context, &entry->problem, session->options.kernel, &plan);
        const char *why = attest_context_detail(session->context);
        const char *kernel = status == ATTEST_OK ? attest_plan_kernel(plan) : NULL;
        attest_status print_status = attest_problem_print(&entry->problem, printed, sizeof printed);
        status = print_status != ATTEST_OK ? print_status : status;
        if (status != ATTEST_OK && exit_code_of(status) != EXIT_LACKING) {
            attest_plan_destroy(plan);
            return give_up(session, exit_code_of(status), NULL, "%s: %s", entry->text, why);
        }
        json_t *object = json_pack("{s:s, s:s, s:s?, s:o, s:i}", "problem", entry->text, "in_full", printed, "kernel", kernel,
                                   "workspace", json_integer(kernel ? (json_int_t)attest_plan_workspace_size(plan) : 0), "threads",
                                   attest_context_threads(session->context));
        if (!kernel) {
            worst = EXIT_LACKING;
            json_put(object, "why_not", json_string(why));
        }
        json_put(object, "kernels", explain_kernels(session, &entry->problem, kernel));
        attest_plan_destroy(plan);
        if (session->report.json) {
            report_row(&session->report, object);
        } else {
            printf("%s", i ? "\n" : "");
            explain_text(session, object);
        }
    }
    return worst;
}
