#!/bin/sh
# headers.sh FOLDER: the headers of kernels for the emulation, into FOLDER. Three conversions that are PTX become those of the library.
set -eu
mkdir -p "$1"
cp include/attest.h "$1/"
sed -e 's/asm("cvt\.f32\.f16 .*/value = attest_f16_to_float(half);/' \
    -e 's/asm("cvt\.rn\.f16\.f32 .*/half = attest_f16_from_float(value);/' \
    -e 's/asm("cvt\.rn\.bf16\.f32 .*/bits = attest_bf16_from_float(value);/' include/attest_kernel_cuda.h > "$1/attest_kernel_cuda.h"
