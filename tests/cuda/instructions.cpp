/*
 * instructions.cpp - the emulated instructions against the tables of the PTX ISA, written down here a second time: where elements of
 * fragments lie, how matrices lie in shared memory, what waits for what, and that misuse is seen.
 */
#include "emulation.h"

constexpr int THREADS = 128;
alignas(1024) unsigned char shared[emulation::SHARED_MOST];

#include "mma_sm80.cuh"
#include "ptx_sm90.cuh"

extern "C" {
#include "tap.h"
}
#include <sys/wait.h>

static uint16_t element(float value)
{
#if ATTEST_DTYPE == 2
    return attest_f16_from_float(value);
#else
    return attest_bf16_from_float(value);
#endif
}

static uint32_t pair(float low, float high)
{
    return (uint32_t)element(low) | (uint32_t)element(high) << 16;
}

/* Small whole numbers, whose sums are exact. */
static float number_at(int row, int column)
{
    return (float)((row * 37 + column * 11 + row * column) % 15 - 7);
}

static float other_at(int row, int column)
{
    return (float)((row * 23 + column * 5 + row * column * 3) % 13 - 6);
}

static void run(void (*thread)(), int threads = THREADS, int blocks = 1)
{
    emulation::shared_bytes = 200 * 1024;
    for (emulation::Order order : {emulation::SIDE_BY_SIDE, emulation::LAST_FIRST, emulation::FIRST_FIRST})
        emulation::run_cluster(blocks, threads, order, thread);
}

static int lane()
{
    return (int)threadIdx.x % 32;
}

static const uint32_t BASE = emulation::SHARED_BASE;

/* ---- fragments ---- */

static void test_ldmatrix()
{
    tap_case("ldmatrix and stmatrix");
    run(
        [] {
            for (int n = lane(); n < 4 * 64; n += 32)
                ((uint16_t *)shared)[n] = (uint16_t)n; /* matrix n / 64, row n / 8 % 8, column n % 8 */
            __syncwarp();
            uint32_t plain[4], turned[4];
            ldmatrix_x4(plain, BASE + lane() * 16);
            ldmatrix_x4_transposed(turned, BASE + lane() * 16);
            for (int i = 0; i < 4; i++) {
                uint32_t low = i * 64 + lane() / 4 * 8 + lane() % 4 * 2, first = i * 64 + lane() % 4 * 2 * 8 + lane() / 4;
                tap_check(plain[i] == (low | (low + 1) << 16), "lane %d, matrix %d", lane(), i);
                tap_check(turned[i] == (first | (first + 8) << 16), "transposed: lane %d, matrix %d", lane(), i);
            }
            store_matrix_x4(BASE + 512 + lane() * 16, plain);
            __syncwarp();
            for (int n = lane(); n < 4 * 64; n += 32)
                tap_check(((uint16_t *)shared)[256 + n] == n, "stmatrix, element %d", n);
        },
        32);
}

static void test_mma()
{
    tap_case("mma");
    run(
        [] {
            const int group = lane() / 4, in_group = lane() % 4;
            uint32_t a[4], b[2];
            float c[4];
            for (int i = 0; i < 8; i += 2) { /* a0 .. a7 of the ISA, two in a register */
                int row = i < 2 || (i >= 4 && i < 6) ? group : group + 8, column = in_group * 2 + (i >= 4 ? 8 : 0);
                a[i / 2] = pair(number_at(row, column), number_at(row, column + 1));
            }
            for (int i = 0; i < 4; i += 2) {
                int row = in_group * 2 + (i >= 2 ? 8 : 0);
                b[i / 2] = pair(other_at(row, group), other_at(row + 1, group));
            }
            for (int i = 0; i < 4; i++)
                c[i] = (float)(lane() * 4 + i);
            mma(c, a, b[0], b[1]);
            for (int i = 0; i < 4; i++) {
                int row = i < 2 ? group : group + 8, column = in_group * 2 + i % 2;
                float want = (float)(lane() * 4 + i);
                for (int k = 0; k < 16; k++)
                    want += number_at(row, k) * other_at(k, column);
                tap_check(c[i] == want, "row %d, column %d is %g, not %g", row, column, (double)c[i], (double)want);
            }
        },
        64);
}

