/*
 * emulate.c - a CUDA kernel judged without a GPU: it runs in emulation (emulation.h) on random problems with every feature that it
 * takes, in every layout, between guard pages, against the oracle; or on the problems that EMULATED_PROBLEMS names, separated by
 * blanks. tests/cuda_template.t, cuda_kernels.t, cuda_tensor_kernels.t and cuda_sm90_kernels.t build it once for each dtype and dimension.
 */
#include <attest_kernel_cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"
#include "emulated.h"
#include "gen.h"
#include "tap.h"
#include "tensor_map.h"

static attest_context *context;

static bool has(const attest_problem *p, uint64_t flag)
{
    return (p->flags & flag) != 0;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int32_t window(bool limited, int64_t size)
{
    return limited && size < ATTEST_CUDA_UNBOUNDED ? (int32_t)size : ATTEST_CUDA_UNBOUNDED;
}

static bool is_aligned(const void *data, const int64_t stride[3], uint32_t dtype, uint32_t bytes)
{
    return !(((uintptr_t)data | (uintptr_t)(stride[0] | stride[1] | stride[2]) * type_bytes(dtype)) % bytes);
}

/* What the host passes for a problem: attest_cuda_args says how. `pack` is 1, or the heads of a group; `split_keys` are the keys of a
 * piece, where the kernel takes pieces. */
static attest_cuda_args make_args(const attest_problem *p, const attest_tensors *t, int32_t pack, int32_t split_keys)
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
                             .seq_kv = has(p, ATTEST_PAGED) && !p->page_count ? 0 : (int32_t)p->seq_kv,
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
    args.aligned = (is_aligned(t->q, p->stride_q, p->dtype, 16) ? ATTEST_ALIGNED_Q : 0u) |
                   (is_aligned(t->k, p->stride_k, p->dtype, 16) ? ATTEST_ALIGNED_K : 0u) |
                   (is_aligned(t->v, p->stride_v, p->dtype, 16) ? ATTEST_ALIGNED_V : 0u) |
                   (is_aligned(t->o, p->stride_o, p->dtype_o, 16) ? ATTEST_ALIGNED_O : 0u);
    args.tiles_q = (int32_t)ceil_div(args.seq_q * pack, facts->tile_q);
    args.tiles = args.batch * args.slots * args.tiles_q;
    if (emulated_manifest_get()->launch == ATTEST_LAUNCH_SPLIT) {
        args.split_keys = split_keys;
        args.splits = args.seq_kv ? (int32_t)ceil_div(args.seq_kv, split_keys) : 1;
        args.stride_partial = emulated_manifest_get()->partial;
    }
    if (emulated_manifest_get()->launch == ATTEST_LAUNCH_JOINED) { /* 1, 2, 4 ... pieces, of as many keys at least */
        while (args.splits < (int32_t)emulated_manifest_get()->cluster && (int64_t)split_keys * args.splits * 2 <= args.seq_kv)
            args.splits *= 2;
        args.split_keys = (int32_t)ceil_div(ceil_div(args.seq_kv, facts->tile_kv), args.splits) * (int32_t)facts->tile_kv;
    }
    return args;
}

/* The query heads that share a tile: those of a KV head, if boxes of the tensor maps can have them. As cuda_pack has it. */
static int32_t pack_of(const attest_problem *p)
{
    const struct emulated_manifest *manifest = emulated_manifest_get();
    int32_t group = manifest->packs ? (int32_t)(p->heads_q / p->heads_kv) : 1;
    for (uint32_t i = 0; i < manifest->map_count; i++)
        if (strchr("qo", manifest->map[i].tensor) && manifest->map[i].rows % (uint32_t)group)
            return 1;
    return group;
}

