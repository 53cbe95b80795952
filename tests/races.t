#!/bin/sh
# Data races: clang's ThreadSanitizer with libomp, whose synchronisation libarcher explains to it. A program with a race in it is
# built first: if the sanitizer does not find that one, its silence about the library would prove nothing.
. tests/tap.sh
need clang-14

archer=/usr/lib/llvm-14/lib/libarcher.so
[ -e "$archer" ]
result $? "libarcher is there (libomp-14-dev)"
export OMP_TOOL_LIBRARIES="$archer" TSAN_OPTIONS=ignore_noninstrumented_modules=1:exitcode=66
flags='-O1 -g1 -fsanitize=thread'

cat > "$work/race.c" <<'END'
int main(int argc, char **argv)
{
    int sum = 0;
    (void)argv;
#pragma omp parallel for num_threads(4)
    for (int n = 0; n < 1000; n++) {
        if (argc > 1) {
            sum += n; /* the race */
        } else {
#pragma omp atomic
            sum += n;
        }
    }
    return sum == 1 ? 1 : 0;
}
END
check "build a program that can race" clang-14 $flags -fopenmp "$work/race.c" -o "$work/race"
check_exit 0 "without the race nothing is reported" "$work/race"
check_exit 66 "with the race it is reported" "$work/race" race

out=$BUILD/tsan
check "build with -fsanitize=thread" make -j2 NVCC= BUILD="$out" CC='sh tests/cc_light.sh clang-14' WERROR= CFLAGS="$flags" "$out/tests/test_threads" "$out/tests/test_determinism" \
    "$out/tests/test_cuda_threads"
for test in 'shared plan' questions 'inside OpenMP'; do
    check "test_threads: $test" "$out/tests/test_threads" --quick --only "$test"
done
check "build a driver that is made up" "$CC" -std=c11 -D_GNU_SOURCE -Iinclude -shared -fPIC tests/cuda/fake_driver.c -o "$work/libcuda.so.1"
check "test_cuda_threads" env LD_LIBRARY_PATH="$work" "$out/tests/test_cuda_threads"
check "test_determinism: threads" "$out/tests/test_determinism" --quick --only 'threads and runs'
finish