/* Sums are cut off as tensor cores do. */
static float sum_of(float c, float product, int count)
{
    static float given, each;
    static int many;
    static float result;
    given = c, each = product, many = count;
    run(
        [] {
            uint32_t a[4], one = pair(1, 1);
            for (int i = 0; i < 4; i++) {
                int k = lane() % 4 * 2 + i / 2 * 8;
                a[i] = pair(k < many ? each : 0, k + 1 < many ? each : 0);
            }
            float sums[4] = {given, given, given, given};
            mma(sums, a, one, one);
            result = sums[lane() % 4];
        },
        32);
    return result;
}

static void test_sums()
{
    tap_case("sums");
    if (getenv("EMULATED_SUMS"))
        return tap_skip("EMULATED_SUMS asks for others");
    const float bit = 0x1p-20f, above = 0x1p5f; /* so that f16 has them */
    tap_check(sum_of(above, bit, 16) == above + 0x1p-16f, "16 products at the last bit of the sum count");
    tap_check(sum_of(above, bit / 2, 16) == above, "products below it do not");
    tap_check(sum_of(above, bit, 3) == above, "and what is left is cut off");
    tap_check(sum_of(-above, -bit, 3) == -above, "toward zero");
    tap_check(sum_of(-above, bit, 16) == -above + 0x1p-16f, "in every direction");
    tap_check(sum_of(-above, bit, 1) == -above + 0x1p-19f, "in every direction");
    tap_check(isnan(sum_of(1, (float)NAN, 1)) && sum_of(1, (float)INFINITY, 16) == (float)INFINITY, "no number is lost");
}

/* ---- wgmma ---- */

constexpr int KEYS = 128, DIM = 128, ROWS = 64, PANEL = 64; /* columns of a panel, 128 bytes */

/* Element (row, column) of a matrix of `rows` rows: panels of 64 columns, in which chunk c of row r lies at place c ^ r % 8. */
static uint32_t swizzled_place(int rows, int row, int column)
{
    int chunk = column % PANEL / 8;
    return (uint32_t)(column / PANEL * rows * 128 + row * 128 + (chunk ^ row % 8) * 16 + column % 8 * 2);
}

static void put(uint32_t at, float value)
{
    uint16_t bits = element(value);
    memcpy(shared + (at - BASE), &bits, 2);
}

constexpr uint32_t Q_AT = BASE, K_AT = BASE + ROWS * DIM * 2, V_AT = K_AT + KEYS * DIM * 2, BARRIERS = V_AT + KEYS * DIM * 2;

static void fill_operands()
{
    for (int n = (int)threadIdx.x; n < ROWS * DIM; n += THREADS)
        put(Q_AT + swizzled_place(ROWS, n / DIM, n % DIM), number_at(n / DIM, n % DIM));
    for (int n = (int)threadIdx.x; n < KEYS * DIM; n += THREADS) {
        put(K_AT + swizzled_place(KEYS, n / DIM, n % DIM), other_at(n / DIM, n % DIM));
        put(V_AT + swizzled_place(KEYS, n / DIM, n % DIM), number_at(n % DIM, n / DIM));
    }
    proxy_fence();
    __syncthreads();
}

static int row_of(int i)
{
    return (int)threadIdx.x / 32 % 4 * 16 + lane() / 4 + i / 2 % 2 * 8;
}

static int column_of(int i)
{
    return i / 4 * 8 + lane() % 4 * 2 + i % 2;
}

/* Q K^T: both K-major, 128 keys. */
static void issue_qk(float (&S)[KEYS / 2])
{
    wgmma_fence();
    for (int k = 0; k < DIM / 16; k++) {
        uint32_t step = k % 4 * 32, panel = k / 4;
        wgmma_ss<KEYS, false>(S, descriptor(Q_AT + panel * ROWS * 128 + step, 16, 1024),
                              descriptor(K_AT + panel * KEYS * 128 + step, 16, 1024), k > 0);
    }
    wgmma_commit();
}

