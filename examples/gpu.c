/*
 * The same program on a CPU and on a GPU: memory of the device, data moved there and back, and a run that only says what is to be
 * done. With an argument it runs there (cpu, cuda, cuda:1), and without on a GPU if there is one that works.
 */
#include <attest.h>
#include <math.h>
#include <stdio.h>

enum { BATCH = 2, HEADS = 4, ROWS = 128, DIM = 64, COUNT = BATCH * HEADS * ROWS * DIM };

static uint16_t data[COUNT];

/* Memory of the device with a tensor in it: element n is value(n). */
static void *tensor(attest_context *context, float (*value)(int n))
{
    void *memory;
    for (int n = 0; n < COUNT; n++)
        data[n] = attest_f16_from_float(value(n));
    if (attest_memory_alloc(context, sizeof data, &memory) != ATTEST_OK)
        return NULL;
    return attest_memory_put(context, memory, data, sizeof data, NULL) == ATTEST_OK ? memory : NULL;
}

static float wave(int n)
{
    return sinf((float)n * 0.01f);
}

/* The same in every row, so that the answer is known: any mean of rows is that row. */
static float by_column(int n)
{
    return (float)(n % DIM);
}

static float nothing(int n)
{
    return (float)(n * 0);
}

int main(int argc, char **argv)
{
    attest_context *context;
    attest_plan *plan = NULL;
    attest_problem problem;
    void *workspace = NULL;
    attest_problem_init(&problem, ATTEST_F16, BATCH, HEADS, HEADS, ROWS, ROWS, DIM);
    problem.flags = ATTEST_CAUSAL;

    attest_status status = attest_context_create_on(argc > 1 ? argv[1] : "auto", &context);
    if (status == ATTEST_OK)
        status = attest_plan_create(context, &problem, NULL, &plan);
    if (status == ATTEST_OK)
        status = attest_memory_alloc(context, attest_plan_workspace_size(plan), &workspace);
    if (status == ATTEST_OK) {
        attest_tensors tensors = {.size = sizeof tensors, .q = tensor(context, wave), .k = tensor(context, wave)};
        tensors.v = tensor(context, by_column);
        tensors.o = tensor(context, nothing);
        /* On a GPU this returns before anything is computed. The copy takes its turn in the same stream, and waits. */
        status = attest_run(context, plan, &tensors, workspace, attest_plan_workspace_size(plan), NULL);
        if (status == ATTEST_OK)
            status = attest_memory_get(context, data, tensors.o, sizeof data, NULL);
        attest_memory_free(context, (void *)(uintptr_t)tensors.q);
        attest_memory_free(context, (void *)(uintptr_t)tensors.k);
        attest_memory_free(context, (void *)(uintptr_t)tensors.v);
        attest_memory_free(context, tensors.o);
    }
    int good = status == ATTEST_OK;
    if (!good)
        fprintf(stderr, "%s: %s\n", attest_status_name(status), context ? attest_context_detail(context) : "no memory");
    for (int n = 0; good && n < COUNT; n++)
        good = fabsf(attest_f16_to_float(data[n]) - by_column(n)) < 0.1f;
    if (status == ATTEST_OK)
        printf("%s on %s, %s: %s\n", attest_plan_kernel(plan), attest_context_device(context), attest_context_model(context),
               good ? "as expected" : "WRONG");
    if (context)
        attest_memory_free(context, workspace);
    attest_plan_destroy(plan);
    attest_context_destroy(context);
    return good ? 0 : 1;
}
