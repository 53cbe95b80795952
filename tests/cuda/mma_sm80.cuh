/*
 * mma_sm80.cuh - what lib/cuda/kernels/mma_sm80.cuh has, for the emulation; the layout of the operands is explained there.
 */
#ifndef EMULATED_MMA_SM80_CUH
#define EMULATED_MMA_SM80_CUH

#include "ptx.cuh"
#include "matrix.h"

namespace emulation
{
struct Operands {
    float *c[WARP];
    const uint32_t *a[WARP];
    uint32_t b[WARP][2];
};
inline Operands operands[MOST_THREADS / WARP];

inline void multiply_fragments(const Operands &all)
{
    static Matrices matrices;
    for (int lane = 0; lane < WARP; lane++) {
        const int row = lane / 4, column = lane % 4 * 2;
        for (int half = 0; half < 2; half++) {
            for (int i = 0; i < 4; i++)
                matrices.a[row + i % 2 * 8][column + half + i / 2 * 8] = element_value((uint16_t)(all.a[lane][i] >> 16 * half));
            for (int i = 0; i < 2; i++)
                matrices.b[column + half + i * 8][row] = element_value((uint16_t)(all.b[lane][i] >> 16 * half));
        }
        for (int i = 0; i < 4; i++)
            matrices.c[row + i / 2 * 8][column + i % 2] = all.c[lane][i];
    }
    multiply_add(matrices, 8);
    for (int lane = 0; lane < WARP; lane++)
        for (int i = 0; i < 4; i++)
            all.c[lane][i] = matrices.c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
}
} // namespace emulation

inline void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    emulation::Operands &all = emulation::operands[emulation::current / emulation::WARP];
    const int lane = emulation::current % emulation::WARP;
    all.c[lane] = c;
    all.a[lane] = a;
    all.b[lane][0] = b0;
    all.b[lane][1] = b1;
    emulation::together([&](int) { emulation::multiply_fragments(all); });
}

#endif
