#!/bin/sh
# The machine code of the kernels with wgmma: no register is written while a product still reads it. Needs cuobjdump, and no GPU.
exec "${BUILD:-build}/tests/tool/test_listing"
