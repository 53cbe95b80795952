#!/bin/sh
# The AMX kernel where there is no AMX: with functions in place of the tile instructions it goes through the gates that ask what a kernel
# computes.
. tests/tap.sh

source=tests/cpu/emulated_amx.c kernel=$work/emulated_amx.so
unset ATTEST_DISABLE # the processor is asked, and what it has is what the kernel gets
if ! grep -q avx512_bf16 /proc/cpuinfo 2> /dev/null || ! grep -q avx512_vbmi /proc/cpuinfo; then
    echo "1..0 # SKIP there is no AVX512-BF16 or no AVX512-VBMI here"
    exit 0
fi
# Built here and not by the build gate, whose -O3 takes longer than all the rest.
# shellcheck disable=SC2046
check "build the AMX kernel with emulated tiles" "$CC" -std=c11 -D_GNU_SOURCE -DATTEST_STANDALONE -Iinclude -O1 -fPIC -shared -fvisibility=hidden \
    $(sed -n 's/^ \* attest-flags: //p' $source) $source -o "$kernel" -lm
# The build gate rejects it: the tiles, which the processor keeps, are thread-local storage here. The proof goes on all the same.
gates='oracle determinism correctness'
check_exit 1 "attest prove what it computes" \
    "$BUILD/attest" prove "$kernel" --keep-going --only "build,$(echo "$gates" | tr ' ' ,)" --state "$work/state" --policy cover_rows=150,large_rounds=0
for gate in $gates; do
    cat "$work/out" "$work/err" > "$work/log"
    grep -q "^  $gate  *PASS" "$work/log"
    result $? "$gate: PASS"
done
finish
