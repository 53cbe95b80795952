/*
 * ptx_sm90.cuh - one instruction each: what compute capability 9.0 adds. Barriers in shared memory, bulk copies of boxes of a tensor,
 * and the matrix product of a warpgroup (four warps, the first a multiple of four).
 *
 * Shared memory is named by 32-bit addresses (shared_address). A matrix in it is 64 columns wide, or several such side by side, each of
 * 128 bytes a row; chunk c of 16 bytes of row r lies where chunk c ^ (r % 8) would (a swizzle of 128 bytes, which copies and products
 * both know), and each begins at a multiple of 1024 bytes.
 */
#ifndef ATTEST_PTX_SM90_CUH
#define ATTEST_PTX_SM90_CUH

#include "ptx.cuh"

/* ---- barriers: a phase ends when all arrivals, and all bytes that were announced, have come ---- */

__device__ inline void barrier_init(uint32_t at, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
}

// After barrier_init, and before anyone else uses the barriers.
__device__ inline void barrier_init_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives, and announces bytes that a copy will bring.
__device__ inline void barrier_expect(uint32_t at, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}

__device__ inline void barrier_arrive(uint32_t at)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}

// Until the phase of this parity has ended: 0 is the first one.
__device__ inline void barrier_wait(uint32_t at, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "WAIT:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra WAIT;\n"
                 "}" ::"r"(at),
                 "r"(parity)
                 : "memory");
}

// Among `threads` threads that come to barrier `id`, 1 to 15: some wait, some only arrive.
__device__ inline void named_barrier(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ inline void named_barrier_arrive(int id, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// What this thread wrote to shared memory can be read by copies and products that begin after the next barrier.
__device__ inline void proxy_fence()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- clusters: blocks that run at the same time, and reach each other's shared memory ---- */

__device__ inline int cluster_rank()
{
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// A barrier of all threads of all blocks, in two steps.
__device__ inline void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

// The same, but nothing that this thread wrote is promised to be seen, except for barriers behind barrier_init_fence.
__device__ inline void cluster_arrive_relaxed()
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

__device__ inline void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Arrives at the barrier that lies at the same address in block `rank`.
__device__ inline void barrier_arrive_at(uint32_t at, int rank)
{
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
                 "}" ::"r"(at),
                 "r"(rank)
                 : "memory");
}

// To the same address in block `rank`, which has begun. The barrier at the same address there counts the bytes.
__device__ inline void send_16(uint32_t to, uint32_t barrier, int rank, float4 value)
{
    asm volatile("{\n"
                 ".reg .b32 there, counter;\n"
                 "mapa.shared::cluster.u32 there, %0, %2;\n"
                 "mapa.shared::cluster.u32 counter, %1, %2;\n"
                 "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [there], {%3, %4, %5, %6}, [counter];\n"
                 "}" ::"r"(to),
                 "r"(barrier), "r"(rank), "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w)
                 : "memory");
}

__device__ inline void send_8(uint32_t to, uint32_t barrier, int rank, float2 value)
{
    asm volatile("{\n"
                 ".reg .b32 there, counter;\n"
                 "mapa.shared::cluster.u32 there, %0, %2;\n"
                 "mapa.shared::cluster.u32 counter, %1, %2;\n"
                 "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [there], {%3, %4}, [counter];\n"
                 "}" ::"r"(to),
                 "r"(barrier), "r"(rank), "f"(value.x), "f"(value.y)
                 : "memory");
}

/* ---- bulk copies of a box of a tensor ---- */

__device__ inline void map_prefetch(const attest_tensor_map *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// The box at these coordinates, innermost first; what lies outside of the tensor is zero. Its bytes are counted by the barrier.
__device__ inline void map_load_4(uint32_t to, const attest_tensor_map *map, uint32_t barrier, int c0, int c1, int c2, int c3)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::
            "r"(to),
        "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
        : "memory");
}

__device__ inline void map_load_5(uint32_t to, const attest_tensor_map *map, uint32_t barrier, int c0, int c1, int c2, int c3,
                                  int c4)
{
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, "
                 "%7}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
                 : "memory");
}

