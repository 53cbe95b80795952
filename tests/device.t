#!/bin/sh
# Tensors on a device, and workers on a GPU that is made up: what they say of kernels that misbehave there.
. tests/tap.sh

check "the driver that misbehaves compiles" "$CC" -std=c11 -D_GNU_SOURCE -Iinclude -shared -fPIC tests/tool/gpu_misdeeds.c -o "$work/libcuda.so.1"
for test in arrays indexes workers timing; do
    check "test_device: $test" env ATTEST_TEST_MADE_UP=1 LD_LIBRARY_PATH="$work" "$BUILD/tests/tool/test_device" --only $test
done
finish