static void test_wgmma()
{
    tap_case("wgmma");
    run([] {
        fill_operands();
        float S[KEYS / 2], O[DIM / 2];
        issue_qk(S);
        tap_check(isnan(S[0]) && isnan(S[KEYS / 2 - 1]), "a result that was not waited for is none");
        wgmma_wait<0>();
        for (int i = 0; i < KEYS / 2; i++) {
            float want = 0;
            for (int d = 0; d < DIM; d++)
                want += number_at(row_of(i), d) * other_at(column_of(i), d);
            if (!tap_check(S[i] == want, "Q K^T: row %d, key %d is %g, not %g", row_of(i), column_of(i), (double)S[i],
                           (double)want))
                return;
        }
        /* P V: P from registers, V as it lies, which is transposed. */
        wgmma_fence();
        for (int k = 0; k < KEYS / 16; k++) {
            uint32_t P[4];
            for (int i = 0; i < 4; i++) { /* as the accumulators of two steps of 8 columns */
                int at = k * 8 + i * 2;
                P[i] = pair(other_at(column_of(at), row_of(at)), other_at(column_of(at + 1), row_of(at + 1)));
            }
            wgmma_rs<DIM, true>(O, P, descriptor(V_AT + k * 16 * 128, KEYS * 128, 1024), k > 0);
        }
        wgmma_commit();
        wgmma_wait<0>();
        for (int i = 0; i < DIM / 2; i++) {
            float want = 0;
            for (int key = 0; key < KEYS; key++)
                want += other_at(key, row_of(i)) * number_at(column_of(i), key);
            tap_check(O[i] == want, "P V: row %d, column %d is %g, not %g", row_of(i), column_of(i), (double)O[i], (double)want);
        }
    });
}

/* Shared memory is read when a product is waited for, and groups are waited for one by one. */
static void test_late()
{
    tap_case("late");
    run([] {
        fill_operands();
        float first[KEYS / 2], second[KEYS / 2];
        issue_qk(first);
        issue_qk(second);
        wgmma_wait<1>();
        tap_check(!isnan(first[0]) && isnan(second[0]), "one group is done, one is not");
        __syncthreads();
        for (int n = (int)threadIdx.x; n < ROWS * DIM; n += THREADS)
            put(Q_AT + 2 * n, 0);
        __syncthreads();
        wgmma_wait<0>();
        tap_check(second[0] == 0, "what is written over too early is not read any more");
    });
}

/* ---- barriers and bulk copies ---- */

static emulated_map global_map(std::vector<uint16_t> &data, uint32_t columns, uint32_t rows, uint32_t box_rows)
{
    data.resize(columns * rows * 2);
    for (uint32_t n = 0; n < data.size(); n++)
        data[n] = element((float)(n % 2000));
    emulated_map map = {};
    map.magic = EMULATED_MAP_MAGIC;
    map.element = 2;
    map.data = (unsigned char *)data.data();
    map.rank = 4;
    map.swizzle = 128;
    const uint32_t size[] = {columns, rows, 2, 1}, box[] = {64, box_rows, 1, 1};
    const int64_t stride[] = {2, columns * 2, columns * rows * 2, columns * rows * 4};
    for (int d = 0; d < 4; d++)
        map.size[d] = size[d], map.box[d] = box[d], map.stride[d] = stride[d];
    return map;
}

static attest_tensor_map map_here;
static std::vector<uint16_t> tensor;
constexpr int COLUMNS = 96, TENSOR_ROWS = 20, BOX = 16;

static void make_map()
{
    emulated_map map = global_map(tensor, COLUMNS, TENSOR_ROWS, BOX);
    memcpy(&map_here, &map, sizeof map);
}

static void make_barrier(int arrivals)
{
    if (threadIdx.x == 0) {
        barrier_init(BARRIERS, arrivals);
        barrier_init_fence();
    }
    __syncthreads();
}