// To the same address in every block of the cluster whose bit is set, counted by the barrier at the same address in each of them.
__device__ inline void map_load_4_multicast(uint32_t to, const attest_tensor_map *map, uint32_t barrier, int c0, int c1, int c2,
                                            int c3, uint16_t blocks)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4, "
        "%5, %6}], [%2], %7;" ::"r"(to),
        "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "h"(blocks)
        : "memory");
}

/* ---- one lane of a warp ---- */

// True for one lane. The compiler knows that it is one, and needs no loop around what takes its operands once for the warp.
__device__ inline bool elect_one()
{
    uint32_t elected;
    asm volatile("{\n"
                 ".reg .pred one;\n"
                 "elect.sync _|one, 0xffffffff;\n"
                 "selp.u32 %0, 1, 0, one;\n"
                 "}"
                 : "=r"(elected));
    return elected != 0;
}

/* ---- registers ---- */

// The warpgroup's threads have `count` registers each from here on: more or less than before.
template <int count> __device__ inline void registers_more()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

template <int count> __device__ inline void registers_less()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

// Four 8 x 8 matrices of 16-bit elements; lane n gives the address of row n % 8 of matrix n / 8.
__device__ inline void store_matrix_x4(uint32_t to, const uint32_t (&matrix)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(matrix[0]), "r"(matrix[1]),
                 "r"(matrix[2]), "r"(matrix[3])
                 : "memory");
}

/* ---- the product of a warpgroup ---- */

// A matrix in shared memory, for wgmma. With rows along k (A, and B with elements of a column side by side) `leading` has no
// meaning and `stride` is from 8 rows to the next 8. Transposed (B with elements of a row side by side) `leading` is from 64 columns
// to the next 64, and `stride` from 8 rows to the next 8. In bytes.
__device__ inline uint64_t descriptor(uint32_t at, int leading, int stride)
{
    constexpr uint64_t SWIZZLE_128 = 1;
    return SWIZZLE_128 << 62 | (uint64_t)(stride >> 4) << 32 | (uint64_t)(leading >> 4) << 16 | (at & 0x3ffff) >> 4;
}

// Before the first product, and wherever registers that a product uses have been written since the last.
__device__ inline void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Products since the last commit are a group.
__device__ inline void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Until at most `groups` of the newest groups are under way.
template <int groups> __device__ inline void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
}

// What uses these registers after here stays after here: the compiler does not know that a product under way writes them.
template <int count> __device__ inline void settle(float (&registers)[count])
{
#pragma unroll
    for (int i = 0; i < count; i++)
        asm volatile("" : "+f"(registers[i])::"memory");
}

// `value`, which is never -1, and all that it is made of, is worked out before here: otherwise the assembler moves a wait for products
// ahead of arithmetic that should go on beside them.
__device__ inline void pin(float value)
{
    if (value == -1.0f)
        asm volatile("nanosleep.u32 1;" ::: "memory");
}

#if ATTEST_DTYPE == 2 // ATTEST_F16
#define WGMMA_TYPES ".f32.f16.f16"
#else
#define WGMMA_TYPES ".f32.bf16.bf16"
#endif

