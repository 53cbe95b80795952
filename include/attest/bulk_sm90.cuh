/*
 * bulk_sm90.cuh - one instruction each, for compute capability 9.0 and newer: bulk copies of bytes in a row, bulk stores of a box of a
 * tensor, and questions to a barrier in shared memory that do not wait. The library's own kernels do without; ptx_sm90.cuh has
 * the rest.
 *
 * A bulk load is counted by an mbarrier, to which its bytes are announced (barrier_expect). Bulk stores belong to groups of the thread
 * that issued them, as cp.async does. Both read and write shared memory through the async proxy: proxy_fence stands between ordinary
 * stores to shared memory and the bulk store that reads them.
 */
#ifndef ATTEST_BULK_SM90_CUH
#define ATTEST_BULK_SM90_CUH

#include "ptx_sm90.cuh"

/* ---- bytes in a row: both addresses and the size are multiples of 16 ---- */

// From global to shared memory; the barrier counts the bytes.
__device__ inline void bulk_load(uint32_t to, const void *from, int bytes, uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
                 "r"(bytes), "r"(barrier)
                 : "memory");
}

// From shared to global memory.
__device__ inline void bulk_store(void *to, uint32_t from, int bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}

/* ---- a box of a tensor, from shared memory; what lies outside of the tensor is not written ---- */

__device__ inline void map_store_4(const attest_tensor_map *map, uint32_t from, int c0, int c1, int c2, int c3)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map), "r"(from),
                 "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}

__device__ inline void map_store_5(const attest_tensor_map *map, uint32_t from, int c0, int c1, int c2, int c3, int c4)
{
    asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(map),
                 "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
                 : "memory");
}

/* ---- groups of bulk stores ---- */

// Bulk stores of this thread since the last commit are a group.
__device__ inline void stores_commit()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Until at most `groups` of this thread's newest groups are under way.
template <int groups> __device__ inline void stores_wait()
{
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(groups) : "memory");
}

// Until all but the newest `groups` have read shared memory, which may be written again then; the stores may still be under way.
template <int groups> __device__ inline void stores_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(groups) : "memory");
}

/* ---- barriers in shared memory ---- */

// Whether the phase of this parity has ended; does not wait.
__device__ inline bool barrier_test(uint32_t at, uint32_t parity)
{
    uint32_t ended;
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, done;\n"
                 "}"
                 : "=r"(ended)
                 : "r"(at), "r"(parity)
                 : "memory");
    return ended != 0;
}

// Announces bytes that a copy will bring, without arriving.
__device__ inline void barrier_expect_more(uint32_t at, int bytes)
{
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}

// The barrier's memory is ordinary memory again.
__device__ inline void barrier_invalidate(uint32_t at)
{
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(at) : "memory");
}

#endif
