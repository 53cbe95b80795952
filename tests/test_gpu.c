/*
 * The CUDA backend on a real GPU: answers of all kernels against the oracle, with poisoned outputs and fringes that nobody may
 * touch; streams, graphs that are captured and replayed with other contents, threads, contexts of others, errors that a GPU does
 * not recover from. Without a GPU there is nothing to be tested, and the first line says so.
 */
#include "drive.h"
#include "tap.h"

#include <attest_kernel_cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------------------------------------ driver -- */

/* What a program that uses the driver by itself would call. */
static struct {
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*capture_begin)(void *stream, int mode);
    int (*capture_end)(void *stream, void **graph);
    int (*graph_instantiate)(void **exec, void *graph, unsigned long long flags);
    int (*graph_launch)(void *exec, void *stream);
    int (*graph_exec_destroy)(void *exec);
    int (*graph_destroy)(void *graph);
    int (*memory_info)(size_t *left, size_t *total);
    int (*retain)(void **context, int device);
    int (*set_current)(void *context);
    int (*get_current)(void **context);
} cu;

static bool driver_open(void)
{
    static const struct {
        const char *name;
        void *place;
    } functions[] = {{"cuStreamCreate", &cu.stream_create},
                     {"cuStreamDestroy_v2", &cu.stream_destroy},
                     {"cuStreamBeginCapture_v2", &cu.capture_begin},
                     {"cuStreamEndCapture", &cu.capture_end},
                     {"cuGraphInstantiateWithFlags", &cu.graph_instantiate},
                     {"cuGraphLaunch", &cu.graph_launch},
                     {"cuGraphExecDestroy", &cu.graph_exec_destroy},
                     {"cuGraphDestroy", &cu.graph_destroy},
                     {"cuMemGetInfo_v2", &cu.memory_info},
                     {"cuDevicePrimaryCtxRetain", &cu.retain},
                     {"cuCtxSetCurrent", &cu.set_current},
                     {"cuCtxGetCurrent", &cu.get_current}};
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = library ? dlsym(library, functions[i].name) : NULL;
        if (!found)
            return false;
        memcpy(functions[i].place, &found, sizeof found);
    }
    return true;
}

/* The primary context is current in this thread, as in a program that uses the CUDA runtime. */
static void become_current(void)
{
    void *primary = NULL;
    cu.retain(&primary, 0);
    cu.set_current(primary);
}

/* ---------------------------------------------------------------------------------------------------------- instances -- */

/* An instance whose bytes, fringes included, are copied to the GPU and back. */
enum { BUFFERS = 12, ALIGN = 256 };
struct on_gpu {
    attest_context *context;
    struct instance *in;
    struct buffer *host[BUFFERS];
    void *memory[BUFFERS]; /* as allocated */
    unsigned char *whole[BUFFERS];
    attest_tensors tensors;
    attest_plan *plan;
    void *workspace;
};

static void *moved(const struct on_gpu *gpu, const struct buffer *host)
{
    for (int i = 0; i < BUFFERS; i++)
        if (gpu->host[i] == host)
            return host->whole ? (void *)((uintptr_t)gpu->whole[i] + ((uintptr_t)host->data - (uintptr_t)host->whole)) : NULL;
    return NULL;
}

static bool put(struct on_gpu *gpu, void *stream)
{
    bool good = true;
    for (int i = 0; i < BUFFERS; i++)
        if (gpu->host[i]->whole)
            good = good && attest_memory_put(gpu->context, gpu->whole[i], gpu->host[i]->whole, gpu->host[i]->whole_size, stream) ==
                               ATTEST_OK;
    return tap_check(good, "put: %s", attest_context_detail(gpu->context));
}

static bool get(struct on_gpu *gpu, void *stream)
{
    bool good = true;
    for (int i = 0; i < BUFFERS; i++)
        if (gpu->host[i]->whole)
            good = good && attest_memory_get(gpu->context, gpu->host[i]->whole, gpu->whole[i], gpu->host[i]->whole_size, stream) ==
                               ATTEST_OK;
    return tap_check(good, "get: %s", attest_context_detail(gpu->context));
}

static void gpu_destroy(struct on_gpu *gpu)
{
    for (int i = 0; i < BUFFERS; i++)
        attest_memory_free(gpu->context, gpu->memory[i]);
    attest_memory_free(gpu->context, gpu->workspace);
    attest_plan_destroy(gpu->plan);
}

