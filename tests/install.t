#!/bin/sh
# An installed copy: files, pkg-config, the examples built against it (shared and static) and run, manual pages, uninstall.
. tests/tap.sh
need pkg-config mandoc

root=$work/root
check "make install DESTDIR= PREFIX=/usr" make BUILD="$BUILD" CC="$CC" install DESTDIR="$root" PREFIX=/usr
[ $failed = 0 ] || finish
for file in bin/attest include/attest.h include/attest_kernel_cuda.h $(ls include/attest/*.cuh) include/attest/flags.def lib/libattest.a lib/libattest.so lib/libattest.so.0 lib/pkgconfig/attest.pc \
    share/man/man1/attest.1 share/man/man3/attest.3; do
    [ -e "$root/usr/$file" ]
    result $? "/usr/$file is there"
done
[ "$(find "$root/usr/include" -type f | wc -l)" = 9 ] && cmp -s "$root/usr/include/attest/ptx.cuh" lib/cuda/kernels/ptx.cuh
result $? "the headers are files of their own, and the vocabulary is that of the library's kernels"
[ "$(readlink "$root/usr/lib/libattest.so")" = libattest.so.0 ]
result $? "libattest.so points to libattest.so.0"
check "the installed program runs" "$root/usr/bin/attest" info

export PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_LIBDIR="$root/usr/lib/pkgconfig"
version=$(sed -n 's/^.define ATTEST_VERSION_[A-Z]* \([0-9]*\)/\1/p' include/attest.h | paste -sd.)
[ "$(pkg-config --modversion attest)" = "$version" ]
result $? "pkg-config knows version $version"
for example in attention decode gpu; do
    check "examples/$example.c builds against the shared library" \
        "$CC" -std=c11 -Wall -Wextra -Werror $(pkg-config --cflags attest) "examples/$example.c" $(pkg-config --libs attest) -lm -o "$work/shared"
    check "and runs" env LD_LIBRARY_PATH="$root/usr/lib" "$work/shared"
    readelf -dW "$work/shared" | grep -q 'NEEDED.*libattest\.so\.0'
    result $? "it needs libattest.so.0"
    static=$(pkg-config --static --libs attest | sed "s| *-lattest| $root/usr/lib/libattest.a|")
    check "examples/$example.c builds against the static library" \
        "$CC" -std=c11 -Wall -Wextra -Werror $(pkg-config --cflags attest) "examples/$example.c" $static -o "$work/static"
    check "and runs" "$work/static"
    ! readelf -dW "$work/static" | grep -q 'NEEDED.*libattest'
    result $? "it needs no libattest.so"
done

for page in docs/attest.1 docs/attest.3; do
    mandoc -T lint -W warning "$page" > "$work/log" 2>&1
    result $? "mandoc has nothing against $page"
done

check "make uninstall" make BUILD="$BUILD" CC="$CC" uninstall DESTDIR="$root" PREFIX=/usr
find "$root" ! -type d > "$work/log"
[ ! -s "$work/log" ]
result $? "nothing is left"
finish
