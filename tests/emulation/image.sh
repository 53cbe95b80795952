#!/bin/sh
# image.sh KERNEL.cu DTYPE FOLDER: compiles a kernel for the emulated device to FOLDER/image.so, as tool/gates/cuda_emulation.c does,
# with the driver beside it. From the root of the repository, after make; tests/emulated_instructions.t runs it.
set -eu
kernel=$1 dtype=$2 folder=$3
BUILD=${BUILD:-build}
[ -f "$folder/libcuda.so.1" ] || cp "$BUILD/obj/emulated_cuda.so" "$folder/libcuda.so.1"
[ -x "$folder/rewritten" ] || ${CC:-gcc} -std=c11 -D_GNU_SOURCE -O1 -Itool tests/emulation/rewritten.c "$BUILD/obj/tool/emulation/rewrite.o" -o "$folder/rewritten"
g++ -std=c++17 -E -D__CUDACC__=1 -D__NVCC__=1 -D__CUDA_ARCH__=900 -D__CUDA_ARCH_FEAT_SM90_ALL=1 -DATTEST_DTYPE="$dtype" -DATTEST_DIM=128 -DATTEST_TILE_Q=64 \
    -DATTEST_TILE_KV=128 -DATTEST_STAGES=1 -DATTEST_THREADS=128 -Itool/emulation/device -Iinclude -Iinclude/attest -include emulated_device.h -x c++ "$kernel" |
    "$folder/rewritten" > "$folder/image.cpp"
g++ -std=c++17 -O1 -g1 -w -fPIC -fno-threadsafe-statics -fno-strict-aliasing -fsanitize=thread -fsanitize=bounds \
    --param=tsan-distinguish-volatile=1 --param=tsan-instrument-func-entry-exit=0 -c "$folder/image.cpp" -o "$folder/image.o"
g++ -shared -o "$folder/image.so" "$folder/image.o" "$folder/libcuda.so.1"
