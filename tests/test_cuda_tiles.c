/*
 * Kernels with several pairs of tiles, on GPUs that are made up (see made_up.h): which pair runs, by which count of its cost, and with
 * which pages.
 */
#include "made_up.h"

/* A pair of tiles of a kernel that is made up, and how fast it is said to be. */
struct pair {
    uint32_t q, kv, rate;
};

/* Every place that has tiles of 32x64 has `pairs[0]` now, and that of 48x64 `pairs[1]`. How much shared memory a launch asks for
 * tells which of them it is. */
static void set_pairs(struct made *made, const struct pair pairs[2])
{
    for (uint32_t i = 0; i < made->kernel.image_count; i++) {
        attest_cuda_image *image = &made->images[i];
        /* The second image of a dim is of the second pair. */
        uint32_t which = i && image[-1].facts.dim == image->facts.dim && image[-1].arch == image->arch;
        image->facts.tile_q = pairs[which].q;
        image->facts.tile_kv = pairs[which].kv;
        image->facts.dynamic_shared = 1000 + which;
        image->rate = pairs[which].rate;
    }
}

/* Which of the two pairs a plan runs with; -1 if there is none. */
static int pair_of(attest_context *context, const attest_problem *p, const char *kernel)
{
    attest_tensors t = {.size = sizeof t, .q = (void *)(uintptr_t)0x30000000000, .o = (void *)(uintptr_t)0x70000000000};
    attest_plan *plan = NULL;
    t.k = p->seq_kv ? (void *)(uintptr_t)0x10000000000 : NULL;
    t.v = p->seq_kv ? (void *)(uintptr_t)0x20000000000 : NULL;
    t.cu_seqlens_q = p->flags & ATTEST_VARLEN_Q ? (int32_t *)(void *)arena : NULL;
    t.cu_seqlens_kv = p->flags & ATTEST_VARLEN_KV ? (int32_t *)(void *)arena : NULL;
    t.kv_lengths = p->flags & ATTEST_KV_LENGTHS ? (int32_t *)(void *)arena : NULL;
    t.page_table = p->flags & ATTEST_PAGED ? (int32_t *)(void *)arena : NULL;
    int before = fake->launches, which = -1;
    if (attest_plan_create(context, p, kernel, &plan) == ATTEST_OK &&
        tap_check(attest_run(context, plan, &t, NULL, 0, NULL) == ATTEST_OK && fake->launches == before + 1, "%s",
                  attest_context_detail(context)))
        which = (int)launch_back(0)->shared - 1000;
    attest_plan_destroy(plan);
    return which;
}

