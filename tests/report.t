#!/bin/sh
# attest report: which records it takes, and that its HTML, TAP, JUnit and SARIF are what they should be, hostile records included.
# The page is opened in a browser, light and dark, wide and narrow, and on paper.
. tests/tap.sh
need python3
attest=$BUILD/attest
records=tests/data/records
look="python3 tests/report_check.py"

check "escaping, figures, axes, and documents of mangled records" "$BUILD/tests/tool/test_render"

# fill SET RECORD...: a run database and an evidence folder with these records, in this order.
fill() {
    set=$1
    shift
    "$BUILD/tests/tool/test_render" --fill "$work/$set" "$work/$set.evidence" "$@" 2> "$work/log"
}
# report SET ARGUMENTS...: attest report on those.
report() {
    set=$1
    shift
    "$attest" report --state "$work/$set" --evidence "$work/$set.evidence" "$@"
}

fill good $records/champion.json $records/slower.json $records/first.json $records/rejected.json $records/inconclusive.json
result $? "records go into a run database and the evidence"
fill all $records/*.json
result $? "so do hostile ones"

# ---- what is reported -----------------------------------------------------------------------------------------------------------
check_exit 0 "report writes a page" report good --out "$work/page.html"
cp "$work/out" "$work/log"
grep -q "$work/page.html" "$work/out"
result $? "and prints its path"
(cd "$work" && "$OLDPWD/$attest" report --state good --evidence good.evidence > out 2> log && [ -s report.html ])
result $? "report.html is the default"
check_exit 0 "--json" report good --out "$work/page.html" --json
python3 -c "import json; d = json.load(open('$work/out')); assert d['kernels'] == 5 and d['report'] == '$work/page.html', d" 2> "$work/log"
result $? "says how many kernels and where"
check_exit 0 "a pattern chooses kernels" report good 'cpu_fwd_f32_*' --format tap
[ "$(grep -c ': verdict' "$work/out")" = 2 ]
result $? "two of them here"
check_exit 2 "a pattern that nothing matches" report good 'no_such_*'
grep -q no_such_ "$work/err"
result $? "is named"
check_exit 2 "an unknown format" report good --format pdf
grep -q 'html, tap, junit or sarif' "$work/err"
result $? "the formats are named"
check_exit 2 "a file in a folder that is not there" report good --out "$work/no/such/page.html"
check_exit 2 "--json with the report on standard output" report good --out - --json
check_exit 3 "no record at all" report nothing --out "$work/none.html"
[ ! -e "$work/none.html" ] && [ ! -e "$work/nothing" ] && grep -q 'attest prove' "$work/err"
result $? "nothing is written, and the hint says how to get one"
report good --format tap > /dev/full 2> "$work/log"
[ $? = 4 ]
result $? "exit 4 when standard output cannot be written"

# The newest record of a kernel is taken, whether it was stored first or last; one that was interrupted only if it is alone.
python3 - "$records/slower.json" "$work" << 'EOF'
import json, sys
record = json.load(open(sys.argv[1]))
for name, changes in (("old", {"started": "2020-01-01T00:00:00Z", "verdict": "REJECTED"}),
                      ("cut", {"started": "2030-01-01T00:00:00Z", "verdict": "INTERRUPTED", "gates": []}),
                      ("cheat", {"verdict": "REJECTED", "gates": [{"gate": "speed", "verdict": "FAIL", "sentence": "memoised",
                                                                   "details": {"cheat": True}}]}),
                      ("elsewhere", {"started": "2020-01-01T00:00:00Z", "verdict": "INCONCLUSIVE", "device": {"class": "cpu-amx"}})):
    json.dump({**record, **changes}, open(f"{sys.argv[2]}/{name}.json", "w"))
EOF
fill newest $records/slower.json "$work/old.json" "$work/cut.json" && report newest --format tap > "$work/log" &&
    grep -q '^ok .*: verdict' "$work/log" && [ "$(grep -c ': verdict' "$work/log")" = 1 ]
result $? "the newest finished record of a kernel is taken"
fill classes $records/slower.json "$work/elsewhere.json" && report classes --format tap > "$work/log" && [ "$(grep -c ': verdict' "$work/log")" = 2 ]
result $? "each device class has its own"
fill alone "$work/cut.json" && report alone --format tap > "$work/log" && grep -q '^not ok .*: verdict' "$work/log" && grep -q INTERRUPTED "$work/log"
result $? "an interrupted run that is alone is reported as one"
report good --out - > "$work/before.html" && grep -q 'line 1, not signed' "$work/before.html"
result $? "a record that is in the evidence says where"
sed -i 's/"seed":1234567/"seed":7654321/' "$work"/good.evidence/*/cpu_fwd_f32_avx512.intoto.jsonl
report good --out - > "$work/after.html" 2> "$work/log"
grep -q 'class="notice">Left out' "$work/after.html" && ! grep -q 7654321 "$work/after.html" && ! grep -q Left "$work/before.html"
result $? "an edited statement is left out, and the page says so"

