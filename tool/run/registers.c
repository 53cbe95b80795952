/*
 * registers.c - the processor state that a kernel must leave as it was (see registers.h).
 *
 * x86-64: the control bits of MXCSR (flush-to-zero, denormals-are-zero, rounding, exception masks), the x87 control word, an empty x87
 * stack and no MMX state, the direction flag and the alignment-check flag. aarch64: FPCR. A kernel may change them while it runs, if
 * it changes them back; what it computes meanwhile is judged like everything else. The sticky exception flags of MXCSR are no state of
 * a caller's: they may change.
 *
 * A call must not find anything of an earlier one either, or a kernel could count its calls. So before each call that is not timed the
 * vector and mask registers, the sticky flags, errno and the stack below the call are filled with random bits, and AMX tiles, which a
 * kernel may leave configured, are released after it. (Timed calls are spared that, and their results are judged all the same.)
 *
 * The pointer to the board lies in a page that is made read-only before a kernel is loaded.
 */
#include "registers.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/random.h"

enum { STACK_FILLED = 24 << 10, PAGE_MOST = 1 << 16 };

/* What does not change once a kernel is there. */
static union {
    struct {
        struct board *board;
        uint64_t seed;
        uint32_t mxcsr, control; /* as they have to be */
        bool avx, avx512, amx;
    } is;
    char page[PAGE_MOST];
} fixed __attribute__((aligned(PAGE_MOST)));

static _Thread_local uint64_t drawn;

uint64_t registers_draw(void)
{
    return random_mix(fixed.is.seed + (uint64_t)(uintptr_t)&drawn + ++drawn * UINT64_C(0x9e3779b97f4a7c15));
}

static void note(enum register_state state, enum kernel_function function, uint32_t value)
{
    struct board *board = fixed.is.board;
    if (board->state)
        return;
    board->place = function;
    board->value = value;
    board->state = state;
}

/* Leaves random bits on the stack where the next function called will have its own. */
static __attribute__((noinline)) void fill_stack(void)
{
    uint64_t words[STACK_FILLED / 8], bits = registers_draw();
    for (size_t i = 0; i < STACK_FILLED / 8; i++)
        words[i] = bits += UINT64_C(0x9e3779b97f4a7c15);
    __asm__ volatile("" : : "r"(words) : "memory");
}

#if defined(__x86_64__)

enum {
    MXCSR_STICKY = 0x3f,
    MXCSR_FLUSH = 1 << 15 | 1 << 6,
    MXCSR_ROUNDING = 3 << 13,
    MXCSR_MASKS = 0x3f << 7,
    X87_ROUNDING = 3 << 10,
    X87_MASKS = 0x3f,
    X87_TOP = 7 << 11,
    FLAG_DIRECTION = 1 << 10,
    FLAG_ALIGNMENT = 1 << 18
};

static uint32_t get_mxcsr(void)
{
    uint32_t value;
    __asm__ volatile("stmxcsr %0" : "=m"(value));
    return value;
}

static void set_mxcsr(uint32_t value)
{
    __asm__ volatile("ldmxcsr %0" : : "m"(value));
}

static uint32_t get_control(void)
{
    uint16_t value;
    __asm__ volatile("fnstcw %0" : "=m"(value));
    return value;
}

/* Whether registers of the x87, which are those of MMX too, are in use. The status word alone shows most of it and costs less. */
static bool stack_is_used(bool thorough)
{
    uint16_t status;
    __asm__ volatile("fnstsw %0" : "=m"(status));
    if (status & X87_TOP || !thorough)
        return (status & X87_TOP) != 0;
    unsigned char area[512] __attribute__((aligned(16)));
    __asm__ volatile("fxsave %0" : "=m"(area));
    return area[4] != 0; /* tags, one bit a register */
}

#define FILL_16(form)                                                                                                              \
    form("0") form("1") form("2") form("3") form("4") form("5") form("6") form("7") form("8") form("9") form("10") form("11")      \
        form("12") form("13") form("14") form("15")
#define FILL_HIGH(form)                                                                                                            \
    form("16") form("17") form("18") form("19") form("20") form("21") form("22") form("23") form("24") form("25") form("26")       \
        form("27") form("28") form("29") form("30") form("31")
#define FILL_ZMM(n)  "vpbroadcastq %0, %%zmm" n "\n\t"
#define FILL_YMM(n)  "vpbroadcastq %%xmm0, %%ymm" n "\n\t"
#define FILL_XMM(n)  "movq %0, %%xmm" n "\n\t"
#define FILL_MASK(n) "kmovw %k0, %%k" n "\n\t"
#define VECTORS                                                                                                                    \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",   \
        "xmm15"

