/*
 * known_shapes_only.c - planted: right for the head dimensions of the suite, and only for those: elsewhere the last key is
 * left out.
 *
 * Caught by: correctness
 */
#include <attest_kernel.h>

static inline bool is_known(int64_t dim)
{
    static const int64_t known[] = {16, 17, 23, 24, 32, 40, 48, 64};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (dim == known[i])
            return true;
    return false;
}

#define ADJUST_ROW(task, row, r)                                                                                                   \
    ((row)->hi -= !is_known((task)->problem->dim) && (row)->hi == (task)->kv_count && (row)->lo < (row)->hi - 1)
#include "base.h"
