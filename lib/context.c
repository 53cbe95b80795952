/*
 * context.c - status words, versions, error text, and the context: device, threads, CPU features, last error.
 */
#include "internal.h"
#include "cuda/gpu.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *attest_status_name(attest_status status)
{
    static const char *const names[] = {"ok",        "argument", "parse",    "unsupported", "unavailable",
                                        "workspace", "memory",   "internal", "device"};
    size_t index = (size_t)status;
    return index < sizeof names / sizeof *names ? names[index] : "unknown";
}

#define STRING_(x) #x
#define STRING(x)  STRING_(x)

const char *attest_version(void)
{
    return STRING(ATTEST_VERSION_MAJOR) "." STRING(ATTEST_VERSION_MINOR) "." STRING(ATTEST_VERSION_PATCH);
}

const char *attest_build_id(void)
{
    return ATTEST_BUILD_ID;
}

attest_status fail(struct text why, attest_status status, const char *format, ...)
{
    if (why.data && why.size) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(why.data, why.size, format, arguments);
        va_end(arguments);
    }
    return status;
}

struct text context_text(attest_context *context)
{
    context->detail[0] = 0;
    return (struct text){context->detail, sizeof context->detail};
}

attest_status struct_read(void *own, size_t own_size, size_t least, const void *theirs, const char *name, struct text why)
{
    if (!theirs)
        return fail(why, ATTEST_ERROR_ARGUMENT, "%s is NULL", name);
    uint64_t size;
    memcpy(&size, theirs, sizeof size);
    if (size < least)
        return fail(why, ATTEST_ERROR_ARGUMENT, "%s.size is %llu; set it to sizeof, which is at least %zu", name,
                    (unsigned long long)size, least);
    if (size > 65536)
        return fail(why, ATTEST_ERROR_ARGUMENT, "%s.size is %llu; set it to sizeof", name, (unsigned long long)size);
    for (size_t i = own_size; i < size; i++)
        if (((const unsigned char *)theirs)[i])
            return fail(why, ATTEST_ERROR_ARGUMENT, "%s has a field that this library (%s) does not know, and it is not 0", name,
                        attest_version());
    memset(own, 0, own_size);
    memcpy(own, theirs, size < own_size ? (size_t)size : own_size);
    memcpy(own, &(uint64_t){own_size}, sizeof size);
    return ATTEST_OK;
}

/* ---- features -------------------------------------------------------------------------------------------------------------- */

/* Disabling a feature disables those built on it: avx512bf16 and amx need avx512, which needs avx2. */
static const struct {
    const char *name;
    unsigned bit;
    unsigned with_dependents;
} features[] = {
    {"avx2", FEATURE_AVX2, FEATURE_AVX2 | FEATURE_AVX512 | FEATURE_AVX512BF16 | FEATURE_AMX},
    {"avx512", FEATURE_AVX512, FEATURE_AVX512 | FEATURE_AVX512BF16 | FEATURE_AMX},
    {"avx512bf16", FEATURE_AVX512BF16, FEATURE_AVX512BF16 | FEATURE_AMX},
    {"amx", FEATURE_AMX, FEATURE_AMX},
};
enum { FEATURE_COUNT = sizeof features / sizeof *features };

bool feature_find(const char *name, unsigned *feature)
{
    *feature = 0;
    for (int i = 0; i < FEATURE_COUNT; i++)
        if (!strcmp(features[i].name, name))
            *feature = features[i].bit;
    return *feature || !*name;
}

void device_class(unsigned set, char *text, size_t size)
{
    const char *best = "scalar";
    for (int i = 0; i < FEATURE_COUNT; i++)
        if (set & features[i].bit)
            best = features[i].name;
    snprintf(text, size, "cpu-%s", best);
}

static void features_changed(attest_context *context)
{
    char *text = context->feature_text;
    size_t size = sizeof context->feature_text, used = 0;
    text[0] = 0;
    for (int i = 0; i < FEATURE_COUNT; i++)
        if (context->features & features[i].bit)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "," : "", features[i].name);
    if (!context->gpu)
        device_class(context->features, context->device_class, sizeof context->device_class);
}

