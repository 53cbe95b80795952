#!/bin/sh
# The command line: exit codes, help of every command, the manual page, JSON, suites, and that errors say what to type instead.
. tests/tap.sh
need python3
attest=$BUILD/attest
commands=$($attest help | sed -n 's/^ *\(info\|list\|explain\|run\|check\|bench\|help\) .*/\1/p' | sort -u)

[ "$(echo "$commands" | wc -l)" = 7 ]
result $? "help lists info, list, explain, run, check, bench and help"
for command in $commands; do
    check_exit 0 "attest help $command" "$attest" help "$command"
    grep -q "attest $command" "$work/out"
    result $? "it shows how to call it"
    check_exit 0 "attest $command --help" "$attest" "$command" --help
done
"$attest" help --man > "$work/man" && diff docs/attest.1 "$work/man" > "$work/log"
result $? "docs/attest.1 is what attest help --man prints"
for command in $commands; do
    grep -q "$command" docs/attest.1
    result $? "the manual page has $command"
done

p=fwd:f32:b1:h2:s17:d16:causal:lse
check_exit 0 "info" "$attest" info
check_exit 0 "list" "$attest" list
check_exit 0 "explain" "$attest" explain $p
grep -qE 'chosen, (proven on .+|not proven yet)$' "$work/out"
result $? "explain says where the chosen kernel was proven"
check_exit 0 "run" "$attest" run $p
check_exit 0 "check" "$attest" check $p fwd:bf16:hq4:hkv2:sq3:skv40:d64
check_exit 0 "check with every kernel" "$attest" check $p --kernel '*' --threads 2 --seed 7
check_exit 0 "bench" "$attest" bench $p --seconds 0.01
printf '# a suite\n%s\n\nfwd:f16:h1:s9:d8 # and a comment\n' $p > "$work/suite"
check_exit 0 "check --suite" "$attest" check --suite "$work/suite"
check_exit 0 "run --device cpu" "$attest" run $p --device cpu
check_exit 0 "run --device auto" "$attest" run $p --device auto
check_exit 2 "run --device nonsense" "$attest" run $p --device nonsense
if "$attest" info | grep -q '^gpu:.*device cuda'; then
    check_exit 0 "run --device cuda" "$attest" run $p --device cuda
else
    check_exit 3 "run --device cuda where there is no GPU" "$attest" run $p --device cuda
    check_exit 3 "ATTEST_DEVICE=cuda says the same" env ATTEST_DEVICE=cuda "$attest" check $p
fi
check_exit 0 "kernels for the CPU run there" env ATTEST_DEVICE= "$attest" check $p --kernel 'cpu_*'
for suite in suites/*.txt; do
    check_exit 0 "explain --suite $suite" "$attest" explain --suite "$suite"
done

# json NAME COMMAND...: one valid JSON object on stdout.
json() {
    what=$1
    shift
    "$@" < /dev/null > "$work/out" 2> "$work/log" && python3 -m json.tool < "$work/out" > /dev/null 2>> "$work/log"
    result $? "$what prints JSON"
}
for command in info list; do
    json "$command --json" "$attest" $command --json
done
for command in explain run check; do
    json "$command --json" "$attest" $command $p --json
done
json "bench --json" "$attest" bench $p --seconds 0.01 --json

# bad CODE WORD ARGUMENTS...: this status, nothing but JSON on stdout, and the word in what stderr says.
bad() {
    code=$1
    word=$2
    shift 2
    check_exit "$code" "exit $code: attest $*" "$attest" "$@"
    cat "$work/err" > "$work/log"
    grep -q -e "$word" "$work/err" && [ ! -s "$work/out" ]
    result $? "stderr names '$word'"
}
check_exit 2 "exit 2 without a command" "$attest"
bad 2 chekc chekc $p
bad 2 'did you mean --threads' check $p --treads 1
bad 2 seed check $p --seed x
bad 2 threads check $p --threads 0
bad 2 threads check $p --threads 100000
bad 2 casual explain fwd:f32:h1:s1:d1:casual
bad 2 heads explain fwd:f32:hq3:hkv2:s1:d1
bad 2 dim run fwd:f32:h1:s1:d513
bad 2 no_such_kernel run $p --kernel no_such_kernel
bad 2 problem check
bad 2 missing.npy run $p --q "$work/missing.npy"
bad 2 missing.txt check --suite "$work/missing.txt"
bad 2 bias run $p --bias "$work/bias.npy"
bad 2 bogus help bogus
bad 2 no/such/folder run $p --out "$work/no/such/folder/o.npy"
echo 'fwd:f32:h1:s1' > "$work/bad"
bad 2 "$work/bad:1" check --suite "$work/bad"
ATTEST_DISABLE=avx2 "$attest" run $p --kernel '*avx2' > "$work/out" 2> "$work/err"
[ $? = 3 ] && grep -q avx2 "$work/err"
result $? "exit 3 when the kernel asked for is not available, naming what it needs"
check_exit 3 "exit 3 when the kernel asked for does not take the dtype" "$attest" run $p --kernel 'cpu_fwd_bf16_scalar'
"$attest" list > /dev/full 2> "$work/err"
[ $? = 4 ]
result $? "exit 4 when the output cannot be written"

"$attest" run $p --seed 3 > "$work/a" && "$attest" run $p --seed 3 --threads 2 > "$work/b"
[ "$(grep -i digest "$work/a")" = "$(grep -i digest "$work/b")" ] && [ -s "$work/a" ]
result $? "the same seed gives the same bits with other threads"
"$attest" run $p --seed 4 > "$work/b"
[ "$(grep -i digest "$work/a")" != "$(grep -i digest "$work/b")" ]
result $? "another seed gives other bits"
finish
