/*
 * ceilings.c - what this machine can do at most: multiply-adds per second, and bytes read from memory per second.
 *
 * A benchmark figure says little by itself; a fraction of what the same cores could do in the same second says how much is
 * left. Each function measures for about `seconds`, repeats, and returns the best repetition, since noise only ever slows
 * a measurement down. All instruction sets are compiled in and chosen at run time, so one binary serves every x86-64 CPU.
 *
 *   ceiling_fma_f32    2 x float32 multiply-adds, by the widest vectors there are
 *   ceiling_dot_bf16   2 x bf16 multiply-adds, by AMX tiles, else by vdpbf16ps; 0 where there is neither
 *   ceiling_read       bytes per second read from a buffer of 1 GiB, far beyond any last-level cache
 */
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { REPETITIONS = 4 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A kernel does `rounds` rounds of arithmetic in registers and returns a number that depends on all of it. */
typedef float work_function(long rounds);

struct work {
    const char *isa;
    double flops; /* per round */
    work_function *run;
};

/* The accumulators are locals with one name each, and not an array, so that they live in registers whatever the compiler
 * thinks. Fourteen chains are more than latency 4 times 2 units asks for. They run towards a fixed point, so that none
 * overflows or becomes denormal. */
#define CHAINS(OP) OP(0) OP(1) OP(2) OP(3) OP(4) OP(5) OP(6) OP(7) OP(8) OP(9) OP(10) OP(11) OP(12) OP(13)
enum { CHAIN_COUNT = 14, UNROLL = 8 };

/* Hides the value from the optimiser, at no cost, so that it can neither drop nor reorder the chain. */
#define KEEP(x)  __asm__ volatile("" : "+x"(x))
#define KEEPV(x) __asm__ volatile("" : "+v"(x))

static float fma_plain(long rounds)
{
    float a[CHAIN_COUNT] = {0};
    for (long r = 0; r < rounds; r++)
        for (int u = 0; u < UNROLL; u++)
            for (int i = 0; i < CHAIN_COUNT; i++)
                a[i] = a[i] * 0.5f + 1.0f;
    float sum = 0;
    for (int i = 0; i < CHAIN_COUNT; i++)
        sum += a[i];
    return sum;
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static float fma_avx2(long rounds)
{
    const __m256 half = _mm256_set1_ps(0.5f), one = _mm256_set1_ps(1.0f);
#define DECLARE(i) __m256 a##i = _mm256_set1_ps((float)i);
#define STEP(i)    a##i = _mm256_fmadd_ps(a##i, half, one);
#define HOLD(i)    KEEP(a##i);
#define TOTAL(i)   sum = _mm256_add_ps(sum, a##i);
    CHAINS(DECLARE)
    for (long r = 0; r < rounds; r++) {
        for (int u = 0; u < UNROLL; u++) {
            CHAINS(STEP)
        }
        CHAINS(HOLD)
    }
    __m256 sum = _mm256_setzero_ps();
    CHAINS(TOTAL)
    return _mm256_cvtss_f32(sum);
#undef DECLARE
#undef STEP
#undef HOLD
#undef TOTAL
}

__attribute__((target("avx512f"))) static float fma_avx512(long rounds)
{
    const __m512 half = _mm512_set1_ps(0.5f), one = _mm512_set1_ps(1.0f);
#define DECLARE(i) __m512 a##i = _mm512_set1_ps((float)i);
#define STEP(i)    a##i = _mm512_fmadd_ps(a##i, half, one);
#define HOLD(i)    KEEPV(a##i);
#define TOTAL(i)   sum = _mm512_add_ps(sum, a##i);
    CHAINS(DECLARE)
    for (long r = 0; r < rounds; r++) {
        for (int u = 0; u < UNROLL; u++) {
            CHAINS(STEP)
        }
        CHAINS(HOLD)
    }
    __m512 sum = _mm512_setzero_ps();
    CHAINS(TOTAL)
    return _mm512_cvtss_f32(sum);
#undef DECLARE
#undef STEP
#undef HOLD
#undef TOTAL
}

/* Products of zeros: the accumulators stay finite, and the speed does not depend on the values. */
__attribute__((target("avx512f,avx512bf16"))) static float dot_avx512bf16(long rounds)
{
    __m512bh zero = (__m512bh)_mm512_setzero_si512();
    KEEPV(zero);
#define DECLARE(i) __m512 a##i = _mm512_set1_ps((float)i);
#define STEP(i)    a##i = _mm512_dpbf16_ps(a##i, zero, zero);
#define HOLD(i)    KEEPV(a##i);
#define TOTAL(i)   sum = _mm512_add_ps(sum, a##i);
    CHAINS(DECLARE)
    for (long r = 0; r < rounds; r++) {
        for (int u = 0; u < UNROLL; u++) {
            CHAINS(STEP)
        }
        CHAINS(HOLD)
    }
    __m512 sum = _mm512_setzero_ps();
    CHAINS(TOTAL)
    return _mm512_cvtss_f32(sum);
#undef DECLARE
#undef STEP
#undef HOLD
#undef TOTAL
}

/* Six accumulator tiles of 16 x 16 float32, each += A (16 x 32 bf16) times B (32 x 16 bf16): 16 * 16 * 32 multiply-adds. */
enum { TILE_CHAINS = 6 };

__attribute__((target("amx-tile,amx-bf16"))) static float dot_amx(long rounds)
{
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t bytes_per_row[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    for (int t = 0; t < 8; t++) {
        config.bytes_per_row[t] = 64;
        config.rows[t] = 16;
    }
    _tile_loadconfig(&config);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    _tile_zero(6);
    _tile_zero(7);
    for (long r = 0; r < rounds; r++)
        for (int u = 0; u < UNROLL; u++) {
            _tile_dpbf16ps(0, 6, 7);
            _tile_dpbf16ps(1, 6, 7);
            _tile_dpbf16ps(2, 6, 7);
            _tile_dpbf16ps(3, 6, 7);
            _tile_dpbf16ps(4, 6, 7);
            _tile_dpbf16ps(5, 6, 7);
        }
    float out[256];
    _tile_stored(0, out, 64);
    _tile_release();
    return out[0];
}

/* Linux gives the tile registers only to processes that ask for them. */
static int amx_allowed(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    unsigned a, b, c, d;
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
    int has_tiles = d >> 24 & 1, has_bf16 = d >> 22 & 1;
    return has_tiles && has_bf16 && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}
#endif

static const struct work works_plain = {"plain C", 2.0 * CHAIN_COUNT *UNROLL, fma_plain};

static struct work choose_f32(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return (struct work){"avx512", 2.0 * 16 * CHAIN_COUNT * UNROLL, fma_avx512};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (struct work){"avx2", 2.0 * 8 * CHAIN_COUNT * UNROLL, fma_avx2};
#endif
    return works_plain;
}

static struct work choose_bf16(void)
{
#if defined(__x86_64__)
    if (amx_allowed())
        return (struct work){"amx", 2.0 * 16 * 16 * 32 * TILE_CHAINS * UNROLL, dot_amx};
    if (__builtin_cpu_supports("avx512bf16"))
        return (struct work){"avx512bf16", 2.0 * 32 * CHAIN_COUNT * UNROLL, dot_avx512bf16};
#endif
    return (struct work){"", 0, NULL};
}

static double measure(struct work work, int threads, double seconds)
{
    if (!work.run)
        return 0;
    volatile float sink = 0;
    /* How many rounds take the time we want, found on this thread alone. */
    long rounds = 1000;
    for (double took = 0; took < seconds / (4 * REPETITIONS); rounds *= 2) {
        double start = now();
        sink += work.run(rounds);
        took = now() - start;
    }
    double best = 0;
    for (int repetition = 0; repetition < REPETITIONS; repetition++) {
        double begin[threads], end[threads];
#pragma omp parallel num_threads(threads)
        {
            int me = omp_get_thread_num();
#pragma omp barrier
            begin[me] = now();
            float result = work.run(rounds);
            end[me] = now();
#pragma omp critical
            sink += result;
        }
        double first = begin[0], last = end[0];
        for (int t = 1; t < threads; t++) {
            first = begin[t] < first ? begin[t] : first;
            last = end[t] > last ? end[t] : last;
        }
        double rate = work.flops * (double)rounds * threads / (last - first);
        best = rate > best ? rate : best;
    }
    return best;
}

const char *ceiling_isa_f32(void)
{
    return choose_f32().isa;
}

const char *ceiling_isa_bf16(void)
{
    return choose_bf16().isa;
}

double ceiling_fma_f32(int threads, double seconds)
{
    return measure(choose_f32(), threads, seconds);
}

double ceiling_dot_bf16(int threads, double seconds)
{
    return measure(choose_bf16(), threads, seconds);
}

/* --------------------------------------------------------------------------------------------------------- reading -- */

enum { BUFFER_BYTES = 1 << 30, LINE = 64 };

/* Reads n bytes as 64-byte lines into eight sums; `ahead` is how far to prefetch, 0 for what the hardware does by itself. */
typedef uint64_t read_function(const uint8_t *data, size_t n, size_t ahead);

static uint64_t read_plain(const uint8_t *data, size_t n, size_t ahead)
{
    uint64_t sums[8] = {0};
    for (size_t i = 0; i < n; i += LINE) {
        if (ahead)
            __builtin_prefetch(data + i + ahead);
        const uint64_t *line = (const uint64_t *)(const void *)(data + i);
        for (int j = 0; j < 8; j++)
            sums[j] += line[j];
    }
    uint64_t sum = 0;
    for (int j = 0; j < 8; j++)
        sum += sums[j];
    return sum;
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static uint64_t read_avx512(const uint8_t *data, size_t n, size_t ahead)
{
    __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
    for (size_t i = 0; i < n; i += 4 * LINE) {
        const uint8_t *p = data + i;
        if (ahead) {
            __builtin_prefetch(p + ahead);
            __builtin_prefetch(p + ahead + LINE);
            __builtin_prefetch(p + ahead + 2 * LINE);
            __builtin_prefetch(p + ahead + 3 * LINE);
        }
        a = _mm512_add_epi64(a, _mm512_loadu_si512(p));
        b = _mm512_add_epi64(b, _mm512_loadu_si512(p + LINE));
        c = _mm512_add_epi64(c, _mm512_loadu_si512(p + 2 * LINE));
        d = _mm512_add_epi64(d, _mm512_loadu_si512(p + 3 * LINE));
    }
    return (uint64_t)_mm512_reduce_add_epi64(_mm512_add_epi64(_mm512_add_epi64(a, b), _mm512_add_epi64(c, d)));
}

__attribute__((target("avx2"))) static uint64_t read_avx2(const uint8_t *data, size_t n, size_t ahead)
{
    __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
    for (size_t i = 0; i < n; i += 2 * LINE) {
        const __m256i *p = (const __m256i *)(const void *)(data + i);
        if (ahead) {
            __builtin_prefetch(data + i + ahead);
            __builtin_prefetch(data + i + ahead + LINE);
        }
        a = _mm256_add_epi64(a, _mm256_loadu_si256(p));
        b = _mm256_add_epi64(b, _mm256_loadu_si256(p + 1));
        c = _mm256_add_epi64(c, _mm256_loadu_si256(p + 2));
        d = _mm256_add_epi64(d, _mm256_loadu_si256(p + 3));
    }
    uint64_t lanes[4];
    _mm256_storeu_si256((__m256i *)(void *)lanes, _mm256_add_epi64(_mm256_add_epi64(a, b), _mm256_add_epi64(c, d)));
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}
#endif

static read_function *choose_read(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return read_avx512;
    if (__builtin_cpu_supports("avx2"))
        return read_avx2;
#endif
    return read_plain;
}

/* The best of a few passes over the buffer with and without software prefetch. The buffer is kept between calls. Its pages are
 * first touched by the threads that will read them, and huge where the system gives huge pages. */
double ceiling_read(int threads)
{
    static uint8_t *buffer;
    enum { SLACK = 1 << 16 }; /* prefetches run past the end, which is harmless, but keep them on our pages */
    if (!buffer) {
        void *p = mmap(NULL, BUFFER_BYTES + SLACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return 0;
        madvise(p, BUFFER_BYTES, MADV_HUGEPAGE);
        buffer = p;
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int64_t i = 0; i < BUFFER_BYTES / 4096; i++)
            memset(buffer + i * 4096, (int)(i & 63), 4096);
    }
    static const size_t distances[] = {0, 512, 2048, 0};
    read_function *read = choose_read();
    volatile uint64_t sink = 0;
    double best = 0;
    for (size_t attempt = 0; attempt < sizeof distances / sizeof *distances; attempt++) {
        double start = now();
        uint64_t sum = 0;
        /* Pieces of 4 MiB, so that a thread that was held up does not hold up the rest. */
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1) reduction(+ : sum)
        for (int64_t piece = 0; piece < BUFFER_BYTES >> 22; piece++)
            sum += read(buffer + (piece << 22), (size_t)1 << 22, distances[attempt]);
        double rate = (double)BUFFER_BYTES / (now() - start);
        sink += sum;
        best = rate > best ? rate : best;
    }
    return best;
}
