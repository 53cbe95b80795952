/*
 * Allocations: attest_run asks for no memory, on any kernel, for prefill, decode and split keys. The linker routes every call of an
 * allocator from the library through the counters here.
 */
#include "drive.h"
#include "tap.h"

#include <stdlib.h>

static long calls;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **result, size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **result, size_t alignment, size_t size);

static void count(void)
{
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
}

void *__wrap_malloc(size_t size)
{
    count();
    return __real_malloc(size);
}
void *__wrap_calloc(size_t number, size_t size)
{
    count();
    return __real_calloc(number, size);
}
void *__wrap_realloc(void *old, size_t size)
{
    count();
    return __real_realloc(old, size);
}
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    count();
    return __real_aligned_alloc(alignment, size);
}
int __wrap_posix_memalign(void **result, size_t alignment, size_t size)
{
    count();
    return __real_posix_memalign(result, alignment, size);
}

static void check(const char *line, const char *kernel, int threads)
{
    attest_problem p;
    struct instance in;
    attest_plan *plan = NULL;
    attest_context *context = drive_context(threads);
    long before = calls;
    if (!tap_check(attest_problem_parse(line, &p, NULL, 0) == ATTEST_OK, "parse %s", line) ||
        !instance_create(&in, &p, tap.seed, NULL))
        return;
    if (attest_plan_create(context, &p, kernel, &plan) == ATTEST_OK) { /* what it does not take is not its business */
        size_t bytes = attest_plan_workspace_size(plan);
        void *workspace = aligned_alloc(64, (bytes + 127) / 64 * 64);
        tap_check(calls > before, "the counters do not count");
        before = calls;
        attest_status status = attest_run(context, plan, &in.tensors, workspace, bytes, NULL);
        tap_check(status == ATTEST_OK, "%s: %s", kernel, attest_context_detail(context));
        tap_check(calls == before, "%s, %d threads: attest_run allocates, %ld times", kernel, threads, calls - before);
        free(workspace);
    }
    attest_plan_destroy(plan);
    instance_destroy(&in);
    attest_context_destroy(context);
}

static void nothing(void)
{
    static const char *const lines[] = {"fwd:f32:b2:h4:sq100:skv150:d64:causal:lse", "fwd:f16:b1:hq8:hkv2:sq1:skv4000:d64:lse",
                                        "fwd:bf16:b1:h2:sq40:skv2100:d80", "fwd:bf16:b2:h2:s300:d64:sink:alibi:softcap=9",
                                        "fwd:f32:b2:h2:sq70:skv130:d512:bias:wl=9"};
    attest_kernel_info info = {.size = sizeof info};
    for (size_t k = 0; k < attest_kernel_count(); k++)
        for (size_t n = 0; n < sizeof lines / sizeof *lines; n++)
            for (int threads = 1; threads <= 3; threads++) {
                attest_kernel_get(k, &info);
                if (tap_case("%s %s %d", info.name, lines[n], threads))
                    check(lines[n], info.name, threads);
            }
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {{"attest_run allocates nothing", nothing}};
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
