/*
 * cmd_postmortem.c - attest postmortem: see evidence/postmortem.c.
 */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>

#include "evidence/postmortem.h"
#include "evidence/store.h"

static enum exit_code print_postmortem(struct session *session, const json_t *records)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream)
        postmortem_write(stream, records);
    if (!stream || fclose(stream) != 0) {
        free(text);
        return give_up(session, EXIT_INTERNAL, NULL, "out of memory");
    }
    if (session->report.json)
        report_put(&session->report, "postmortem", json_string(text));
    else
        fputs(text, stdout);
    free(text);
    return EXIT_PASS;
}

enum exit_code cmd_postmortem(struct session *session)
{
    const struct options *options = &session->options;
    char why[1024] = "";
    if (options->word_count != 1)
        return give_up(session, EXIT_USAGE, "attest log names the kernels that were tried",
                       "postmortem takes one KERNEL, and got %d words", options->word_count);
    if (!store_exists(options->state))
        return give_up(session, EXIT_LACKING, "attest prove KERNEL runs the gates and keeps what they find",
                       "%s has no run database: nothing was proven here", options->state);
    struct store *store = store_open(options->state, why, sizeof why);
    if (!store)
        return give_up(session, EXIT_LACKING, NULL, "%s", why);
    json_t *records = store_records(store, options->words[0], 0);
    enum exit_code code;
    if (!records)
        code = give_up(session, EXIT_LACKING, NULL, "%s", store_error(store));
    else if (json_array_size(records) == 0)
        code = give_up(session, EXIT_USAGE, "attest log names the kernels that were tried", "there is no run of %s in %s",
                       options->words[0], options->state);
    else
        code = print_postmortem(session, records);
    json_decref(records);
    store_close(store);
    return code;
}
