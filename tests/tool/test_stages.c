/*
 * The stage oracle on kernels whose mistakes are known: each planted mistake must be named by its stage, at its place, and kernels
 * that are right must be found right, whatever their tiles, types and instructions.
 */
#include "planted.h"

#include <unistd.h>

#include "data/npy.h"
#include "theory/stages.h"
#include "run/runner.h"
#include "tap.h"

enum { S = STAGE_S, MASK = STAGE_MASK, P = STAGE_P, NORM = STAGE_NORMALISATION, RESC = STAGE_RESCALE, PV = STAGE_PV };
enum { EPI = STAGE_EPILOGUE };

#define PLAIN  "fwd:f32:b1:h2:sq20:skv70:d24:lse"
#define GROUPS "fwd:f32:b2:hq4:hkv2:sq10:skv70:d16:lse"
#define CAUSAL "fwd:f32:b1:h2:sq70:skv90:d16:causal:lse"

static const struct plant {
    enum mistake mistake;
    const char *name;
    const char *problem;
    int64_t tile;
    unsigned stages;     /* the diagnosis is exactly this set */
    const char *cause;   /* part of the cause */
    const char *pattern; /* part of the pattern, or NULL */
    int64_t at_tile;     /* diagnosis->tile; -1: not defined */
    int64_t row, column; /* the first wrong place; -1: not defined */
} plants[] = {
    {SCALE_DROPPED, "scale dropped", PLAIN, 16, S, "the scale is dropped", NULL, -1, 0, -1},
    {SCALE_TWICE, "scale twice", PLAIN, 16, S, "applied twice", NULL, -1, 0, -1},
    {SIGN_WRONG, "sign of the scores", PLAIN, 16, S, "the sign is wrong", NULL, -1, 0, -1},
    {PART_OF_Q, "a lane holds part of Q", "fwd:f32:b1:h1:sq40:skv40:d24:lse", 16, S, "elements from 12 on",
     "rows 8 to 15 of every 16", -1, 8, -1},
    {TAIL_OF_D, "tail of D", PLAIN, 16, S, "elements from 16 on", NULL, -1, 0, -1},
    {K_AND_V_SWAPPED, "K and V swapped", PLAIN, 16, S, "K and V are swapped", NULL, -1, 0, -1},
    {K_OF_OTHER_HEAD, "K of another head", GROUPS, 32, S, "h % heads_kv", "heads 1 to 2", -1, 0, -1},
    {Q_LAYOUT, "strides of Q", GROUPS, 32, S, "Q is read as if it were packed", NULL, -1, -1, -1},
    {KEYS_PAIRED, "keys swapped in S", PLAIN, 16, S | PV, "key 1 has the weight of key 2", "permuted", -1, 0, 1},
    {KEYS_PAIRED, "keys swapped in S, causal", CAUSAL, 16, S, "key 2 has the score of key 1", "keys 1 to 2 of every 4", -1, -1, -1},
    {SCORES_BF16, "S in bf16", PLAIN, 16, S, "", NULL, -1, 0, -1},
    {SCORES_F16, "S in f16", PLAIN, 16, S, "", NULL, -1, 0, -1},
    {QUERIES_BF16, "Q rounded to bf16", PLAIN, 16, S, "rounded to fewer bits", NULL, -1, 0, -1},
    {SOFTCAP_MISSING, "softcap missing", "fwd:f32:b1:h2:sq20:skv70:d16:softcap=20:lse", 32, S, "softcap is missing", NULL, -1, 0,
     -1},
    {SOFTCAP_LAST, "softcap after ALiBi", "fwd:f32:b1:h2:sq20:skv70:d16:softcap=2:alibi:lse", 32, S, "", NULL, -1, -1, -1},
    {ALIBI_MISSING, "ALiBi missing", "fwd:f32:b1:h2:sq20:skv70:d16:alibi:lse", 32, S, "ALiBi is missing", NULL, -1, 0, -1},
    {ALIBI_SIGN, "sign of ALiBi", "fwd:f32:b1:h2:sq20:skv70:d16:alibi:lse", 32, S, "wrong sign", NULL, -1, 0, -1},
    {BIAS_MISSING, "bias missing", "fwd:f32:b1:h2:sq20:skv70:d16:bias:lse", 32, S, "bias is missing", NULL, -1, 0, -1},

    {CAUSAL_MORE, "causal sees one more", CAUSAL, 32, MASK, "one key too many", NULL, -1, 0, 0},
    {CAUSAL_LESS, "causal sees one less", CAUSAL, 32, MASK, "its own key", NULL, -1, 0, 0},
    {CAUSAL_MISSING, "causal missing", CAUSAL, 32, MASK, "causal mask is missing", NULL, -1, 0, 0},
    {ALIGNMENT, "alignment", CAUSAL, 32, MASK, "aligned at the wrong end", NULL, -1, 0, 0},
    {WINDOW_MORE, "window sees one more", "fwd:f32:b1:h2:sq70:skv70:d16:causal:wl=9:lse", 32, MASK, "one key too many", NULL, -1,
     10, 0},
    {WINDOW_SHIFTED, "window shifted", "fwd:f32:b1:h2:sq70:skv90:d16:wl=9:wr=3:lse", 32, MASK, "", NULL, -1, -1, -1},
    {TAIL_UNMASKED, "tail not masked", PLAIN, 16, MASK | P, "10 keys beyond the last one, 69", NULL, 70, 0, -1},
    {MASK_FINITE, "masked scores finite", CAUSAL, 32, MASK, "finite score", NULL, -1, 0, -1},
    {LENGTHS_IGNORED, "lengths ignored", "fwd:f32:b3:h2:sq20:skv70:d16:lens:lse", 32, MASK, "", NULL, -1, 0, -1},
    {EMPTY_ROWS, "empty rows", "fwd:f32:b1:h2:sq40:skv20:d16:causal:br:lse", 32, NORM, "see no key", "rows 0 to 19", -1, 0, 0},
    {HIDDEN_KEYS, "keys hidden by the bias", "fwd:f32:b1:h2:sq20:skv70:d16:bias:lse", 32, MASK, "bias is -inf", NULL, -1, 0, -1},
    {PADDING_TOUCHED, "0 times padding", "fwd:f32:b3:h2:sq20:skv70:d16:lens:lse", 32, MASK | PV, "NaN in padding", NULL, -1, -1,
     -1},

    {BASE_TWO, "base two", PLAIN, 16, P, "the base is 2", NULL, -1, 0, -1},
    {TILE_MAXIMUM, "tile maximum for P", PLAIN, 16, P, "maximum of its tile", NULL, 16, 0, -1},
    {NO_MAXIMUM, "no maximum", PLAIN, 16, P, "", NULL, -1, 0, -1},
    {MAXIMUM_FROM_ZERO, "maximum begins at 0", PLAIN, 16, P, "begins at 0", NULL, -1, 0, -1},
    {SUM_LACKS_KEY, "sum lacks a key", PLAIN, 16, P, "keys 15 of every 16", NULL, -1, 0, 15},
    {SMALL_DROPPED, "small weights dropped", PLAIN, 16, P, "are dropped", NULL, -1, 0, -1},
    {EXP_TAYLOR, "exp by a polynomial", PLAIN, 16, P, "exponential", NULL, -1, 0, -1},
    {NEAR_IS_EQUAL, "approximate below a magnitude", PLAIN, 16, S | P, "below a magnitude", NULL, -1, 0, -1},

    {NOT_DIVIDED, "not divided", PLAIN, 16, NORM, "not divided by the sum", "row factor", -1, 0, -1},
    {RECIPROCAL_ROUGH, "rough reciprocal", PLAIN, 16, NORM, "approximate", NULL, -1, 0, -1},
    {NEIGHBOURS_SUM, "sum of the neighbour", CAUSAL, 32, NORM, "something else than its sum", NULL, -1, 0, -1},
    {PIECES_DIVIDED, "pieces divided by their sums", PLAIN, 16, NORM, "divided by their own sums", NULL, 64, 0, -1},
    {SINK_MISSING, "sink missing", "fwd:f32:b1:h2:sq20:skv70:d16:sink:lse", 32, NORM, "the sink is missing", NULL, -1, 0, -1},
    {SINK_NOT_IN_O, "sink not in O", "fwd:f32:b1:h2:sq20:skv70:d16:sink:lse", 32, NORM, "without it", NULL, -1, 0, -1},

    {O_NOT_RESCALED, "O not rescaled", PLAIN, 16, RESC, "O is not scaled down", NULL, 16, 0, -1},
    {O_NOT_RESCALED, "O not rescaled, tiles of 24", PLAIN, 24, RESC, "tiles of 24 keys", NULL, 24, 0, -1},
    {SUM_NOT_RESCALED, "sum not rescaled", PLAIN, 16, RESC, "the sum is not scaled down", NULL, 16, 0, -1},
    {NEITHER_RESCALED, "nothing rescaled", PLAIN, 16, RESC, "", NULL, 16, 0, -1},
    {NEIGHBOURS_FACTOR, "factor of the neighbour", PLAIN, 16, P | RESC, "another row", NULL, -1, -1, -1},
    {RESCALED_TWICE, "rescaled twice", PLAIN, 16, RESC, "", NULL, -1, 0, -1},

    {VALUES_PAIRED, "V in another order", PLAIN, 16, S | PV, "key 1 has the weight of key 2", "permuted", -1, 0, 1},
    {VALUES_PAIRED, "V in another order, causal", CAUSAL, 16, PV, "", NULL, -1, -1, -1},
    {TILE_LOST, "a tile lost for V", PLAIN, 16, PV, "keys 16 to 31", "keys 16 to 31", 16, 0, 16},
    {WEIGHTS_BF16, "P in bf16", PLAIN, 16, PV, "too few bits", NULL, -1, 0, -1},
    {SUMS_BF16, "O summed in bf16", PLAIN, 16, PV, "too few bits", NULL, -1, 0, -1},
    {SUMS_F16_BY_TILE, "O summed in f16, tile by tile", "fwd:f16:b1:hq4:hkv2:sq35:skv150:d64:causal:br:lse", 64, PV, "too few bits",
     NULL, -1, -1, -1},
    {V_SWIZZLED, "V by another swizzle", "fwd:f16:b1:hq4:hkv2:sq35:skv150:d64:causal:br:lse", 64, PV, "for some keys", NULL, -1, -1,
     -1},
    {V_OF_OTHER_HEAD, "V of another head", GROUPS, 32, PV, "h % heads_kv", "heads 1 to 2", -1, 0, -1},
    {K_FOR_V, "K for V", PLAIN, 16, PV, "K is read in place of V", NULL, -1, 0, -1},
    {COLUMNS_ZERO, "columns of O zero", PLAIN, 16, PV | EPI, "columns of O", "columns 8 to 15", -1, 0, 8},

    {ROWS_UNWRITTEN, "rows not written", CAUSAL, 32, EPI, "O is not written: rows from 64 on", NULL, -1, 64, 0},
    {COLUMNS_UNWRITTEN, "columns not written", PLAIN, 16, EPI, "columns from 21 on", NULL, -1, 0, 21},
    {LSE_UNWRITTEN, "LSE not written", PLAIN, 16, EPI, "LSE is not written", NULL, -1, 0, -1},
    {LSE_LOG2, "LSE in log2", PLAIN, 16, EPI, "units of log2", NULL, -1, 0, -1},
    {LSE_WITHOUT_MAXIMUM, "LSE lacks the maximum", PLAIN, 16, EPI, "lacks the maximum", NULL, -1, 0, -1},
    {HEADS_SWAPPED, "heads swapped in O", PLAIN, 16, EPI, "heads are mixed up", NULL, -1, 0, -1},
    {ROWS_SWAPPED, "rows swapped in O", PLAIN, 16, EPI, "rows are mixed up", NULL, -1, 0, -1},
    {O_LAYOUT, "strides of O", GROUPS, 32, EPI, "mixed up", NULL, -1, -1, -1},
    {CUT_OFF, "O cut off, f16", "fwd:f16:b1:h2:sq20:skv70:d16:lse", 32, EPI, "cut off to f16", NULL, -1, -1, -1},
    {CUT_OFF, "O cut off, bf16", "fwd:bf16:b1:h2:sq20:skv70:d16:causal:lse", 32, EPI, "cut off to bf16", NULL, -1, -1, -1},
    {STALE, "the output of an earlier call", PLAIN, 16, EPI, "earlier call", NULL, -1, -1, -1},

    /* The same in other types and with other features. */
    {SCALE_DROPPED, "scale dropped, bf16", "fwd:bf16:b1:h2:sq40:skv70:d24:lse", 32, S, "the scale is dropped", NULL, -1, 0, -1},
    {TAIL_UNMASKED, "tail not masked, bf16", "fwd:bf16:b1:h2:sq40:skv250:d24:lse", 64, MASK | P, "6 keys beyond", NULL, 250, 0, -1},
    {O_NOT_RESCALED, "O not rescaled, f16 causal", "fwd:f16:b1:h1:sq70:skv130:d16:causal:br:lse", 32, RESC, "", NULL, 32, -1, -1},
    {SUM_NOT_RESCALED, "sum not rescaled, window", "fwd:f32:b1:h1:sq100:skv100:d16:wl=50:lse", 16, RESC, "", NULL, 16, -1, -1},
    {O_NOT_RESCALED, "O not rescaled, decode", "fwd:f32:b1:hq4:hkv2:sq1:skv1300:d16:lse", 1024, RESC, "", NULL, 1024, 0, -1},
    {SUMS_BF16, "O summed in bf16, bf16", "fwd:bf16:b1:h2:sq20:skv130:d16:lse", 32, PV, "too few bits", NULL, -1, -1, -1},
    {K_OF_OTHER_HEAD, "K of another head, pages", "fwd:f32:b2:hq4:hkv2:sq3:skv70:d16:page=16,12:lens:lse", 32, S, "h % heads_kv",
     NULL, -1, -1, -1},
};

