/*
 * misuse.cuh - what the emulated device has to find: instructions that wait for nothing, come too early or too late, or are not for it.
 */
#include "scene.cuh"

__device__ static void no_wgmma_fence(const Scene &)
{
    float c[32];
    wgmma_ss<64, false>(c, descriptor(base(), 16, 1024), descriptor(base(), 16, 1024), false);
}

__device__ static void no_wgmma_wait(const Scene &)
{
    fill_operands();
    float S[KEYS / 2];
    issue_qk(S);
}

__device__ static void accumulator_written(const Scene &)
{
    fill_operands();
    float S[KEYS / 2];
    issue_qk(S);
    S[3] = 0;
    wgmma_wait<0>();
}

__device__ static void warps_that_differ(const Scene &)
{
    fill_operands();
    float S[32];
    wgmma_fence();
    const uint64_t k = descriptor(base() + K_AT + threadIdx.x / 32 * 2048, 16, 1024);
    wgmma_ss<64, false>(S, descriptor(base(), 16, 1024), k, false);
    wgmma_commit();
    wgmma_wait<0>();
}

__device__ static void no_proxy_fence(const Scene &)
{
    fill_operands();
    if (threadIdx.x == 0)
        store_shared_4(base() + K_AT, 0);
    __syncthreads();
    float S[KEYS / 2];
    issue_qk(S);
    wgmma_wait<0>();
}

__device__ static void no_proxy_fence_before_copy(const Scene &scene)
{
    make_barrier(1);
    if (threadIdx.x == 32)
        store_shared_4(base() + 64, 0);
    __syncthreads();
    if (threadIdx.x == 0) {
        barrier_expect(base() + BARRIERS, BOX_BYTES);
        map_load_4(base(), scene.map, base() + BARRIERS, 0, 0, 0, 0);
    }
    barrier_wait(base() + BARRIERS, 0);
}

__device__ static void no_barrier_init_fence(const Scene &scene)
{
    if (threadIdx.x == 0) {
        barrier_init(base() + BARRIERS, 1);
        barrier_expect(base() + BARRIERS, BOX_BYTES);
        map_load_4(base(), scene.map, base() + BARRIERS, 0, 0, 0, 0);
        barrier_wait(base() + BARRIERS, 0);
    }
}

__device__ static void bytes_that_do_not_come(const Scene &scene)
{
    make_barrier(1);
    if (threadIdx.x == 0) {
        barrier_expect(base() + BARRIERS, BOX_BYTES + 16);
        map_load_4(base(), scene.map, base() + BARRIERS, 0, 0, 0, 0);
    }
    barrier_wait(base() + BARRIERS, 0);
}

__device__ static void phase_too_many(const Scene &)
{
    make_barrier((int)blockDim.x);
    barrier_arrive(base() + BARRIERS);
    barrier_wait(base() + BARRIERS, 0);
    barrier_wait(base() + BARRIERS, 1);
}

__device__ static void store_not_waited_for(const Scene &scene)
{
    for (int n = lane() * 4; n < BOX_BYTES; n += 128)
        store_shared_4(base() + n, 0);
    proxy_fence();
    __syncwarp();
    if (threadIdx.x == 0) {
        map_store_4(scene.map, base(), 0, 0, 0, 0);
        stores_commit();
    }
}

__device__ static void copy_not_aligned(const Scene &scene)
{
    make_barrier(1);
    if (threadIdx.x == 0) {
        barrier_expect(base() + BARRIERS, BOX_BYTES);
        map_load_4(base() + 64, scene.map, base() + BARRIERS, 0, 0, 0, 0);
    }
    barrier_wait(base() + BARRIERS, 0);
}

__device__ static void outside_of_shared(const Scene &)
{
    store_shared_4(base() + 200 * 1024, 0);
}

__device__ static void outside_of_global(const Scene &scene)
{
    scene.tensor[2 * TENSOR_ROWS * COLUMNS + threadIdx.x] = 0;
}

__device__ static void barrier_some_do_not_come_to(const Scene &)
{
    if (threadIdx.x < 96)
        __syncthreads();
    else
        named_barrier(4, 64);
}

__device__ static void read_before_copy(const Scene &scene)
{
    if (threadIdx.x == 0) {
        cp_async_16(base(), scene.tensor, 16);
        cp_async_commit();
        scene.words[0] = half_at(0);
        cp_async_wait<0>();
    }
}

// Who arrives before he has read finds what comes next.
__device__ static void arrival_too_early(const Scene &scene)
{
    const uint32_t full = base() + BARRIERS, empty = full + 8;
    if (threadIdx.x == 0) {
        barrier_init(full, 1);
        barrier_init(empty, 1);
        barrier_init_fence();
        barrier_expect(full, BOX_BYTES);
        map_load_4(base(), scene.map, full, 0, 0, 0, 0);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        barrier_wait(empty, 0);
        barrier_expect(full, BOX_BYTES);
        map_load_4(base(), scene.map, full, 0, 8, 0, 0);
        barrier_wait(full, 1);
    } else if (threadIdx.x == 32) {
        barrier_wait(full, 0);
        barrier_arrive(empty);
        scene.words[0] = half_at(0);
    }
}

__device__ static void lane_outside_of_mask(const Scene &)
{
    __syncwarp(0xffffu);
}

__device__ static void shuffle_from_outside(const Scene &scene)
{
    if (lane() < 16)
        scene.words[lane()] = __shfl_sync(0xffffu, (uint32_t)lane(), lane() + 16);
}

__device__ static void unordered_stores(const Scene &)
{
    shared[0] = (unsigned char)threadIdx.x;
}

