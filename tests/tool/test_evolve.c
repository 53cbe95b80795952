/*
 * Tests of the parts of a search: the space of a source, the built-in proposers, what they find in a recorded space, how often equal
 * candidates are promoted, the ledger, and processes with a deadline. Whole searches are in tests/evolve.t.
 */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "evidence/member.h"
#include "evidence/objects.h"
#include "evidence/store.h"
#include "evolve/search_ledger.h"
#include "evolve/search.h"
#include "base/random.h"
#include "data/statistics.h"
#include "tap.h"

static const struct problem_list no_problems;

/* ---- spaces ---------------------------------------------------------------------------------------------------------------- */

static const char source[] =
    "/*\n * a kernel.\n * attest-space: TILE 1 2 4\n * attest-space: ROWS 16 32\n * attest-space: EXP fast exact\n"
    " * attest-fits: TILE * ROWS <= 64\n */\n"
    "#define TILE_WIDE 9\n#define EXP exact\nenum { TILE = 2, ROWS= 32 };\nint a = TILE == 2;\n";

static void test_space(void)
{
    struct space space;
    char why[512] = "";
    if (!tap_check(space_read(source, "k.c", false, &no_problems, &space, why, sizeof why), "read: %s", why))
        return;
    tap_check(space.count == 3 && space.size == 12, "%d knobs, %d points", space.count, (int)space.size);
    tap_check(space.fitting == 10, "%d points fit", (int)space.fitting); /* TILE 4 with ROWS 32 does not */
    tap_check(space.start.at[0] == 1 && space.start.at[1] == 1 && space.start.at[2] == 1, "where the source is");
    tap_check(space.knobs[0].numeric && !space.knobs[2].numeric, "numbers and words");
    bool same = true;
    for (int64_t n = 0; n < space.size; n++) {
        struct point point = space_point(&space, n), found;
        json_t *settings = space_settings(&space, &point);
        same =
            same && space_number(&space, &point) == n && space_find(&space, settings, &found) && space_number(&space, &found) == n;
        json_decref(settings);
    }
    tap_check(same, "points, numbers and settings belong together");
    struct point point = {{2, 0, 0}};
    char *text = space_write(&space, source, &point);
    tap_check(text && strstr(text, "enum { TILE = 4, ROWS= 16 };") && strstr(text, "#define EXP fast\n") &&
                  strstr(text, "#define TILE_WIDE 9\n") && strstr(text, "TILE == 2"),
              "written: %s", text ? text : "nothing");
    struct space again;
    tap_check(text && space_read(text, "k.c", false, &no_problems, &again, why, sizeof why) &&
                  space_number(&again, &again.start) == space_number(&space, &point),
              "what was written is read again");
    space_free(&again);
    free(text);
    point = (struct point){{2, 1, 0}};
    tap_check(!space_fits(&space, &point, why, sizeof why) && strstr(why, "128 is more than 64"), "what does not fit: %s", why);
    space_free(&space);
}

static void test_space_refusals(void)
{
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"/*\n * attest-space: TILE\n */\nenum { TILE = 1 };", "no value"},
        {"/*\n * attest-space: 3 4\n */", "name of a constant"},
        {"/*\n * attest-space: TILE 1 1\n */\nenum { TILE = 1 };", "twice the value"},
        {"/*\n * attest-space: TILE 1 2\n * attest-space: TILE 1\n */\nenum { TILE = 1 };", "names twice"},
        {"/*\n * attest-space: TILE 1 -2\n */\nenum { TILE = 1 };", "has the value '-2'"},
        {"/*\n * attest-space: TILE 1 2\n */\nenum { OTHER = 1 };", "does not have"},
        {"/*\n * attest-space: TILE 1 2\n * attest-fits: TILE\n */\nenum { TILE = 1 };", "EXPRESSION <= EXPRESSION"},
        {"/*\n * attest-space: TILE 1 2\n * attest-fits: SIDE <= 3\n */\nenum { TILE = 1 };", "SIDE"},
        {"/*\n * attest-space: TILE 4 8\n * attest-fits: TILE <= 3\n */\nenum { TILE = 4 };", "no point"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct space space;
        char why[512] = "";
        tap_check(!space_read(cases[i].text, "k.c", false, &no_problems, &space, why, sizeof why) && strstr(why, cases[i].word),
                  "%zu: %s", i, why);
    }
    struct space space;
    char why[512];
    tap_check(space_read("int a;", "k.c", false, &no_problems, &space, why, sizeof why) && space.count == 0 && space.fitting == 1,
              "a source without a space has one point");
    space_free(&space);
    tap_check(
        space_read("/*\n * attest-space: TILE 1 2\n */\nenum { TILE = 7 };", "k.c", false, &no_problems, &space, why, sizeof why) &&
            space.knobs[0].count == 3 && space.start.at[0] == 2,
        "a value of the source that is not listed joins the list");
    space_free(&space);
}

