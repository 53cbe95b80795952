#!/bin/sh
# The evidence of this repository: it is in order, and every kernel of the library is proven by a record that fits its sources.
. tests/tap.sh
check_exit 0 "attest verify" "$BUILD/attest" verify
cat "$work/out" "$work/err" > "$work/log"
grep -q 'verdict: *PASS' "$work/log"
result $? "it says PASS"
finish
