#!/bin/sh
# Library and tests under AddressSanitizer and UndefinedBehaviorSanitizer: any report ends the program with an error.
. tests/tap.sh

tests='convert problem tensors errors merge kernels exhaustive random relations threads'
fuzzers='problem api npy'

out=$BUILD/asan
programs=$(for test in $tests determinism values; do echo "$out/tests/test_$test"; done; for fuzzer in $fuzzers; do echo "$out/tests/fuzz_$fuzzer"; done)
# Sanitizers look when code runs: kernels that this machine cannot run are compiled without them, which is sooner.
absent=$("$BUILD/attest" list | awk '$1 ~ /^cpu_fwd_/ && $3 == "no" { sub(/.*_/, "", $1); print $1 }' | sort -u | tr '\n' ' ')
# shellcheck disable=SC2086
check "build with -fsanitize=address,undefined" env ATTEST_PLAIN_KERNELS="$absent" make -j2 NVCC= BUILD="$out" CC='sh tests/cc_light.sh gcc' WERROR= \
    CFLAGS='-O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer' $programs
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1
for test in $tests; do
    check "test_$test --quick" "$out/tests/test_$test" --quick
done
for fuzzer in $fuzzers; do
    check "fuzz_$fuzzer, corpus and changes of it" "$out/tests/fuzz_$fuzzer" --mutate 200 "tests/corpus/$fuzzer"
done
check "test_determinism --quick, threads and runs" "$out/tests/test_determinism" --quick --only 'threads and runs'

# These run lines of the library that the tests above run too, on other numbers (gcov: but for a bare return in schedule.c). Whether the
# address of a local variable outlives its function does not depend on numbers, and looking for it would double their time.
ASAN_OPTIONS=detect_stack_use_after_return=0:strict_string_checks=1
check "test_determinism --quick, one sequence" "$out/tests/test_determinism" --quick --only 'one sequence in any layout'
check "test_values --quick" "$out/tests/test_values" --quick
finish
