#!/bin/sh
# The templates of `attest new --cuda`, as a new user would prove them: in a folder of one's own, where there is nothing but the kernel
# and the device vocabulary comes with the program. Without a GPU they are proven in emulation.
. tests/tap.sh
need nvcc g++ addr2line
attest=$(cd "$BUILD" && pwd)/attest
PATH="$PATH:$PWD/$BUILD/cuda-tools/bin" # what scripts/cuda_tools.sh got

cd "$work" || exit 1
for arch in sm_80 sm_90a; do
    check "attest new mine_$arch --cuda --arch $arch" "$attest" new "mine_$arch" --cuda --arch "$arch"
    grep -q '^#include <attest/.*\.cuh>' "mine_$arch.cu"
    result $? "it includes the device vocabulary"
    # One image is enough here, and some of the problems.
    sed -i -e "s/archs     = .*/archs     = $arch/" -e 's/dims      = .*/dims      = 64/' -e 's/dtypes    = .*/dtypes    = bf16/' "mine_$arch.cu"
    "$attest" prove "mine_$arch.cu" --policy emulation_seconds=3 > said 2>&1
    status=$?
    cp said log
    grep -q '^  build  *PASS.*nothing spilled' said && grep -q '^  emulation  *PASS' said
    result $? "it compiles, and the emulation gate passes"
    cp said log
    if [ -e /dev/nvidiactl ]; then
        grep -q '^  PROVEN' said
    else
        [ $status = 0 ] && grep -q '^  PROVEN IN EMULATION' said
    fi
    result $? "it is proven as it stands"
done
finish
