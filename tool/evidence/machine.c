/*
 * machine.c - what a record says of the machine: its class and its description. See champions.h.
 */
#include "champions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cpu_features.h"

/* Copies the value of the first line of a file of the form "name : value" whose name begins with one of the two. */
static bool read_value(const char *path, const char *name, const char *other_name, char *text, size_t size)
{
    char line[512];
    bool found = false;
    FILE *stream = fopen(path, "r");
    while (stream && !found && fgets(line, sizeof line, stream)) {
        char *value = strchr(line, ':');
        if (!value || (strncmp(line, name, strlen(name)) != 0 && strncmp(line, other_name, strlen(other_name)) != 0))
            continue;
        value += 1 + strspn(value + 1, " \t");
        value[strcspn(value, "\n")] = '\0';
        snprintf(text, size, "%s", value);
        found = true;
    }
    if (stream)
        fclose(stream);
    return found;
}

/* False if there is no such GPU. */
static bool find_gpu(const char *device, attest_device_info *info)
{
    const char *number = strchr(device, ':');
    *info = (attest_device_info){.size = sizeof *info};
    return attest_device_get(number ? atoi(number + 1) : 0, info, NULL, 0) == ATTEST_OK;
}

static bool has_feature(const char *features, const char *word)
{
    char missing[64];
    missing_features(word, features, missing, sizeof missing);
    return !missing[0];
}

void device_class(attest_context *context, const char *gpu, char *text, size_t size)
{
    const char *features = attest_context_features(context);
    attest_device_info info;
    if (gpu) {
        snprintf(text, size, "%s", find_gpu(gpu, &info) ? info.device_class : "nvidia-unknown");
        return;
    }
    snprintf(text, size, "cpu-scalar");
    for (int feature = FEATURE_COUNT - 1; feature >= 0; feature--) {
        if (has_feature(features, feature_names[feature])) {
            snprintf(text, size, "cpu-%s", feature_names[feature]);
            return;
        }
    }
}

json_t *machine_json(attest_context *context)
{
    char class[64], model[256] = "unknown";
    struct utsname system;
    double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    json_t *machine = json_object();
    device_class(context, NULL, class, sizeof class);
    read_value("/proc/cpuinfo", "model name", "CPU part", model, sizeof model);
    json_put(machine, "class", json_string(class));
    json_put(machine, "model", json_string(model));
    json_put(machine, "cores", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
    json_put(machine, "features", json_string(attest_context_features(context)));
    if (uname(&system) == 0)
        json_put(machine, "system", json_text("%s %s %s", system.sysname, system.release, system.machine));
    json_put(machine, "memory_gb", json_real((double)(long)(bytes / 1e8 + 0.5) / 10));
    return machine;
}

json_t *gpu_json(attest_context *context, const char *device)
{
    attest_device_info info;
    bool found = find_gpu(device, &info);
    json_t *gpu = json_object();
    json_put(gpu, "class", json_string(found ? info.device_class : "nvidia-unknown"));
    json_put(gpu, "model", json_string(found ? info.model : "unknown"));
    if (found) {
        json_put(gpu, "compute_capability", json_text("%u.%u", info.compute / 10, info.compute % 10));
        json_put(gpu, "multiprocessors", json_integer(info.multiprocessors));
        json_put(gpu, "memory_gb", json_real((double)(long)((double)info.memory / 1e8 + 0.5) / 10));
        json_put(gpu, "driver", json_text("CUDA %u.%u", info.driver / 1000, info.driver % 1000 / 10));
    }
    json_put(gpu, "host", machine_json(context));
    return gpu;
}
