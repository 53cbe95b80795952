#!/bin/sh
# Library and tests under AddressSanitizer and UndefinedBehaviorSanitizer: any report ends the program with an error.
. tests/tap.sh

out=$BUILD/asan
check "build with -fsanitize=address,undefined" make -j2 NVCC= BUILD="$out" CC='sh tests/cc_light.sh gcc' WERROR= tests \
    CFLAGS='-O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer'
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1
for test in convert problem errors merge kernels exhaustive random values relations determinism threads; do
    check "test_$test --quick" "$out/tests/test_$test" --quick
done
for fuzzer in problem api npy; do
    check "fuzz_$fuzzer, corpus and changes of it" "$out/tests/fuzz_$fuzzer" --mutate 200 "tests/corpus/$fuzzer"
done
finish
