#!/bin/sh
# The fuzzers: the committed corpus replayed in the ordinary build, then a few seconds of libFuzzer under sanitizers (minutes with
# ATTEST_TEST_LONG). What libFuzzer finds is left in the build folder, and its path is printed.
. tests/tap.sh
need clang-14

for fuzzer in problem api npy; do
    check "fuzz_$fuzzer replays its corpus" "$BUILD/tests/fuzz_$fuzzer" --mutate 500 "tests/corpus/$fuzzer"
done

seconds=4
[ "${ATTEST_TEST_LONG:-0}" = 0 ] || seconds=300
out=$BUILD/fuzz
flags='-O1 -g1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all'
check "build the library for libFuzzer" env ATTEST_PLAIN_KERNELS=all make -j2 NVCC= BUILD="$out" CC='sh tests/cc_light.sh clang-14' WERROR= CFLAGS="$flags" "$out/libattest.a"
for fuzzer in problem api npy; do
    check "build fuzz_$fuzzer with libFuzzer" clang-14 -std=c11 -D_GNU_SOURCE -DATTEST_LIBFUZZER -Iinclude -Itool -O1 -g1 \
        -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all "tests/fuzz_$fuzzer.c" "$out/libattest.a" -fopenmp -lm -o "$out/fuzz_$fuzzer"
    mkdir -p "$out/corpus-$fuzzer" "$out/found-$fuzzer"
    check "fuzz_$fuzzer for $seconds s; findings are in $out/found-$fuzzer" env OMP_NUM_THREADS=1 "$out/fuzz_$fuzzer" -max_total_time=$seconds \
        -max_len=2000 -timeout=20 -rss_limit_mb=2000 -artifact_prefix="$out/found-$fuzzer/" "$out/corpus-$fuzzer" "tests/corpus/$fuzzer"
done
finish