/* The tensor maps, as lib/cuda/launch.c has the driver encode them. */
static void make_maps(const attest_problem *p, const attest_tensors *t, int32_t pack, attest_cuda_maps *maps)
{
    const struct emulated_manifest *manifest = emulated_manifest_get();
    memset(maps, 0, sizeof *maps);
    for (uint32_t i = 0; i < manifest->map_count; i++) {
        char tensor = manifest->map[i].tensor;
        bool of_rows = tensor == 'q' || tensor == 'o';
        const int64_t *stride = tensor == 'q'   ? p->stride_q
                                : tensor == 'k' ? p->stride_k
                                : tensor == 'v' ? p->stride_v
                                                : p->stride_o;
        const void *data = tensor == 'q' ? t->q : tensor == 'k' ? t->k : tensor == 'v' ? t->v : t->o;
        int64_t rows = of_rows ? p->seq_q : p->seq_kv, outer = p->batch, group = of_rows ? pack : 1,
                box_rows = manifest->map[i].rows / group;
        if (of_rows ? has(p, ATTEST_VARLEN_Q) : has(p, ATTEST_VARLEN_KV)) {
            rows = of_rows ? p->total_q : p->total_kv;
            outer = 1;
        } else if (!of_rows && has(p, ATTEST_PAGED)) {
            rows = p->page_size;
            outer = p->page_count;
            box_rows = box_rows < rows ? box_rows : rows;
        }
        const struct {
            int64_t size, stride, box;
        } dimensions[] = {{tensor == 'q' || tensor == 'k' ? p->dim : p->dim_v, 1, manifest->map[i].columns},
                          {group, stride[1], group},
                          {rows, stride[2], box_rows},
                          {(of_rows ? p->heads_q : p->heads_kv) / group, stride[1] * group, 1},
                          {outer, stride[0], 1}};
        struct emulated_map map = {.magic = EMULATED_MAP_MAGIC,
                                   .element = (uint32_t)type_bytes(tensor == 'o' ? p->dtype_o : p->dtype),
                                   .data = (unsigned char *)(uintptr_t)data,
                                   .swizzle = manifest->map[i].swizzle};
        for (int d = 0; d < EMULATED_MAP_DIMENSIONS; d++) {
            if (d == 1 && !(of_rows && manifest->packs))
                continue;
            map.size[map.rank] = (uint32_t)(dimensions[d].size > 0 ? dimensions[d].size : 1);
            map.stride[map.rank] = dimensions[d].stride * (int64_t)map.element;
            map.box[map.rank++] = (uint32_t)dimensions[d].box;
        }
        bool good = (uintptr_t)data % 16 == 0 && map.box[0] * map.element % 16 == 0 &&
                    (!map.swizzle || map.box[0] * map.element <= map.swizzle);
        for (uint32_t d = 1; d < map.rank; d++)
            good = good && map.stride[d] >= 0 && map.stride[d] % 16 == 0 && map.box[d] > 0 && map.box[d] <= 256;
        tap_check(good, "there is no tensor map of %c: its strides, its rows or its columns cannot be", tensor);
        _Static_assert(sizeof map <= sizeof maps->map[i], "a map has room");
        memcpy(&maps->map[i], &map, sizeof map);
    }
}

static void run_once(struct instance *in, int32_t pack, int32_t split_keys, enum emulated_order order)
{
    attest_cuda_args args = make_args(&in->problem, &in->tensors, pack, split_keys);
    const attest_cuda_facts *facts = emulated_facts();
    attest_cuda_maps maps;
    size_t floats = (size_t)args.tiles * (size_t)args.splits * facts->tile_q * (size_t)args.stride_partial;
    struct buffer partial = {0};
    if (args.stride_partial && args.splits > 1) {
        if (!tap_check(buffer_create(&partial, PLACE_GUARD_BEFORE, 0, (int64_t)floats, sizeof(float)), "no memory"))
            return;
        buffer_fill_nan(&partial, ATTEST_F32);
        args.partial = partial.data;
    }
    make_maps(&in->problem, &in->tensors, pack, &maps);
    instance_poison(in);
    emulated_launch(&args, &maps, order);
    buffer_destroy(&partial);
}

/* Tensor cores multiply 16-bit numbers, so P is rounded to the kernel's type; unless EMULATED_WHOLE_P says that it is not. */
static uint32_t p_dtype(void)
{
    return emulated_manifest_get()->tensor && !getenv("EMULATED_WHOLE_P") ? emulated_facts()->dtype : (uint32_t)ATTEST_F32;
}

/* Whether the host would ask the kernel, as lib/cuda/refuse.c decides. */
static bool is_taken(const attest_problem *p)
{
    const struct emulated_manifest *manifest = emulated_manifest_get();
    const attest_cuda_facts *facts = emulated_facts();
    int64_t pack = pack_of(p);
    if (p->dtype != facts->dtype || p->flags & manifest->refuses || (manifest->refuses_o32 && p->dtype_o != p->dtype) ||
        (p->dim != p->dim_v && (manifest->refuses_dv || !manifest->pads)) || p->dim > facts->dim || p->dim_v > facts->dim ||
        (!manifest->pads && p->dim != facts->dim) || (manifest->rows_most && p->seq_q * pack > manifest->rows_most))
        return false;
    const int64_t *strides[] = {p->stride_q, p->stride_k, p->stride_v, p->stride_o};
    for (int n = 0; n < 4; n++) {
        if (manifest->align && !is_aligned(NULL, strides[n], n == 3 ? p->dtype_o : p->dtype, manifest->align))
            return false;
        for (uint32_t i = 0; i < manifest->map_count; i++)
            if (manifest->map[i].tensor == "qkvo"[n] && (strides[n][0] < 0 || strides[n][1] < 0 || strides[n][2] < 0))
                return false;
    }
    for (uint32_t i = 0; i < manifest->map_count && has(p, ATTEST_PAGED); i++) {
        int64_t rows = manifest->map[i].rows;
        if (strchr("kv", manifest->map[i].tensor) && ((p->page_size % rows && rows % p->page_size) || p->page_size % 8))
            return false;
    }
    return true;
}

