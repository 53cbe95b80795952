/*
 * mma_sm80.cuh - the warp-wide matrix product of compute capability 8.0 for 16-bit elements, and how its operands are spread over
 * the lanes.
 *
 * A (16 x 16), B (16 x 8), C (16 x 8). With g = lane / 4 and t = lane % 4 a lane holds
 *     A: a[0] row g, a[1] row g + 8, both columns 2t and 2t + 1; a[2], a[3] the same rows, columns 2t + 8 and 2t + 9
 *     B: b[0] rows 2t and 2t + 1 of column g, b[1] rows 2t + 8 and 2t + 9
 *     C: c[0], c[1] row g, columns 2t and 2t + 1; c[2], c[3] row g + 8
 * So C, packed to pairs, is an A for the next product: c[0..3] of columns 0..7 and of columns 8..15.
 */
#ifndef ATTEST_MMA_SM80_CUH
#define ATTEST_MMA_SM80_CUH

#include "ptx.cuh"

// C += A B
__device__ inline void mma(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
#if ATTEST_DTYPE == 2 // ATTEST_F16
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

#endif
