/*
 * Threads that share GPUs that are made up (see made_up.h); tests/races.t runs it under ThreadSanitizer.
 */
#include "made_up.h"

#include <pthread.h>

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

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {{"threads", threads}};
    return made_up_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
