/*
 * driver.c - finds the CUDA driver, once, when something is first asked of it. The library links no CUDA: where there is no
 * libcuda.so.1, or it does not work, there is a sentence that says so, and everything else works.
 */
#include "device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static struct driver driver;
static char trouble[200]; /* why there are no devices */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* POSIX lets a pointer to an object that dlsym found be a function; C does not say so. */
typedef void (*any_function)(void);
static any_function function_find(void *library, const char *name)
{
    union {
        void *object;
        any_function function;
    } found = {dlsym(library, name)};
    return found.function;
}

static const char *functions_find(void *library)
{
#define REQUIRED(ours, theirs, parameters)                                                                                         \
    if (!(driver.ours = (cu_result(*) parameters)function_find(library, theirs)))                                                  \
        return theirs;
#define OPTIONAL(ours, theirs, parameters) driver.ours = (cu_result(*) parameters)function_find(library, theirs);
    CU_FUNCTIONS(REQUIRED, OPTIONAL)
    return NULL;
}

static void look(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(trouble, sizeof trouble, "there is no NVIDIA driver here: libcuda.so.1 was not found");
        return;
    }
    const char *missing = functions_find(library);
    if (missing) {
        snprintf(trouble, sizeof trouble, "the NVIDIA driver is too old: its libcuda.so.1 lacks %s", missing);
        return;
    }
    cu_result result = driver.init(0);
    int count = 0;
    if (result == 0)
        result = driver.device_count(&count);
    if (result == CU_NO_DEVICE || (result == 0 && count == 0))
        snprintf(trouble, sizeof trouble, "there is an NVIDIA driver here, but no GPU that it knows");
    else if (result != 0)
        driver_say(result, "the NVIDIA driver could not be started", trouble, sizeof trouble);
    else
        driver.devices = count;
    if (driver.driver_version(&driver.version) != 0)
        driver.version = 0;
}

const struct driver *driver_get(const char **why)
{
    pthread_once(&once, look);
    *why = trouble;
    return driver.devices ? &driver : NULL;
}

void driver_say(cu_result result, const char *what, char *text, size_t size)
{
    const char *name = NULL, *sentence = NULL;
    if (driver.error_name && driver.error_name(result, &name) != 0)
        name = NULL;
    if (driver.error_string && driver.error_string(result, &sentence) != 0)
        sentence = NULL;
    snprintf(text, size, "%s: %s (%s, CUDA error %d)", what, sentence ? sentence : "an error without a text",
             name ? name : "unknown", result);
}