static void test_bulk()
{
    tap_case("bulk copies");
    make_map();
    run([] {
        make_barrier(1);
        barrier_wait(BARRIERS, 1); /* the phase before the first is complete */
        if (threadIdx.x == 0) {
            map_prefetch(&map_here);
            barrier_expect(BARRIERS, 2 * BOX * 128);
            map_load_4(BASE, &map_here, BARRIERS, 0, 8, 1, 0);
            map_load_4(BASE + BOX * 128, &map_here, BARRIERS, 64, 8, 1, 0);
            tap_check(shared[0] == 0xff, "nothing is there before the wait");
        }
        barrier_wait(BARRIERS, 0);
        for (int row = 0; row < BOX; row++) {
            int column = (int)threadIdx.x;
            uint16_t bits;
            memcpy(&bits, shared + swizzled_place(BOX, row, column), 2);
            bool inside = row + 8 < TENSOR_ROWS && column < COLUMNS;
            uint16_t want = inside ? tensor[(TENSOR_ROWS + row + 8) * COLUMNS + column] : 0;
            tap_check(bits == want, "row %d, column %d", row, column);
        }
        __syncthreads();
        /* Back, two rows up; what lies outside of the tensor is not written. */
        if (threadIdx.x == 0) {
            map_store_4(&map_here, BASE, 0, 6, 0, 0);
            map_store_4(&map_here, BASE + BOX * 128, 64, 6, 0, 0);
            stores_commit();
            stores_wait_read();
            for (int row = 6; row < TENSOR_ROWS; row++)
                for (int column = 0; column < COLUMNS; column++) {
                    uint16_t want = row + 2 < TENSOR_ROWS ? tensor[(TENSOR_ROWS + row + 2) * COLUMNS + column] : 0;
                    tap_check(tensor[row * COLUMNS + column] == want, "back: row %d, column %d", row, column);
                }
            tap_check(tensor[TENSOR_ROWS * COLUMNS] == element((float)(TENSOR_ROWS * COLUMNS % 2000)),
                      "the next head is as it was");
        }
    });
}

/* Who arrives before he has read finds what comes next. */
static void test_too_early()
{
    tap_case("arrival too early");
    make_map();
    static int lost;
    lost = 0;
    run(
        [] {
            const uint32_t full = BARRIERS, empty = BARRIERS + 8;
            if (threadIdx.x == 0) {
                barrier_init(full, 1);
                barrier_init(empty, 1);
                barrier_init_fence();
                barrier_expect(full, BOX * 128);
                map_load_4(BASE, &map_here, full, 0, 0, 0, 0);
            }
            __syncthreads();
            if (threadIdx.x == 0) {
                barrier_wait(empty, 0);
                barrier_expect(full, BOX * 128);
                map_load_4(BASE, &map_here, full, 0, 8, 0, 0);
                barrier_wait(full, 1);
            } else if (threadIdx.x == 32) {
                barrier_wait(full, 0);
                barrier_arrive(empty);
                lost += shared[0] == 0xff;
            }
        },
        64);
    tap_check(lost > 0, "what was written too early was not seen");
}

/* A pipeline of one buffer between a thread that fills and those that read, over some phases. */
static void test_phases()
{
    tap_case("phases");
    make_map();
    run(
        [] {
            const uint32_t full = BARRIERS, empty = BARRIERS + 8;
            if (threadIdx.x == 0) {
                barrier_init(full, 1);
                barrier_init(empty, 32);
                barrier_init_fence();
            }
            __syncthreads();
            if (threadIdx.x / 32 == 1) {
                for (uint32_t n = 0; n < 5; n++)
                    if (threadIdx.x == 32) {
                        barrier_wait(empty, (n & 1) ^ 1);
                        barrier_expect(full, BOX * 128);
                        map_load_4(BASE, &map_here, full, 0, (int)n, 0, 0);
                    }
                return;
            }
            for (uint32_t n = 0; n < 5; n++) {
                barrier_wait(full, n & 1);
                uint16_t bits;
                memcpy(&bits, shared + swizzled_place(BOX, 0, lane()), 2);
                tap_check(bits == tensor[n * COLUMNS + lane()], "phase %u", n);
                barrier_arrive(empty);
            }
        },
        64);
}

static void test_named()
{
    tap_case("named barriers");
    run([] {
        if (threadIdx.x < 64) {
            shared[threadIdx.x] = 1;
            named_barrier_arrive(3, 128);
        } else {
            named_barrier(3, 128);
            tap_check(shared[threadIdx.x - 64] == 1, "those who wait come after those who arrive");
        }
    });
    int elected[2] = {0, 0};
    static int *count;
    count = elected;
    run([] { count[threadIdx.x / 32] += elect_one(); }, 64);
    tap_check(elected[0] == 3 && elected[1] == 3, "one lane of every warp is elected");
}