// What another lane of the warp has stored.
__device__ static void unordered_lanes(const Scene &scene)
{
    __syncwarp();
    store_shared_4(base() + lane() * 4, (uint32_t)lane());
    const uint4 four = load_shared_16(base() + (lane() ^ 4) / 4 * 16);
    scene.words[lane()] = four.x;
}

// Words of an instruction whose meaning is not emulated: none is left out without a word.
__device__ static void other_rounding(const Scene &scene)
{
    scene.words[lane()] = REAL_2("add.rz.f32", 1, 2) > 0;
}

__device__ static void relaxed_arrival(const Scene &)
{
    make_barrier((int)blockDim.x);
    asm volatile("mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [%0];" ::"r"(base() + BARRIERS) : "memory");
}

__device__ static void other_special(const Scene &scene)
{
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(scene.words[lane()]));
}

__device__ static void load_for_both(const Scene &scene)
{
    if (threadIdx.x == 0) {
        barrier_expect(base() + FULL, 2 * BOX_BYTES);
        map_load_4_multicast(base() + cluster_rank() * BOX_BYTES, scene.map, base() + FULL, 0, 0, 0, 0, 3);
    }
    barrier_wait(base() + FULL, 0);
}

__device__ static void multicast_without_cluster_barrier(const Scene &scene)
{
    if (threadIdx.x == 0) {
        barrier_init(base() + FULL, 1);
        barrier_init_fence();
    }
    __syncwarp();
    load_for_both(scene);
}

__device__ static void arrival_before_cluster_wait(const Scene &)
{
    if (threadIdx.x == 0 && cluster_rank() == 1) {
        barrier_init(base() + FULL, 1);
        barrier_init_fence();
    } else if (threadIdx.x == 0) // block 1 may have been first
        barrier_arrive_at(base() + FULL, 1);
    cluster_sync();
}

__device__ static void barrier_made_too_late(const Scene &scene)
{
    cluster_arrive();
    if (threadIdx.x == 0) {
        barrier_init(base() + FULL, 1);
        barrier_init_fence();
    }
    cluster_wait();
    if (threadIdx.x == 0)
        load_for_both(scene);
}

__device__ static void multicast_to_ended(const Scene &scene)
{
    make_cluster_barriers(scene);
    if (cluster_rank() == 0)
        load_for_both(scene);
}

__device__ static void arrival_at_ended(const Scene &scene)
{
    make_cluster_barriers(scene);
    load_for_both(scene);
    if (threadIdx.x == 0)
        barrier_arrive_at(base() + FREE, 1 - cluster_rank());
}

__device__ static void half_that_does_not_come(const Scene &scene)
{
    make_cluster_barriers(scene);
    if (cluster_rank() == 1)
        load_for_both(scene);
    cluster_sync();
}

__device__ static void cluster_barrier_some_do_not_come_to(const Scene &scene)
{
    make_cluster_barriers(scene);
    if (cluster_rank() == 0)
        barrier_wait(base() + FULL, 0);
    cluster_sync();
}

__device__ static void block_that_is_not_there(const Scene &scene)
{
    make_cluster_barriers(scene);
    if (threadIdx.x == 0)
        barrier_arrive_at(base() + FREE, 2);
    cluster_sync();
}

__device__ static void multicast_to_blocks_not_there(const Scene &scene)
{
    make_cluster_barriers(scene);
    if (threadIdx.x == 0)
        map_load_4_multicast(base(), scene.map, base() + FULL, 0, 0, 0, 0, 7);
    cluster_sync();
}

__device__ static void send_to_ended(const Scene &scene)
{
    make_cluster_barriers(scene);
    if (cluster_rank() == 1 && threadIdx.x == 0)
        send_8(base(), base() + SIGNAL, 0, make_float2(0, 0));
}

__device__ static void send_before_cluster_wait(const Scene &)
{
    if (threadIdx.x == 0 && cluster_rank() == 1) {
        barrier_init(base() + SIGNAL, 1);
        barrier_init_fence();
        barrier_expect(base() + SIGNAL, 8);
    } else if (threadIdx.x == 0)
        send_8(base(), base() + SIGNAL, 1, make_float2(0, 0));
    cluster_sync();
}

__device__ static void send_to_unknown_barrier(const Scene &)
{
    if (threadIdx.x == 0) {
        barrier_init(base() + SIGNAL, 1);
        barrier_expect(base() + SIGNAL, 8);
    }
    cluster_sync();
    if (threadIdx.x == 0)
        send_8(base(), base() + SIGNAL, 1 - cluster_rank(), make_float2(0, 0));
    cluster_sync();
}

__device__ static void cluster_wait_alone(const Scene &)
{
    cluster_wait();
}

__device__ static void cluster_arrive_twice(const Scene &)
{
    cluster_arrive();
    cluster_arrive();
}

// Who does not wait until the other block has read its part takes it away.
__device__ static void overrun(const Scene &scene)
{
    make_cluster_barriers(scene);
    for (uint32_t n = 0; n < 3; n++) {
        if (threadIdx.x == 0) {
            barrier_expect(base() + FULL, 2 * BOX_BYTES);
            map_load_4_multicast(base() + cluster_rank() * BOX_BYTES, scene.map, base() + FULL, 0, 0, 0, 0, 3);
        }
        barrier_wait(base() + FULL, n & 1);
        scene.words[threadIdx.x + 32 * cluster_rank()] = half_at(0) + half_at(BOX_BYTES);
        __syncwarp();
    }
    cluster_sync();
}
