/*
 * The CUDA backend without a GPU: tests/cuda_backend.t runs this with a driver that is made up (tests/cuda/fake_driver.c), which
 * writes down what it is told to do. Which image runs where and which sentence refuses; what kernels are told, and how they are
 * launched; tensor maps; errors, also those that a GPU does not recover from; threads; that a run allocates nothing.
 */
#include "cuda/fake_cuda.h"
#include "drive.h"
#include "tap.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fake_cuda *fake;

/* ---- the allocator is watched, see the Makefile ---- */

static _Thread_local int host_allocations;
#define WATCHED(function, parameters, arguments)                                                                                   \
    void *__real_##function parameters;                                                                                            \
    void *__wrap_##function parameters;                                                                                            \
    void *__wrap_##function parameters                                                                                             \
    {                                                                                                                              \
        host_allocations++;                                                                                                        \
        return __real_##function arguments;                                                                                        \
    }
WATCHED(malloc, (size_t bytes), (bytes))
WATCHED(calloc, (size_t count, size_t bytes), (count, bytes))
WATCHED(realloc, (void *old, size_t bytes), (old, bytes))
WATCHED(aligned_alloc, (size_t align, size_t bytes), (align, bytes))

/* ---- kernels that are made up ---- */

static const char code[4][64] = {"image of sm_80", "image of sm_90", "image of sm_90a", "image, PTX"};

/* An image of one dtype and dim; the numbers that matter little are the same for all. */
static attest_cuda_image image_make(uint32_t arch, uint32_t kind, uint32_t dtype, uint32_t dim, uint32_t tile_q, uint32_t tile_kv)
{
    const char *data = kind == ATTEST_PTX ? code[3] : kind == ATTEST_CUBIN_ONLY ? code[2] : arch >= 90 ? code[1] : code[0];
    return (attest_cuda_image){
        .arch = arch,
        .kind = kind,
        .facts = {ATTEST_CUDA_ABI, sizeof(attest_cuda_args), dtype, dim, tile_q, tile_kv, 2, 128, 1000 * (tile_q + tile_kv), 0},
        .data = data,
        .bytes = sizeof code[0],
    };
}

enum { MOST_IMAGES = 16 };
struct made {
    attest_cuda_kernel kernel;
    attest_cuda_image images[MOST_IMAGES];
};

static struct made *kernel_make(uint32_t launch, uint32_t options)
{
    struct made *made = calloc(1, sizeof *made);
    static const struct {
        uint32_t arch, kind;
    } targets[] = {{80, ATTEST_CUBIN}, {90, ATTEST_CUBIN}, {80, ATTEST_PTX}};
    uint32_t count = 0;
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++)
        for (uint32_t dim = 64; dim <= 128; dim *= 2) {
            made->images[count++] = image_make(targets[t].arch, targets[t].kind, ATTEST_F16, dim, 32, 64);
            if (targets[t].kind == ATTEST_CUBIN)
                made->images[count++] = image_make(targets[t].arch, targets[t].kind, ATTEST_F16, dim, 48, 64);
        }
    made->kernel = (attest_cuda_kernel){.abi = ATTEST_CUDA_ABI,
                                        .dtypes = 1u << ATTEST_F16,
                                        .name = "made_up",
                                        .summary = "does nothing",
                                        .launch = launch,
                                        .options = options,
                                        .image_count = count,
                                        .images = made->images};
    for (uint32_t i = 0; i < count && launch == ATTEST_LAUNCH_SPLIT; i++) {
        made->images[i].split_keys = 256;
        made->images[i].partial = made->images[i].facts.dim + 4;
    }
    return made;
}

static attest_context *context_on(const char *device, const attest_cuda_kernel *kernel)
{
    attest_context *context = NULL;
    tap_check(attest_context_create_on(device, &context) == ATTEST_OK, "%s: %s", device, attest_context_detail(context));
    if (kernel)
        tap_check(attest_context_add_cuda_kernel(context, kernel) == ATTEST_OK, "%s", attest_context_detail(context));
    return context;
}

static attest_problem problem_of(const char *line)
{
    attest_problem p = {0};
    char why[256] = "";
    tap_check(attest_problem_parse(line, &p, why, sizeof why) == ATTEST_OK, "%s: %s", line, why);
    return p;
}

/* Memory for every tensor that the problem has: ordinary memory, as the fake driver's is. */
static char arena[1 << 16] __attribute__((aligned(512)));
static attest_tensors tensors_of(const attest_problem *p)
{
    attest_tensors t = {.size = sizeof t, .q = arena, .k = arena + 512, .v = arena + 1024};
    t.o = arena + (1 << 15);
    return (void)p, t;
}

/* Launches of a run, of which the last ones are looked at. */
static const struct fake_launch *launch_back(int n)
{
    return &fake->launch[(fake->launches - 1 - n) % FAKE_LAUNCHES];
}

static void says(attest_context *context, const char *part)
{
    tap_check(strstr(attest_context_detail(context), part) != NULL, "'%s' does not say '%s'", attest_context_detail(context), part);
}

/* Whether the library has a kernel for GPUs, and one that is proven: for candidates alone `auto` does not take a GPU. */
static bool has_kernels(bool proven)
{
    attest_kernel_info info = {.size = sizeof info};
    for (size_t k = 0; k < attest_kernel_count(); k++)
        if (attest_kernel_get(k, &info) == ATTEST_OK && strcmp(info.backend, "cuda") == 0 && !(proven && info.candidate))
            return true;
    return false;
}

/* ------------------------------------------------------------------------------------------------------------ devices -- */

static void devices(void)
{
    static const struct {
        const char *device, *model, *class_name;
        uint32_t compute, sms;
    } want[] = {{"cuda:0", "NVIDIA H200", "nvidia-h200", 90, 132},
                {"cuda:2", "NVIDIA L4", "nvidia-l4", 89, 58},
                {"cuda:3", "NVIDIA  RTX (tomorrow)", "nvidia-rtx-tomorrow", 120, 100}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        attest_context *context = context_on(want[i].device, NULL);
        attest_device_info info = {.size = sizeof info};
        char why[256];
        tap_check(strcmp(attest_context_device(context), want[i].device) == 0, "device %s", attest_context_device(context));
        tap_check(strcmp(attest_context_model(context), want[i].model) == 0, "model %s", attest_context_model(context));
        tap_check(strcmp(attest_context_class(context), want[i].class_name) == 0, "class %s", attest_context_class(context));
        tap_check(attest_device_get(atoi(want[i].device + 5), &info, why, sizeof why) == ATTEST_OK, "%s", why);
        tap_check(info.compute == want[i].compute && info.multiprocessors == want[i].sms && info.driver == 13000 &&
                      strcmp(info.device, want[i].device) == 0 && strcmp(info.device_class, want[i].class_name) == 0,
                  "%s is described wrongly", want[i].device);
        attest_context_destroy(context);
    }
    /* A GPU that this build has no kernels for is of no use. */
    attest_context *context = context_on("auto", NULL);
    tap_check(strcmp(attest_context_device(context), has_kernels(true) ? "cuda:0" : "cpu") == 0, "auto is %s",
              attest_context_device(context));
    attest_context_destroy(context);
    setenv("ATTEST_DEVICE", "cuda:2", 1);
    tap_check(attest_context_create(&context) == ATTEST_OK && strcmp(attest_context_device(context), "cuda:2") == 0,
              "ATTEST_DEVICE is not looked at: %s", attest_context_device(context));
    attest_context_destroy(context);
    setenv("ATTEST_DEVICE", "gpu", 1);
    tap_check(attest_context_create(&context) == ATTEST_ERROR_ARGUMENT, "ATTEST_DEVICE=gpu");
    says(context, "ATTEST_DEVICE is 'gpu'; write cpu, cuda, cuda:N or auto");
    attest_context_destroy(context);
    unsetenv("ATTEST_DEVICE");
    static const struct {
        const char *device, *sentence;
        attest_status status;
    } bad[] = {{"cuda:5", "there is no cuda:5 here: the last GPU is cuda:4", ATTEST_ERROR_UNAVAILABLE},
               {"cuda:64", "there is no cuda:64 here", ATTEST_ERROR_UNAVAILABLE},
               {"cuda:", "device is 'cuda:'; write", ATTEST_ERROR_ARGUMENT},
               {"cuda:-1", "write cpu, cuda, cuda:N or auto", ATTEST_ERROR_ARGUMENT},
               {"cuda:1x", "write cpu, cuda, cuda:N or auto", ATTEST_ERROR_ARGUMENT},
               {"", "write cpu, cuda, cuda:N or auto", ATTEST_ERROR_ARGUMENT},
               {NULL, "write cpu, cuda, cuda:N or auto", ATTEST_ERROR_ARGUMENT}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        attest_plan *plan = NULL;
        void *memory = &plan;
        attest_problem p = problem_of("fwd:f16:b1:h1:sq1:skv1:d64");
        tap_check(attest_context_create_on(bad[i].device, &context) == bad[i].status && context, "%s",
                  bad[i].device ? bad[i].device : "NULL");
        says(context, bad[i].sentence);
        tap_check(attest_plan_create(context, &p, NULL, &plan) == bad[i].status && !plan, "a plan without a device");
        says(context, bad[i].sentence);
        tap_check(attest_memory_alloc(context, 1, &memory) == bad[i].status && !memory, "memory without a device");
        attest_context_destroy(context);
    }
    attest_device_info info = {.size = sizeof info};
    char why[256];
    tap_check(attest_device_get(5, &info, why, sizeof why) == ATTEST_ERROR_UNAVAILABLE && strstr(why, "no cuda:5"), "%s", why);
    tap_check(attest_device_get(-1, &info, NULL, 0) == ATTEST_ERROR_ARGUMENT, "device -1");
    tap_check(attest_device_get(0, NULL, NULL, 0) == ATTEST_ERROR_ARGUMENT, "info NULL");
    tap_check(fake->inits == 1, "cuInit was called %d times", fake->inits);
}

