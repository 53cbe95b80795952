/*
 * The same bits: for any number of threads, from run to run, whatever was in the workspace, and for one sequence alone, in a
 * batch, packed, padded or paged.
 */
#include "drive.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const dtypes[] = {"f32", "f16", "bf16"};

/* Runs a plan on a workspace filled with `fill`, and returns the bits of the outputs. */
static unsigned char *bits_of(attest_context *context, const char *kernel, struct instance *in, int fill, size_t *size)
{
    attest_plan *plan = NULL;
    if (!tap_check(attest_plan_create(context, &in->problem, kernel, &plan) == ATTEST_OK, "%s: %s", kernel,
                   attest_context_detail(context)))
        return NULL;
    size_t bytes = attest_plan_workspace_size(plan);
    void *workspace = aligned_alloc(64, (bytes + 127) / 64 * 64);
    memset(workspace, fill, bytes);
    instance_poison(in);
    bool ran = attest_run(context, plan, &in->tensors, workspace, bytes, NULL) == ATTEST_OK;
    tap_check(ran, "%s: %s", kernel, attest_context_detail(context));
    free(workspace);
    attest_plan_destroy(plan);
    return ran ? drive_snapshot(in, size) : NULL;
}

static void same_bits(const char *what, int number, const char *kernel, unsigned char *a, size_t a_size, unsigned char *b,
                      size_t b_size)
{
    tap_check(a && b && a_size == b_size && !memcmp(a, b, a_size), "%s: other bits with %s %d", kernel, what, number);
}

/* --------------------------------------------------------------------------------------------------- threads and runs -- */

static const char *const thread_shapes[] = {
    "b1:hq8:hkv2:sq1:skv3000:d64:lse",
    "b3:hq4:hkv4:sq65:skv190:d64:causal:lse",
    "b1:h1:sq300:skv300:d128:causal:br:wl=70",
    "b1:hq12:hkv1:sq4:skv1025:d80:dv96:lse",
    "b1:hq8:hkv1:sq1:skv3000:d96:dv160:lse",
    "b2:hq2:hkv1:sq257:skv33:d32:sink:lse",
    "b5:h2:sq40:skv300:d16:lens:varlenq=150:page=7,300:lse",
    "b1:h1:sq1:skv1:d1",
};

static void threads(void)
{
    static const int counts[] = {2, 3, 4, 5, 7, 16, 33};
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        for (size_t s = 0; s < sizeof thread_shapes / sizeof *thread_shapes; s++) {
            char line[128];
            attest_problem p;
            struct instance in;
            snprintf(line, sizeof line, "fwd:%s:%s", dtypes[t], thread_shapes[s]);
            if (!tap_case("%s", line) || !tap_check(attest_problem_parse(line, &p, NULL, 0) == ATTEST_OK, "parse %s", line) ||
                !instance_create(&in, &p, tap.seed, NULL))
                continue;
            attest_context *context = drive_context(1);
            attest_kernel_info info = {0};
            for (int k = 0; (k = drive_next(context, &p, k, &info)) >= 0; k++) {
                size_t first_size = 0, size = 0;
                attest_context_set_threads(context, 1);
                unsigned char *first = bits_of(context, info.name, &in, 0, &first_size);
                for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
                    if (tap.quick && n % 3 != 1)
                        continue;
                    attest_context_set_threads(context, counts[n]);
                    unsigned char *other = bits_of(context, info.name, &in, 0xFF, &size);
                    same_bits("threads:", counts[n], info.name, first, first_size, other, size);
                    free(other);
                }
                for (int run = 0; run < tap_amount(2, 8, 30); run++) {
                    attest_context_set_threads(context, 3);
                    unsigned char *other = bits_of(context, info.name, &in, run * 37, &size);
                    same_bits("run", run, info.name, first, first_size, other, size);
                    free(other);
                }
                free(first);
            }
            attest_context_destroy(context);
            instance_destroy(&in);
        }
}

/* --------------------------------------------------------------------------------------------------- batch invariance -- */

enum { SEQUENCES = 4 };
static const int32_t rows_of[SEQUENCES] = {1, 37, 3, 130}, keys_of[SEQUENCES] = {260, 130, 1500, 131};

/* One way to lay out the same sequences. */
struct layout {
    const char *name;
    uint64_t flags;
    int64_t page_size;
    int64_t spare; /* room beyond the longest sequence */
};
static const struct layout layouts[] = {
    {"packed", ATTEST_VARLEN_Q | ATTEST_VARLEN_KV, 0, 0},
    {"packed, with room", ATTEST_VARLEN_Q | ATTEST_VARLEN_KV, 0, 50},
    {"packed rows, padded keys", ATTEST_VARLEN_Q | ATTEST_KV_LENGTHS, 0, 0},
    {"packed rows, much padding", ATTEST_VARLEN_Q | ATTEST_KV_LENGTHS, 0, 777},
    {"pages of 1", ATTEST_VARLEN_Q | ATTEST_KV_LENGTHS | ATTEST_PAGED, 1, 0},
    {"pages of 3", ATTEST_VARLEN_Q | ATTEST_KV_LENGTHS | ATTEST_PAGED, 3, 0},
    {"pages of 16", ATTEST_VARLEN_Q | ATTEST_KV_LENGTHS | ATTEST_PAGED, 16, 40},
    {"pages of 64", ATTEST_VARLEN_Q | ATTEST_KV_LENGTHS | ATTEST_PAGED, 64, 0},
    {"pages of 100", ATTEST_VARLEN_Q | ATTEST_KV_LENGTHS | ATTEST_PAGED, 100, 300},
    {"pages of 2048", ATTEST_VARLEN_Q | ATTEST_KV_LENGTHS | ATTEST_PAGED, 2048, 0},
};

