/*
 * cmd_champion.c - attest champion: who reigns, and who reigned before; restoring an earlier champion; the table for the library.
 */
#include "commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/champions.h"
#include "evidence/member.h"
#include "evidence/objects.h"
#include "evidence/statement.h"

static enum exit_code restore(struct session *session)
{
    const struct options *options = &session->options;
    char why[1024] = "";
    json_t *restored = json_array(), *row;
    size_t index;
    enum exit_code code = champion_restore(options->evidence, options->restore, options->sign, restored, why, sizeof why);
    if (code != EXIT_PASS)
        code = give_up(session, code, code == EXIT_USAGE ? "attest champion lists who reigns and who reigned before" : NULL, "%s",
                       why);
    json_array_foreach(restored, index, row)
    {
        if (!session->report.json)
            report_put(&session->report, "restored",
                       json_text("%s reigns again on %s in %s, instead of %s", options->restore, text_at(row, "device"),
                                 text_at(row, "problem_class"), text_at(row, "replaces")));
    }
    if (session->report.json)
        report_put(&session->report, "restored", json_incref(restored));
    json_decref(restored);
    return code;
}

static enum exit_code write_table(struct session *session, const json_t *champions, const json_t *statements)
{
    const char *path = session->options.write;
    char *text = champions_def(champions, statements);
    bool written = text && file_replace(path, text, strlen(text));
    int reason = errno;
    free(text);
    if (!written)
        return give_up(session, EXIT_USAGE, NULL, "%s cannot be written: %s", path, strerror(reason));
    report_put(&session->report, "written", json_string(path));
    return EXIT_PASS;
}

/* One row a class, with the reigns before it as notes, newest first. */
static void list(struct session *session, json_t *champions)
{
    static const struct column columns[] = {{"device", "device", -14},
                                            {"problem_class", "problems", -10},
                                            {"kernel", "champion", -24},
                                            {"since", "since", -20},
                                            {"model", "proven on", -9}};
    json_t *champion, *reign;
    size_t index, at;
    report_table(&session->report, "champions", columns, COUNT_OF(columns), NULL);
    json_array_foreach(champions, index, champion)
    {
        json_t *row = json_copy(champion), *history = json_object_get(champion, "history"), *notes = json_array();
        if (!session->report.json) {
            size_t count = json_array_size(history);
            for (at = count; at-- > 0;) {
                reign = json_array_get(history, at);
                json_add(notes, json_text("%s %s: %s (record %.12s)", at + 1 == count ? "now   " : "before",
                                          text_at(reign, "kernel"), text_at(reign, "decision"), text_at(reign, "digest")));
            }
            json_put(row, "notes", notes);
        } else {
            json_decref(notes);
        }
        report_row(&session->report, row);
    }
}

enum exit_code cmd_champion(struct session *session)
{
    const struct options *options = &session->options;
    char why[1024] = "";
    if (options->restore && options->write)
        return give_up(session, EXIT_USAGE, "restore first, then write", "--restore and --write are two steps");
    if (options->restore)
        return restore(session);
    json_t *statements = statements_load(options->evidence, why, sizeof why), *entry;
    size_t index, problems = 0;
    if (!statements)
        return give_up(session, EXIT_LACKING, NULL, "%s", why);
    json_array_foreach(statements, index, entry) problems += json_object_get(entry, "problem") != NULL;
    json_t *champions = champions_list(statements);
    enum exit_code code = EXIT_PASS;
    if (problems)
        code = give_up(session, EXIT_FAILED, "type: attest verify", "%zu statements of %s are not as they were recorded", problems,
                       options->evidence);
    else if (options->write)
        code = write_table(session, champions, statements);
    else if (json_array_size(champions) == 0)
        code = give_up(session, EXIT_LACKING, "attest prove 'cpu_fwd_*' --record proves kernels and promotes them",
                       "nobody reigns: %s has no promotion", options->evidence);
    else
        list(session, champions);
    json_decref(champions);
    json_decref(statements);
    return code;
}