static void memory(void)
{
    static char from[3000], to[3000];
    attest_context *all[] = {context_on("cpu", NULL), context_on("cuda:1", NULL)};
    long before = fake->allocations;
    for (int i = 0; i < 2; i++) {
        attest_context *context = all[i];
        void *data = NULL, *empty = NULL;
        for (size_t n = 0; n < sizeof from; n++)
            from[n] = (char)(n * 7 + (size_t)i);
        memset(to, 0, sizeof to);
        tap_check(attest_memory_alloc(context, sizeof from, &data) == ATTEST_OK && (uintptr_t)data % 256 == 0, "%s",
                  attest_context_detail(context));
        tap_check(attest_memory_alloc(context, 0, &empty) == ATTEST_OK && empty, "no bytes: %s", attest_context_detail(context));
        tap_check(attest_memory_free(context, empty) == ATTEST_OK, "%s", attest_context_detail(context));
        tap_check(attest_memory_put(context, data, from, sizeof from, NULL) == ATTEST_OK &&
                      attest_memory_set(context, (char *)data + 100, 0x5a, 50, NULL) == ATTEST_OK &&
                      attest_synchronize(context, NULL) == ATTEST_OK &&
                      attest_memory_get(context, to, data, sizeof to, NULL) == ATTEST_OK,
                  "%s", attest_context_detail(context));
        tap_check(memcmp(to, from, 100) == 0 && to[100] == 0x5a && to[149] == 0x5a && memcmp(to + 150, from + 150, 2850) == 0,
                  "the data is not what it was");
        tap_check(attest_memory_put(context, NULL, from, 1, NULL) == ATTEST_ERROR_ARGUMENT, "put to NULL");
        says(context, "device is NULL");
        tap_check(attest_memory_get(context, NULL, data, 1, NULL) == ATTEST_ERROR_ARGUMENT, "get to NULL");
        says(context, "host is NULL");
        tap_check(attest_memory_put(context, NULL, NULL, 0, NULL) == ATTEST_OK, "nothing to nowhere");
        tap_check(attest_memory_alloc(context, SIZE_MAX - 5, &empty) == ATTEST_ERROR_MEMORY && !empty, "all of the memory");
        tap_check(attest_memory_alloc(context, 1, NULL) == ATTEST_ERROR_ARGUMENT, "memory is NULL");
        tap_check(attest_memory_free(context, data) == ATTEST_OK && attest_memory_free(context, NULL) == ATTEST_OK, "free");
        attest_context_destroy(context);
    }
    tap_check(fake->allocations == before, "%ld allocations are left", fake->allocations - before);
    attest_context *context = context_on("cpu", NULL);
    tap_check(attest_memory_put(context, arena, from, 1, &context) == ATTEST_ERROR_ARGUMENT, "a stream on the CPU");
    says(context, "stream is not NULL, and the context is on the CPU");
    attest_context_destroy(context);
    tap_check(attest_memory_alloc(NULL, 1, NULL) == ATTEST_ERROR_ARGUMENT &&
                  attest_synchronize(NULL, NULL) == ATTEST_ERROR_ARGUMENT,
              "no context");
    tap_check(fake->depth == 0, "%d contexts are left on the stack", fake->depth);
}

/* ------------------------------------------------------------------------------------------------------------- images -- */

/* Which image runs on which GPU, seen from what was loaded and launched. */
static void images(void)
{
    static const struct {
        const char *device, *kernel, *line, *image;
        uint32_t tile_q;
    } want[] = {
        {"cuda:0", "made_up", "fwd:f16:b1:h1:sq96:skv64:d64", "image of sm_90", 32},
        {"cuda:2", "made_up", "fwd:f16:b1:h1:sq96:skv64:d64", "image of sm_80", 32},
        {"cuda:3", "made_up", "fwd:f16:b1:h1:sq96:skv64:d128", "image, PTX", 32},
        {"cuda:0", "made_up@48x64", "fwd:f16:b1:h1:sq96:skv64:d128", "image of sm_90", 48},
        {"cuda:2", "made_up", "fwd:f16:b1:h1:sq96:skv64:d40:dv90", "image of sm_80", 32},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        /* Other bytes each time, so that every image is loaded anew. */
        char data[4][64];
        struct made *made = kernel_make(ATTEST_LAUNCH_TILE, ATTEST_CUDA_PADS);
        for (uint32_t n = 0; n < made->kernel.image_count; n++) {
            int which = made->images[n].data == code[0] ? 0 : made->images[n].data == code[1] ? 1 : 3;
            memset(data[which], 0, 64);
            strcpy(data[which], code[which]);
            data[which][50] = (char)(i + 1);
            made->images[n].data = data[which];
        }
        attest_context *context = context_on(want[i].device, &made->kernel);
        attest_problem p = problem_of(want[i].line);
        attest_tensors t = tensors_of(&p);
        attest_plan *plan = NULL;
        int launches = fake->launches, loads = fake->loads;
        if (tap_case("%s on %s", want[i].kernel, want[i].device) &&
            tap_check(attest_plan_create(context, &p, want[i].kernel, &plan) == ATTEST_OK, "%s", attest_context_detail(context))) {
            tap_check(strcmp(attest_plan_kernel(plan), want[i].kernel) == 0, "the kernel is %s", attest_plan_kernel(plan));
            tap_check(attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_OK, "%s", attest_context_detail(context));
            tap_check(fake->loads == loads + 1 && memcmp(fake->last_image, want[i].image, 10) == 0, "%.15s was loaded",
                      fake->last_image);
            tap_check(fake->launches == launches + 1, "%d launches", fake->launches - launches);
            const struct fake_launch *last = launch_back(0);
            tap_check(last->grid == (96 + want[i].tile_q - 1) / want[i].tile_q && last->block == 128 &&
                          last->shared == 1000 * (want[i].tile_q + 64) && last->device == atoi(want[i].device + 5),
                      "the launch is %u x %u, %u bytes, on %d", last->grid, last->block, last->shared, last->device);
            attest_plan *again = NULL;
            tap_check(attest_plan_create(context, &p, want[i].kernel, &again) == ATTEST_OK && fake->loads == loads + 1,
                      "the image was loaded twice");
            attest_plan_destroy(again);
        }
        attest_plan_destroy(plan);
        attest_context_destroy(context);
        free(made);
    }
    tap_check(fake->depth == 0, "%d contexts are left on the stack", fake->depth);
}

