#!/bin/sh
# attest evolve: whole searches. Kernels and gates are real, and the clock is simulated where a verdict depends on it. The parts, and
# the statistics of many searches, are in tests/tool/test_evolve.c.
. tests/tap.sh
need python3
attest=$BUILD/attest
problem=fwd:f32:b1:h2:s60:d32
echo $problem > "$work/suite"

status=0
"$BUILD/tests/tool/test_evolve" > "$work/out" 2>&1 || status=1
grep '^#' "$work/out"
cp "$work/out" "$work/log"
result $status "test_evolve"

# A kernel that is quickly proven, and refuses what would only take time.
refuses='ATTEST_CAUSAL | ATTEST_BOTTOM_RIGHT | ATTEST_WINDOW_LEFT | ATTEST_WINDOW_RIGHT | ATTEST_SOFTCAP | ATTEST_ALIBI'
refuses="($refuses | ATTEST_BIAS | ATTEST_SINK | ATTEST_PAGED | ATTEST_VARLEN_Q | ATTEST_VARLEN_KV | ATTEST_KV_LENGTHS)"
# kernel FILE BASE [LINE...]: a kernel with these lines that includes a file of mutants/.
kernel() {
    file=$1
    base=$2
    shift 2
    {
        printf '/*\n * attest-space: TILE_KEYS 8 16 32 64\n * attest-space: ROWS_WANTED 16 32 64\n */\n'
        printf '#define DTYPES ATTEST_TAKES_F32\n#define REFUSES %s\n' "$refuses"
        printf '#define TILE_KEYS 32\n#define ROWS_WANTED 64\n'
        for line in "$@"; do echo "$line"; done
        echo "#include \"$PWD/mutants/$base\""
    } > "$file"
}
kernel "$work/start.c" base.h
search="$attest evolve $problem --kernel $work/start.c --suite $work/suite --threads 1"

# ---- what is asked for ----------------------------------------------------------------------------------------------------------
# asked CODE PATTERN NAME ARGUMENT...
asked() {
    want=$1
    pattern=$2
    name=$3
    shift 3
    got=0
    "$attest" evolve --state "$work/asked" "$@" > "$work/log" 2>&1 < /dev/null || got=$?
    echo "exit status $got, wanted $want; wanted to see: $pattern" >> "$work/log"
    [ "$got" = "$want" ] && sed '$d' "$work/log" | grep -Eq "$pattern"
    result $? "$name"
}
asked 2 'a problem is missing' "no problem"
asked 2 'no such|cannot be read|problem 1' "a problem that is none" fwd:f33 --kernel "$work/start.c"
asked 2 'did you mean cpu_fwd_f32_scalar' "a kernel that is not there" $problem --kernel cpu_fwd_f32_scala
asked 2 'did you mean --proposer model' "a proposer that is not there" $problem --kernel "$work/start.c" --proposer modle
asked 2 'free, insight or full' "a strategy that is not there" $problem --kernel "$work/start.c" --strategy all
asked 2 'declares no space' "a source without a space" $problem --kernel mutants/harmless_base.c
asked 2 'built image' "an image instead of a source" $problem --kernel "$BUILD/libattest.so"
asked 3 'there is no search' "no search yet" --status
asked 1 'the starting kernel is wrong.*oracle' "a start that is wrong ends the search" $problem --kernel mutants/scale_dropped.c \
    --proposer 'cat /dev/null'
asked 0 'POST-MORTEM' "and is on record" --status
ATTEST_NVCC=/no/such/nvcc asked 3 'machine with an NVIDIA GPU' "a CUDA kernel without a GPU is not searched, and it is said why" \
    fwd:f16:b1:h2:s60:d64 --kernel lib/cuda/kernels/cuda_fwd_scalar.cu --proposer 'cat /dev/null'

# ---- a champion -----------------------------------------------------------------------------------------------------------------
# The clock says that every candidate is faster. It runs beside what comes next.
same="--proposer evolution --generations 1 --population 3 --seed 7"
$search $same --simulate-clock a=0.9 --state "$work/whole" --export "$work/whole.json" --out "$work/winner.c" > "$work/whole.log" 2>&1 &
whole=$!

