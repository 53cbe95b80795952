#!/bin/sh
# A compiler for sanitizer builds, which would take minutes at -O3: CC='sh tests/cc_light.sh gcc'. It lowers -O3 to -O1, and leaves the
# sanitizers out of the kernel files that ATTEST_PLAIN_KERNELS lists (avx2 amx; or all).
#
# To see variables used after their function has returned, gcc 12 puts them in frames that begin at any 32 bytes, and yet stores to them
# with instructions that fault on what is not at 64, where vectors are that wide. Files compiled for those go without this one check.
compiler=$1
plain=
wide=
for word in "$@"; do
    case $word in
    *lib/cpu/cpu_fwd_*.[ci])
        kernel=${word##*lib/cpu/cpu_fwd_}
        case " ${ATTEST_PLAIN_KERNELS:-} " in *" all "* | *" ${kernel%.[ci]} "*) plain=1 ;; esac
        ;;
    -mavx512f) wide=1 ;;
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
case $wide$compiler in 1*gcc*) set -- "$@" --param=asan-use-after-return=0 ;; esac
exec "$@"