/* Which pair runs, with costs that were worked out by hand: blocks of all tiles, one more for each, times tile_q * tile_kv. */
static void chosen_tiles(void)
{
    static const struct pair close[2] = {{32, 64, 100}, {48, 64, 100}}, slower[2] = {{32, 64, 100}, {48, 64, 80}},
                             slow[2] = {{32, 64, 100}, {48, 64, 70}}, silent[2] = {{32, 64, 0}, {48, 64, 100}},
                             asked[2] = {{32, 64, 100}, {48, 64, 0}}, large[2] = {{32, 64, 100}, {128, 128, 150}},
                             wide[2] = {{32, 64, 100}, {32, 512, 150}}, keys[2] = {{32, 64, 100}, {32, 48, 100}};
    static const struct {
        const struct pair *pairs;
        const char *kernel, *line;
        int want;
    } cases[] = {
        /* Rows: 64 against 48, 96 against 96, 64 against 96; and what is slower has to waste so much less. */
        {close, "made_up", "fwd:f16:b1:h1:sq40:skv64:d64", 1},
        {close, "made_up", "fwd:f16:b1:h1:sq96:skv64:d64", 0},
        {close, "made_up", "fwd:f16:b1:h1:sq49:skv64:d64", 0},
        {close, "made_up", "fwd:f16:b1:h1:sq1:skv64:d64", 0},
        {close, "made_up", "fwd:f16:b1:h1:sq0:skv64:d64", -2},
        {close, "made_up", "fwd:f16:b1:h1:sq40:skv0:d64", 1},
        {slower, "made_up", "fwd:f16:b1:h1:sq40:skv64:d64", 1},
        {slow, "made_up", "fwd:f16:b1:h1:sq40:skv64:d64", 0},
        /* The other dim, and one between that is padded. */
        {close, "made_up", "fwd:f16:b1:h1:sq40:skv64:d128", 1},
        {close, "made_up", "fwd:f16:b1:h1:sq40:skv64:d72", 1},
        /* Those without a rate run if they are asked for, or are the first. */
        {silent, "made_up", "fwd:f16:b1:h1:sq40:skv64:d64", 0},
        {asked, "made_up", "fwd:f16:b1:h1:sq40:skv64:d64", 0},
        {asked, "made_up@48x64", "fwd:f16:b1:h1:sq40:skv64:d64", 1},
        {close, "made_up@32x64", "fwd:f16:b1:h1:sq40:skv64:d64", 0},
        {close, "made_up@48x64", "fwd:f16:b1:h1:sq49:skv64:d64", 1},
        /* Heads that share a tile: 40 rows are 10 of each. */
        {close, "made_up", "fwd:f16:b1:hq4:hkv1:sq10:skv64:d64", 1},
        {close, "made_up", "fwd:f16:b1:hq4:hkv4:sq10:skv64:d64", 0},
        {close, "made_up", "fwd:f16:b1:hq4:hkv1:sq40:skv64:d64", 0},
        /* The batch does not matter; and bits that must not depend on lengths and pages do not depend on a choice. */
        {close, "made_up", "fwd:f16:b9:h5:sq40:skv64:d64", 1},
        {close, "made_up", "fwd:f16:b1000:h5:sq40:skv64:d64", 1},
        {close, "made_up", "fwd:f16:b9:h5:sq49:skv64:d64", 0},
        {close, "made_up", "fwd:f16:b1:h1:sq40:skv64:d64:invariant", 0},
        {close, "made_up@48x64", "fwd:f16:b1:h1:sq40:skv64:d64:invariant", 1},
        /* Of packed sequences the longest counts, of keys too. */
        {close, "made_up", "fwd:f16:b9:h1:sq40:skv64:d64:varlenq=99:varlenkv=99", 1},
        {close, "made_up", "fwd:f16:b9:h1:sq49:skv64:d64:varlenq=99:lens", 0},
        /* A mask: 4 tiles of 3 blocks are 24576 against 21845; if it is causal they are 2, 2, 3, 3 and 20480. */
        {large, "made_up", "fwd:f16:b1:h1:sq128:skv128:d64", 1},
        {large, "made_up", "fwd:f16:b1:h1:sq128:skv128:d64:causal", 0},
        /* Rows that are counted from the end see 16 blocks, from the beginning 1: 34816 against 32768, 4096 against 21845. */
        {wide, "made_up", "fwd:f16:b1:h1:sq32:skv1024:d64", 1},
        {wide, "made_up", "fwd:f16:b1:h1:sq32:skv1024:d64:causal", 0},
        {wide, "made_up", "fwd:f16:b1:h1:sq32:skv1024:d64:causal:br", 1},
        /* Windows: a tile sees 32 keys, in one block of each; or, to the left alone, more and more. */
        {wide, "made_up", "fwd:f16:b1:h1:sq1024:skv1024:d64", 1},
        {wide, "made_up", "fwd:f16:b1:h1:sq1024:skv1024:d64:wl=0:wr=0", 0},
        {wide, "made_up", "fwd:f16:b1:h1:sq1024:skv1024:d64:wl=2000:wr=4000000000", 1},
        /* Keys: 64 and 64 against 48 and 48. */
        {keys, "made_up", "fwd:f16:b1:h1:sq32:skv90:d64", 1},
        {keys, "made_up", "fwd:f16:b1:h1:sq32:skv100:d64", 0},
        /* More tiles than are looked at: 32768 rows of 32, and of 128. */
        {large, "made_up", "fwd:f16:b1:h1:sq32768:skv32768:d64", 1},
        {large, "made_up", "fwd:f16:b1:h1:sq32768:skv32768:d64:causal", 1},
        {large, "made_up", "fwd:f16:b1:h1:sq32768:skv32768:d64:wl=16:wr=16", 0},
        /* As large as can be: sums must not overflow. */
        {close, "made_up", "fwd:f16:b1:h1:sq1073741823:skv1073741823:d64:wl=1073741822:wr=1073741822", 0},
        {close, "made_up", "fwd:f16:b1:h1:sq1073741823:skv1:d64:causal:br:wl=1073741822", 0},
    };
    struct made *made = kernel_make(ATTEST_LAUNCH_TILE, ATTEST_CUDA_PADS | ATTEST_CUDA_PACKS);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        attest_problem p = problem_of(cases[i].line);
        if (!tap_case("%s, %ux%u: %s", cases[i].kernel, cases[i].pairs[1].q, cases[i].pairs[1].kv, cases[i].line))
            continue;
        set_pairs(made, cases[i].pairs);
        attest_context *context = context_on("cuda", &made->kernel);
        attest_plan *plan = NULL;
        if (cases[i].want < -1) { /* nothing is launched */
            tap_check(attest_plan_create(context, &p, cases[i].kernel, &plan) == ATTEST_OK, "%s", attest_context_detail(context));
            attest_plan_destroy(plan);
        } else {
            int got = pair_of(context, &p, cases[i].kernel);
            tap_check(got == cases[i].want, "it runs with pair %d", got);
        }
        attest_context_destroy(context);
    }
    /* Persistent blocks, 132 of them: 48 or 64 tiles are one round, and then the shorter ones are done sooner; many rounds are not. */
    static const struct pair rows[2] = {{192, 128, 100}, {128, 128, 80}};
    made->kernel.launch = ATTEST_LAUNCH_PERSISTENT;
    set_pairs(made, rows);
    attest_context *persistent = context_on("cuda", &made->kernel);
    attest_problem few = problem_of("fwd:f16:b2:h8:s512:d64"), many = problem_of("fwd:f16:b32:h32:s512:d64");
    tap_check(pair_of(persistent, &few, "made_up") == 1, "one round of long tiles");
    tap_check(pair_of(persistent, &many, "made_up") == 0, "more rounds of slow tiles");
    attest_context_destroy(persistent);
    made->kernel.launch = ATTEST_LAUNCH_TILE;
    /* PTX has one pair; and a pair that the GPU has no room for is not there. */
    attest_problem p = problem_of("fwd:f16:b1:h1:sq40:skv64:d64");
    set_pairs(made, close);
    attest_context *context = context_on("cuda:3", &made->kernel);
    tap_check(pair_of(context, &p, "made_up") == 0, "PTX has another pair");
    attest_context_destroy(context);
    /* Images of other dims and GPUs do not matter, however fast. */
    for (uint32_t i = 0; i < made->kernel.image_count; i++)
        if (made->images[i].arch != 90 || made->images[i].facts.dim != 64) {
            made->images[i].facts.dynamic_shared = 1007;
            made->images[i].rate = 1000;
        }
    context = context_on("cuda", &made->kernel);
    tap_check(pair_of(context, &p, "made_up") == 1, "an image of another dim or GPU runs");
    attest_context_destroy(context);
    set_pairs(made, close);
    for (uint32_t i = 0; i < made->kernel.image_count; i++)
        if (made->images[i].facts.tile_q == 48)
            made->images[i].facts.dynamic_shared = 112000;
    context = context_on("cuda:2", &made->kernel);
    tap_check(pair_of(context, &p, "made_up") == 0, "112000 bytes of shared memory on a GPU with 101376");
    attest_context_destroy(context);
    free(made);
}

