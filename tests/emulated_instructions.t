#!/bin/sh
# The instructions of the emulated device are those of the PTX ISA, and misuse is found (tests/emulation).
. tests/tap.sh
need g++

# instructions DTYPE
instructions() {
    tests/emulation/image.sh tests/emulation/instructions.cu "$1" "$work" &&
        LD_LIBRARY_PATH=$work "$work/instructions" "$work/image.so" "$1"
}
cp "$BUILD/obj/emulated_cuda.so" "$work/libcuda.so.1"
check "the tests compile" "$CC" -std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -Iinclude -Itests -Itests/emulation tests/emulation/instructions.c \
    "$BUILD/obj/tests/tap.o" "$BUILD/libattest.a" "$work/libcuda.so.1" -fopenmp -lm -ldl -o "$work/instructions"
check "f16" instructions 2
check "bf16" instructions 3
finish
