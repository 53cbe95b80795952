/*
 * tensor_core.cpp - see tensor_core.h. Compiled apart from the kernels, once and for speed: most of their time would go here.
 */
#include "tensor_core.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace emulation
{
constexpr int NOTHING = -10000;    /* the exponent of 0 */
constexpr int INFINITE = 1024;     /* the exponent of infinity and NaN */
constexpr int LEAST = NOTHING / 2; /* the exponent of a product is below this if a factor is 0 */
constexpr int AT_ONCE = 64;        /* columns */

static int exponent_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value == 0 ? NOTHING : (int)(bits >> 52 & 0x7ff) - 1023; /* no 16-bit element or float is denormal as a double */
}

static double power_of_2(int exponent)
{
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float cut_to_float(double value)
{
    float rounded = (float)value;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    bits -= std::fabs((double)rounded) > std::fabs(value) && (bits & 0x7fffffff) != 0x7f800000;
    memcpy(&rounded, &bits, sizeof bits);
    return rounded;
}

struct Cutting {
    int bits;    /* that are kept below the largest exponent; 0: all of them, and the sum is rounded to the nearest */
    int at_once; /* products that are summed */
};

static const Cutting &cutting()
{
    static const Cutting chosen = [] {
        Cutting cut = {FRACTION, STEP};
        if (const char *asked = getenv("EMULATED_SUMS"))
            if (sscanf(asked, "%d/%d", &cut.bits, &cut.at_once) < 1)
                cut.bits = 0;
        return cut;
    }();
    return chosen;
}

/* Some columns of B, beside each other, so that a CPU can compute several of them at once. */
struct Columns {
    int count;
    bool finite;
    double value[STEP][AT_ONCE];
    int exponent[STEP][AT_ONCE];
};

static void columns_get(Columns &columns, const Matrices &matrices, int first, int count)
{
    int most = 0;
    columns.count = count;
    for (int k = 0; k < STEP; k++)
        for (int n = 0; n < count; n++) {
            columns.value[k][n] = (double)matrices.b[k][first + n];
            columns.exponent[k][n] = exponent_of(columns.value[k][n]);
            most = columns.exponent[k][n] > most ? columns.exponent[k][n] : most;
        }
    columns.finite = most < INFINITE;
}

/* Adds products k to k_end, where all is finite. */
static void add_cut(const double *row, const Columns &columns, int k, int k_end, float *c)
{
    const int count = columns.count, kept = cutting().bits;
    int top[AT_ONCE];
    double scale[AT_ONCE], sum[AT_ONCE];
    for (int n = 0; n < count; n++)
        top[n] = exponent_of((double)c[n]);
    for (int i = k; i < k_end; i++) {
        const int exponent = exponent_of(row[i]);
        for (int n = 0; n < count; n++) {
            int of_product = exponent + columns.exponent[i][n];
            top[n] = of_product > top[n] ? of_product : top[n];
        }
    }
    for (int n = 0; n < count; n++) {
        scale[n] = top[n] <= LEAST ? 0 : power_of_2(kept - top[n]);
        sum[n] = std::trunc((double)c[n] * scale[n]);
    }
    for (int i = k; i < k_end; i++)
        for (int n = 0; n < count; n++)
            sum[n] += std::trunc(row[i] * columns.value[i][n] * scale[n]); /* whole numbers: the sum is exact */
    for (int n = 0; n < count; n++)
        c[n] = top[n] <= LEAST ? c[n] : cut_to_float(sum[n] * power_of_2(top[n] - kept));
}

/* One column. */
static float add_exactly(const double *row, const Columns &columns, float c)
{
    double sum = (double)c;
    for (int k = 0; k < STEP; k++)
        sum += row[k] * columns.value[k][0];
    return (float)sum;
}

static bool row_is_finite(const double *row, const float *c, int count)
{
    bool finite = true;
    for (int k = 0; k < STEP; k++)
        finite = finite && exponent_of(row[k]) < INFINITE;
    for (int n = 0; n < count; n++)
        finite = finite && exponent_of((double)c[n]) < INFINITE;
    return finite;
}

/* One row times these columns. Where something is not finite, columns are computed one by one: the others are cut all the same. */
static void add_row(const float *a, const Matrices &matrices, const Columns &columns, int first, float *c)
{
    const Cutting &cut = cutting();
    double row[STEP];
    std::copy(a, a + STEP, row);
    if (cut.bits && columns.finite && row_is_finite(row, c, columns.count)) {
        for (int k = 0; k < STEP; k += cut.at_once)
            add_cut(row, columns, k, k + cut.at_once, c);
    } else if (columns.count == 1) {
        *c = add_exactly(row, columns, *c);
    } else {
        for (int n = 0; n < columns.count; n++) {
            Columns one;
            columns_get(one, matrices, first + n, 1);
            add_row(a, matrices, one, first + n, c + n);
        }
    }
}

#if defined(__x86_64__)
__attribute__((flatten, target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
static void
multiply_rows(Matrices &matrices, int columns)
{
    for (int first = 0; first < columns; first += AT_ONCE) {
        Columns some;
        columns_get(some, matrices, first, columns - first < AT_ONCE ? columns - first : AT_ONCE);
        for (int row = 0; row < ROWS_AT_ONCE; row++)
            add_row(matrices.a[row], matrices, some, first, &matrices.c[row][first]);
    }
}

void multiply_add(Matrices &matrices, int columns)
{
    multiply_rows(matrices, columns);
}
} // namespace emulation
