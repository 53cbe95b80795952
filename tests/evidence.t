#!/bin/sh
# Evidence and champions: the modules by their own tests, then `attest verify`, `champion`, `keygen`, `log`, `postmortem` and
# `reproduce` as a person uses them, in a small copy of the tree with hand-made records.
. tests/tap.sh
need python3 sha256sum

root=$(pwd)
case $BUILD in /*) ;; *) BUILD=$root/$BUILD ;; esac
attest=$BUILD/attest
for program in test_evidence test_tampering test_champions test_store; do
    status=0
    "$BUILD/tests/tool/$program" > "$work/out" 2>&1 || status=1
    grep '^#' "$work/out"
    cp "$work/out" "$work/log"
    result $status "$program"
done

# ---- a small tree with a record for every kernel of the library, and one for a kernel from elsewhere
tree=$work/tree
mkdir -p "$tree/lib" && cp -r "$root/include" "$tree/" && cp -r "$root/lib/cpu" "$root/lib/cuda" "$tree/lib/" && cp "$root"/lib/*.h "$root"/lib/*.def "$tree/lib/"
cd "$tree" || exit 1
cat > mine.c << 'END'
/*
 * A kernel that compiles; nobody runs it here.
 */
#include <attest_kernel.h>

static void tile(const attest_task *task, void *scratch)
{
    (void)task;
    (void)scratch;
}

static size_t scratch_size(const attest_problem *problem, int64_t rows)
{
    (void)problem;
    return 64 + (size_t)rows;
}

ATTEST_API const attest_cpu_kernel *attest_cpu_kernel_entry(void)
{
    static const attest_cpu_kernel kernel = {.abi = ATTEST_KERNEL_ABI,
                                             .dtypes = ATTEST_TAKES_F32,
                                             .name = "mine",
                                             .needs = "",
                                             .summary = "nothing",
                                             .tile = tile,
                                             .scratch_size = scratch_size,
                                             .row_step = 1,
                                             .rows_wanted = 16};
    return &kernel;
}
END
kernels=$("$attest" list --json | sed -n 's/.*"kernel": "\(c[pu]*d*a*_[a-z0-9_]*\)".*/\1/p')
[ "$(echo "$kernels" | wc -l)" -ge 3 ]
result $? "the library has kernels to prove"

# record KERNEL SOURCE KIND [HOW [KEY]]: appends a record that says PROVEN.
record() {
    "$BUILD/tests/tool/test_evidence" make evidence "$1" "$2" "$3" cpu-avx2 "${4:-plain}" ${5:+"$5"}
}
source_of() {
    stem=$(echo "$1" | sed 's/_\(f32\|f16\|bf16\)_/_/')
    case $stem in
    cuda_*) echo "lib/cuda/kernels/$stem.cu" ;;
    *) echo "lib/cpu/$stem.c" ;;
    esac
}

# verify CODE NAME WORD [ARGUMENTS...]: this exit status, and the word in what it prints.
verify() {
    want=$1
    name=$2
    word=$3
    shift 3
    check_exit "$want" "verify: $name" "$attest" verify "$@"
    cat "$work/out" "$work/err" > "$work/log"
    grep -q -e "$word" "$work/log"
    result $? "it says '$word'"
}

verify 1 "no evidence at all" "attest prove cpu_fwd_f32_scalar --record"
for kernel in $kernels; do
    [ "$kernel" = cpu_fwd_f16_scalar ] || record "$kernel" "$(source_of "$kernel")" shipped || echo "# no record of $kernel"
done
verify 1 "a kernel of the library has no record" "attest prove cpu_fwd_f16_scalar --record"
verify 0 "the others have one" "PASS" 'cpu_fwd_f32_*'
cp lib/cpu/cpu_fwd_scalar.c cpu_fwd_f16_scalar.c
record cpu_fwd_f16_scalar cpu_fwd_f16_scalar.c c 2> /dev/null
verify 1 "a file with the name of a kernel of the library is not it" "cpu_fwd_f16_scalar --record" cpu_fwd_f16_scalar
record cpu_fwd_f16_scalar lib/cpu/cpu_fwd_scalar.c shipped
record mine mine.c c built
rm cpu_fwd_f16_scalar.c
verify 0 "all have one" "verdict: *PASS"
verify 0 "records of before a gate became stricter" "proven under policy 1; gates build, .* of policy [0-9]* not run" mine
grep -q 'mine .*BEHIND' "$work/out" && grep -q 'kernels behind: *1$' "$work/out"
result $? "the kernel is behind, and counted as such"
(cd evidence && sha256sum --quiet -c SHA256SUMS) > "$work/log" 2>&1
result $? "sha256sum -c SHA256SUMS"
check_exit 0 "verify --json" "$attest" verify --json
python3 -c "import json, sys; d = json.load(open('$work/out')); sys.exit(d['verdict'] != 'PASS' or not d['kernels'] or not d['kernels'][0]['missing'] or d['kernels_behind'] != len(d['kernels']))" 2> "$work/log"
result $? "it prints JSON"

