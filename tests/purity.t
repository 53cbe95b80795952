#!/bin/sh
# The build gate on images that were built elsewhere: what it finds in the ELF file and in the instructions, without a source to read. And
# images that only look like that, which pass; hostile files; sub-features; files that are no files.
. tests/tap.sh
attest=$BUILD/attest
case $(uname -m) in x86_64) ;; *) echo "1..0 # SKIP the images are for x86-64"; exit 0 ;; esac

kernel='
#include <attest_kernel.h>
#include <math.h>
#include <string.h>
#ifndef BODY
#define BODY
#endif
#ifndef NEEDS
#define NEEDS ""
#endif
static size_t scratch_size(const attest_problem *p, int64_t rows) { (void)p; (void)rows; return 0; }
static void tile(const attest_task *task, void *scratch) { (void)task; (void)scratch; BODY }
static const attest_cpu_kernel table = {.abi = ATTEST_KERNEL_ABI, .dtypes = ATTEST_TAKES_F32, .refuses = ~0ull, .name = "image",
    .needs = NEEDS, .summary = "", .tile = tile, .scratch_size = scratch_size, .row_step = 1, .rows_wanted = 8};
__attribute__((visibility("default"))) const attest_cpu_kernel *attest_cpu_kernel_entry(void) { return &table; }'

# image NAME BEFORE BODY FLAG...: builds build/.../NAME.so of a kernel with this text before it and this body.
image() {
    printf '%s\n%s\n' "$2" "$kernel" > "$work/$1.c"
    stem=$1 body=$3
    shift 3
    ${CC:-gcc} -O2 -fPIC -shared -fvisibility=hidden -Iinclude "-DBODY=$body" "$@" "$work/$stem.c" -o "$work/$stem.so" -lm 2> "$work/cc"
}

# refused NAME WORDS: the build gate rejects the image with these words.
refused() {
    "$attest" prove "$work/$1.so" --only build > "$work/log" 2>&1
    grep -q "build  *FAIL" "$work/log" && grep -qF "$2" "$work/log"
    result $? "refused: $1 ($2)" 
}

# passes NAME: it passes the build gate.
passes() {
    "$attest" prove "$work/$1.so" --only build > "$work/log" 2>&1
    grep -q "build  *PASS" "$work/log"
    result $? "passes: $1"
}

image plain "" ""; passes plain
image bare "" "" -nostartfiles -Wl,-z,now; passes bare
image libm "" "volatile float x = expf(1); x = powf(x, 2); (void)x;"; passes libm
image protected "" "volatile char x[64]; memset((void *)x, 0, 64);" -fstack-protector-all; passes protected
image guarded "" "" -fcf-protection=none -fno-plt; passes guarded
image switches "" "volatile int x = 3; switch (x) { case 0: x = 5; break; case 1: x = 9; break; case 2: x = 2; break; case 3: x = 7; break; case 4: x = 1; break; case 5: x = 11; }"; passes switches

