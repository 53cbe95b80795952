#!/bin/sh
# One kernel against another: `attest bench --vs` and the speed gate, which share their code. Verdicts are tested on a simulated
# clock, where the true ratio is known; what the kernels compute is real, and cheats have to be caught whatever the clock says.
. tests/tap.sh

attest=$BUILD/attest
good=mutants/harmless_base.c
other=cpu_fwd_f32_scalar
problem=fwd:f32:b1:h2:s60:d32

# versus CODE PATTERN NAME ARGUMENT...: bench ends with this status and says something that matches. While it says $not_yet, if that is
# set, it is asked again, three times at most.
not_yet=
versus() {
    want=$1
    pattern=$2
    name=$3
    shift 3
    for attempt in 1 2 3; do
        got=0
        "$attest" bench "$@" > "$work/log" 2>&1 < /dev/null || got=$?
        [ -n "$not_yet" ] && grep -q "$not_yet" "$work/log" || break
    done
    echo "exit status $got, wanted $want; wanted to see: $pattern" >> "$work/log"
    [ "$got" = "$want" ] && sed '$d' "$work/log" | grep -Eq "$pattern"
    result $? "$name"
}

versus 0 'sentence:  .*as fast as cpu_fwd_f32_scalar \(95 % interval 1\.' "1 % faster is FASTER" \
    $good --vs $other $problem --simulate-clock a=0.99
versus 0 'verdict:  *SAME' "the same is SAME" $good --vs $other $problem --simulate-clock a=1
versus 0 'sentence:  .*x slower than' "1 % slower is SLOWER" $good --vs $other $problem --simulate-clock a=1.01
versus 3 'quieten the machine' "a gain at the limit is INCONCLUSIVE" $good --vs $other $problem --simulate-clock a=0.995
versus 0 'SLOWER .* 6$' "a hopeless kernel is not measured to the end" $good --vs $other $problem --simulate-clock a=10
versus 1 'faster than physics' "faster than physics is a failure" $good --vs $other $problem --simulate-clock a=0.0001
versus 0 'SAME|the same binary' "one binary under two names is SAME" $good --vs $good $problem --simulate-clock a=0.5
versus 3 'no problem that both take' "nothing that both take" $good --vs $other fwd:bf16:b1:h2:s60:d32 --simulate-clock a=0.5

# Cheats that only show when a kernel is called again and again. One that keeps K by its address is given away by the neighbours of the
# problem, which are checked first, if one of them happens to lie at the same address: one time in 25.
not_yet='wrong next door to '
for cheat in memo_by_pointer memo_by_content one_call_for_many k_cache_kept; do
    versus 1 'wrong while it was timed .* (must begin with|should be)' "$cheat is caught while it is timed" \
        mutants/$cheat.c --vs $other $problem --simulate-clock a=0.5
done
not_yet=
cat > "$work/exact_here.c" << END
#define ADJUST_ROW(task, row, r) ((row)->hi -= (task)->problem->seq_kv != 60 && (row)->hi == (task)->kv_count)
#include "$PWD/mutants/base.h"
END
versus 1 'wrong next door to .*skv(59|61)' "exact only on checked shapes is caught next door" \
    "$work/exact_here.c" --vs $other $problem --simulate-clock a=0.5
versus 1 'wrong' "stale output is caught" mutants/stale_output.c --vs $other $problem --simulate-clock a=0.5
versus 1 'which the sandbox does not allow' "work on another thread is caught" mutants/work_later.c --vs $other $problem --simulate-clock a=0.5
versus 1 'bound' "lower precision inside is caught" mutants/o_sum_in_bf16.c --vs $other $problem --simulate-clock a=0.5
versus 1 'does not load|did not|exit' "a kernel that leaves is a failure" mutants/exit_zero.c --vs $other $problem --simulate-clock a=0.5
versus 3 'the opponent .* failed|is wrong' "a wrong opponent says nothing about the kernel" \
    $good --vs mutants/stale_output.c $problem --simulate-clock a=0.5

# Usage.
versus 2 'did you mean cpu_fwd_f32_scalar' "a kernel that is not there" $good --vs cpu_fwd_f32_scala $problem
versus 2 'no kernel to compare' "no kernel" $problem --vs $other
versus 2 'and got two' "two kernels" $good mutants/stale_output.c --vs $other $problem
versus 2 'bench KERNEL --vs KERNEL' "a kernel without --vs" $other
versus 2 'a simulated clock has no' "a wrong model of a clock" $good --vs $other $problem --simulate-clock c=1
versus 2 'needs --vs' "a simulated clock without --vs" $problem --simulate-clock a=1
versus 2 'cannot be read' "a file that is not there" missing.c --vs $other $problem

