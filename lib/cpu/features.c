/*
 * features.c - which instruction sets this machine has and the operating system lets us use, and what it is called.
 */
#include "../internal.h"

#include <pthread.h>
#include <string.h>

enum { NAME_SIZE = 49 };

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
    bool vbmi = c >> 1 & 1, amx_bf16 = d >> 22 & 1, amx_tile = d >> 24 & 1;
    bool bf16 = __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
    if (avx2 && fma && f16c && (state & 6) == 6)
        set |= FEATURE_AVX2;
    if (set && f && dq && bw && vl && (state & 0xe6) == 0xe6)
        set |= FEATURE_AVX512;
    if ((set & FEATURE_AVX512) && bf16)
        set |= FEATURE_AVX512BF16;
    if ((set & FEATURE_AVX512BF16) && vbmi && amx_tile && amx_bf16 && (state & 0x60000) == 0x60000 && amx_granted())
        set |= FEATURE_AMX;
    return set;
}

/* The brand string: 48 characters in three leaves, filled up with blanks in front or behind. */
static void ask_name(char name[NAME_SIZE])
{
    unsigned words[12] = {0};
    for (unsigned leaf = 0; leaf < 3; leaf++)
        if (!__get_cpuid(0x80000002u + leaf, &words[4 * leaf], &words[4 * leaf + 1], &words[4 * leaf + 2], &words[4 * leaf + 3]))
            return;
    memcpy(name, words, sizeof words);
    size_t blanks = strspn(name, " "), length = strlen(name);
    while (length > blanks && name[length - 1] == ' ')
        name[--length] = 0;
    memmove(name, name + blanks, length - blanks + 1);
}

#else

static unsigned look(void)
{
    return 0;
}

static void ask_name(char name[NAME_SIZE])
{
    name[0] = 0;
}

#endif

static unsigned found;
static char model[NAME_SIZE];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void look_once(void)
{
    found = look();
    ask_name(model);
}

/* Asking the processor is slow in a virtual machine, so it is asked once. */
unsigned cpu_features_found(void)
{
    pthread_once(&once, look_once);
    return found;
}

const char *cpu_model(void)
{
    pthread_once(&once, look_once);
    return model;
}
