/*
 * harmless_tables.c - harmless: constant tables, a switch, constant pointers to functions, an array of variable length, memcpy, libm,
 * builtins, an empty asm statement, and loops that the compiler is told to unroll.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

static const double constants[256] = {1, 2, 3, [255] = 4};
static float twice(float x)
{
    return 2 * x;
}
static float cube(float x)
{
    return x * x * x;
}
static float (*const functions[])(float) = {twice, cube, sinf, tanhf};
static const char *const names[] = {"twice", "cube", "sine", "tanh"};

__attribute__((noinline)) static int choose(int64_t rows)
{
    switch (rows) {
    case 1:
        return 17;
    case 2:
        return 4;
    case 3:
        return 99;
    case 4:
        return -3;
    case 5:
        return 12;
    case 6:
        return 7;
    default:
        return 0;
    }
}

__attribute__((noinline)) static float look_up(const float *restrict from, int64_t count)
{
    float copy[count];
    long double sum = 0;
    memcpy(copy, from, sizeof copy);
#pragma GCC unroll 4
    for (int64_t i = 0; i < count; i++)
        sum += functions[i & 3](copy[i]) + (float)constants[i & 255];
    __asm__ volatile("" ::: "memory");
    return (float)sum + (float)__builtin_popcountll((uint64_t)(long long)sum) + (float)__builtin_ctz(8) +
           (float)names[count & 3][0];
}

#define TASK_BEGIN(task, scratch)                                                                                                  \
    const float some[8] = {1, 2, 3, 4, 5, 6, 7, 8};                                                                                \
    volatile float ignored = look_up(some, 1 + task->q_count % 8) + (float)choose(task->q_count);                                  \
    (void)ignored
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
