/*
 * Plans on GPUs that are made up (see made_up.h): which image runs where, which sentence refuses, what kernels are told and how they
 * are launched, tensor maps.
 */
#include "made_up.h"

/* ------------------------------------------------------------------------------------------------------------- images -- */

/* Which image runs on which GPU, seen from what was loaded and launched. */
static void images(void)
{
    static const struct {
        const char *device, *kernel, *line, *image;
        uint32_t tile_q;
    } want[] = {
        {"cuda:0", "made_up", "fwd:f16:b1:h1:sq96:skv64:d64", "image of sm_90", 32},
        {"cuda:2", "made_up", "fwd:f16:b1:h1:sq96:skv64:d64", "image of sm_80", 32},
        {"cuda:3", "made_up", "fwd:f16:b1:h1:sq96:skv64:d128", "image, PTX", 32},
        {"cuda:0", "made_up@48x64", "fwd:f16:b1:h1:sq96:skv64:d128", "image of sm_90", 48},
        {"cuda:2", "made_up", "fwd:f16:b1:h1:sq96:skv64:d40:dv90", "image of sm_80", 32},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        /* Other bytes each time, so that every image is loaded anew. */
        char data[4][64];
        struct made *made = kernel_make(ATTEST_LAUNCH_TILE, ATTEST_CUDA_PADS);
        for (uint32_t n = 0; n < made->kernel.image_count; n++) {
            int which = made->images[n].data == made_up_code[0] ? 0 : made->images[n].data == made_up_code[1] ? 1 : 3;
            memset(data[which], 0, 64);
            strcpy(data[which], made_up_code[which]);
            data[which][50] = (char)(i + 1);
            made->images[n].data = data[which];
        }
        attest_context *context = context_on(want[i].device, &made->kernel);
        attest_problem p = problem_of(want[i].line);
        attest_tensors t = tensors_of();
        attest_plan *plan = NULL;
        int launches = fake->launches, loads = fake->loads;
        if (tap_case("%s on %s", want[i].kernel, want[i].device) &&
            tap_check(attest_plan_create(context, &p, want[i].kernel, &plan) == ATTEST_OK, "%s", attest_context_detail(context))) {
            tap_check(strcmp(attest_plan_kernel(plan), want[i].kernel) == 0, "the kernel is %s", attest_plan_kernel(plan));
            tap_check(attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_OK, "%s", attest_context_detail(context));
            tap_check(fake->loads == loads + 1 && memcmp(fake->last_image, want[i].image, 10) == 0, "%.15s was loaded",
                      fake->last_image);
            tap_check(fake->launches == launches + 1, "%d launches", fake->launches - launches);
            const struct fake_launch *last = launch_back(0);
            tap_check(last->grid == (96 + want[i].tile_q - 1) / want[i].tile_q && last->block == 128 &&
                          last->shared == 1000 * (want[i].tile_q + 64) && last->device == atoi(want[i].device + 5),
                      "the launch is %u x %u, %u bytes, on %d", last->grid, last->block, last->shared, last->device);
            attest_plan *again = NULL;
            tap_check(attest_plan_create(context, &p, want[i].kernel, &again) == ATTEST_OK && fake->loads == loads + 1,
                      "the image was loaded twice");
            attest_plan_destroy(again);
        }
        attest_plan_destroy(plan);
        attest_context_destroy(context);
        free(made);
    }
    tap_check(fake->depth == 0, "%d contexts are left on the stack", fake->depth);
}

