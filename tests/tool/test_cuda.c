/*
 * test_cuda.c - CUDA candidates as far as no GPU and no compiler are needed: manifests, the resource model, and the readers of what
 * ptxas, compute-sanitizer and ncu print (tests/data/cuda). tests/cuda_build.t runs it, and runs `with_tools` once more with tools
 * and a driver that are made up.
 */
#include "cuda_helpers.h"
#include "evidence/objects.h"
#include "cuda/cuda_expression.h"
#include "cuda/cuda_index.h"
#include "build/cuda_product.h"
#include "gates/cuda_profiler.h"
#include "gates/cuda_sanitizer.h"
#include "gates/cuda_tools.h"

/* ---- expressions ------------------------------------------------------------------------------------------------------------- */

static void expressions(void)
{
    static const struct cuda_name names[] = {{"dim", 64}, {"tile_q", 16}, {"bytes", 2}};
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        {"7", 7},
        {" 4 * (tile_q * dim + 32 * (dim + 1))", 4 * (16 * 64 + 32 * 65)},
        {"2 + 3 * 4 - 1", 13},
        {"17 / 4 * 4 + 17 % 4", 17},
        {"up(dim * 3 + 1, 128)", 256},
        {"min(3, dim) + max(3, dim)", 67},
        {"10 - 4 - 3", 3},
        {"0 - 5", -5},
        {"((((1))))", 1},
        {"9223372036854775807", INT64_MAX},
    };
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "at the end"},
        {"4 *", "at the end"},
        {"4 4", "operator is missing"},
        {"(4", "')' is missing"},
        {"4)", "operator is missing"},
        {"width", "'width' is not known here; known are dim tile_q bytes"},
        {"4dim", "operator is missing"},
        {"1 / 0", "division by 0"},
        {"1 % (2 - 2)", "division by 0"},
        {"up(3, 0)", "division by 0"},
        {"min(3)", "',' is missing"},
        {"max 3", "'(' is missing"},
        {"9223372036854775808", "too large"},
        {"9223372036854775807 * 2", "too large"},
        {"9223372036854775807 + 1", "too large"},
        {"$", "is missing at '$'"},
    };
    char why[200];
    int64_t value;
    for (int i = 0; i < COUNT_OF(good); i++)
        if (tap_case("%s", good[i].text))
            tap_check(cuda_expression_value(good[i].text, names, 3, &value, why, sizeof why) && value == good[i].value,
                      "it is %lld, not %lld", (long long)good[i].value, (long long)value);
    for (int i = 0; i < COUNT_OF(bad); i++)
        if (tap_case("%s", bad[i].text) &&
            tap_check(!cuda_expression_value(bad[i].text, names, 3, &value, why, sizeof why), "it should be refused"))
            contains(why, bad[i].says);
    char deep[4096];
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    tap_check(!cuda_expression_value(deep, names, 3, &value, why, sizeof why), "4095 parentheses should be refused");
}

/* ---- manifests --------------------------------------------------------------------------------------------------------------- */

static const char plain_manifest[] = "# a manifest\n"
                                     "summary = a test\n"
                                     "archs = sm_80 sm_89 sm_90\n"
                                     "dtypes = f16 bf16\n"
                                     "dims = 64 128\n"
                                     "tile_q = 64\n"
                                     "tile_kv = 64\n"
                                     "tile_kv [d128] = 32\n"
                                     "stages = 2\n"
                                     "threads = 32 * 4\n"
                                     "shared = bytes * dim * (tile_q + 2 * stages * tile_kv)\n"
                                     "registers = 168\n"
                                     "registers [sm_90 d128] = 200\n"
                                     "launch = tile\n"
                                     "tensor = hmma\n"
                                     "mma_qk = 16 * 8 * 16\n"
                                     "mma_pv = mma\n"
                                     "refuses = bias page o=f32 dv\n"
                                     "space = tile_q 32 64 128; tile_kv 32 64\n";

static void manifest_good(void)
{
    struct cuda_manifest manifest;
    struct cuda_configuration c;
    char why[600], *text = replaced(plain_manifest, "mma_pv = mma", "mma_pv = 2048");
    if (!tap_check(parse(text, &manifest, why, sizeof why), "%s", why))
        return;
    int sm_80 = cuda_arch_find("sm_80"), sm_90 = cuda_arch_find("sm_90");
    tap_check(manifest.dtypes == (1u << ATTEST_F16 | 1u << ATTEST_BF16), "dtypes are %x", manifest.dtypes);
    tap_check(manifest.dims.count == 2 && manifest.dims.values[1] == 128, "dims are wrong");
    tap_check(manifest.refuses == (ATTEST_BIAS | ATTEST_PAGED) && manifest.refuses_o32 && manifest.refuses_dimv,
              "refusals are wrong");
    tap_check(cuda_configure(&manifest, sm_80, ATTEST_F16, 64, NULL, &c, why, sizeof why), "%s", why);
    tap_check(c.numbers[CUDA_TILE_KV] == 64 && c.numbers[CUDA_SHARED] == 2 * 64 * (64 + 4 * 64) && c.numbers[CUDA_THREADS] == 128,
              "the numbers for d64 are wrong: %lld", (long long)c.numbers[CUDA_SHARED]);
    tap_check(c.numbers[CUDA_THREAD_REGISTERS_MOST] == 168 && c.numbers[CUDA_BLOCKS_PER_SM] == 1, "defaults are wrong");
    tap_check(cuda_configure(&manifest, sm_90, ATTEST_F16, 128, NULL, &c, why, sizeof why), "%s", why);
    tap_check(c.numbers[CUDA_TILE_KV] == 32 && c.numbers[CUDA_THREAD_REGISTERS_MOST] == 200, "conditions are not looked at");
    tap_check(json_object_size(manifest.lines) == 18 &&
                  strcmp(json_string_value(json_object_get(manifest.lines, "tile_kv [d128]")), "32") == 0,
              "the lines are not kept: %zu", json_object_size(manifest.lines));
    cuda_manifest_free(&manifest);
    free(text);

    text = read_text("lib/cuda/kernels/cuda_fwd_scalar.cu");
    tap_check(cuda_manifest_parse(text, strlen(text), "cuda_fwd_scalar.cu", true, &manifest, why, sizeof why), "%s", why);
    tap_check(strcmp(manifest.name, "cuda_fwd_scalar") == 0 && manifest.launch == ATTEST_LAUNCH_TILE && manifest.padding,
              "the template's manifest is read wrongly");
    cuda_manifest_free(&manifest);
    free(text);
}