/* Without LSE, O must speak for both halves, and more stages look alike. */
static const struct plant silent[] = {
    {SCALE_DROPPED, "scale dropped", "fwd:f32:b1:h2:sq20:skv70:d24", 16, S | P, "the scale is dropped", NULL, -1, 0, -1},
    {PART_OF_Q, "part of Q", "fwd:f32:b1:h1:sq40:skv40:d24", 16, S | P, "elements from 12 on", NULL, -1, 8, -1},
    {K_OF_OTHER_HEAD, "K of another head", "fwd:f32:b2:hq4:hkv2:sq10:skv70:d16", 32, S | P, "", NULL, -1, 0, -1},
    {CAUSAL_MORE, "causal sees one more", "fwd:f32:b1:h2:sq70:skv90:d16:causal", 32, MASK, "one key too many", NULL, -1, 0, 0},
    {TAIL_UNMASKED, "tail not masked", "fwd:f32:b1:h2:sq20:skv70:d24", 16, MASK | P | NORM, "1/80, not 1/70", NULL, -1, 0, -1},
    {NOT_DIVIDED, "not divided", "fwd:f32:b1:h2:sq20:skv70:d24", 16, MASK | P | NORM, "", NULL, -1, 0, -1},
    {BASE_TWO, "base two", "fwd:f32:b1:h2:sq20:skv70:d24", 16, S | P, "log2(e)", NULL, -1, 0, -1},
    {TILE_MAXIMUM, "tile maximum for P", "fwd:f32:b1:h2:sq20:skv70:d24", 16, P, "maximum of its tile", NULL, 16, 0, -1},
    {NO_MAXIMUM, "no maximum", "fwd:f32:b1:h2:sq20:skv70:d24", 16, P, "overflows", NULL, -1, 0, -1},
    {O_NOT_RESCALED, "O not rescaled", "fwd:f32:b1:h2:sq20:skv70:d24", 16, RESC, "not scaled down", NULL, 16, 0, -1},
    {TILE_LOST, "a tile lost for V", "fwd:f32:b1:h2:sq20:skv70:d24", 16, PV, "it lacks keys 16 to 31", NULL, -1, 0, -1},
    {V_OF_OTHER_HEAD, "V of another head", "fwd:f32:b2:hq4:hkv2:sq10:skv70:d16", 32, PV, "V of the wrong head", NULL, -1, 0, -1},
    {HEADS_SWAPPED, "heads swapped in O", "fwd:f32:b1:h2:sq20:skv70:d24", 16, S | EPI, "heads are mixed up", NULL, -1, 0, -1},
    {ROWS_UNWRITTEN, "rows not written", "fwd:f32:b1:h1:sq70:skv30:d16", 32, EPI, "rows from 64 on", NULL, -1, 64, 0},
    {SINK_MISSING, "sink missing", "fwd:f32:b1:h2:sq20:skv70:d16:sink", 32, NORM, "the sink is missing", NULL, -1, 0, -1},
    {CUT_OFF, "O cut off", "fwd:f16:b1:h2:sq20:skv70:d16", 32, EPI, "cut off to f16", NULL, -1, -1, -1},
};

