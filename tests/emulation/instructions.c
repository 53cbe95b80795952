/*
 * instructions.c - launches the tests of instructions.def on the emulated device, each in every order and in a process of its own.
 *
 *     instructions IMAGE.so DTYPE [--only NAME]        with libcuda.so.1, the emulated driver, in LD_LIBRARY_PATH
 */
#include <attest.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

/* Of the emulated driver, which is linked with. */
int cuInit(unsigned flags);
int cuModuleLoadDataEx(void **module, const void *data, unsigned count, int *options, void **values);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream);
int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *sizes, const uint64_t *strides,
                           const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill);
struct cluster_attribute {
    int id;
    char pad[4];
    unsigned cluster[16];
};
struct launch {
    unsigned grid[3], block[3], shared;
    void *stream;
    struct cluster_attribute *attributes;
    unsigned count;
};
int cuLaunchKernelEx(const struct launch *launch, void *function, void **parameters, void **extra);

enum { ORDERS = 5, COLUMNS = 96, ROWS = 40, HEADS = 2, BOX = 16, WORDS = 1024, MOST_THREADS = 1024, SHARED = 160 * 1024 };
enum { FEATURE_CLUSTER = 4, TYPE_16_BITS = 6, SWIZZLE_128 = 3 };

static const struct test {
    const char *name;
    int threads, blocks;
    const char *words; /* of the finding; NULL: there is none */
} tests[] = {
#define INSTRUCTION(name, threads, blocks)   {#name, threads, blocks, NULL},
#define MISUSE(name, threads, blocks, words) {#name, threads, blocks, words},
#include "instructions.def"
#undef INSTRUCTION
#undef MISUSE
};

static const char *image;
static uint32_t dtype;

static uint64_t on_device(const void *data, size_t bytes)
{
    uint64_t address = 0;
    if (cuMemAlloc_v2(&address, bytes) != 0 || cuMemcpyHtoDAsync_v2(address, data, bytes, NULL) != 0)
        abort();
    return address;
}

static void *load_kernel(void)
{
    static char data[4096];
    void *module = NULL, *function = NULL;
    snprintf(data, sizeof data, "emulated image\n%s", image);
    if (cuInit(0) != 0 || cuModuleLoadDataEx(&module, data, 0, NULL, NULL) != 0 ||
        cuModuleGetFunction(&function, module, "attest_kernel") != 0)
        abort();
    return function;
}

static uint64_t make_tensor(unsigned char map[128])
{
    static uint16_t values[HEADS * ROWS * COLUMNS];
    for (int n = 0; n < HEADS * ROWS * COLUMNS; n++)
        values[n] = dtype == ATTEST_F16 ? attest_f16_from_float((float)(n % 2000)) : attest_bf16_from_float((float)(n % 2000));
    const uint64_t tensor = on_device(values, sizeof values), sizes[] = {COLUMNS, ROWS, HEADS, 1},
                   strides[] = {COLUMNS * 2, COLUMNS * ROWS * 2, COLUMNS * ROWS * HEADS * 2};
    const uint32_t box[] = {64, BOX, 1, 1}, steps[] = {1, 1, 1, 1};
    if (cuTensorMapEncodeTiled(map, TYPE_16_BITS, 4, (void *)(uintptr_t)tensor, sizes, strides, box, steps, 0, SWIZZLE_128, 0, 0) !=
        0)
        abort();
    return tensor;
}

/* In a process of its own: 0, or 1 after a finding, or 2 after a check that failed. */
static int launch(int number, int order)
{
    static int wrong[MOST_THREADS * 2];
    static uint32_t words[WORDS];
    static _Alignas(64) unsigned char map[128];
    const struct test *test = &tests[number];
    char text[16];
    snprintf(text, sizeof text, "%d", order);
    setenv("EMULATED_ORDER", text, 1);
    void *function = load_kernel();
    uint64_t wrong_at = on_device(wrong, sizeof wrong), words_at = on_device(words, sizeof words), tensor = make_tensor(map);
    int blocks = test->blocks;
    void *parameters[] = {&number, &blocks, &wrong_at, &words_at, &tensor, map};
    struct cluster_attribute cluster = {.id = FEATURE_CLUSTER, .cluster = {(unsigned)test->blocks, 1, 1}};
    struct launch config = {.grid = {(unsigned)test->blocks, 1, 1},
                            .block = {(unsigned)test->threads, 1, 1},
                            .shared = SHARED,
                            .attributes = &cluster,
                            .count = 1};
    if (cuLaunchKernelEx(&config, function, parameters, NULL) != 0)
        return 1;
    if (cuMemcpyDtoHAsync_v2(wrong, wrong_at, sizeof wrong, NULL) != 0)
        abort();
    for (int n = 0; n < test->threads * test->blocks; n++)
        if (wrong[n]) {
            fprintf(stderr, "the check in line %d fails, block %d, thread %d\n", wrong[n], n / test->threads, n % test->threads);
            return 2;
        }
    return 0;
}

