#!/bin/sh
# attest new: what it writes compiles and is proven as it stands, away from the source tree; what it refuses, and how.
. tests/tap.sh
attest=$(cd "$BUILD" && pwd)/attest
root=$(pwd)

cd "$work" || exit 1
check_exit 0 "attest new my_kernel --cpu" "$attest" new my_kernel --cpu
[ -s my_kernel.c ] && grep -q 'prove my_kernel.c' out
result $? "it writes my_kernel.c and says how to prove it"
sed 's/\bkernel_cpu\b/my_kernel/g' "$root/templates/kernel_cpu.c" | cmp - my_kernel.c > log 2>&1
result $? "which is the template under another name"
# written ARCH SOURCE: what new writes with --arch is this source under another name.
written() {
    check_exit 0 "attest new cuda_$1 --cuda --arch $1 --out" "$attest" new "cuda_$1" --cuda --arch "$1" --out "$work"
    sed "s/\b$(basename "$2" .cu)\b/cuda_$1/g" "$root/$2" | cmp - "cuda_$1.cu" > log 2>&1
    result $? "cuda_$1.cu is $2 under another name"
}
written any lib/cuda/kernels/cuda_fwd_scalar.cu
written sm_80 templates/kernel_cuda_sm80.cu
written sm_90a templates/kernel_cuda_sm90.cu
check_exit 0 "attest new other --cuda" "$attest" new other --cuda
sed 's/\bcuda_sm_80\b/other/g' cuda_sm_80.cu | cmp - other.cu > log 2>&1
result $? "without --arch it is that for sm_80"
check_exit 0 "--json" "$attest" new third --cpu --json
grep -q '"wrote": "third.c"' out
result $? "names the file"

# refused WORD ARGUMENTS...: exit 2, the word in what stderr says, and no file.
refused() {
    word=$1
    shift
    ls > before
    check_exit 2 "exit 2: attest new $*" "$attest" new "$@"
    ls > after
    cat err > log
    grep -q -e "$word" err && cmp -s before after
    result $? "stderr names '$word', and nothing is written"
}
touch before after log out err
refused 'there already' my_kernel --cpu
refused 'one NAME' --cpu
refused 'one NAME' one two --cpu
refused -- fourth
refused 'not both' fourth --cpu --cuda
refused 'for CUDA kernels' fourth --cpu --arch sm_80
refused 'no template for --arch sm_70' fourth --cuda --arch sm_70
refused 'cannot be the name' 4th --cpu
refused 'cannot be the name' '' --cpu
refused 'cannot be the name' 'a b' --cpu
refused 'cannot be the name' a/b --cpu
refused 'cannot be the name' a-b --cuda
refused 'cannot be the name' ../up --cpu
refused 'cannot be the name' aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggggg --cpu
refused 'kernel of the library' cpu_fwd_f32_scalar --cpu
refused 'no/such' fourth --cpu --out "$work/no/such"
cmp -s my_kernel.c third.c
[ $? = 1 ] && sed 's/\bthird\b/my_kernel/g' third.c | cmp -s - my_kernel.c
result $? "a file that is there is left alone"

# What docs/prove.md quotes of the template is there.
sed -n '/^Take these two lines/,/^The stages/p' "$root/docs/prove.md" | grep -A1 'for (int64_t d' | sed 's/^    //' > quoted
sed 's/^    //' my_kernel.c | grep -F -A1 -x -f quoted | grep -q 'o\[d\] \*= decay;' && [ -s quoted ]
result $? "the lines that docs/prove.md takes out are in it"
grep -q 'attest-flags: -fno-math-errno$' my_kernel.c && grep -q '\.needs = "",' my_kernel.c
result $? "and so are those that it changes"

# As a new user would: in a folder of one's own, where there is nothing but the kernel.
mkdir mine && cp my_kernel.c mine/ && cd mine || exit 1
check_exit 0 "attest prove my_kernel.c" "$attest" prove my_kernel.c --suite "$root/mutants/suite.txt" \
    --timed "$root/mutants/timed.txt" --simulate-clock a=1,b=1,noise=0.004,seed=7 --policy cover_rows=300,large_rounds=0
grep -q PROVEN "$work/out"
result $? "is PROVEN as it stands"
! grep -v '^ *speed' "$work/out" | grep -qE ' (FAIL|INCONCLUSIVE) '
result $? "and no gate but speed says FAIL or INCONCLUSIVE"
finish