static void refusals(void)
{
    static const struct {
        const char *device, *kernel, *line, *sentence;
        attest_status status;
    } bad[] = {
        {"cpu", "made_up", "fwd:f16:b1:h1:sq1:skv1:d64", "it needs an NVIDIA GPU, and this context is on the CPU",
         ATTEST_ERROR_UNAVAILABLE},
        {"cuda", "cpu_fwd_f32_scalar", "fwd:f32:b1:h1:sq1:skv1:d64", "it runs on the CPU, and this context is on cuda:0",
         ATTEST_ERROR_UNAVAILABLE},
        {"cuda", "ref_fwd", "fwd:f32:b1:h1:sq1:skv1:d64", "it runs on the CPU, and this context is on cuda:0",
         ATTEST_ERROR_UNAVAILABLE},
        {"cuda:4", "made_up", "fwd:f16:b1:h1:sq1:skv1:d64",
         "it has no image for compute capability 7.5 of Tesla T4; the first is for 8.0", ATTEST_ERROR_UNAVAILABLE},
        {"cuda", "made_up", "fwd:bf16:b1:h1:sq1:skv1:d64", "it does not take bf16", ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "made_up", "fwd:f16:b1:h1:sq1:skv1:d64:bias", "it does not take a bias", ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "made_up", "fwd:f16:b1:h1:sq1:skv1:d64:page=4,4", "it does not take paged keys", ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "made_up", "fwd:f16:b1:h1:sq1:skv1:d64:o=f32", "it does not take an O of another type than Q",
         ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "made_up", "fwd:f16:b1:h1:sq1:skv1:d64:dv32", "it does not take a dim_v that differs from dim",
         ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "made_up", "fwd:f16:b1:h1:sq1:skv1:d200", "dim 200 is beyond 128", ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "made_up@64x64", "fwd:f16:b1:h1:sq1:skv1:d64", "it has no tiles of 64x64 here; it has 32x64 48x64",
         ATTEST_ERROR_UNSUPPORTED},
        {"cuda:2", "made_up@48x64", "fwd:f16:b1:h1:sq1:skv1:d64",
         "a block needs 112000 bytes of shared memory, and NVIDIA L4 has 101376", ATTEST_ERROR_UNAVAILABLE},
        {"cuda", "made_up@48", "fwd:f16:b1:h1:sq1:skv1:d64", "'@48' is no pair of tiles; write for example @48x64",
         ATTEST_ERROR_ARGUMENT},
        {"cuda", "made_up", "fwd:f16:b1:hq8:hkv2:sq33:skv1:d64", "it is for at most 128 rows of a KV head, and there are 132",
         ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "made_up", "fwd:f16:b1:h1:sq1:skv1:d20", "the strides of Q must be multiples of 16 bytes",
         ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "made_up", "fwd:f16:b1:h1:sq1:skv1073741824:d64", "sizes must be below 2^30, and seq_kv is 1073741824",
         ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "made_up", "fwd:f16:b1000000:h4000:sq1:skv1:d64", "it would have more than 2^31 blocks", ATTEST_ERROR_UNSUPPORTED},
        {"cuda", "nothing", "fwd:f16:b1:h1:sq1:skv1:d64", "no kernel is called 'nothing'", ATTEST_ERROR_ARGUMENT},
    };
    struct made *made = kernel_make(ATTEST_LAUNCH_TILE, ATTEST_CUDA_PADS | ATTEST_CUDA_PACKS | ATTEST_CUDA_REFUSES_O32);
    made->kernel.refuses = ATTEST_BIAS | ATTEST_PAGED;
    for (uint32_t i = 0; i < made->kernel.image_count; i++) {
        made->images[i].align = 16;
        made->images[i].rows_most = 128;
        if (made->images[i].facts.tile_q == 48)
            made->images[i].facts.dynamic_shared = 112000;
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        made->kernel.options |= ATTEST_CUDA_REFUSES_DV;
        attest_context *context = context_on(bad[i].device, &made->kernel);
        attest_problem p = problem_of(bad[i].line);
        attest_plan *plan = NULL;
        if (tap_case("%s on %s: %s", bad[i].kernel, bad[i].device, bad[i].line)) {
            attest_status status = attest_plan_create(context, &p, bad[i].kernel, &plan);
            tap_check(status == bad[i].status && !plan, "the status is %s", attest_status_name(status));
            says(context, bad[i].sentence);
        }
        attest_plan_destroy(plan);
        attest_context_destroy(context);
    }
    /* Pieces of a fixed length can be too many. */
    struct made *pieces = kernel_make(ATTEST_LAUNCH_SPLIT, 0);
    attest_context *with_pieces = context_on("cuda", &pieces->kernel);
    attest_problem long_one = problem_of("fwd:f16:b4000:h4:sq1:skv100000000:d64:invariant");
    attest_plan *no_plan = NULL;
    tap_check(attest_plan_create(with_pieces, &long_one, "made_up", &no_plan) == ATTEST_ERROR_UNSUPPORTED, "2^32 blocks");
    says(with_pieces, "it would have more than 2^31 blocks");
    attest_context_destroy(with_pieces);
    free(pieces);
    /* A kernel for few tiles: what it takes depends on the batch, so that it is nothing for the invariant flag. */
    struct made *few = kernel_make(ATTEST_LAUNCH_GRID, 0);
    for (uint32_t i = 0; i < few->kernel.image_count; i++)
        few->images[i].tiles_most = 8;
    static const struct {
        const char *line, *sentence;
    } many[] = {{"fwd:f16:b1:h2:sq129:skv9:d64", "it is for at most 8 tiles, and there are 10"},
                {"fwd:f16:b1:h2:sq9:skv9:d64:invariant", "it takes problems by their number of tiles, which depends on the batch"},
                {"fwd:f16:b70000:h1:sq9:skv9:d64", "it takes at most 65535 sequences and heads"}};
    attest_context *with_few = context_on("cuda", &few->kernel);
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        attest_problem p = problem_of(many[i].line);
        tap_check(attest_plan_create(with_few, &p, "made_up", &no_plan) == ATTEST_ERROR_UNSUPPORTED, "%s", many[i].line);
        says(with_few, many[i].sentence);
    }
    attest_context_destroy(with_few);
    free(few);
    /* Without padding: dims that are there, and no others. */
    made->kernel.options = 0;
    attest_context *context = context_on("cuda", &made->kernel);
    attest_problem p = problem_of("fwd:f16:b1:h1:sq1:skv1:d80");
    attest_plan *plan = NULL;
    tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_ERROR_UNSUPPORTED, "d80");
    says(context, "dim 80 is none of 64 128");
    attest_context_destroy(context);
    free(made);
}