/* The images that a manifest promises: one for each architecture that has its own, dtype, dim and pair of tiles. */
static void manifest_images(void)
{
    enum { MOST = 32 };
    static const char *const want[] = {"bf16 d64 sm_80",        "bf16 d64 48x64 sm_80",  "bf16 d64 32x32 sm_80", "bf16 d128 sm_80",
                                       "bf16 d128 48x64 sm_80", "bf16 d128 32x32 sm_80", "bf16 d128 64x64 sm_80"};
    struct cuda_manifest manifest;
    struct cuda_configuration images[MOST];
    char why[600], *all = replaced(plain_manifest, "mma_pv = mma", "mma_pv = 2048"), place[64];
    char *text = replaced(all, "summary = a test", "tiles = 48x64 32x32 64x64");
    if (!tap_check(parse(text, &manifest, why, sizeof why), "%s", why))
        return;
    int count = cuda_manifest_images(&manifest, 0, images, MOST, why, sizeof why);
    tap_check(count == 28, "there are %d images", count); /* of sm_80 and sm_90; 64x64 is what d64 has anyway */
    count = cuda_manifest_images(&manifest, ATTEST_BF16, images, MOST, why, sizeof why);
    tap_check(count == 14, "there are %d images of one dtype", count);
    for (int i = 0; i < COUNT_OF(want); i++) {
        cuda_configuration_name(&images[i], place, sizeof place);
        tap_check(strcmp(place, want[i]) == 0, "image %d is %s, not %s", i, place, want[i]);
    }
    tap_check(images[1].numbers[CUDA_SHARED] == 2 * 64 * (48 + 2 * 2 * 64), "48x64 has %lld bytes of shared memory",
              (long long)images[1].numbers[CUDA_SHARED]);
    tap_check(cuda_manifest_images(&manifest, 0, images, 5, why, sizeof why) == -1, "28 images should not fit into 5");
    contains(why, "more than 5 images");
    cuda_manifest_free(&manifest);
    free(text);

    text = replaced(all, "summary = a test", "rows_most = 2 * tile_q\npacks = yes");
    attest_problem problem;
    attest_problem_init(&problem, ATTEST_F16, 1, 8, 2, 33, 100, 64);
    tap_check(parse(text, &manifest, why, sizeof why), "%s", why);
    const char *said = cuda_manifest_refusal(&manifest, &problem, why, sizeof why);
    if (tap_check(said != NULL, "132 rows should be refused"))
        contains(said, "it is for at most 128 rows of a KV head, and there are 132");
    attest_problem_init(&problem, ATTEST_F16, 1, 8, 2, 32, 100, 64);
    tap_check(!cuda_manifest_refusal(&manifest, &problem, why, sizeof why), "128 rows should be taken: %s", why);
    cuda_manifest_free(&manifest);
    free(text);

    text = replaced(all, "summary = a test", "tiles_most = 4");
    attest_problem_init(&problem, ATTEST_F16, 1, 2, 2, 128, 100, 64);
    tap_check(parse(text, &manifest, why, sizeof why), "%s", why);
    tap_check(!cuda_manifest_refusal(&manifest, &problem, why, sizeof why), "4 tiles should be taken: %s", why);
    problem.flags |= ATTEST_INVARIANT;
    said = cuda_manifest_refusal(&manifest, &problem, why, sizeof why);
    if (tap_check(said != NULL, "the invariant flag should be refused"))
        contains(said, "it takes problems by their number of tiles");
    attest_problem_init(&problem, ATTEST_F16, 1, 2, 2, 129, 100, 64);
    said = cuda_manifest_refusal(&manifest, &problem, why, sizeof why);
    if (tap_check(said != NULL, "6 tiles should be refused"))
        contains(said, "it is for at most 4 tiles, and there are 6");
    cuda_manifest_free(&manifest);
    free(text);
    free(all);
}

/* Pairs of tiles for some dims alone, and how fast they are. */
static void manifest_tiles(void)
{
    enum { MOST = 32 };
    static const struct {
        const char *name;
        int64_t rate;
    } want[] = {{"f16 d64 sm_80", 100}, {"f16 d64 16x16 sm_80", 76},  {"f16 d64 48x64 sm_80", 92},  {"f16 d64 128x32 sm_80", 132},
                {"f16 d128 sm_80", 0},  {"f16 d128 48x64 sm_80", 80}, {"f16 d128 16x16 sm_80", 80}, {"f16 d64 sm_90", 100}};
    struct cuda_manifest manifest;
    struct cuda_configuration images[MOST];
    char why[600], *all = replaced(plain_manifest, "mma_pv = mma", "mma_pv = 2048"), place[64];
    char *text = replaced(all, "summary = a test",
                          "tiles [d128] = 48x64\ntiles = 16x16\ntiles [d64] = 48x64 128x32\n"
                          "rate = 68 + tile_q / 2\nrate [d128] = 80 * min(1, tile_q % 64)");
    if (!tap_check(parse(text, &manifest, why, sizeof why), "%s", why))
        return;
    int count = cuda_manifest_images(&manifest, ATTEST_F16, images, MOST, why, sizeof why);
    tap_check(count == 14, "there are %d images", count);
    for (int i = 0; i < COUNT_OF(want); i++) {
        cuda_configuration_name(&images[i], place, sizeof place);
        tap_check(strcmp(place, want[i].name) == 0 && images[i].numbers[CUDA_RATE] == want[i].rate,
                  "image %d is %s at %lld, not %s at %lld", i, place, (long long)images[i].numbers[CUDA_RATE], want[i].name,
                  (long long)want[i].rate);
        json_t *entry = cuda_index_image(&images[i], i, "file", "digest", 9), *rate = json_object_get(entry, "rate");
        tap_check(want[i].rate ? json_integer_value(rate) == want[i].rate : !rate, "the index says something else of %s", place);
        json_decref(entry);
    }
    tap_check(strcmp(json_string_value(json_object_get(manifest.lines, "tiles [d64]")), "48x64 128x32") == 0,
              "the lines are not kept");
    cuda_manifest_free(&manifest);
    free(text);
    free(all);
}