static void test_space_cuda(void)
{
    static const char manifest[] =
        "/*\n * attest-cuda: name = k\n * attest-cuda: summary = none\n * attest-cuda: archs = sm_80\n * attest-cuda: dtypes = "
        "f16\n"
        " * attest-cuda: dims = 64 128\n * attest-cuda: tile_q = 64\n * attest-cuda: tile_kv = 64\n * attest-cuda: stages = 2\n"
        " * attest-cuda: threads = 128\n * attest-cuda: shared = 2 * dim * (tile_q + 2 * stages * tile_kv)\n"
        " * attest-cuda: registers = 128\n * attest-cuda: launch = grid\n"
        " * attest-cuda: space = tile_q 64 128; tile_kv 64 128; stages 1 2 4\n */\n";
    struct problem_list problems = {calloc(1, sizeof(struct problem_entry)), 1};
    struct space space;
    char why[512] = "";
    attest_problem_parse("fwd:f16:b1:h1:s64:d128", &problems.entries[0].problem, why, sizeof why);
    if (tap_check(space_read(manifest, "k.cu", true, &problems, &space, why, sizeof why), "read: %s", why)) {
        tap_check(space.count == 3 && space.size == 12 && space.dim_count == 1 && space.dims[0] == 128, "%d knobs", space.count);
        /* d128: 256 bytes a row; 163 KB are 652 rows. 64 + 2*4*64 = 576 fits, 64 + 2*4*128 = 1088 does not. */
        struct point wide = {{0, 1, 2}}, good = {{1, 0, 1}};
        tap_check(!space_fits(&space, &wide, why, sizeof why) && strstr(why, "shared memory"), "what does not fit: %s", why);
        tap_check(space.fitting == 10, "%d points fit", (int)space.fitting);
        char *text = space_write(&space, manifest, &good);
        struct space again;
        tap_check(text && strstr(text, "attest-cuda: tile_q [d128] = 128\n"), "written: %s", text ? text : "nothing");
        tap_check(text && space_read(text, "k.cu", true, &problems, &again, why, sizeof why) &&
                      space_number(&again, &again.start) == space_number(&space, &good),
                  "what was written is read again");
        space_free(&again);
        free(text);
        space_free(&space);
    }
    free(problems.entries);
}

/* ---- proposers -------------------------------------------------------------------------------------------------------------- */

static void test_proposers(void)
{
    for (int kind = 0; kind < STRATEGY_COUNT; kind++) {
        struct space space;
        char why[512];
        struct tried history[16];
        struct proposal proposal;
        int count = 0;
        bool fits = true, fresh = true;
        if (!tap_case("%s", strategy_names[kind]) || !space_read(source, "k.c", false, &no_problems, &space, why, sizeof why))
            continue;
        history[count++] = (struct tried){.point = space.start, .right = true, .score = 0};
        while (count < 16 && strategy_next((enum strategy)kind, &space, history, count, tap.seed + (uint64_t)count, &proposal)) {
            fits = fits && space_fits(&space, &proposal.point, why, sizeof why);
            for (int i = 0; i < count; i++)
                fresh = fresh && space_number(&space, &history[i].point) != space_number(&space, &proposal.point);
            history[count] =
                (struct tried){.point = proposal.point, .trial = count, .right = count % 3 != 0, .score = -0.01 * count};
            count++;
        }
        tap_check(fits, "%s proposes what does not fit", strategy_names[kind]);
        tap_check(fresh, "%s proposes something twice", strategy_names[kind]);
        tap_check(count == 10, "%s proposed %d of 10 points", strategy_names[kind], count);
        space_free(&space);
    }
}

