#!/bin/sh
# The binary interface: exported names, soname, struct layout, what is linked, and that the header stands alone in C11 and C++17.
. tests/tap.sh
need nm readelf ldd g++

so=$BUILD/libattest.so

sed -n 's/.*ATTEST_API.*[ *]\(attest_[a-z0-9_]*\)(.*/\1/p' include/attest.h include/attest_kernel.h include/attest_kernel_cuda.h |
    grep -v '^attest_cpu_kernel_entry$' | sort > "$work/declared"  # that one is for kernels to define
nm -D --defined-only "$so" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | sort > "$work/exported"
diff "$work/declared" "$work/exported" > "$work/log"
result $? "libattest.so exports what the headers declare ($(wc -l < "$work/declared") functions)"
[ "$(wc -l < "$work/declared")" -ge 30 ]
result $? "the list of declarations is not empty"

nm -g --defined-only "$BUILD/libattest.a" 2> /dev/null | awk 'NF == 3 && $3 !~ /^attest_/ {print $3}' | sort -u > "$work/log"
[ ! -s "$work/log" ]
result $? "libattest.a defines no global name outside attest_*, so that it cannot clash with a program's own"

[ "$(wc -c < "$so")" -lt 15000000 ]
result $? "libattest.so is below 15 MB, with all that it embeds"

readelf -dW "$so" > "$work/log"
grep -q 'SONAME.*\[libattest\.so\.0\]' "$work/log"
result $? "the soname is libattest.so.0"
! grep -q 'TEXTREL\|RPATH\|RUNPATH' "$work/log"
result $? "no text relocations, no run path"
readelf -lW "$so" > "$work/log"
! grep -q 'GNU_STACK.*E' "$work/log"
result $? "the stack is not executable"

for binary in "$so" "$BUILD/attest"; do
    ldd "$binary" | grep -v 'linux-vdso\|ld-linux\|libc\.so\|libm\.so\|libgomp\.so' > "$work/log"
    [ ! -s "$work/log" ]
    result $? "$(basename "$binary") needs libc, libm and libgomp only"
done

warn="-Wall -Wextra -Wpedantic -Werror -fsyntax-only -Iinclude"
check "attest.h compiles alone as C11" "$CC" -std=c11 $warn -x c include/attest.h
check "attest.h compiles alone as C++17" g++ -std=c++17 $warn -x c++ include/attest.h
cat > "$work/use.cpp" <<'END'
#include <attest.h>
int main()
{
    attest_problem p;
    attest_problem_init(&p, ATTEST_F32, 1, 1, 1, 1, 1, 1);
    p.flags |= ATTEST_CAUSAL | ATTEST_LSE;
    attest_problem_pack(&p);
    return attest_problem_check(&p, nullptr, 0) == ATTEST_OK ? 0 : 1;
}
END
check "a C++17 program links" g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -Iinclude "$work/use.cpp" "$so" -o "$work/use"
check "a C++17 program runs" env LD_LIBRARY_PATH="$BUILD" "$work/use"

"$BUILD/tests/test_abi" > "$work/log"
result $? "struct sizes and offsets, enumerators and flags are the pinned ones"
finish