/* Tables that cannot be. */
static void tables(void)
{
    struct made *made = kernel_make(ATTEST_LAUNCH_SPLIT, 0);
    attest_context *context = context_on("cuda", NULL);
    const struct made good = *made;
#define BAD(change, sentence)                                                                                                      \
    do {                                                                                                                           \
        *made = good;                                                                                                              \
        made->kernel.images = made->images;                                                                                        \
        change;                                                                                                                    \
        tap_check(attest_context_add_cuda_kernel(context, &made->kernel) == ATTEST_ERROR_ARGUMENT, #change " should be refused");  \
        says(context, sentence);                                                                                                   \
    } while (0)
    BAD(made->kernel.abi = 9, "kernel.abi is 9");
    BAD(made->kernel.name = "a-b", "kernel.name must be letters");
    BAD(made->kernel.name = NULL, "kernel.name must be letters");
    BAD(made->kernel.launch = 6, "kernel.launch is 6");
    BAD(made->kernel.map_count = 5, "kernel.map_count is 5");
    BAD(made->kernel.map_count = 1, "kernel.map_tensor must be q, k, v or o");
    BAD(made->kernel.image_count = 0, "kernel.images is empty");
    BAD(made->images[2].data = NULL, "kernel.images[2] has no data");
    BAD(made->images[2].kind = 4, "is of no known kind");
    BAD(made->images[2].facts.args_size = 8, "was compiled for another version");
    BAD(made->images[2].facts.dtype = ATTEST_BF16, "a dtype that the kernel does not take");
    BAD(made->images[2].facts.dim = 513, "a dim or tiles that cannot be");
    BAD(made->images[2].facts.threads = 100, "a number of threads");
    BAD(made->images[2].split_keys = 100, "split_keys and partial");
    BAD(made->images[2].partial = 0, "split_keys and partial");
    BAD(made->images[2].align = 24, "an align that cannot be");
    BAD((made->images[1].kind = ATTEST_PTX, made->images[1].data = "image, PTXimage, PTX", made->images[1].bytes = 10),
        "does not end in a zero byte");
#undef BAD
    tap_check(attest_context_add_cuda_kernel(context, NULL) == ATTEST_ERROR_ARGUMENT, "NULL");
    tap_check(attest_context_add_cuda_kernel(NULL, &made->kernel) == ATTEST_ERROR_ARGUMENT, "no context");
    attest_context_destroy(context);
    free(made);
}

/* ------------------------------------------------------------------------------------------------------------ launches -- */

/* Every field of what a kernel is told. */
static void arguments(void)
{
    struct made *made = kernel_make(ATTEST_LAUNCH_TILE, ATTEST_CUDA_PADS | ATTEST_CUDA_PACKS);
    attest_context *context = context_on("cuda:1", &made->kernel);
    attest_problem p =
        problem_of("fwd:f16:b3:hq8:hkv2:sq20:skv90:d48:dv40:o=f32:br:wl=7:wr=5:softcap=30:alibi:bias:sink:lse:varlenq=50:"
                   "lens:page=16,40:scale=0.25");
    p.stride_bias[3] = 2;
    attest_plan *plan = NULL;
    attest_tensors t = {.size = sizeof t,
                        .q = arena,
                        .k = arena + 1,
                        .v = arena + 2,
                        .o = arena + (1 << 15),
                        .lse = (float *)(void *)(arena + (1 << 14)),
                        .bias = arena + 3,
                        .alibi_slopes = (float *)(void *)(arena + 4),
                        .sinks = (float *)(void *)(arena + 8),
                        .cu_seqlens_q = (int32_t *)(void *)(arena + 12),
                        .kv_lengths = (int32_t *)(void *)(arena + 16),
                        .page_table = (int32_t *)(void *)(arena + 20)};
    /* Far apart, so that nothing overlaps; nobody looks there. */
    t.k = (void *)(uintptr_t)0x10000000000;
    t.v = (void *)(uintptr_t)0x20000000000;
    t.q = (void *)(uintptr_t)0x30000000000;
    t.o = (void *)(uintptr_t)0x40000000000;
    t.bias = (void *)(uintptr_t)0x50000000000;
    if (!tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_OK, "%s", attest_context_detail(context)))
        return;
    tap_check(attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_OK, "%s", attest_context_detail(context));
    attest_cuda_args got = launch_back(0)->args;
    attest_cuda_args want = {.q = t.q,
                             .k = t.k,
                             .v = t.v,
                             .o = t.o,
                             .lse = t.lse,
                             .bias = t.bias,
                             .alibi_slopes = t.alibi_slopes,
                             .sinks = t.sinks,
                             .cu_seqlens_q = t.cu_seqlens_q,
                             .kv_lengths = t.kv_lengths,
                             .page_table = t.page_table,
                             .stride_page_table = p.stride_page_table,
                             .flags = p.flags,
                             .batch = 3,
                             .heads_q = 8,
                             .heads_kv = 2,
                             .seq_q = 20,
                             .seq_kv = 90,
                             .dim = 48,
                             .dim_v = 40,
                             .total_q = 50,
                             .page_size = 16,
                             .page_count = 40,
                             .window_left = 7,
                             .window_right = 5,
                             .dtype_o = ATTEST_F32,
                             .dtype_bias = p.dtype_bias,
                             .scale = 0.25f,
                             .softcap = 30,
                             .pack = 4,
                             .slots = 2,
                             .tiles_q = 3, /* 20 rows of 4 heads in tiles of 32 */
                             .tiles = 18,
                             .splits = 1,
                             .aligned = ATTEST_ALIGNED_Q | ATTEST_ALIGNED_K | ATTEST_ALIGNED_V | ATTEST_ALIGNED_O};
    memcpy(want.stride_q, p.stride_q, sizeof want.stride_q);
    memcpy(want.stride_k, p.stride_k, sizeof want.stride_k);
    memcpy(want.stride_v, p.stride_v, sizeof want.stride_v);
    memcpy(want.stride_o, p.stride_o, sizeof want.stride_o);
    memcpy(want.stride_lse, p.stride_lse, sizeof want.stride_lse);
    memcpy(want.stride_bias, p.stride_bias, sizeof want.stride_bias);
    int32_t got_words[sizeof got / 4], want_words[sizeof want / 4];
    memcpy(got_words, &got, sizeof got);
    memcpy(want_words, &want, sizeof want);
    for (size_t at = 0; at < sizeof want / 4; at++)
        tap_check(got_words[at] == want_words[at], "the arguments differ at byte %zu: %d, not %d", at * 4, got_words[at],
                  want_words[at]);
    /* Which tensors are aligned to 16 bytes. */
    attest_tensors odd = t;
    odd.k = (const char *)t.k + 8;
    odd.o = (char *)t.o + 4;
    tap_check(attest_run(context, plan, &odd, NULL, 0, NULL) == ATTEST_OK, "%s", attest_context_detail(context));
    tap_check(launch_back(0)->args.aligned == (ATTEST_ALIGNED_Q | ATTEST_ALIGNED_V), "aligned is %u", launch_back(0)->args.aligned);
    attest_plan_destroy(plan);

    /* Masks by position are two numbers. */
    static const struct {
        const char *line;
        int32_t left, right;
    } windows[] = {{"fwd:f16:b1:h1:sq4:skv4:d64", ATTEST_CUDA_UNBOUNDED, ATTEST_CUDA_UNBOUNDED},
                   {"fwd:f16:b1:h1:sq4:skv4:d64:causal", ATTEST_CUDA_UNBOUNDED, 0},
                   {"fwd:f16:b1:h1:sq4:skv4:d64:causal:wl=0:wr=9", 0, 0},
                   {"fwd:f16:b1:h1:sq4:skv4:d64:wl=3000000000:wr=1", ATTEST_CUDA_UNBOUNDED, 1}};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        p = problem_of(windows[i].line);
        t = tensors_of();
        tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_OK &&
                      attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_OK,
                  "%s", attest_context_detail(context));
        got = launch_back(0)->args;
        tap_check(got.window_left == windows[i].left && got.window_right == windows[i].right, "%s: %d and %d", windows[i].line,
                  got.window_left, got.window_right);
        attest_plan_destroy(plan);
    }
    /* No page can be looked up where there are none. */
    p = problem_of("fwd:f16:b1:h1:sq4:skv64:d64:lens:page=16,0");
    t = (attest_tensors){.size = sizeof t, .q = arena, .o = arena + 8192, .kv_lengths = (int32_t *)(void *)(arena + 16384)};
    t.page_table = t.kv_lengths + 4;
    if (tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_OK &&
                      attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_OK,
                  "%s", attest_context_detail(context)))
        tap_check(launch_back(0)->args.seq_kv == 0, "there are %d keys", launch_back(0)->args.seq_kv);
    attest_plan_destroy(plan);
    attest_context_destroy(context);
    free(made);
}

