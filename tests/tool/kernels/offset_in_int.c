/*
 * offset_in_int.c - a kernel that computes the offsets of rows of Q in 32 bits: right until a tensor has more than 2^31 elements. For
 * problems of one head; others it does right.
 */
#define ADJUST_ROW(task, row, r)                                                                                                   \
    if ((task)->problem->heads_q * (task)->problem->batch == 1 && (task)->q_first == 0)                                            \
    (row)->q = attest_element((task)->tensors->q, (int32_t)((uint32_t)(r) * (uint32_t)(task)->problem->stride_q[2]),               \
                              (task)->problem->dtype)
#include "base.h"