static void refusals(void)
{
    static const struct {
        const char *device, *kernel, *line, *sentence;
        attest_status status;
    } bad[] = {
        {"cpu", "made_up", "fwd:f16:b1:h1:sq1:skv1:d64", "it needs an NVIDIA GPU, and this context is on the CPU",
         ATTEST_ERROR_UNAVAILABLE},
        {"cuda", "cpu_fwd_f32_scalar", "fwd:f32:b1:h1:sq1:skv1:d64", "it runs on the CPU, and this context is on cuda:0",
         ATTEST_ERROR_UNAVAILABLE},
        {"cuda", "ref_fwd", "fwd:f32:b1:h1:sq1:skv1:d64", "it runs on the CPU, and this context is on cuda:0",
         ATTEST_ERROR_UNAVAILABLE},
        {"cuda:4", "made_up", "fwd:f16:b1:h1:sq1:skv1:d64",
         "it has no image for compute capability 7.5 of Tesla T4; the first is for 8.0", ATTEST_ERROR_UNAVAILABLE},
        {"cuda", "made_up", "fwd:bf16:b1:h1:sq1:skv1:d64", "it does not take bf16", ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "made_up", "fwd:f16:b1:h1:sq1:skv1:d64:bias", "it does not take a bias", ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "made_up", "fwd:f16:b1:h1:sq1:skv1:d64:page=4,4", "it does not take paged keys", ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "made_up", "fwd:f16:b1:h1:sq1:skv1:d64:o=f32", "it does not take an O of another type than Q",
         ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "made_up", "fwd:f16:b1:h1:sq1:skv1:d64:dv32", "it does not take a dim_v that differs from dim",
         ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "made_up", "fwd:f16:b1:h1:sq1:skv1:d200", "dim 200 is beyond 128", ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "made_up@64x64", "fwd:f16:b1:h1:sq1:skv1:d64", "it has no tiles of 64x64 here; it has 32x64 48x64",
         ATTEST_ERROR_UNSUPPORTED},
        {"cuda:2", "made_up@48x64", "fwd:f16:b1:h1:sq1:skv1:d64",
         "a block needs 112000 bytes of shared memory, and NVIDIA L4 has 101376", ATTEST_ERROR_UNAVAILABLE},
        {"cuda", "made_up@48", "fwd:f16:b1:h1:sq1:skv1:d64", "'@48' is no pair of tiles; write for example @48x64",
         ATTEST_ERROR_ARGUMENT},
        {"cuda", "made_up", "fwd:f16:b1:hq8:hkv2:sq33:skv1:d64", "it is for at most 128 rows of a KV head, and there are 132",
         ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "made_up", "fwd:f16:b1:h1:sq1:skv1:d20", "the strides of Q must be multiples of 16 bytes",
         ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "made_up", "fwd:f16:b1:h1:sq1:skv1073741824:d64", "sizes must be below 2^30, and seq_kv is 1073741824",
         ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "made_up", "fwd:f16:b1000000:h4000:sq1:skv1:d64", "it would have more than 2^31 blocks", ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "nothing", "fwd:f16:b1:h1:sq1:skv1:d64", "no kernel is called 'nothing'", ATTEST_ERROR_ARGUMENT},
    };
    struct made *made = kernel_make(ATTEST_LAUNCH_TILE, ATTEST_CUDA_PADS | ATTEST_CUDA_PACKS | ATTEST_CUDA_REFUSES_O32);
    made->kernel.refuses = ATTEST_BIAS | ATTEST_PAGED;
    for (uint32_t i = 0; i < made->kernel.image_count; i++) {
        made->images[i].align = 16;
        made->images[i].rows_most = 128;
        if (made->images[i].facts.tile_q == 48)
            made->images[i].facts.dynamic_shared = 112000;
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        made->kernel.options |= ATTEST_CUDA_REFUSES_DV;
        attest_context *context = context_on(bad[i].device, &made->kernel);
        attest_problem p = problem_of(bad[i].line);
        attest_plan *plan = NULL;
        if (tap_case("%s on %s: %s", bad[i].kernel, bad[i].device, bad[i].line)) {
            attest_status status = attest_plan_create(context, &p, bad[i].kernel, &plan);
            tap_check(status == bad[i].status && !plan, "the status is %s", attest_status_name(status));
            says(context, bad[i].sentence);
        }
        attest_plan_destroy(plan);
        attest_context_destroy(context);
    }
    /* Pieces of a fixed length can be too many. */
    struct made *pieces = kernel_make(ATTEST_LAUNCH_SPLIT, 0);
    attest_context *with_pieces = context_on("cuda", &pieces->kernel);
    attest_problem long_one = problem_of("fwd:f16:b4000:h4:sq1:skv100000000:d64:invariant");
    attest_plan *no_plan = NULL;
    tap_check(attest_plan_create(with_pieces, &long_one, "made_up", &no_plan) == ATTEST_ERROR_UNSUPPORTED, "2^32 blocks");
    says(with_pieces, "it would have more than 2^31 blocks");
    attest_context_destroy(with_pieces);
    free(pieces);
    /* A kernel for few tiles: what it takes depends on the batch, so that it is nothing for the invariant flag. */
    struct made *few = kernel_make(ATTEST_LAUNCH_GRID, 0);
    for (uint32_t i = 0; i < few->kernel.image_count; i++)
        few->images[i].tiles_most = 8;
    static const struct {
        const char *line, *sentence;
    } many[] = {{"fwd:f16:b1:h2:sq129:skv9:d64", "it is for at most 8 tiles, and there are 10"},
                {"fwd:f16:b1:h2:sq9:skv9:d64:invariant", "it takes problems by their number of tiles, which depends on the batch"},
                {"fwd:f16:b70000:h1:sq9:skv9:d64", "it takes at most 65535 sequences and heads"}};
    attest_context *with_few = context_on("cuda", &few->kernel);
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        attest_problem p = problem_of(many[i].line);
        tap_check(attest_plan_create(with_few, &p, "made_up", &no_plan) == ATTEST_ERROR_UNSUPPORTED, "%s", many[i].line);
        says(with_few, many[i].sentence);
    }
    attest_context_destroy(with_few);
    free(few);
    /* Without padding: dims that are there, and no others. */
    made->kernel.options = 0;
    attest_context *context = context_on("cuda", &made->kernel);
    attest_problem p = problem_of("fwd:f16:b1:h1:sq1:skv1:d80");
    attest_plan *plan = NULL;
    tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_ERROR_UNSUPPORTED, "d80");
    says(context, "dim 80 is none of 64 128");
    attest_context_destroy(context);
    free(made);
}