static void grids(void)
{
    static const struct {
        const char *line;
        uint32_t launch;
        unsigned grid, combine; /* blocks in the first dimension */
        int32_t splits, split_keys;
        size_t workspace;
    } want[] = {
        {"fwd:f16:b2:h4:sq100:skv50:d64", ATTEST_LAUNCH_TILE, 32, 0, 1, 0, 0},
        {"fwd:f16:b2:h4:sq100:skv50:d64", ATTEST_LAUNCH_PERSISTENT, 32, 0, 1, 0, 0},
        {"fwd:f16:b20:h40:sq100:skv50:d64", ATTEST_LAUNCH_PERSISTENT, 264, 0, 1, 0, 0},
        {"fwd:f16:b0:h4:sq100:skv50:d64", ATTEST_LAUNCH_TILE, 0, 0, 1, 0, 0},
        {"fwd:f16:b2:h4:sq0:skv50:d64", ATTEST_LAUNCH_TILE, 0, 0, 1, 0, 0},
        {"fwd:f16:b2:h4:sq100:skv50:d64", ATTEST_LAUNCH_GRID, 4, 0, 1, 0, 0},
        {"fwd:f16:b2:h4:sq0:skv50:d64", ATTEST_LAUNCH_GRID, 0, 0, 1, 0, 0},
        {"fwd:f16:b2:h4:sq1:skv0:d64", ATTEST_LAUNCH_SPLIT, 8, 0, 1, 64, 0},
        {"fwd:f16:b2:h4:sq1:skv0:d64:invariant", ATTEST_LAUNCH_SPLIT, 8, 0, 1, 256, 0},
        {"fwd:f16:b1:h4:sq1:skv127:d64", ATTEST_LAUNCH_SPLIT, 4, 0, 1, 128, 0},
        {"fwd:f16:b1:h4:sq1:skv255:d64", ATTEST_LAUNCH_SPLIT, 8, 4, 2, 128, 8 * 32 * 68 * 4},
        {"fwd:f16:b1:h4:sq1:skv1000:d64", ATTEST_LAUNCH_SPLIT, 32, 4, 8, 128, 32 * 32 * 68 * 4},
        {"fwd:f16:b1:h4:sq1:skv1000:d64:invariant", ATTEST_LAUNCH_SPLIT, 16, 4, 4, 256, 16 * 32 * 68 * 4},
        /* 132 multiprocessors, 4 tiles: 33 pieces at most, of 1024 keys, which are then 32 */
        {"fwd:f16:b1:h4:sq1:skv32768:d64", ATTEST_LAUNCH_SPLIT, 128, 4, 32, 1024, (size_t)128 * 32 * 68 * 4},
        {"fwd:f16:b1:h4:sq1:skv32768:d64:invariant", ATTEST_LAUNCH_SPLIT, 512, 4, 128, 256, (size_t)512 * 32 * 68 * 4},
        {"fwd:f16:b100:h4:sq1:skv32768:d64", ATTEST_LAUNCH_SPLIT, 400, 0, 1, 32768, 0},
        {"fwd:f16:b100:h4:sq1:skv1000:d64:invariant", ATTEST_LAUNCH_SPLIT, 1600, 400, 4, 256, (size_t)1600 * 32 * 68 * 4},
        /* a power of two, at most 16, no more than there are tiles, and of seven clusters of 16 or 14 of 8 at once */
        {"fwd:f16:b2:h4:sq1:skv0:d64", ATTEST_LAUNCH_JOINED, 1, 0, 1, 64, 0},
        {"fwd:f16:b1:h4:sq1:skv64:d64", ATTEST_LAUNCH_JOINED, 1, 0, 1, 64, 0},
        {"fwd:f16:b1:h4:sq1:skv65:d64", ATTEST_LAUNCH_JOINED, 2, 0, 2, 64, 0},
        {"fwd:f16:b1:h4:sq1:skv300:d64", ATTEST_LAUNCH_JOINED, 4, 0, 4, 128, 0},
        {"fwd:f16:b1:h4:sq1:skv32768:d64", ATTEST_LAUNCH_JOINED, 16, 0, 16, 2048, 0},
        {"fwd:f16:b1:h2:sq40:skv32768:d64", ATTEST_LAUNCH_JOINED, 32, 0, 16, 2048, 0},
        {"fwd:f16:b1:h7:sq1:skv32768:d64", ATTEST_LAUNCH_JOINED, 16, 0, 16, 2048, 0},
        {"fwd:f16:b2:h4:sq1:skv32768:d64", ATTEST_LAUNCH_JOINED, 8, 0, 8, 4096, 0},
        {"fwd:f16:b10:h4:sq1:skv32768:d64", ATTEST_LAUNCH_JOINED, 2, 0, 2, 16384, 0},
        {"fwd:f16:b100:h4:sq1:skv32768:d64", ATTEST_LAUNCH_JOINED, 1, 0, 1, 32768, 0},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        for (int pdl = 0; pdl < 2; pdl++)
            for (int device = 0; device < 3; device += 2) {
                struct made *made = kernel_make(want[i].launch, pdl ? ATTEST_CUDA_PDL : 0);
                attest_context *context = context_on(device ? "cuda:2" : "cuda:0", &made->kernel);
                attest_problem p = problem_of(want[i].line);
                attest_tensors t = tensors_of();
                attest_plan *plan = NULL;
                t.o = (void *)(uintptr_t)0x70000000000;
                t.k = (void *)(uintptr_t)0x10000000000;
                t.v = (void *)(uintptr_t)0x20000000000;
                t.q = (void *)(uintptr_t)0x30000000000;
                if (tap_case("%s, launch %u", want[i].line, want[i].launch) &&
                    tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_OK, "%s",
                              attest_context_detail(context))) {
                    int before = fake->launches;
                    size_t size = attest_plan_workspace_size(plan);
                    void *workspace = (void *)(uintptr_t)(size ? 0x60000000000 : 0);
                    tap_check(attest_run(context, plan, &t, workspace, size, NULL) == ATTEST_OK, "%s",
                              attest_context_detail(context));
                    int launches = fake->launches - before;
                    const struct fake_launch *first = launch_back(launches - 1), *last = launch_back(0);
                    if (device == 0) {
                        tap_check(size == want[i].workspace, "the workspace is %zu bytes", size);
                        tap_check(launches == (want[i].grid ? 1 : 0) + (want[i].combine ? 1 : 0), "%d launches", launches);
                    }
                    if (launches && device == 0) {
                        tap_check(first->grid == want[i].grid && strcmp(first->function, "attest_kernel") == 0, "the grid is %u",
                                  first->grid);
                        tap_check(first->args.splits == want[i].splits && first->args.split_keys == want[i].split_keys,
                                  "%d pieces of %d", first->args.splits, first->args.split_keys);
                        tap_check(first->args.partial == (size ? workspace : NULL), "partial is %p", (void *)first->args.partial);
                        bool waits = want[i].launch != ATTEST_LAUNCH_SPLIT && want[i].launch != ATTEST_LAUNCH_JOINED;
                        tap_check(first->early == (pdl && device == 0 && waits), "the first kernel is%s early",
                                  first->early ? "" : " not");
                        unsigned cluster = want[i].launch == ATTEST_LAUNCH_JOINED ? (unsigned)want[i].splits : 0;
                        tap_check(first->cluster == cluster, "clusters of %u", first->cluster);
                        bool grid = want[i].launch == ATTEST_LAUNCH_GRID || want[i].launch == ATTEST_LAUNCH_JOINED;
                        tap_check(first->grid_y == (grid ? (unsigned)p.heads_q : 1u) &&
                                      first->grid_z == (grid ? (unsigned)p.batch : 1u),
                                  "the grid is %u x %u x %u", first->grid, first->grid_y, first->grid_z);
                    }
                    if (launches == 2) {
                        tap_check(strcmp(last->function, "attest_combine") == 0 && last->grid == (unsigned)last->args.tiles &&
                                      last->block == 128 && last->shared == 0 &&
                                      memcmp(&last->args, &first->args, sizeof last->args) == 0,
                                  "the second launch is wrong");
                        tap_check(last->early == (pdl && device == 0), "%s", last->early ? "it is early" : "it is not early");
                    }
                }
                attest_plan_destroy(plan);
                attest_context_destroy(context);
                free(made);
            }
    tap_check(fake->depth == 0, "%d contexts are left on the stack", fake->depth);
}

