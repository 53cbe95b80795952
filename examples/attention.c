/* Causal attention in one call: cc attention.c $(pkg-config --cflags --libs attest) -lm && ./a.out */
#include <attest.h>
#include <math.h>
#include <stdio.h>

enum { BATCH = 1, HEADS = 2, ROWS = 4, DIM = 8, COUNT = BATCH * HEADS * ROWS * DIM };

int main(void)
{
    float q[COUNT], k[COUNT], v[COUNT], o[COUNT];
    for (int n = 0; n < COUNT; n++) {
        q[n] = sinf((float)n);
        k[n] = cosf((float)n);
        v[n] = (float)(n % DIM);
    }
    attest_problem problem;
    attest_problem_init(&problem, ATTEST_F32, BATCH, HEADS, HEADS, ROWS, ROWS, DIM);
    problem.flags |= ATTEST_CAUSAL;

    attest_tensors tensors = {.size = sizeof tensors, .q = q, .k = k, .v = v, .o = o};
    char why[256];
    if (attest_forward(&problem, &tensors, why, sizeof why) != ATTEST_OK)
        return fprintf(stderr, "%s\n", why), 1;
    for (int d = 0; d < DIM; d++)
        printf("%g%c", (double)o[d], d + 1 < DIM ? ' ' : '\n');
    return fabsf(o[DIM - 1] - (DIM - 1)) < 1e-5f ? 0 : 1; /* every row of V is 0 1 2 ... 7, and so is any mean of them */
}