/* Tables that cannot be. */
static void tables(void)
{
    struct made *made = kernel_make(ATTEST_LAUNCH_SPLIT, 0);
    attest_context *context = context_on("cuda", NULL);
    const struct made good = *made;
#define BAD(change, sentence)                                                                                                      \
    do {                                                                                                                           \
        *made = good;                                                                                                              \
        made->kernel.images = made->images;                                                                                        \
        change;                                                                                                                    \
        tap_check(attest_context_add_cuda_kernel(context, &made->kernel) == ATTEST_ERROR_ARGUMENT, #change " should be refused");  \
        says(context, sentence);                                                                                                   \
    } while (0)
    BAD(made->kernel.abi = 9, "kernel.abi is 9");
    BAD(made->kernel.name = "a-b", "kernel.name must be letters");
    BAD(made->kernel.name = NULL, "kernel.name must be letters");
    BAD(made->kernel.launch = 5, "kernel.launch is 5");
    BAD(made->kernel.map_count = 5, "kernel.map_count is 5");
    BAD(made->kernel.map_count = 1, "kernel.map_tensor must be q, k, v or o");
    BAD(made->kernel.image_count = 0, "kernel.images is empty");
    BAD(made->images[2].data = NULL, "kernel.images[2] has no data");
    BAD(made->images[2].kind = 4, "is of no known kind");
    BAD(made->images[2].facts.args_size = 8, "was compiled for another version");
    BAD(made->images[2].facts.dtype = ATTEST_BF16, "a dtype that the kernel does not take");
    BAD(made->images[2].facts.dim = 513, "a dim or tiles that cannot be");
    BAD(made->images[2].facts.threads = 100, "a number of threads");
    BAD(made->images[2].split_keys = 100, "split_keys and partial");
    BAD(made->images[2].partial = 0, "split_keys and partial");
    BAD(made->images[2].align = 24, "an align that cannot be");
    BAD((made->images[1].kind = ATTEST_PTX, made->images[1].data = "image, PTXimage, PTX", made->images[1].bytes = 10),
        "does not end in a zero byte");
#undef BAD
    tap_check(attest_context_add_cuda_kernel(context, NULL) == ATTEST_ERROR_ARGUMENT, "NULL");
    tap_check(attest_context_add_cuda_kernel(NULL, &made->kernel) == ATTEST_ERROR_ARGUMENT, "no context");
    attest_context_destroy(context);
    free(made);
}

/* ------------------------------------------------------------------------------------------------------------ launches -- */

/* Every field of what a kernel is told. */
static void arguments(void)
{
    struct made *made = kernel_make(ATTEST_LAUNCH_TILE, ATTEST_CUDA_PADS | ATTEST_CUDA_PACKS);
    attest_context *context = context_on("cuda:1", &made->kernel);
    attest_problem p =
        problem_of("fwd:f16:b3:hq8:hkv2:sq20:skv90:d48:dv40:o=f32:br:wl=7:wr=5:softcap=30:alibi:bias:sink:lse:varlenq=50:"
                   "lens:page=16,40:scale=0.25");
    p.stride_bias[3] = 2;
    attest_plan *plan = NULL;
    attest_tensors t = {.size = sizeof t,
                        .q = arena,
                        .k = arena + 1,
                        .v = arena + 2,
                        .o = arena + (1 << 15),
                        .lse = (float *)(void *)(arena + (1 << 14)),
                        .bias = arena + 3,
                        .alibi_slopes = (float *)(void *)(arena + 4),
                        .sinks = (float *)(void *)(arena + 8),
                        .cu_seqlens_q = (int32_t *)(void *)(arena + 12),
                        .kv_lengths = (int32_t *)(void *)(arena + 16),
                        .page_table = (int32_t *)(void *)(arena + 20)};
    /* Far apart, so that nothing overlaps; nobody looks there. */
    t.k = (void *)(uintptr_t)0x10000000000;
    t.v = (void *)(uintptr_t)0x20000000000;
    t.q = (void *)(uintptr_t)0x30000000000;
    t.o = (void *)(uintptr_t)0x40000000000;
    t.bias = (void *)(uintptr_t)0x50000000000;
    if (!tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_OK, "%s", attest_context_detail(context)))
        return;
    tap_check(attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_OK, "%s", attest_context_detail(context));
    attest_cuda_args got = launch_back(0)->args;
    attest_cuda_args want = {.q = t.q,
                             .k = t.k,
                             .v = t.v,
                             .o = t.o,
                             .lse = t.lse,
                             .bias = t.bias,
                             .alibi_slopes = t.alibi_slopes,
                             .sinks = t.sinks,
                             .cu_seqlens_q = t.cu_seqlens_q,
                             .kv_lengths = t.kv_lengths,
                             .page_table = t.page_table,
                             .stride_page_table = p.stride_page_table,
                             .flags = p.flags,
                             .batch = 3,
                             .heads_q = 8,
                             .heads_kv = 2,
                             .seq_q = 20,
                             .seq_kv = 90,
                             .dim = 48,
                             .dim_v = 40,
                             .total_q = 50,
                             .page_size = 16,
                             .page_count = 40,
                             .window_left = 7,
                             .window_right = 5,
                             .dtype_o = ATTEST_F32,
                             .dtype_bias = p.dtype_bias,
                             .scale = 0.25f,
                             .softcap = 30,
                             .pack = 4,
                             .slots = 2,
                             .tiles_q = 3, /* 20 rows of 4 heads in tiles of 32 */
                             .tiles = 18,
                             .splits = 1,
                             .aligned = ATTEST_ALIGNED_Q | ATTEST_ALIGNED_K | ATTEST_ALIGNED_V | ATTEST_ALIGNED_O};
    memcpy(want.stride_q, p.stride_q, sizeof want.stride_q);
    memcpy(want.stride_k, p.stride_k, sizeof want.stride_k);
    memcpy(want.stride_v, p.stride_v, sizeof want.stride_v);
    memcpy(want.stride_o, p.stride_o, sizeof want.stride_o);
    memcpy(want.stride_lse, p.stride_lse, sizeof want.stride_lse);
    memcpy(want.stride_bias, p.stride_bias, sizeof want.stride_bias);
    int32_t got_words[sizeof got / 4], want_words[sizeof want / 4];
    memcpy(got_words, &got, sizeof got);
    memcpy(want_words, &want, sizeof want);
    for (size_t at = 0; at < sizeof want / 4; at++)
        tap_check(got_words[at] == want_words[at], "the arguments differ at byte %zu: %d, not %d", at * 4, got_words[at],
                  want_words[at]);
    /* Which tensors are aligned to 16 bytes. */
    attest_tensors odd = t;
    odd.k = (const char *)t.k + 8;
    odd.o = (char *)t.o + 4;
    tap_check(attest_run(context, plan, &odd, NULL, 0, NULL) == ATTEST_OK, "%s", attest_context_detail(context));
    tap_check(launch_back(0)->args.aligned == (ATTEST_ALIGNED_Q | ATTEST_ALIGNED_V), "aligned is %u", launch_back(0)->args.aligned);
    attest_plan_destroy(plan);

    /* Masks by position are two numbers. */
    static const struct {
        const char *line;
        int32_t left, right;
    } windows[] = {{"fwd:f16:b1:h1:sq4:skv4:d64", ATTEST_CUDA_UNBOUNDED, ATTEST_CUDA_UNBOUNDED},
                   {"fwd:f16:b1:h1:sq4:skv4:d64:causal", ATTEST_CUDA_UNBOUNDED, 0},
                   {"fwd:f16:b1:h1:sq4:skv4:d64:causal:wl=0:wr=9", 0, 0},
                   {"fwd:f16:b1:h1:sq4:skv4:d64:wl=3000000000:wr=1", ATTEST_CUDA_UNBOUNDED, 1}};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        p = problem_of(windows[i].line);
        t = tensors_of(&p);
        tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_OK &&
                      attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_OK,
                  "%s", attest_context_detail(context));
        got = launch_back(0)->args;
        tap_check(got.window_left == windows[i].left && got.window_right == windows[i].right, "%s: %d and %d", windows[i].line,
                  got.window_left, got.window_right);
        attest_plan_destroy(plan);
    }
    /* No page can be looked up where there are none. */
    p = problem_of("fwd:f16:b1:h1:sq4:skv64:d64:lens:page=16,0");
    t = (attest_tensors){.size = sizeof t, .q = arena, .o = arena + 8192, .kv_lengths = (int32_t *)(void *)(arena + 16384)};
    t.page_table = t.kv_lengths + 4;
    if (tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_OK &&
                      attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_OK,
                  "%s", attest_context_detail(context)))
        tap_check(launch_back(0)->args.seq_kv == 0, "there are %d keys", launch_back(0)->args.seq_kv);
    attest_plan_destroy(plan);
    attest_context_destroy(context);
    free(made);
}