/* Grids are made of whole clusters; what cannot be one is not taken. */
static void clusters(void)
{
    struct made *made = kernel_make(ATTEST_LAUNCH_GRID, 0);
    for (uint32_t i = 0; i < made->kernel.image_count; i++)
        made->images[i].cluster = 4;
    attest_context *context = context_on("cuda", &made->kernel);
    for (int tiles = 0; tiles < 10; tiles++) {
        attest_problem p = problem_of("fwd:f16:b2:h3:sq1:skv50:d64");
        attest_problem_init(&p, ATTEST_F16, 2, 3, 3, tiles * 32, 50, 64);
        attest_tensors t = tensors_of();
        attest_plan *plan = NULL;
        int before = fake->launches;
        unsigned want = (unsigned)(tiles + 3) / 4 * 4;
        t.o = (void *)(uintptr_t)0x70000000000;
        t.q = (void *)(uintptr_t)0x30000000000;
        t.k = (void *)(uintptr_t)0x10000000000;
        t.v = (void *)(uintptr_t)0x20000000000;
        if (tap_case("%d tiles", tiles) &&
            tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_OK &&
                          attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_OK && fake->launches == before + (tiles > 0),
                      "%s", attest_context_detail(context)) &&
            tiles)
            tap_check(launch_back(0)->grid == want && launch_back(0)->grid_y == 3 && launch_back(0)->grid_z == 2,
                      "the grid is %u, not %u", launch_back(0)->grid, want);
        attest_plan_destroy(plan);
    }
    attest_context_destroy(context);
    static const struct {
        uint32_t launch, cluster;
        uint64_t refuses;
        const char *sentence;
    } bad[] = {{ATTEST_LAUNCH_GRID, 3, 0, "has a cluster that cannot be"},
               {ATTEST_LAUNCH_GRID, 16, 0, "has a cluster that cannot be"},
               {ATTEST_LAUNCH_TILE, 2, 0, "has a cluster that cannot be"},
               {ATTEST_LAUNCH_JOINED, 32, ATTEST_INVARIANT, "has a cluster that cannot be"},
               {ATTEST_LAUNCH_JOINED, 8, 0, "kernel.refuses must have ATTEST_INVARIANT"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        made->kernel.launch = bad[i].launch;
        made->kernel.refuses = bad[i].refuses;
        for (uint32_t n = 0; n < made->kernel.image_count; n++)
            made->images[n].cluster = bad[i].cluster;
        context = context_on("cuda", NULL);
        tap_check(attest_context_add_cuda_kernel(context, &made->kernel) == ATTEST_ERROR_ARGUMENT, "case %zu is taken", i);
        says(context, bad[i].sentence);
        attest_context_destroy(context);
    }
    free(made);
}

