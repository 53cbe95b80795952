/*
 * emulate.c - the CUDA template and the helpers of attest_kernel_cuda.h, judged without a GPU: the kernel runs in emulation
 * (emulation.h) on random problems with every feature, in every layout, between guard pages, against the oracle.
 * tests/cuda_template.t builds it once for each dtype and dimension.
 */
#include <attest_kernel_cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"
#include "gen.h"
#include "tap.h"

void emulated_launch(const attest_cuda_args *args, int side_by_side);
const attest_cuda_facts *emulated_facts(void);

static attest_context *context;

static int32_t window(bool limited, int64_t size)
{
    return limited && size < ATTEST_CUDA_UNBOUNDED ? (int32_t)size : ATTEST_CUDA_UNBOUNDED;
}

/* What the host passes for a problem: attest_cuda_args says how. `pack` is 1, or the heads of a group. */
static attest_cuda_args make_args(const attest_problem *p, const attest_tensors *t, int32_t pack)
{
    const attest_cuda_facts *facts = emulated_facts();
    bool causal = p->flags & ATTEST_CAUSAL;
    attest_cuda_args args = {.q = t->q,
                             .k = t->k,
                             .v = t->v,
                             .o = t->o,
                             .lse = t->lse,
                             .bias = t->bias,
                             .alibi_slopes = t->alibi_slopes,
                             .sinks = t->sinks,
                             .cu_seqlens_q = t->cu_seqlens_q,
                             .cu_seqlens_kv = t->cu_seqlens_kv,
                             .kv_lengths = t->kv_lengths,
                             .page_table = t->page_table,
                             .stride_page_table = p->stride_page_table,
                             .flags = p->flags,
                             .batch = (int32_t)p->batch,
                             .heads_q = (int32_t)p->heads_q,
                             .heads_kv = (int32_t)p->heads_kv,
                             .seq_q = (int32_t)p->seq_q,
                             .seq_kv = (int32_t)p->seq_kv,
                             .dim = (int32_t)p->dim,
                             .dim_v = (int32_t)p->dim_v,
                             .total_q = (int32_t)p->total_q,
                             .total_kv = (int32_t)p->total_kv,
                             .page_size = (int32_t)p->page_size,
                             .page_count = (int32_t)p->page_count,
                             .window_left = window(p->flags & ATTEST_WINDOW_LEFT, p->window_left),
                             .window_right = causal ? 0 : window(p->flags & ATTEST_WINDOW_RIGHT, p->window_right),
                             .dtype_o = p->dtype_o,
                             .dtype_bias = p->dtype_bias,
                             .scale = p->scale,
                             .softcap = p->softcap,
                             .pack = pack,
                             .slots = (int32_t)p->heads_q / pack,
                             .splits = 1};
    memcpy(args.stride_q, p->stride_q, sizeof args.stride_q);
    memcpy(args.stride_k, p->stride_k, sizeof args.stride_k);
    memcpy(args.stride_v, p->stride_v, sizeof args.stride_v);
    memcpy(args.stride_o, p->stride_o, sizeof args.stride_o);
    memcpy(args.stride_lse, p->stride_lse, sizeof args.stride_lse);
    memcpy(args.stride_bias, p->stride_bias, sizeof args.stride_bias);
    int32_t tile_q = (int32_t)facts->tile_q;
    args.tiles_q = (args.seq_q * pack + tile_q - 1) / tile_q;
    args.tiles = args.batch * args.slots * args.tiles_q;
    return args;
}

static void run_once(struct instance *in, int32_t pack, bool side_by_side)
{
    attest_cuda_args args = make_args(&in->problem, &in->tensors, pack);
    instance_poison(in);
    emulated_launch(&args, side_by_side);
}

static void one_case(const attest_problem *p, const char *key, int number)
{
    struct rng rng = rng_from(tap.seed, key);
    struct instance in;
    struct verdict_basis basis;
    struct instance_options options = {.placement = (enum placement)(number % 3)};
    if (!drive_case(p) || !instance_create(&in, p, rng_next(&rng), &options))
        return;
    if (tap_check(basis_create(&basis, context, &in), "the oracle refused")) {
        char why[512] = "";
        size_t size, same;
        run_once(&in, 1, true);
        tap_check(instance_untouched(&in, why, sizeof why), "%s", why);
        tap_check(judge(&basis, &in, ATTEST_F32, why, sizeof why), "%s", why);
        unsigned char *together = drive_snapshot(&in, &size);
        run_once(&in, 1, false);
        unsigned char *apart = drive_snapshot(&in, &same);
        tap_check(size == same && memcmp(together, apart, size) == 0, "the bits depend on the order of the warps");
        free(apart);
        run_once(&in, (int32_t)(p->heads_q / p->heads_kv), true); /* the query heads of a KV head in one tile */
        tap_check(judge(&basis, &in, ATTEST_F32, why, sizeof why), "packed: %s", why);
        free(together);
        basis_destroy(&basis);
    }
    instance_destroy(&in);
}

static void features(void)
{
    static const uint64_t flags[] = {0,
                                     ATTEST_CAUSAL | ATTEST_LSE,
                                     ATTEST_CAUSAL | ATTEST_BOTTOM_RIGHT,
                                     ATTEST_WINDOW_LEFT,
                                     ATTEST_WINDOW_LEFT | ATTEST_WINDOW_RIGHT | ATTEST_BOTTOM_RIGHT | ATTEST_LSE,
                                     ATTEST_SOFTCAP,
                                     ATTEST_ALIBI,
                                     ATTEST_BIAS,
                                     ATTEST_SINK | ATTEST_LSE,
                                     ATTEST_VARLEN_Q | ATTEST_VARLEN_KV | ATTEST_LSE,
                                     ATTEST_KV_LENGTHS,
                                     ATTEST_PAGED,
                                     ATTEST_PAGED | ATTEST_KV_LENGTHS | ATTEST_CAUSAL};
    enum { FEATURES = sizeof flags / sizeof *flags };
    const attest_cuda_facts *facts = emulated_facts();
    context = drive_context(2);
    int count = tap_amount(1, 1, 20) * (FEATURES + 4);
    for (int n = 0; n < count; n++) {
        char key[64];
        snprintf(key, sizeof key, "emulated %d", n);
        struct rng rng = rng_from(tap.seed, key);
        attest_problem p;
        bool chosen = n % (FEATURES + 4) < FEATURES;
        do
            gen_problem(&rng, &p, chosen ? flags[n % (FEATURES + 4)] : gen_flags(&rng), 4e5, true);
        while (p.dtype != facts->dtype || p.dim > facts->dim || p.dim_v > facts->dim);
        one_case(&p, key, n);
    }
    attest_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {{"features", features}};
    return tap_main(argc, argv, tests, 1);
}