/* From here on the process gets so many bytes more and then none. */
static void limit_memory(rlim_t bytes)
{
    long pages[6] = {0};
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld %ld %ld %ld %ld", &pages[0], &pages[1], &pages[2], &pages[3], &pages[4], &pages[5]) != 6)
        abort();
    fclose(file);
    const rlim_t most = (rlim_t)pages[5] * (rlim_t)sysconf(_SC_PAGESIZE) + bytes;
    if (setrlimit(RLIMIT_DATA, &(struct rlimit){most, most}) != 0)
        abort();
}

/* What it said is in `said`. `memory`: how much it gets, or 0 for any. */
static int launch_apart(int number, int order, rlim_t memory, char *said, size_t size)
{
    int ends[2], status = 0;
    size_t used = 0;
    fflush(stdout);
    if (pipe(ends) != 0)
        abort();
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        if (memory)
            limit_memory(memory);
        exit(launch(number, order));
    }
    close(ends[1]);
    for (ssize_t got; used < size - 1 && (got = read(ends[0], said + used, size - 1 - used)) > 0;)
        used += (size_t)got;
    said[used] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void test_instructions(void)
{
    char said[8192];
    for (int n = 0; n < (int)(sizeof tests / sizeof *tests); n++)
        for (int order = 0; order < ORDERS && !tests[n].words; order++)
            if (tap_case("%s, %d blocks, order %d", tests[n].name, tests[n].blocks, order)) {
                int status = launch_apart(n, order, 0, said, sizeof said);
                tap_check(status == 0, "ends with %d: %s", status, said);
            }
}

static void test_misuse(void)
{
    char said[8192], last[8192];
    for (int n = 0; n < (int)(sizeof tests / sizeof *tests); n++) {
        bool found = false;
        if (!tests[n].words || !tap_case("%s", tests[n].name))
            continue;
        for (int order = 0; order < ORDERS; order++) {
            int status = launch_apart(n, order, 0, said, sizeof said);
            found = found || (status == 1 && strstr(said, "emulation: ") && strstr(said, tests[n].words));
            tap_check(status == 1, "order %d ends with %d: %s", order, status, said);
            memcpy(last, said, sizeof last);
        }
        tap_check(found, "not found: %s", last);
    }
}

/* What this machine lacks is no hazard of the kernel's, and is told apart: memory for the stacks, and for what is kept of each thread. */
static void test_exhausted(void)
{
    static const rlim_t rooms[] = {(rlim_t)100 << 20, (rlim_t)258 << 20};
    char said[8192];
    int largest = 0;
    for (int n = 0; n < (int)(sizeof tests / sizeof *tests); n++)
        if (tests[n].blocks > tests[largest].blocks && !tests[n].words)
            largest = n;
    for (int n = 0; n < (int)(sizeof rooms / sizeof *rooms); n++)
        if (tap_case("%s in %d MiB", tests[largest].name, (int)(rooms[n] >> 20))) {
            int status = launch_apart(largest, 0, rooms[n], said, sizeof said);
            tap_check(status == 1 && strstr(said, "emulation: EXHAUSTED there is not enough memory"), "ends with %d: %s", status,
                      said);
        }
}

int main(int argc, char **argv)
{
    static const struct tap_test all[] = {
        {"instructions", test_instructions}, {"misuse", test_misuse}, {"exhausted", test_exhausted}};
    if (argc < 3) {
        fprintf(stderr, "usage: %s IMAGE.so DTYPE [OPTION...]\n", argv[0]);
        return 2;
    }
    image = argv[1];
    dtype = (uint32_t)atoi(argv[2]);
    argv[2] = argv[0];
    return tap_main(argc - 2, argv + 2, all, sizeof all / sizeof *all);
}