/* `aligned`: element 0 of each tensor lies at a multiple of 256 bytes, and else as odd as in the instance. */
static bool gpu_create(struct on_gpu *gpu, attest_context *context, struct instance *in, const char *kernel, bool aligned)
{
    struct buffer *host[BUFFERS] = {&in->q,     &in->k,     &in->v,    &in->o,     &in->lse,     &in->bias,
                                    &in->alibi, &in->sinks, &in->cu_q, &in->cu_kv, &in->lengths, &in->pages};
    *gpu = (struct on_gpu){.context = context, .in = in, .tensors = {.size = sizeof gpu->tensors}};
    memcpy(gpu->host, host, sizeof host);
    if (!tap_check(attest_plan_create(context, &in->problem, kernel, &gpu->plan) == ATTEST_OK, "plan for %s: %s",
                   kernel ? kernel : "any", attest_context_detail(context)))
        return false;
    size_t size = attest_plan_workspace_size(gpu->plan);
    bool good = attest_memory_alloc(context, size, &gpu->workspace) == ATTEST_OK &&
                attest_memory_set(context, gpu->workspace, 0xff, size, NULL) == ATTEST_OK;
    for (int i = 0; i < BUFFERS && good; i++) {
        if (!host[i]->whole)
            continue;
        size_t odd = ((uintptr_t)host[i]->data - (uintptr_t)host[i]->whole) % ALIGN;
        good = attest_memory_alloc(context, host[i]->whole_size + ALIGN, &gpu->memory[i]) == ATTEST_OK;
        gpu->whole[i] = (unsigned char *)gpu->memory[i] + (aligned ? (ALIGN - odd) % ALIGN : 0);
    }
    if (!tap_check(good, "memory: %s", attest_context_detail(context))) {
        gpu_destroy(gpu);
        return false;
    }
    gpu->tensors.q = moved(gpu, &in->q);
    gpu->tensors.k = moved(gpu, &in->k);
    gpu->tensors.v = moved(gpu, &in->v);
    gpu->tensors.o = moved(gpu, &in->o);
    gpu->tensors.lse = moved(gpu, &in->lse);
    gpu->tensors.bias = moved(gpu, &in->bias);
    gpu->tensors.alibi_slopes = moved(gpu, &in->alibi);
    gpu->tensors.sinks = moved(gpu, &in->sinks);
    gpu->tensors.cu_seqlens_q = moved(gpu, &in->cu_q);
    gpu->tensors.cu_seqlens_kv = moved(gpu, &in->cu_kv);
    gpu->tensors.kv_lengths = moved(gpu, &in->lengths);
    gpu->tensors.page_table = moved(gpu, &in->pages);
    return true;
}

static attest_status gpu_run(struct on_gpu *gpu, void *stream)
{
    return attest_run(gpu->context, gpu->plan, &gpu->tensors, gpu->workspace, attest_plan_workspace_size(gpu->plan), stream);
}

/* Tensor cores multiply 16-bit numbers, so P is rounded to the problem's type. */
static uint32_t p_dtype(const char *kernel, const attest_problem *p)
{
    return strstr(kernel, "scalar") || strstr(kernel, "simt") ? (uint32_t)ATTEST_F32 : p->dtype;
}

static void judge_now(struct on_gpu *gpu, const struct verdict_basis *basis)
{
    char why[512] = "";
    const char *kernel = attest_plan_kernel(gpu->plan);
    tap_check(instance_untouched(gpu->in, why, sizeof why), "%s: %s", kernel, why);
    tap_check(judge(basis, gpu->in, p_dtype(kernel, &gpu->in->problem), why, sizeof why), "%s: %s", kernel, why);
}

static bool problem_of(const char *dtype, const char *shape, attest_problem *p)
{
    char line[256], why[256] = "";
    snprintf(line, sizeof line, "fwd:%s:%s", dtype, shape);
    return tap_case("%s", line) && tap_check(attest_problem_parse(line, p, why, sizeof why) == ATTEST_OK, "%s: %s", line, why);
}

