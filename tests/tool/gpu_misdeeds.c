/*
 * gpu_misdeeds.c - the driver that is made up (tests/cuda/fake_driver.c), with kernels that do what the environment variable
 * GPU_MISDEED says: nothing, answer (every element of O and LSE becomes 1), before, behind, input, illegal, hang. Memory there is
 * ordinary memory, so a launch can touch it.
 */
#define cuLaunchKernel fake_launch_kernel
#include "../cuda/fake_driver.c"
#undef cuLaunchKernel

#include <unistd.h>

static void answer(const attest_cuda_args *args)
{
    int64_t batch = args->batch, heads = args->heads_q, rows = args->seq_q;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < rows; i++) {
                for (int64_t d = 0; d < args->dim_v; d++)
                    ((uint16_t *)args->o)[b * args->stride_o[0] + h * args->stride_o[1] + i * args->stride_o[2] + d] = 0x3c00;
                if (args->lse)
                    args->lse[b * args->stride_lse[0] + h * args->stride_lse[1] + i * args->stride_lse[2]] = 1;
            }
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y, unsigned block_z,
                   unsigned shared, void *stream, void **parameters, void **extra);
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y, unsigned block_z,
                   unsigned shared, void *stream, void **parameters, void **extra)
{
    const attest_cuda_args *args = parameters[0];
    const char *misdeed = getenv("GPU_MISDEED");
    int result = fake_launch_kernel(function, x, y, z, block_x, block_y, block_z, shared, stream, parameters, extra);
    int64_t last = (args->batch - 1) * args->stride_o[0] + (args->heads_q - 1) * args->stride_o[1] +
                   (args->seq_q - 1) * args->stride_o[2] + args->dim_v;
    if (result || !misdeed || strcmp(misdeed, "nothing") == 0)
        return result;
    answer(args);
    if (strcmp(misdeed, "before") == 0)
        ((unsigned char *)args->o)[-3] = 1;
    if (strcmp(misdeed, "behind") == 0)
        ((unsigned char *)args->o)[last * 2 + 4] = 1;
    if (strcmp(misdeed, "input") == 0)
        ((unsigned char *)(uintptr_t)args->k)[5] ^= 1;
    if (strcmp(misdeed, "illegal") == 0)
        fake_cuda.sticky = 700;
    while (strcmp(misdeed, "hang") == 0)
        sleep(1);
    return 0;
}
