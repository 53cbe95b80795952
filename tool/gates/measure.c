/*
 * measure.c - one kernel timed against another (see measure.h).
 *
 * A sitting has several processes in turn, each a set of three fresh workers: A (the candidate), B (the opponent) and B once more,
 * for A/A. In each process every problem gets its share of the blocks, A against B and B against itself by turns. A sample is one
 * request to a worker: `calls` calls on as many slots, so many that B takes about SAMPLE_SECONDS, whatever A takes. The clock is
 * this process's, and starts before the worker is woken; a worker is stopped whenever it is not asked for something, so nothing of it
 * runs before the clock does, during a sample of another, or later.
 *
 * What keeps a sample honest:
 * - The inputs of every call are new to the worker (timed_inputs.h), written right before the request into slots that rotate over four
 *   times the level-2 caches, and swept out of the cache of the core that wrote them. So there is nothing to be known from an
 *   earlier call by pointer or by content, nothing to be computed ahead, and nothing in a cache that would not be there in life.
 * - Outputs are poisoned before, and all of them compared between both kernels afterwards (referee.h). Some calls, which the kernel
 *   cannot foresee, are judged as strictly as any check, at the shape that is timed; and so are the problems next door.
 * - Slots are warmed up first: page faults are nobody's speed.
 *
 * On a GPU a sample is a CUDA graph of calls that rotate over more memory than its second-level cache has, replayed until it takes
 * GPU_SAMPLE, by the clock of the GPU (executor_time). A kernel there has no state of its own between calls and cannot know what is
 * timed, so new inputs come now and then, before a block and into a slot that it cannot foresee: both kernels get them before the
 * first sample of the block, and what they wrote in it is compared. (A kernel that looks for its answer in outputs or workspace
 * reads what nobody wrote, which the memory gate sees.)
 *
 * A candidate that is hopelessly slower on a problem (every block by more than half) is not measured to the end there. That can
 * only make a verdict SLOWER, never FASTER.
 */
#include "measure.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "data/timed_inputs.h"
#include "base/random.h"
#include "referee.h"
#include "run/surroundings.h"

#define SAMPLE_SECONDS  2e-3
#define MOST_BYTES      0x1p28 /* of the slots of a worker */
#define GPU_SAMPLE      0.5e-3
#define GPU_ROTATION    1.25 /* times the cache */
#define CACHE_TIMES     4
#define HOPELESS        log(1.5)
#define JUDGED_PAIRS    3 /* of a problem and process */
#define SIMULATED_FLOOR 1e-6
#define BUSY_OTHERS     0.1 /* of the machine, which is worth a word */

enum { MOST_REPLAYS = 200 };
enum { WORKER_A, WORKER_B, WORKER_SELF, WORKER_COUNT };

struct sitting {
    const struct measure_spec *spec;
    struct measurement *measurement;
    struct executor *workers[WORKER_COUNT];
    int process, processes;
    struct simulated_clock clock;
    unsigned char *sweep;
    size_t sweep_bytes;
};

/* One problem in one process. */
struct round {
    struct sitting *sitting;
    struct shape_measure *shape;
    struct feed feed;
    uint64_t fed;  /* sets of the feed that were used */
    int next_slot; /* of the rotation */
    uint64_t seed;
};

/* Streams of random numbers of a round; the seed itself is that of the feed. */
enum { STREAM_ORDER = 101, STREAM_SELF_ORDER, STREAM_TURN, STREAM_LAST, STREAM_JUDGE };

/* Ends the sitting. Returns false, so that a function can end with it. */
static bool stop(struct sitting *sitting, enum measure_end end, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool stop(struct sitting *sitting, enum measure_end end, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sitting->measurement->sentence, sizeof sitting->measurement->sentence, format, arguments);
    va_end(arguments);
    sitting->measurement->end = end;
    return false;
}

/* A worker did not do as it was asked. */
static bool blame(struct sitting *sitting, int worker, const char *where, const struct execution *execution)
{
    const struct contestant *b = &sitting->spec->b;
    if (worker != WORKER_A)
        return stop(sitting, MEASURE_LACKING, "the opponent %s failed on %.120s: %.380s", b->name, where, execution->sentence);
    return stop(sitting, execution->end == EXECUTION_LACKING ? MEASURE_LACKING : MEASURE_WRONG,
                "while it was timed on %.120s: %.480s", where, execution->sentence);
}