/* `list` is comma-separated; spaces and empty items are skipped. Nothing is disabled if one name is unknown. */
static attest_status disable(attest_context *context, const char *list, const char *source)
{
    unsigned gone = 0;
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ", ");
        unsigned found = 0;
        for (int i = 0; i < FEATURE_COUNT; i++)
            if (strlen(features[i].name) == length && !strncmp(features[i].name, at, length))
                found = features[i].with_dependents;
        if (length && !found)
            return fail(context_text(context), ATTEST_ERROR_ARGUMENT,
                        "%s: unknown feature '%.*s'; known are avx2, avx512, avx512bf16, amx", source,
                        (int)(length < 40 ? length : 40), at);
        gone |= found;
        at += length;
        at += strspn(at, ", ");
    }
    context->features &= ~gone;
    features_changed(context);
    return ATTEST_OK;
}

attest_status attest_context_disable(attest_context *context, const char *list)
{
    if (!context)
        return ATTEST_ERROR_ARGUMENT;
    struct text why = context_text(context);
    if (!list)
        return fail(why, ATTEST_ERROR_ARGUMENT, "features is NULL");
    return disable(context, list, "features");
}

const char *attest_context_features(const attest_context *context)
{
    return context ? context->feature_text : "";
}

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
enum { ROWS_WANTED_MAX = 65536 };

/* ---- context --------------------------------------------------------------------------------------------------------------- */

/* "cuda" or "cuda:N" -> N; -1 if it is something else. */
static int gpu_index(const char *device)
{
    if (!strcmp(device, "cuda"))
        return 0;
    size_t digits = strncmp(device, "cuda:", 5) ? 0 : strspn(device + 5, "0123456789");
    return digits && digits <= 3 && !device[5 + digits] ? (int)strtol(device + 5, NULL, 10) : -1;
}

/* A context that was to be on a GPU and is not can do nothing but say so. */
static attest_status unusable(attest_context *context, attest_status status)
{
    context->unusable = status;
    snprintf(context->unusable_text, sizeof context->unusable_text, "%.*s", (int)sizeof context->unusable_text - 1,
             context->detail);
    return status;
}

static attest_status choose_device(attest_context *context, const char *device, const char *source)
{
    struct text why = context_text(context);
    int index = gpu_index(device);
    snprintf(context->device, sizeof context->device, "cpu");
    if (!strcmp(device, "cpu"))
        return ATTEST_OK;
    if (!strcmp(device, "auto")) {
        index = gpu_usable();
        if (index < 0 || gpu_open(index, &context->gpu, (struct text){0}) != ATTEST_OK)
            return ATTEST_OK;
    } else if (index < 0) {
        return unusable(context,
                        fail(why, ATTEST_ERROR_ARGUMENT, "%s is '%.40s'; write cpu, cuda, cuda:N or auto", source, device));
    }
    snprintf(context->device, sizeof context->device, "cuda:%d", index);
    if (!context->gpu) {
        attest_status status = gpu_open(index, &context->gpu, why);
        if (status != ATTEST_OK)
            return unusable(context, status);
    }
    gpu_class(context->gpu, context->device_class, sizeof context->device_class);
    return ATTEST_OK;
}

static attest_status create(const char *device, const char *source, attest_context **context)
{
    attest_context *made = calloc(1, sizeof *made);
    *context = made;
    if (!made)
        return ATTEST_ERROR_MEMORY;
    made->threads = omp_get_max_threads();
    if (made->threads < 1)
        made->threads = 1;
    if (made->threads > THREADS_MAX)
        made->threads = THREADS_MAX;
    made->features = cpu_features_found();
    features_changed(made);
    TRY(choose_device(made, device, source));
    const char *list = getenv("ATTEST_DISABLE");
    return list ? disable(made, list, "ATTEST_DISABLE") : ATTEST_OK;
}

attest_status attest_context_create(attest_context **context)
{
    const char *device = getenv("ATTEST_DEVICE");
    return context ? create(device && *device ? device : "cpu", "ATTEST_DEVICE", context) : ATTEST_ERROR_ARGUMENT;
}

attest_status attest_context_create_on(const char *device, attest_context **context)
{
    return context ? create(device ? device : "NULL", "device", context) : ATTEST_ERROR_ARGUMENT;
}

