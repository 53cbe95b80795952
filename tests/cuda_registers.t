#!/bin/sh
# The machine code of the library's kernels: they are functions of their arguments, and with wgmma no register is written while a product
# still reads it. Needs cuobjdump, and no GPU.
PATH="$PATH:$PWD/${BUILD:-build}/cuda-tools/bin" # what scripts/cuda_tools.sh got
exec "${BUILD:-build}/tests/tool/test_listing"
