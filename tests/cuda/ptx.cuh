/*
 * ptx.cuh - what lib/cuda/kernels/ptx.cuh has, for the emulation. A shared address is a place in the array `shared`.
 */
#ifndef EMULATED_PTX_CUH
#define EMULATED_PTX_CUH

#include <attest_kernel_cuda.h>

/* ---- places ---- */

inline uint32_t shared_address(const void *pointer)
{
    return emulation::SHARED_BASE + (uint32_t)((const unsigned char *)pointer - shared);
}

inline int zero_here()
{
    return 0;
}

/* ---- asynchronous copies to shared memory ---- */

inline void cp_async_16(uint32_t to, const void *from, int bytes)
{
    emulation::begin_copy(emulation::shared_at(to, 16, 16), from, 16, bytes);
}

inline void cp_async_commit()
{
    emulation::close_copies();
}

template <int groups> inline void cp_async_wait()
{
    emulation::wait_copies(groups);
}

/* ---- shared memory ---- */

inline void store_shared_16(uint32_t to, uint4 value)
{
    memcpy(emulation::shared_at(to, 16, 16), &value, 16);
    emulation::written(to, 16, emulation::current);
}

inline void store_shared_4(uint32_t to, uint32_t value)
{
    memcpy(emulation::shared_at(to, 4, 4), &value, 4);
    emulation::written(to, 4, emulation::current);
}

inline uint4 load_shared_16(uint32_t from)
{
    uint4 value;
    memcpy(&value, emulation::shared_at(from, 16, 16), 16);
    return value;
}

namespace emulation
{
/* Row n % 8 of matrix n / 8 lies where lane n says; element (row, column) of matrix i belongs into half column % 2 of register i of
 * lane row * 4 + column / 2, and of a transposed one that of (column, row). */
struct Lanes {
    uint32_t *registers[WARP];
    uint32_t address[WARP];
};
inline Lanes lanes[MOST_THREADS / WARP];

inline void move_matrices(uint32_t *registers, uint32_t address, bool transposed, bool store)
{
    Lanes &all = lanes[current / WARP];
    all.registers[current % WARP] = registers;
    all.address[current % WARP] = address;
    together([&](int first_thread) {
        for (int line = 0; line < WARP; line++) {
            unsigned char *memory = shared_at(all.address[line], 16, 16);
            for (int column = 0; column < 8; column++) {
                int row = line % 8, lane = transposed ? column * 4 + row / 2 : row * 4 + column / 2;
                unsigned char *half =
                    (unsigned char *)&all.registers[lane][line / 8] + (transposed ? row % 2 : column % 2) * sizeof(uint16_t);
                if (store)
                    memcpy(memory + column * 2, half, sizeof(uint16_t));
                else
                    memcpy(half, memory + column * 2, sizeof(uint16_t));
            }
            if (store)
                written(all.address[line], 16, first_thread + line);
        }
    });
}
} // namespace emulation

inline void ldmatrix_x4(uint32_t (&matrix)[4], uint32_t from)
{
    emulation::move_matrices(matrix, from, false, false);
}

inline void ldmatrix_x4_transposed(uint32_t (&matrix)[4], uint32_t from)
{
    emulation::move_matrices(matrix, from, true, false);
}

/* ---- arithmetic ---- */

/* With EMULATED_EX2=cut in the environment the last bit of the result is always 0: the instruction is good to 2 units, and always too
 * small is the worst it could be. */
inline float exp2_fast(float x)
{
    static const bool cut = getenv("EMULATED_EX2") && strcmp(getenv("EMULATED_EX2"), "cut") == 0;
    float y = exp2f(fabsf(x) < 0x1p-126f ? 0.0f : x);
    if (cut && y < INFINITY)
        y = __uint_as_float(__float_as_uint(y) & ~1u);
    return fabsf(y) < 0x1p-126f ? 0.0f : y;
}

inline float reciprocal_fast(float x)
{
    return 1 / x;
}

inline uint32_t pack_f16(float low, float high)
{
    return (uint32_t)attest_f16_from_float(low) | (uint32_t)attest_f16_from_float(high) << 16;
}

inline uint32_t pack_bf16(float low, float high)
{
    return (uint32_t)attest_bf16_from_float(low) | (uint32_t)attest_bf16_from_float(high) << 16;
}

inline uint32_t pack(float low, float high)
{
#if ATTEST_DTYPE == 2
    return pack_f16(low, high);
#else
    return pack_bf16(low, high);
#endif
}

/* ---- one grid after another ---- */

inline void grid_allow_next() {}

inline void grid_wait_previous() {}

#endif