image counter "static int calls;" "calls++;"; refused counter "writable static storage"
image initialised "static int calls[99] = {1};" "calls[3]++;"; refused initialised "writable static storage"
image handle "extern long __dso_handle __attribute__((visibility(\"hidden\")));" "__dso_handle++;"; refused handle "touches writable static storage"
image threads "static _Thread_local int calls;" "calls++;"; refused threads "thread-local storage"
image constructor "__attribute__((constructor)) static void begin(void) { __asm__ volatile(\"\"); }" ""; refused constructor "constructors"
image destructor "__attribute__((destructor)) static void leave(void) { __asm__ volatile(\"\"); }" ""; refused destructor "constructors"
image in_init "__asm__(\".section .init,\\\"ax\\\"\\n nop\\n.text\");" ""; refused in_init ".init"
image indirect "static void here(void) {} static void *pick(void) { return (void *)here; } static void go(void) __attribute__((ifunc(\"pick\")));" "go();"; refused indirect "IFUNC"
image environment "#include <stdlib.h>" "if (getenv(\"A\")) __builtin_trap();"; refused environment "imports getenv"
image clock "#include <time.h>" "if (time(0) == 1) __builtin_trap();"; refused clock "imports time"
image library "" "" -Wl,--no-as-needed -ldl -lpthread -Wl,-rpath,/tmp; refused library "RUNPATH"
image more "__attribute__((visibility(\"default\"))) int more(void) { return 1; }" ""; refused more "exports more"
image stack "" "" -z execstack; refused stack "executable stack"
image written "__asm__(\".section .both,\\\"awx\\\"\\n .quad 0\\n.text\");" ""; refused written "writable and executable"
image system "" "__asm__ volatile(\"syscall\");"; refused system "'syscall'"
image old_call "" "__asm__ volatile(\"int \$0x80\");"; refused old_call "'int \$0x80'"
image processor "" "__asm__ volatile(\"cpuid\" ::: \"eax\", \"ebx\", \"ecx\", \"edx\");"; refused processor "'cpuid'"
image counter_of_time "" "__asm__ volatile(\"rdtsc\" ::: \"eax\", \"edx\");"; refused counter_of_time "'rdtsc'"
image drawn "" "__asm__ volatile(\"rdrand %%eax\" ::: \"eax\");"; refused drawn "rdrand"
image state "" "unsigned x; __asm__ volatile(\"stmxcsr %0\\n ldmxcsr %0\" : \"=m\"(x));"; refused state "mxcsr"
image x87 "" "unsigned short x = 0x7f; __asm__ volatile(\"fldcw %0\" :: \"m\"(x));"; refused x87 "fldcw"
image segment "" "long x; __asm__ volatile(\"mov %%fs:0, %0\" : \"=r\"(x));"; refused segment "thread-local storage"
image hidden "" "__asm__ volatile(\"jmp 1f+2\\n1: mov \$0x90c3050f, %%eax\" ::: \"eax\");"; refused hidden "the middle of another"
image constant "" "__asm__ volatile(\"mov \$0x90c3050f, %%eax\" ::: \"eax\");"; refused constant "bytes of the instruction syscall"
image data "__asm__(\".text\\n .byte 0x06, 0x07, 0x0e\");" ""; refused data "no instruction"

# A file that is cut off, or has one byte changed, is refused or judged, and nothing crashes.
good=1
python3 - "$work" << 'END'
import random, sys
image = open(f"{sys.argv[1]}/plain.so", "rb").read()
draw = random.Random(1)
for i in range(24):
    bad = bytearray(image[: draw.randrange(len(image))] if i % 3 == 0 else image)
    for _ in range(4 if i % 3 else 0):
        bad[draw.choice([draw.randrange(64), draw.randrange(64, 600), draw.randrange(len(bad) - 1800, len(bad))])] = draw.randrange(256)
    open(f"{sys.argv[1]}/bad{i}.so", "wb").write(bad)
END
for i in $(seq 0 23); do
    timeout 60 "$attest" prove "$work/bad$i.so" --only build > "$work/log" 2>&1
    case $? in 0 | 1 | 2 | 3) ;; *) good=0; break ;; esac
done
[ $good = 1 ]
result $? "damaged images end in a verdict"

# Sub-features have names.
image dot "#define NEEDS \"avx512\"
#include <immintrin.h>" "volatile __m512i x; x = _mm512_dpbusd_epi32(x, x, x); (void)x;" -mavx512f -mavx512vnni
"$attest" prove "$work/dot.so" --only profile > "$work/log" 2>&1
grep -q "profile  *FAIL.*vpdpbusd" "$work/log"
result $? "an instruction of AVX512-VNNI in a kernel that needs avx512 is named"

# Pipes and devices are no files, and nobody waits for them.
mkfifo "$work/pipe.c" "$work/pipe.npy"
for words in "prove $work/pipe.c" "run fwd:f32:b1:h1:s4:d8 --q $work/pipe.npy" "check --suite $work/pipe.npy" "verify --key $work/pipe.npy" \
    "check --suite /dev/zero" "prove mutants/harmless_base.c --timed $work"; do
    timeout 20 "$attest" $words > "$work/log" 2>&1
    [ $? = 2 ] && grep -q "is not a regular file" "$work/log"
    result $? "refused at once: attest $(echo "$words" | sed "s|$work|...|g")"
done

# Flags: one list for prove and evolve.
for flag in -wrapper,/bin/true -fplugin=x.so -B. -specs=x -include/etc/passwd @x -Wl,-z,execstack -w -Wno-all -fno-sanitize=all -O0 -isystem. -I/etc \
    -D__OPTIMIZE__ -fdump-tree-all -save-temps -xc++; do
    printf '/*\n * attest-flags: %s\n */\n%s\n' "$flag" "$kernel" > "$work/flag.c"
    "$attest" prove "$work/flag.c" --only build > "$work/log" 2>&1
    grep -q "build  *FAIL.*it asks for the flag" "$work/log" || { good=0; echo "# $flag"; break; }
done
[ $good = 1 ]
result $? "flags that are not about a kernel's own code are refused by name"

finish
