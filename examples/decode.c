/*
 * Decoding with a paged cache of keys and values: what a server does for every token it generates. Context, plan and workspace
 * are made once; the cache grows by one key a step, and attest_run allocates nothing.
 */
#include <attest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEQUENCES = 2, HEADS_Q = 4, HEADS_KV = 2, DIM = 16, PAGE = 8, PAGES_EACH = 4, STEPS = 20 };
enum { PAGES = SEQUENCES * PAGES_EACH, CACHE = PAGES * PAGE * HEADS_KV * DIM, ROWS = SEQUENCES * HEADS_Q * DIM };

static float keys[CACHE], values[CACHE], query[ROWS], output[ROWS];
static int32_t page_table[SEQUENCES * PAGES_EACH], lengths[SEQUENCES];

/* The place of one key in the cache: [page, slot, head, dim], as attest_problem_pack lays pages out. */
static size_t place(int sequence, int position, int head)
{
    int page = page_table[sequence * PAGES_EACH + position / PAGE];
    return (size_t)((page * PAGE + position % PAGE) * HEADS_KV + head) * DIM;
}

static int fail(attest_context *context, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, attest_context_detail(context));
    return 1;
}

int main(void)
{
    for (int n = 0; n < SEQUENCES * PAGES_EACH; n++)
        page_table[n] = PAGES - 1 - n; /* any order will do */

    attest_problem problem;
    attest_problem_init(&problem, ATTEST_F32, SEQUENCES, HEADS_Q, HEADS_KV, 1, PAGES_EACH * PAGE, DIM);
    problem.flags = ATTEST_PAGED | ATTEST_KV_LENGTHS;
    problem.page_size = PAGE;
    problem.page_count = PAGES;
    attest_problem_pack(&problem);

    attest_context *context;
    attest_plan *plan;
    if (attest_context_create(&context) != ATTEST_OK)
        return 1;
    if (attest_plan_create(context, &problem, NULL, &plan) != ATTEST_OK)
        return fail(context, "plan");
    size_t size = attest_plan_workspace_size(plan);
    void *workspace = aligned_alloc(64, (size + 64) / 64 * 64);
    printf("%s, %zu bytes of workspace\n", attest_plan_kernel(plan), size);

    attest_tensors tensors = {
        .size = sizeof tensors, .q = query, .k = keys, .v = values, .o = output, .kv_lengths = lengths, .page_table = page_table};
    for (int step = 0; step < STEPS; step++) {
        for (int s = 0; s < SEQUENCES; s++) {
            int position = lengths[s]++;
            for (int h = 0; h < HEADS_KV; h++)
                for (int d = 0; d < DIM; d++) {
                    keys[place(s, position, h) + (size_t)d] = sinf((float)(position + d + h));
                    values[place(s, position, h) + (size_t)d] = (float)(s + 1);
                }
        }
        for (int n = 0; n < ROWS; n++)
            query[n] = cosf((float)(step + n));
        if (attest_run(context, plan, &tensors, workspace, size, NULL) != ATTEST_OK)
            return fail(context, "run");
    }
    printf("after %d steps: %g and %g\n", STEPS, (double)output[0], (double)output[ROWS - 1]);
    int good =
        fabsf(output[0] - 1) < 1e-5f && fabsf(output[ROWS - 1] - SEQUENCES) < 1e-5f; /* values are 1 in one, 2 in the other */
    free(workspace);
    attest_plan_destroy(plan);
    attest_context_destroy(context);
    return good ? 0 : 1;
}