/* A problem that tile_q x tile_kv does not take is taken if a pair does that may run. */
static void tiles_that_take(void)
{
    static const struct {
        const char *tiles, *problem;
        bool taken;
    } cases[] = {
        {"rate = 100", "fwd:f16:h2:s64:d64:page=16,8", true},
        {"rate = 100", "fwd:f16:h2:s64:d64:page=64,8", true},
        {"rate = 100", "fwd:f16:h2:s64:d128:page=64,8", false},
        {"rate = 100", "fwd:f16:h2:s64:d64:page=40,8", false},
        {"rate = 100", "fwd:f16:h2:s64:d64:page=64,8:invariant", false},
        {"rate = 100", "fwd:f16:h2:s64:d64:page=16,8:invariant", true},
        {"rate = 100 * (tile_kv % 64) / 48", "fwd:f16:h2:s64:d64:page=64,8", false},
        {"rate = 100 * (tile_kv % 48) / 16", "fwd:f16:h2:s64:d64:page=64,8", false},
        {"summary = no rate", "fwd:f16:h2:s64:d64:page=64,8", false},
    };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct cuda_manifest manifest;
        attest_problem problem;
        char why[600], text[500];
        if (!tap_case("%s %s", cases[i].tiles, cases[i].problem))
            continue;
        snprintf(text, sizeof text,
                 "archs = sm_90\ndtypes = f16\ndims = 64 128\ntile_q = 64\ntile_kv = 48\nthreads = 128\nshared = 0\n"
                 "registers = 128\nlaunch = tile\nalign = 16\nmap = k rows tile_kv columns 64 swizzle 128\n"
                 "tiles [d64] = 64x56 64x64\n%s\n",
                 cases[i].tiles);
        tap_check(parse(text, &manifest, why, sizeof why), "%s", why);
        tap_check(attest_problem_parse(cases[i].problem, &problem, why, sizeof why) == ATTEST_OK, "%s", why);
        const char *said = cuda_manifest_refusal(&manifest, &problem, why, sizeof why);
        tap_check(!said == cases[i].taken, "%s", said ? said : "it is taken");
        if (said)
            contains(said, "its blocks of keys and the pages must be multiples of one another");
        cuda_manifest_free(&manifest);
    }
}

