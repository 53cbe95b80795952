#!/bin/sh
# The AMX kernel where there is no AMX: with functions in place of the tile instructions it goes through the gates that ask what a kernel
# computes. Which instructions it has, and how fast it is, says nothing here.
. tests/tap.sh

if grep -q avx512_bf16 /proc/cpuinfo 2> /dev/null && grep -q avx512_vbmi /proc/cpuinfo; then
    gates='build oracle memory determinism correctness'
    check_exit 3 "attest prove tests/cpu/emulated_amx.c, without speed and profile" \
        "$BUILD/attest" prove tests/cpu/emulated_amx.c --only "$(echo "$gates" | tr ' ' ,)" --state "$work/state"
    for gate in $gates; do
        cat "$work/out" "$work/err" > "$work/log"
        grep -q "^  $gate  *PASS" "$work/log"
        result $? "$gate: PASS"
    done
else
    number=$((number + 1))
    echo "ok $number - the AMX kernel with emulated tiles # SKIP there is no AVX512-BF16 or no AVX512-VBMI here"
fi
finish