/* ---- clusters ---- */

/* Barriers of a block: of loads, of blocks that have read them, and one for this and that. */
constexpr uint32_t FULL = BARRIERS, FREE = BARRIERS + 8, SIGNAL = BARRIERS + 16;

static void make_cluster_barriers()
{
    if (threadIdx.x == 0) {
        barrier_init(FULL, 1);
        barrier_init(FREE, emulation::blocks);
        barrier_init(SIGNAL, 1);
        barrier_init_fence();
    }
    cluster_arrive();
    cluster_wait();
}

static void test_cluster_barrier()
{
    tap_case("barrier of a cluster");
    for (int blocks = 1; blocks <= 8; blocks *= 2) {
        static int come, ranks;
        come = ranks = 0;
        run(
            [] {
                const int all = 96 * emulation::blocks;
                for (int round = 1; round <= 3; round++) {
                    come++;
                    cluster_arrive();
                    tap_check(threadIdx.x < 96, "threads are counted in their block");
                    cluster_wait();
                    tap_check(come == all * round, "round %d: %d threads have come, of %d", round, come, all * round);
                    cluster_arrive();
                    cluster_wait();
                }
                tap_check((unsigned)cluster_rank() == blockIdx.x, "blocks of the cluster stand side by side");
                ranks |= 1 << cluster_rank();
                shared[threadIdx.x] = (unsigned char)(cluster_rank() * 100 + threadIdx.x);
                cluster_arrive();
                cluster_wait();
                tap_check(shared[threadIdx.x] == (unsigned char)(cluster_rank() * 100 + threadIdx.x),
                          "every block has shared memory of its own");
                come = 0;
                if (threadIdx.x < 32)
                    return; /* and is not waited for */
                cluster_arrive();
                cluster_wait();
            },
            96, blocks);
        tap_check(ranks == (1 << blocks) - 1, "ranks of %d blocks", blocks);
    }
}

/* Each block brings some rows for all of them, over some phases; a place is written again when all have read it. */
static void test_multicast()
{
    tap_case("multicast");
    emulated_map map = global_map(tensor, COLUMNS, TENSOR_ROWS, 8);
    memcpy(&map_here, &map, sizeof map);
    for (int blocks = 2; blocks <= 4; blocks *= 2)
        run(
            [] {
                const int blocks = emulation::blocks, rank = cluster_rank();
                make_cluster_barriers();
                for (uint32_t n = 0; n < 5; n++) {
                    if (threadIdx.x == 0) {
                        barrier_expect(FULL, blocks * 8 * 128);
                        map_load_4_multicast(BASE + rank * 1024, &map_here, FULL, 0, (int)n + rank * 2, 1, 0,
                                             (uint16_t)((1 << blocks) - 1));
                        tap_check(shared[rank * 1024] == 0xff, "nothing is there before the wait");
                    }
                    barrier_wait(FULL, n & 1);
                    for (int row = 0; row < blocks * 8; row++) {
                        uint16_t bits;
                        int from = (int)n + row / 8 * 2 + row % 8;
                        memcpy(&bits, shared + swizzled_place(BOX, row, (int)threadIdx.x), 2);
                        tap_check(bits == tensor[(TENSOR_ROWS + from) * COLUMNS + threadIdx.x], "block %d, row %d, phase %u", rank,
                                  row, n);
                    }
                    __syncthreads();
                    for (int other = 0; threadIdx.x == 0 && other < blocks; other++)
                        barrier_arrive_at(FREE, other);
                    barrier_wait(FREE, n & 1);
                }
                cluster_arrive();
                cluster_wait();
            },
            64, blocks);
}

