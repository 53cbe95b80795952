#!/bin/sh
# CUDA candidates without a GPU: manifests, the resource model, the build gate with nvcc, and the gates that need a GPU with a driver and tools
# that are made up.
. tests/tap.sh
path=$PATH
PATH="$PATH:$PWD/$BUILD/cuda-tools/bin" # what scripts/cuda_tools.sh got

# run NAME PROGRAM ARGUMENTS...: a test program; what it notes and what it skips is shown.
run() {
    name=$1
    shift
    status=0
    "$@" > "$work/out" 2>&1 || status=1
    grep '^#\|# SKIP' "$work/out" | sed 's/^ok/# ok/'
    cp "$work/out" "$work/log"
    result $status "$name"
}

# skip NAME REASON
skip() {
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}

# ---- the resource model is NVIDIA's own, on a million kernels ----
header=$(ls /usr/local/cuda*/include/cuda_occupancy.h "$(dirname "$(dirname "$(command -v nvcc || echo /none/none)")")/include/cuda_occupancy.h" \
    2> /dev/null | head -n 1)
if [ -n "$header" ]; then
    check "the resource model compiles with cuda_occupancy.h" "$CC" -std=c11 -O2 -I"$(dirname "$header")" -Itool tests/tool/occupancy.c \
        tool/cuda/cuda_resources.c -o "$work/occupancy"
    check "and agrees with it everywhere" "$work/occupancy"
    sed 's/CUDA_LIMITS(sm_89, 89, sm_80, 100, 99, 48, 24, 0)/CUDA_LIMITS(sm_89, 89, sm_80, 100, 99, 48, 32, 0)/' tool/cuda/cuda_limits.def > "$work/cuda_limits.def"
    cp tool/cuda/cuda_resources.c tool/cuda/cuda_resources.h "$work/"
    $CC -std=c11 -O2 -I"$(dirname "$header")" -Itool tests/tool/occupancy.c "$work/cuda_resources.c" -o "$work/occupancy"
    check_exit 1 "a wrong number in the table is noticed" "$work/occupancy"
else
    skip "the resource model agrees with cuda_occupancy.h" "the header of the CUDA toolkit is not here"
fi

run "test_cuda" "$BUILD/tests/tool/test_cuda"
run "test_cuda_build" "$BUILD/tests/tool/test_cuda_build"

# ---- a driver that says there is a GPU, and tools that print what the mode says ----
mkdir "$work/bin" "$work/lib"
check "the made-up driver compiles" "$CC" -std=c11 -D_GNU_SOURCE -Iinclude -shared -fPIC tests/cuda/fake_driver.c -o "$work/lib/libcuda.so.1"
cat > "$work/bin/compute-sanitizer" << 'EOF'
#!/bin/sh
for word; do
    case $before in --tool) tool=$word ;; --log-file) log=$word ;; --marker) marker=$word ;; esac
    before=$word
done
data=tests/data/cuda
case $tool in racecheck) clean=$data/racecheck_clean.txt ;; *) clean=$data/memcheck_clean.txt ;; esac
cp $clean "$log"
case $FAKE_MODE in
clean) echo "$marker" ;;
race) [ $tool != racecheck ] || { cp $data/racecheck_error.txt "$log"; echo "$marker"; exit 82; }; echo "$marker" ;;
silent) echo "all PASS" ;;
early) cp $data/sanitizer_disabled.txt "$log"; echo "$marker" ;;
forged) rm "$log"; echo "========= ERROR SUMMARY: 0 errors"; echo "$marker" ;;
lacking) cp $data/sanitizer_no_cuda.txt "$log"; echo "no backend"; exit 3 ;;
hang) exec sleep 30 ;;
esac
EOF
cat > "$work/bin/ncu" << 'EOF'
#!/bin/sh
for word; do
    case $before in --log-file) log=$word ;; --marker) marker=$word ;; esac
    before=$word
done
data=tests/data/cuda
case $FAKE_MODE in
clean) sed 's|(attest)|(/home/somebody/build/attest)|' $data/ncu_scalar.txt > "$log"; echo "$marker" ;;
tensor) cp $data/ncu_hmma.txt "$log"; echo "$marker" ;;
permission) cp $data/ncu_permission.txt "$log"; echo "$marker"; exit 1 ;;
nothing) cp $data/ncu_nothing.txt "$log"; echo "$marker" ;;
silent) cp $data/ncu_scalar.txt "$log" ;;
esac
EOF
chmod +x "$work/bin/compute-sanitizer" "$work/bin/ncu"
run "the memory and profile gates with made-up tools" env ATTEST_TEST_MADE_UP=1 LD_LIBRARY_PATH="$work/lib" PATH="$work/bin:$PATH" \
    "$BUILD/tests/tool/test_cuda" --only with_tools