# A real clock, whatever it says, and every sample in the JSON.
got=0
"$attest" bench $good --vs $other fwd:f32:b1:h2:s64:d32 --json --threads 1 > "$work/real.json" 2> "$work/log" || got=$?
/usr/bin/python3 - "$work/real.json" $got >> "$work/log" 2>&1 << 'END'
import json, sys
found, status = json.load(open(sys.argv[1])), int(sys.argv[2])
assert status == (3 if found["verdict"] == "INCONCLUSIVE" else 0), (status, found["verdict"])
assert found["clock"] == "real"
(shape,), (samples,) = found["shapes"], found["samples"]["shapes"]
assert shape["low"] <= shape["ratio"] <= shape["high"], shape
assert shape["floor_s"] < shape["median_a_s"] and not shape["below_floor"], shape
assert 2 <= shape["judged"] <= 8 and shape["neighbours"] == 4, shape
assert 6 <= len(samples["blocks"]) == len(samples["self"]) == shape["blocks"], shape
assert all(len(block["seconds"]) == 8 and min(block["seconds"]) > 0 for block in samples["blocks"] + samples["self"])
assert {block["process"] for block in samples["blocks"]} == {0, 1}
assert {block["order"] for block in samples["blocks"] + samples["self"]} == {"ABBAABBA", "BAABBAAB"}
END
result $? "a real clock: samples, floor, processes and order are on record"

# The gate.
# gate VERDICT PATTERN NAME ARGUMENT...: prove --only speed has this verdict and a sentence that matches; $work/gate.json is the gate.
gate() {
    want=$1
    pattern=$2
    name=$3
    shift 3
    "$attest" prove "$@" --only speed --timed mutants/timed.txt --json --state "$work/state" --evidence "$work/evidence" \
        > "$work/prove.json" 2> "$work/log"
    /usr/bin/python3 - "$work/prove.json" "$want" "$pattern" > "$work/gate.json" 2>> "$work/log" << 'END'
import json, re, sys
def gates(value):
    if isinstance(value, dict):
        if value.get("gate") == "speed":
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from gates(item)
gate = next(gates(json.load(open(sys.argv[1]))))
print(json.dumps(gate))
assert gate["verdict"] == sys.argv[2], gate
assert re.search(sys.argv[3], gate["sentence"]), gate["sentence"]
END
    result $? "$name"
}

gate PASS '^(1\.99|2\.00). x as fast as cpu_fwd_f32_scalar' "the gate passes what is FASTER" $good --vs $other --simulate-clock a=0.5
grep -q '"cheat": false' "$work/gate.json" && grep -q '"samples": "[0-9a-f]' "$work/gate.json"
result $? "its samples are an artefact"
gate FAIL '^proven speed: .* x slower than' "it fails what is SLOWER" $good --vs $other --simulate-clock a=1.5
gate FAIL '^proven speed: as fast as' "it fails what is the SAME" $good --vs $other --simulate-clock a=1
gate INCONCLUSIVE 'quieten' "it is inconclusive where there is too much noise" $good --vs $other --simulate-clock a=0.995,noise=0.04
gate FAIL 'faster than physics' "it fails what is faster than physics" $good --vs $other --simulate-clock a=0.0001
grep -q '"cheat": true' "$work/gate.json"
result $? "and calls it a cheat"
# The build gate rejects it for its state; the speed gate has to find it out by itself.
gate FAIL 'wrong while it was timed' "it fails a memoised output" mutants/memo_by_content.c --keep-going --vs $other --simulate-clock a=0.5
grep -q '"cheat": true' "$work/gate.json"
result $? "and calls it a cheat, too"
# prove --vs builds its opponent as bench does.
"$attest" new rival --cpu --out "$work" > "$work/log" 2>&1
echo "$problem" > "$work/timed"
"$attest" prove $good --only speed --vs "$work/rival.c" --timed "$work/timed" --simulate-clock a=0.9 --state "$work/state" > "$work/log" 2>&1
grep -q 'PASS.*as fast as rival' "$work/log"
result $? "prove --vs FILE.c builds the opponent"
"$attest" prove $good --only speed --vs cpu_fwd_f32_abacus --timed "$work/timed" --state "$work/state" > "$work/log" 2>&1
grep -q 'no kernel of this build, and no file' "$work/log"
result $? "prove --vs says if there is no such opponent"
finish