static const char *text_of(unsigned stages)
{
    static char text[2][96];
    static int turn;
    turn = !turn;
    stages_text(stages, text[turn], sizeof text[turn]);
    return text[turn];
}

static bool diagnose(struct subject subject, const char *text, struct diagnosis *diagnosis)
{
    attest_problem problem;
    char why[512] = "";
    if (!tap_check(attest_problem_parse(text, &problem, why, sizeof why) == ATTEST_OK, "%s: %s", text, why))
        return false;
    return tap_check(stages_diagnose(subject, &problem, tap.seed, NULL, diagnosis, why, sizeof why), "%s: %s", text, why);
}

static void check_plants(const struct plant *list, int count, bool without_lse)
{
    for (int n = 0; n < count; n++) {
        const struct plant *plant = &list[n];
        struct planted planted = {.mistake = plant->mistake, .tile = plant->tile, .without_lse = without_lse};
        struct diagnosis diagnosis;
        if (!tap_case("%s", plant->name))
            continue;
        if (!diagnose((struct subject){.run = planted_run, .data = &planted}, plant->problem, &diagnosis))
            continue;
        free(planted.memory);
        char sentence[1024];
        diagnosis_sentence(&diagnosis, sentence, sizeof sentence);
        tap_note("%s -> %s [tile %lld]", plant->name, sentence, (long long)diagnosis.tile);
        tap_check(diagnosis.wrong && diagnosis.stages == plant->stages, "%s: %s, not %s", plant->name, text_of(diagnosis.stages),
                  text_of(plant->stages));
        tap_check(strstr(diagnosis.cause, plant->cause) != NULL, "%s: the cause is '%s', without '%s'", plant->name,
                  diagnosis.cause, plant->cause);
        tap_check(!plant->pattern || strstr(diagnosis.pattern, plant->pattern), "%s: the pattern is '%s', without '%s'",
                  plant->name, diagnosis.pattern, plant->pattern ? plant->pattern : "");
        tap_check(plant->at_tile < 0 || diagnosis.tile == plant->at_tile, "%s: tile %lld, not %lld", plant->name,
                  (long long)diagnosis.tile, (long long)plant->at_tile);
        tap_check(plant->row < 0 || diagnosis.row == plant->row, "%s: row %lld, not %lld", plant->name, (long long)diagnosis.row,
                  (long long)plant->row);
        tap_check(plant->column < 0 || diagnosis.column == plant->column, "%s: column %lld, not %lld", plant->name,
                  (long long)diagnosis.column, (long long)plant->column);
        diagnosis_free(&diagnosis);
    }
}

