/*
 * The ABI as numbers: sizes, offsets, enumerators and flags that a program compiled yesterday relies on. A change here is a
 * change of the interface; fields may only be appended.
 */
#include "tap.h"

#include <attest.h>

#include <stddef.h>
#include <string.h>

struct field {
    const char *name;
    size_t offset, want, size;
};
#define FIELD(type, member, want)                                                                                                  \
    {                                                                                                                              \
#type "." #member, offsetof(type, member), want, sizeof(((type *)0)->member)                                               \
    }

/* Offsets are as pinned, and the fields fill the struct without a gap. */
static void check_struct(const char *name, const struct field *fields, size_t count, size_t size, size_t want_size)
{
    size_t next = 0;
    for (size_t n = 0; n < count; n++) {
        tap_check(fields[n].offset == fields[n].want, "%s is at %zu, not %zu", fields[n].name, fields[n].offset, fields[n].want);
        tap_check(fields[n].offset == next, "there is a gap before %s", fields[n].name);
        next = fields[n].offset + fields[n].size;
    }
    tap_check(next == size, "%s has padding or a field this table lacks: the fields end at %zu of %zu", name, next, size);
    tap_check(size == want_size, "%s is %zu bytes, not %zu", name, size, want_size);
}
#define CHECK(type, fields, want) check_struct(#type, fields, sizeof fields / sizeof *fields, sizeof(type), want)

static void structs(void)
{
    static const struct field problem[] = {
        FIELD(attest_problem, size, 0),
        FIELD(attest_problem, flags, 8),
        FIELD(attest_problem, op, 16),
        FIELD(attest_problem, dtype, 20),
        FIELD(attest_problem, dtype_o, 24),
        FIELD(attest_problem, dtype_bias, 28),
        FIELD(attest_problem, batch, 32),
        FIELD(attest_problem, heads_q, 40),
        FIELD(attest_problem, heads_kv, 48),
        FIELD(attest_problem, seq_q, 56),
        FIELD(attest_problem, seq_kv, 64),
        FIELD(attest_problem, dim, 72),
        FIELD(attest_problem, dim_v, 80),
        FIELD(attest_problem, total_q, 88),
        FIELD(attest_problem, total_kv, 96),
        FIELD(attest_problem, page_size, 104),
        FIELD(attest_problem, page_count, 112),
        FIELD(attest_problem, window_left, 120),
        FIELD(attest_problem, window_right, 128),
        FIELD(attest_problem, scale, 136),
        FIELD(attest_problem, softcap, 140),
        FIELD(attest_problem, stride_q, 144),
        FIELD(attest_problem, stride_k, 168),
        FIELD(attest_problem, stride_v, 192),
        FIELD(attest_problem, stride_o, 216),
        FIELD(attest_problem, stride_lse, 240),
        FIELD(attest_problem, stride_bias, 264),
        FIELD(attest_problem, stride_page_table, 296),
        FIELD(attest_problem, stride_mask, 304),
        FIELD(attest_problem, stride_alibi_slopes, 336),
    };
    static const struct field tensors[] = {
        FIELD(attest_tensors, size, 0),
        FIELD(attest_tensors, q, 8),
        FIELD(attest_tensors, k, 16),
        FIELD(attest_tensors, v, 24),
        FIELD(attest_tensors, o, 32),
        FIELD(attest_tensors, lse, 40),
        FIELD(attest_tensors, bias, 48),
        FIELD(attest_tensors, alibi_slopes, 56),
        FIELD(attest_tensors, sinks, 64),
        FIELD(attest_tensors, cu_seqlens_q, 72),
        FIELD(attest_tensors, cu_seqlens_kv, 80),
        FIELD(attest_tensors, kv_lengths, 88),
        FIELD(attest_tensors, page_table, 96),
        FIELD(attest_tensors, mask, 104),
        FIELD(attest_tensors, row_offsets, 112),
        FIELD(attest_tensors, kv_starts, 120),
        FIELD(attest_tensors, q_lengths, 128),
    };
    static const struct field info[] = {
        FIELD(attest_kernel_info, size, 0),   FIELD(attest_kernel_info, name, 8),     FIELD(attest_kernel_info, backend, 16),
        FIELD(attest_kernel_info, needs, 24), FIELD(attest_kernel_info, summary, 32), FIELD(attest_kernel_info, candidate, 40),
    };
    static const struct field merge[] = {
        FIELD(attest_merge_args, size, 0),
        FIELD(attest_merge_args, parts, 8),
        FIELD(attest_merge_args, rows, 16),
        FIELD(attest_merge_args, dim_v, 24),
        FIELD(attest_merge_args, dtype_parts, 32),
        FIELD(attest_merge_args, dtype_o, 36),
        FIELD(attest_merge_args, o_parts, 40),
        FIELD(attest_merge_args, lse_parts, 48),
        FIELD(attest_merge_args, stride_o_parts, 56),
        FIELD(attest_merge_args, o, 64),
        FIELD(attest_merge_args, lse, 72),
        FIELD(attest_merge_args, stride_o, 80),
    };
    static const struct field device[] = {
        FIELD(attest_device_info, size, 0),
        FIELD(attest_device_info, memory, 8),
        FIELD(attest_device_info, cache, 16),
        FIELD(attest_device_info, compute, 24),
        FIELD(attest_device_info, multiprocessors, 28),
        FIELD(attest_device_info, shared_block, 32),
        FIELD(attest_device_info, driver, 36),
        FIELD(attest_device_info, device, 40),
        FIELD(attest_device_info, model, 56),
        FIELD(attest_device_info, device_class, 184),
    };
    static const struct field choice[] = {
        FIELD(attest_choice, size, 0),      FIELD(attest_choice, kernel, 8),     FIELD(attest_choice, proven, 16),
        FIELD(attest_choice, status, 24),   FIELD(attest_choice, chosen, 28),    FIELD(attest_choice, proven_here, 32),
        FIELD(attest_choice, reserved, 36), FIELD(attest_choice, workspace, 40), FIELD(attest_choice, how, 48),
        FIELD(attest_choice, reason, 272),
    };
    static const struct field op[] = {
        FIELD(attest_op_info, size, 0),
        FIELD(attest_op_info, name, 8),
        FIELD(attest_op_info, summary, 16),
    };
    static const struct field tensor[] = {
        FIELD(attest_tensor_info, size, 0),           FIELD(attest_tensor_info, name, 8),
        FIELD(attest_tensor_info, offset, 16),        FIELD(attest_tensor_info, flag, 24),
        FIELD(attest_tensor_info, stride_offset, 32), FIELD(attest_tensor_info, stride_count, 40),
        FIELD(attest_tensor_info, role, 44),          FIELD(attest_tensor_info, present, 48),
        FIELD(attest_tensor_info, dtype, 52),         FIELD(attest_tensor_info, element_size, 56),
        FIELD(attest_tensor_info, rank, 60),          FIELD(attest_tensor_info, first_byte, 64),
        FIELD(attest_tensor_info, bytes, 72),         FIELD(attest_tensor_info, shape, 80),
        FIELD(attest_tensor_info, stride, 112),       FIELD(attest_tensor_info, axes, 144),
    };
    CHECK(attest_problem, problem, 344);
    CHECK(attest_tensors, tensors, 136);
    CHECK(attest_kernel_info, info, 48);
    CHECK(attest_merge_args, merge, 88);
    CHECK(attest_device_info, device, 312);
    CHECK(attest_choice, choice, 528);
    CHECK(attest_op_info, op, 24);
    CHECK(attest_tensor_info, tensor, 208);
}