# ---- proposers that cheat, and worse; killed and resumed ------------------------------------------------------------------------
# Here it says that they are twice as fast: only the gates stand between a cheat and the throne.
mkdir "$work/answers"
answer() { kernel "$work/answers/$1.c" "$2"; }
answer 1 memo_by_pointer.c
kernel "$work/answers/2.c" base.h '#define ADJUST_ROW(task, row, r) ((row)->hi -= (task)->problem->seq_kv != 60 && (row)->hi == (task)->kv_count)'
answer 3 stale_output.c
{ cat "$work/start.c"; echo '/* a comment is no change */'; } > "$work/answers/4.c"
answer 5 memo_by_content.c
echo 'int this is no kernel' > "$work/answers/6.c"
echo 'sleep 60' > "$work/answers/7.sh"
echo 'head -c 2000000 /dev/zero' > "$work/answers/8.sh"
echo 'true' > "$work/answers/9.sh"
sed 's/^ \* attest-space: T/ * attest-flags: -fplugin=evil.so\n&/' "$work/start.c" > "$work/answers/10.c"
answer 11 exit_zero.c
cat > "$work/expected" << 'END'
1 REJECTED build
2 REJECTED oracle|correctness|screen
3 REJECTED build
4 DUPLICATE build
5 REJECTED build
6 REJECTED build
7 REJECTED proposal
8 REJECTED proposal
9 REJECTED proposal
10 REJECTED proposal
11 REJECTED build
END
# killed STATE CANDIDATES... -- ARGUMENT...: begins a search, kills it when it has so many candidates, and begins it again.
killed() {
    state=$1
    shift
    marks=
    while [ "$1" != -- ]; do
        marks="$marks $1"
        shift
    done
    shift
    for mark in $marks; do
        $search "$@" --state "$state" > "$work/killed.log" 2>&1 &
        process=$!
        for wait in $(seq 400); do
            sleep 0.3
            now=$("$attest" evolve --status --state "$state" 2> "$work/log" | awk '$1 == 1 { print $(NF - 2) }')
            [ "${now:-0}" -lt "$mark" ] || break
        done
        kill -9 $process
        wait $process 2> /dev/null
    done
    "$attest" evolve --status --state "$state" > "$work/log" 2>&1
    grep -q INTERRUPTED "$work/log"
    result $? "a search that was killed is INTERRUPTED"
}
cheats="--proposer-seconds 6 --generations 1 --population 11 --simulate-clock a=0.5 --seed 1"
propose="python3 tests/data/evolve/proposer.py $work/answers"
killed "$work/cheats" 2 6 -- --proposer "$propose" $cheats
$search --proposer "$propose" $cheats --state "$work/cheats" --json > "$work/cheats.json" 2> "$work/log"
python3 - "$work" >> "$work/log" 2>&1 << 'END'
import json, re, sqlite3, sys
found = json.load(open(f"{sys.argv[1]}/cheats.json"))
assert found["result"]["verdict"] == "POST-MORTEM", found["result"]
assert found["result"]["champion"] == 0 and found["result"]["challenges"] == 0
rows = {int(row.split()[0]): row.split()[1:] for row in open(f"{sys.argv[1]}/expected")}
for trial in found["trials"][1:]:
    state, stage = rows[trial["number"]]
    assert trial["state"] == state and re.fullmatch(stage, trial["stage"]), (trial["number"], trial["state"], trial["stage"], trial["sentence"])
assert [trial["number"] for trial in found["trials"]] == list(range(12))
base = sqlite3.connect(f"{sys.argv[1]}/cheats/runs.db")
assert base.execute("select count(*) from searches").fetchone() == (1,)
assert base.execute("select count(*) from trials").fetchone() == (12,)
END
result $? "cheats, rubbish, a hang and a twin are not promoted and cost a turn each; after two kills nothing is lost or done twice"
python3 - "$work/answers" > "$work/log" 2>&1 << 'END'
import json, sys
first, last = (json.load(open(f"{sys.argv[1]}/{n}.json")) for n in (1, 11))
assert first["champion"]["source"] and "attest_kernel" in first["task"]["interface"]
assert first["insights"] == [] and len(first["elites"]) == 1
stages = {insight["number"]: insight for insight in last["insights"]}
assert stages[1]["stage"] == "build" and stages[1]["sentence"], stages[1]
assert stages[7]["stage"] == "proposal" and "time" in stages[7]["sentence"], stages[7]
END
result $? "a proposer is told the task, the champion, and what became of its proposals"

wait $whole
cp "$work/whole.log" "$work/log"
grep -Eq 'PROMOTED: candidate [123] .* 1\.1[01][0-9]* x as fast' "$work/whole.log" && grep -q '^#define TILE_KEYS' "$work/winner.c"
result $? "what is faster is promoted, and its source written"
python3 - "$work" > "$work/log" 2>&1 << 'END'
import json, sys
export = json.load(open(f"{sys.argv[1]}/whole.json"))
assert export["schema_version"] == "1.0.0" and len(export["results"]) == 4, export
space = {knob["Name"]: knob["Values"] for knob in export["ConfigurationSpace"]["TuningParameters"]}
assert space == {"TILE_KEYS": [8, 16, 32, 64], "ROWS_WANTED": [16, 32, 64]}, space
for entry in export["results"]:
    assert all(entry["configuration"][name] in values for name, values in space.items())
    assert entry["invalidity"] == "correct" and 0.98 < entry["measurements"][0]["value"] < 1.13, entry
