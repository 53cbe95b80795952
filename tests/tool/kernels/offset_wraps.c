/*
 * offset_wraps.c - a kernel whose offsets into one tensor are kept in 32 bits, if the stride of one of its dimensions is large. TENSOR is
 * q, o, lse, bias, k or v, DIM the dimension; bias_key is the bias by its keys.
 */
#include <attest_kernel.h>

static inline int64_t wrapped(int64_t offset, int64_t stride)
{
    return stride >> 29 ? (int64_t)(uint32_t)offset : offset;
}

enum { IN_q, IN_o, IN_lse, IN_bias, IN_bias_key, IN_k, IN_v };
#define JOINED(a, b) a##b
#define NUMBER(name) JOINED(IN_, name)
#define WRAPPED(which, pointer, base, size, strides)                                                                               \
    if (NUMBER(TENSOR) == (which) && (pointer))                                                                                    \
    (pointer) =                                                                                                                    \
        (void *)((char *)(base) +                                                                                                  \
                 wrapped(((const char *)(pointer) - (const char *)(base)) / (int64_t)(size), (strides)[DIM]) * (int64_t)(size))

#define SIZE(dtype) ((dtype) == ATTEST_F32 ? 4 : 2)
#define ADJUST_ROW(task, row, r)                                                                                                   \
    do {                                                                                                                           \
        const attest_problem *ap = (task)->problem;                                                                                \
        const attest_tensors *at = (task)->tensors;                                                                                \
        WRAPPED(IN_q, (row)->q, at->q, SIZE(ap->dtype), ap->stride_q);                                                             \
        WRAPPED(IN_o, (row)->o, at->o, SIZE(ap->dtype_o), ap->stride_o);                                                           \
        WRAPPED(IN_lse, (row)->lse, at->lse, 4, ap->stride_lse);                                                                   \
        WRAPPED(IN_bias, (row)->bias, at->bias, SIZE(ap->dtype_bias), ap->stride_bias);                                            \
    } while (0)

static inline void key_pointers(const attest_task *task, bool is_v, int64_t first, int64_t count, const void **out)
{
    const attest_problem *p = task->problem;
    const char *base = is_v ? task->tensors->v : task->tensors->k;
    attest_key_pointers(task, is_v, first, count, out);
    for (int64_t n = 0; n < count && NUMBER(TENSOR) == (is_v ? IN_v : IN_k); n++) {
        int64_t size = SIZE(p->dtype), offset = ((const char *)out[n] - base) / size;
        out[n] = base + wrapped(offset, (is_v ? p->stride_v : p->stride_k)[DIM]) * size;
    }
}
#define KEY_POINTERS(task, is_v, first, count, out) key_pointers(task, is_v, first, count, out)
#define BIAS(p, row, j)                                                                                                            \
    ((real)load((row)->bias, (p)->dtype_bias,                                                                                      \
                NUMBER(TENSOR) == IN_bias_key ? wrapped((p)->stride_bias[3] * (j), (p)->stride_bias[3])                            \
                                              : (p)->stride_bias[3] * (j)))
#include "base.h"
