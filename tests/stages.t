#!/bin/sh
# The stage oracle: planted mistakes and right kernels in one process, then the command and the gate on real files.
. tests/tap.sh

check "planted mistakes are named, right kernels are found right" "$BUILD/tests/tool/test_stages"

problem=fwd:f32:b1:h2:sq20:skv70:d24:lse
check_exit 0 "oracle: a kernel of the library is right" "$BUILD/attest" oracle cpu_fwd_f32_scalar "$problem"
grep -q 'every stage is right' "$work/out"
result $? "oracle: it says so"

check_exit 1 "oracle: a source with the scale dropped is wrong" "$BUILD/attest" oracle mutants/scale_dropped.c "$problem" --out "$work/arrays"
grep -q 'first wrong stage is S: .*the scale is dropped' "$work/out" && grep -q '^S  *wrong' "$work/out" &&
    grep -q '^mask  *not judged' "$work/out"
result $? "oracle: it names the stage and the cause"
[ -s "$work/arrays/expected_S.npy" ] && [ -s "$work/arrays/found_S.npy" ]
result $? "oracle: it leaves the arrays"

check_exit 1 "oracle: JSON" "$BUILD/attest" oracle mutants/o_never_rescaled.c "$problem" --json
grep -q '"rescale"' "$work/out" && grep -q '"tile": 32' "$work/out"
result $? "oracle: JSON has the stage and the tile"

check_exit 2 "oracle: no problem" "$BUILD/attest" oracle cpu_fwd_f32_scalar
check_exit 2 "oracle: a problem that does not parse" "$BUILD/attest" oracle cpu_fwd_f32_scalar fwd:f32:zz
check_exit 2 "oracle: a file that is not there" "$BUILD/attest" oracle no_such_file.c "$problem"
check_exit 3 "oracle: a problem that the kernel does not take" "$BUILD/attest" oracle cpu_fwd_f32_scalar fwd:f16:b1:h1:s16:d8

check_exit 1 "gate: a mutant is rejected" "$BUILD/attest" prove mutants/causal_off_by_one.c --only oracle --state "$work/state"
grep -q 'oracle  *FAIL .*first wrong stage is mask: causal off by one' "$work/out"
result $? "gate: with its diagnosis"
finish