/* Every block sends some floats to each of them, itself too; they come no sooner than somebody waits for them. */
static void test_sending()
{
    tap_case("sending");
    for (int blocks = 1; blocks <= 16; blocks *= 2)
        run(
            [] {
                const int blocks = emulation::blocks, rank = cluster_rank();
                if (threadIdx.x == 0) {
                    barrier_init(SIGNAL, 1);
                    barrier_init_fence();
                    barrier_expect(SIGNAL, blocks * 24);
                }
                cluster_arrive_relaxed();
                cluster_wait();
                if ((int)threadIdx.x < blocks) {
                    const float value = (float)(rank * 100 + (int)threadIdx.x);
                    send_16(BASE + rank * 16, SIGNAL, (int)threadIdx.x, make_float4(value, 1, 2, 3));
                    send_8(BASE + 512 + rank * 8, SIGNAL, (int)threadIdx.x, make_float2(4, value));
                }
                if ((int)threadIdx.x == rank)
                    tap_check(shared[rank * 16] == 0xff, "nothing is there before the wait");
                barrier_wait(SIGNAL, 0);
                for (int from = 0; from < blocks; from++) {
                    float4 four;
                    float2 two;
                    memcpy(&four, shared + from * 16, sizeof four);
                    memcpy(&two, shared + 512 + from * 8, sizeof two);
                    const float value = (float)(from * 100 + rank);
                    tap_check(four.x == value && four.y == 1 && four.z == 2 && four.w == 3 && two.x == 4 && two.y == value,
                              "block %d has from %d: %g %g", rank, from, four.x, two.y);
                }
            },
            32, blocks);
}

/* Who does not wait until the other block has read its part takes it away. */
static void test_overrun()
{
    tap_case("overrun");
    make_map();
    static int lost;
    lost = 0;
    run(
        [] {
            make_cluster_barriers();
            for (uint32_t n = 0; n < 3; n++) {
                if (threadIdx.x == 0) {
                    barrier_expect(FULL, 2 * BOX * 128);
                    map_load_4_multicast(BASE + cluster_rank() * BOX * 128, &map_here, FULL, 0, 0, 0, 0, 3);
                }
                barrier_wait(FULL, n & 1);
                lost += shared[0] == 0xff || shared[BOX * 128] == 0xff;
                __syncwarp();
            }
            cluster_arrive();
            cluster_wait();
        },
        32, 2);
    tap_check(lost > 0, "what was written too early was not seen");
}

/* Some blocks only; and bytes may come before they are announced. */
static void test_unannounced()
{
    tap_case("unannounced bytes");
    make_map();
    run(
        [] {
            make_cluster_barriers();
            if (cluster_rank() == 0 && threadIdx.x == 0) {
                barrier_expect(FULL, BOX * 128);
                map_load_4_multicast(BASE, &map_here, FULL, 0, 0, 0, 0, 5);
                barrier_wait(FULL, 0);
                barrier_arrive_at(SIGNAL, 2);
            }
            if (cluster_rank() == 2) {
                barrier_wait(SIGNAL, 0);
                tap_check((shared[0] == 0xff) == (emulation::order == emulation::LAST_FIRST),
                          "what another block copies comes early, or late");
                if (threadIdx.x == 0)
                    barrier_expect(FULL, BOX * 128);
                barrier_wait(FULL, 0);
            }
            cluster_arrive();
            cluster_wait();
            uint16_t bits;
            memcpy(&bits, shared + swizzled_place(BOX, 3, lane()), 2);
            tap_check(bits == (cluster_rank() % 2 ? 0xffff : tensor[3 * COLUMNS + lane()]), "block %d", cluster_rank());
        },
        32, 4);
}

/* ---- misuse ---- */

/* The program has to end there, with these words. */
static void must_stop(const char *what, const char *words, void (*thread)(), int threads = THREADS, int blocks = 1)
{
    tap_case("%s", what);
    int ends[2], status = 0;
    char text[4096];
    size_t size = 0;
    fflush(stdout);
    if (!tap_check(pipe(ends) == 0, "no pipe"))
        return;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        run(thread, threads, blocks);
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got; size < sizeof text - 1 && (got = read(ends[0], text + size, sizeof text - 1 - size)) > 0;)
        size += (size_t)got;
    text[size] = 0;
    close(ends[0]);
    waitpid(child, &status, 0);
    tap_check(WIFEXITED(status) && WEXITSTATUS(status) == 1 && strstr(text, words), "not seen: %s", text);
}