/* A line of a good manifest is replaced by a bad one: the sentence must name the line and what to write. */
static void manifest_bad(void)
{
    static const struct {
        const char *from, *to, *says;
    } bad[] = {
        {"archs = sm_80 sm_89 sm_90", "archs = sm_80 sm_99",
         "k.manifest:3: 'sm_99' is no architecture; write one or more of sm_80"},
        {"archs = sm_80 sm_89 sm_90\n", "", "lacks a line such as: archs = sm_80 sm_90"},
        {"archs = sm_80 sm_89 sm_90", "archs =", "k.manifest:3: archs is empty"},
        {"dtypes = f16 bf16", "dtypes = f16 fp8", "k.manifest:4: 'fp8' is no dtype; write one or more of f32 f16 bf16"},
        {"dims = 64 128", "dims = 128 64", "k.manifest:5: dims must rise, and 64 comes after 128"},
        {"dims = 64 128", "dims = 64 1024", "k.manifest:5: '1024' cannot be one of dims; write integers from 1 to 512"},
        {"tile_q = 64", "tile_k = 64", "k.manifest:6: 'tile_k' is no key of a manifest; did you mean tile_q?"},
        {"tile_q = 64", "tile_q 64", "k.manifest:6: 'tile_q 64' has no '='; write key = value"},
        {"tile_q = 64", "tile_q = 64 x", "k.manifest:6: tile_q = 64 x: an operator is missing"},
        {"tile_q = 64", "tile_q = dimension", "'dimension' is not known here; known are dim bytes arch"},
        {"tile_q = 64", "tile_q = tile_kv", "'tile_kv' is not known here"},
        {"tile_q = 64", "tile_q = 0", "k.manifest:6: tile_q is 0 for f16 d64 sm_80; it must be 1 to 1024"},
        {"tile_q = 64\n", "", "does not say what tile_q is for f16 d64 sm_80"},
        {"tile_q = 64", "tile_q = 64\ntile_q = 32", "k.manifest:7: tile_q is there twice"},
        {"tile_kv [d128] = 32", "tile_kv [d96] = 32", "k.manifest:8: the condition d96 can never hold: it is none of dims"},
        {"tile_kv [d128] = 32", "tile_kv [f32] = 32", "k.manifest:8: the condition f32 can never hold: it is none of dtypes"},
        {"tile_kv [d128] = 32", "tile_kv [big] = 32", "k.manifest:8: 'big' is no condition"},
        {"tile_kv [d128] = 32", "tile_kv [] = 32", "k.manifest:8: the condition [] is empty"},
        {"tile_kv [d128] = 32", "tile_kv [d128 = 32", "does not end in ']'"},
        {"tile_kv [d128] = 32", "tile_kv [sm_80 sm_90] = 32", "can never hold"},
        {"dims = 64 128", "dims [f16] = 64 128", "k.manifest:5: dims cannot have a condition"},
        {"threads = 32 * 4", "threads = 100", "threads must be a multiple of 32"},
        {"launch = tile", "launch = heap", "k.manifest:14: launch is 'heap'; write tile, persistent, split, grid or joined"},
        {"launch = tile", "launch = split", "launch = split needs partial and split_keys"},
        {"launch = tile", "launch = tile\npartial = 66", "partial and split_keys are for launch = split"},
        {"tensor = hmma", "tensor = gmma", "tensor = gmma needs sm_90a"},
        {"tensor = hmma\n", "", "mma_qk and mma_pv are for tensor = hmma or gmma"},
        {"mma_pv = 2048\n", "", "tensor = hmma or gmma needs mma_qk and mma_pv"},
        {"refuses = bias", "refuses = biass", "k.manifest:18: 'biass' is nothing that can be refused; did you mean bias?"},
        {"summary = a test", "padding = maybe", "k.manifest:2: padding is 'maybe'; write yes or no"},
        {"summary = a test", "flags = -ccbin=evil", "k.manifest:2: the flag '-ccbin=evil' is not among -DNAME"},
        {"summary = a test", "flags = -G", "the flag '-G' is not among"},
        {"summary = a test", "flags = -lineinfo", "the flag '-lineinfo' is not among"},
        {"summary = a test", "flags = -DX=`id`", "is not among"},
        {"summary = a test", "name = a-b", "k.manifest:2: the name 'a-b' has other signs than letters, digits and _"},
        {"summary = a test", "map = k",
         "k.manifest:2: 'k' is no map; write for example map = k rows tile_kv columns 64 swizzle 128"},
        {"summary = a test", "map = k rows tile_kv columns 64 swizzle 100", "the swizzle is '100'; write 0, 32, 64 or 128"},
        {"summary = a test", "map = k rows tile_kv columns 64 swizzle 128", "tensor maps need align = 16"},
        {"summary = a test", "align = 24", "align must be a power of two"},
        {"summary = a test", "pdl = yes", "pdl is for launch = split"},
        {"summary = a test", "tiles = 48", "k.manifest:2: '48' is no pair of tiles; write for example tiles = 48x64 32x32"},
        {"summary = a test", "tiles = 48x64x2", "k.manifest:2: '48x64x2' is no pair of tiles"},
        {"summary = a test", "tiles = 48x64 32x32 48x64", "k.manifest:2: 48x64 is there twice"},
        {"summary = a test", "tiles =", "k.manifest:2: tiles is empty"},
        {"summary = a test", "tiles = 48x64\ntiles [d64] =", "k.manifest:3: tiles is empty"},
        {"summary = a test", "tiles = 48x64\ntiles [d64] = 32x32 48x64", "k.manifest:3: 48x64 is there twice"},
        {"summary = a test", "tiles [d64] = 48x64\ntiles = 48x64", "k.manifest:3: 48x64 is there twice"},
        {"summary = a test", "tiles [d64] = 48x64\ntiles [d64] = 32x32", "k.manifest:3: tiles [d64] is there twice"},
        {"summary = a test", "tiles [sm_90] = 48x64", "k.manifest:2: tiles can have a condition on the dimension alone"},
        {"summary = a test", "tiles [f16 d64] = 48x64", "k.manifest:2: tiles can have a condition on the dimension alone"},
        {"summary = a test", "tiles [] = 48x64", "k.manifest:2: the condition [] is empty"},
        {"summary = a test", "tiles [d96] = 48x64", "k.manifest:2: the condition d96 can never hold: it is none of dims"},
        {"summary = a test", "rate = 0 - 1", "k.manifest:2: rate is -1 for f16 d64 sm_80; it must be 0 to 1000"},
        {"summary = a test", "rate = 10 * 101", "k.manifest:2: rate is 1010 for f16 d64 sm_80; it must be 0 to 1000"},
        {"summary = a test", "rate = fast", "k.manifest:2: rate = fast: 'fast' is not known here"},
        {"summary = a test", "tiles [d64] = 48x64\nrate = 64 / (tile_q - 48)", "k.manifest:3: rate = 64 / (tile_q - 48)"},
        {"summary = a test", "rows_most = 0 - 1", "rows_most is -1 for f16 d64 sm_80"},
        {"summary = a test", "cluster = 3", "cluster must be 1, 2, 4 or 8, or with launch = joined 16"},
        {"summary = a test", "cluster = 2", "clusters need launch = grid or joined, and sm_90 or later"},
        {"launch = tile", "launch = joined", "launch = joined needs cluster = 2, 4, 8 or 16, and refuses = invariant"},
        {"space = tile_q", "space = registers", "k.manifest:19: 'registers' cannot be searched"},
        {"summary = a test", "summary = \xff", "k.manifest:2: the value of summary is not UTF-8 text"},
    };
    char *good = replaced(plain_manifest, "mma_pv = mma", "mma_pv = 2048"), why[600];
    struct cuda_manifest manifest;
    for (int i = 0; i < COUNT_OF(bad); i++) {
        if (!tap_case("%s", bad[i].to[0] ? bad[i].to : bad[i].from))
            continue;
        char *text = replaced(good, bad[i].from, bad[i].to);
        if (tap_check(!parse(text, &manifest, why, sizeof why), "it should be refused: %s", bad[i].says))
            contains(why, bad[i].says);
        cuda_manifest_free(&manifest);
        free(text);
    }
    static const struct {
        const char *text, *says;
        bool is_source;
    } whole[] = {
        {"", "the file has no line", false},
        {"/* a kernel */\nint x;\n", "k.cu:1: no line of the first comment begins with 'attest-cuda:'", true},
        {"/*\n * attest-cuda: archs = sm_80 */\n * attest-cuda: dims = 1\n", "dtypes = f16 bf16", true},
        {"/*\n * attest-cuda archs = sm_80\n */", "no line of the first comment", true},
    };
    for (int i = 0; i < COUNT_OF(whole); i++)
        if (tap_case("whole %d", i) && tap_check(!cuda_manifest_parse(whole[i].text, strlen(whole[i].text), "k.cu",
                                                                      whole[i].is_source, &manifest, why, sizeof why),
                                                 "it should be refused")) {
            contains(why, whole[i].says);
            cuda_manifest_free(&manifest);
        }
    tap_check(!cuda_manifest_parse("a = 1\0b", 7, "k", false, &manifest, why, sizeof why), "a zero byte should be refused");
    contains(why, "zero byte");
    cuda_manifest_free(&manifest);
    free(good);
}

/* Whatever the bytes are, the reader ends with a manifest or a sentence. */
static void manifest_random(void)
{
    char *good = replaced(plain_manifest, "mma_pv = mma", "mma_pv = 2048"), why[600];
    size_t size = strlen(good);
    struct drawing drawing = {0};
    int taken = 0;
    for (int n = 0; n < tap_amount(300, 3000, 100000); n++) {
        char *text = malloc(size);
        struct cuda_manifest manifest;
        memcpy(text, good, size);
        for (uint64_t changes = 1 + draw(&drawing) % 4; changes; changes--) {
            static const char signs[] = "0123456789 =[]();*/+-%,#\n\\'\"dfsmb_\xff";
            text[draw(&drawing) % size] = signs[draw(&drawing) % (sizeof signs - 1)];
        }
        size_t length = draw(&drawing) % 8 ? size : draw(&drawing) % size;
        why[0] = '\0';
        bool good_one = cuda_manifest_parse(text, length, "k", draw(&drawing) % 2, &manifest, why, sizeof why);
        tap_check(good_one || strncmp(why, "k:", 2) == 0, "'%.200s' is refused without a place", why);
        taken += good_one;
        cuda_manifest_free(&manifest);
        free(text);
    }
    tap_note("%d changed manifests were still good", taken);
    free(good);
}

