#!/bin/sh
# The emulation gate: planted races, waits and fences are rejected without a GPU with the lines of both accesses, a harmless kernel is
# proven in emulation, and PTX that is not emulated is named with its line.
. tests/tap.sh
need nvcc g++ addr2line
attest=$BUILD/attest

# gate KERNEL VERDICT: whether the emulation gate comes to this verdict; what was said is in $work/out.
gate() {
    "$attest" prove "$1" --only build,emulation --seed 3 --suite mutants/cuda/suite.txt --policy emulation_seconds=8 --state "$work/state" > "$work/out" 2>&1
    grep -q "^  emulation  *$2" "$work/out"
}
# rejected NAME KERNEL WORDS: rejected by the emulation gate with these words.
rejected() {
    gate "$2" FAIL && grep -q -e "$3" "$work/out"
    status=$?
    cp "$work/out" "$work/log"
    result $status "$1"
}
rejected "a barrier left out: the lines of both accesses" mutants/cuda/barrier_missing.cu "race on shared address.*base.cuh:[0-9]*.*base.cuh:[0-9]*"
rejected "a word that another warp reads" mutants/cuda/race_unseen.cu "race on shared address"
rejected "a bulk copy that is not waited for" mutants/cuda/bulk_not_waited.cu "a bulk load"
rejected "a wgmma that is not waited for" mutants/cuda/wgmma_not_waited.cu "wgmma"
rejected "a store over what a wgmma reads, although it is undone" mutants/cuda/wgmma_operand_stored.cu "a race on shared address.*wgmma that read it"
rejected "shared memory that is read and was not written" mutants/cuda/shared_uninitialised.cu "which nothing was written to"
rejected "a piece that is read and was not written" mutants/cuda/piece_not_written.cu "which nothing was written to"
rejected "a read behind the last key" mutants/cuda/reads_beyond_k.cu "outside of every tensor"

# Wrong numbers are diagnosed on the emulated device: the first wrong stage has a name.
rejected "O that is never rescaled is named by its stage" mutants/cuda/o_never_rescaled.cu "the first wrong stage is .*rescale"
rejected "a scale left out is named by its stage" mutants/cuda/scale_dropped.cu "the first wrong stage is S"

# Every feature that the manifest takes has to be run, and every image: in no time only a few are.
"$attest" prove lib/cuda/kernels/cuda_fwd_wmma.cu --only emulation --seed 3 --policy emulation_seconds=0 --state "$work/state" > "$work/out" 2>&1
grep -q "^  emulation  *INCONCLUSIVE.*the manifest takes what no problem" "$work/out"
status=$?
cp "$work/out" "$work/log"
result $status "a feature that no problem had is INCONCLUSIVE"

# A fence between ordinary writes and wgmma, which neither results nor racecheck miss.
cp mutants/cuda/base.cuh mutants/cuda/harmless_wgmma.cu "$work/"
sed -i '/WAIT_FOR_TILE;/,/BARRIER;/s/asm volatile("fence.proxy.async.shared::cta;" ::: "memory");/((void)0);/' "$work/base.cuh"
! cmp -s "$work/base.cuh" mutants/cuda/base.cuh
result $? "a proxy fence is taken out"
mv "$work/harmless_wgmma.cu" "$work/fence_missing.cu"
rejected "and missed" "$work/fence_missing.cu" "without a proxy fence"

# PTX that the emulated device does not have.
sed 's/^#include "base.cuh"/#define AT_START uint32_t bit; asm volatile("bfe.u32 %0, %1, 0, 1;" : "=r"(bit) : "r"(1)); if (bit == 7) return\n&/' \
    mutants/cuda/harmless_base.cu > "$work/other_ptx.cu"
cp mutants/cuda/base.cuh "$work/"
gate "$work/other_ptx.cu" "NOT APPLICABLE" && grep -q "base.cuh:[0-9]*: bfe.u32" "$work/out"
status=$?
cp "$work/out" "$work/log"
result $status "PTX outside of the vocabulary is named with its line"

if [ -n "${ATTEST_TEST_LONG:-}" ]; then
    check "all planted CUDA bugs are rejected in emulation, and no harmless kernel is" "$attest" selftest 'cuda/*' --seed 1
else
    gate mutants/cuda/harmless_bulk.cu PASS && grep -q "PROVEN\|problems in 5 orders" "$work/out"
    status=$?
    cp "$work/out" "$work/log"
    result $status "a harmless kernel passes"
fi
finish
