/*
 * session.c - what commands share: how they end in an error, and questions about kernels.
 */
#include "tool.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum exit_code give_up(struct session *session, enum exit_code code, const char *hint, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    progress_clear();
    fflush(stdout);
    fprintf(stderr, "attest%s%s: %s\n", session->command ? " " : "", session->command ? session->command->name : "", text);
    if (hint)
        fprintf(stderr, "    %s\n", hint);
    if (session->report.json) {
        report_put(&session->report, "error", json_string(text));
        if (hint)
            report_put(&session->report, "hint", json_string(hint));
    }
    return code;
}

enum exit_code exit_code_of(attest_status status)
{
    switch (status) {
    case ATTEST_OK:
        return EXIT_PASS;
    case ATTEST_ERROR_ARGUMENT:
    case ATTEST_ERROR_PARSE:
        return EXIT_USAGE;
    case ATTEST_ERROR_UNSUPPORTED:
    case ATTEST_ERROR_UNAVAILABLE:
    case ATTEST_ERROR_MEMORY:
        return EXIT_LACKING;
    case ATTEST_ERROR_WORKSPACE:
    case ATTEST_ERROR_INTERNAL:
        break;
    }
    return EXIT_INTERNAL;
}

bool kernel_matches(const char *glob, const char *name)
{
    return fnmatch(glob, name, 0) == 0;
}

/* A pattern that no kernel of this build has is a slip of the keyboard, on any machine. */
enum exit_code kernels_check(struct session *session)
{
    const char *glob = session->options.kernel;
    const char *names[64];
    int count = 0;
    attest_kernel_info info = {.size = sizeof info};
    if (!glob)
        return EXIT_PASS;
    for (size_t i = 0; i < attest_kernel_count(); i++) {
        if (attest_kernel_get(i, &info) != ATTEST_OK)
            continue;
        if (kernel_matches(glob, info.name))
            return EXIT_PASS;
        if (count < COUNT_OF(names))
            names[count++] = info.name;
    }
    const char *near = nearest_word(glob, names, count);
    char hint[256];
    snprintf(hint, sizeof hint, near ? "did you mean --kernel %s?" : "type: attest list", near);
    return give_up(session, EXIT_USAGE, hint, "no kernel of this build is called %s", glob);
}

void missing_features(const char *needs, const char *features, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    while (*needs) {
        size_t length = strcspn(needs, ",");
        bool found = false;
        for (const char *at = features; *at && !found;) {
            size_t word = strcspn(at, ",");
            found = word == length && strncmp(at, needs, length) == 0;
            at += word + (at[word] == ',');
        }
        if (!found && used + length + 2 < size)
            used += (size_t)snprintf(text + used, size - used, "%s%.*s", used ? "," : "", (int)length, needs);
        needs += length + (needs[length] == ',');
    }
}