static void test_misuse()
{
    make_map();
    must_stop("no wgmma_fence", "wgmma_fence", [] {
        float c[32];
        wgmma_ss<64, false>(c, descriptor(BASE, 16, 1024), descriptor(BASE, 16, 1024), false);
    });
    must_stop("no wgmma_wait", "not waited for", [] {
        fill_operands();
        float S[KEYS / 2];
        issue_qk(S);
    });
    must_stop("accumulators written", "was written", [] {
        fill_operands();
        float S[KEYS / 2];
        issue_qk(S);
        S[3] = 0;
        wgmma_wait<0>();
    });
    must_stop("warps that differ", "different", [] {
        fill_operands();
        float S[32];
        wgmma_fence();
        uint64_t k = descriptor(K_AT + threadIdx.x / 32 * 2048, 16, 1024);
        wgmma_ss<64, false>(S, descriptor(Q_AT, 16, 1024), k, false);
        wgmma_commit();
        wgmma_wait<0>();
    });
    must_stop("no proxy_fence", "proxy_fence", [] {
        fill_operands();
        store_shared_4(K_AT, 0);
        __syncthreads();
        float S[KEYS / 2];
        issue_qk(S);
        wgmma_wait<0>();
    });
    must_stop("no proxy_fence before a copy", "proxy_fence", [] {
        make_barrier(1);
        if (threadIdx.x == 32)
            store_shared_4(BASE + 64, 0);
        __syncthreads();
        if (threadIdx.x == 0)
            map_load_4(BASE, &map_here, BARRIERS, 0, 0, 0, 0);
    });
    must_stop("rows of another warp written", "all warps", [] {
        fill_operands();
        float S[KEYS / 2];
        issue_qk(S);
        wgmma_wait<0>();
        put(Q_AT + threadIdx.x / 32 * 16 * 128 + lane() * 4, 100);
    });
    must_stop("no barrier_init_fence", "barrier_init_fence", [] {
        if (threadIdx.x == 0) {
            barrier_init(BARRIERS, 1);
            barrier_expect(BARRIERS, BOX * 128);
            map_load_4(BASE, &map_here, BARRIERS, 0, 0, 0, 0);
        }
    });
    must_stop("bytes that do not come", "barrier at shared address", [] {
        make_barrier(1);
        if (threadIdx.x == 0) {
            barrier_expect(BARRIERS, BOX * 128 + 16);
            map_load_4(BASE, &map_here, BARRIERS, 0, 0, 0, 0);
        }
        barrier_wait(BARRIERS, 0);
    });
    must_stop("a phase too many", "barrier at shared address", [] {
        make_barrier(THREADS);
        barrier_arrive(BARRIERS);
        barrier_wait(BARRIERS, 0);
        barrier_wait(BARRIERS, 1);
    });
    must_stop("a store that is not waited for", "stores_wait_read", [] {
        if (threadIdx.x == 0) {
            map_store_4(&map_here, BASE, 0, 0, 0, 0);
            stores_commit();
        }
    });
    must_stop("a copy to a place that is not aligned", "multiple of 128", [] {
        make_barrier(1);
        if (threadIdx.x == 0)
            map_load_4(BASE + 64, &map_here, BARRIERS, 0, 0, 0, 0);
    });
    must_stop("shared memory that there is not", "of 204800", [] { store_shared_4(BASE + 200 * 1024, 0); });
    must_stop("a barrier that some do not come to", "__syncthreads", [] {
        if (threadIdx.x < 96)
            __syncthreads();
    });
}

/* One lane of each of two blocks. */
static void must_stop_2(const char *what, const char *words, void (*thread)())
{
    must_stop(what, words, thread, 32, 2);
}

static void load_for_both()
{
    if (threadIdx.x == 0) {
        barrier_expect(FULL, 2 * BOX * 128);
        map_load_4_multicast(BASE + cluster_rank() * BOX * 128, &map_here, FULL, 0, 0, 0, 0, 3);
    }
    barrier_wait(FULL, 0);
}

