#!/bin/sh
# Everything that needs an NVIDIA GPU, on a machine that has one: tests, proofs, planted bugs, and attest beside PyTorch.
#
#     BUILD=build bench/gpu.sh [--quick] [--record] [--kernel PATTERN] [STEP ...]
#
# Steps, all of them and in this order unless some are named:
#     info       what GPU there is, and what attest thinks of it
#     test       the tests of the CUDA backend
#     prove      every CUDA kernel of the library through the gates; --record appends the proofs to evidence/
#     selftest   the planted bugs in CUDA, each of which must fail the gate that is meant for it
#     host       what a plan and a run cost the program: see bench/host_cost.c
#     peers      times, ratios and errors: see bench/gpu_peers.py
#
# --quick leaves prove and selftest out, and times some shapes only: about a minute. --kernel is for prove and for peers.
# What a step prints also goes to $OUT/STEP.txt; OUT is $BUILD/gpu unless given. peers writes its JSON to bench/results/, with --quick to
# $OUT/peers.json; what it and --record change in the tree is copied to $OUT too. Nothing is built here: run `make all tests` first, on any
# machine that has nvcc, and copy the tree.
set -u
cd "$(dirname "$0")/.." || exit 4
BUILD=${BUILD:-build}
OUT=${OUT:-$BUILD/gpu}
export BUILD

quick= record= kernel= steps=
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=--quick ;;
    --record) record=--record ;;
    --kernel) shift && kernel=${1:?--kernel needs a pattern} ;;
    info | test | prove | selftest | host | peers) steps="$steps $1" ;;
    *) sed -n '2,18s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
    shift
done
if [ -z "$steps" ]; then
    [ -n "$quick" ] && steps="info test host peers" || steps="info test prove selftest host peers"
fi

[ -x "$BUILD/attest" ] || { echo "bench/gpu.sh: there is no $BUILD/attest; run make first" >&2; exit 2; }
mkdir -p "$OUT" || exit 4

step() {
    case $1 in
    info) "$BUILD/attest" info | awk '{print} /device cuda:0/ {found = 1} END {exit found ? 0 : 3}' ;;
    test) sh tests/cuda_backend.t | awk '{print} /^not ok/ {failed = 1} END {exit failed}' ;;
    prove)
        "$BUILD/attest" prove "${kernel:-cuda_*}" $record --state "$OUT/proofs"
        proven=$?
        [ -z "$record" ] || cp -R evidence "$OUT/"
        return $proven
        ;;
    selftest) "$BUILD/attest" selftest 'cuda/*' ;;
    host) "$BUILD/bench/host_cost" ;;
    peers)
        if [ -n "$quick$kernel" ]; then
            python3 bench/gpu_peers.py --library "$BUILD/libattest.so" $quick ${kernel:+--kernel "$kernel"} --out "$OUT/peers.json"
        else
            python3 bench/gpu_peers.py --library "$BUILD/libattest.so" && cp bench/results/nvidia-*.json "$OUT/"
        fi
        ;;
    esac
}

worst=0
for name in $steps; do
    echo "==== $name"
    began=$(date +%s)
    { step "$name"; echo $? > "$OUT/status"; } 2>&1 | tee "$OUT/$name.txt"
    status=$(cat "$OUT/status")
    rm -f "$OUT/status"
    [ "$status" = 0 ] && word=PASS || word="FAIL, exit status $status"
    echo "==== $name: $word, $(($(date +%s) - began)) s"
    summary="${summary:-}$(printf '%-10s%s' "$name" "$word")
"
    [ "$status" -gt "$worst" ] && worst=$status
    [ "$name$status" = info0 ] || [ "$name" != info ] || break # without a GPU nothing else would work
done
printf '\n%s' "$summary"
exit "$worst"
