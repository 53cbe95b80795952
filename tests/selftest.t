#!/bin/sh
# The gates are proven: every planted bug is killed by its gate with the right diagnosis, every harmless variant is proven; and the
# selftest itself can fail.
. tests/tap.sh
need python3
attest=$BUILD/attest

# The table and the folder say the same.
sed -n 's/^\(MUTANT\|SPEED\|HARMLESS\)(\([a-z0-9_/]*\),.*/\2/p' mutants/mutants.def | sort > "$work/rows"
ls mutants/*.c mutants/cuda/*.cu | sed 's|mutants/||; s|\.cu*$||' | sort > "$work/files"
diff "$work/rows" "$work/files" > "$work/log"
result $? "mutants.def has one row for every kernel of the folder"
sed -n 's/^MUTANT(\([a-z0-9_/]*\), "*\([a-z ]*\)"*, .*/\1 \2/p' mutants/mutants.def | while read -r stem gate; do
    grep -q "^ \* Caught by: $(echo "$gate" | sed 's/ and /\\b.*\\band /')\b" "mutants/$stem".c* || echo "mutants/$stem does not say: Caught by: $gate"
done > "$work/log"
[ ! -s "$work/log" ]
result $? "every mutant says which gate has to catch it"

# A sample of the rows; all of them with ATTEST_TEST_LONG, which takes some minutes.
sample="--sample 36"
[ -z "${ATTEST_TEST_LONG:-}" ] || sample=
"$attest" selftest --seed 1 $sample --json > "$work/matrix" 2> "$work/err"
status=$?
python3 - "$work/matrix" > "$work/log" 2>&1 << 'END'
import json, sys
matrix = json.load(open(sys.argv[1]))
rows = matrix["mutants"]
for row in rows:
    if not row["right"]:
        print(row["mutant"], row["outcome"], *row["notes"], sep="\n    ")
kinds = [row["kind"] for row in rows]
left = int(matrix.get("left out", "0").split()[0])
cuda = sum(row["mutant"].startswith("cuda/") for row in rows)
whole = "sample" not in matrix
assert kinds.count("MUTANT") >= (90 if whole else 15), "too few mutants"
assert kinds.count("HARMLESS") >= (40 if whole else 1), "too few harmless variants"
assert len(rows) + left >= 30, "too few rows"
assert cuda + left >= (40 if whole else 4), "too few CUDA kernels"
gates = {row["expected"] for row in rows}
assert {"build", "oracle", "memory", "determinism", "correctness", "speed", "profile"} <= gates, gates
print("CUDA rows that were left out:", matrix.get("left out", "none"))
assert all(row["right"] for row in rows) and matrix["verdict"] == "PASS", matrix["verdict"]
END
result $? "100 % killed by the expected gate, every diagnosis right, no harmless variant rejected"
[ $status = 0 ]
result $? "and it exits with 0"

# A selftest that could not fail would prove nothing: rows that are not true.
mkdir "$work/false" && cp mutants/base.h mutants/suite.txt mutants/timed.txt mutants/scale_dropped.c mutants/harmless_base.c "$work/false"
# untrue NAME WORD ROW: with this row alone the selftest exits 1, and the word is in its table.
untrue() {
    echo "$3" > "$work/false/mutants.def"
    check_exit 1 "exit 1: $1" "$attest" selftest --mutants "$work/false" --only build,oracle --seed 1
    cp "$work/out" "$work/log"
    grep -q "$2" "$work/out"
    result $? "it says $2"
}
untrue "a bug that is called harmless" REJECTED 'HARMLESS(scale_dropped, "nothing")'
untrue "a harmless kernel that is called a bug" SURVIVED 'MUTANT(harmless_base, oracle, "S", "nothing")'
untrue "another gate was expected" 'WRONG GATE' 'MUTANT(scale_dropped, build, "", "the scale is left out")'
untrue "another stage was planted" 'WRONG DIAGNOSIS' 'MUTANT(scale_dropped, oracle, "PV", "the scale is left out")'
echo 'MUTANT(scale_dropped, oracle, "S", "the scale is left out")' > "$work/false/mutants.def"
check_exit 0 "the true row passes" "$attest" selftest --mutants "$work/false" --only build,oracle --seed 1

# bad WORD ARGUMENTS...: exit 2, and the word in what stderr says.
bad() {
    word=$1
    shift
    check_exit 2 "exit 2: attest selftest $*" "$attest" selftest "$@"
    cp "$work/err" "$work/log"
    grep -q -e "$word" "$work/err"
    result $? "stderr names '$word'"
}
bad 'did you mean scale_dropped' scale_droped
bad 'did you mean oracle' --only oracel
bad 'no/such' --mutants "$work/no/such"
echo 'MUTANT(scale_dropped, oracle)' > "$work/false/mutants.def"
bad 'mutants.def:1' --mutants "$work/false"
finish
