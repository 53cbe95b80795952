# shellcheck shell=sh
# mutant.sh - for tests of kernels in emulation: bugs that are planted in a kernel of the library, or in sample_sm90.cu. $kernel is the
# source, $arch, $dtype and $dim are what it is compiled for.

# mutant FILE WORDS SED PROBLEM [SEED]: a bug planted in a file of the kernel is seen.
# shellcheck disable=SC2154
mutant() {
    mkdir -p "$work/planted"
    cp lib/cuda/kernels/*.cu lib/cuda/kernels/*.cuh tests/cuda/sample_sm90.cu "$work/planted/"
    sed -i "$3" "$work/planted/$1"
    ! cmp -s "$work/planted/$1" "lib/cuda/kernels/$1" && ! cmp -s "$work/planted/$1" "tests/cuda/$1"
    result $? "$2 is planted"
    EMULATED_CXXFLAGS=-O0 EMULATED_BUILD="$work/mutant" check "it compiles" \
        tests/cuda/emulate.sh "$work/planted/$kernel" "$arch" "${dtype:-f16}" "${dim:-64}"
    EMULATED_PROBLEMS=$4 check "and is seen" seen "${5:-1}"
}

# It ends with 1 because a case was wrong, or the emulation stopped: not because the problem could not be read.
seen() {
    got=0
    "$work/mutant" --seed "$1" > "$work/said" 2>&1 || got=$?
    cat "$work/said"
    [ "$got" = 1 ] && grep -q -e "^emulation: " -e "--case '" "$work/said"
}