/* What explain says of a kernel of the library on a GPU, and of those on the CPU. */
static void explanations(void)
{
    attest_context *context = context_on("cuda", NULL);
    attest_problem p = problem_of("fwd:f32:b2:h4:sq100:skv50:d64");
    char text[8192] = "";
    attest_status status = attest_explain(context, &p, text, sizeof text);
    if (!has_kernels(false)) {
        tap_check(status == ATTEST_ERROR_UNAVAILABLE, "without kernels the status is %s", attest_status_name(status));
        says(context, "this library was built without nvcc, so it has no kernels for GPUs");
    } else {
        tap_check(status == ATTEST_OK, "%s", attest_context_detail(context));
        tap_check(strstr(text, ": runs, with tiles of ") && strstr(text, " threads and 0 bytes of workspace"), "%s", text);
        tap_check(strstr(text, "cpu_fwd_f32_scalar: does not, it runs on the CPU, and this context is on cuda:0\n") != NULL, "%s",
                  text);
        tap_check(strstr(text, "ref_fwd: does not, it runs on the CPU") != NULL, "%s", text);
    }
    attest_context_destroy(context);
    context = context_on("cpu", NULL);
    tap_check(attest_explain(context, &p, text, sizeof text) == ATTEST_OK, "%s", attest_context_detail(context));
    if (has_kernels(false))
        tap_check(strstr(text, ": does not, it needs an NVIDIA GPU, and this context is on the CPU\n") != NULL, "%s", text);
    attest_context_destroy(context);
}

