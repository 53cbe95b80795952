#!/bin/sh
# The problems that the correctness gate draws by itself cover what they should, and find what is wrong.
. tests/tap.sh

"$BUILD/tests/tool/test_covering" --help | sed -n 's/^  //p' > "$work/tests"
[ -s "$work/tests" ]
result $? "the program lists its tests"
while read -r test <&3; do
    check "$test" "$BUILD/tests/tool/test_covering" --only "$test"
done 3< "$work/tests"
finish