/* Whether the library has a kernel for GPUs that is proven: for candidates alone `auto` does not take a GPU. */
static bool has_proven(void)
{
    attest_kernel_info info = {.size = sizeof info};
    for (size_t k = 0; k < attest_kernel_count(); k++)
        if (attest_kernel_get(k, &info) == ATTEST_OK && strcmp(info.backend, "cuda") == 0 && !info.candidate)
            return true;
    return false;
}

static attest_context *context_on(const char *device)
{
    attest_context *context = NULL;
    if (tap_check(attest_context_create_on(device, &context) == ATTEST_OK, "%s: %s", device, attest_context_detail(context)))
        return context;
    attest_context_destroy(context);
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------------ answers -- */

static const char *const dtypes[] = {"f32", "f16", "bf16"};
static const char *const shapes[] = {
    "b2:hq4:hkv2:sq70:skv133:d64:lse",
    "b1:hq4:hkv4:sq200:skv200:d128:causal:lse",
    "b2:hq6:hkv2:sq33:skv190:d64:causal:br:lse",
    "b1:hq2:hkv1:sq150:skv150:d64:causal:wl=37:lse",
    "b1:h2:sq65:skv130:d96:br:wl=20:wr=11",
    "b1:h2:sq40:skv77:d40:softcap=3:alibi:lse",
    "b2:hq4:hkv1:sq31:skv100:d80:dv48:sink:lse",
    "b1:h3:sq37:skv64:d64:bias:lse",
    "b3:hq4:hkv2:sq60:skv90:d64:varlenq=120:varlenkv=200:causal:br:lse",
    "b4:hq8:hkv2:sq1:skv700:d128:lens:lse",
    "b3:hq8:hkv1:sq2:skv900:d64:lens:page=16,200:causal:br:lse",
    "b2:hq4:hkv4:sq1:skv3000:d64:lse:invariant",
    "b1:h2:sq50:skv60:d192:o=f32",
    "b1:h2:sq20:skv50:d256:causal:lse",
    "b1:h1:sq5:skv33:d512:lse",
    "b1:h1:sq1:skv1:d1",
    "b2:h2:sq4:skv0:d64:sink:lse",
    "b1:hq5:hkv1:sq3:skv300:d72:page=7,60:softcap=20:sink:lse",
};

static void answers(void)
{
    attest_context *context = context_on("cuda");
    int ran = 0;
    for (size_t t = 0; context && t < sizeof dtypes / sizeof *dtypes; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            attest_problem p;
            struct instance in;
            struct verdict_basis basis;
            if (!problem_of(dtypes[t], shapes[s], &p) || !instance_create(&in, &p, tap.seed, NULL))
                continue;
            attest_kernel_info info = {0};
            bool judged = basis_create(&basis, context, &in);
            for (int k = 0; judged && (k = drive_next(context, &p, k, &info)) >= 0; k++)
                for (int aligned = 0; aligned < 2; aligned++) {
                    struct on_gpu gpu;
                    if (!gpu_create(&gpu, context, &in, info.name, aligned))
                        continue;
                    instance_poison(&in);
                    put(&gpu, NULL);
                    attest_status status = gpu_run(&gpu, NULL);
                    bool odd = !aligned && status == ATTEST_ERROR_ARGUMENT && strstr(attest_context_detail(context), "aligned");
                    if (!odd && tap_check(status == ATTEST_OK, "%s: %s", info.name, attest_context_detail(context)) &&
                        get(&gpu, NULL))
                        judge_now(&gpu, &basis);
                    ran += !odd;
                    gpu_destroy(&gpu);
                }
            if (judged)
                basis_destroy(&basis);
            instance_destroy(&in);
        }
    tap_note("%d runs", ran);
    tap_check(ran > 0 || tap.one_case, "no kernel ran");
    attest_context_destroy(context);
}

/* Every pair of tiles that a kernel has. */
static void tiles(void)
{
    static const char *const pairs[] = {"32x64", "32x32", "48x64", "16x64", "64x64", "128x64", "7x9"};
    attest_context *context = context_on("cuda");
    attest_problem p;
    struct instance in;
    struct verdict_basis basis;
    int ran = 0;
    if (!context || !problem_of("f16", "b1:hq4:hkv2:sq100:skv150:d64:causal", &p) || !instance_create(&in, &p, tap.seed, NULL))
        return;
    basis_create(&basis, context, &in);
    attest_kernel_info info = {0};
    for (int k = 0; (k = drive_next(context, &p, k, &info)) >= 0; k++)
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
            char name[160];
            attest_plan *plan;
            struct on_gpu gpu;
            snprintf(name, sizeof name, "%s@%s", info.name, pairs[i]);
            attest_status status = attest_plan_create(context, &p, name, &plan);
            if (status != ATTEST_OK) {
                tap_check(status == ATTEST_ERROR_UNSUPPORTED && strstr(attest_context_detail(context), "it has no tiles of"),
                          "%s: %s", name, attest_context_detail(context));
                continue;
            }
            tap_check(strcmp(attest_plan_kernel(plan), name) == 0, "%s calls itself %s", name, attest_plan_kernel(plan));
            attest_plan_destroy(plan);
            if (!gpu_create(&gpu, context, &in, name, true))
                continue;
            instance_poison(&in);
            if (put(&gpu, NULL) && tap_check(gpu_run(&gpu, NULL) == ATTEST_OK, "%s: %s", name, attest_context_detail(context)) &&
                get(&gpu, NULL))
                judge_now(&gpu, &basis);
            gpu_destroy(&gpu);
            ran++;
        }
    tap_note("%d pairs", ran);
    basis_destroy(&basis);
    instance_destroy(&in);
    attest_context_destroy(context);
}