# ---- HTML -----------------------------------------------------------------------------------------------------------------------
report all --out "$work/all.html" > "$work/log" 2>&1
for page in page all; do
    $look html "$work/$page.html" > "$work/$page.text" 2> "$work/log"
    result $? "$page.html is well formed, has its labels, and loads nothing"
done
# has TEXT: the page for people says this.
has() {
    grep -qF -e "$1" "$work/page.text"
    result $? "the page says: $1"
}
has '3 of 5 kernels are proven'
has 'AMD EPYC (2 cores, cpu-avx512bf16)'
has 'proven, and 1.62 x as fast as cpu_fwd_f32_avx2: promoted'
has 'rejected by the oracle gate: rescale is the first wrong stage'
has 'O is not multiplied by exp(old maximum - new maximum)'
has 'from key 64 on, a factor for each row'
has '1.71 1.69 to 1.73'
has '1234567'
has 'the kernel needs amx, which this machine does not have'
[ "$(grep -c '<path class="heat' "$work/page.html")" -ge 1 ] && [ "$(grep -o '<circle class="point"' "$work/page.html" | wc -l)" = 8 ]
result $? "it has the map of the error, and eight points under two rooflines"
check "text has contrast, light and dark" $look style tool/report/report.css

# ---- TAP, JUnit, SARIF ----------------------------------------------------------------------------------------------------------
report good --format tap > "$work/good.tap"
prove -e cat "$work/good.tap" > "$work/log" 2>&1
[ $? != 0 ] && grep -q 'Failed 4/29' "$work/log"
result $? "prove reads the TAP, and counts 4 of 29 as failed: oracle and verdict of one kernel, build and verdict of another"
report good cpu_fwd_f32_avx2 cpu_fwd_f32_avx512 --format tap > "$work/proven.tap"
prove -e cat "$work/proven.tap" > "$work/log" 2>&1
result $? "a kernel that is proven and slower does not fail"
report all --format tap > "$work/all.tap"
prove -e cat "$work/all.tap" > "$work/log" 2>&1
! grep -qi 'parse error\|bad plan\|forged' "$work/log" && grep -q '^Result: FAIL' "$work/log" && ! grep -q '^ok 99' "$work/all.tap"
result $? "hostile names forge no line of TAP"
report good --format junit --out "$work/good.xml" > /dev/null
check "JUnit counts" $look junit "$work/good.xml"
$look junit "$work/good.xml" | grep -q '"tests": 29, "failures": 2, "errors": 2, "skipped": 2'
result $? "29 tests, 2 failures, 2 errors, 2 skipped"
report all --format junit --out "$work/all.xml" > /dev/null
check "JUnit of hostile records is XML" $look junit "$work/all.xml"
report good --format sarif --out "$work/good.sarif" > /dev/null
check "SARIF has what 2.1.0 asks for" $look sarif "$work/good.sarif"
$look sarif "$work/good.sarif" | sort > "$work/log"
printf 'error oracle my_kernel\nnote speed cpu_fwd_f32_avx2\nwarning build cpu_fwd_bf16_amx\n' | cmp -s - "$work/log"
result $? "an error, a warning and a note"
fill cheat "$work/cheat.json" && report cheat --format sarif --out "$work/cheat.sarif" > /dev/null && report cheat --format tap > "$work/cheat.tap"
[ "$($look sarif "$work/cheat.sarif")" = 'error speed cpu_fwd_f32_avx2' ] && ! grep -q TODO "$work/cheat.tap"
result $? "a cheat that the speed gate found is an error"
report all --format sarif --out "$work/all.sarif" > /dev/null
check "SARIF of hostile records" $look sarif "$work/all.sarif"

# ---- in a browser ---------------------------------------------------------------------------------------------------------------
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || :)
if [ -z "$browser" ]; then
    what='chromium is not installed: scripts/deps.sh test'
    if [ "${CI:-}" = true ]; then
        result 1 "$what"
    else
        result 0 "the page in a browser # SKIP $what"
    fi
    finish
