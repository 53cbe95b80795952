/*
 * machine.c - what a record says of the machine: its class and its description. See champions.h.
 */
#include "champions.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

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

/* "NVIDIA H200" of the first GPU that the driver knows. */
static bool read_gpu_model(char *text, size_t size)
{
    static const char root[] = "/proc/driver/nvidia/gpus";
    char path[512];
    bool found = false;
    struct dirent *item;
    DIR *stream = opendir(root);
    while (stream && !found && (item = readdir(stream))) {
        if (item->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s/information", root, item->d_name);
        found = read_value(path, "Model", "Model", text, size);
    }
    if (stream)
        closedir(stream);
    return found;
}

static bool has_feature(const char *features, const char *word)
{
    char missing[64];
    missing_features(word, features, missing, sizeof missing);
    return !missing[0];
}

void device_class(attest_context *context, bool cuda, char *text, size_t size)
{
    static const char *const best_first[] = {"amx", "avx512bf16", "avx512", "avx2"};
    const char *features = attest_context_features(context);
    if (cuda) {
        if (!read_gpu_model(text, size))
            snprintf(text, size, "nvidia-unknown");
        for (char *letter = text; *letter; letter++)
            *letter = isalnum((unsigned char)*letter) ? (char)tolower((unsigned char)*letter) : '-';
        return;
    }
    snprintf(text, size, "cpu-scalar");
    for (int i = 0; i < COUNT_OF(best_first); i++) {
        if (has_feature(features, best_first[i])) {
            snprintf(text, size, "cpu-%s", best_first[i]);
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
    device_class(context, false, class, sizeof class);
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