# ---- sources that change after they were proven
printf '#!/bin/sh\n[ "$1" != --version ] || { echo "another 1.0"; exit; }\nexec gcc "$@"\n' > other-gcc && chmod +x other-gcc
sed -i 's/nobody runs it here/a comment that changed/' mine.c
verify 0 "a comment changed, and the image is the same" "mine.c differs, but the image is the same" mine
ATTEST_CC=./other-gcc "$attest" verify mine > "$work/log" 2>&1
[ $? = 1 ] && grep -q "mine.c differs (it was proven with gcc" "$work/log"
result $? "with another compiler a comment may not change"
sed -i 's/return 64/return 128/' mine.c
verify 1 "the code changed" "kernel changed after it was proven: mine.c differs" mine
sed -i -e 's/return 128/return 64/' -e 's/a comment that changed/nobody runs it here/' mine.c
verify 0 "put back" PASS mine
ATTEST_CC=./other-gcc "$attest" verify mine > "$work/log" 2>&1
result $? "with another compiler and the same sources it passes"
cp lib/cpu/rows_tile.h rows_tile.h
echo '/* changed */' >> lib/cpu/rows_tile.h
ATTEST_CC=./other-gcc "$attest" verify 'cpu_fwd_f32_*' > "$work/log" 2>&1
[ $? = 1 ] && [ "$(grep -c "kernel changed after it was proven: lib/cpu/rows_tile.h differs" "$work/log")" -ge 1 ]
result $? "a header that changed is named"
mv rows_tile.h lib/cpu/rows_tile.h
mv lib/cpu/cpu_fwd_scalar.c scalar.c
verify 1 "the source of a kernel of the library is gone" "its source lib/cpu/cpu_fwd_scalar.c is not here" cpu_fwd_f32_scalar
mv scalar.c lib/cpu/cpu_fwd_scalar.c
mv mine.c gone.c
verify 0 "the source of another kernel is not here" "NOT HERE" mine
mv gone.c mine.c

# ---- records that are edited
file=evidence/cpu-avx2/mine.intoto.jsonl
cp -r evidence untouched
sed -i 's/"verdict":"PROVEN"/"verdict":"PROVED"/' $file
verify 1 "a record was edited" "it was edited"
rm -r evidence && cp -r untouched evidence
sed -i 's/"sentence":"a sentence"/"sentence":"b sentence"/' $file
(cd evidence && sha256sum cpu-*/*.jsonl > SHA256SUMS)
verify 0 "whoever writes the sums anew too is not noticed without a signature" PASS
sed -i 's/"gate":"memory","seconds":[^,]*,"sentence":"[^"]*","verdict":"PASS"/"gate":"memory","seconds":1,"sentence":"x","verdict":"FAIL"/' $file
(cd evidence && sha256sum cpu-*/*.jsonl > SHA256SUMS)
verify 1 "unless the record contradicts itself" "its verdict is PROVEN, but its gates say REJECTED"
rm -r evidence && cp -r untouched evidence
rm $file
verify 1 "a file was removed" "is named in SHA256SUMS and is not there"
rm -r evidence && cp -r untouched evidence

printf '%064d  cpu-avx2/mine.intoto.jsonl\n' 1 >> evidence/SHA256SUMS
verify 1 "a second line in SHA256SUMS" "second of its two lines in SHA256SUMS is that of no file"
rm -r evidence && cp -r untouched evidence
last=$(ls evidence/cpu-avx2/*.jsonl | head -n 1)
sed -i 's/"sequence":\([0-9]*\)/"sequence":9\1/' "$last"
(cd evidence && sha256sum cpu-*/*.jsonl > SHA256SUMS)
verify 1 "a sequence number was changed, and the sums written anew" "a number was changed\|removed or edited"
rm -r evidence && cp -r untouched evidence
mv $file moved && ln -s ../../moved $file
verify 1 "a link" "mine.intoto.jsonl .*0 *FAIL"
grep -q 'it is a symbolic link' "$work/out"
result $? "it says what it is"
rm -r evidence && cp -r untouched evidence
mkfifo evidence/cpu-avx2/pipe.intoto.jsonl
check_exit 1 "a pipe does not hang verify" timeout 20 "$attest" verify
rm -r evidence && cp -r untouched evidence
cp lib/cpu/cpu_fwd_scalar.c CPU_fwd_f32_scalar.c
record CPU_fwd_f32_scalar CPU_fwd_f32_scalar.c c
verify 1 "a kernel whose name differs from another in capitals alone" "differ in capital letters alone"
rm -r evidence && cp -r untouched evidence