static void grids(void)
{
    static const struct {
        const char *line;
        uint32_t launch;
        unsigned grid, combine; /* blocks */
        int32_t splits, split_keys;
        size_t workspace;
    } want[] = {
        {"fwd:f16:b2:h4:sq100:skv50:d64", ATTEST_LAUNCH_TILE, 32, 0, 1, 0, 0},
        {"fwd:f16:b2:h4:sq100:skv50:d64", ATTEST_LAUNCH_PERSISTENT, 32, 0, 1, 0, 0},
        {"fwd:f16:b20:h40:sq100:skv50:d64", ATTEST_LAUNCH_PERSISTENT, 264, 0, 1, 0, 0},
        {"fwd:f16:b0:h4:sq100:skv50:d64", ATTEST_LAUNCH_TILE, 0, 0, 1, 0, 0},
        {"fwd:f16:b2:h4:sq0:skv50:d64", ATTEST_LAUNCH_TILE, 0, 0, 1, 0, 0},
        {"fwd:f16:b2:h4:sq100:skv50:d64", ATTEST_LAUNCH_GRID, 4, 0, 1, 0, 0},
        {"fwd:f16:b2:h4:sq0:skv50:d64", ATTEST_LAUNCH_GRID, 0, 0, 1, 0, 0},
        {"fwd:f16:b2:h4:sq1:skv0:d64", ATTEST_LAUNCH_SPLIT, 8, 0, 1, 64, 0},
        {"fwd:f16:b2:h4:sq1:skv0:d64:invariant", ATTEST_LAUNCH_SPLIT, 8, 0, 1, 256, 0},
        {"fwd:f16:b1:h4:sq1:skv127:d64", ATTEST_LAUNCH_SPLIT, 4, 0, 1, 128, 0},
        {"fwd:f16:b1:h4:sq1:skv255:d64", ATTEST_LAUNCH_SPLIT, 8, 4, 2, 128, 8 * 32 * 68 * 4},
        {"fwd:f16:b1:h4:sq1:skv1000:d64", ATTEST_LAUNCH_SPLIT, 32, 4, 8, 128, 32 * 32 * 68 * 4},
        {"fwd:f16:b1:h4:sq1:skv1000:d64:invariant", ATTEST_LAUNCH_SPLIT, 16, 4, 4, 256, 16 * 32 * 68 * 4},
        /* 132 multiprocessors, 4 tiles: 33 pieces at most, of 1024 keys, which are then 32 */
        {"fwd:f16:b1:h4:sq1:skv32768:d64", ATTEST_LAUNCH_SPLIT, 128, 4, 32, 1024, (size_t)128 * 32 * 68 * 4},
        {"fwd:f16:b1:h4:sq1:skv32768:d64:invariant", ATTEST_LAUNCH_SPLIT, 512, 4, 128, 256, (size_t)512 * 32 * 68 * 4},
        {"fwd:f16:b100:h4:sq1:skv32768:d64", ATTEST_LAUNCH_SPLIT, 400, 0, 1, 32768, 0},
        {"fwd:f16:b100:h4:sq1:skv1000:d64:invariant", ATTEST_LAUNCH_SPLIT, 1600, 400, 4, 256, (size_t)1600 * 32 * 68 * 4},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        for (int pdl = 0; pdl < 2; pdl++)
            for (int device = 0; device < 3; device += 2) {
                struct made *made = kernel_make(want[i].launch, pdl ? ATTEST_CUDA_PDL : 0);
                attest_context *context = context_on(device ? "cuda:2" : "cuda:0", &made->kernel);
                attest_problem p = problem_of(want[i].line);
                attest_tensors t = tensors_of(&p);
                attest_plan *plan = NULL;
                t.o = (void *)(uintptr_t)0x70000000000;
                t.k = (void *)(uintptr_t)0x10000000000;
                t.v = (void *)(uintptr_t)0x20000000000;
                t.q = (void *)(uintptr_t)0x30000000000;
                if (tap_case("%s, launch %u", want[i].line, want[i].launch) &&
                    tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_OK, "%s",
                              attest_context_detail(context))) {
                    int before = fake->launches;
                    size_t size = attest_plan_workspace_size(plan);
                    void *workspace = (void *)(uintptr_t)(size ? 0x60000000000 : 0);
                    tap_check(attest_run(context, plan, &t, workspace, size, NULL) == ATTEST_OK, "%s",
                              attest_context_detail(context));
                    int launches = fake->launches - before;
                    const struct fake_launch *first = launch_back(launches - 1), *last = launch_back(0);
                    if (device == 0) {
                        tap_check(size == want[i].workspace, "the workspace is %zu bytes", size);
                        tap_check(launches == (want[i].grid ? 1 : 0) + (want[i].combine ? 1 : 0), "%d launches", launches);
                    }
                    if (launches && device == 0) {
                        tap_check(first->grid == want[i].grid && strcmp(first->function, "attest_kernel") == 0, "the grid is %u",
                                  first->grid);
                        tap_check(first->args.splits == want[i].splits && first->args.split_keys == want[i].split_keys,
                                  "%d pieces of %d", first->args.splits, first->args.split_keys);
                        tap_check(first->args.partial == (size ? workspace : NULL), "partial is %p", (void *)first->args.partial);
                        tap_check(!first->early, "the first kernel must not be early");
                        bool grid = want[i].launch == ATTEST_LAUNCH_GRID;
                        tap_check(first->grid_y == (grid ? 4u : 1u) && first->grid_z == (grid ? 2u : 1u),
                                  "the grid is %u x %u x %u", first->grid, first->grid_y, first->grid_z);
                    }
                    if (launches == 2) {
                        tap_check(strcmp(last->function, "attest_combine") == 0 && last->grid == (unsigned)last->args.tiles &&
                                      last->block == 128 && last->shared == 0 &&
                                      memcmp(&last->args, &first->args, sizeof last->args) == 0,
                                  "the second launch is wrong");
                        tap_check(last->early == (pdl && device == 0), "%s", last->early ? "it is early" : "it is not early");
                    }
                }
                attest_plan_destroy(plan);
                attest_context_destroy(context);
                free(made);
            }
    tap_check(fake->depth == 0, "%d contexts are left on the stack", fake->depth);
}

/* What explain says of a kernel of the library on a GPU, and of those on the CPU. */
static void explanations(void)
{
    attest_context *context = context_on("cuda", NULL);
    attest_problem p = problem_of("fwd:f32:b2:h4:sq100:skv50:d64");
    char text[8192] = "";
    attest_status status = attest_explain(context, &p, text, sizeof text);
    if (!has_kernels(false)) {
        tap_check(status == ATTEST_ERROR_UNAVAILABLE, "without kernels the status is %s", attest_status_name(status));
        says(context, "this library was built without nvcc, so it has no kernels for GPUs");
    } else {
        tap_check(status == ATTEST_OK, "%s", attest_context_detail(context));
        tap_check(strstr(text, ": runs, with tiles of ") && strstr(text, " threads and 0 bytes of workspace"), "%s", text);
        tap_check(strstr(text, "cpu_fwd_f32_scalar: does not, it runs on the CPU, and this context is on cuda:0\n") != NULL, "%s",
                  text);
        tap_check(strstr(text, "ref_fwd: does not, it runs on the CPU") != NULL, "%s", text);
    }
    attest_context_destroy(context);
    context = context_on("cpu", NULL);
    tap_check(attest_explain(context, &p, text, sizeof text) == ATTEST_OK, "%s", attest_context_detail(context));
    if (has_kernels(false))
        tap_check(strstr(text, ": does not, it needs an NVIDIA GPU, and this context is on the CPU\n") != NULL, "%s", text);
    attest_context_destroy(context);
}

/* Every image of the library can be planned with, and says what it needs. */
static void library(void)
{
    static const char *const shapes[] = {"b1:hq4:hkv2:sq100:skv200:d64", "b1:hq4:hkv2:sq1:skv2000:d128", "b1:h1:sq3:skv5:d256:lse",
                                         "b1:h1:sq9:skv5:d500:lse"};
    static const char *const types[] = {"f32", "f16", "bf16"};
    static const char *const on[] = {"cuda:0", "cuda:2", "cuda:3"};
    int plans = 0;
    for (size_t d = 0; d < 3; d++)
        for (size_t t = 0; t < 3; t++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
                char line[128];
                snprintf(line, sizeof line, "fwd:%s:%s", types[t], shapes[s]);
                attest_context *context = context_on(on[d], NULL);
                attest_problem p = problem_of(line);
                attest_kernel_info info = {0};
                for (int k = 0; (k = drive_next(context, &p, k, &info)) >= 0; k++) {
                    attest_plan *plan = NULL;
                    tap_check(attest_plan_create(context, &p, info.name, &plan) == ATTEST_OK, "%s on %s: %s: %s", info.name, on[d],
                              line, attest_context_detail(context));
                    attest_plan_destroy(plan);
                    tap_check(strncmp(info.needs, "sm_", 3) == 0 && strcmp(info.backend, "cuda") == 0, "%s needs %s", info.name,
                              info.needs);
                    plans++;
                }
                attest_context_destroy(context);
            }
    tap_note("%d plans", plans);
    if (!has_kernels(false))
        tap_skip("this library was built without nvcc");
    else
        tap_check(plans >= 36, "only %d plans", plans);
}

