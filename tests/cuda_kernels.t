#!/bin/sh
# The library's CUDA kernels without tensor cores, without a GPU: their sources compiled for the CPU (see cuda_template.t), judged against
# the oracle on random problems with every feature. Copies in the background are made as late as they may be (tests/cuda/simt.cuh).
. tests/tap.sh
need g++

cp tests/cuda/simt.cuh "$work/"
tests/cuda/headers.sh "$work/include"
$CC -std=c11 -D_GNU_SOURCE -O2 -Iinclude -Itests -Itool/emulation/runtime -fopenmp -c tests/cuda/emulate.c -o "$work/emulate.o"

# fmaf() is one instruction where the CPU has it, with the same result as the function.
fused=$(grep -qsw fma /proc/cpuinfo && echo -mfma) || fused=
common=$(for file in drive gen instance tap tolerance; do echo "$BUILD/obj/tests/$file.o"; done)

# emulated NAME KERNEL DTYPE DIM TILE_Q TILE_KV THREADS: builds $work/NAME from a copy of the kernel, beside the emulated simt.cuh.
# shellcheck disable=SC2086
emulated() {
    cp "$2" "$work/$1.cu" &&
        g++ -std=c++17 -O2 -Wall -Wno-unknown-pragmas -ffp-contract=off $fused -I"$work/include" -Itests/cuda -Itool/emulation/runtime -DKERNEL="\"$work/$1.cu\"" \
            -DATTEST_DTYPE="$3" -DATTEST_DIM="$4" -DATTEST_TILE_Q="$5" -DATTEST_TILE_KV="$6" -DATTEST_STAGES=1 -DATTEST_THREADS="$7" \
            -c tests/cuda/emulated_kernel.cpp -o "$work/$1.o" &&
        g++ -fopenmp -o "$work/$1" "$work/$1.o" "$work/emulate.o" $common "$BUILD/libattest.a" -lm
}

for variant in "simt 1 64 64 64 256" "simt 1 64 64 32 128" "simt 1 128 64 64 256" "simt 1 128 64 32 128"; do
    program=$(echo "$variant" | tr " " _)
    # shellcheck disable=SC2086
    set -- $variant
    check "cuda_fwd_$1 compiles for the CPU, tiles $4x$5, d$3" emulated "$program" "lib/cuda/kernels/cuda_fwd_$1.cu" "$2" "$3" "$4" "$5" "$6"
    check "cuda_fwd_$1 is right, tiles $4x$5, d$3" "$work/$program"
done

# mutant NAME WORDS SED: a planted bug must be seen.
mutant() {
    sed "$3" lib/cuda/kernels/cuda_fwd_simt.cu > "$work/planted.cu"
    ! cmp -s lib/cuda/kernels/cuda_fwd_simt.cu "$work/planted.cu"
    result $? "$2 is planted"
    check "it compiles" emulated "$1" "$work/planted.cu" 1 64 64 32 128
    check_exit 1 "and is seen" "$work/$1"
}
mutant k_read "a missing barrier behind the reading of K" 's|__syncthreads(); // K has been read||'
mutant v_written "a missing barrier behind the writing of V" 's|__syncthreads(); // V and P have been written||'
mutant wait "a wait for copies that is off by one" 's|copies_wait<1>();|copies_wait<2>();|'
mutant weight "groups joined without their weights" 's|fmaf(weight, part(more, d), o\[d\])|o[d] + part(more, d)|'
finish