/* The referee has spoken. */
static bool accept(struct round *round, enum ruling ruling, const char *what)
{
    struct sitting *sitting = round->sitting;
    const char *where = round->shape->entry->text;
    if (ruling == RULING_RIGHT)
        return true;
    if (ruling == RULING_A_WRONG)
        return stop(sitting, MEASURE_WRONG, "wrong while it was timed on %.120s: %.480s", where, what);
    return stop(sitting, MEASURE_LACKING, "%.120s: %.100s%s%.380s", where, ruling == RULING_B_WRONG ? sitting->spec->b.name : "",
                ruling == RULING_B_WRONG ? " is wrong: " : "", what);
}

/* ---- workers ------------------------------------------------------------------------------------------------------- */

static bool open_workers(struct sitting *sitting)
{
    const struct measure_spec *spec = sitting->spec;
    for (int i = 0; i < WORKER_COUNT; i++) {
        const struct contestant *contestant = i == WORKER_A ? &spec->a : &spec->b;
        struct executor_spec worker = {.image = contestant->image,
                                       .kernel = contestant->image ? NULL : contestant->kernel,
                                       .device = spec->device,
                                       .threads = spec->threads,
                                       .guard = GUARD_BANDS,
                                       .aligned = true,
                                       .seconds = spec->policy->call_seconds,
                                       .memory = (int64_t)spec->policy->memory_mb << 20};
        struct execution execution;
        if (!(sitting->workers[i] = executor_open(&worker, &execution)))
            return stop(sitting, i == WORKER_A && execution.end != EXECUTION_LACKING ? MEASURE_WRONG : MEASURE_LACKING,
                        "%s does not load: %.500s", contestant->name, execution.sentence);
    }
    return true;
}

static void close_workers(struct sitting *sitting)
{
    for (int i = 0; i < WORKER_COUNT; i++) {
        executor_close(sitting->workers[i], NULL);
        sitting->workers[i] = NULL;
    }
}

/* False if the shape cannot be measured: refused, which is no failure and said in the shape, or failed. */
static bool load_slot(struct round *round, int worker, int slot)
{
    struct shape_measure *shape = round->shape;
    struct sitting *sitting = round->sitting;
    struct execution execution;
    if (executor_load(sitting->workers[worker], slot, &round->feed.inputs, &execution))
        return true;
    if (execution.end != EXECUTION_REFUSED)
        return blame(sitting, worker, shape->entry->text, &execution);
    snprintf(shape->refusal, sizeof shape->refusal, "%.300s", execution.sentence);
    shape->refused_by_a = worker == WORKER_A;
    return false;
}

static bool run_slots(struct round *round, int worker, const int *slots, int count, double *seconds)
{
    struct execution execution = executor_run(round->sitting->workers[worker], slots, count, EXECUTOR_LEFT);
    *seconds = execution.seconds / count;
    return execution.end == EXECUTION_DONE || blame(round->sitting, worker, round->shape->entry->text, &execution);
}

/* A sample on a GPU. The first slot is moved there before and back afterwards if it is `fresh`. */
static bool time_graph(struct round *round, int worker, const int *slots, bool fresh, double *seconds)
{
    const struct shape_measure *shape = round->shape;
    struct execution execution =
        executor_time(round->sitting->workers[worker], slots, shape->calls, shape->replays, fresh ? 1 : 0, seconds);
    return execution.end == EXECUTION_DONE || blame(round->sitting, worker, shape->entry->text, &execution);
}

/* ---- getting ready ------------------------------------------------------------------------------------------------- */

