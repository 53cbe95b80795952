#!/bin/sh
# The correctness gate rejects what is wrong, with the right sentence, and nothing else.
. tests/tap.sh

flags='-std=c11 -D_GNU_SOURCE -O2 -shared -fPIC -fvisibility=hidden -Iinclude -Imutants'
check "build the kernel with offsets in 32 bits" $CC $flags tests/tool/kernels/offset_in_int.c -o "$work/offset_in_int.so" -lm
export ATTEST_TEST_KERNELS="$work"
"$BUILD/tests/tool/test_correctness" --help | sed -n 's/^  //p' > "$work/tests"
[ -s "$work/tests" ]
result $? "the program lists its tests"
while read -r test <&3; do
    check "$test" "$BUILD/tests/tool/test_correctness" --only "$test"
done 3< "$work/tests"
finish