/* The cost of one pair, from its definition: every row and every key is looked at. */
static int64_t cost_slowly(const attest_problem *p, const struct pair *pair)
{
    int64_t pack = p->heads_q / p->heads_kv, rows = p->seq_q * pack, cost = 0;
    for (int64_t first = 0; first < rows; first += pair->q) {
        int64_t seen = 0;
        for (int64_t block = 0; block * pair->kv < p->seq_kv; block++) {
            bool any = false;
            for (int64_t r = first; r < rows && r < first + pair->q; r++)
                for (int64_t j = block * pair->kv; j < p->seq_kv && j < (block + 1) * pair->kv; j++) {
                    int64_t place = r / pack + (p->flags & ATTEST_BOTTOM_RIGHT ? p->seq_kv - p->seq_q : 0);
                    any = any || !((p->flags & ATTEST_CAUSAL && j > place) ||
                                   (p->flags & ATTEST_WINDOW_LEFT && j < place - p->window_left) ||
                                   (p->flags & ATTEST_WINDOW_RIGHT && j > place + p->window_right));
                }
            seen += any;
        }
        cost += (seen ? seen : 1) + 1;
    }
    return cost * pair->q * pair->kv;
}

/* Problems and pairs by chance. */
static void random_tiles(void)
{
    struct made *made = kernel_make(ATTEST_LAUNCH_TILE, ATTEST_CUDA_PACKS);
    struct rng rng = rng_from(tap.seed, "tiles");
    int others = 0, problems = tap_amount(100, 400, 4000);
    for (int n = 0; n < problems; n++) {
        struct pair pairs[2];
        char line[160], wl[32] = "", wr[32] = "";
        for (int i = 0; i < 2; i++)
            pairs[i] = (struct pair){(uint32_t)(8 << rng_next(&rng) % 4), (uint32_t)(8 << rng_next(&rng) % 4),
                                     (uint32_t)(90 + rng_next(&rng) % 21)};
        if (rng_next(&rng) % 3 == 0)
            snprintf(wl, sizeof wl, ":wl=%d", (int)(rng_next(&rng) % 100));
        if (rng_next(&rng) % 3 == 0)
            snprintf(wr, sizeof wr, ":wr=%d", (int)(rng_next(&rng) % 100));
        bool causal = !*wr && rng_next(&rng) % 2;
        snprintf(line, sizeof line, "fwd:f16:b%d:hq%d:hkv2:sq%d:skv%d:d64%s%s%s%s", (int)(1 + rng_next(&rng) % 3),
                 (int)(2 << rng_next(&rng) % 3), (int)(1 + rng_next(&rng) % 200), (int)(rng_next(&rng) % 200),
                 causal ? ":causal" : "", (causal || *wl || *wr) && rng_next(&rng) % 2 ? ":br" : "", wl, wr);
        attest_problem p = problem_of(line);
        int64_t first = cost_slowly(&p, &pairs[0]), second = cost_slowly(&p, &pairs[1]);
        int want = second * pairs[0].rate < first * pairs[1].rate;
        set_pairs(made, pairs);
        attest_context *context = context_on("cuda", &made->kernel);
        int got = pair_of(context, &p, "made_up");
        tap_check(got == want, "%s runs with %ux%u at %u %%, not %ux%u at %u %%", line, pairs[!want].q, pairs[!want].kv,
                  pairs[!want].rate, pairs[want].q, pairs[want].kv, pairs[want].rate);
        others += want;
        attest_context_destroy(context);
    }
    tap_check(others > problems / 10 && others < problems * 9 / 10, "%d of %d problems have the second pair", others, problems);
    free(made);
}