/* The same on a GPU: all slots in one graph, which is replayed. */
static bool choose_replays(struct round *round, double bytes, double most)
{
    struct shape_measure *shape = round->shape;
    attest_device_info info = {.size = sizeof info};
    const char *number = strchr(round->sitting->spec->device, ':');
    double cache = attest_device_get(number ? atoi(number + 1) : 0, &info, NULL, 0) == ATTEST_OK ? (double)info.cache : 0x1p26;
    double seconds = 0;
    int slot = 0;
    shape->calls = shape->replays = 1;
    for (int i = 0; i < 2; i++)
        if (!time_graph(round, WORKER_B, &slot, i == 0, &seconds))
            return false;
    if (round->sitting->measurement->simulated)
        cache = 0;
    shape->slots = (int)fmin(fmax(ceil(GPU_ROTATION * cache / bytes), 2), most);
    shape->calls = shape->slots;
    shape->replays = (int)fmin(MOST_REPLAYS, ceil(GPU_SAMPLE / fmax(seconds * shape->calls, 1e-9)));
    shape->bytes = bytes * shape->slots;
    return true;
}

/* How many calls make a sample, and how many slots they rotate over. Decided in the first process, by B. */
static bool choose_calls(struct round *round)
{
    struct shape_measure *shape = round->shape;
    const attest_problem *problem = &round->feed.inputs.problem;
    int64_t first, count = 0;
    double once = INFINITY, seconds;
    int slot = 0;
    if (!load_slot(round, WORKER_B, slot))
        return false;
    attest_problem_extent(problem, 'o', &first, &count);
    double bytes = (double)feed_bytes(&round->feed) + (double)count * (double)element_size(problem->dtype_o);
    double most = fmin(EXECUTOR_SLOTS, fmax(1, floor(MOST_BYTES / bytes)));
    if (round->sitting->spec->device)
        return choose_replays(round, bytes, most);
    for (int i = 0; i < 3; i++) {
        if (!run_slots(round, WORKER_B, &slot, 1, &seconds))
            return false;
        once = i > 0 && seconds < once ? seconds : once;
    }
    /* On a simulated clock neither the length of a sample nor the cache matters. */
    bool simulated = round->sitting->measurement->simulated;
    double calls = simulated ? 1 : ceil(SAMPLE_SECONDS / once);
    double rotation = simulated ? 2 : ceil(CACHE_TIMES * cache_bytes() * round->sitting->spec->threads / bytes);
    shape->calls = (int)fmin(calls, most);
    shape->slots = (int)fmin(fmax(rotation, shape->calls), most);
    shape->bytes = bytes * shape->slots;
    return true;
}

/* Threads of this process that spin do not disturb a GPU. */
static int judging_threads(const struct sitting *sitting)
{
    return sitting->spec->device ? sitting->spec->threads : 1;
}

/* Loads all slots, runs all of them once, and has one of them judged. */
static bool warm_up(struct round *round)
{
    struct sitting *sitting = round->sitting;
    int count = round->shape->slots, slots[EXECUTOR_SLOTS];
    double seconds;
    char what[512] = "";
    for (int i = 0; i < count; i++)
        slots[i] = i;
    for (int worker = 0; worker < WORKER_COUNT; worker++) {
        for (int i = 0; i < count; i++)
            if (!load_slot(round, worker, i))
                return false;
        if (!run_slots(round, worker, slots, count, &seconds))
            return false;
    }
    int judged = count - 1;
    attest_tensors b = executor_outputs(sitting->workers[WORKER_B], judged);
    int threads = judging_threads(sitting);
    enum ruling ruling = referee_judge_with(threads, &round->feed, 0, b, what, sizeof what);
    if (ruling != RULING_RIGHT)
        return accept(round, ruling == RULING_A_WRONG ? RULING_B_WRONG : ruling, what);
    ruling = referee_judge_with(threads, &round->feed, 0, executor_outputs(sitting->workers[WORKER_A], judged), what, sizeof what);
    round->shape->judged++;
    return accept(round, ruling, what);
}

/* ---- samples ------------------------------------------------------------------------------------------------------- */

/* Reads through as much memory as empties the level-2 cache of this core. */
static void sweep_cache(struct sitting *sitting)
{
    for (size_t i = 0; i < sitting->sweep_bytes; i += 64)
        sitting->sweep[i]++;
}

/* New inputs for both workers in the slots of the next sample. Slot `last` of them is filled last, with the set that the feed then
 * holds. numbers[i] is the set in slots[i]. */
