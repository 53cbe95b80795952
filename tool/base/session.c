/*
 * session.c - what commands share: how they end in an error, and questions about kernels.
 */
#include "session.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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
    fprintf(stderr, "attest%s%s: %s\n", session->name ? " " : "", session->name ? session->name : "", text);
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
    case ATTEST_ERROR_DEVICE:
        return EXIT_FAILED;
    case ATTEST_ERROR_WORKSPACE:
    case ATTEST_ERROR_INTERNAL:
        break;
    }
    return EXIT_INTERNAL;
}

const char *session_device(const struct options *options)
{
    const char *variable = getenv("ATTEST_DEVICE"), *kernel = options->kernel ? options->kernel : "";
    if (options->device)
        return options->device;
    if (variable && *variable)
        return variable;
    if (strncmp(kernel, "cpu_", 4) == 0 || strncmp(kernel, "ref_", 4) == 0)
        return "cpu";
    return strncmp(kernel, "cuda_", 5) == 0 ? "cuda" : "auto";
}

bool kernel_matches(const char *glob, const char *name)
{
    char stem[256]; /* what is behind an @ chooses a tile of the kernel, and not the kernel */
    snprintf(stem, sizeof stem, "%.*s", (int)strcspn(glob, "@"), glob);
    return fnmatch(stem, name, 0) == 0;
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

bool kernel_is_there(const char *name)
{
    attest_kernel_info info = {.size = sizeof info};
    for (size_t i = 0; i < attest_kernel_count(); i++)
        if (attest_kernel_get(i, &info) == ATTEST_OK && strcmp(info.name, name) == 0)
            return true;
    return false;
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

/* Code for compute capability `arch` ("sm_80", "sm_90a") runs on a GPU of `compute`: on its own, and as PTX on later ones. Names
 * that end in a letter are for one GPU alone. */
static bool arch_runs_on(const char *arch, size_t length, uint32_t compute)
{
    bool only = length > 0 && arch[length - 1] >= 'a';
    uint32_t number = length > 3 ? (uint32_t)strtoul(arch + 3, NULL, 10) : 0;
    return only ? number == compute : number <= compute;
}

void kernel_missing(const struct session *session, const attest_kernel_info *info, char *text, size_t size)
{
    attest_device_info device = {.size = sizeof device};
    if (strcmp(info->backend, "cuda") != 0) {
        missing_features(info->needs, attest_context_features(session->context), text, size);
        return;
    }
    snprintf(text, size, "%s", "");
    if (attest_device_get(0, &device, NULL, 0) != ATTEST_OK) {
        snprintf(text, size, "an NVIDIA GPU");
        return;
    }
    for (const char *at = info->needs; *at;) {
        size_t length = strcspn(at, ",");
        if (arch_runs_on(at, length, device.compute))
            return;
        at += length + (at[length] == ',');
    }
    snprintf(text, size, "another GPU (%s)", info->needs);
}