static void refusals(void)
{
    static const struct {
        const char *problem, *says; /* NULL: it is taken */
    } cases[] = {
        {"fwd:f16:h2:s64:d64:causal", NULL},
        {"fwd:bf16:h2:s64:d128:wl=8:lse", NULL},
        {"fwd:f32:h2:s64:d64", "it does not take f32"},
        {"fwd:f16:h2:s64:d64:bias", "it does not take a bias"},
        {"fwd:f16:h2:s64:d64:page=16,8", "it does not take paged keys"},
        {"fwd:f16:h2:s64:d64:o=f32", "an O of another type than Q"},
        {"fwd:f16:h2:s64:d64:dv128", "a dim_v that differs from dim"},
        {"fwd:f16:h2:s64:d96", "dim 96 is none of 64 128"},
    };
    char *text = replaced(plain_manifest, "mma_pv = mma", "mma_pv = 2048"), why[600];
    struct cuda_manifest manifest;
    attest_problem problem;
    tap_check(parse(text, &manifest, why, sizeof why), "%s", why);
    for (int i = 0; i < COUNT_OF(cases); i++) {
        if (!tap_case("%s", cases[i].problem))
            continue;
        tap_check(attest_problem_parse(cases[i].problem, &problem, why, sizeof why) == ATTEST_OK, "%s", why);
        const char *said = cuda_manifest_refusal(&manifest, &problem, why, sizeof why);
        if (tap_check(!said == !cases[i].says, "it says: %s", said ? said : "nothing") && said)
            contains(said, cases[i].says);
    }
    cuda_manifest_free(&manifest);
    free(text);

    text = replaced(plain_manifest, "mma_pv = mma", "mma_pv = 2048\nalign = 16\npadding = yes");
    char *padded = replaced(text, "refuses = bias page o=f32 dv", "refuses = bias");
    tap_check(parse(padded, &manifest, why, sizeof why), "%s", why);
    attest_problem_init(&problem, ATTEST_F16, 1, 1, 1, 8, 8, 72);
    problem.dim_v = 96;
    attest_problem_pack(&problem);
    tap_check(cuda_manifest_instance(&manifest, &problem) == 128, "dims 72 and 96 run on 128");
    tap_check(!cuda_manifest_refusal(&manifest, &problem, why, sizeof why), "it should be taken: %s", why);
    problem.stride_k[2] += 1;
    const char *said = cuda_manifest_refusal(&manifest, &problem, why, sizeof why);
    contains(said ? said : "nothing", "the strides of K must be multiples of 16 bytes");
    problem.dim = 200;
    said = cuda_manifest_refusal(&manifest, &problem, why, sizeof why);
    contains(said ? said : "nothing", "dim 200 is beyond 128");
    cuda_manifest_free(&manifest);
    free(text);
    free(padded);
}

/* ---- resources --------------------------------------------------------------------------------------------------------------- */

static void resources(void)
{
    static const struct {
        const char *arch;
        struct cuda_use use;
        int blocks;
        const char *says;
    } known[] = {
        /* Occupancies as NVIDIA's own calculator gives them. */
        {"sm_80", {1024, 32, 0, 0}, 2, "warps keep out"},
        {"sm_80", {1024, 33, 0, 0}, 1, "registers keep out"},
        {"sm_80", {128, 255, 0, 0}, 2, "registers keep out"},
        {"sm_80", {256, 64, 163 * 1024, 0}, 1, "shared memory keeps out"},
        {"sm_80", {128, 128, 40960, 0}, 4, "registers keep out"},
        {"sm_86", {32, 16, 0, 0}, 16, "blocks keep out"},
        {"sm_89", {32, 16, 0, 0}, 24, "blocks keep out"},
        {"sm_89", {128, 128, 99 * 1024, 0}, 1, "shared memory keeps out"},
        {"sm_89", {128, 64, 49152, 0}, 2, "shared memory keeps out"},
        {"sm_90", {384, 168, 227 * 1024, 0}, 1, "registers keep out"},
        {"sm_90", {128, 32, 0, 16}, 4, "barriers keep out"},
        {"sm_90", {1024, 32, 112 * 1024, 0}, 2, "warps keep out"},
        /* Too much. */
        {"sm_89",
         {128, 64, 99 * 1024 + 1, 0},
         0,
         "needs 101377 bytes of shared memory, and sm_89 has 101376 (99 KB of the SM's 100 KB)"},
        {"sm_86", {128, 64, 120000, 0}, 0, "needs 120000 bytes of shared memory, and sm_86 has 101376"},
        {"sm_80", {128, 64, 163 * 1024 + 1, 0}, 0, "sm_80 has 166912 (163 KB of the SM's 164 KB)"},
        {"sm_90", {128, 64, 227 * 1024 + 1, 0}, 0, "sm_90 has 232448 (227 KB of the SM's 228 KB)"},
        {"sm_80", {1024, 65, 0, 0}, 0, "1024 threads of 65 registers need 73728 registers, and an SM has 65536"},
        {"sm_80", {128, 256, 0, 0}, 0, "a thread has 256 registers, and at most 255 are possible"},
        {"sm_80", {1056, 32, 0, 0}, 0, "a block has 1056 threads, and 1 to 1024 are possible"},
    };
    for (int i = 0; i < COUNT_OF(known); i++) {
        if (!tap_case("%s %d", known[i].arch, i))
            continue;
        struct cuda_fit fit = cuda_fit(&cuda_limits[cuda_arch_find(known[i].arch)], &known[i].use);
        tap_check(fit.blocks == known[i].blocks && fit.fits == (known[i].blocks > 0), "%d blocks, not %d: %s", fit.blocks,
                  known[i].blocks, fit.sentence);
        contains(fit.sentence, known[i].says);
    }
    struct cuda_use half = {512, 64, 0, 0};
    tap_check(cuda_fit(&cuda_limits[cuda_arch_find("sm_80")], &half).occupancy == 0.5, "32 of 64 warps are one half");
    tap_check(cuda_arch_find("sm_12") == -1, "sm_12 is known");
}

struct visited {
    int fit, refused;
    char first[300];
};

static void visit(void *data, const struct cuda_configuration *configuration, const char *why)
{
    struct visited *visited = data;
    if (why && !visited->refused++)
        snprintf(visited->first, sizeof visited->first, "%lldx%lld: %s", (long long)configuration->numbers[CUDA_TILE_Q],
                 (long long)configuration->numbers[CUDA_TILE_KV], why);
    visited->fit += !why;
}

