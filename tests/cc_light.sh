#!/bin/sh
# A compiler for sanitizer builds, which would take minutes at -O3: CC='sh tests/cc_light.sh gcc'. It lowers -O3 to -O1, and leaves the
# sanitizers out of the kernel files that ATTEST_PLAIN_KERNELS lists (avx2 amx; or all).
plain=
for word in "$@"; do
    case $word in
    lib/cpu/cpu_fwd_*.c)
        kernel=${word#lib/cpu/cpu_fwd_}
        case " ${ATTEST_PLAIN_KERNELS:-} " in *" all "* | *" ${kernel%.c} "*) plain=1 ;; esac
        ;;
    esac
done
for word in "$@"; do
    shift
    case $word in
    -O3) word=-O1 ;;
    -fsanitize=* | -fno-sanitize-recover=*) [ -z "$plain" ] || continue ;;
    esac
    set -- "$@" "$word"
done
exec "$@"
