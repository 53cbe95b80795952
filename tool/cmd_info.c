/*
 * cmd_info.c - attest info: what this machine and this build have.
 */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The value of the first line of /proc/cpuinfo whose name is one of the two that architectures use for their model. */
static void read_cpu_model(char *model, size_t size)
{
    char line[512];
    FILE *stream = fopen("/proc/cpuinfo", "r");
    snprintf(model, size, "unknown");
    while (stream && fgets(line, sizeof line, stream)) {
        char *value = strchr(line, ':');
        if (!value || (strncmp(line, "model name", 10) != 0 && strncmp(line, "CPU part", 8) != 0))
            continue;
        value += 1 + strspn(value + 1, " \t");
        value[strcspn(value, "\n")] = '\0';
        snprintf(model, size, "%s", value);
        break;
    }
    if (stream)
        fclose(stream);
}

/* The features that the processor has, as a context sees them when ATTEST_DISABLE is not set. */
static void read_all_features(char *features, size_t size)
{
    const char *variable = getenv("ATTEST_DISABLE");
    char *disabled = variable ? strdup(variable) : NULL;
    attest_context *context = NULL;
    unsetenv("ATTEST_DISABLE");
    if (attest_context_create(&context) == ATTEST_OK)
        snprintf(features, size, "%s", attest_context_features(context));
    attest_context_destroy(context);
    if (disabled)
        setenv("ATTEST_DISABLE", disabled, 1);
    free(disabled);
}

/* Bytes, or null where the system does not know. */
static json_t *cache_size(int name)
{
    long bytes = sysconf(name);
    return bytes > 0 ? json_integer(bytes) : json_null();
}

enum exit_code cmd_info(struct session *session)
{
    struct report *report = &session->report;
    char model[256];
    char found[256] = "";
    char disabled[256];
    struct utsname system;
    read_cpu_model(model, sizeof model);
    read_all_features(found, sizeof found);
    missing_features(found, attest_context_features(session->context), disabled, sizeof disabled);
    report_put(report, "version", json_string(attest_version()));
    report_put(report, "build", json_string(attest_build_id()));
    report_put(report, "cpu", json_string(model));
    report_put(report, "cores", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
    report_put(report, "threads", json_integer(attest_context_threads(session->context)));
    report_put(report, "features", json_string(attest_context_features(session->context)));
    report_put(report, "disabled", json_string(disabled));
    report_put(report, "caches",
               json_pack("{s:o, s:o, s:o}", "L1d", cache_size(_SC_LEVEL1_DCACHE_SIZE), "L2", cache_size(_SC_LEVEL2_CACHE_SIZE),
                         "L3", cache_size(_SC_LEVEL3_CACHE_SIZE)));
    report_put(report, "memory", json_integer((json_int_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)));
    if (uname(&system) == 0)
        report_put(report, "system", json_text("%s %s %s", system.sysname, system.release, system.machine));
    report_put(report, "gpu", json_string("no CUDA backend in this build"));
    report_put(report, "kernels", json_integer((json_int_t)attest_kernel_count()));
    return EXIT_PASS;
}
