#!/bin/sh
# The statistics of the speed gate. First the known values are computed again by SciPy, then the C tests use them.
. tests/tap.sh

if /usr/bin/python3 -c 'import scipy' 2> /dev/null; then
    check "SciPy finds the recorded values again" /usr/bin/python3 tests/statistics_values.py tests/tool/statistics_values.h
    sed 's/, 0\.00811280436204, /, 0.00822, /' tests/tool/statistics_values.h > "$work/values.h"
    check_exit 1 "and would notice a wrong one" /usr/bin/python3 tests/statistics_values.py "$work/values.h"
elif [ "${CI:-}" = true ]; then
    result 1 "python3-scipy is not installed: scripts/deps.sh test"
else
    number=$((number + 1))
    echo "ok $number - SciPy finds the recorded values again # SKIP python3-scipy is not installed: scripts/deps.sh test"
fi

status=0
"$BUILD/tests/tool/test_statistics" > "$work/out" 2>&1 || status=1
grep '^#' "$work/out"
cp "$work/out" "$work/log"
result $status "test_statistics"
finish
