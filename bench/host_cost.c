/*
 * host_cost.c - what a plan and a run cost the program that asks for them: host_cost [PROBLEM ...] prints, for each problem on the
 * first GPU, the kernel, and how long attest_plan_create (with attest_plan_destroy) and attest_run take on the host: the medians of
 * many batches of calls. The GPU is waited for between batches and not in them, so that no call waits for room in the stream; every
 * call has other tensors than the one before. First comes what the driver alone takes to launch a kernel that does nothing.
 */
#define _POSIX_C_SOURCE 200809L
#include <attest.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCHES = 41, PLANS = 50, RUNS = 64, SETS = 2 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, BATCHES, sizeof *values, compare);
    return values[BATCHES / 2];
}

/* What the driver takes to launch a kernel without arguments, of one block; negative if that cannot be found out. */
static double launch_cost(void)
{
    static const char nothing[] = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n";
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL, *module = NULL, *function = NULL;
    int device = 0;
    union { /* ISO C has no way from an object's pointer to a function's */
        void *symbol;
        int (*init)(unsigned);
        int (*device_get)(int *, int);
        int (*retain)(void **, int);
        int (*use)(void *);
        int (*load)(void **, const void *);
        int (*find)(void **, void *, const char *);
        int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
        int (*wait)(void);
    } init, device_get, retain, use, load, find, launch, wait;
    if (!library)
        return -1;
    init.symbol = dlsym(library, "cuInit");
    device_get.symbol = dlsym(library, "cuDeviceGet");
    retain.symbol = dlsym(library, "cuDevicePrimaryCtxRetain");
    use.symbol = dlsym(library, "cuCtxSetCurrent");
    load.symbol = dlsym(library, "cuModuleLoadData");
    find.symbol = dlsym(library, "cuModuleGetFunction");
    launch.symbol = dlsym(library, "cuLaunchKernel");
    wait.symbol = dlsym(library, "cuCtxSynchronize");
    if (!init.symbol || !device_get.symbol || !retain.symbol || !use.symbol || !load.symbol || !find.symbol || !launch.symbol ||
        !wait.symbol || init.init(0) || device_get.device_get(&device, 0) || retain.retain(&context, device) || use.use(context) ||
        load.load(&module, nothing) || find.find(&function, module, "nothing"))
        return -1;
    double launches[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        double begin = now();
        for (int i = 0; i < RUNS; i++)
            if (launch.launch(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL))
                return -1;
        launches[batch] = (now() - begin) / RUNS;
        wait.wait();
    }
    return median(launches);
}

static attest_status measure(attest_context *context, const attest_problem *problem)
{
    double plans[BATCHES], runs[BATCHES];
    attest_plan *plan = NULL;
    attest_status status = attest_plan_create(context, problem, NULL, &plan);
    for (int batch = 0; batch < BATCHES && status == ATTEST_OK; batch++) {
        double begin = now();
        for (int i = 0; i < PLANS && status == ATTEST_OK; i++) {
            attest_plan *another = NULL;
            status = attest_plan_create(context, problem, NULL, &another);
            attest_plan_destroy(another);
        }
        plans[batch] = (now() - begin) / PLANS;
    }
    size_t rows = (size_t)(problem->batch * problem->heads_q * problem->seq_q * problem->dim) * 4,
           keys = (size_t)(problem->batch * problem->heads_kv * problem->seq_kv * problem->dim) * 4,
           room = status == ATTEST_OK ? attest_plan_workspace_size(plan) : 0;
    void *memory[SETS][4] = {{0}}, *workspace = NULL;
    attest_tensors tensors[SETS];
    if (status == ATTEST_OK)
        status = attest_memory_alloc(context, room + 1, &workspace);
    for (int i = 0; i < SETS * 4 && status == ATTEST_OK; i++)
        status = attest_memory_alloc(context, i % 4 == 0 || i % 4 == 3 ? rows : keys, &memory[i / 4][i % 4]);
    for (int i = 0; i < SETS; i++)
        tensors[i] =
            (attest_tensors){.size = sizeof tensors[i], .q = memory[i][0], .k = memory[i][1], .v = memory[i][2], .o = memory[i][3]};
    for (int batch = 0; batch < BATCHES && status == ATTEST_OK; batch++) {
        double begin = now();
        for (int i = 0; i < RUNS && status == ATTEST_OK; i++)
            status = attest_run(context, plan, &tensors[i % SETS], workspace, room, NULL);
        runs[batch] = (now() - begin) / RUNS;
        if (status == ATTEST_OK)
            status = attest_synchronize(context, NULL);
    }
    if (status == ATTEST_OK)
        printf(" %-28s plan %6.2f us   run %5.2f us\n", attest_plan_kernel(plan), 1e6 * median(plans), 1e6 * median(runs));
    for (int i = 0; i < SETS * 4; i++)
        attest_memory_free(context, memory[i / 4][i % 4]);
    attest_memory_free(context, workspace);
    attest_plan_destroy(plan);
    return status;
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"fwd:f16:b2:h8:s512:d64", "fwd:f16:b8:h16:s2048:d128", "fwd:f16:b8:h16:s256:d64",
                                        "fwd:bf16:b1:hq32:hkv8:sq1:skv8192:d128", "fwd:f32:b2:h8:s512:d64"};
    int count = argc > 1 ? argc - 1 : (int)(sizeof usual / sizeof *usual);
    attest_context *context = NULL;
    attest_status status = attest_context_create_on("cuda", &context);
    double launch = status == ATTEST_OK ? launch_cost() : -1;
    if (launch >= 0)
        printf("%-69s launch %5.2f us\n", "(a kernel that does nothing)", 1e6 * launch);
    for (int i = 0; i < count && status == ATTEST_OK; i++) {
        const char *text = argc > 1 ? argv[1 + i] : usual[i];
        attest_problem problem;
        char why[256];
        if (attest_problem_parse(text, &problem, why, sizeof why) != ATTEST_OK) {
            fprintf(stderr, "host_cost: %s: %s\n", text, why);
            return 2;
        }
        printf("%-40s", text);
        fflush(stdout);
        status = measure(context, &problem);
    }
    if (status != ATTEST_OK)
        fprintf(stderr, "host_cost: %s\n", context ? attest_context_detail(context) : "no GPU that works");
    attest_context_destroy(context);
    return status == ATTEST_OK ? 0 : 3;
}
