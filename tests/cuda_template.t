#!/bin/sh
# The CUDA template without a GPU: its source compiled for the CPU, where every thread is a fiber, judged against the oracle. The three
# conversions that are PTX are replaced by those of the library.
. tests/tap.sh
need g++

tests/cuda/headers.sh "$work/include"
[ "$(grep -c 'value = attest_f16_to_float\|half = attest_f16_from_float\|bits = attest_bf16_from_float' "$work/include/attest_kernel_cuda.h")" = 3 ] &&
    ! grep -q 'asm(' "$work/include/attest_kernel_cuda.h"
result $? "three wrappers of PTX are replaced, and there are no others"

$CC -std=c11 -D_GNU_SOURCE -O2 -Iinclude -Itests -Itool/emulation/runtime -fopenmp -c tests/cuda/emulate.c -o "$work/emulate.o"

# fmaf() is one instruction where the CPU has it, with the same result as the function.
fused=$(grep -qsw fma /proc/cpuinfo && echo -mfma) || fused=
common=$(for file in drive gen instance tap tolerance; do echo "$BUILD/obj/tests/$file.o"; done)

# emulated NAME KERNEL DTYPE DIM: builds $work/NAME.
# shellcheck disable=SC2086
emulated() {
    g++ -std=c++17 -O2 -Wall -Wno-unknown-pragmas -ffp-contract=off $fused -I"$work/include" -Itests/cuda -Itool/emulation/runtime -DKERNEL="\"$2\"" -DATTEST_DTYPE="$3" -DATTEST_DIM="$4" \
        -DATTEST_TILE_Q=16 -DATTEST_TILE_KV=32 -DATTEST_STAGES=1 -DATTEST_THREADS=128 -c tests/cuda/emulated_kernel.cpp -o "$work/$1.o" &&
        g++ -fopenmp -o "$work/$1" "$work/$1.o" "$work/emulate.o" $common "$BUILD/libattest.a" -lm
}

for variant in "1 64 f32" "2 64 f16" "3 128 bf16" "1 512 f32"; do
    set -- $variant
    check "the template compiles for the CPU, $3 d$2" emulated "template_$3_$2" "$PWD/lib/cuda/kernels/cuda_fwd_scalar.cu" "$1" "$2"
    check "the template is right, $3 d$2" "$work/template_$3_$2"
done
# mutant NAME WORDS SED: a planted bug must be seen.
mutant() {
    sed "$3" lib/cuda/kernels/cuda_fwd_scalar.cu > "$work/$1.cu"
    ! cmp -s lib/cuda/kernels/cuda_fwd_scalar.cu "$work/$1.cu"
    result $? "$2 is planted"
    check "it compiles" emulated "$1" "$work/$1.cu" 1 64
    check_exit 1 "and is seen" "$work/$1"
}
mutant barrier "a missing barrier" 's|__syncthreads(); // K has been read||'
mutant rescale "a missing rescale" 's|O_rmem\[q\]\[d\] \*= carry;|(void)carry;|'
mutant barrier2 "another missing barrier" 's|__syncthreads(); // V has been written||'
mutant tail "a missing tail mask" 's|bool visible = r < tile.row_end \&\& j >= row.begin \&\& j < row.end;|bool visible = r < tile.row_end;|'
finish
