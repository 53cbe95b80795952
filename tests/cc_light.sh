#!/bin/sh
# A compiler for sanitizer builds, which would take minutes at -O3: CC='sh tests/cc_light.sh gcc'. It lowers -O3 to -O1, and with
# ATTEST_PLAIN_KERNELS set it leaves the sanitizers out of the kernel files.
plain=
for word in "$@"; do
    case $word in lib/cpu/cpu_fwd_*) plain=${ATTEST_PLAIN_KERNELS:-} ;; esac
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