static void maps(void)
{
    static const struct {
        const char *line;
        struct fake_map want[3]; /* q, k, o */
    } cases[] = {
        {"fwd:f16:b2:hq4:hkv2:sq100:skv50:d64",
         {{.type = 6, .rank = 5, .sizes = {64, 2, 100, 2, 2}, .strides = {12800, 128, 25600, 51200}, .box = {32, 2, 16, 1, 1}},
          {.type = 6, .rank = 4, .sizes = {64, 50, 2, 2}, .strides = {128, 6400, 12800}, .box = {64, 64, 1, 1}},
          {.type = 6, .rank = 5, .sizes = {64, 2, 100, 2, 2}, .strides = {12800, 128, 25600, 51200}, .box = {32, 2, 16, 1, 1}}}},
        {"fwd:f16:b2:hq4:hkv2:sq100:skv50:d64:o=f32:varlenq=150:lens:page=16,9",
         {{.type = 6, .rank = 5, .sizes = {64, 2, 150, 2, 1}, .strides = {128, 512, 256, 16}, .box = {32, 2, 16, 1, 1}},
          {.type = 6, .rank = 4, .sizes = {64, 16, 2, 9}, .strides = {256, 128, 4096}, .box = {64, 64, 1, 1}},
          {.type = 7, .rank = 5, .sizes = {64, 2, 150, 2, 1}, .strides = {256, 1024, 512, 16}, .box = {32, 2, 16, 1, 1}}}},
        {"fwd:f16:b1:hq4:hkv2:sq1:skv0:d64",
         {{.type = 6, .rank = 5, .sizes = {64, 2, 1, 2, 1}, .strides = {128, 128, 256, 512}, .box = {32, 2, 16, 1, 1}},
          {.type = 6, .rank = 4, .sizes = {64, 1, 2, 1}, .strides = {128, 16, 16}, .box = {64, 64, 1, 1}},
          {.type = 6, .rank = 5, .sizes = {64, 2, 1, 2, 1}, .strides = {128, 128, 256, 512}, .box = {32, 2, 16, 1, 1}}}},
    };
    struct made *made = kernel_make(ATTEST_LAUNCH_TILE, ATTEST_CUDA_PACKS);
    made->kernel.map_count = 3;
    memcpy(made->kernel.map_tensor, "qko", 3);
    made->kernel.map_swizzle[0] = 64;
    made->kernel.map_swizzle[1] = 128;
    for (uint32_t i = 0; i < made->kernel.image_count; i++) {
        made->images[i].align = 16;
        for (int m = 0; m < 3; m++) {
            made->images[i].map_rows[m] = m == 1 ? 64 : 32;
            made->images[i].map_columns[m] = m == 1 ? 64 : 32;
        }
    }
    attest_context *context = context_on("cuda", &made->kernel);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        attest_problem p = problem_of(cases[i].line);
        attest_plan *plan = NULL;
        attest_tensors t = {.size = sizeof t, .q = (void *)(uintptr_t)0x30000000000, .o = (void *)(uintptr_t)0x40000000000};
        t.k = p.seq_kv ? (void *)(uintptr_t)0x10000000000 : NULL;
        t.v = t.k ? (void *)(uintptr_t)0x20000000000 : NULL;
        t.cu_seqlens_q = p.flags & ATTEST_VARLEN_Q ? (int32_t *)(void *)arena : NULL;
        t.kv_lengths = p.flags & ATTEST_KV_LENGTHS ? (int32_t *)(void *)arena : NULL;
        t.page_table = p.flags & ATTEST_PAGED ? (int32_t *)(void *)arena : NULL;
        int before = fake->maps;
        if (!tap_case("%s", cases[i].line) ||
            !tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_OK, "%s", attest_context_detail(context)))
            continue;
        tap_check(attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_OK && fake->maps == before + 3, "%s",
                  attest_context_detail(context));
        for (int m = 0; m < 3; m++) {
            const struct fake_map *got = &fake->map[(before + m) % FAKE_MAPS], *want = &cases[i].want[m];
            tap_check(got->type == want->type && got->rank == want->rank &&
                          got->swizzle == (m == 0   ? 2
                                           : m == 1 ? 3
                                                    : 0) &&
                          !got->interleave && !got->fill,
                      "map %d: type %d, rank %u, swizzle %d", m, got->type, got->rank, got->swizzle);
            for (uint32_t n = 0; n < want->rank; n++)
                tap_check(got->sizes[n] == want->sizes[n] && got->box[n] == want->box[n], "map %d: dimension %u is %llu, box %u", m,
                          n, (unsigned long long)got->sizes[n], got->box[n]);
            for (uint32_t n = 0; n + 1 < want->rank; n++)
                tap_check(got->strides[n] == want->strides[n], "map %d: stride %u is %llu", m, n,
                          (unsigned long long)got->strides[n]);
        }
        t.q = (void *)(uintptr_t)0x30000000008;
        tap_check(attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_ERROR_ARGUMENT, "Q at a multiple of 8");
        says(context, "tensors.q is not aligned to 16 bytes, as made_up needs it");
        t.q = (void *)(uintptr_t)0x30000000000;
        fake->fail_map = 1;
        tap_check(attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_ERROR_DEVICE, "no map");
        says(context, "there is no tensor map of tensors.q: something made up (CUDA_ERROR_FAKE, CUDA error 1)");
        attest_plan_destroy(plan);
    }
    attest_problem p = problem_of("fwd:f16:b1:hq3:hkv1:sq1:skv4:d64");
    attest_plan *plan = NULL;
    tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_ERROR_UNSUPPORTED, "3 heads in 32 rows");
    says(context, "32 rows are no multiple of 3 heads");
    p = problem_of("fwd:f16:b1:h1:sq1:skv4:d64");
    p.stride_k[2] = -64;
    tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_ERROR_UNSUPPORTED, "a negative stride");
    says(context, "the strides of K must be from 0 to 2^40 bytes");
    attest_context_destroy(context);
    free(made);
}

/* -------------------------------------------------------------------------------------------------------------- timing -- */

static void timing(void)
{
    struct made *made = kernel_make(ATTEST_LAUNCH_SPLIT, ATTEST_CUDA_PDL);
    attest_context *context = context_on("cuda", &made->kernel), *other = context_on("cuda:1", &made->kernel);
    attest_problem p = problem_of("fwd:f16:b1:h4:sq1:skv1000:d64");
    attest_tensors t = tensors_of(&p);
    attest_plan *plan = NULL;
    t.k = (void *)(uintptr_t)0x10000000000;
    t.v = (void *)(uintptr_t)0x20000000000;
    if (!tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_OK, "%s", attest_context_detail(context)))
        return;
    void *workspace = NULL;
    size_t size = attest_plan_workspace_size(plan);
    attest_memory_alloc(context, size, &workspace);
    attest_cuda_call calls[3] = {{plan, &t, workspace, size}, {plan, &t, workspace, size}, {plan, &t, workspace, size}};
    double seconds = 0;
    int launches = fake->launches, graphs = fake->graph_launches;
    tap_check(attest_cuda_time(context, calls, 3, 4, &seconds) == ATTEST_OK, "%s", attest_context_detail(context));
    tap_check(fake->launches == launches + 6 && launch_back(0)->captured && launch_back(5)->captured, "the calls are not captured");
    tap_check(fake->graph_launches == graphs + 5, "%d launches of the graph", fake->graph_launches - graphs);
    tap_check(seconds > 0.000499 && seconds < 0.000501, "%g seconds", seconds); /* 6 ms for 12 calls */
    calls[1].workspace_size = 8;
    tap_check(attest_cuda_time(context, calls, 3, 4, &seconds) == ATTEST_ERROR_WORKSPACE, "a workspace of 8 bytes");
    says(context, "workspace_size is 8; the plan needs");
    calls[1].workspace_size = size;
    fake->fail_launch = 1;
    tap_check(attest_cuda_time(context, calls, 3, 4, &seconds) == ATTEST_ERROR_DEVICE, "a launch that fails");
    fake->fail_instantiate = 1;
    tap_check(attest_cuda_time(context, calls, 3, 4, &seconds) == ATTEST_ERROR_DEVICE, "a graph that cannot be");
    says(context, "the graph cannot be made ready");
    tap_check(attest_cuda_time(context, NULL, 3, 4, &seconds) == ATTEST_ERROR_ARGUMENT, "no calls");
    tap_check(attest_cuda_time(context, calls, 0, 4, &seconds) == ATTEST_ERROR_ARGUMENT, "0 calls");
    tap_check(attest_cuda_time(context, calls, 3, 4, NULL) == ATTEST_ERROR_ARGUMENT, "no seconds");
    tap_check(attest_cuda_time(other, calls, 1, 1, &seconds) == ATTEST_ERROR_ARGUMENT, "a plan of another GPU");
    says(other, "the plan was made for another device than cuda:1");
    attest_context *cpu = context_on("cpu", NULL);
    tap_check(attest_cuda_time(cpu, calls, 1, 1, &seconds) == ATTEST_ERROR_UNAVAILABLE, "on the CPU");
    says(cpu, "attest_cuda_time needs an NVIDIA GPU");
    tap_check(attest_run(cpu, plan, &t, workspace, size, NULL) == ATTEST_ERROR_ARGUMENT, "a plan of a GPU on the CPU");
    tap_check(fake->streams == 0 && fake->events == 0 && fake->graphs == 0 && fake->captures == 0,
              "left are %d streams, %d events, %d graphs, %d captures", fake->streams, fake->events, fake->graphs, fake->captures);
    tap_check(fake->depth == 0, "%d contexts are left on the stack", fake->depth);
    attest_memory_free(context, workspace);
    attest_plan_destroy(plan);
    attest_context_destroy(cpu);
    attest_context_destroy(other);
    attest_context_destroy(context);
    free(made);
}