/* A pair that takes the problem comes before one that does not. */
static void tiles_and_pages(void)
{
    static const struct pair pairs[2] = {{32, 48, 100}, {32, 64, 50}};
    static const struct {
        const char *line;
        int want;
    } cases[] = {{"fwd:f16:b1:h1:sq32:skv48:d64", 0},
                 {"fwd:f16:b1:h1:sq32:skv48:d64:page=16,9", 0},
                 {"fwd:f16:b1:h1:sq32:skv48:d64:page=96,9", 0},
                 {"fwd:f16:b1:h1:sq32:skv48:d64:page=64,9", 1},
                 {"fwd:f16:b1:h1:sq32:skv48:d64:page=40,9", -1},
                 {"fwd:f16:b1:h1:sq32:skv48:d64:page=64,9:invariant", -1}};
    struct made *made = kernel_make(ATTEST_LAUNCH_TILE, ATTEST_CUDA_PACKS);
    made->kernel.map_count = 1;
    made->kernel.map_tensor[0] = 'k';
    set_pairs(made, pairs);
    for (uint32_t i = 0; i < made->kernel.image_count; i++) {
        made->images[i].align = 16;
        made->images[i].map_rows[0] = made->images[i].facts.tile_kv;
        made->images[i].map_columns[0] = 64;
    }
    attest_context *context = context_on("cuda", &made->kernel);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        attest_problem p = problem_of(cases[i].line);
        if (!tap_case("%s", cases[i].line))
            continue;
        int got = pair_of(context, &p, "made_up");
        tap_check(got == cases[i].want, "it runs with pair %d", got);
        if (got < 0)
            says(context, "its blocks of 48 keys do not go with pages of ");
    }
    attest_context_destroy(context);
    /* The same with a number of rows, and with strides. */
    attest_problem p = problem_of("fwd:f16:b1:h1:sq32:skv48:d64"), odd = problem_of("fwd:f16:b1:h1:sq32:skv48:d64");
    odd.stride_k[2] += 8;
    for (uint32_t i = 0; i < made->kernel.image_count; i++)
        made->images[i].align = made->images[i].rate == 100 ? 32 : 16;
    context = context_on("cuda", &made->kernel);
    tap_check(pair_of(context, &p, "made_up") == 0 && pair_of(context, &odd, "made_up") == 1, "strides are not looked at");
    attest_context_destroy(context);
    for (uint32_t i = 0; i < made->kernel.image_count; i++)
        made->images[i].rows_most = made->images[i].rate == 100 ? 31 : 0;
    context = context_on("cuda", &made->kernel);
    tap_check(pair_of(context, &p, "made_up") == 1, "rows are not looked at");
    attest_context_destroy(context);
    free(made);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"chosen_tiles", chosen_tiles},
        {"random_tiles", random_tiles},
        {"tiles_and_pages", tiles_and_pages},
    };
    return made_up_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
