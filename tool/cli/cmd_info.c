/*
 * cmd_info.c - attest info: what this machine and this build have.
 */
#include "evidence/champions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The features that the processor has, as a context sees them when ATTEST_DISABLE is not set. */
static void read_all_features(char *features, size_t size)
{
    const char *variable = getenv("ATTEST_DISABLE");
    char *disabled = variable ? strdup(variable) : NULL;
    attest_context *context = NULL;
    unsetenv("ATTEST_DISABLE");
    if (attest_context_create_on("cpu", &context) == ATTEST_OK)
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

/* Every GPU, or the sentence that says why there is none. */
static json_t *list_gpus(void)
{
    json_t *gpus = json_array();
    attest_device_info info = {.size = sizeof info};
    char why[512] = "";
    for (int i = 0; attest_device_get(i, &info, why, sizeof why) == ATTEST_OK; i++) {
        json_t *gpu = json_pack("{s:s, s:s, s:s}", "device", info.device, "model", info.model, "class", info.device_class);
        json_put(gpu, "compute_capability", json_text("%u.%u", info.compute / 10, info.compute % 10));
        json_put(gpu, "SMs", json_integer(info.multiprocessors));
        json_put(gpu, "memory", json_integer((json_int_t)info.memory));
        json_put(gpu, "L2", json_integer((json_int_t)info.cache));
        json_put(gpu, "shared_block", json_integer(info.shared_block));
        json_put(gpu, "driver", json_text("CUDA %u.%u", info.driver / 1000, info.driver % 1000 / 10));
        json_add(gpus, gpu);
    }
    if (json_array_size(gpus) > 0)
        return gpus;
    json_decref(gpus);
    return json_string(why);
}

enum exit_code cmd_info(struct session *session)
{
    struct report *report = &session->report;
    char found[256] = "";
    char disabled[256];
    json_t *machine = machine_json(session->context);
    read_all_features(found, sizeof found);
    missing_features(found, attest_context_features(session->context), disabled, sizeof disabled);
    report_put(report, "version", json_string(attest_version()));
    report_put(report, "build", json_string(attest_build_id()));
    report_put(report, "cpu", json_incref(json_object_get(machine, "model")));
    report_put(report, "class", json_incref(json_object_get(machine, "class")));
    report_put(report, "cores", json_incref(json_object_get(machine, "cores")));
    report_put(report, "threads", json_integer(attest_context_threads(session->context)));
    report_put(report, "features", json_string(attest_context_features(session->context)));
    report_put(report, "disabled", json_string(disabled));
    report_put(report, "caches",
               json_pack("{s:o, s:o, s:o}", "L1d", cache_size(_SC_LEVEL1_DCACHE_SIZE), "L2", cache_size(_SC_LEVEL2_CACHE_SIZE),
                         "L3", cache_size(_SC_LEVEL3_CACHE_SIZE)));
    report_put(report, "memory", json_integer((json_int_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)));
    report_put(report, "system", json_incref(json_object_get(machine, "system")));
    report_put(report, "gpu", list_gpus());
    report_put(report, "kernels", json_integer((json_int_t)attest_kernel_count()));
    json_decref(machine);
    return EXIT_PASS;
}
