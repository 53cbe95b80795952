/*
 * features.c - which instruction sets this machine has and the operating system lets us use.
 */
#include "../internal.h"

#include <pthread.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* XCR0: which register state the system saves. 2 SSE, 4 AVX, e0 AVX-512, 60000 AMX. */
static uint64_t saved_state(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* Linux hands out the AMX tile registers on request. */
static bool amx_granted(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

static unsigned look(void)
{
    unsigned a, b, c, d, set = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return 0;
    bool fma = c >> 12 & 1, osxsave = c >> 27 & 1, avx = c >> 28 & 1, f16c = c >> 29 & 1;
    if (!osxsave || !avx || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return 0;
    uint64_t state = saved_state();
    bool avx2 = b >> 5 & 1, f = b >> 16 & 1, dq = b >> 17 & 1, bw = b >> 30 & 1, vl = b >> 31 & 1;
    bool amx_bf16 = d >> 22 & 1, amx_tile = d >> 24 & 1;
    bool bf16 = __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
    if (avx2 && fma && f16c && (state & 6) == 6)
        set |= FEATURE_AVX2;
    if (set && f && dq && bw && vl && (state & 0xe6) == 0xe6)
        set |= FEATURE_AVX512;
    if ((set & FEATURE_AVX512) && bf16)
        set |= FEATURE_AVX512BF16;
    if ((set & FEATURE_AVX512BF16) && amx_tile && amx_bf16 && (state & 0x60000) == 0x60000 && amx_granted())
        set |= FEATURE_AMX;
    return set;
}

#else

static unsigned look(void)
{
    return 0;
}

#endif

static unsigned found;

static void look_once(void)
{
    found = look();
}

/* Asking the processor is slow in a virtual machine, so it is asked once. */
unsigned cpu_features_found(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look_once);
    return found;
}
