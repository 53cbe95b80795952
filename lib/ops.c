/*
 * ops.c - the table of operations, from ops.def.
 */
#include "internal.h"

#include <string.h>

const struct op ops[OPS_END] = {
#define OP(name, word, summary) [ATTEST_OP_##name] = {#word, summary},
#include "ops.def"
#undef OP
};

enum {
#define OP(name, word, summary) +1
    OP_COUNT = 0
#include "ops.def"
#undef OP
};
_Static_assert(OPS_END == OP_COUNT + 1, "operations count from 1, in the order of ops.def");

bool op_find(const char *word, uint32_t *op)
{
    for (uint32_t i = 1; i < OPS_END; i++)
        if (!strcmp(word, ops[i].word)) {
            *op = i;
            return true;
        }
    return false;
}

attest_status attest_op_get(uint32_t op, attest_op_info *info)
{
    attest_op_info own;
    TRY(struct_read(&own, sizeof own, OP_INFO_SIZE_0_1, info, "info", (struct text){0}));
    if (!op_is_known(op))
        return ATTEST_ERROR_ARGUMENT;
    info->name = ops[op].word;
    info->summary = ops[op].summary;
    return ATTEST_OK;
}