/* Every image of the library can be planned with, and says what it needs. */
static void library(void)
{
    static const char *const shapes[] = {"b1:hq4:hkv2:sq100:skv200:d64", "b1:hq4:hkv2:sq1:skv2000:d128", "b1:h1:sq3:skv5:d256:lse",
                                         "b1:h1:sq9:skv5:d500:lse"};
    static const char *const types[] = {"f32", "f16", "bf16"};
    static const char *const on[] = {"cuda:0", "cuda:2", "cuda:3"};
    int plans = 0;
    for (size_t d = 0; d < 3; d++)
        for (size_t t = 0; t < 3; t++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
                char line[128];
                snprintf(line, sizeof line, "fwd:%s:%s", types[t], shapes[s]);
                attest_context *context = context_on(on[d], NULL);
                attest_problem p = problem_of(line);
                attest_kernel_info info = {0};
                for (int k = 0; (k = drive_next(context, &p, k, &info)) >= 0; k++) {
                    attest_plan *plan = NULL;
                    tap_check(attest_plan_create(context, &p, info.name, &plan) == ATTEST_OK, "%s on %s: %s: %s", info.name, on[d],
                              line, attest_context_detail(context));
                    attest_plan_destroy(plan);
                    tap_check(strncmp(info.needs, "sm_", 3) == 0 && strcmp(info.backend, "cuda") == 0, "%s needs %s", info.name,
                              info.needs);
                    plans++;
                }
                attest_context_destroy(context);
            }
    tap_note("%d plans", plans);
    if (!has_kernels(false))
        tap_skip("this library was built without nvcc");
    else
        tap_check(plans >= 36, "only %d plans", plans);
}

/* The last map that was made or moved, or one before it. */
static const struct fake_map *map_back(int back)
{
    return &fake->map[(fake->maps + fake->moves - 1 - back) % FAKE_MAPS];
}