# ---- signatures
check_exit 0 "keygen" "$attest" keygen release
[ "$(stat -c %a release)" = 600 ] && grep -q '^attest-ed25519-public [0-9a-f]\{64\}$' release.pub
result $? "the secret key is for its owner alone, the public key for all"
check_exit 2 "keygen does not replace a key" "$attest" keygen release
"$attest" keygen other > /dev/null
verify 1 "a key is demanded, and nothing is signed" "it is not signed" --key release.pub
rm -r evidence
record mine mine.c c built release && record mine mine.c c built release
check_exit 1 "the kernels of the library have no record now" "$attest" verify --key release.pub
verify 0 "signed" "PASS" mine --key release.pub
verify 1 "signed with another key" "it is signed with another key" mine --key other.pub
grep -q '^{"payload":"[A-Za-z0-9+/=]*","payloadType":"application/vnd.in-toto+json","signatures":\[{"keyid":"[0-9a-f]*","sig":"[A-Za-z0-9+/=]*"}\]}$' $file
result $? "a signed line is a DSSE envelope"
awk 'NR == 2 { sub(/"payload":"e/, "\"payload\":\"f") } { print }' $file > edited && cp edited $file
(cd evidence && sha256sum cpu-*/*.jsonl > SHA256SUMS)
verify 1 "a signed record was edited, and the sums written anew" "its signature is not good" mine
check_exit 2 "a file that is no key" "$attest" verify --key mine.c

# ---- champions
rm -r evidence && cp -r untouched evidence
check_exit 0 "champion" "$attest" champion
grep -q 'cpu-avx2 *fwd:f32 *mine' "$work/out"
result $? "the last one promoted reigns"
check_exit 0 "champion --write" "$attest" champion --write one.def
check_exit 0 "again" "$attest" champion --write two.def
cmp -s one.def two.def && grep -q 'Generated by `attest champion --write`' one.def &&
    [ "$(grep -c '^CHAMPION("cpu-avx2", F32, "cpu_fwd_f32_' one.def)" = 1 ] && ! grep -q mine one.def
result $? "it writes the same table again, with kernels of the library alone"
check_exit 0 "champion --restore" "$attest" champion --restore cpu_fwd_f32_scalar
check_exit 0 "champion --json" "$attest" champion --json
python3 -c "
import json, sys
row = [r for r in json.load(open('$work/out'))['champions'] if r['problem_class'] == 'fwd:f32'][0]
sys.exit(row['kernel'] != 'cpu_fwd_f32_scalar' or not row['history'][-1]['restored'] or len(row['history']) < 3)" 2> "$work/log"
result $? "the restored one reigns, and the history is kept"
grep -q '"predicateType":"urn:attest:champion:v1"' evidence/cpu-avx2/cpu_fwd_f32_scalar.intoto.jsonl
result $? "the restoration is a statement of its own"
verify 0 "the evidence is in order afterwards" PASS
check_exit 2 "champion --restore of one that never reigned" "$attest" champion --restore nobody
check_exit 3 "champion without evidence" "$attest" champion --evidence nowhere
printf 'x' >> evidence/cpu-avx2/mine.intoto.jsonl
check_exit 1 "champion with edited evidence" "$attest" champion
rm -r evidence && cp -r untouched evidence

# ---- log, post-mortem, reproduce
check_exit 3 "log without a run database" "$attest" log
check_exit 3 "postmortem without a run database" "$attest" postmortem mine
[ ! -e .attest ]
result $? "they do not make one"
check_exit 2 "postmortem of nothing" "$attest" postmortem
check_exit 2 "reproduce of nothing that is known" "$attest" reproduce nobody
sed -i 's/return 64/return 128/' mine.c
check_exit 3 "reproduce of sources that changed" "$attest" reproduce mine
grep -q "mine.c differs" "$work/err"
result $? "it says which"

# ---- real runs, of two gates that are quick
check_exit 0 "attest new" "$attest" new real --cpu
echo fwd:f32:h1:s8:d8:lse > suite
check_exit 3 "two gates are no proof" "$attest" prove real.c --only build,determinism --suite suite
check_exit 0 "log" "$attest" log
grep -q 'real *first attempt *INCONCLUSIVE' "$work/out" && grep -q 'build PASS, determinism PASS' "$work/out"
result $? "it has the run, its gates and its verdict"
check_exit 0 "postmortem" "$attest" postmortem real
grep -q '^# Post-mortem: real' "$work/out" && grep -q 'the oracle gate was not run' "$work/out"
result $? "it says why there is no verdict"
check_exit 0 "reproduce" "$attest" reproduce real
grep -q 'the record holds' "$work/out" && [ "$(grep -c ' PASS *PASS *yes' "$work/out")" = 2 ]
result $? "it holds, gate by gate"
python3 -c "
import sqlite3
database = sqlite3.connect('.attest/runs.db')
record, = database.execute('SELECT record FROM runs ORDER BY id DESC').fetchone()
at = record.index('\"gate\":\"determinism\"')
database.execute('UPDATE runs SET record = ? WHERE id = (SELECT max(id) FROM runs)',
                 (record[:at] + record[at:].replace('\"verdict\":\"PASS\"', '\"verdict\":\"FAIL\"', 1),))
database.commit()" > "$work/log" 2>&1
result $? "a record in the database is changed"
check_exit 1 "reproduce of a record that is not true" "$attest" reproduce real
grep -q 'does NOT hold' "$work/out" && grep -q 'determinism *FAIL *PASS *NO' "$work/out"
result $? "it says which gate does not hold"

# ---- a record that lacks a gate, and what continues it
check_exit 2 "--missing without --record" "$attest" prove real.c --missing
check_exit 2 "--missing with --only" "$attest" prove real.c --record --missing --only build
class=$("$attest" prove real.c --only build --json 2> /dev/null | sed -n 's/.*"class": "\([^"]*\)".*/\1/p' | head -n 1)
"$BUILD/tests/tool/test_evidence" make evidence real real.c c "$class" lacking
check_exit 0 "prove --record --missing" "$attest" prove real.c --record --missing --suite suite
cp "$work/out" "$work/log"
grep -q '  build  *PASS' "$work/log" && grep -q '  profile  *PASS' "$work/log" && [ "$(grep -c ' s  ' "$work/log")" = 2 ] &&
    grep -q 'gate profile of policy [0-9]* not run' "$work/log" && grep -q 'PROVEN: ' "$work/log"
result $? "it runs the build and the one gate that is missing"
grep -q '"continues":"[0-9a-f]\{64\}"' "evidence/$class/real.intoto.jsonl"
result $? "the new record continues the old one"
verify 0 "both together" "real .* PASS" real
check_exit 0 "again" "$attest" prove real.c --record --missing --suite suite
grep -q 'nothing is missing' "$work/out" && ! grep -q PROVEN "$work/out" && [ "$(wc -l < "evidence/$class/real.intoto.jsonl")" = 2 ]
result $? "nothing is missing, nothing is run, nothing is recorded"
sed -i "1,1s/^.*\$//" "evidence/$class/real.intoto.jsonl"
verify 1 "a chain without its beginning" "real.intoto.jsonl" real
rm -r evidence && cp -r untouched evidence
"$BUILD/tests/tool/test_evidence" make evidence real real.c c "$class" lacking
cp real.c kept.c && echo '#error' >> real.c
check_exit 1 "sources that changed" "$attest" prove real.c --record --missing --suite suite
grep -q 'all gates are to be run: kernel changed after it was proven' "$work/out"
result $? "everything is missing then"
mv kept.c real.c
rm -r evidence && cp -r untouched evidence

"$attest" prove real.c --only build,determinism,correctness > /dev/null 2>&1 &
prover=$!
for i in $(seq 300); do
    sleep 0.2
    "$attest" log real --json | grep -q INTERRUPTED && "$attest" log real | tail -n 2 | grep -q 'build PASS' && break
done
kill -9 $prover
wait $prover 2> /dev/null
check_exit 0 "log after a kill -9" "$attest" log real
tail -n 3 "$work/out" | tr '\n' ' ' | grep -q 'INTERRUPTED.*build PASS.*interrupted'
result $? "the gates that ended are there, and the run is marked as interrupted"
cd "$root" || exit 1
finish