static void lay_out(attest_problem *p, const attest_problem *model, const struct layout *layout)
{
    int64_t rows = 0, keys = 0;
    *p = *model;
    p->batch = SEQUENCES;
    p->seq_q = p->seq_kv = layout->spare;
    for (int b = 0; b < SEQUENCES; b++) {
        rows += rows_of[b];
        keys += keys_of[b];
        p->seq_q = rows_of[b] + layout->spare > p->seq_q ? rows_of[b] + layout->spare : p->seq_q;
        p->seq_kv = keys_of[b] + layout->spare > p->seq_kv ? keys_of[b] + layout->spare : p->seq_kv;
    }
    p->flags |= layout->flags;
    p->total_q = layout->flags & ATTEST_VARLEN_Q ? rows + layout->spare : 0;
    p->total_kv = layout->flags & ATTEST_VARLEN_KV ? keys + layout->spare : 0;
    if (layout->flags & ATTEST_PAGED) {
        p->page_size = layout->page_size;
        p->page_count = SEQUENCES * ((p->seq_kv + p->page_size - 1) / p->page_size) + 2;
    }
    attest_problem_pack(p);
}

static void check_layouts(attest_context *context, const attest_problem *model, const char *kernel)
{
    unsigned char *alone[SEQUENCES] = {NULL};
    size_t sizes[SEQUENCES] = {0};
    for (int b = 0; b < SEQUENCES; b++) {
        attest_problem p = *model;
        struct instance in;
        struct instance_options options = {.first_batch = b};
        p.seq_q = rows_of[b];
        p.seq_kv = keys_of[b];
        attest_problem_pack(&p);
        if (!instance_create(&in, &p, tap.seed, &options))
            return;
        if (drive_run(context, kernel, &in, PLACE_PLAIN))
            alone[b] = drive_snapshot(&in, &sizes[b]);
        instance_destroy(&in);
    }
    for (size_t n = 0; n < sizeof layouts / sizeof *layouts; n++) {
        attest_problem p;
        struct instance in;
        struct instance_options options = {.rows = rows_of, .keys = keys_of};
        lay_out(&p, model, &layouts[n]);
        if (!instance_create(&in, &p, tap.seed, &options))
            continue;
        if (drive_run(context, kernel, &in, PLACE_PLAIN))
            for (int b = 0; b < SEQUENCES; b++) {
                size_t size;
                unsigned char *bits = drive_snapshot_sequence(&in, b, &size);
                same_bits(layouts[n].name, b, kernel, alone[b], sizes[b], bits, size);
                free(bits);
            }
        instance_destroy(&in);
    }
    for (int b = 0; b < SEQUENCES; b++)
        free(alone[b]);
}

/* A dense batch against each of its sequences alone. */
static void check_dense(attest_context *context, const attest_problem *model, const char *kernel)
{
    attest_problem p = *model;
    struct instance batch;
    p.batch = 3;
    p.seq_q = 5;
    p.seq_kv = 700;
    attest_problem_pack(&p);
    if (!instance_create(&batch, &p, tap.seed, NULL))
        return;
    if (drive_run(context, kernel, &batch, PLACE_PLAIN))
        for (int64_t b = 0; b < 3; b++) {
            struct instance one;
            struct instance_options options = {.first_batch = b};
            attest_problem single = p;
            size_t size, one_size;
            single.batch = 1;
            if (!instance_create(&one, &single, tap.seed, &options))
                continue;
            unsigned char *bits = drive_snapshot_sequence(&batch, b, &size);
            if (drive_run(context, kernel, &one, PLACE_PLAIN)) {
                unsigned char *alone = drive_snapshot(&one, &one_size);
                same_bits("sequence alone:", (int)b, kernel, alone, one_size, bits, size);
                free(alone);
            }
            free(bits);
            instance_destroy(&one);
        }
    instance_destroy(&batch);
}

static void one_sequence(void)
{
    static const char *const words[] = {":causal:br:lse", ":lse", ":wl=60:causal:lse", ":invariant:softcap=20:sink:lse"};
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
            char line[128];
            attest_problem model;
            snprintf(line, sizeof line, "fwd:%s:hq4:hkv2:s1:d64%s", dtypes[t], words[w]);
            if ((tap.quick && w) || !tap_check(attest_problem_parse(line, &model, NULL, 0) == ATTEST_OK, "parse %s", line))
                continue;
            attest_context *context = drive_context(3);
            attest_kernel_info info = {0};
            for (int k = 0; (k = drive_next(context, &model, k, &info)) >= 0; k++)
                if (tap_case("%s %s", info.name, line)) {
                    check_layouts(context, &model, info.name);
                    check_dense(context, &model, info.name);
                }
            attest_context_destroy(context);
        }
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {{"threads and runs", threads}, {"one sequence in any layout", one_sequence}};
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
