#!/bin/sh
# Builds a CUDA kernel for the CPU and runs it in emulation (emulation.h) against the oracle, from the root of the repository, after
# make and make tests:
#
#     tests/cuda/emulate.sh KERNEL.cu ARCH DTYPE DIM [PROBLEM...]
#     tests/cuda/emulate.sh lib/cuda/kernels/cuda_fwd_sm80.cu sm_80 f16 64 fwd:f16:b1:h2:s100:d64:lse
#
# Without problems it takes random ones with every feature that the manifest does not refuse; ATTEST_TEST_LONG=1 takes more.
# EMULATED_SEED=N draws others. The
# headers beside the kernel come with it, but for those that tests/cuda has an emulation of. The array of shared memory has to be
# called `shared`. EMULATED_BUILD=FILE only builds that program. EMULATED_CXXFLAGS are flags for the compiler, such as -g -O0.
# EMULATED_WHOLE_P=1 judges it as a kernel whose weights are not rounded to 16 bits.
# EMULATED_CACHE=FOLDER keeps what is the same for all kernels there; EMULATED_PROGRAM=FILE keeps the program, or takes what was kept.
set -eu
[ $# -ge 4 ] || { sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
kernel=$1 arch=$2 dtype=$3 dim=$4
shift 4
BUILD=${BUILD:-build}
CC=${CC:-gcc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

program=${EMULATED_BUILD:-${EMULATED_PROGRAM:-$work/program}}
if [ ! -x "${EMULATED_PROGRAM:-}" ]; then
    tests/cuda/headers.sh "$work/include"
    for header in lib/cuda/kernels/*.cuh "$(dirname "$kernel")"/*.cuh tests/cuda/*.cuh; do
        [ ! -f "$header" ] || cp "$header" "$work/"
    done
    cp "$kernel" "$work/kernel.cu"

    cache=${EMULATED_CACHE:-$work}
    manifest=$(for name in manifest expression configure resources image; do echo "$BUILD/obj/tool/prove/cuda_$name.o"; done)
    common=$(for name in drive gen instance tap tolerance; do echo "$BUILD/obj/tests/$name.o"; done)
    # shellcheck disable=SC2086
    [ -x "$cache/emulated_flags" ] ||
        $CC -std=c11 -D_GNU_SOURCE -O1 -Iinclude -Itool tests/cuda/emulated_flags.c $manifest -o "$cache/emulated_flags" -ljansson
    [ -f "$cache/emulate.o" ] || $CC -std=c11 -D_GNU_SOURCE -O2 -Iinclude -Itests -Itool/emulation/runtime -fopenmp -c tests/cuda/emulate.c -o "$cache/emulate.o"
    [ -f "$cache/tensor_core.o" ] || g++ -std=c++17 -O3 -march=native -ffp-contract=off -fno-trapping-math -fno-math-errno -c tool/emulation/runtime/tensor_core.cpp -o "$cache/tensor_core.o"
    "$cache/emulated_flags" "$kernel" "$arch" "$dtype" "$dim" > "$work/manifest.h"
    # nvcc makes one instruction of a product and a sum, where it can; so does g++ then, where the CPU has such an instruction.
    fused=$(grep -qsw fma /proc/cpuinfo && echo -mfma) || fused=
    flags="-std=c++17 -O1 -Wall -Wno-unknown-pragmas -Wno-psabi -ffp-contract=fast $fused ${EMULATED_CXXFLAGS:-}"
    # A precompiled header is for certain flags; the compiler takes the one that fits out of the folder.
    standard=$cache/standard.h.gch/$(echo "$flags" | cksum | tr ' ' _)
    if [ -n "${EMULATED_CACHE:-}" ] && [ ! -f "$standard" ]; then
        mkdir -p "$cache/standard.h.gch"
        cp tests/cuda/standard.h "$cache/"
        # shellcheck disable=SC2086
        g++ $flags -x c++-header "$cache/standard.h" -o "$standard"
    fi
    # shellcheck disable=SC2086
    g++ $flags ${EMULATED_CACHE:+-include "$cache/standard.h"} -I"$work/include" -Itests/cuda -Itool/emulation/runtime \
        -include "$work/manifest.h" -DKERNEL="\"$work/kernel.cu\"" -c tests/cuda/emulated_kernel.cpp -o "$work/kernel.o"
    # shellcheck disable=SC2086
    g++ -fopenmp -o "$program" "$work/kernel.o" "$cache/emulate.o" "$cache/tensor_core.o" $common "$BUILD/libattest.a" -lm
fi
[ -z "${EMULATED_BUILD:-}" ] || exit 0
[ $# = 0 ] || export EMULATED_PROBLEMS="$*"
"$program" --seed "${EMULATED_SEED:-1}"