static bool fill_slots(struct round *round, const int workers[2], int last, int *slots, uint64_t *numbers)
{
    int calls = round->shape->calls;
    struct sitting *sitting = round->sitting;
    for (int i = 0; i < calls; i++) {
        slots[i] = round->next_slot;
        round->next_slot = (round->next_slot + 1) % round->shape->slots;
    }
    for (int n = 0; n < calls; n++) {
        int i = (last + 1 + n) % calls;
        numbers[i] = ++round->fed;
        feed_turn(&round->feed, numbers[i]);
        for (int w = 0; w < 2; w++) {
            struct executor *executor = sitting->workers[workers[w]];
            if (!executor_fill(executor, slots[i], &round->feed.inputs))
                return stop(sitting, MEASURE_LACKING, "a slot could not be filled again");
            executor_poison(executor, slots[i], EXECUTOR_DRAWN);
        }
    }
    sweep_cache(sitting);
    return true;
}

/* What both wrote. `judged` is the call of A that also goes to the judge, or -1. */
static bool check_outputs(struct round *round, const int workers[2], int judged, const int *slots, const uint64_t *numbers)
{
    struct sitting *sitting = round->sitting;
    bool self = workers[0] != WORKER_A && workers[1] != WORKER_A;
    int a = self ? workers[0] : WORKER_A, b = workers[workers[0] == a];
    char what[512] = "";
    for (int i = 0; i < (sitting->spec->device ? 1 : round->shape->calls); i++) {
        enum ruling ruling = referee_compare(&round->feed, numbers[i], executor_outputs(sitting->workers[a], slots[i]),
                                             executor_outputs(sitting->workers[b], slots[i]), what, sizeof what);
        if (self && ruling == RULING_A_WRONG)
            ruling = RULING_B_WRONG;
        if (!accept(round, ruling, what))
            return false;
    }
    if (judged < 0)
        return true;
    round->shape->judged++;
    if (!executor_intact(sitting->workers[a], slots[judged], what, sizeof what))
        return accept(round, RULING_A_WRONG, what);
    enum ruling ruling = referee_judge_with(judging_threads(sitting), &round->feed, numbers[judged],
                                            executor_outputs(sitting->workers[a], slots[judged]), what, sizeof what);
    return accept(round, ruling, what);
}

/* Two samples on the same new inputs, one of each worker. */
static bool time_pair(struct round *round, const int workers[2], bool judge, double *seconds)
{
    struct sitting *sitting = round->sitting;
    struct shape_measure *shape = round->shape;
    int slots[EXECUTOR_SLOTS];
    uint64_t numbers[EXECUTOR_SLOTS];
    int last = (int)random_below(random_bits(round->seed, STREAM_LAST, round->fed), shape->calls - 1);
    if (!fill_slots(round, workers, last, slots, numbers))
        return false;
    for (int w = 0; w < 2; w++) {
        bool is_a = workers[w] == WORKER_A;
        if (!run_slots(round, workers[w], slots, shape->calls, &seconds[w]))
            return false;
        double clock = clock_now();
        if (sitting->measurement->simulated)
            seconds[w] = simulated_clock_next(&sitting->clock, is_a);
        else if (clock > 0) {
            shape->clock_sum[!is_a] += clock;
            shape->clock_count[!is_a]++;
        }
    }
    return check_outputs(round, workers, judge ? last : -1, slots, numbers);
}

/* New inputs for both workers in one slot, which comes first in `slots`, where the others follow in their order. */
static bool refresh_slot(struct round *round, const int workers[2], int *slots, uint64_t *number)
{
    const struct shape_measure *shape = round->shape;
    struct sitting *sitting = round->sitting;
    int first = (int)random_below(random_bits(round->seed, STREAM_LAST, round->fed), shape->calls - 1);
    for (int i = 0; i < shape->calls; i++)
        slots[i] = (first + i) % shape->calls;
    *number = ++round->fed;
    feed_turn(&round->feed, *number);
    for (int w = 0; w < 2; w++) {
        struct executor *executor = sitting->workers[workers[w]];
        if (!executor_fill(executor, first, &round->feed.inputs))
            return stop(sitting, MEASURE_LACKING, "a slot could not be filled again");
        executor_poison(executor, first, EXECUTOR_DRAWN);
    }
    return true;
}