/* Tiles of D 256 in two stages: 64 x 64 need 160 KB, which 8.0 has; 64 x 32 need 96 KB, which 8.9 has too; 128 x 32 need more. */
static void space(void)
{
    char *text = replaced(plain_manifest, "mma_pv = mma", "mma_pv = 2048"),
         *wide = replaced(text, "dims = 64 128", "dims = 128 256");
    char why[600];
    struct cuda_manifest manifest;
    struct visited on_80 = {0}, on_89 = {0};
    tap_check(parse(wide, &manifest, why, sizeof why), "%s", why);
    tap_check(cuda_space_visit(&manifest, cuda_arch_find("sm_80"), ATTEST_F16, 256, visit, &on_80) == 6, "3 x 2 choices");
    tap_check(cuda_space_visit(&manifest, cuda_arch_find("sm_89"), ATTEST_F16, 256, visit, &on_89) == 6, "3 x 2 choices");
    tap_check(on_80.fit == 5 && on_80.refused == 1, "%d fit on sm_80", on_80.fit);
    tap_check(on_89.fit == 2 && on_89.refused == 4, "%d fit on sm_89", on_89.fit);
    contains(on_89.first, "128x32: a block needs 131072 bytes of shared memory, and sm_89 has 101376");
    cuda_manifest_free(&manifest);
    free(text);
    free(wide);
}

/* ---- what the compiler says -------------------------------------------------------------------------------------------------- */

static void assembler(void)
{
    struct cuda_ptxas said[4];
    char *text = read_text("ptxas_two.txt"), line[300];
    tap_check(cuda_ptxas_parse(text, said, 4) == 2, "it speaks of two entries");
    tap_check(strcmp(said[0].name, "attest_combine") == 0 && said[0].registers == 10 && said[0].shared == 0 &&
                  said[0].barriers == 0,
              "the first is read wrongly");
    tap_check(strcmp(said[1].name, "attest_kernel") == 0 && strcmp(said[1].arch, "sm_90a") == 0 && said[1].registers == 25 &&
                  said[1].shared == 256 && said[1].barriers == 1 && said[1].spill_stores == 0 && said[1].stack == 0,
              "the second is read wrongly: %lld registers", (long long)said[1].registers);
    tap_check(cuda_ptxas_parse(text, said, 1) == 2, "the count does not depend on the room");
    free(text);

    text = read_text("ptxas_spill.txt");
    tap_check(cuda_ptxas_parse(text, said, 4) == 1 && said[0].spill_stores == 5428 && said[0].spill_loads == 13020 &&
                  said[0].stack == 4624 && said[0].registers == 32,
              "spills are read wrongly: %lld", (long long)said[0].spill_stores);
    cuda_first_error(text, line, sizeof line);
    contains(line, "Local memory used for function 'attest_kernel'");
    tap_check(cuda_spill_said(&said[0], line, sizeof line), "it spills");
    contains(line, "attest_kernel spills registers: 5428 bytes stored and 13020 loaded");
    free(text);

    text = read_text("ptxas_old.txt");
    tap_check(cuda_ptxas_parse(text, said, 4) == 1 && said[0].registers == 40 && said[0].shared == 20480 && said[0].barriers == 0,
              "the older form is read wrongly");
    free(text);
    tap_check(cuda_ptxas_parse("", said, 4) == 0 && cuda_ptxas_parse("ptxas info : Used registers\n", said, 4) == 0,
              "nothing is nothing");
}

/* ---- compute-sanitizer ------------------------------------------------------------------------------------------------------- */

static void sanitizer(void)
{
    static const struct {
        enum cuda_check check;
        const char *file;
        int status;
        const char *printed;
        enum verdict verdict;
        const char *says;
    } cases[] = {
        {CUDA_MEMCHECK, "memcheck_clean.txt", 0, "hello\nMARK\n", VERDICT_PASS, "nothing found"},
        {CUDA_RACECHECK, "racecheck_clean.txt", 0, "MARK", VERDICT_PASS, "nothing found"},
        {CUDA_INITCHECK, "memcheck_clean.txt", 0, "MARK\n", VERDICT_PASS, "nothing found"},
        {CUDA_SYNCCHECK, "memcheck_clean.txt", 0, "MARK\n", VERDICT_PASS, "nothing found"},
        {CUDA_MEMCHECK, "memcheck_error.txt", 81, "MARK\n", VERDICT_FAIL,
         "memcheck: 2 errors, 0 warnings; the first: Invalid __global__ read of size 4 bytes, at attest_kernel+0x8d0"},
        {CUDA_MEMCHECK, "memcheck_error.txt", 0, "MARK\n", VERDICT_FAIL, "2 errors"},
        {CUDA_RACECHECK, "racecheck_error.txt", 82, "MARK\n", VERDICT_FAIL,
         "racecheck: 1 error, 0 warnings; the first: Error: Race"},
        {CUDA_RACECHECK, "racecheck_h200.txt", 82, "MARK\n", VERDICT_FAIL,
         "racecheck: 2808 errors, 0 warnings; the first: Error: Potential RAW hazard detected at __shared__ 0x34430"},
        {CUDA_RACECHECK, "racecheck_warning.txt", 0, "MARK\n", VERDICT_FAIL, "racecheck: 0 errors, 12 warnings"},
        {CUDA_INITCHECK, "initcheck_error.txt", 83, "MARK\n", VERDICT_FAIL, "Uninitialized __global__ memory read"},
        {CUDA_SYNCCHECK, "synccheck_error.txt", 84, "MARK\n", VERDICT_FAIL, "Barrier error detected"},
        {CUDA_MEMCHECK, "sanitizer_disabled.txt", 0, "MARK\n", VERDICT_FAIL, "CUDA was initialised before the sanitizer was there"},
        {CUDA_MEMCHECK, "sanitizer_no_cuda.txt", 0, "MARK\n", VERDICT_FAIL, "there is no summary in its log"},
        {CUDA_MEMCHECK, "sanitizer_no_cuda.txt", 3, "no GPU here\n", VERDICT_INCONCLUSIVE, "could not run the kernel: no GPU here"},
        {CUDA_MEMCHECK, "sanitizer_unsupported.txt", 0, "MARK\n", VERDICT_INCONCLUSIVE, "memcheck cannot work on this machine"},
        {CUDA_MEMCHECK, "memcheck_clean.txt", 0, "ERROR SUMMARY: 0 errors\n", VERDICT_FAIL, "the worker ended before it was done"},
        {CUDA_MEMCHECK, "memcheck_clean.txt", 0, "xMARK\nMARKx\n", VERDICT_FAIL, "the worker ended before it was done"},
        {CUDA_MEMCHECK, "memcheck_clean.txt", 1, "MARK\n", VERDICT_FAIL, "the worker ended with status 1"},
        {CUDA_MEMCHECK, "memcheck_clean.txt", 139, "MARK\n", VERDICT_FAIL, "the worker ended with status 139"},
        {CUDA_MEMCHECK, "memcheck_clean.txt", 81, "MARK\n", VERDICT_FAIL, "ended with the status for errors"},
        {CUDA_RACECHECK, "memcheck_clean.txt", 0, "MARK\n", VERDICT_FAIL, "no summary"},
        {CUDA_MEMCHECK, "memcheck_clean.txt", 124, "", VERDICT_INCONCLUSIVE, "not done in time"},
        {CUDA_RACECHECK, "racecheck_unending.txt", 124, "", VERDICT_FAIL,
         "racecheck: errors, and no end of them in time; the first: Error: Potential RAW hazard detected at __shared__ 0x22588"},
        {CUDA_MEMCHECK, NULL, 127, "", VERDICT_INCONCLUSIVE, "could not be run"},
        {CUDA_MEMCHECK, NULL, 0, "MARK\n", VERDICT_FAIL, "no summary"},
    };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        if (!tap_case("%s %s %d", cuda_check_name(cases[i].check), cases[i].file ? cases[i].file : "nothing", cases[i].status))
            continue;
        struct cuda_finding finding = {0};
        char *log = cases[i].file ? read_text(cases[i].file) : strdup("");
        cuda_sanitizer_judge(cases[i].check, cases[i].status, log, cases[i].printed, "MARK", &finding);
        tap_check(finding.verdict == cases[i].verdict, "%s, not %s: %s", verdict_name(finding.verdict),
                  verdict_name(cases[i].verdict), finding.sentence);
        contains(finding.sentence, cases[i].says);
        free(log);
    }
    for (int a = 0; a < CUDA_CHECK_COUNT; a++)
        for (int b = 0; b < a; b++)
            tap_check(cuda_check_status((enum cuda_check)a) != cuda_check_status((enum cuda_check)b), "two checks share a status");
}

