# TAP for the shell tests: `. tests/tap.sh` at the start, `finish` at the end. Run from the root of the repository.

BUILD=${BUILD:-build}
CC=${CC:-gcc}
number=0
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# result STATUS NAME: one line of TAP; a failure shows the end of $work/log and how to repeat the test.
result() {
    number=$((number + 1))
    if [ "$1" = 0 ]; then
        echo "ok $number - $2"
    else
        failed=1
        echo "not ok $number - $2"
        [ ! -s "$work/log" ] || tail -n 25 "$work/log" | sed 's/^/# /'
        echo "# reproduce: BUILD=$BUILD CC='$CC' sh $0"
    fi
    : > "$work/log"
}

# check NAME COMMAND...: the command succeeds.
check() {
    name=$1
    shift
    status=0
    "$@" > "$work/log" 2>&1 || status=1
    result $status "$name"
}

# check_exit CODE NAME COMMAND...: the command ends with exactly this status.
check_exit() {
    want=$1
    name=$2
    shift 2
    got=0
    "$@" > "$work/out" 2> "$work/err" < /dev/null || got=$?
    { echo "exit status $got, not $want; stderr:"; cat "$work/err"; echo "stdout:"; cat "$work/out"; } > "$work/log"
    [ "$got" = "$want" ]
    result $? "$name"
}

# need TOOL...: without one of these the test is skipped, and in CI it fails, because CI has to have them.
need() {
    for tool in "$@"; do
        command -v "$tool" > /dev/null && continue
        if [ "${CI:-}" = true ]; then
            result 1 "$tool is not installed: scripts/deps.sh test"
            finish
        fi
        echo "1..0 # SKIP $tool is not installed: scripts/deps.sh test"
        exit 0
    done
}

finish() {
    echo "1..$number"
    exit $failed
}
