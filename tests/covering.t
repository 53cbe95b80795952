#!/bin/sh
# The problems that the correctness gate draws by itself cover what they should, and find what is wrong.
. tests/tap.sh

for program in test_covering test_covering_bugs; do
    "$BUILD/tests/tool/$program" --help | sed -n 's/^  //p' > "$work/tests"
    [ -s "$work/tests" ]
    result $? "$program lists its tests"
    while read -r test <&3; do
        check "$test" "$BUILD/tests/tool/$program" --only "$test"
    done 3< "$work/tests"
done

# A key that place and bias hide together, and neither of them alone, does not reach the other rows, even as NaN.
for dtype in f32 f16 bf16; do
    for rows in 3 60; do
        check "NaN behind place and bias together stays there: $dtype, $rows rows" "$BUILD/attest" check --kernel 'cpu_*' --seed 4 \
            --contents bias=rows-hidden,special=nan-behind-bias "fwd:$dtype:b20:h2:sq$rows:skv65:d16:wl=0:wr=0:bias:lse"
    done
done
finish
