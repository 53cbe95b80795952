#!/bin/sh
# What never ran is not proven: clauses of a source that no problem reaches make the correctness gate INCONCLUSIVE, and are named.
. tests/tap.sh
need addr2line objdump

attest=$BUILD/attest
cp templates/kernel_cpu.c "$work/kernel.c"
echo fwd:f32:b2:hq4:hkv2:sq70:skv90:d40:causal:lse > "$work/usual.txt"
echo fwd:f32:b7:h1:sq45:skv613:d33:lse > "$work/rare.txt"

# gate LINES [SUITE]: the correctness gate of the kernel of the template with these lines before LSE is written.
gate() {
    sed "s/^    if (block->row\[r\].lse)/$1\n&/" "$work/kernel.c" > "$work/mine.c"
    ! cmp -s "$work/kernel.c" "$work/mine.c" || return 1
    "$attest" prove "$work/mine.c" --only build,correctness --seed 3 --policy cover_rows=200,constant_problems=100,large_rounds=0 \
        --suite "$work/${2:-usual}.txt" --timed "$work/usual.txt" --state "$work/state" > "$work/log" 2>&1
    cat "$work/log"
}
says() {
    expected=$1
    shift
    gate "$@" | grep -q "^  correctness  *$expected"
}

# Each of these sizes is met, and all of them at once are not.
rare='p->batch == 7 \&\& p->seq_q % 97 == 45 \&\& p->seq_kv % 911 == 613 \&\& p->dim == 33'
says PASS "    if (attest_has(p, ATTEST_BIAS))\\n        ending.lse += 1;"
result $? "every clause of the template runs, and one that is for problems that it refuses does not count"
says "INCONCLUSIVE.*3 clauses of its source.*mine.c:[0-9]* 'p->dim == 33)', .*mine.c:[0-9]* 'ending.lse += 1;'" \
    "    if ($rare)\\n        ending.lse += 1;"
result $? "parts of a condition and a statement that never run are named"
says FAIL "    if ($rare)\\n        ending.lse += 1;" rare
result $? "a problem in which it runs shows that it is wrong"
says PASS "    if ($rare)\\n        ending.lse -= 0;" rare
result $? "or right"
check "the rewritten text has a line for each clause" "$BUILD/tests/tool/test_coverage"
finish
