/*
 * cmd_log.c - attest log: the engineering log, every run of the run database in the order in which they began.
 */
#include "commands.h"

#include <string.h>

#include "evidence/history.h"
#include "evidence/member.h"
#include "evidence/store.h"

static bool asked_for(const struct options *options, const char *kernel)
{
    for (int i = 0; i < options->word_count; i++)
        if (kernel_matches(options->words[i], kernel))
            return true;
    return options->word_count == 0;
}

/* The run before this one of the same kernel; `records` are newest first. */
static const json_t *run_before(const json_t *records, size_t at)
{
    const char *kernel = text_at(json_array_get(records, at), "kernel");
    for (size_t i = at + 1; i < json_array_size(records); i++)
        if (text_is(json_array_get(records, i), "kernel", kernel))
            return json_array_get(records, i);
    return NULL;
}

static json_t *row_of(const struct report *report, const json_t *records, size_t at)
{
    json_t *record = json_array_get(records, at);
    char change[320], gates[512];
    history_change(record, run_before(records, at), change, sizeof change);
    history_gates(record, gates, sizeof gates);
    json_t *row =
        json_pack("{s:O, s:s, s:s, s:s, s:s, s:s, s:s}", "run", json_object_get(record, "run"), "when", text_at(record, "started"),
                  "kernel", text_at(record, "kernel"), "changed", change, "verdict", text_at(record, "verdict"), "champion",
                  text_at(record, "champion"), "decision", text_at(record, "decision"));
    json_put(row, "device", json_string(text_at(json_object_get(record, "device"), "class")));
    if (report->json)
        json_put(row, "gates", json_incref(json_object_get(record, "gates")));
    else
        json_put(row, "notes", json_pack("[s, s]", *gates ? gates : "no gate ended", text_at(record, "decision")));
    return row;
}

static enum exit_code print_log(struct session *session, const json_t *records)
{
    static const struct column columns[] = {{"run", "run", 5},
                                            {"when", "when", -20},
                                            {"kernel", "kernel", -24},
                                            {"changed", "what changed", -24},
                                            {"verdict", "verdict", -12}};
    size_t count = json_array_size(records), shown = 0;
    report_table(&session->report, "runs", columns, COUNT_OF(columns), NULL);
    for (size_t i = count; i-- > 0;) {
        if (!asked_for(&session->options, text_at(json_array_get(records, i), "kernel")))
            continue;
        report_row(&session->report, row_of(&session->report, records, i));
        shown++;
    }
    if (!shown && session->options.word_count > 0)
        return give_up(session, EXIT_USAGE, "attest log names the kernels that were tried", "there is no run of %s in %s",
                       session->options.words[0], session->options.state);
    return EXIT_PASS;
}

enum exit_code cmd_log(struct session *session)
{
    const struct options *options = &session->options;
    char why[1024] = "";
    if (!store_exists(options->state))
        return give_up(session, EXIT_LACKING, "attest prove KERNEL runs the gates and keeps what they find",
                       "%s has no run database: nothing was proven here", options->state);
    struct store *store = store_open(options->state, why, sizeof why);
    if (!store)
        return give_up(session, EXIT_LACKING, NULL, "%s", why);
    json_t *records = store_records(store, NULL, 0);
    enum exit_code code = records ? print_log(session, records) : give_up(session, EXIT_LACKING, NULL, "%s", store_error(store));
    json_decref(records);
    store_close(store);
    return code;
}