static void one_case(const attest_problem *p, const char *key, int number)
{
    const struct emulated_manifest *manifest = emulated_manifest_get();
    struct rng rng = rng_from(tap.seed, key);
    struct instance in;
    struct verdict_basis basis;
    /* Of the placements only this one is aligned to more than elements, whatever the sizes are. */
    struct instance_options options = {.placement = manifest->align ? PLACE_GUARD_BEFORE : (enum placement)(number % 3),
                                       .nan_behind_bias = true};
    if (!drive_case(p) || !instance_create(&in, p, rng_next(&rng), &options))
        return;
    if (tap_check(basis_create(&basis, context, &in), "the oracle refused")) {
        char why[512] = "";
        size_t size, same;
        int32_t tile_kv = (int32_t)emulated_facts()->tile_kv;
        /* Pieces as the host makes them: of some tiles, or where bits must not depend on the batch those of the manifest. */
        int32_t pieces = has(p, ATTEST_INVARIANT) ? (int32_t)manifest->split_keys : tile_kv * (1 + number % 3);
        run_once(&in, 1, pieces, EMULATED_SIDE_BY_SIDE);
        tap_check(instance_untouched(&in, why, sizeof why), "%s", why);
        tap_check(judge(&basis, &in, p_dtype(), why, sizeof why), "%s", why);
        unsigned char *together = drive_snapshot(&in, &size);
        run_once(&in, 1, pieces, EMULATED_LAST_FIRST);
        unsigned char *apart = drive_snapshot(&in, &same);
        tap_check(size == same && memcmp(together, apart, size) == 0, "the bits depend on the order of the warps");
        free(apart);
        /* The query heads of a KV head in one tile, and no pieces. */
        run_once(&in, pack_of(p), (int32_t)ceil_div(p->seq_kv + 1, tile_kv) * tile_kv, EMULATED_FIRST_FIRST);
        tap_check(instance_untouched(&in, why, sizeof why), "packed: %s", why);
        tap_check(judge(&basis, &in, p_dtype(), why, sizeof why), "packed: %s", why);
        free(together);
        basis_destroy(&basis);
    }
    instance_destroy(&in);
}

/* Problems by name. */
static void named(const char *list)
{
    char line[256], why[256] = "";
    for (int n = 0, used; sscanf(list, "%255s%n", line, &used) == 1; list += used, n++) {
        attest_problem p;
        if (tap_check(attest_problem_parse(line, &p, why, sizeof why) == ATTEST_OK, "%s: %s", line, why) &&
            tap_check(is_taken(&p), "%s: the kernel does not take it", line))
            one_case(&p, line, n + PLACE_GUARD_BEFORE); /* aligned first */
    }
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
    context = drive_context(2);
    if (getenv("EMULATED_PROBLEMS")) {
        named(getenv("EMULATED_PROBLEMS"));
        attest_context_destroy(context);
        return;
    }
    const bool tensor = emulated_manifest_get()->tensor; /* larger tiles, and slower */
    const double work = tensor ? 2e6 : 4e5;
    int count = tap_amount(1, 1, tensor ? 5 : 20) * (FEATURES + 4);
    for (int n = 0; n < count; n++) {
        char key[64];
        snprintf(key, sizeof key, "emulated %d", n);
        struct rng rng = rng_from(tap.seed, key);
        attest_problem p;
        bool chosen = n % (FEATURES + 4) < FEATURES;
        uint64_t wanted = flags[n % (FEATURES + 4) % FEATURES] & ~emulated_manifest_get()->refuses;
        do
            gen_problem(&rng, &p, chosen ? wanted : gen_flags(&rng), work, true);
        while (!is_taken(&p));
        one_case(&p, key, n);
    }
    attest_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {{"features", features}};
    return tap_main(argc, argv, tests, 1);
}