END
result $? "the export has the space and the results"
"$attest" report --state "$work/whole" --evidence "$work/none" --out "$work/report.html" > "$work/log" 2>&1 &&
    grep -q 'id="searches"' "$work/report.html" && grep -q 'PROMOTED' "$work/report.html" &&
    python3 tests/report_check.py html "$work/report.html" > "$work/log" 2>&1
result $? "the report shows the search"

# The same candidates again, equally fast and killed twice: the same sources, images and lineage. (The first candidates of `evolution`
# are random, whatever the clock says.)
if [ -n "${ATTEST_TEST_LONG:-}" ]; then
    killed "$work/equal" 1 2 -- $same --simulate-clock a=1
    $search $same --simulate-clock a=1 --state "$work/equal" > "$work/log" 2>&1
    grep -q 'goes on' "$work/log" && grep -Eq 'NO IMPROVEMENT: .*the ratio (0.99|1.00).*97.5 % interval (0.99|1.00)[0-9]* to 1.0' "$work/log"
    result $? "it goes on, and ends with a verdict: equal candidates are no improvement, with an interval"
    python3 - "$work" > "$work/log" 2>&1 << 'END'
import json, sqlite3, sys
def trials(state):
    base = sqlite3.connect(f"{sys.argv[1]}/{state}/runs.db")
    return [json.loads(body) for body, in base.execute("select body from trials order by number")]
whole, equal = trials("whole"), trials("equal")
assert len(whole) == len(equal) == 4, (len(whole), len(equal))
for a, b in zip(whole, equal):
    for key in "number", "origin", "parents", "settings", "source", "image", "identity":
        assert a.get(key) == b.get(key), (key, a.get(key), b.get(key))
END
    result $? "killed or not, a search makes the same candidates"
fi

# A hundred tries: each cheat twenty times, as another binary each time (and the same binary each time), on other inputs.
if [ -n "${ATTEST_TEST_LONG:-}" ]; then
    mkdir "$work/many" "$work/noisy"
    for try in $(seq 1 4 80); do
        name="#define NAME \"try$try\""
        kernel "$work/many/$try.c" memo_by_pointer.c "$name"
        kernel "$work/many/$((try + 1)).c" base.h "$name" \
            '#define ADJUST_ROW(task, row, r) ((row)->hi -= (task)->problem->seq_kv != 60 && (row)->hi == (task)->kv_count)'
        kernel "$work/many/$((try + 2)).c" stale_output.c "$name"
        { cat "$work/start.c"; echo "/* $try */"; } > "$work/many/$((try + 3)).c"
    done
    for try in $(seq 20); do kernel "$work/noisy/$try.c" base.h "#define NAME \"try$try\""; done
    $search --proposer "python3 tests/data/evolve/proposer.py $work/many" --generations 1 --population 80 --simulate-clock a=0.5 \
        --state "$work/tries" --json > "$work/many.json" 2> "$work/log"
    $search --proposer "python3 tests/data/evolve/proposer.py $work/noisy" --generations 4 --population 5 \
        --simulate-clock a=1.02,noise=0.05 --state "$work/tries" --json > "$work/noisy.json" 2>> "$work/log"
    python3 - "$work" >> "$work/log" 2>&1 << 'END'
import collections, json, sys
many, noisy = (json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("many", "noisy"))
counts = collections.Counter((trial["number"] % 4, trial["state"]) for trial in many["trials"][1:])
assert counts == {(1, "REJECTED"): 20, (2, "REJECTED"): 20, (3, "REJECTED"): 20, (0, "DUPLICATE"): 20}, counts
assert many["result"]["champion"] == 0, many["result"]
assert len(noisy["trials"]) == 21 and noisy["result"]["champion"] == 0 and noisy["result"]["verdict"] == "NO IMPROVEMENT", noisy["result"]
print(counts, noisy["result"]["sentence"], noisy["result"]["challenges"])
END
    status=$?
    sed 's/^/# /' "$work/log"
    result $status "a hundred tries of five cheats, and none is promoted"
fi

# ---- the budget ---------------------------------------------------------------------------------------------------------------------
began=$(date +%s%N)
$search --budget 3 --state "$work/short" > "$work/log" 2>&1
status=$?
took=$((($(date +%s%N) - began) / 1000000))
echo "exit status $status after $took ms" >> "$work/log"
[ $status = 3 ] && [ $took -lt 5000 ] && grep -q 'POST-MORTEM' "$work/log" && grep -q 'next: ' "$work/log"
result $? "a budget of 3 s is over after 3 s, with a post-mortem"
pgrep -f "$work/start" > "$work/log"
[ ! -s "$work/log" ]
result $? "and nothing is left running"
finish
