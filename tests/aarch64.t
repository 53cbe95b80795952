#!/bin/sh
# Another architecture: the library and the tests cross-built for aarch64, where only the portable kernels are, and run by qemu.
. tests/tap.sh
need aarch64-linux-gnu-gcc qemu-aarch64

out=$BUILD/aarch64
check "cross build" make -j2 NVCC= BUILD="$out" CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar CFLAGS='-O2 -g1' lib tests
readelf -hW "$out/libattest.so" | grep -q AArch64
result $? "libattest.so is for AArch64"
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
for test in abi convert problem errors merge kernels exhaustive random; do
    check "test_$test --quick" qemu-aarch64 "$out/tests/test_$test" --quick
done
check "test_relations --quick, to the bit" qemu-aarch64 "$out/tests/test_relations" --quick --only 'to the bit'
check "test_determinism --quick, threads" qemu-aarch64 "$out/tests/test_determinism" --quick --only 'threads and runs'
finish