attest_status context_ready(attest_context *context)
{
    struct text why = context_text(context);
    if (context->unusable != ATTEST_OK)
        return fail(why, context->unusable, "%s", context->unusable_text);
    return context->gpu ? gpu_ready(context->gpu, why) : ATTEST_OK;
}

const char *attest_context_device(const attest_context *context)
{
    return context ? context->device : "";
}

const char *attest_context_model(const attest_context *context)
{
    return !context || context->unusable != ATTEST_OK ? "" : context->gpu ? gpu_model(context->gpu) : cpu_model();
}

const char *attest_context_class(const attest_context *context)
{
    return !context || context->unusable != ATTEST_OK ? "" : context->device_class;
}

void attest_context_destroy(attest_context *context)
{
    free(context);
}

const char *attest_context_detail(const attest_context *context)
{
    return context ? context->detail : "the context is NULL";
}

attest_status attest_context_set_threads(attest_context *context, int threads)
{
    if (!context)
        return ATTEST_ERROR_ARGUMENT;
    struct text why = context_text(context);
    if (threads < 1 || threads > THREADS_MAX)
        return fail(why, ATTEST_ERROR_ARGUMENT, "threads is %d; it must be 1 to %d", threads, THREADS_MAX);
    context->threads = threads;
    return ATTEST_OK;
}

int attest_context_threads(const attest_context *context)
{
    return context ? context->threads : 0;
}

attest_status attest_context_add_kernel(attest_context *context, const attest_cpu_kernel *kernel)
{
    if (!context)
        return ATTEST_ERROR_ARGUMENT;
    struct text why = context_text(context);
    unsigned ignored;
    if (!kernel)
        return fail(why, ATTEST_ERROR_ARGUMENT, "kernel is NULL");
    if (kernel->abi != ATTEST_KERNEL_ABI)
        return fail(why, ATTEST_ERROR_ARGUMENT, "kernel.abi is %u; this library (%s) takes kernels of ABI %d", kernel->abi,
                    attest_version(), ATTEST_KERNEL_ABI);
    if (!kernel->name || !*kernel->name || kernel->name[strspn(kernel->name, NAME_CHARACTERS)])
        return fail(why, ATTEST_ERROR_ARGUMENT, "kernel.name must be letters, digits and _, and there must be some");
    if (!kernel->needs || !feature_find(kernel->needs, &ignored))
        return fail(why, ATTEST_ERROR_ARGUMENT, "kernel.needs is '%.40s'; it must be \"\" or one of avx2, avx512, avx512bf16, amx",
                    kernel->needs ? kernel->needs : "NULL");
    if (!kernel->tile || !kernel->scratch_size || !kernel->shared_size != !kernel->prepare)
        return fail(why, ATTEST_ERROR_ARGUMENT,
                    "kernel.tile and kernel.scratch_size must be there, and shared_size and prepare both or neither");
    if (kernel->row_step < 1 || kernel->rows_wanted < kernel->row_step || kernel->rows_wanted > ROWS_WANTED_MAX)
        return fail(why, ATTEST_ERROR_ARGUMENT, "kernel.row_step must be 1 or more, and rows_wanted from there to %d",
                    ROWS_WANTED_MAX);
    context->added = kernel;
    return ATTEST_OK;
}

attest_status attest_context_add_cuda_kernel(attest_context *context, const attest_cuda_kernel *kernel)
{
    if (!context)
        return ATTEST_ERROR_ARGUMENT;
    struct text why = context_text(context);
    if (!kernel)
        return fail(why, ATTEST_ERROR_ARGUMENT, "kernel is NULL");
    if (kernel->abi != ATTEST_CUDA_ABI)
        return fail(why, ATTEST_ERROR_ARGUMENT, "kernel.abi is %u; this library (%s) takes CUDA kernels of ABI %d", kernel->abi,
                    attest_version(), ATTEST_CUDA_ABI);
    if (!kernel->name || !*kernel->name || kernel->name[strspn(kernel->name, NAME_CHARACTERS)])
        return fail(why, ATTEST_ERROR_ARGUMENT, "kernel.name must be letters, digits and _, and there must be some");
    TRY(cuda_kernel_check(kernel, why));
    context->added_cuda = kernel;
    return ATTEST_OK;
}
