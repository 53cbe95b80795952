/*
 * scene.cuh - what the tests of the emulated device have: a tensor, a map of it, words, and a place for the line of a failed check.
 */
#ifndef SCENE_CUH
#define SCENE_CUH

#include <attest_kernel_cuda.h>

#include "bulk_sm90.cuh"
#include "mma_sm80.cuh"

extern __shared__ __align__(1024) unsigned char shared[];

/* What a test has: a place for the line of a check that failed, of each thread; words that are 0 at the beginning; a tensor of 16-bit
 * elements, [2][TENSOR_ROWS][COLUMNS] with n % 2000 at place n, and a map of it with boxes of BOX rows and 64 columns. */
struct Scene {
    int *wrong;
    uint32_t *words;
    uint16_t *tensor;
    const attest_tensor_map *map;
    int blocks;
};
constexpr int COLUMNS = 96, TENSOR_ROWS = 40, BOX = 16, BOX_BYTES = BOX * 128;

#define EXPECT(condition)                                                                                                          \
    do {                                                                                                                           \
        if (!(condition))                                                                                                          \
            scene.wrong[blockIdx.x * blockDim.x + threadIdx.x] = __LINE__;                                                         \
    } while (0)

__device__ static int lane()
{
    return (int)threadIdx.x % 32;
}

__device__ static uint32_t base()
{
    return shared_address(shared);
}

__device__ static uint16_t element(float value)
{
    return (uint16_t)pack(value, 0);
}

__device__ static uint16_t tensor_at(int head, int row, int column)
{
    return element((float)((head * TENSOR_ROWS * COLUMNS + row * COLUMNS + column) % 2000));
}

// Small whole numbers, whose sums are exact.
__device__ static float number_at(int row, int column)
{
    return (float)((row * 37 + column * 11 + row * column) % 15 - 7);
}

__device__ static float other_at(int row, int column)
{
    return (float)((row * 23 + column * 5 + row * column * 3) % 13 - 6);
}

__device__ static bool is_nan(float value)
{
    return value != value;
}

/* ---- operands of products ---- */

__device__ static uint16_t half_at(uint32_t at)
{
    uint16_t value;
    memcpy(&value, shared + at, 2);
    return value;
}

constexpr int KEYS = 128, DIM = 128, ROWS = 64, PANEL = 64; // columns of a panel, 128 bytes

// Element (row, column) of a matrix of `rows` rows: panels of 64 columns, in which chunk c of row r lies at place c ^ r % 8.
__device__ static uint32_t swizzled_place(int rows, int row, int column)
{
    const int chunk = column % PANEL / 8;
    return (uint32_t)(column / PANEL * rows * 128 + row * 128 + (chunk ^ row % 8) * 16 + column % 8 * 2);
}

constexpr uint32_t K_AT = ROWS * DIM * 2, V_AT = K_AT + KEYS * DIM * 2, BARRIERS = V_AT + KEYS * DIM * 2; // behind the base; Q is at 0

__device__ static void put(uint32_t at, float value)
{
    const uint16_t bits = element(value);
    memcpy(shared + at, &bits, 2);
}

__device__ static void fill_operands()
{
    for (int n = (int)threadIdx.x; n < ROWS * DIM; n += (int)blockDim.x)
        put(swizzled_place(ROWS, n / DIM, n % DIM), number_at(n / DIM, n % DIM));
    for (int n = (int)threadIdx.x; n < KEYS * DIM; n += (int)blockDim.x) {
        put(K_AT + swizzled_place(KEYS, n / DIM, n % DIM), other_at(n / DIM, n % DIM));
        put(V_AT + swizzled_place(KEYS, n / DIM, n % DIM), number_at(n % DIM, n / DIM));
    }
    proxy_fence();
    __syncthreads();
}

// Q K^T: both K-major, 128 keys.
__device__ static void issue_qk(float (&S)[KEYS / 2])
{
    wgmma_fence();
    for (int k = 0; k < DIM / 16; k++) {
        const uint32_t step = k % 4 * 32, panel = k / 4;
        wgmma_ss<KEYS, false>(S, descriptor(base() + panel * ROWS * 128 + step, 16, 1024),
                              descriptor(base() + K_AT + panel * KEYS * 128 + step, 16, 1024), k > 0);
    }
    wgmma_commit();
}

/* ---- barriers ---- */

__device__ static void make_barrier(int arrivals)
{
    if (threadIdx.x == 0) {
        barrier_init(base() + BARRIERS, arrivals);
        barrier_init_fence();
    }
    __syncthreads();
}

// Barriers of a block: of loads, of blocks that have read them, and one for this and that.
constexpr uint32_t FULL = BARRIERS, FREE = BARRIERS + 8, SIGNAL = BARRIERS + 16;

__device__ static void cluster_sync()
{
    cluster_arrive();
    cluster_wait();
}

__device__ static void make_cluster_barriers(const Scene &scene)
{
    if (threadIdx.x == 0) {
        barrier_init(base() + FULL, 1);
        barrier_init(base() + FREE, scene.blocks);
        barrier_init(base() + SIGNAL, 1);
        barrier_init_fence();
    }
    cluster_sync();
}

#define REAL_2(text, x, y)                                                                                                         \
    ({                                                                                                                             \
        float made;                                                                                                                \
        asm volatile(text " %0, %1, %2;" : "=f"(made) : "f"((float)(x)), "f"((float)(y)));                                         \
        made;                                                                                                                      \
    })

#endif
