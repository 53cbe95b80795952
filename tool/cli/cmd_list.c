/*
 * cmd_list.c - attest list: all kernels, what they need, and whether they run here.
 */
#include "commands.h"

#include <string.h>

enum exit_code cmd_list(struct session *session)
{
    static const struct column columns[] = {
        {"kernel", "kernel", -24}, {"needs", "needs", -12}, {"here", "here", -4}, {"summary", "how it works", -12}};
    attest_kernel_info info = {.size = sizeof info};
    int widths[COUNT_OF(columns)] = {0};
    for (size_t i = 0; i < attest_kernel_count(); i++)
        if (attest_kernel_get(i, &info) == ATTEST_OK &&
            (!session->options.kernel || kernel_matches(session->options.kernel, info.name))) {
            widths[0] = widths[0] > (int)strlen(info.name) ? widths[0] : (int)strlen(info.name);
            widths[1] = widths[1] > (int)strlen(info.needs) ? widths[1] : (int)strlen(info.needs);
        }
    report_table(&session->report, "kernels", columns, COUNT_OF(columns), widths);
    for (size_t i = 0; i < attest_kernel_count(); i++) {
        char missing[128];
        attest_status status = attest_kernel_get(i, &info);
        if (status != ATTEST_OK)
            return give_up(session, exit_code_of(status), NULL, "kernel %zu: %s", i, attest_status_name(status));
        if (session->options.kernel && !kernel_matches(session->options.kernel, info.name))
            continue;
        kernel_missing(session, &info, missing, sizeof missing);
        json_t *row = json_pack("{s:s, s:s, s:s, s:b, s:s, s:s}", "kernel", info.name, "backend", info.backend, "needs", info.needs,
                                "here", !missing[0], "missing", missing, "summary", info.summary);
        json_put(row, "candidate", json_boolean(info.candidate));
        if (info.candidate)
            json_put(row, "notes", json_pack("[s]", "a candidate: not proven yet"));
        report_row(&session->report, row);
    }
    return EXIT_PASS;
}