/* The one call, with ordinary memory. */
static void forward(void)
{
    attest_problem p;
    struct instance in;
    struct verdict_basis basis;
    attest_context *context = context_on("cpu");
    char why[512] = "";
    if (!context || !problem_of("f16", "b2:hq4:hkv2:sq40:skv90:d64:varlenq=70:lens:page=8,40:bias:sink:alibi:lse", &p) ||
        !instance_create(&in, &p, tap.seed, NULL))
        return;
    basis_create(&basis, context, &in);
    setenv("ATTEST_DEVICE", "cuda:0", 1);
    instance_poison(&in);
    attest_status status = attest_forward(&p, &in.tensors, why, sizeof why);
    unsetenv("ATTEST_DEVICE");
    if (tap_check(status == ATTEST_OK, "%s", why)) {
        tap_check(instance_untouched(&in, why, sizeof why), "%s", why);
        tap_check(judge(&basis, &in, ATTEST_F16, why, sizeof why), "%s", why);
    }
    basis_destroy(&basis);
    instance_destroy(&in);
    attest_context_destroy(context);
}

/* -------------------------------------------------------------------------------------------------- streams and graphs -- */

static double values_other(const struct instance *in, struct rng *rng, char tensor, int64_t b, int64_t h, int64_t row, int64_t d)
{
    return values_normal(in, rng, tensor, b, h, row, d) * (tensor == 'v' ? -2 : 0.5);
}

/* A call is captured into a graph, and the graph replayed with other contents in the same memory. */
static void graphs(void)
{
    static const char *const lines[] = {"b2:hq8:hkv2:sq100:skv200:d64:causal:br:lse", "b2:hq8:hkv2:sq1:skv5000:d128:lse",
                                        "b2:hq8:hkv2:sq1:skv900:d64:lens:page=16,130:lse"};
    attest_context *context = context_on("cuda");
    become_current();
    for (size_t s = 0; context && s < sizeof lines / sizeof *lines; s++)
        for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++) {
            attest_problem p;
            struct instance in;
            if (!problem_of(dtypes[t], lines[s], &p) || !instance_create(&in, &p, tap.seed, NULL))
                continue;
            attest_kernel_info info = {0};
            struct verdict_basis basis[2];
            for (int n = 0; n < 2; n++) {
                instance_refill(&in, n ? values_other : values_normal);
                basis_create(&basis[n], context, &in);
            }
            for (int k = 0; (k = drive_next(context, &p, k, &info)) >= 0; k++) {
                struct on_gpu gpu;
                void *stream = NULL, *graph = NULL, *exec = NULL;
                if (!gpu_create(&gpu, context, &in, info.name, true))
                    continue;
                tap_check(cu.stream_create(&stream, 1) == 0 && cu.capture_begin(stream, 0) == 0, "no capture");
                attest_status status = gpu_run(&gpu, stream);
                tap_check(status == ATTEST_OK, "%s: %s", info.name, attest_context_detail(context));
                bool good = tap_check(cu.capture_end(stream, &graph) == 0 && cu.graph_instantiate(&exec, graph, 0) == 0,
                                      "%s cannot be captured", info.name);
                for (int round = 0; good && round < 3; round++) {
                    instance_refill(&in, round % 2 ? values_other : values_normal);
                    instance_poison(&in);
                    put(&gpu, stream);
                    tap_check(cu.graph_launch(exec, stream) == 0, "the graph cannot be launched");
                    if (get(&gpu, stream))
                        judge_now(&gpu, &basis[round % 2]);
                }
                if (exec)
                    cu.graph_exec_destroy(exec);
                if (graph)
                    cu.graph_destroy(graph);
                cu.stream_destroy(stream);
                gpu_destroy(&gpu);
            }
            basis_destroy(&basis[0]);
            basis_destroy(&basis[1]);
            instance_destroy(&in);
        }
    attest_context_destroy(context);
}

