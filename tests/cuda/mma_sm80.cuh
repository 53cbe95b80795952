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
    static Line rows[16], columns[8];
    for (int lane = 0; lane < WARP; lane++)
        for (int i = 0; i < 4; i++)
            for (int half = 0; half < 2; half++)
                line_set(rows[lane / 4 + i % 2 * 8], lane % 4 * 2 + half + i / 2 * 8, (uint16_t)(all.a[lane][i] >> 16 * half));
    for (int lane = 0; lane < WARP; lane++)
        for (int i = 0; i < 2; i++)
            for (int half = 0; half < 2; half++)
                line_set(columns[lane / 4], lane % 4 * 2 + half + i * 8, (uint16_t)(all.b[lane][i] >> 16 * half));
    for (int lane = 0; lane < WARP; lane++)
        for (int i = 0; i < 4; i++)
            all.c[lane][i] = multiply_add(rows[lane / 4 + i / 2 * 8], columns[lane % 4 * 2 + i % 2], all.c[lane][i]);
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