/* A recorded space: what `attest evolve --proposer grid --export` wrote. */
struct recorded {
    struct space space;
    double *score; /* [size]; NaN: not right */
    double best;
};

static bool load_recorded(const char *path, struct recorded *recorded)
{
    json_error_t error;
    json_t *file = json_load_file(path, 0, &error), *knob, *value, *result;
    const json_t *knobs = json_object_get(json_object_get(file, "ConfigurationSpace"), "TuningParameters");
    size_t i, k;
    *recorded = (struct recorded){.best = -INFINITY};
    struct space *space = &recorded->space;
    if (!tap_check(file != NULL, "%s: %s", path, error.text))
        return false;
    space->size = 1;
    json_array_foreach(knobs, i, knob)
    {
        struct knob *into = &space->knobs[space->count++];
        into->numeric = true;
        snprintf(into->name, sizeof into->name, "%s", text_at(knob, "Name"));
        json_array_foreach(json_object_get(knob, "Values"), k, value)
        {
            if (json_equal(value, json_object_get(knob, "Default")))
                space->start.at[i] = (int)k;
            snprintf(into->values[into->count++], SPACE_WORD, "%lld", (long long)json_integer_value(value));
        }
        space->size *= into->count;
    }
    space->fits = calloc((size_t)space->size, 1);
    recorded->score = calloc((size_t)space->size, sizeof *recorded->score);
    json_array_foreach(json_object_get(file, "results"), i, result)
    {
        json_t *settings = json_object();
        const char *name;
        struct point point;
        json_object_foreach(json_object_get(result, "configuration"), name, value)
            json_object_set_new(settings, name, json_sprintf("%lld", (long long)json_integer_value(value)));
        bool right = text_is(result, "invalidity", "correct");
        double speed = json_number_value(json_object_get(json_array_get(json_object_get(result, "measurements"), 0), "value"));
        if (tap_check(space_find(space, settings, &point), "result %zu is no point of the space", i)) {
            int64_t number = space_number(space, &point);
            space->fitting += !space->fits[number];
            space->fits[number] = 1;
            recorded->score[number] = right ? log(speed) : NAN;
            if (right && log(speed) > recorded->best)
                recorded->best = log(speed);
        }
        json_decref(settings);
    }
    json_decref(file);
    return true;
}

/* After so many candidates the losses are looked at. */
static const int looks[] = {10, 20, 30};
enum { LOOKS = 3 };

/* How far from the best of the space the best candidate is, at each look: the loss, as a fraction. Adds to `losses`. */
static void add_losses(const struct recorded *recorded, enum strategy strategy, uint64_t seed, double losses[LOOKS])
{
    struct tried history[64];
    struct proposal proposal;
    int count = 0;
    int64_t worst = -1; /* begin where it is poor: at the slowest point */
    for (int64_t n = 0; n < recorded->space.size; n++)
        if (recorded->space.fits[n] && isfinite(recorded->score[n]) && (worst < 0 || recorded->score[n] < recorded->score[worst]))
            worst = n;
    double best = recorded->score[worst];
    history[count++] = (struct tried){.point = space_point(&recorded->space, worst), .right = true, .score = best};
    for (int look = 0; look < LOOKS; look++) {
        while (count <= looks[look] &&
               strategy_next(strategy, &recorded->space, history, count, seed * 1000 + (uint64_t)count, &proposal)) {
            double score = recorded->score[space_number(&recorded->space, &proposal.point)];
            history[count] = (struct tried){.point = proposal.point, .trial = count, .right = isfinite(score), .score = score};
            best = isfinite(score) ? fmax(best, score) : best;
            count++;
        }
        losses[look] += expm1(recorded->best - best);
    }
}