// Operands by eights: their numbers in the instruction, and the registers themselves.
#define AT_0   "%0, %1, %2, %3, %4, %5, %6, %7"
#define AT_8   "%8, %9, %10, %11, %12, %13, %14, %15"
#define AT_16  "%16, %17, %18, %19, %20, %21, %22, %23"
#define AT_24  "%24, %25, %26, %27, %28, %29, %30, %31"
#define AT_32  "%32, %33, %34, %35, %36, %37, %38, %39"
#define AT_40  "%40, %41, %42, %43, %44, %45, %46, %47"
#define AT_48  "%48, %49, %50, %51, %52, %53, %54, %55"
#define AT_56  "%56, %57, %58, %59, %60, %61, %62, %63"
#define AT_64  "%64, %65, %66, %67, %68, %69, %70, %71"
#define AT_72  "%72, %73, %74, %75, %76, %77, %78, %79"
#define AT_80  "%80, %81, %82, %83, %84, %85, %86, %87"
#define AT_88  "%88, %89, %90, %91, %92, %93, %94, %95"
#define AT_96  "%96, %97, %98, %99, %100, %101, %102, %103"
#define AT_104 "%104, %105, %106, %107, %108, %109, %110, %111"
#define AT_112 "%112, %113, %114, %115, %116, %117, %118, %119"
#define AT_120 "%120, %121, %122, %123, %124, %125, %126, %127"
#define OF(c, n)                                                                                                                   \
    "+f"(c[n]), "+f"(c[n + 1]), "+f"(c[n + 2]), "+f"(c[n + 3]), "+f"(c[n + 4]), "+f"(c[n + 5]), "+f"(c[n + 6]), "+f"(c[n + 7])
#define AT_ALL_32    AT_0 ", " AT_8 ", " AT_16 ", " AT_24
#define OF_ALL_32(c) OF(c, 0), OF(c, 8), OF(c, 16), OF(c, 24)
#define AT_ALL_40    AT_0 ", " AT_8 ", " AT_16 ", " AT_24 ", " AT_32
#define OF_ALL_40(c) OF(c, 0), OF(c, 8), OF(c, 16), OF(c, 24), OF(c, 32)
#define AT_ALL_48    AT_0 ", " AT_8 ", " AT_16 ", " AT_24 ", " AT_32 ", " AT_40
#define OF_ALL_48(c) OF(c, 0), OF(c, 8), OF(c, 16), OF(c, 24), OF(c, 32), OF(c, 40)
#define AT_ALL_64    AT_0 ", " AT_8 ", " AT_16 ", " AT_24 ", " AT_32 ", " AT_40 ", " AT_48 ", " AT_56
#define OF_ALL_64(c) OF(c, 0), OF(c, 8), OF(c, 16), OF(c, 24), OF(c, 32), OF(c, 40), OF(c, 48), OF(c, 56)
#define AT_ALL_80    AT_0 ", " AT_8 ", " AT_16 ", " AT_24 ", " AT_32 ", " AT_40 ", " AT_48 ", " AT_56 ", " AT_64 ", " AT_72
#define OF_ALL_80(c) OF(c, 0), OF(c, 8), OF(c, 16), OF(c, 24), OF(c, 32), OF(c, 40), OF(c, 48), OF(c, 56), OF(c, 64), OF(c, 72)
#define AT_ALL_88    AT_0 ", " AT_8 ", " AT_16 ", " AT_24 ", " AT_32 ", " AT_40 ", " AT_48 ", " AT_56 ", " AT_64 ", " AT_72 ", " AT_80
#define OF_ALL_88(c)                                                                                                               \
    OF(c, 0), OF(c, 8), OF(c, 16), OF(c, 24), OF(c, 32), OF(c, 40), OF(c, 48), OF(c, 56), OF(c, 64), OF(c, 72), OF(c, 80)
#define AT_ALL_96                                                                                                                  \
    AT_0 ", " AT_8 ", " AT_16 ", " AT_24 ", " AT_32 ", " AT_40 ", " AT_48 ", " AT_56 ", " AT_64 ", " AT_72 ", " AT_80 ", " AT_88
#define OF_ALL_96(c)                                                                                                               \
    OF(c, 0), OF(c, 8), OF(c, 16), OF(c, 24), OF(c, 32), OF(c, 40), OF(c, 48), OF(c, 56), OF(c, 64), OF(c, 72), OF(c, 80), OF(c, 88)
#define AT_ALL_128                                                                                                                 \
    AT_0 ", " AT_8 ", " AT_16 ", " AT_24 ", " AT_32 ", " AT_40 ", " AT_48 ", " AT_56 ", " AT_64 ", " AT_72 ", " AT_80 ", " AT_88   \
         ", " AT_96 ", " AT_104 ", " AT_112 ", " AT_120