/* --------------------------------------------------------------------------------------------------------------- runs -- */

/* What attest_run checks, and that it allocates nothing and waits for nothing. */
static void runs(void)
{
    struct made *made = kernel_make(ATTEST_LAUNCH_SPLIT, 0);
    attest_context *context = context_on("cuda", &made->kernel);
    attest_problem p = problem_of("fwd:f16:b1:h4:sq1:skv1000:d64:lse");
    attest_plan *plan = NULL;
    attest_tensors t = {.size = sizeof t, .q = (void *)(uintptr_t)0x30000000000, .o = (void *)(uintptr_t)0x40000000000};
    t.k = (void *)(uintptr_t)0x10000000000;
    t.v = (void *)(uintptr_t)0x20000000000;
    t.lse = (void *)(uintptr_t)0x50000000000;
    char *workspace = (void *)(uintptr_t)0x60000000000;
    tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_OK, "%s", attest_context_detail(context));
    size_t size = attest_plan_workspace_size(plan);
    void *stream = calloc(1, 64);
    int launches = fake->launches, waits = fake->waits, allocations = host_allocations;
    long memory_before = fake->allocations;
    for (int i = 0; i < 100; i++)
        tap_check(attest_run(context, plan, &t, workspace, size, stream) == ATTEST_OK, "%s", attest_context_detail(context));
    tap_check(host_allocations == allocations, "%d allocations in 100 runs", host_allocations - allocations);
    tap_check(fake->waits == waits && fake->allocations == memory_before, "it waited or allocated");
    tap_check(fake->launches == launches + 200 && launch_back(0)->stream == stream && launch_back(1)->stream == stream,
              "the launches are not in the stream");
#define BAD(change, wanted, sentence)                                                                                              \
    do {                                                                                                                           \
        attest_tensors bad = t;                                                                                                    \
        void *place = workspace;                                                                                                   \
        size_t bytes = size;                                                                                                       \
        change;                                                                                                                    \
        launches = fake->launches;                                                                                                 \
        tap_check(attest_run(context, plan, &bad, place, bytes, NULL) == wanted && fake->launches == launches,                     \
                  #change " should be refused");                                                                                   \
        says(context, sentence);                                                                                                   \
    } while (0)
    BAD(bad.k = NULL, ATTEST_ERROR_ARGUMENT, "tensors.k is NULL");
    BAD(bad.lse = NULL, ATTEST_ERROR_ARGUMENT, "tensors.lse is NULL");
    BAD(bad.sinks = t.lse, ATTEST_ERROR_ARGUMENT, "tensors.sinks is given");
    BAD(bad.q = (char *)workspace + 1, ATTEST_ERROR_ARGUMENT, "tensors.q is not aligned to its element size");
    BAD(bad.o = (char *)(uintptr_t)t.q + 2, ATTEST_ERROR_ARGUMENT, "tensors.o overlaps tensors.q in memory");
    BAD((place = NULL), ATTEST_ERROR_WORKSPACE, "workspace is NULL");
    BAD((bytes = size - 1), ATTEST_ERROR_WORKSPACE, "the plan needs");
    BAD((place = workspace + 32), ATTEST_ERROR_WORKSPACE, "workspace is not aligned to 64 bytes");
#undef BAD
    tap_check(attest_run(context, NULL, &t, workspace, size, NULL) == ATTEST_ERROR_ARGUMENT, "no plan");
    tap_check(attest_run(context, plan, NULL, workspace, size, NULL) == ATTEST_ERROR_ARGUMENT, "no tensors");

    /* Errors of a launch that the GPU recovers from. */
    fake->fail_launch = 701;
    tap_check(attest_run(context, plan, &t, workspace, size, NULL) == ATTEST_ERROR_DEVICE, "a launch that fails");
    says(context, "the kernel could not be launched: something made up (CUDA_ERROR_FAKE, CUDA error 701)");
    fake->fail_combine = 1234;
    tap_check(attest_run(context, plan, &t, workspace, size, NULL) == ATTEST_ERROR_DEVICE, "a second launch that fails");
    says(context,
         "the kernel that joins the pieces could not be launched: an error without a text (CUDA_ERROR_FAKE, CUDA error 1234)");
    tap_check(attest_run(context, plan, &t, workspace, size, NULL) == ATTEST_OK, "after that: %s", attest_context_detail(context));
    fake->fail_alloc = 2;
    void *memory_of = NULL;
    tap_check(attest_memory_alloc(context, 77, &memory_of) == ATTEST_ERROR_MEMORY && !memory_of, "no memory");
    says(context, "no 77 bytes of memory on cuda:0: out of memory");
    tap_check(fake->depth == 0, "%d contexts are left on the stack", fake->depth);
    attest_plan_destroy(plan);

    /* Images that do not load. */
    made->images[0].data = made->images[2].data = made->images[4].data = made->images[6].data = "image that is new: one    ......";
    for (uint32_t i = 0; i < made->kernel.image_count; i++)
        made->images[i].bytes = 32;
    fake->fail_load = 218;
    tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_ERROR_DEVICE && !plan, "an image that does not load");
    says(context, "the image of made_up does not load: ptxas says no: something made up");
    made->images[4].data = "image, nocombine, that is new...";
    int unloads = fake->unloads;
    tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_ERROR_DEVICE && !plan, "an image without attest_combine");
    says(context, "the image has no function attest_combine");
    tap_check(fake->unloads == unloads + 1, "it was not unloaded");
    made->images[4].data = "image that is new: two    ......";
    fake->blocks_per_sm = 0;
    tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_ERROR_UNAVAILABLE && !plan, "a block that does not fit");
    says(context, "no block of made_up fits on a multiprocessor of NVIDIA H200");
    fake->blocks_per_sm = 2;
    tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_OK, "%s", attest_context_detail(context));
    attest_plan_destroy(plan);
    attest_context_destroy(context);
    free(stream);
    free(made);
}