static void test_recorded_space(void)
{
    struct recorded recorded;
    int seeds = tap_amount(10, 100, 400);
    double mean[STRATEGY_COUNT][LOOKS] = {{0}};
    if (!load_recorded("tests/data/evolve/avx512_space.json", &recorded))
        return;
    tap_note("a recorded space of %d points; mean loss against its best after 10, 20 and 30 candidates, %d seeds:",
             (int)recorded.space.fitting, seeds);
    for (int kind = 0; kind < STRATEGY_COUNT; kind++) {
        for (int seed = 1; seed <= seeds; seed++)
            add_losses(&recorded, (enum strategy)kind, (uint64_t)seed, mean[kind]);
        for (int look = 0; look < LOOKS; look++)
            mean[kind][look] /= seeds;
        tap_note("  %-10s %6.2f %% %6.2f %% %6.2f %%", strategy_names[kind], 100 * mean[kind][0], 100 * mean[kind][1],
                 100 * mean[kind][2]);
    }
    for (int t = 0; t < LOOKS; t++)
        tap_check(mean[STRATEGY_MODEL][t] < 0.7 * mean[STRATEGY_RANDOM][t], "after %d candidates model loses %.3f, random %.3f",
                  looks[t], mean[STRATEGY_MODEL][t], mean[STRATEGY_RANDOM][t]);
    static const enum strategy climbers[] = {STRATEGY_LOCAL, STRATEGY_EVOLUTION}; /* from the slowest point they need some time */
    for (size_t i = 0; i < sizeof climbers / sizeof *climbers; i++)
        tap_check(mean[climbers[i]][2] < 0.9 * mean[STRATEGY_RANDOM][2], "after 30 candidates %s loses %.4f, random %.4f",
                  strategy_names[climbers[i]], mean[climbers[i]][2], mean[STRATEGY_RANDOM][2]);
    free(recorded.score);
    space_free(&recorded.space);
}

/* ---- challenges -------------------------------------------------------------------------------------------------------------- */

/* Blocks of A against B, and of B against itself, on a simulated clock. */
struct samples {
    struct block pair[20], self[20];
};

static void draw_samples(const char *model, uint64_t seed, int blocks, struct samples *samples)
{
    struct simulated_clock clock;
    char text[200], why[200];
    snprintf(text, sizeof text, "%s,seed=%llu", model, (unsigned long long)seed);
    simulated_clock_parse(text, &clock, why, sizeof why);
    for (int i = 0; i < blocks; i++) {
        struct block *pair = &samples->pair[i], *self = &samples->self[i];
        *self = *pair = (struct block){.a_first = random_bits(seed, 5, (uint64_t)i) & 1, .process = i * 2 / blocks};
        for (int call = 0; call < BLOCK_CALLS; call++)
            pair->seconds[call] = simulated_clock_next(&clock, block_is_a(pair, call));
        for (int call = 0; call < BLOCK_CALLS; call++)
            self->seconds[call] = simulated_clock_next(&clock, false);
    }
}

/* The score of a candidate: the estimate that measure.c comes to in six blocks. */
static double screen(const char *model, uint64_t seed)
{
    struct samples samples;
    double statistics[6];
    draw_samples(model, seed, 6, &samples);
    for (int i = 0; i < 6; i++)
        statistics[i] = block_statistic(&samples.pair[i]);
    return trimmed_mean(statistics, 6);
}

/* A challenge, judged as the speed gate does it. */
static bool wins(const char *model, uint64_t seed, double confidence)
{
    struct samples samples;
    double statistics[20];
    draw_samples(model, seed, 20, &samples);
    for (int i = 0; i < 20; i++)
        statistics[i] = block_statistic(&samples.pair[i]);
    if (trimmed_mean(statistics, 20) <= log1p(0.005)) /* the lower bound is lower still: no need to look for it */
        return false;
    struct shape_samples shape = {
        .problem = "p", .weight = 1, .blocks = samples.pair, .count = 20, .self = samples.self, .self_count = 20};
    struct speed_rules rules = {.opponent = "B",
                                .resamples = (int)fmax(2000, 40 / (1 - confidence)),
                                .confidence = confidence,
                                .least_effect = 0.005,
                                .worst_shape = 0.02,
                                .seed = seed};
    struct shape_verdict verdict;
    struct suite_verdict suite;
    judge_shape(&shape, &rules, &verdict);
    if (verdict.speed != SPEED_FASTER)
        return false;
    judge_suite(&shape, &verdict, 1, &rules, &suite);
    return suite.speed == SPEED_FASTER;
}