static void test_planted(void)
{
    check_plants(plants, COUNT_OF(plants), false);
}

static void test_silent(void)
{
    check_plants(silent, COUNT_OF(silent), true);
}

/* A kernel of the library, in this process. */
static struct execution library_run(void *kernel, const struct inputs *inputs, struct outputs *outputs)
{
    struct execution execution = {.end = EXECUTION_DONE};
    struct runner runner;
    attest_tensors tensors = outputs_tensors(inputs, outputs);
    attest_status status = runner_make(&runner, &inputs->problem, kernel, 1, execution.sentence, sizeof execution.sentence);
    if (status == ATTEST_OK) {
        runner_poison(&runner, 0xff);
        status = runner_run(&runner, &tensors, execution.sentence, sizeof execution.sentence);
        runner_free(&runner);
    }
    if (status != ATTEST_OK)
        execution.end = status == ATTEST_ERROR_UNSUPPORTED ? EXECUTION_REFUSED : EXECUTION_INVALID;
    return execution;
}

static void check_right(struct subject subject, const char *problem)
{
    struct diagnosis diagnosis;
    char sentence[1024];
    if (!diagnose(subject, problem, &diagnosis))
        return;
    diagnosis_sentence(&diagnosis, sentence, sizeof sentence);
    tap_check(!diagnosis.wrong && diagnosis.trouble.end == EXECUTION_DONE, "%s: %s", problem, sentence);
    diagnosis_free(&diagnosis);
}