/* ---- ncu --------------------------------------------------------------------------------------------------------------------- */

/* B2 H8 S512 D64 in f16: 4 194 304 pairs, so 2 x 131 072 products of 16 x 8 x 16, and 3 MiB to be read. */
static void profiler(void)
{
    static const struct {
        const char *file, *tensor;
        int arch;
        enum verdict verdict;
        const char *says;
    } cases[] = {
        {"ncu_hmma.txt", "tensor = hmma\nmma_qk = 2048\nmma_pv = 2048", 90, VERDICT_PASS, "10.1 us, limited by latency (the SMs"},
        {"ncu_hmma.txt", "tensor = hmma\nmma_qk = 1024\nmma_pv = 1024", 90, VERDICT_FAIL,
         "the work needs 524288 hmma instructions, and it executed 262144"},
        {"ncu_hmma.txt", "tensor = hmma\nmma_qk = 32768\nmma_pv = 32768", 90, VERDICT_FAIL, "where whole tiles need 16384"},
        {"ncu_hmma.txt", "tensor = none", 90, VERDICT_FAIL, "it claims no tensor cores, and executed 262144"},
        {"ncu_scalar.txt", "tensor = none", 90, VERDICT_PASS, "limited by"},
        {"ncu_scalar.txt", "tensor = hmma\nmma_qk = 2048\nmma_pv = 2048", 90, VERDICT_FAIL, "and it executed 0"},
        {"ncu_missing.txt", "tensor = hmma\nmma_qk = 2048\nmma_pv = 2048", 90, VERDICT_INCONCLUSIVE,
         "ncu did not measure dram__bytes_read.sum"},
        {"ncu_na.txt", "tensor = hmma\nmma_qk = 2048\nmma_pv = 2048", 90, VERDICT_INCONCLUSIVE,
         "ncu did not measure sm__inst_executed_pipe_tensor_op_hmma.sum"},
        {"ncu_lazy.txt", "tensor = hmma\nmma_qk = 2048\nmma_pv = 2048", 90, VERDICT_FAIL,
         "it read 32768 bytes, and the problem has 3145728 that must be read"},
    };
    attest_problem problem;
    attest_problem_init(&problem, ATTEST_F16, 2, 8, 8, 512, 512, 64);
    struct layout layout = {.problem = &problem};
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct cuda_manifest manifest;
        struct cuda_configuration configuration;
        struct cuda_profile profile;
        struct cuda_finding finding;
        char why[600], text[400];
        if (!tap_case("%s %s", cases[i].file, cases[i].tensor))
            continue;
        snprintf(text, sizeof text,
                 "archs = sm_90\ndtypes = f16\ndims = 64\ntile_q = 64\ntile_kv = 64\nthreads = 128\nshared = 0\n"
                 "registers = 128\nlaunch = tile\n%s\n",
                 cases[i].tensor);
        tap_check(parse(text, &manifest, why, sizeof why), "%s", why);
        tap_check(cuda_configure(&manifest, cuda_arch_find("sm_90"), ATTEST_F16, 64, NULL, &configuration, why, sizeof why), "%s",
                  why);
        char *csv = read_text(cases[i].file);
        tap_check(cuda_profile_parse(csv, 0, &profile, why, sizeof why), "%s", why);
        struct cuda_workload load = cuda_workload(&layout, &manifest, &configuration);
        tap_check(load.pairs == 4194304 && load.padded_pairs == 4194304 && load.read == 3145728 && load.written == 1048576,
                  "the work is counted wrongly: %.0f", load.pairs);
        cuda_profile_judge(&profile, &load, &manifest, &configuration, cases[i].arch, &finding);
        tap_check(finding.verdict == cases[i].verdict, "%s, not %s: %s", verdict_name(finding.verdict),
                  verdict_name(cases[i].verdict), finding.sentence);
        contains(finding.sentence, cases[i].says);
        cuda_manifest_free(&manifest);
        free(csv);
    }
    struct cuda_profile profile;
    char why[200], *nothing = read_text("ncu_nothing.txt"), *full = read_text("ncu_hmma.txt"), limiter[96];
    tap_check(!cuda_profile_parse(nothing, 0, &profile, why, sizeof why), "nothing was profiled");
    tap_check(cuda_profile_parse(full, 0, &profile, why, sizeof why) && profile.values[METRIC_TIME] == 10112,
              "the units row is not skipped");
    char *real = read_text("ncu_h200_scalar.txt"); /* more than 300 columns, four launches */
    tap_check(cuda_profile_parse(real, 3, &profile, why, sizeof why) && profile.values[METRIC_TIME] == 1589280 &&
                  profile.values[METRIC_REGISTERS] == 80 && profile.there[METRIC_GMMA],
              "the last launch is read wrongly: %s", why);
    tap_check(!cuda_profile_parse(real, 4, &profile, why, sizeof why), "there is no fifth launch");
    free(real);
    tap_check(cuda_profile_parse(full, 0, &profile, why, sizeof why), "%s", why);
    profile.values[METRIC_DRAM] = 83;
    cuda_limiter(&profile, limiter, sizeof limiter);
    tap_check(strcmp(limiter, "memory bandwidth (83 % busy)") == 0, "%s", limiter);
    struct drawing drawing = {0};
    size_t size = strlen(full);
    for (int n = 0; n < tap_amount(200, 2000, 50000); n++) {
        char *changed = strdup(full);
        for (uint64_t changes = 1 + draw(&drawing) % 6; changes; changes--)
            changed[draw(&drawing) % size] = "\",\n0x"[draw(&drawing) % 5];
        cuda_profile_parse(changed, 0, &profile, why, sizeof why);
        tap_check(strlen(profile.kernel) < sizeof profile.kernel, "the name does not end");
        free(changed);
    }
    free(nothing);
    free(full);
}