static void numbers(void)
{
    static const struct {
        const char *name;
        uint64_t value, want;
    } table[] = {
#define NUMBER(name, want) {#name, (uint64_t)(name), want}
        NUMBER(ATTEST_OK, 0),
        NUMBER(ATTEST_ERROR_ARGUMENT, 1),
        NUMBER(ATTEST_ERROR_PARSE, 2),
        NUMBER(ATTEST_ERROR_UNSUPPORTED, 3),
        NUMBER(ATTEST_ERROR_UNAVAILABLE, 4),
        NUMBER(ATTEST_ERROR_WORKSPACE, 5),
        NUMBER(ATTEST_ERROR_MEMORY, 6),
        NUMBER(ATTEST_ERROR_INTERNAL, 7),
        NUMBER(ATTEST_ERROR_DEVICE, 8),
        NUMBER(ATTEST_OP_FORWARD, 1),
        NUMBER(ATTEST_F32, 1),
        NUMBER(ATTEST_F16, 2),
        NUMBER(ATTEST_BF16, 3),
        NUMBER(ATTEST_I32, 16),
        NUMBER(ATTEST_U8, 17),
        NUMBER(ATTEST_ROLE_INPUT, 1),
        NUMBER(ATTEST_ROLE_OUTPUT, 2),
        NUMBER(ATTEST_EXACT, 0),
        NUMBER(ATTEST_NAIVE, 1),
        NUMBER(ATTEST_CAUSAL, 0x1),
        NUMBER(ATTEST_BOTTOM_RIGHT, 0x2),
        NUMBER(ATTEST_WINDOW_LEFT, 0x4),
        NUMBER(ATTEST_WINDOW_RIGHT, 0x8),
        NUMBER(ATTEST_SOFTCAP, 0x10),
        NUMBER(ATTEST_ALIBI, 0x20),
        NUMBER(ATTEST_BIAS, 0x40),
        NUMBER(ATTEST_SINK, 0x80),
        NUMBER(ATTEST_LSE, 0x100),
        NUMBER(ATTEST_VARLEN_Q, 0x200),
        NUMBER(ATTEST_VARLEN_KV, 0x400),
        NUMBER(ATTEST_KV_LENGTHS, 0x800),
        NUMBER(ATTEST_PAGED, 0x1000),
        NUMBER(ATTEST_INVARIANT, 0x2000),
        NUMBER(ATTEST_ROW_OFFSETS, 0x4000),
        NUMBER(ATTEST_KV_STARTS, 0x8000),
        NUMBER(ATTEST_Q_LENGTHS, 0x10000),
        NUMBER(ATTEST_MASK, 0x20000),
        NUMBER(ATTEST_PROBLEM_TEXT, 1024),
#undef NUMBER
    };
    for (size_t n = 0; n < sizeof table / sizeof *table; n++)
        tap_check(table[n].value == table[n].want, "%s is %llu, not %llu", table[n].name, (unsigned long long)table[n].value,
                  (unsigned long long)table[n].want);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {{"structs", structs}, {"numbers", numbers}};
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