static const char *const features[] = {
    "fwd:f32:b2:hq4:hkv2:sq37:skv67:d24:lse",
    "fwd:f16:b1:h2:sq20:skv70:d16:causal:lse",
    "fwd:bf16:b1:h2:sq20:skv150:d40:dv24:causal:br:lse",
    "fwd:f32:b1:h1:sq5:skv7:d1:dv1:lse",
    "fwd:f32:b1:h2:sq40:skv20:d8:causal:br:lse",
    "fwd:f32:b1:h2:sq40:skv60:d16:wl=7:wr=3:scale=-0.3:lse",
    "fwd:bf16:b2:hq4:hkv2:sq20:skv90:d24:dv16:causal:br:wl=40:softcap=15:alibi:bias:sink:lse",
    "fwd:f16:b1:h2:sq20:skv70:d16:softcap=3:sink:o=f32:lse",
    "fwd:f32:b4:hq4:hkv2:s40:d16:varlenq=100:varlenkv=120:causal:lse",
    "fwd:f16:b4:hq2:hkv1:sq3:skv100:d16:page=16,30:lens:lse",
    "fwd:f32:b2:h2:sq20:skv30:d24:qs=4000,2000,50:ks=0,1700,33:vs=3200,0,64:os=9000,29,200:ls=1000,3,9:lse",
    "fwd:f32:b1:h1:sq3:skv30:d16:scale=0:lse",
    "fwd:f32:b2:h2:sq0:skv16:d8:lse",
    "fwd:f32:b2:h2:sq4:skv0:d8:lse",
};