/* ---- the gates, with tools and a driver that are made up --------------------------------------------------------------------- */

static struct gate_result gate_with(void (*gate)(struct proof *, struct gate_result *), const char *mode, char *sentence)
{
    struct proof proof;
    struct gate_result result;
    struct problem_entry entry = {0};
    char why[200];
    setenv("FAKE_MODE", mode, 1);
    attest_problem_parse("fwd:f16:b2:h8:s512:d64", &entry.problem, why, sizeof why);
    proof_make(&proof, &result, "lib/cuda/kernels/cuda_fwd_scalar.cu");
    proof.candidate.image = strdup("index.json");
    proof.facts.dtypes = ~0u;
    proof.policy.call_seconds = strcmp(mode, "hang") == 0 ? 0.2 : 10; /* tools get ten times that */
    proof.timed = (struct problem_list){&entry, 1};
    if (gate == cuda_gate_memory)
        attest_problem_parse("fwd:f16:h2:s64:d64:causal", &entry.problem, why, sizeof why);
    proof.suite = (struct problem_list){&entry, 1};
    gate(&proof, &result);
    snprintf(sentence, sizeof result.sentence, "%s", result.sentence);
    const char *profile = json_string_value(json_object_get(result.artefacts, "profile"));
    size_t size;
    char *kept = profile ? file_read(profile, &size) : NULL;
    tap_check(!profile || (kept && !strstr(kept, "/home/") && (strcmp(mode, "clean") != 0 || strstr(kept, " (attest)\n"))),
              "what is kept of the profile says where the program lies");
    free(kept);
    struct gate_result copy = result;
    proof_drop(&proof, &result);
    return copy;
}

static void with_tools(void)
{
    static const struct {
        const char *mode;
        enum verdict verdict;
        const char *says;
    } memory[] =
        {
            {"clean", VERDICT_PASS, "memcheck, racecheck, initcheck and synccheck find nothing on 2 problems (NVIDIA H200)"},
            {"race", VERDICT_FAIL, "racecheck: 1 error, 0 warnings"},
            {"silent", VERDICT_FAIL, "memcheck: the worker ended before it was done"},
            {"early", VERDICT_FAIL, "CUDA was initialised before the sanitizer was there"},
            {"forged", VERDICT_FAIL, "memcheck: there is no summary in its log"},
            {"lacking", VERDICT_INCONCLUSIVE, "memcheck: the worker could not run the kernel: no backend"},
            {"hang", VERDICT_INCONCLUSIVE, "not done in time"},
        },
      profile[] = {
          {"clean", VERDICT_PASS, "limited by latency"},
          {"tensor", VERDICT_FAIL, "it claims no tensor cores, and executed 262144"},
          {"permission", VERDICT_INCONCLUSIVE, "the counters of this GPU are for administrators"},
          {"nothing", VERDICT_INCONCLUSIVE, "no table with a launch of the kernel"},
          {"silent", VERDICT_FAIL, "the worker ended before it was done"},
      };
    char sentence[640];
    struct cuda_device device;
    if (!cuda_device_find("cuda", &device, sentence, sizeof sentence)) {
        struct gate_result found = gate_with(cuda_gate_memory, "clean", sentence);
        tap_check(found.verdict == VERDICT_INCONCLUSIVE, "%s", sentence);
        contains(sentence, "run this on a machine with a GPU");
        found = gate_with(cuda_gate_profile, "clean", sentence);
        tap_check(found.verdict == VERDICT_INCONCLUSIVE, "%s", sentence);
        contains(sentence, "run this on a machine with a GPU");
        tap_note("no GPU here, so nothing more; tests/cuda_build.t makes one up");
        return;
    }
    if (!getenv("ATTEST_TEST_MADE_UP")) {
        tap_note("this is for made-up tools, and would start real ones on %s; tests/cuda_build.t makes them up", device.name);
        return;
    }
    tap_check(device.major == 9 && device.minor == 0 && device.multiprocessors == 132, "the device is read wrongly");
    for (int i = 0; i < COUNT_OF(memory); i++) {
        if (!tap_case("memory %s", memory[i].mode))
            continue;
        struct gate_result found = gate_with(cuda_gate_memory, memory[i].mode, sentence);
        tap_check(found.verdict == memory[i].verdict, "%s, not %s: %s", verdict_name(found.verdict),
                  verdict_name(memory[i].verdict), sentence);
        contains(sentence, memory[i].says);
    }
    for (int i = 0; i < COUNT_OF(profile); i++) {
        if (!tap_case("profile %s", profile[i].mode))
            continue;
        struct gate_result found = gate_with(cuda_gate_profile, profile[i].mode, sentence);
        tap_check(found.verdict == profile[i].verdict, "%s, not %s: %s", verdict_name(found.verdict),
                  verdict_name(profile[i].verdict), sentence);
        contains(sentence, profile[i].says);
    }
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"expressions", expressions},
        {"manifest_good", manifest_good},
        {"manifest_images", manifest_images},
        {"manifest_tiles", manifest_tiles},
        {"tiles_that_take", tiles_that_take},
        {"manifest_bad", manifest_bad},
        {"manifest_random", manifest_random},
        {"refusals", refusals},
        {"resources", resources},
        {"space", space},
        {"assembler", assembler},
        {"sanitizer", sanitizer},
        {"profiler", profiler},
        {"with_tools", with_tools},
    };
    return make_folder() ? tap_main(argc, argv, tests, COUNT_OF(tests)) : 1;
}
