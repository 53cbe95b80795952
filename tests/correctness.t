#!/bin/sh
# The correctness gate rejects what is wrong, with the right sentence, and nothing else.
. tests/tap.sh

flags='-std=c11 -D_GNU_SOURCE -O2 -shared -fPIC -fvisibility=hidden -Iinclude -Imutants'
check "build the kernel with offsets in 32 bits" $CC $flags tests/tool/kernels/offset_in_int.c -o "$work/offset_in_int.so" -lm
# Every tensor, and every dimension of some.
for wrap in q_2 q_0 k_0 k_2 v_1 v_2 o_0 o_1 lse_1 lse_2 bias_0 bias_2 bias_key_3; do
    $CC $flags -O1 -DTENSOR="${wrap%_*}" -DDIM="${wrap##*_}" tests/tool/kernels/offset_wraps.c -o "$work/wraps_$wrap.so" -lm || break
done
[ -e "$work/wraps_bias_key_3.so" ]
result $? "build the kernels whose offsets wrap"
export ATTEST_TEST_KERNELS="$work"
"$BUILD/tests/tool/test_correctness" --help | sed -n 's/^  //p' > "$work/tests"
[ -s "$work/tests" ]
result $? "the program lists its tests"
while read -r test <&3; do
    check "$test" "$BUILD/tests/tool/test_correctness" --only "$test"
done 3< "$work/tests"
finish