grep -q 'ok 1 - with_tools (2[0-9] checks)\|ok 1 - with_tools ([3-9][0-9] checks)' "$work/out"
result $? "and they were used"

# ---- as a user does it ----
if command -v nvcc > /dev/null || ls /usr/local/cuda*/bin/nvcc > /dev/null 2>&1; then
    check "attest new mine --cuda --arch any" "$BUILD/attest" new mine --cuda --arch any --out "$work"
    # test_cuda_build compiles all of it; here two images are enough.
    sed -i -e 's/dims      = .*/dims      = 64/' -e 's/dtypes    = .*/dtypes    = f16/' "$work/mine.cu"
    "$BUILD/attest" prove "$work/mine.cu" --state "$work/state" --only build > "$work/log" 2>&1
    grep -q 'PASS' "$work/log" && grep -q 'nothing spilled' "$work/log"
    result $? "attest prove mine.cu --only build passes"
    "$BUILD/attest" prove "$work/mine.cu" --state "$work/state" --only memory,profile > "$work/log" 2>&1
    grep -q 'INCONCLUSIVE' "$work/log" && grep -q 'run this on a machine with a GPU' "$work/log" || [ -e /dev/nvidia0 ]
    result $? "without a GPU the memory and profile gates are inconclusive, and say what to do"
    # A GPU that computes nothing: workers start there, tensors get there and back, and what was not written is noticed.
    for gate in oracle memory determinism; do
        LD_LIBRARY_PATH="$work/lib" "$BUILD/attest" prove "$work/mine.cu" --state "$work/state" --only $gate > "$work/log" 2>&1
        grep -q 'FAIL.*\(not written\|does not write\|other bits\)' "$work/log"
        result $? "a worker on a made-up GPU: the $gate gate runs"
    done
    FAKE_CUDA=nodevice LD_LIBRARY_PATH="$work/lib" "$BUILD/attest" prove "$work/mine.cu" --state "$work/state" --only oracle > "$work/log" 2>&1
    grep -q 'INCONCLUSIVE.*nothing was run' "$work/log"
    result $? "without a GPU the oracle gate is inconclusive"

    # Tools are found beside the program and beside nvcc, and not in the folder that the program was started in.
    PATH=$path "$BUILD/attest" prove "$work/mine.cu" --state "$work/state" --only build > "$work/log" 2>&1
    grep -q 'nothing spilled' "$work/log"
    result $? "cuobjdump is found beside the program, where scripts/cuda_tools.sh puts it"
    mkdir "$work/elsewhere" "$work/kit"
    cp "$BUILD/attest" "$work/elsewhere/attest"
    printf '#!/bin/sh\ntouch "%s"\nexec false\n' "$work/taken" > "$work/elsewhere/cuobjdump"
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$(command -v nvcc || ls /usr/local/cuda*/bin/nvcc | head -n 1)" > "$work/kit/nvcc"
    chmod +x "$work/elsewhere/cuobjdump" "$work/kit/nvcc"
    if ! PATH=$path command -v cuobjdump > /dev/null && ! ls /usr/local/cuda*/bin/cuobjdump > /dev/null 2>&1; then
        (cd "$work/elsewhere" && PATH=.::$path ./attest prove "$work/mine.cu" --state "$work/state" --only build > "$work/log" 2>&1)
        grep -q "INCONCLUSIVE.*'scripts/cuda_tools.sh $work/elsewhere/cuda-tools' gets it" "$work/log" && [ ! -e "$work/taken" ]
        result $? "where it is not, a command is named that gets it; one in the working folder is not run"
        lister=$PWD/$BUILD/cuda-tools/bin/cuobjdump
    else
        lister=$(command -v cuobjdump || ls /usr/local/cuda*/bin/cuobjdump | head -n 1)
    fi
    printf '#!/bin/sh\ntouch "%s"\nexec "%s" "$@"\n' "$work/used" "$lister" > "$work/kit/cuobjdump"
    chmod +x "$work/kit/cuobjdump"
    PATH=/usr/bin:/bin ATTEST_NVCC="$work/kit/nvcc" "$work/elsewhere/attest" prove "$work/mine.cu" --state "$work/state" --only build \
        > "$work/log" 2>&1
    grep -q 'nothing spilled' "$work/log" && [ -e "$work/used" ]
    result $? "cuobjdump is found beside nvcc"

    sed -i 's/shared    = 4/shared    = 8/' "$work/mine.cu"
    "$BUILD/attest" prove "$work/mine.cu" --state "$work/state" --only build > "$work/log" 2>&1
    [ $? = 1 ] && grep -q 'the manifest predicts' "$work/log"
    result $? "a wrong prediction fails, with exit status 1"
else
    skip "attest new --cuda and attest prove --only build" "nvcc is not here; install the CUDA toolkit to run this"
fi
finish
