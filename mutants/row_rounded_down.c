/*
 * row_rounded_down.c - planted: rows of Q are taken to begin at multiples of 16 bytes, which a row pitch or an offset view
 * can break.
 *
 * Caught by: oracle or determinism: the places of tensors are drawn
 */
#define ADJUST_ROW(task, row, r) ((row)->q = (const void *)((uintptr_t)(row)->q & ~(uintptr_t)15))
#define DTYPES                   ATTEST_TAKES_F32
#include "base.h"