static void maps(void)
{
    /* A driver that cannot move maps: see cuda_backend.t. */
    const bool can_move = !getenv("FAKE_CUDA_CANNOT_MOVE");
    static const struct {
        const char *line;
        struct fake_map want[3]; /* q, k, o */
    } cases[] = {
        {"fwd:f16:b2:hq4:hkv2:sq100:skv50:d64",
         {{.type = 6, .rank = 5, .sizes = {64, 2, 100, 2, 2}, .strides = {12800, 128, 25600, 51200}, .box = {32, 2, 16, 1, 1}},
          {.type = 6, .rank = 4, .sizes = {64, 50, 2, 2}, .strides = {128, 6400, 12800}, .box = {64, 64, 1, 1}},
          {.type = 6, .rank = 5, .sizes = {64, 2, 100, 2, 2}, .strides = {12800, 128, 25600, 51200}, .box = {32, 2, 16, 1, 1}}}},
        {"fwd:f16:b2:hq4:hkv2:sq100:skv50:d64:o=f32:varlenq=150:lens:page=16,9",
         {{.type = 6, .rank = 5, .sizes = {64, 2, 150, 2, 1}, .strides = {128, 512, 256, 16}, .box = {32, 2, 16, 1, 1}},
          {.type = 6, .rank = 4, .sizes = {64, 16, 2, 9}, .strides = {256, 128, 4096}, .box = {64, 16, 1, 1}},
          {.type = 7, .rank = 5, .sizes = {64, 2, 150, 2, 1}, .strides = {256, 1024, 512, 16}, .box = {32, 2, 16, 1, 1}}}},
        {"fwd:f16:b1:hq4:hkv2:sq1:skv0:d64",
         {{.type = 6, .rank = 5, .sizes = {64, 2, 1, 2, 1}, .strides = {128, 128, 256, 512}, .box = {32, 2, 16, 1, 1}},
          {.type = 6, .rank = 4, .sizes = {64, 1, 2, 1}, .strides = {128, 16, 16}, .box = {64, 64, 1, 1}},
          {.type = 6, .rank = 5, .sizes = {64, 2, 1, 2, 1}, .strides = {128, 128, 256, 512}, .box = {32, 2, 16, 1, 1}}}},
    };
    struct made *made = kernel_make(ATTEST_LAUNCH_TILE, ATTEST_CUDA_PACKS);
    made->kernel.map_count = 3;
    memcpy(made->kernel.map_tensor, "qko", 3);
    made->kernel.map_swizzle[0] = 64;
    made->kernel.map_swizzle[1] = 128;
    for (uint32_t i = 0; i < made->kernel.image_count; i++) {
        made->images[i].align = 16;
        for (int m = 0; m < 3; m++) {
            made->images[i].map_rows[m] = m == 1 ? 64 : 32;
            made->images[i].map_columns[m] = m == 1 ? 64 : 32;
        }
    }
    attest_context *context = context_on("cuda", &made->kernel);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        attest_problem p = problem_of(cases[i].line);
        attest_plan *plan = NULL;
        attest_tensors t = {.size = sizeof t, .q = (void *)(uintptr_t)0x30000000000, .o = (void *)(uintptr_t)0x40000000000};
        t.k = p.seq_kv ? (void *)(uintptr_t)0x10000000000 : NULL;
        t.v = t.k ? (void *)(uintptr_t)0x20000000000 : NULL;
        t.cu_seqlens_q = p.flags & ATTEST_VARLEN_Q ? (int32_t *)(void *)arena : NULL;
        t.kv_lengths = p.flags & ATTEST_KV_LENGTHS ? (int32_t *)(void *)arena : NULL;
        t.page_table = p.flags & ATTEST_PAGED ? (int32_t *)(void *)arena : NULL;
        if (!tap_case("%s", cases[i].line) ||
            !tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_OK, "%s", attest_context_detail(context)))
            continue;
        int encoded = fake->maps, moved = fake->moves;
        tap_check(attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_OK, "%s", attest_context_detail(context));
        if (can_move && t.k) /* the plan has encoded them */
            tap_check(fake->maps == encoded && fake->moves == moved + 3, "%d encoded, %d moved", fake->maps - encoded,
                      fake->moves - moved);
        else
            tap_check(fake->maps == encoded + 3 && fake->moves == moved, "%d encoded, %d moved", fake->maps - encoded,
                      fake->moves - moved);
        const void *data[] = {t.q, t.k ? t.k : t.o, t.o};
        for (int m = 0; m < 3; m++) {
            const struct fake_map *got = map_back(2 - m), *want = &cases[i].want[m];
            tap_check(got->address == data[m], "map %d: it is of %p", m, got->address);
            tap_check(got->type == want->type && got->rank == want->rank &&
                          got->swizzle == (m == 0   ? 2
                                           : m == 1 ? 3
                                                    : 0) &&
                          !got->interleave && !got->fill,
                      "map %d: type %d, rank %u, swizzle %d", m, got->type, got->rank, got->swizzle);
            for (uint32_t n = 0; n < want->rank; n++)
                tap_check(got->sizes[n] == want->sizes[n] && got->box[n] == want->box[n], "map %d: dimension %u is %llu, box %u", m,
                          n, (unsigned long long)got->sizes[n], got->box[n]);
            for (uint32_t n = 0; n + 1 < want->rank; n++)
                tap_check(got->strides[n] == want->strides[n], "map %d: stride %u is %llu", m, n,
                          (unsigned long long)got->strides[n]);
        }
        t.q = (void *)(uintptr_t)0x30000000008;
        tap_check(attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_ERROR_ARGUMENT, "Q at a multiple of 8");
        says(context, "tensors.q is not aligned to 16 bytes, as made_up needs it");
        t.q = (void *)(uintptr_t)0x30000000000;
        fake->fail_map = 1;
        tap_check(attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_ERROR_DEVICE, "no map");
        says(context, "there is no tensor map of tensors.q: something made up (CUDA_ERROR_FAKE, CUDA error 1)");
        attest_plan_destroy(plan);
        /* A plan that could not encode them leaves it to its runs. */
        fake->fail_map = can_move ? 1 : 0;
        tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_OK && !fake->fail_map, "%s",
                  attest_context_detail(context));
        encoded = fake->maps;
        tap_check(attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_OK && fake->maps == encoded + 3, "%s",
                  attest_context_detail(context));
        attest_plan_destroy(plan);
    }
    /* 3 heads do not divide 32 rows: they are not packed. */
    attest_problem p = problem_of("fwd:f16:b1:hq3:hkv1:sq40:skv0:d64");
    attest_plan *plan = NULL;
    attest_tensors t = {.size = sizeof t, .q = (void *)(uintptr_t)0x30000000000, .o = (void *)(uintptr_t)0x40000000000};
    tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_OK &&
                  attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_OK,
              "%s", attest_context_detail(context));
    const struct fake_map *got = map_back(2);
    tap_check(launch_back(0)->args.pack == 1 && launch_back(0)->grid == 6, "%u blocks of %d heads", launch_back(0)->grid,
              launch_back(0)->args.pack);
    tap_check(got->sizes[1] == 1 && got->sizes[2] == 40 && got->sizes[3] == 3 && got->box[1] == 1 && got->box[2] == 32,
              "the map of Q is %llu x %llu x %llu", (unsigned long long)got->sizes[1], (unsigned long long)got->sizes[2],
              (unsigned long long)got->sizes[3]);
    attest_plan_destroy(plan);
    static const int pages[] = {1, 4, 12, 48, 96};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        char line[80];
        snprintf(line, sizeof line, "fwd:f16:b1:h1:sq1:skv4:d64:page=%d,100", pages[i]);
        p = problem_of(line);
        tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_ERROR_UNSUPPORTED, "pages of %d keys", pages[i]);
        says(context, "its blocks of 64 keys do not go with pages of ");
    }
    p = problem_of("fwd:f16:b1:h1:sq1:skv4:d64");
    p.stride_k[2] = -64;
    tap_check(attest_plan_create(context, &p, "made_up", &plan) == ATTEST_ERROR_UNSUPPORTED, "a negative stride");
    says(context, "the strides of K must be from 0 to 2^40 bytes");
    attest_context_destroy(context);
    free(made);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"images", images},     {"refusals", refusals},         {"tables", tables},   {"arguments", arguments}, {"grids", grids},
        {"clusters", clusters}, {"explanations", explanations}, {"library", library}, {"maps", maps},
    };
    return made_up_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
