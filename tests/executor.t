#!/bin/sh
# Kernels that misbehave in a worker process: what the executor says of each, and that nothing is left behind.
. tests/tap.sh

flags='-std=c11 -D_GNU_SOURCE -O1 -shared -fPIC -fvisibility=hidden -Iinclude'
check "build the kernel that misbehaves" $CC $flags tests/tool/kernels/misbehave.c -o "$work/misbehave.so" -lm
check "and one without an entry" $CC $flags -DNO_ENTRY tests/tool/kernels/misbehave.c -o "$work/no_entry.so" -lm
export ATTEST_TEST_KERNELS="$work"
if $CC $flags -fsanitize=address,undefined tests/tool/kernels/misbehave.c -o "$work/checked.so" -lm 2> "$work/log"; then
    ATTEST_TEST_RUNTIME=$($CC -print-file-name=libasan.so)
    export ATTEST_TEST_RUNTIME
fi
for test in misdeeds gaps images facts printed holdings files numbers slots orphans stalls sanitizers; do
    check "test_executor: $test" "$BUILD/tests/tool/test_executor" --only $test
done
for test in determinism memory padded left_to_others; do
    check "test_gate_runs: $test" "$BUILD/tests/tool/test_gate_runs" --only $test
done

# A worker is nothing for people, and says so.
check_exit 2 "attest worker" "$BUILD/attest" worker
grep -q "not for people" "$work/err"
result $? "it says what to type instead"
finish