static void test_right(void)
{
    static const int64_t tiles[] = {1, 16, 64};
    for (int n = 0; n < COUNT_OF(features); n++)
        for (int t = 0; t < (n == 0 ? COUNT_OF(tiles) : 1); t++) {
            struct planted planted = {.tile = tiles[(n + t) % COUNT_OF(tiles)]};
            if (tap_case("%s, tiles of %d", features[n], (int)planted.tile))
                check_right((struct subject){.run = planted_run, .data = &planted}, features[n]);
        }
}

static void test_library(void)
{
    attest_context *context = NULL;
    attest_kernel_info info = {.size = sizeof info};
    attest_context_create(&context);
    for (size_t kernel = 0; kernel < attest_kernel_count(); kernel++)
        for (int n = (int)kernel % 2; n < COUNT_OF(features); n += tap_amount(2, 2, 1)) {
            attest_problem problem;
            attest_kernel_get(kernel, &info);
            char name[128];
            snprintf(name, sizeof name, "%s", info.name);
            if (tap_case("%s on %s", info.name, features[n]) && attest_problem_parse(features[n], &problem, NULL, 0) == ATTEST_OK &&
                attest_kernel_refusal(context, kernel, &problem, NULL, 0) == ATTEST_OK)
                check_right((struct subject){.run = library_run, .data = name}, features[n]);
        }
    attest_context_destroy(context);
}

/* ---- what is no diagnosis of a stage ----------------------------------------------------------------------------------------- */

/* Crashes in its second run. */
static struct execution crash(void *data, const struct inputs *inputs, struct outputs *outputs)
{
    int *runs = data;
    struct planted planted = {.tile = 16};
    if (++*runs < 2)
        return planted_run(&planted, inputs, outputs);
    return (struct execution){.end = EXECUTION_CRASHED, .sentence = "it crashed"};
}

static struct execution refuse(void *data, const struct inputs *inputs, struct outputs *outputs)
{
    (void)data;
    (void)inputs;
    (void)outputs;
    return (struct execution){.end = EXECUTION_REFUSED, .sentence = "it does not take this"};
}