#define OF_ALL_128(c)                                                                                                              \
    OF(c, 0), OF(c, 8), OF(c, 16), OF(c, 24), OF(c, 32), OF(c, 40), OF(c, 48), OF(c, 56), OF(c, 64), OF(c, 72), OF(c, 80),         \
        OF(c, 88), OF(c, 96), OF(c, 104), OF(c, 112), OF(c, 120)

// C (64 x N) = A (64 x 16) B (16 x N), or += with `accumulate`. A thread holds of C: with g = lane / 4, t = lane % 4, rows 16 w + g
// (c[4 n], c[4 n + 1]) and 16 w + g + 8 (c[4 n + 2], c[4 n + 3]) of warp w, columns 8 n + 2 t and 8 n + 2 t + 1. A in registers is as
// mma_sm80.cuh has it. The instruction is under way until wgmma_wait says otherwise: until then nobody touches C, A or B.
template <int N, bool TRANSPOSED> __device__ inline void wgmma_ss(float (&c)[N / 2], uint64_t a, uint64_t b, bool accumulate);
template <int N, bool TRANSPOSED>
__device__ inline void wgmma_rs(float (&c)[N / 2], const uint32_t (&a)[4], uint64_t b, bool accumulate);

// A, B and P are the numbers of the operands behind C.
#define WGMMA_SS(N, REGISTERS, transposed, A, B, P)                                                                                \
    template <> __device__ inline void wgmma_ss<N, transposed>(float(&c)[N / 2], uint64_t a, uint64_t b, bool accumulate)          \
    {                                                                                                                              \
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" #P ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k16" WGMMA_TYPES    \
                     " {" AT_ALL_##REGISTERS "}, %" #A ", %" #B ", add, 1, 1, 0, " #transposed ";\n}"                              \
                     : OF_ALL_##REGISTERS(c)                                                                                       \
                     : "l"(a), "l"(b), "r"((int)accumulate)                                                                        \
                     : "memory");                                                                                                  \
    }
#define WGMMA_RS(N, REGISTERS, transposed, A0, A1, A2, A3, B, P)                                                                   \
    template <>                                                                                                                    \
    __device__ inline void wgmma_rs<N, transposed>(float(&c)[N / 2], const uint32_t(&a)[4], uint64_t b, bool accumulate)           \
    {                                                                                                                              \
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" #P ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k16" WGMMA_TYPES    \
                     " {" AT_ALL_##REGISTERS "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B ", add, 1, 1, " #transposed       \
                                             ";\n}"                                                                                \
                     : OF_ALL_##REGISTERS(c)                                                                                       \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)accumulate)                                    \
                     : "memory");                                                                                                  \
    }

WGMMA_SS(64, 32, 0, 32, 33, 34)
WGMMA_SS(80, 40, 0, 40, 41, 42)
WGMMA_SS(96, 48, 0, 48, 49, 50)
WGMMA_SS(128, 64, 0, 64, 65, 66)
WGMMA_SS(160, 80, 0, 80, 81, 82)
WGMMA_SS(176, 88, 0, 88, 89, 90)
WGMMA_SS(192, 96, 0, 96, 97, 98)
WGMMA_SS(256, 128, 0, 128, 129, 130)
WGMMA_RS(64, 32, 1, 32, 33, 34, 35, 36, 37)
WGMMA_RS(80, 40, 1, 40, 41, 42, 43, 44, 45)
WGMMA_RS(96, 48, 1, 48, 49, 50, 51, 52, 53)
WGMMA_RS(128, 64, 1, 64, 65, 66, 67, 68, 69)
WGMMA_RS(192, 96, 1, 96, 97, 98, 99, 100, 101)
WGMMA_RS(256, 128, 1, 128, 129, 130, 131, 132, 133)

#endif