/* A hundred runs take no memory of the GPU, and the timer says something that can be. */
static void timing(void)
{
    attest_context *context = context_on("cuda");
    attest_problem p;
    struct instance in;
    become_current();
    for (size_t t = 0; context && t < sizeof dtypes / sizeof *dtypes; t++) {
        if (!problem_of(dtypes[t], "b2:h8:sq512:skv512:d64", &p) || !instance_create(&in, &p, tap.seed, NULL))
            continue;
        attest_kernel_info info = {0};
        for (int k = 0; (k = drive_next(context, &p, k, &info)) >= 0; k++) {
            struct on_gpu gpu;
            size_t before = 0, after = 0, total;
            if (!gpu_create(&gpu, context, &in, info.name, true))
                continue;
            put(&gpu, NULL);
            gpu_run(&gpu, NULL);
            attest_synchronize(context, NULL);
            cu.memory_info(&before, &total);
            struct timespec from, to;
            int bad = 0;
            clock_gettime(CLOCK_MONOTONIC, &from);
            for (int i = 0; i < 100; i++)
                bad += gpu_run(&gpu, NULL) != ATTEST_OK;
            clock_gettime(CLOCK_MONOTONIC, &to);
            tap_check(bad == 0, "%s: %s", info.name, attest_context_detail(context));
            tap_check(attest_synchronize(context, NULL) == ATTEST_OK, "%s", attest_context_detail(context));
            cu.memory_info(&after, &total);
            tap_check(before == after, "%s: %zu bytes of the GPU's memory are gone", info.name, before - after);
            attest_cuda_call calls[8];
            double seconds = 0;
            for (int i = 0; i < 8; i++)
                calls[i] = (attest_cuda_call){gpu.plan, &gpu.tensors, gpu.workspace, attest_plan_workspace_size(gpu.plan)};
            tap_check(attest_cuda_time(context, calls, 8, 20, &seconds) == ATTEST_OK, "%s: %s", info.name,
                      attest_context_detail(context));
            tap_check(seconds > 1e-6 && seconds < 0.1, "%s takes %g s", info.name, seconds);
            tap_note("%s: %.1f us, of the host %.1f us", info.name, seconds * 1e6,
                     (double)(to.tv_sec - from.tv_sec) * 1e4 + (double)(to.tv_nsec - from.tv_nsec) / 1e5);
            gpu_destroy(&gpu);
        }
        instance_destroy(&in);
    }
    attest_context_destroy(context);
}

