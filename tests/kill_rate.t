#!/bin/sh
# attest selftest --generate: mutants are killed, equivalent ones are counted apart, survivors are printed as diffs, an interrupted
# run goes on.
. tests/tap.sh
need python3
attest=$BUILD/attest

# A kernel whose only sites are in one expression, and whatever is done to that shows in the scores: a proof is short.
for stem in scale dead; do
    mkdir -p "$work/$stem/base" && cp mutants/base.h "$work/$stem/base"
done
cat > "$work/scale/scale.c" << 'END'
/* scale.c - the kernel of base.h with its scale computed here. */
#include <attest_kernel.h>
static inline float scale_of(const attest_problem *p)
{
    return p->scale * 3.0f / 3.0f;
}
#define SCALE(p) scale_of(p)
#include "base/base.h"
END
small="--of $work/scale/scale.c --seed 21"
check_exit 0 "6 mutants of a small kernel: exit 0" "$attest" selftest --generate 6 $small --least 100 --out "$work/six" --json
cp "$work/out" "$work/first"
python3 - "$work/first" "$work/six" > "$work/log" 2>&1 << 'END'
import json, sys
found = json.load(open(sys.argv[1]))
rows = [json.loads(line) for line in open(sys.argv[2])]
total = [row for row in found["classes"] if row["class"] == "all"][0]
assert total["mutants"] == 6 and total["killed"] == 6 and total["rate"] == "100.0 %", total
assert found["verdict"] == "PASS" and found["mutants"] == 6, found
assert rows[0]["measured"]["seed"] == 21, rows[0]
assert sum(row.get("outcome") == "killed" for row in rows) == 6
assert all("/scale/scale.c\n@@ " in row["diff"] for row in rows[1:])
END
result $? "every mutant is killed, and the file has what became of each"
lines=$(wc -l < "$work/six")
check_exit 0 "the same command again tries nothing again" "$attest" selftest --generate 6 $small --out "$work/six" --json
[ "$(wc -l < "$work/six")" = "$lines" ] && python3 -c 'import json, sys
a, b = (json.load(open(name)) for name in sys.argv[1:])
assert a["classes"] == b["classes"]' "$work/first" "$work/out" > "$work/log" 2>&1
result $? "and says the same"
head -n 4 "$work/six" > "$work/cut" && printf '{"number": 9' >> "$work/cut"
check_exit 0 "an interrupted run goes on" "$attest" selftest --generate 6 $small --out "$work/cut" --json
python3 -c 'import json, sys
a, b = (json.load(open(name)) for name in sys.argv[1:])
assert a["classes"] == b["classes"], b' "$work/first" "$work/out" > "$work/log" 2>&1
result $? "and comes to the same"

# equivalent KERNEL WHAT: two mutants of it are counted as equivalent, from which nothing is concluded.
equivalent() {
    check_exit 3 "$2: nothing is concluded" "$attest" selftest --generate 2 --seed 3 --of "$1" --json
    python3 -c 'import json, sys
found = json.load(open(sys.argv[1]))
assert found["equivalent"].startswith("2 ") and found["verdict"] == "INCONCLUSIVE", found' "$work/out" > "$work/log" 2>&1
    result $? "$2: they are equivalent"
}

# All sites are in a function that nobody calls: the image stays the same.
{
    echo '#include "base/base.h"'
    echo 'static inline int dead(int x, int y) { return x < 3 ? x + 1 : y; }'
} > "$work/dead/dead.c"
equivalent "$work/dead/dead.c" "mutants of code that nobody calls"

# The same for a CUDA kernel, by its code for the emulated device: one dtype and dim, so that little is compiled.
if command -v g++ > /dev/null; then
    mkdir -p "$work/unused/base" && cp lib/cuda/kernels/cuda_fwd_scalar.cu "$work/unused/base/kernel.cuh"
    {
        sed '/\*\//q' lib/cuda/kernels/cuda_fwd_scalar.cu | sed -e 's/dtypes    = .*/dtypes    = f32/' -e 's/dims      = .*/dims      = 64/' -e 's/archs     = .*/archs     = sm_80/'
        echo '#include "base/kernel.cuh"'
        echo 'static __device__ inline int unused(int x, int y) { return x < 3 ? x + 1 : y; }'
    } > "$work/unused/unused.cu"
    equivalent "$work/unused/unused.cu" "mutants of device code that nobody calls"
fi

# A survivor. Its proof takes all gates, so the result is given; the long test makes its own.
cat > "$work/one" << 'END'
{"measured":MEASURED}
{"number":1,"kernel":"templates/kernel_cpu.c","class":"constant","operator":"constant_near","file":"templates/kernel_cpu.c","line":9,"diff":"--- a/templates/kernel_cpu.c\n+++ b/templates/kernel_cpu.c\n@@ -9,1 +9,1 @@\n-x = 1;\n+x = 2;\n","outcome":"survived","gate":"","sentence":"","seconds":1.5}
END
measured=$(head -n 1 "$work/six" | sed 's/^{"measured":\(.*\)}$/\1/')
sed "s|MEASURED|$measured|" "$work/one" > "$work/survivor"
check_exit 1 "a survivor: exit 1 if all had to be killed" "$attest" selftest --generate 1 $small --out "$work/survivor" --least 100
cp "$work/out" "$work/log"
grep -q '^ *+x = 2;' "$work/out" && grep -q -e "--generate 1 --seed 21 --of $work/scale/scale.c --only-mutant 1" "$work/out" && grep -q 'FAIL' "$work/out"
result $? "it is printed as a diff, with the command that reproduces it"
check_exit 0 "and exit 0 without such a demand" "$attest" selftest --generate 1 $small --out "$work/survivor"

check_exit 0 "with --only, one of them" "$attest" selftest --generate 1 $small --only build,memory --json
python3 -c 'import json, sys
total = [row for row in json.load(open(sys.argv[1]))["classes"] if row["class"] == "all"][0]
assert (total["mutants"], total["survived"], total["killed"]) == (1, 1, 0), total' "$work/out" > "$work/log" 2>&1
result $? "what the other gates kill survives"

# bad WORD ARGUMENTS...: exit 2, and the word in what stderr says.
bad() {
    word=$1
    shift
    check_exit 2 "exit 2: attest selftest $*" "$attest" selftest "$@"
    cp "$work/err" "$work/log"
    grep -q -e "$word" "$work/err"
    result $? "stderr names '$word'"
}
bad 'another seed' --generate 6 --seed 22 --of "$work/scale/scale.c" --out "$work/six"
bad 'no_such_kernel' --generate 1 --of no_such_kernel
bad 'speed' --generate 1 --only speed
bad 'another' --generate 6 $small --out "$work/six" --only build,oracle
bad 'hangs' --generate 1 hangs

if [ -n "${ATTEST_TEST_LONG:-}" ]; then
    check_exit 0 "80 mutants of all CPU kernels: 90 % are killed" "$attest" selftest --generate 80 --seed 4 --least 90 --out "$work/long"
    cp "$work/out" "$work/log"
fi
finish