static void test_trouble(void)
{
    struct diagnosis diagnosis;
    int runs = 0;
    if (diagnose((struct subject){.run = crash, .data = &runs}, PLAIN, &diagnosis)) {
        tap_check(diagnosis.wrong && diagnosis.trouble.end == EXECUTION_CRASHED, "a crash is the diagnosis");
        diagnosis_free(&diagnosis);
    }
    if (diagnose((struct subject){.run = refuse, .data = NULL}, PLAIN, &diagnosis)) {
        tap_check(!diagnosis.wrong && diagnosis.trouble.end == EXECUTION_REFUSED, "a refusal is not wrong");
        diagnosis_free(&diagnosis);
    }
}

/* Wrong in every other run. */
static struct execution waver(void *data, const struct inputs *inputs, struct outputs *outputs)
{
    int *runs = data;
    struct planted planted = {.tile = 16, .mistake = ++*runs % 2 ? SCALE_DROPPED : SCALE_TWICE};
    return planted_run(&planted, inputs, outputs);
}

static void test_race(void)
{
    struct diagnosis diagnosis;
    int runs = 0;
    if (!diagnose((struct subject){.run = waver, .data = &runs}, "fwd:f32:b1:h1:sq20:skv16:d24:lse", &diagnosis))
        return;
    tap_check(diagnosis.wrong && strstr(diagnosis.cause, "two runs on the same inputs differ"), "a race is named: %s",
              diagnosis.cause);
    diagnosis_free(&diagnosis);
}

/* ---- what is left behind ----------------------------------------------------------------------------------------------------- */

static void check_array(const char *folder, const char *name, int rank, int64_t rows, int64_t columns)
{
    char path[256], why[256] = "";
    struct npy npy;
    unsigned char *bytes = NULL;
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    if (tap_check(npy_read(path, &npy, &bytes, why, sizeof why), "%s: %s", name, why))
        tap_check(npy.rank == rank && npy.shape[0] == rows && (rank == 1 || npy.shape[1] == columns), "%s has another shape", name);
    free(bytes);
    unlink(path);
}

static void test_arrays(void)
{
    struct planted planted = {.mistake = SCALE_DROPPED, .tile = 16};
    struct subject subject = {.run = planted_run, .data = &planted};
    attest_problem problem;
    struct diagnosis diagnosis;
    char why[512] = "", folder[] = "/tmp/attest-stages-XXXXXX";
    if (!tap_check(mkdtemp(folder) && attest_problem_parse(PLAIN, &problem, why, sizeof why) == ATTEST_OK, "a folder: %s", why))
        return;
    if (tap_check(stages_diagnose(subject, &problem, 1, folder, &diagnosis, why, sizeof why), "%s", why)) {
        check_array(folder, "expected_S", 2, 40, 70);
        check_array(folder, "found_S", 2, 40, 70);
        check_array(folder, "rows", 2, 40, 3);
        check_array(folder, "columns", 1, 70, 0);
        const json_t *values = json_object_get(diagnosis.heat, "values");
        tap_check(json_array_size(values) == 40 && json_array_size(json_array_get(values, 0)) == 64, "the heat map is 40 x 64");
        json_t *object = diagnosis_json(&diagnosis);
        tap_check(json_array_size(json_object_get(object, "stages")) == 1 && json_array_size(diagnosis.probes) >= 3,
                  "one stage and the probes that led to it");
        json_decref(object);
        diagnosis_free(&diagnosis);
    }
    rmdir(folder);
    problem.flags &= ~ATTEST_LSE;
    memset(problem.stride_lse, 0, sizeof problem.stride_lse);
    if (tap_check(!stages_diagnose(subject, &problem, 1, "/proc/none/such", &diagnosis, why, sizeof why) &&
                      strstr(why, "/proc/none"),
                  "a folder that cannot be made is named: %s", why)) {
        tap_check(diagnosis.stages == STAGE_S, "LSE is asked for where the problem does not have it");
        diagnosis_free(&diagnosis);
    }
}

static const struct tap_test tests[] = {
    {"right", test_right},     {"library", test_library}, {"planted", test_planted}, {"silent", test_silent},
    {"trouble", test_trouble}, {"race", test_race},       {"arrays", test_arrays},
};

int main(int argc, char **argv)
{
    return tap_main(argc, argv, tests, COUNT_OF(tests));
}