/* A kernel that a program brings, as PTX, which the driver compiles: what newer GPUs than the images of the library run. */
static void ptx(void)
{
    enum { TILE_Q = 16, TILE_KV = 32, DIM = 64 };
    char path[512];
    const char *folder = getenv("BUILD");
    snprintf(path, sizeof path, "%s/cuda/cuda_fwd_scalar.f32.d64.compute_80.ptx", folder && *folder ? folder : "build");
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    size_t size = file ? fread(text, 1, (1 << 20) - 1, file) : 0;
    if (file)
        fclose(file);
    if (!size) {
        tap_skip("the PTX of cuda_fwd_scalar is not there: BUILD says where the build is");
        free(text);
        return;
    }
    attest_cuda_image image = {.arch = 80,
                               .kind = ATTEST_PTX,
                               .facts = {ATTEST_CUDA_ABI, sizeof(attest_cuda_args), ATTEST_F32, DIM, TILE_Q, TILE_KV, 1, 128,
                                         4 * (TILE_Q * DIM + TILE_KV * (DIM + 1)), 0},
                               .data = text,
                               .bytes = size + 1};
    attest_cuda_kernel kernel = {.abi = ATTEST_CUDA_ABI,
                                 .dtypes = 1u << ATTEST_F32,
                                 .name = "scalar_from_ptx",
                                 .summary = "the scalar kernel",
                                 .launch = ATTEST_LAUNCH_TILE,
                                 .options = ATTEST_CUDA_PADS,
                                 .image_count = 1,
                                 .images = &image};
    attest_context *context = context_on("cuda");
    attest_problem p;
    struct instance in;
    struct verdict_basis basis;
    struct on_gpu gpu;
    if (tap_check(attest_context_add_cuda_kernel(context, &kernel) == ATTEST_OK, "%s", attest_context_detail(context)) &&
        problem_of("f32", "b2:hq4:hkv2:sq70:skv133:d50:causal:br:lse", &p) && instance_create(&in, &p, tap.seed, NULL)) {
        basis_create(&basis, context, &in);
        if (gpu_create(&gpu, context, &in, "scalar_from_ptx", false)) {
            instance_poison(&in);
            if (put(&gpu, NULL) && tap_check(gpu_run(&gpu, NULL) == ATTEST_OK, "%s", attest_context_detail(context)) &&
                get(&gpu, NULL))
                judge_now(&gpu, &basis);
            gpu_destroy(&gpu);
        }
        basis_destroy(&basis);
        instance_destroy(&in);
    }
    attest_context_destroy(context);
    free(text);
}

/* ----------------------------------------------------------------------------------------------- contexts and threads -- */

enum { THREADS = 6 };
struct worker {
    pthread_t thread;
    struct instance in;
    const attest_plan *plan;
    unsigned char *bits;
    size_t size;
    bool good;
};

static void *work(void *data)
{
    struct worker *worker = data;
    attest_context *context = NULL;
    struct on_gpu gpu = {0};
    worker->good = attest_context_create_on("cuda", &context) == ATTEST_OK &&
                   gpu_create(&gpu, context, &worker->in, attest_plan_kernel(worker->plan), true);
    for (int run = 0; worker->good && run < 20; run++) {
        instance_poison(&worker->in);
        worker->good = put(&gpu, NULL) &&
                       attest_run(context, run % 2 ? worker->plan : gpu.plan, &gpu.tensors, gpu.workspace,
                                  attest_plan_workspace_size(worker->plan), NULL) == ATTEST_OK &&
                       get(&gpu, NULL);
    }
    if (worker->good)
        worker->bits = drive_snapshot(&worker->in, &worker->size);
    gpu_destroy(&gpu);
    attest_context_destroy(context);
    return NULL;
}