static void test_cluster_misuse()
{
    make_map();
    must_stop_2("a multicast without a cluster's barrier", "no barrier", [] {
        if (threadIdx.x == 0) {
            barrier_init(FULL, 1);
            barrier_init_fence();
        }
        __syncwarp();
        load_for_both();
    });
    must_stop_2("a multicast before the cluster's barrier is waited for", "cluster_wait", [] {
        if (cluster_rank() == 1 && threadIdx.x == 0)
            barrier_init(FULL, 1); /* block 1 is first where the last one is */
        if (cluster_rank() == 0 && threadIdx.x == 0 && emulation::order == emulation::LAST_FIRST)
            barrier_arrive_at(FULL, 1);
        cluster_arrive();
        cluster_wait();
    });
    must_stop_2("a barrier that is made after its maker has come", "cluster_wait", [] {
        cluster_arrive();
        if (threadIdx.x == 0) {
            barrier_init(FULL, 1);
            barrier_init_fence();
        }
        cluster_wait();
        load_for_both();
    });
    must_stop_2("a multicast to a block that has left", "has ended", [] {
        make_cluster_barriers();
        if (cluster_rank() == 0)
            load_for_both();
    });
    must_stop_2("an arrival in a block that has left", "has ended", [] {
        make_cluster_barriers();
        load_for_both();
        if (threadIdx.x == 0)
            barrier_arrive_at(FREE, 1 - cluster_rank());
    });
    must_stop_2("a block that waits in vain for its half", "block 1 0 0: threads wait", [] {
        make_cluster_barriers();
        if (cluster_rank() == 1)
            load_for_both();
        cluster_arrive();
        cluster_wait();
    });
    must_stop_2("a barrier of a cluster that some do not come to", "cluster_wait", [] {
        make_cluster_barriers();
        if (cluster_rank() == 0)
            barrier_wait(FULL, 0);
        cluster_arrive();
        cluster_wait();
    });
    must_stop_2("a block that there is not", "of a cluster of 2", [] {
        make_cluster_barriers();
        if (threadIdx.x == 0)
            barrier_arrive_at(FREE, 2);
    });
    must_stop_2("blocks that there are not", "of a cluster of 2", [] {
        make_cluster_barriers();
        if (threadIdx.x == 0)
            map_load_4_multicast(BASE, &map_here, FULL, 0, 0, 0, 0, 7);
    });
    must_stop_2("sending to a block that has left", "has ended", [] {
        make_cluster_barriers();
        if (cluster_rank() == 1 && threadIdx.x == 0)
            send_8(BASE, SIGNAL, 0, make_float2(0, 0));
    });
    must_stop_2("sending before the cluster's barrier is waited for", "cluster_wait", [] {
        if (cluster_rank() == 1 && threadIdx.x == 0) {
            barrier_init(SIGNAL, 1);
            barrier_init_fence();
        }
        if (cluster_rank() == 0 && threadIdx.x == 0 && emulation::order == emulation::LAST_FIRST)
            send_8(BASE, SIGNAL, 1, make_float2(0, 0));
        cluster_arrive();
        cluster_wait();
    });
    must_stop_2("sending to a barrier that is not known", "barrier_init_fence", [] {
        if (threadIdx.x == 0)
            barrier_init(SIGNAL, 1);
        cluster_arrive();
        cluster_wait();
        if (threadIdx.x == 0)
            send_8(BASE, SIGNAL, 1 - cluster_rank(), make_float2(0, 0));
    });
    must_stop_2("cluster_wait alone", "without cluster_arrive", [] { cluster_wait(); });
    must_stop_2("cluster_arrive twice", "a second time", [] {
        cluster_arrive();
        cluster_arrive();
    });
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {{"ldmatrix", test_ldmatrix},
                                            {"mma", test_mma},
                                            {"sums", test_sums},
                                            {"wgmma", test_wgmma},
                                            {"late", test_late},
                                            {"bulk", test_bulk},
                                            {"too early", test_too_early},
                                            {"phases", test_phases},
                                            {"named", test_named},
                                            {"misuse", test_misuse},
                                            {"cluster", test_cluster_barrier},
                                            {"multicast", test_multicast},
                                            {"sending", test_sending},
                                            {"overrun", test_overrun},
                                            {"unannounced", test_unannounced},
                                            {"cluster misuse", test_cluster_misuse}};
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