/* The one call moves every tensor there and back: what nothing computes comes back as it was. */
static void forward(void)
{
    struct instance in;
    attest_problem p = problem_of("fwd:f32:b2:hq4:hkv2:sq20:skv45:d64:varlenq=30:lens:page=8,20:bias:sink:alibi:lse");
    char why[512] = "";
    if (!has_kernels(false)) {
        tap_skip("this library was built without nvcc");
        return;
    }
    if (!instance_create(&in, &p, tap.seed, NULL))
        return;
    long before = fake->allocations;
    int launches = fake->launches;
    setenv("ATTEST_DEVICE", "cuda:1", 1);
    instance_poison(&in);
    tap_check(attest_forward(&p, &in.tensors, why, sizeof why) == ATTEST_OK, "%s", why);
    tap_check(instance_no_write(&in), "something was written");
    tap_check(fake->launches > launches && launch_back(0)->device == 1, "nothing was launched there");
    tap_check(fake->allocations == before, "%ld allocations are left", fake->allocations - before);
    /* Lengths are checked, because they are the host's. */
    int32_t kept = ((int32_t *)in.lengths.data)[1];
    ((int32_t *)in.lengths.data)[1] = 46;
    tap_check(attest_forward(&p, &in.tensors, why, sizeof why) == ATTEST_ERROR_ARGUMENT && strstr(why, "kv_lengths[1] is 46"), "%s",
              why);
    ((int32_t *)in.lengths.data)[1] = kept;
    for (int n = 1; n < 6; n++) {
        fake->fail_alloc = 2;
        tap_check(attest_forward(&p, &in.tensors, why, sizeof why) == ATTEST_ERROR_MEMORY, "%s", why);
        tap_check(fake->allocations == before, "%ld allocations are left", fake->allocations - before);
    }
    fake->fail_launch = 719 + 100;
    tap_check(attest_forward(&p, &in.tensors, why, sizeof why) == ATTEST_ERROR_DEVICE, "%s", why);
    tap_check(fake->allocations == before, "%ld allocations are left", fake->allocations - before);
    unsetenv("ATTEST_DEVICE");
    instance_destroy(&in);
}

/* ------------------------------------------------------------------------------------------------------------- threads -- */

enum { THREADS = 8, ROUNDS = 40 };
static struct made *shared_kernel;

static void *work(void *data)
{
    int *failures = data;
    attest_problem p = {0};
    attest_problem_parse("fwd:f16:b1:h4:sq1:skv1000:d64", &p, NULL, 0);
    for (int round = 0; round < ROUNDS; round++) {
        attest_context *context = NULL;
        attest_plan *plan = NULL;
        void *memory_of = NULL, *more = NULL;
        bool good = attest_context_create_on(round % 2 ? "cuda:0" : "cuda:1", &context) == ATTEST_OK &&
                    attest_context_add_cuda_kernel(context, &shared_kernel->kernel) == ATTEST_OK &&
                    attest_plan_create(context, &p, "made_up", &plan) == ATTEST_OK &&
                    attest_memory_alloc(context, 1 << 20, &memory_of) == ATTEST_OK &&
                    attest_memory_alloc(context, attest_plan_workspace_size(plan), &more) == ATTEST_OK;
        attest_tensors t = {.size = sizeof t, .q = memory_of, .k = (char *)memory_of + 4096, .v = (char *)memory_of + 8192};
        t.o = (char *)memory_of + (1 << 19);
        good = good && attest_run(context, plan, &t, more, attest_plan_workspace_size(plan), NULL) == ATTEST_OK &&
               attest_synchronize(context, NULL) == ATTEST_OK && attest_memory_free(context, more) == ATTEST_OK &&
               attest_memory_free(context, memory_of) == ATTEST_OK;
        *failures += !good;
        attest_plan_destroy(plan);
        attest_context_destroy(context);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t all[THREADS];
    int failures[THREADS] = {0}, launches = fake->launches, loads;
    long before = fake->allocations;
    shared_kernel = kernel_make(ATTEST_LAUNCH_SPLIT, 0);
    for (uint32_t i = 0; i < shared_kernel->kernel.image_count; i++) {
        shared_kernel->images[i].data = "image for many threads";
        shared_kernel->images[i].bytes = 23;
    }
    loads = fake->loads;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&all[i], NULL, work, &failures[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(all[i], NULL);
        tap_check(failures[i] == 0, "thread %d failed %d times", i, failures[i]);
    }
    tap_check(fake->launches == launches + 2 * THREADS * ROUNDS, "%d launches", fake->launches - launches);
    tap_check(fake->loads == loads + 2, "%d loads on two GPUs", fake->loads - loads);
    tap_check(fake->allocations == before && fake->depth == 0, "something is left");
    free(shared_kernel);
}

/* -------------------------------------------------------------------------------------------------------------- sticky -- */

/* The last test of all: after an error that the GPU does not recover from nothing is done any more. */
static void sticky(void)
{
    struct made *made = kernel_make(ATTEST_LAUNCH_TILE, 0);
    attest_context *context = context_on("cuda", &made->kernel), *neighbour = context_on("cuda", &made->kernel);
    attest_problem p = problem_of("fwd:f16:b1:h1:sq1:skv1:d64");
    attest_tensors t = tensors_of(&p);
    attest_plan *plan = NULL, *no_plan = NULL;
    void *memory_of = NULL, *none = NULL;
    double seconds;
    tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_OK, "%s", attest_context_detail(context));
    tap_check(attest_memory_alloc(context, 100, &memory_of) == ATTEST_OK, "%s", attest_context_detail(context));
    tap_check(attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_OK, "%s", attest_context_detail(context));
    fake->fail_wait = 700;
    tap_check(attest_synchronize(context, NULL) == ATTEST_ERROR_DEVICE, "the error of the kernel");
    says(context, "the GPU: an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS, CUDA error 700)");
    int launches = fake->launches, loads = fake->loads;
    attest_cuda_call call = {plan, &t, NULL, 0};
    for (int i = 0; i < 2; i++) {
        attest_context *each = i ? neighbour : context;
        static const char sentence[] = "cuda:0 does nothing more in this process: an illegal memory access was encountered";
#define DEAD(call)                                                                                                                 \
    do {                                                                                                                           \
        tap_check((call) == ATTEST_ERROR_DEVICE, #call);                                                                           \
        says(each, sentence);                                                                                                      \
    } while (0)
        DEAD(attest_run(each, plan, &t, NULL, 0, NULL));
        DEAD(attest_plan_create(each, &p, "made_up", &no_plan));
        DEAD(attest_memory_alloc(each, 1, &none));
        DEAD(attest_memory_free(each, memory_of));
        DEAD(attest_memory_put(each, memory_of, arena, 1, NULL));
        DEAD(attest_memory_get(each, arena, memory_of, 1, NULL));
        DEAD(attest_memory_set(each, memory_of, 0, 1, NULL));
        DEAD(attest_synchronize(each, NULL));
        DEAD(attest_cuda_time(each, &call, 1, 1, &seconds));
    }
    tap_check(!no_plan && !none && fake->launches == launches && fake->loads == loads, "something was done all the same");
    /* The CPU and another GPU go on. */
    attest_context *cpu = context_on("cpu", NULL);
    tap_check(attest_memory_alloc(cpu, 10, &none) == ATTEST_OK && attest_memory_free(cpu, none) == ATTEST_OK, "the CPU");
    fake->sticky = 0;
    attest_context *other = context_on("cuda:1", &made->kernel);
    tap_check(attest_memory_alloc(other, 10, &none) == ATTEST_OK && attest_memory_free(other, none) == ATTEST_OK, "another GPU: %s",
              attest_context_detail(other));
    tap_check(fake->depth == 0, "%d contexts are left on the stack", fake->depth);
    attest_context_destroy(cpu);
    attest_context_destroy(other);
    attest_plan_destroy(plan);
    attest_context_destroy(context);
    attest_context_destroy(neighbour);
    free(made);
}

/* With --device: says what becomes of a context on "cuda", for drivers that fail. */
static int describe(void)
{
    attest_context *context = NULL;
    attest_status status = attest_context_create_on("cuda", &context);
    printf("%s: %s\n", attest_status_name(status), attest_context_detail(context));
    attest_context_destroy(context);
    status = attest_context_create_on("auto", &context);
    printf("auto: %s\n", status == ATTEST_OK ? attest_context_device(context) : attest_context_detail(context));
    attest_context_destroy(context);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"devices", devices}, {"memory", memory},       {"images", images}, {"refusals", refusals},
        {"tables", tables},   {"arguments", arguments}, {"grids", grids},   {"explanations", explanations},
        {"library", library}, {"maps", maps},           {"timing", timing}, {"runs", runs},
        {"forward", forward}, {"threads", threads},     {"sticky", sticky},
    };
    if (argc > 1 && strcmp(argv[1], "--device") == 0)
        return describe();
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    fake = driver ? dlsym(driver, "fake_cuda") : NULL;
    if (!fake) {
        printf("1..0 # SKIP the driver that is made up is not here: sh tests/cuda_backend.t brings it\n");
        return 0;
    }
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