struct simulated_search {
    bool promoted;
    int challenges;
    double screened; /* the best of the screening numbers */
};

/* A search as search.c and challenge.c make it, of 45 candidates that are all as fast as the clock says. */
static struct simulated_search simulate(const char *model, uint64_t seed)
{
    struct simulated_search search = {.screened = -INFINITY};
    double scores[45];
    bool had[45] = {false};
    for (int n = 0; n < 45; n++) {
        scores[n] = screen(model, seed * 1000 + (uint64_t)n);
        search.screened = fmax(search.screened, scores[n]);
        if ((n + 1) % 5 || search.promoted)
            continue;
        int best = -1;
        for (int i = 0; i <= n; i++)
            if (!had[i] && scores[i] > log1p(0.005) && (best < 0 || scores[i] > scores[best]))
                best = i;
        if (best < 0)
            continue;
        had[best] = true;
        double confidence = challenge_confidence(++search.challenges);
        search.promoted = wins(model, seed * 1000 + 500 + (uint64_t)n, confidence);
    }
    return search;
}

static void test_challenges(void)
{
    double misses = 0;
    for (int n = 1; n <= 1000; n++)
        misses += 1 - challenge_confidence(n);
    tap_check(misses > 0.0499 && misses < 0.05, "all challenges together may miss with %g", misses);
    static const struct {
        const char *model, *what;
        int least, most; /* promotions in 100 searches */
    } cases[] = {
        {"a=1", "45 equal candidates", 0, 1},
        {"a=1,noise=0.03", "45 equal candidates on a noisy machine", 0, 1},
        {"a=1.01,noise=0.05,spikes=0.1,spike=0.5", "45 that are slower and noisy", 0, 0},
        {"a=0.97", "45 that are 3 % faster", 95, 100},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int promoted = 0, searches = i < 2 ? tap_amount(20, 100, 400) : tap_amount(10, 30, 100), challenges = 0, looked = 0;
        double screened = 0;
        if (!tap_case("%s", cases[i].what))
            continue;
        for (int seed = 1; seed <= searches; seed++) {
            struct simulated_search search = simulate(cases[i].model, (uint64_t)seed + 17 * (uint64_t)i);
            promoted += search.promoted;
            challenges += search.challenges;
            screened += search.screened / searches;
            looked += search.screened > log(1.02);
        }
        tap_note(
            "%s: promoted in %d of %d searches, %.1f challenges each; the best by screening looks %.2f %% faster (2 %% or more in "
            "%d)",
            cases[i].what, promoted, searches, (double)challenges / searches, 100 * expm1(screened), looked);
        tap_check(promoted * 100 >= cases[i].least * searches && promoted * 100 <= cases[i].most * searches, "%d of %d promoted",
                  promoted, searches);
        if (i == 1) /* the test can fail: screening alone would be fooled */
            tap_check(looked > searches / 2, "screening sees a gain of 2 %% in only %d of %d searches", looked, searches);
    }
}