fi
# browse STYLE WIDTH,HEIGHT ARGUMENTS...: headless, with nothing kept; 0 is dark, 1 light. What the page logs is in $work/console.
browse() {
    style=$1
    size=$2
    shift 2
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-extensions --hide-scrollbars \
        --user-data-dir="$work/profile" --blink-settings=preferredColorScheme="$style" --window-size="$size" --virtual-time-budget=2000 \
        --enable-logging=stderr "$@" 2> "$work/stderr"
    status=$?
    grep CONSOLE "$work/stderr" > "$work/console"
    return $status
}
echo '<!doctype html><title>wrong</title><img src="http://example.invalid/x.png"><script>nothing.here()</script>' > "$work/wrong.html"
browse 1 640,480 --dump-dom "file://$work/wrong.html" > /dev/null
grep -q 'nothing is not defined' "$work/console"
result $? "a page with an error in it shows up on the console"
for page in page all; do
    browse 1 640,480 --dump-dom "file://$work/$page.html" > "$work/dom"
    cp "$work/console" "$work/log"
    [ ! -s "$work/console" ] && grep -q '<h1>' "$work/dom" && ! grep -q '<script\|<img' "$work/dom"
    result $? "$page.html opens without a word on the console"
done
browse 1 640,480 --screenshot="$work/light.png" "file://$work/page.html" > /dev/null
check "the page is drawn, light" $look picture "$work/light.png" light
browse 0 640,480 --screenshot="$work/dark.png" "file://$work/page.html" > /dev/null
check "the page is drawn, dark" $look picture "$work/dark.png" dark
# A copy with a script opens everything and tells the page round it how wide it became. (A window cannot be as narrow as a frame.)
cat > "$work/frame.html" << 'EOF'
<!doctype html><title>nothing</title><script>onmessage = event => document.title = event.data</script>
<iframe src="measured.html" style="width:360px;height:700px;border:0"></iframe>
EOF
script='for (const part of document.querySelectorAll("details")) part.open = true; parent.postMessage("width " + document.documentElement.scrollWidth, "*")'
for page in page all; do
    sed -e '/Content-Security-Policy/d' -e "s|</body>|<script>$script</script></body>|" "$work/$page.html" > "$work/measured.html"
    browse 1 640,800 --dump-dom "file://$work/frame.html" | sed -n 's/.*<title>\(.*\)<\/title>.*/\1/p' > "$work/log"
    [ "$(cat "$work/log")" = 'width 360' ]
    result $? "$page.html fits a narrow screen with everything open"
done
browse 1 640,480 --print-to-pdf="$work/page.pdf" "file://$work/page.html" > /dev/null
pages=$(grep -ac '/Type /Page$' "$work/page.pdf")
echo "$pages pages" > "$work/log"
[ "$pages" -ge 10 ]
result $? "on paper the closed parts are open"
finish
