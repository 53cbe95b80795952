/*
 * Calls on GPUs that are made up (see made_up.h): devices, memory, timing and runs; that a run allocates nothing; and errors, also
 * those that a GPU does not recover from.
 */
#include "made_up.h"

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

/* -------------------------------------------------------------------------------------------------------------- timing -- */

static void timing(void)
{
    struct made *made = kernel_make(ATTEST_LAUNCH_SPLIT, ATTEST_CUDA_PDL);
    attest_context *context = context_on("cuda", &made->kernel), *other = context_on("cuda:1", &made->kernel);
    attest_problem p = problem_of("fwd:f16:b1:h4:sq1:skv1000:d64");
    attest_tensors t = tensors_of();
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

/* -------------------------------------------------------------------------------------------------------------- sticky -- */

/* The last test of all: after an error that the GPU does not recover from nothing is done any more. */
static void sticky(void)
{
    struct made *made = kernel_make(ATTEST_LAUNCH_TILE, 0);
    attest_context *context = context_on("cuda", &made->kernel), *neighbour = context_on("cuda", &made->kernel);
    attest_problem p = problem_of("fwd:f16:b1:h1:sq1:skv1:d64");
    attest_tensors t = tensors_of();
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
        {"devices", devices}, {"memory", memory}, {"timing", timing}, {"runs", runs}, {"forward", forward}, {"sticky", sticky},
    };
    if (argc > 1 && strcmp(argv[1], "--device") == 0)
        return describe();
    return made_up_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