/* Trials of a search that ended, as texts, and the verdict that they must have. */
static void test_verdicts(void)
{
    static const struct {
        const char *trials, *verdict, *words;
    } cases[] = {
        {"[{'state': 'PROVEN', 'score': 0}]", "POST-MORTEM", "no candidate was proposed"},
        {"[{'state': 'INCONCLUSIVE'}]", "POST-MORTEM", "the start was not proven"},
        {"[{'state': 'PROVEN'}, {'state': 'REJECTED', 'stage': 'oracle', 'sentence': 'S is wrong'}]", "POST-MORTEM",
         "right, new and timed"},
        {"[{'state': 'PROVEN'}, {'state': 'SCREENED', 'score': 0.1, 'challenges': [{'number': 1, 'outcome': 'INTERRUPTED'}]}]",
         "POST-MORTEM", "no challenge was finished"},
        {"[{'state': 'PROVEN'}, {'state': 'PROVEN', 'challenges': [{'number': 1, 'outcome': 'SAME', 'confidence': 0.975, 'ratio': "
         "1.001, "
         "'low': 0.998, 'high': 1.004}]}]",
         "NO IMPROVEMENT", "the ratio 1.001 (97.5 % interval 0.998 to 1.004)"},
        {"[{'state': 'PROVEN'}, {'state': 'CHAMPION', 'challenges': [{'number': 1, 'outcome': 'PROMOTED', 'ratio': 1.1, 'low': "
         "1.08, "
         "'high': 1.12}]}, {'state': 'CHAMPION', 'name': 'second', 'challenges': [{'number': 2, 'outcome': 'PROMOTED', 'ratio': "
         "1.2, 'low': "
         "1.1, 'high': 1.3}]}]",
         "PROMOTED", "candidate 2 (second) is proven and 1.320 x as fast as the start (1.188 to 1.456, with 95 %"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s", cases[i].trials);
        for (char *at = text; *at; at++)
            *at = *at == '\'' ? '"' : *at;
        struct search search = {.trials = json_loads(text, 0, NULL), .command = true, .stopped = "all generations were made"};
        json_t *result = search_verdict(&search);
        tap_check(text_is(result, "verdict", cases[i].verdict) && strstr(text_at(result, "sentence"), cases[i].words),
                  "%zu: %s: %s", i, text_at(result, "verdict"), text_at(result, "sentence"));
        tap_check(!text_is(result, "verdict", "POST-MORTEM") || json_array_size(json_object_get(result, "next")) > 0,
                  "%zu: a post-mortem without advice", i);
        json_decref(result);
        json_decref(search.trials);
    }
}

/* ---- processes, and what programs answer ----------------------------------------------------------------------------------- */

static char folder[64];

static json_t *work_well(void *matter)
{
    return json_pack("{s:s}", "heard", (const char *)matter);
}

static json_t *work_never(void *matter)
{
    while (matter == NULL)
        pause();
    return NULL;
}

static json_t *work_badly(void *matter)
{
    (void)matter;
    fprintf(stderr, "attest evolve: the reason\n");
    raise(SIGKILL);
    return NULL;
}

static struct timed_job job_of(double seconds)
{
    return (struct timed_job){.folder = folder, .deadline = seconds_now() + seconds};
}

static void test_jobs(void)
{
    char why[256] = "", word[] = "this";
    struct timed_job job = job_of(60);
    json_t *found = timed_job_work(&job, work_well, word, why, sizeof why);
    tap_check(text_is(found, "heard", "this") && !job.late, "work: %s", why);
    json_decref(found);
    double began = seconds_now();
    job = job_of(0.3);
    tap_check(!timed_job_work(&job, work_never, NULL, why, sizeof why) && job.late, "work that never ends");
    tap_check(seconds_now() - began < 2, "it was ended after %.1f s", seconds_now() - began);
    job = job_of(60);
    tap_check(!timed_job_work(&job, work_badly, NULL, why, sizeof why) && !job.late && strstr(why, "signal 9") &&
                  strstr(why, "the reason"),
              "work that crashes: %s", why);
}

static void test_questions(void)
{
    static const struct {
        const char *command, *answer, *why;
    } cases[] = {
        {"cat", "hello", ""},
        {"echo no input needed", "no input needed\n", ""},
        {"echo late; sleep 60", NULL, "did not"},
        {"sleep 60", NULL, "in time"},
        {"exit 3", NULL, "status 3"},
        {"kill -9 $$", NULL, "signal 9"},
        {"yes", NULL, "more than 1000 bytes"},
        {"no_such_program_here 2>/dev/null", NULL, "status 127"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char why[256] = "";
        size_t size = 0;
        struct timed_job job = job_of(strstr(cases[i].command, "sleep") ? 0.5 : 20);
        if (!tap_case("%s", cases[i].command))
            continue;
        char *answer = timed_job_ask(&job, cases[i].command, "hello", 1000, &size, why, sizeof why);
        tap_check(cases[i].answer ? answer && strcmp(answer, cases[i].answer) == 0 : !answer && strstr(why, cases[i].why),
                  "answer %s: %s", answer ? answer : "(none)", why);
        free(answer);
    }
    /* What a program leaves in the background is ended. */
    char command[512], file[128], text[32] = "", why[256];
    size_t size = 0;
    snprintf(file, sizeof file, "%s/left", folder);
    snprintf(command, sizeof command,
             "setsid sh -c 'echo $$ > %s; exec sleep 60' > /dev/null & while ! test -s %s; do :; done; echo done", file, file);
    struct timed_job job = job_of(20);
    char *answer = timed_job_ask(&job, command, "", 1000, &size, why, sizeof why);
    FILE *stream = fopen(file, "r");
    tap_check(answer && stream && fgets(text, sizeof text, stream) && kill((pid_t)atoi(text), 0) != 0,
              "a process that was left behind still runs: %s", text);
    if (stream)
        fclose(stream);
    free(answer);
    /* More input than a pipe takes, to a program that does not read it. */
    char *long_text = malloc(1 << 20);
    memset(long_text, 'x', (1 << 20) - 1);
    long_text[(1 << 20) - 1] = '\0';
    job = job_of(20);
    answer = timed_job_ask(&job, "echo deaf", long_text, 1000, &size, why, sizeof why);
    tap_check(answer && strcmp(answer, "deaf\n") == 0, "a program that does not listen: %s", why);
    free(answer);
    free(long_text);
}

static void test_ledger(void)
{
    char state[80], why[512] = "";
    snprintf(state, sizeof state, "%s/state", folder);
    struct store *store = store_open(state, why, sizeof why);
    if (!tap_check(store != NULL, "open: %s", why))
        return;
    json_t *start = json_pack("{s:s}", "kernel", "k"), *trial = json_pack("{s:i, s:s}", "number", 0, "state", "PROVEN"),
           *result = json_pack("{s:s}", "verdict", "NO IMPROVEMENT");
    tap_check(ledger_unfinished(store, "key") == 0, "an unfinished search before there is any");
    int64_t search = ledger_begin(store, "key", start);
    tap_check(search > 0 && ledger_unfinished(store, "key") == search && ledger_unfinished(store, "other") == 0,
              "it is found by its key");
    tap_check(ledger_trial(store, search, trial) && ledger_beat(store, search, 2.5) && ledger_take(store, search, 77, "/x"),
              "written");
    json_object_set_new(trial, "state", json_string("CHAMPION"));
    tap_check(ledger_trial(store, search, trial), "written again");
    store_close(store);
    store = store_open(state, why, sizeof why);
    json_t *found = ledger_searches(store, search), *entry = json_array_get(found, 0);
    tap_check(json_array_size(json_object_get(entry, "trials")) == 1 &&
                  text_is(json_array_get(json_object_get(entry, "trials"), 0), "state", "CHAMPION") &&
                  json_number_value(json_object_get(entry, "used")) == 2.5 &&
                  json_integer_value(json_object_get(entry, "process")) == 77,
              "what was written is there");
    tap_check(ledger_finish(store, search, result) && ledger_unfinished(store, "key") == 0, "finished");
    json_decref(found);
    json_decref(start);
    json_decref(trial);
    json_decref(result);
    store_close(store);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"space", test_space},
        {"space_refusals", test_space_refusals},
        {"space_cuda", test_space_cuda},
        {"proposers", test_proposers},
        {"recorded_space", test_recorded_space},
        {"challenges", test_challenges},
        {"verdicts", test_verdicts},
        {"jobs", test_jobs},
        {"questions", test_questions},
        {"ledger", test_ledger},
    };
    snprintf(folder, sizeof folder, "/tmp/attest-test-evolve-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    timed_jobs_begin();
    int status = tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
    folder_remove(folder);
    return status;
}
