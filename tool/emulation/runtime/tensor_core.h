/*
 * tensor_core.h - what tensor cores do with 16-bit elements, for the emulation: the product of a step of 16, added to float32.
 *
 * Products are exact. They and the accumulator are brought to the largest exponent among them, cut off (toward zero) FRACTION bits
 * below it, summed exactly, and the sum is cut off to float32. That is what published measurements of an H100 say of every step of
 * 16; it has not been measured here. With EMULATED_SUMS=nearest in the environment sums are exact and rounded to the nearest
 * instead; with EMULATED_SUMS=24/8 fewer bits are kept, and 8 products are summed at a time, as older ones do: to tell what the
 * cutting does.
 */
#ifndef EMULATED_TENSOR_CORE_H
#define EMULATED_TENSOR_CORE_H

namespace emulation
{
constexpr int STEP = 16, FRACTION = 25, ROWS_AT_ONCE = 16, MOST_COLUMNS = 256;

struct Matrices {
    float a[ROWS_AT_ONCE][STEP], b[STEP][MOST_COLUMNS]; /* numbers that are 16-bit elements */
    float c[ROWS_AT_ONCE][MOST_COLUMNS];
};

/* C += A B, for the first `columns` columns. */
void multiply_add(Matrices &matrices, int columns);
} // namespace emulation

#endif