/* One block on a GPU; with `judge` on new inputs, and the judge sees what A made of them. */
static bool time_gpu_block(struct round *round, bool self, bool judge, struct block *block)
{
    struct sitting *sitting = round->sitting;
    int workers[2] = {self ? WORKER_SELF : WORKER_A, WORKER_B}, slots[EXECUTOR_SLOTS];
    uint64_t number = 0;
    bool fresh[2] = {judge, judge};
    for (int i = 0; i < round->shape->calls; i++)
        slots[i] = i;
    if (judge && !refresh_slot(round, workers, slots, &number))
        return false;
    for (int call = 0; call < BLOCK_CALLS; call++) {
        int w = block_is_a(block, call) ? 0 : 1;
        if (!time_graph(round, workers[w], slots, fresh[w], &block->seconds[call]))
            return false;
        fresh[w] = false;
        if (sitting->measurement->simulated)
            block->seconds[call] = simulated_clock_next(&sitting->clock, workers[w] == WORKER_A);
    }
    return !judge || check_outputs(round, workers, 0, slots, &number);
}

/* One block; `self` is B against itself. */
static bool time_block(struct round *round, bool self, int number, int pairs_left, int *judgements, struct block *block)
{
    block->process = round->sitting->process;
    block->a_first = random_bits(round->seed, self ? STREAM_SELF_ORDER : STREAM_ORDER, (uint64_t)number) & 1;
    if (round->sitting->spec->device) {
        int blocks_left = pairs_left / (BLOCK_CALLS / 2);
        bool judge = !self && random_below(random_bits(round->seed, STREAM_JUDGE, (uint64_t)number), blocks_left - 1) < *judgements;
        *judgements -= judge;
        return time_gpu_block(round, self, judge, block);
    }
    for (int call = 0; call < BLOCK_CALLS; call += 2) {
        int a = self ? WORKER_SELF : WORKER_A;
        int workers[2] = {block_is_a(block, call) ? a : WORKER_B, block_is_a(block, call + 1) ? a : WORKER_B};
        /* So many of all pairs, and every pair as likely as any other. */
        bool judge = !self && random_below(random_bits(round->seed, STREAM_JUDGE, round->fed), pairs_left - 1) < *judgements;
        *judgements -= judge;
        pairs_left -= !self;
        if (!time_pair(round, workers, judge, &block->seconds[call]))
            return false;
    }
    return true;
}

/* True if every block so far says that the candidate is far slower. */
static bool is_hopeless(const struct block *blocks, int count)
{
    bool hopeless = true;
    for (int i = 0; i < count; i++)
        hopeless = hopeless && block_statistic(&blocks[i]) < -HOPELESS;
    return hopeless;
}

static bool time_blocks(struct round *round)
{
    struct sitting *sitting = round->sitting;
    struct shape_measure *shape = round->shape;
    int blocks = (int)ceil(sitting->spec->policy->blocks / sitting->processes), judgements = JUDGED_PAIRS;
    int least = (LEAST_BLOCKS + sitting->processes - 1) / sitting->processes, first = shape->count;
    for (int n = 0; n < blocks; n++) {
        bool self_first = random_bits(round->seed, STREAM_TURN, round->fed) & 1;
        progress("timing %s: process %d of %d, block %d of %d", shape->entry->text, sitting->process + 1, sitting->processes, n + 1,
                 blocks);
        for (int turn = 0; turn < 2; turn++) {
            bool self = self_first == (turn == 0);
            if (!time_block(round, self, n, (blocks - n) * BLOCK_CALLS / 2, &judgements,
                            &(self ? shape->self : shape->blocks)[shape->count]))
                return false;
        }
        shape->count++;
        if (n + 1 >= least && is_hopeless(shape->blocks + first, n + 1))
            break;
    }
    return true;
}

