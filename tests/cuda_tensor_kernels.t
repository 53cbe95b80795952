#!/bin/sh
# The library's CUDA kernels with tensor cores, without a GPU: their sources compiled for the CPU, where matrix instructions, bulk copies
# and barriers are emulated (tests/cuda), judged against the oracle on random problems with every feature. The emulation is tested first.
. tests/tap.sh
need g++

export EMULATED_CACHE="$work" BUILD CC
long=${ATTEST_TEST_LONG:-}
tests/cuda/headers.sh "$work/include"

# instructions DTYPE
instructions() {
    g++ -std=c++17 -O1 -Wall -ffp-contract=off -I"$work/include" -Itests/cuda -Itool/emulation/runtime -Itests -DATTEST_DTYPE="$1" -DATTEST_DIM=64 -DATTEST_TILE_Q=64 \
        -DATTEST_TILE_KV=64 -DATTEST_STAGES=1 -DATTEST_THREADS=128 -fopenmp -o "$work/instructions" tests/cuda/instructions.cpp tool/emulation/runtime/tensor_core.cpp \
        "$BUILD/obj/tests/tap.o" "$BUILD/libattest.a" -lm && "$work/instructions"
}
check "the emulated instructions are those of the PTX ISA, f16" instructions 2
[ -z "$long" ] || check "the emulated instructions are those of the PTX ISA, bf16" instructions 3

for variant in "sm80 sm_80 f16 64" "sm80 sm_80 bf16 128" "sm80_small sm_80 bf16 64" "sm80_split sm_80 f16 64" \
    ${long:+"sm80 sm_80 bf16 96" "sm80 sm_90 f16 256" "sm80_small sm_90 f16 128" "sm80_split sm_80 bf16 128" "sm80_split sm_90 bf16 192"}; do
    # shellcheck disable=SC2086
    set -- $variant
    check "cuda_fwd_$1 is right, $3 d$4, $2" tests/cuda/emulate.sh "lib/cuda/kernels/cuda_fwd_$1.cu" "$2" "$3" "$4"
done
# Values at which sums of cuda_fwd_sm80 once drifted by the rounding of their maximum, and a scale of 0.
drifting=fwd:f16:b1:h1:sq1:skv4000:d64:lse
EMULATED_SEED=3 check "cuda_fwd_sm80 keeps its sums, and takes a scale of 0" \
    tests/cuda/emulate.sh lib/cuda/kernels/cuda_fwd_sm80.cu sm_80 f16 64 $drifting fwd:f16:b1:h1:s80:d64:scale=0:lse

. tests/cuda/mutant.sh
kernel=cuda_fwd_sm80.cu arch=sm_80
mutant attention_sm80.cuh "a missing barrier" '/cp_async_wait<STAGES - 2>();/{n;s/__syncthreads();//}' fwd:f16:b1:h1:s200:d64
mutant attention_sm80.cuh "a wait for copies that is off by one" 's/cp_async_wait<STAGES - 2>();/cp_async_wait<STAGES - 1>();/' fwd:f16:b1:h1:s200:d64
mutant attention_sm80.cuh "a chunk at the wrong place" 's/return (at ^ (2 \* pair % GROUP << 4))/return (at + (2 * pair % GROUP << 4))/' fwd:f16:b1:h1:s80:d64
mutant attention_sm80.cuh "a missing rescale" 's/O\[m\]\[n\]\[e\] \*= carry\[m\]\[e \/ 2\];/(void)carry;/' fwd:f16:b1:h1:s80:d64
kernel=cuda_fwd_sm80_split.cu
mutant cuda_fwd_sm80_split.cu "pieces joined without their weights" 's/const float weight = share(state\[n\].x, most);/const float weight = 1;/' fwd:f16:b1:h1:sq4:skv300:d64
[ -n "$long" ] || finish
kernel=cuda_fwd_sm80.cu arch=sm_80
mutant attention_sm80.cuh "a sum that drifts by the rounding of its maximum" 's/__fmul_rn(rows.m\[m\]\[half\], c) - base/fmaf(rows.m[m][half], c, -base)/' \
    $drifting 3 # as nvcc would fuse it
finish
