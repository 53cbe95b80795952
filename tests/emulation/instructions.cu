/*
 * instructions.cu - a kernel for the emulated device (tool/emulation) that runs one test of instructions.def, which instructions.c
 * launches.
 */
#include "instructions.cuh"
#include "misuse.cuh"

enum Test {
#define INSTRUCTION(name, threads, blocks)   TEST_##name##_##blocks,
#define MISUSE(name, threads, blocks, words) TEST_##name##_##blocks,
#include "instructions.def"
#undef INSTRUCTION
#undef MISUSE
};

extern "C" __global__ void attest_kernel(int test, int blocks, int *wrong, uint32_t *words, uint16_t *tensor,
                                         const __grid_constant__ attest_tensor_map map)
{
    const Scene scene = {wrong, words, tensor, &map, blocks};
    switch ((Test)test) {
#define INSTRUCTION(name, threads, blocks)                                                                                         \
    case TEST_##name##_##blocks:                                                                                                   \
        return name(scene);
#define MISUSE(name, threads, blocks, words)                                                                                       \
    case TEST_##name##_##blocks:                                                                                                   \
        return name(scene);
#include "instructions.def"
    }
}
