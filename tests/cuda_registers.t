#!/bin/sh
# The machine code of the kernels with wgmma: no register is written while a product still reads it. Needs the images and cuobjdump, no GPU.
. tests/tap.sh
PATH=$PATH:$(ls -d /usr/local/cuda*/bin 2> /dev/null | head -1)
ls "$BUILD"/cuda/*.sm_90a.cubin > /dev/null 2>&1 || { echo "1..0 # SKIP this build has no CUDA kernels: there was no nvcc"; exit 0; }
need python3 cuobjdump

early=tests/data/cuda/wgmma_early.sass
python3 tests/cuda/wgmma_registers.py "$early" > "$work/log"
[ $? = 1 ] && grep -q '1 products from registers, 1 writes too early; 0x70 FFMA R123' "$work/log"
result $? "a write on a path without the wait is seen, and none behind it"
sed 's/@!P0 BRA 0x70/     NOP/' "$early" > "$work/late.sass"
check "with the wait on every path there is none" python3 tests/cuda/wgmma_registers.py "$work/late.sass"

for image in "$BUILD"/cuda/*.sm_90a.cubin; do
    check "$(basename "$image")" python3 tests/cuda/wgmma_registers.py "$image"
done
finish