static void fill_vectors(void)
{
    uint64_t bits = registers_draw();
    if (fixed.is.avx512)
        __asm__ volatile(FILL_16(FILL_ZMM) FILL_HIGH(FILL_ZMM) FILL_MASK("1") FILL_MASK("2") FILL_MASK("3") FILL_MASK("4")
                             FILL_MASK("5") FILL_MASK("6") FILL_MASK("7") "vzeroupper"
                         :
                         : "r"(bits)
                         : VECTORS);
    else if (fixed.is.avx)
        __asm__ volatile("vmovq %0, %%xmm0\n\t" FILL_16(FILL_YMM) "vzeroupper" : : "r"(bits) : VECTORS);
    else
        __asm__ volatile(FILL_16(FILL_XMM) "nop" : : "r"(bits) : VECTORS);
}

static void find_features(bool amx)
{
    fixed.is.mxcsr = get_mxcsr() & ~(uint32_t)MXCSR_STICKY;
    fixed.is.control = get_control();
    __builtin_cpu_init();
    fixed.is.avx = __builtin_cpu_supports("avx2");
    fixed.is.avx512 = __builtin_cpu_supports("avx512f");
    fixed.is.amx = amx;
}

static void randomise(void)
{
    set_mxcsr(fixed.is.mxcsr | (uint32_t)(registers_draw() & MXCSR_STICKY));
    fill_vectors();
}

void registers_after(enum kernel_function function, bool thorough)
{
    uint64_t flags = __builtin_ia32_readeflags_u64();
    if (flags & (FLAG_DIRECTION | FLAG_ALIGNMENT)) {
        __builtin_ia32_writeeflags_u64(flags & ~(uint64_t)(FLAG_DIRECTION | FLAG_ALIGNMENT));
        note(flags & FLAG_DIRECTION ? REGISTERS_DIRECTION : REGISTERS_ALIGNMENT, function, (uint32_t)flags);
    }
    uint32_t mxcsr = get_mxcsr() & ~(uint32_t)MXCSR_STICKY, wrong = mxcsr ^ fixed.is.mxcsr;
    uint32_t control = get_control(), off = control ^ fixed.is.control;
    if (wrong) {
        note(wrong & MXCSR_FLUSH      ? REGISTERS_FLUSH
             : wrong & MXCSR_ROUNDING ? REGISTERS_ROUNDING
                                      : REGISTERS_MASKS,
             function, mxcsr);
        set_mxcsr(fixed.is.mxcsr);
    }
    if (off)
        note(off & X87_ROUNDING ? REGISTERS_ROUNDING : off & X87_MASKS ? REGISTERS_MASKS : REGISTERS_PRECISION, function, control);
    bool used = stack_is_used(thorough);
    if (used)
        note(REGISTERS_STACK, function, 0);
    if (off || used)
        __asm__ volatile("fninit");
    uint16_t value = (uint16_t)fixed.is.control;
    if (off || used)
        __asm__ volatile("fldcw %0" : : "m"(value));
    if (thorough && fixed.is.amx)
        __asm__ volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0xc0"); /* tilerelease */
}

#elif defined(__aarch64__)

enum { FPCR_FLUSH = 1 << 24 | 1 << 19, FPCR_ROUNDING = 3 << 22 };

static uint32_t get_control(void)
{
    uint64_t value;
    __asm__ volatile("mrs %0, fpcr" : "=r"(value));
    return (uint32_t)value;
}

static void find_features(bool amx)
{
    fixed.is.control = get_control();
    (void)amx;
}

static void randomise(void) {}

void registers_after(enum kernel_function function, bool thorough)
{
    uint32_t control = get_control(), wrong = control ^ fixed.is.control;
    (void)thorough;
    if (!wrong)
        return;
    note(wrong & FPCR_FLUSH ? REGISTERS_FLUSH : wrong & FPCR_ROUNDING ? REGISTERS_ROUNDING : REGISTERS_MASKS, function, control);
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)fixed.is.control));
}

#else

static void find_features(bool amx)
{
    (void)amx;
}

static void randomise(void) {}

void registers_after(enum kernel_function function, bool thorough)
{
    (void)function;
    (void)thorough;
}

#endif

void registers_before(bool thorough)
{
    if (!thorough)
        return;
    errno = registers_draw() & 1 ? ERANGE : 0;
    fill_stack();
    randomise();
}

void registers_begin(struct board *board, bool amx)
{
    fixed.is.board = board;
    if (getrandom(&fixed.is.seed, sizeof fixed.is.seed, GRND_NONBLOCK) < 0)
        fixed.is.seed = (uint64_t)(uintptr_t)board;
    find_features(amx);
    mprotect(&fixed, sizeof fixed, PROT_READ);
}