/* One problem in one process. False if the sitting is over. */
static bool measure_shape(struct sitting *sitting, struct shape_measure *shape)
{
    int number = (int)(shape - sitting->measurement->shapes) * sitting->processes + sitting->process;
    struct round round = {.sitting = sitting, .shape = shape, .seed = random_bits(sitting->spec->seed, 100, (uint64_t)number)};
    enum exit_code code;
    char why[512] = "";
    bool good = feed_make(&round.feed, &shape->entry->problem, round.seed, &code, why, sizeof why);
    if (!good) {
        snprintf(shape->refusal, sizeof shape->refusal, "%.300s", why);
    } else {
        if (sitting->process == 0) {
            shape->floor =
                sitting->measurement->simulated ? SIMULATED_FLOOR : floor_seconds(&round.feed.inputs.layout, sitting->spec->device);
            enum ruling ruling = referee_neighbours(sitting->workers[WORKER_A], judging_threads(sitting), &shape->entry->problem,
                                                    round.seed, &shape->neighbours, why, sizeof why);
            if (ruling != RULING_RIGHT)
                stop(sitting, ruling == RULING_A_WRONG ? MEASURE_WRONG : MEASURE_LACKING, "wrong next door to %.120s: %.480s",
                     shape->entry->text, why);
            good = ruling == RULING_RIGHT && choose_calls(&round);
        }
        good = good && warm_up(&round) && time_blocks(&round);
    }
    feed_free(&round.feed);
    return good || shape->refusal[0];
}

/* ---- the sitting --------------------------------------------------------------------------------------------------- */

/* The same file twice: there is nothing to time. */
static bool is_same_binary(const struct measure_spec *spec)
{
    char a[DIGEST_TEXT], b[DIGEST_TEXT];
    if (!spec->a.image || !spec->b.image)
        return !spec->a.image && !spec->b.image && spec->a.kernel && spec->b.kernel && strcmp(spec->a.kernel, spec->b.kernel) == 0;
    return digest_of_file(spec->a.image, a) && digest_of_file(spec->b.image, b) && strcmp(a, b) == 0;
}

/* Leaves a problem out that the library, as it is, gives to neither of the two: how fast they are on it is of no use to anyone. */
static void leave_to_others(const struct measure_spec *spec, struct shape_measure *shape)
{
    attest_plan *plan = NULL;
    if (spec->chooser && attest_plan_create(spec->chooser, &shape->entry->problem, NULL, &plan) == ATTEST_OK) {
        const char *taken = attest_plan_kernel(plan);
        if (strcmp(taken, spec->a.name) != 0 && strcmp(taken, spec->b.name) != 0)
            snprintf(shape->refusal, sizeof shape->refusal, "the library gives %s to %s", shape->entry->text, taken);
    }
    attest_plan_destroy(plan);
}

static bool make_shapes(struct sitting *sitting)
{
    const struct measure_spec *spec = sitting->spec;
    struct measurement *measurement = sitting->measurement;
    size_t blocks = (size_t)(spec->policy->blocks + spec->policy->processes) + 1;
    measurement->shapes = calloc((size_t)spec->problems->count + 1, sizeof *measurement->shapes);
    for (int i = 0; measurement->shapes && i < spec->problems->count; i++) {
        const struct problem_entry *entry = &spec->problems->entries[i];
        if (spec->dtype && entry->problem.dtype != spec->dtype)
            continue;
        struct shape_measure *shape = &measurement->shapes[measurement->count++];
        *shape = (struct shape_measure){
            .entry = entry, .blocks = calloc(blocks, sizeof(struct block)), .self = calloc(blocks, sizeof(struct block))};
        if (!shape->blocks || !shape->self)
            return stop(sitting, MEASURE_LACKING, "out of memory");
        leave_to_others(spec, shape);
    }
    if (!measurement->shapes)
        return stop(sitting, MEASURE_LACKING, "out of memory");
    return measurement->count > 0 || stop(sitting, MEASURE_INAPPLICABLE, "none of the problems to be timed is of its type");
}

