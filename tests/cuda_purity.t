#!/bin/sh
# A CUDA kernel is a function of its arguments: the rules on machine code, sources and PTX.
exec "${BUILD:-build}/tests/tool/test_cuda_purity"