static void threads(void)
{
    attest_context *context = context_on("cuda");
    attest_problem p;
    attest_plan *plan = NULL;
    if (!context || !problem_of("f16", "b2:hq8:hkv2:sq65:skv700:d64:causal:br:lse", &p))
        return;
    attest_kernel_info info = {0};
    for (int k = 0; (k = drive_next(context, &p, k, &info)) >= 0; k++) {
        struct worker workers[THREADS] = {0};
        if (!tap_check(attest_plan_create(context, &p, info.name, &plan) == ATTEST_OK, "%s", attest_context_detail(context)))
            continue;
        for (int i = 0; i < THREADS; i++) {
            workers[i].plan = plan;
            instance_create(&workers[i].in, &p, tap.seed, NULL);
            tap_check(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "no thread");
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(workers[i].thread, NULL);
        for (int i = 0; i < THREADS; i++) {
            tap_check(workers[i].good, "%s: thread %d failed", info.name, i);
            tap_check(workers[i].bits && workers[0].bits && memcmp(workers[i].bits, workers[0].bits, workers[0].size) == 0,
                      "%s: thread %d has other bits", info.name, i);
        }
        for (int i = 0; i < THREADS; i++) {
            free(workers[i].bits);
            instance_destroy(&workers[i].in);
        }
        attest_plan_destroy(plan);
    }
    attest_context_destroy(context);
}

/* The context of the calling thread stays what it was, and a thread that has none needs none. */
static void current_context(void)
{
    void *before = NULL, *after = NULL, *memory = NULL;
    attest_context *context = context_on("cuda");
    cu.set_current(NULL);
    tap_check(attest_memory_alloc(context, 1 << 20, &memory) == ATTEST_OK, "%s", attest_context_detail(context));
    tap_check((uintptr_t)memory % 256 == 0, "memory is at %p", memory);
    cu.get_current(&after);
    tap_check(after == NULL, "a context was left behind");
    become_current();
    cu.get_current(&before);
    tap_check(attest_memory_free(context, memory) == ATTEST_OK, "%s", attest_context_detail(context));
    cu.get_current(&after);
    tap_check(before == after && before, "the current context is another one");
    tap_check(attest_memory_alloc(context, (size_t)1 << 50, &memory) == ATTEST_ERROR_MEMORY && !memory, "2^50 bytes: %s",
              attest_context_detail(context));
    tap_check(attest_memory_alloc(context, 1000, &memory) == ATTEST_OK, "after that: %s", attest_context_detail(context));
    attest_memory_free(context, memory);
    attest_context_destroy(context);
}

/* ---------------------------------------------------------------------------------------------------------- invariance -- */

/* With ATTEST_INVARIANT: one sequence alone, in a batch, and in pages. */
static void invariance(void)
{
    enum { BATCH = 64, KEYS = 1500 };
    attest_context *context = context_on("cuda");
    for (size_t t = 0; context && t < sizeof dtypes / sizeof *dtypes; t++) {
        attest_problem alone, batch, paged;
        struct instance one, many, pages;
        int32_t keys[BATCH];
        char line[160];
        snprintf(line, sizeof line, "b1:hq8:hkv2:sq1:skv%d:d128:lens:lse:invariant", KEYS);
        if (!problem_of(dtypes[t], line, &alone))
            continue;
        batch = alone;
        batch.batch = BATCH;
        attest_problem_pack(&batch);
        paged = batch;
        paged.flags |= ATTEST_PAGED;
        paged.page_size = 16;
        paged.page_count = BATCH * ((KEYS + 15) / 16) + 3;
        paged.stride_page_table = (KEYS + 15) / 16;
        attest_problem_pack(&paged);
        for (int b = 0; b < BATCH; b++)
            keys[b] = (int32_t)(KEYS - 23 * ((b + BATCH - 5) % BATCH));
        struct instance_options options = {.keys = keys};
        struct instance_options of_one = {.keys = keys + 5, .first_batch = 5};
        if (!instance_create(&one, &alone, tap.seed, &of_one) || !instance_create(&many, &batch, tap.seed, &options) ||
            !instance_create(&pages, &paged, tap.seed, &options))
            return;
        attest_kernel_info info = {0};
        for (int k = 0; (k = drive_next(context, &paged, k, &info)) >= 0; k++) {
            struct instance *all[] = {&one, &many, &pages};
            unsigned char *bits[3] = {NULL};
            size_t size = 0;
            for (int i = 0; i < 3; i++) {
                struct on_gpu gpu;
                if (!gpu_create(&gpu, context, all[i], info.name, true))
                    continue;
                instance_poison(all[i]);
                if (put(&gpu, NULL) && tap_check(gpu_run(&gpu, NULL) == ATTEST_OK, "%s", attest_context_detail(context)) &&
                    get(&gpu, NULL))
                    bits[i] = drive_snapshot_sequence(all[i], i ? 5 : 0, &size);
                gpu_destroy(&gpu);
            }
            tap_check(bits[0] && bits[1] && memcmp(bits[0], bits[1], size) == 0, "%s: other bits in a batch", info.name);
            tap_check(bits[0] && bits[2] && memcmp(bits[0], bits[2], size) == 0, "%s: other bits in pages", info.name);
            for (int i = 0; i < 3; i++)
                free(bits[i]);
        }
        instance_destroy(&one);
        instance_destroy(&many);
        instance_destroy(&pages);
    }
    attest_context_destroy(context);
}

/* -------------------------------------------------------------------------------------------------------------- errors -- */

/* In a process of its own: a kernel reads from nowhere. The context says so from then on, and nothing crashes. */
static int break_gpu(void)
{
    attest_context *context = NULL, *other = NULL;
    attest_problem p;
    attest_plan *plan = NULL;
    void *memory = NULL, *more = NULL;
    attest_problem_init(&p, ATTEST_F32, 1, 1, 1, 64, 64, 64);
    if (attest_context_create_on("cuda", &context) != ATTEST_OK || attest_context_create_on("cuda", &other) != ATTEST_OK ||
        attest_plan_create(context, &p, "cuda_*", &plan) != ATTEST_OK ||
        attest_memory_alloc(context, 1 << 20, &memory) != ATTEST_OK)
        return 10;
    void *nowhere = (void *)(uintptr_t)4096;
    attest_tensors t = {.size = sizeof t, .q = nowhere, .k = memory, .v = memory, .o = (char *)memory + (1 << 18)};
    if (attest_run(context, plan, &t, NULL, 0, NULL) != ATTEST_OK)
        return 11;
    attest_status status = attest_synchronize(context, NULL);
    if (status != ATTEST_ERROR_DEVICE || !strstr(attest_context_detail(context), "illegal"))
        return 12;
    printf("# %s\n", attest_context_detail(context));
    for (int i = 0; i < 2; i++) {
        attest_context *each = i ? other : context;
        t.q = memory;
        if (attest_run(each, plan, &t, NULL, 0, NULL) != ATTEST_ERROR_DEVICE ||
            attest_memory_alloc(each, 100, &more) != ATTEST_ERROR_DEVICE || more ||
            attest_memory_free(each, memory) != ATTEST_ERROR_DEVICE || attest_synchronize(each, NULL) != ATTEST_ERROR_DEVICE ||
            !strstr(attest_context_detail(each), "does nothing more"))
            return 13 + i;
    }
    printf("# %s\n", attest_context_detail(context));
    attest_plan_destroy(plan);
    attest_context_destroy(context);
    attest_context_destroy(other);
    return 0;
}

static void broken(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_gpu", "--break", (char *)NULL);
        _exit(127);
    }
    int status = 0;
    tap_check(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0,
              "the child ended with %d", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

static void devices(void)
{
    attest_device_info info = {.size = sizeof info};
    char why[256] = "";
    attest_context *context = context_on(has_proven() ? "auto" : "cuda");
    tap_check(attest_device_get(0, &info, why, sizeof why) == ATTEST_OK, "%s", why);
    tap_note("%s, compute capability %u.%u, %u SMs, %.0f GB, %.0f MB of cache, CUDA %u.%u, class %s", info.model, info.compute / 10,
             info.compute % 10, info.multiprocessors, (double)info.memory / 1e9, (double)info.cache / 1e6, info.driver / 1000,
             info.driver % 1000 / 10, info.device_class);
    tap_check(strcmp(attest_context_device(context), "cuda:0") == 0, "auto is %s", attest_context_device(context));
    tap_check(strcmp(attest_context_model(context), info.model) == 0, "the model is %s", attest_context_model(context));
    tap_check(strcmp(attest_context_class(context), info.device_class) == 0, "the class is %s", attest_context_class(context));
    attest_context_destroy(context);
    context = NULL;
    tap_check(attest_context_create_on("cuda:99", &context) == ATTEST_ERROR_UNAVAILABLE, "cuda:99: %s",
              attest_context_detail(context));
    attest_context_destroy(context);
    attest_problem p;
    char text[8192];
    attest_problem_init(&p, ATTEST_F16, 2, 8, 8, 512, 512, 64);
    context = context_on("cuda");
    if (tap_check(attest_explain(context, &p, text, sizeof text) == ATTEST_OK, "%s", attest_context_detail(context)))
        for (char *rest = NULL, *at = strtok_r(text, "\n", &rest); at; at = strtok_r(NULL, "\n", &rest))
            if (strncmp(at, "cuda", 4) == 0)
                tap_note("%s", at);
    attest_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"devices", devices},
        {"answers", answers},
        {"tiles", tiles},
        {"forward", forward},
        {"graphs", graphs},
        {"timing", timing},
        {"ptx", ptx},
        {"threads", threads},
        {"current context", current_context},
        {"invariance", invariance},
        {"broken", broken},
    };
    attest_device_info info = {.size = sizeof info};
    char why[256] = "";
    if (argc > 1 && strcmp(argv[1], "--break") == 0)
        return break_gpu();
    if (attest_device_get(0, &info, why, sizeof why) != ATTEST_OK || !driver_open()) {
        printf("1..0 # SKIP %s\n", why);
        return 0;
    }
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
