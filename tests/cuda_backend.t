#!/bin/sh
# The CUDA backend. First without a GPU: with a driver that is made up, which writes down what it is told; with drivers that fail; and
# our declarations of the driver's interface against NVIDIA's own. Then on a real GPU, where there is one.
. tests/tap.sh

mkdir "$work/fake" "$work/old" "$work/hollow" "$work/still"
warn="-std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror -Iinclude"
check "build the driver" "$CC" $warn -shared -fPIC tests/cuda/fake_driver.c -o "$work/fake/libcuda.so.1" -lpthread
# One that lacks a function, and one that lacks two which old drivers do lack.
check "build an old one" "$CC" $warn -shared -fPIC -DcuGraphInstantiateWithFlags=cuGone tests/cuda/fake_driver.c -o "$work/old/libcuda.so.1"
check "build one without the newest functions" "$CC" $warn -shared -fPIC -DcuLaunchKernelEx=cuGone1 -DcuTensorMapEncodeTiled=cuGone2 -DcuTensorMapReplaceAddress=cuGone4 -DcuOccupancyMaxActiveClusters=cuGone3 \
    tests/cuda/fake_driver.c -o "$work/hollow/libcuda.so.1"
check "build one that cannot move tensor maps" "$CC" $warn -shared -fPIC -DcuTensorMapReplaceAddress=cuGone tests/cuda/fake_driver.c \
    -o "$work/still/libcuda.so.1"

# says NAME SENTENCE COMMAND...: the first line of what the command prints, and that `auto` then is the CPU.
says() {
    name=$1 sentence=$2
    shift 2
    "$@" "$BUILD/tests/test_cuda_calls" --device > "$work/log" 2>&1
    [ "$(head -n 1 "$work/log")" = "$sentence" ] && [ "$(tail -n 1 "$work/log")" = "auto: cpu" ]
    result $? "$name: $sentence"
}
if [ -e /dev/nvidiactl ] || ldconfig -p 2> /dev/null | grep -q 'libcuda\.so\.1'; then
    number=$((number + 1))
    echo "ok $number - no driver # SKIP there is one here"
else
    says "no driver" "unavailable: there is no NVIDIA driver here: libcuda.so.1 was not found" env
fi
says "no GPU" "unavailable: there is an NVIDIA driver here, but no GPU that it knows" env LD_LIBRARY_PATH="$work/fake" FAKE_CUDA=nodevice
says "a driver that does not start" \
    "unavailable: the NVIDIA driver could not be started: something made up (CUDA_ERROR_FAKE, CUDA error 803)" \
    env LD_LIBRARY_PATH="$work/fake" FAKE_CUDA=init=803
says "an old driver" "unavailable: the NVIDIA driver is too old: its libcuda.so.1 lacks cuGraphInstantiateWithFlags" \
    env LD_LIBRARY_PATH="$work/old"

# TAP NAME COMMAND...: a TAP program as one test.
tap() {
    name=$1
    shift
    "$@" > "$work/log" 2>&1
    status=$?
    if skip=$(sed -n 's/^1\.\.0 # SKIP //p' "$work/log") && [ -n "$skip" ] && [ $status = 0 ]; then
        number=$((number + 1))
        echo "ok $number - $name # SKIP $skip"
        return
    fi
    grep '^ok\|^# cuda\|^# NVIDIA' "$work/log" | sed 's/^/# /'
    grep -v '^ok' "$work/log" > "$work/rest"
    mv "$work/rest" "$work/log"
    [ $status = 0 ]
    result $? "$name"
}
for part in plans tiles calls threads; do
    tap "$part with a driver that is made up" env LD_LIBRARY_PATH="$work/fake" "$BUILD/tests/test_cuda_$part"
done
tap "calls with one that has no early launches and no tensor maps" \
    env LD_LIBRARY_PATH="$work/hollow" "$BUILD/tests/test_cuda_calls" --only runs

tap "tensor maps with one that cannot move them" \
    env LD_LIBRARY_PATH="$work/still" FAKE_CUDA_CANNOT_MOVE=1 "$BUILD/tests/test_cuda_plans" --only maps

check "build a kernel with two pairs of tiles to explain" "$CC" $warn -Ilib tests/cuda/explained_tiles.c $(find "$BUILD/obj/lib" -name '*.o') \
    $(ls "$BUILD/obj/cuda_images.o" 2> /dev/null) -fopenmp -lm -o "$work/explained_tiles"
check "which tiles were chosen, and why, is explained" env LD_LIBRARY_PATH="$work/fake" "$work/explained_tiles"

nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2> /dev/null)
if [ -n "$nvcc" ]; then
    check "what we say of the driver's interface is what cuda.h says" \
        "$CC" -std=c11 -Wall -Wextra -Werror -I"$(dirname "$nvcc")/../include" -fsyntax-only tests/cuda/driver_check.c
else
    number=$((number + 1))
    echo "ok $number - what we say of the driver's interface # SKIP cuda.h is not here"
fi

tap "the backend on a GPU" "$BUILD/tests/test_gpu"
finish