/* From samples to verdicts. */
static void judge_measurement(struct sitting *sitting)
{
    struct measurement *measurement = sitting->measurement;
    const struct policy *policy = sitting->spec->policy;
    struct speed_rules rules = {.opponent = sitting->spec->b.name,
                                .resamples = (int)policy->resamples,
                                .confidence = policy->confidence,
                                .least_effect = policy->least_effect,
                                .worst_shape = policy->worst_shape,
                                .seed = sitting->spec->seed};
    struct shape_samples *samples = calloc((size_t)measurement->count, sizeof *samples);
    struct shape_verdict *verdicts = calloc((size_t)measurement->count, sizeof *verdicts);
    int count = 0;
    for (int i = 0; samples && verdicts && i < measurement->count; i++) {
        struct shape_measure *shape = &measurement->shapes[i];
        if (shape->refusal[0])
            continue;
        samples[count] = (struct shape_samples){
            .problem = shape->entry->text,
            .weight = 1,
            .blocks = shape->blocks,
            .count = shape->count,
            .self = shape->self,
            .self_count = shape->count,
            .floor = shape->floor,
            .clock_a = shape->clock_count[0] ? shape->clock_sum[0] / shape->clock_count[0] : 0,
            .clock_b = shape->clock_count[1] ? shape->clock_sum[1] / shape->clock_count[1] : 0,
        };
        judge_shape(&samples[count], &rules, &shape->verdict);
        verdicts[count++] = shape->verdict;
    }
    if (!samples || !verdicts)
        stop(sitting, MEASURE_LACKING, "out of memory for the statistics");
    else if (count == 0)
        stop(sitting, MEASURE_INAPPLICABLE, "there is no problem that both take: %.400s", measurement->shapes[0].refusal);
    else
        judge_suite(samples, verdicts, count, &rules, &measurement->suite);
    free(samples);
    free(verdicts);
}

/* An uncertain verdict is easier to bear if it says who made it so. */
static void name_others(struct measurement *measurement)
{
    struct suite_verdict *suite = &measurement->suite;
    double others = json_number_value(json_object_get(measurement->surroundings, "others"));
    size_t length = strlen(suite->sentence);
    if (suite->speed == SPEED_INCONCLUSIVE && !suite->below_floor && !measurement->simulated && others > BUSY_OTHERS)
        snprintf(suite->sentence + length, sizeof suite->sentence - length,
                 " (other programs used %.0f %% of the machine meanwhile)", 100 * others);
}

void measure(const struct measure_spec *spec, struct measurement *measurement)
{
    struct sitting sitting = {.spec = spec, .measurement = measurement, .processes = (int)spec->policy->processes};
    struct surroundings surroundings;
    char why[256];
    *measurement = (struct measurement){.end = MEASURE_DONE, .simulated = spec->clock != NULL};
    if (is_same_binary(spec)) {
        measurement->same_binary = true;
        measurement->suite.speed = SPEED_SAME;
        snprintf(measurement->suite.sentence, sizeof measurement->suite.sentence, "the same binary as %s", spec->b.name);
        return;
    }
    if (spec->clock && !simulated_clock_parse(spec->clock, &sitting.clock, why, sizeof why)) {
        stop(&sitting, MEASURE_LACKING, "%s", why);
        return;
    }
    sitting.sweep_bytes = measurement->simulated ? 64 : (size_t)(CACHE_TIMES * cache_bytes());
    sitting.sweep = calloc(1, sitting.sweep_bytes);
    surroundings_begin(&surroundings);
    bool good = make_shapes(&sitting);
    if (good && !sitting.sweep)
        good = stop(&sitting, MEASURE_LACKING, "out of memory");
    for (; good && sitting.process < sitting.processes; sitting.process++) {
        good = open_workers(&sitting);
        for (int i = 0; good && i < measurement->count; i++)
            if (!measurement->shapes[i].refusal[0])
                good = measure_shape(&sitting, &measurement->shapes[i]);
        close_workers(&sitting);
    }
    progress_clear();
    measurement->surroundings = surroundings_end(&surroundings);
    if (good)
        judge_measurement(&sitting);
    name_others(measurement);
    free(sitting.sweep);
}

void measurement_free(struct measurement *measurement)
{
    for (int i = 0; i < measurement->count; i++) {
        free(measurement->shapes[i].blocks);
        free(measurement->shapes[i].self);
    }
    free(measurement->shapes);
    json_decref(measurement->surroundings);
    *measurement = (struct measurement){0};
}
