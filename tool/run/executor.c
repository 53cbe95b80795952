/*
 * executor.c - the requests that a worker answers (see executor.h for what it is, protocol.h for what is said, sandbox.c for what
 * the worker cannot do).
 *
 * The worker is awake only while a request is under way. A request has a deadline; until then the supervisor sleeps in poll(),
 * keeps what the worker prints (as much as fits; far more than that ends it), and looks now and then how much memory it has. After the
 * answer the worker is stopped, and only when it stands still are outputs looked at: whatever is still going on in it cannot finish
 * later. Memory that it had and gave back between two looks is found then too, in the peak that the system keeps, and so is state that
 * it has left (state.c).
 *
 * Inputs are copied in while the worker stands still, after it has mapped their pages and made its plan. The clock of a run starts
 * before the worker is woken, so a kernel sees them only while the clock runs, or when another slot is loaded after that.
 */
#include "base/clock.h"
#include "supervisor.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evidence/policy.h"

enum {
    LOOK_MS = 100,   /* how often memory is looked at */
    STALL_MS = 1000, /* see struct patience */
    LEAVE_MS = 2000, /* for a worker that has closed its socket, until it has to be on its way out */
    SHIFT_MOST = 64  /* pages */
};

/* What a system may book late on a thread that it has stopped: a machine that is not scheduled by its host for a while counts that too. */
#define STILL_SECONDS 50e-3

static uint64_t random_number(void)
{
    uint64_t bits = 0;
    if (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        bits = (uint64_t)(seconds_now() * 1e9);
    return bits;
}

/* How long a worker has been waited for. Of the time between two looks no more counts than STALL_MS: in what is beyond, this process
 * stood still, most often because the machine did, and the worker with it. */
struct patience {
    double last_look, waited;
};

static double seconds_waited(struct patience *patience)
{
    double since = seconds_now() - patience->last_look;
    patience->last_look += since;
    return patience->waited += fmin(since, 1e-3 * STALL_MS);
}

/* ---- requests ------------------------------------------------------------------------------------------------------- */

/* The worker is to go now: ends it and remembers why. */
static void give_up_on(struct executor *executor, const struct execution *why)
{
    process_bury(executor);
    executor->end = *why;
}

/* True if the process has ended by itself; then it has been described and buried. */
static bool has_ended(struct executor *executor, struct execution *execution)
{
    if (!process_has_ended(executor))
        return false;
    ending_describe(executor, process_bury(executor), execution);
    executor->end = *execution;
    return true;
}

/* The socket is closed: the process is ending, or it has closed it. */
static void find_out(struct executor *executor, struct execution *execution)
{
    for (int i = 0; i < LEAVE_MS; i++) {
        if (has_ended(executor, execution))
            return;
        process_drain(executor);
        poll(NULL, 0, 1);
    }
    ending_say(execution, EXECUTION_INVALID, "it closed the socket that the worker speaks through");
    give_up_on(executor, execution);
}

static bool stand_still(struct executor *executor, struct execution *execution)
{
    int status = 0;
    if (process_halt(executor, &status))
        return true;
    ending_describe(executor, status, execution);
    executor->end = *execution;
    return false;
}

/* False, and the worker ended, if it has at any time had more memory than it may. */
static bool is_modest(struct executor *executor, struct execution *execution)
{
    if (executor->relaxed || executor->on_device)
        return true;
    executor->peak = process_number(executor, "VmHWM") - process_number(executor, "RssFile");
    if (!ending_greedy(executor, execution))
        return true;
    give_up_on(executor, execution);
    return false;
}

/* False, and the worker ended, if it has printed far more than anyone will read. */
static bool is_quiet(struct executor *executor, struct execution *execution)
{
    int64_t most = executor->relaxed ? 64 * PRINTED_LIMIT : PRINTED_LIMIT;
    if (executor->printed_total <= most)
        return true;
    ending_say(execution, EXECUTION_GREEDY, "it prints without end: more than %lld KiB", (long long)(most >> 10));
    ending_quote(executor, execution, false);
    give_up_on(executor, execution);
    return false;
}

/* False, and the worker ended, if it is past its time or its memory. */
static bool may_go_on(struct executor *executor, double waited, struct execution *execution)
{
    if (!is_modest(executor, execution))
        return false;
    if (waited <= executor->seconds)
        return true;
    ending_say(execution, EXECUTION_HUNG, "it did not end within %g seconds", executor->seconds);
    ending_quote(executor, execution, false);
    give_up_on(executor, execution);
    return false;
}

/* Waits for an answer of `size` bytes; *seconds is when it came, by the clock. */
static bool await(struct executor *executor, void *answer, size_t size, double *seconds, struct execution *execution)
{
    struct patience patience = {.last_look = seconds_now()};
    for (;;) {
        struct pollfd files[2] = {{executor->control, POLLIN, 0}, {executor->output, POLLIN, 0}};
        int ready = poll(files, 2, LOOK_MS);
        if (ready > 0 && files[0].revents) {
            ssize_t got = recv(executor->control, answer, size, MSG_DONTWAIT | MSG_TRUNC);
            *seconds = seconds_now();
            if (got == (ssize_t)size)
                return true;
            if (got < 0 && (errno == EAGAIN || errno == EINTR))
                continue;
            if (got <= 0) {
                find_out(executor, execution);
                return false;
            }
            ending_say(execution, EXECUTION_INVALID, "it wrote on the socket that the worker speaks through: %zd bytes", got);
            ending_quote(executor, execution, false);
            give_up_on(executor, execution);
            return false;
        }
        if (ready > 0 && files[1].revents & POLLIN) {
            process_drain(executor);
            if (!is_quiet(executor, execution))
                return false;
        } else if (ready > 0 && files[1].revents) {
            poll(NULL, 0, 1); /* it has closed its outputs: do not spin */
        }
        if (seconds_now() - patience.last_look < 1e-3 * LOOK_MS)
            continue;
        if (has_ended(executor, execution) || !may_go_on(executor, seconds_waited(&patience), execution))
            return false;
    }
}

/* A message that nobody asked for is there: the kernel has answered in the worker's place, or said something of its own. */
static bool is_silent(struct executor *executor, struct execution *execution)
{
    char stray;
    if (recv(executor->control, &stray, sizeof stray, MSG_DONTWAIT | MSG_PEEK) <= 0)
        return true;
    ending_say(execution, EXECUTION_INVALID, "it wrote on the socket that the worker speaks through: an answer came out of turn");
    ending_quote(executor, execution, false);
    give_up_on(executor, execution);
    return false;
}

/* One exchange with a worker that stands still: the request is there when it is woken, and the clock runs from before that until the
 * answer is here. The answer must have the kind, the length and the number that belong to the request. */
static bool exchange(struct executor *executor, const void *request, size_t request_size, const int *files, int file_count,
                     enum message_kind kind, void *answer, size_t answer_size, struct execution *execution)
{
    const struct message_head *asked = request, *told = answer;
    if (!is_silent(executor, execution))
        return false;
    executor->seconds_run = -1;
    double begin = seconds_now(), end = begin;
    bool sent = process_send(executor, request, request_size, files, file_count);
    process_wake(executor);
    if (!sent && errno != EPIPE && errno != ECONNRESET) {
        ending_say(execution, EXECUTION_LACKING, "the worker could not be spoken to: %s", strerror(errno));
        give_up_on(executor, execution);
        return false;
    }
    if (!await(executor, answer, answer_size, &end, execution))
        return false;
    execution->seconds = end - begin;
    if (told->kind == kind && told->number == asked->number && told->end <= EXECUTION_LACKING)
        return true;
    ending_say(execution, EXECUTION_INVALID, "it wrote on the socket that the worker speaks through: an answer came out of turn");
    ending_quote(executor, execution, false);
    give_up_on(executor, execution);
    return false;
}

/* False, and the worker ended, if a call has left another state behind than it found. The worker stands still. */
static bool is_orderly(struct executor *executor, struct execution *execution)
{
    if (executor->on_device || !ending_disorder(executor, execution))
        return true;
    give_up_on(executor, execution);
    return false;
}

/* The state as it is now, or NULL where it is not looked at. The worker stands still. */
static struct state *take_state(const struct executor *executor)
{
    return executor->on_device || executor->wrapped ? NULL : state_take(executor->pid, &executor->places);
}

/* False, and the worker ended, if the process is not in the state it was in. `before` is that before the run, or NULL. */
static bool is_unchanged(struct executor *executor, const struct state *before, struct execution *execution)
{
    char why[400];
    struct state *now = executor->state ? take_state(executor) : NULL;
    bool good = !now || state_same(executor->state, now, why, sizeof why);
    if (good && now && !executor->relaxed) /* sanitizers map what they like */
        good = state_same_code(executor->state, now, false, why, sizeof why) &&
               (!before || executor->guard != GUARD_BANDS || state_same_mappings(before, now, why, sizeof why));
    executor->seconds_run = now ? state_seconds(now) : -1;
    state_free(now);
    if (good)
        return true;
    ending_say(execution, EXECUTION_INVALID, "%s", why);
    ending_clean(execution->sentence);
    give_up_on(executor, execution);
    return false;
}

static bool is_there(struct executor *executor, struct execution *execution)
{
    *execution = executor->end;
    if (executor->pid)
        *execution = (struct execution){.end = EXECUTION_DONE};
    return executor->pid != 0;
}

/* A request that is answered by READY. Afterwards the worker still runs. */
static bool request_ready(struct executor *executor, const void *request, size_t size, const int *files, int file_count,
                          struct ready *ready, struct execution *execution)
{
    if (!exchange(executor, request, size, files, file_count, MESSAGE_READY, ready, sizeof *ready, execution))
        return false;
    ready->sentence[sizeof ready->sentence - 1] = '\0';
    ending_clean(ready->sentence);
    if (ready->head.end == EXECUTION_DONE)
        return true;
    ending_say(execution, (enum execution_end)ready->head.end, "%s", ready->sentence);
    return false;
}

/* ---- opening -------------------------------------------------------------------------------------------------------- */

/* What a kernel says of itself. */
static void take_facts(struct executor *executor, const struct ready *ready)
{
    struct kernel_facts *facts = &executor->facts;
    *facts = ready->facts;
    facts->name[sizeof facts->name - 1] = facts->needs[sizeof facts->needs - 1] = facts->summary[sizeof facts->summary - 1] = '\0';
    ending_clean(facts->name);
    ending_clean(facts->needs);
    ending_clean(facts->summary);
}

/* The worker closes itself off. Nothing of a kernel is in it yet. */
static bool greet(struct executor *executor, const struct executor_spec *spec, int board, struct ready *ready,
                  struct execution *execution)
{
    struct hello *hello = calloc(1, sizeof *hello);
    const char *name = spec->image ? spec->image : spec->kernel;
    char path[PATH_MAX];
    if (!hello || (spec->image && !realpath(spec->image, path))) {
        ending_say(execution, hello ? EXECUTION_INVALID : EXECUTION_LACKING, "it cannot be loaded: %s", strerror(errno));
        free(hello);
        return false;
    }
    if (spec->image)
        name = path;
    hello->head = (struct message_head){.kind = MESSAGE_HELLO, .number = random_number()};
    hello->threads = spec->threads;
    hello->guard = executor->guard;
    hello->relaxed = spec->relaxed;
    hello->lifted = spec->lifted;
    hello->is_image = spec->image != NULL;
    hello->seed = random_number();
    snprintf(hello->name, sizeof hello->name, "%s", name ? name : "");
    snprintf(hello->scratch, sizeof hello->scratch, "%s", spec->scratch ? spec->scratch : "");
    snprintf(hello->device, sizeof hello->device, "%s", spec->device ? spec->device : "cpu");
    hello->emulated = spec->emulated;
    bool good = request_ready(executor, hello, sizeof *hello, &board, 1, ready, execution) && stand_still(executor, execution);
    free(hello);
    if (!good)
        return false;
    executor->landlock = ready->landlock;
    executor->own_code = ready->own_code != 0;
    executor->no_counter = ready->no_counter != 0;
    executor->no_cpuid = ready->no_cpuid != 0;
    executor->places = ready->places;
    executor->seccomp = process_number(executor, "Seccomp") == 2;
    executor->has_own_network = process_is_cut_off(executor);
    return true;
}

/* And now the kernel. */
static bool load_kernel(struct executor *executor, struct ready *ready, struct execution *execution)
{
    struct message_head kernel = {.kind = MESSAGE_KERNEL, .number = random_number()};
    struct state *before = take_state(executor);
    char why[400];
    bool good = request_ready(executor, &kernel, sizeof kernel, NULL, 0, ready, execution) && stand_still(executor, execution) &&
                is_orderly(executor, execution);
    executor->state = good && before ? take_state(executor) : NULL;
    if (executor->state && (!state_same(before, executor->state, why, sizeof why) ||
                            (!executor->relaxed && !state_same_code(before, executor->state, true, why, sizeof why)))) {
        ending_say(execution, EXECUTION_INVALID, "%s, when it was loaded", why);
        ending_clean(execution->sentence);
        give_up_on(executor, execution);
        good = false;
    }
    state_free(before);
    if (good)
        take_facts(executor, ready);
    return good;
}

struct executor *executor_open(const struct executor_spec *spec, struct execution *execution)
{
    struct executor *executor = calloc(1, sizeof *executor);
    int board = -1;
    static _Thread_local struct ready ready; /* several executors may be asked at once */
    *execution = (struct execution){.end = EXECUTION_DONE};
    if (!executor) {
        ending_say(execution, EXECUTION_LACKING, "out of memory");
        return NULL;
    }
    executor->control = executor->output = -1;
    double seconds = spec->seconds > 0 ? spec->seconds : default_policy.call_seconds;
    executor->memory = spec->memory > 0 ? spec->memory : (int64_t)default_policy.memory_mb << 20;
    executor->on_device = spec->device != NULL;
    executor->laid = spec->device && spec->guard != GUARD_FAR ? GUARD_BANDS : spec->guard;
    executor->guard = executor->laid == GUARD_DRAWN ? GUARD_BANDS : executor->laid;
    executor->relaxed = spec->relaxed;
    executor->aligned = spec->aligned || spec->device;
    executor->wrapped = spec->wrapper != NULL;
    /* Nothing of a kernel for a GPU runs while it is loaded: how long that takes is the driver's affair, and what else the machine does. */
    executor->seconds = executor->on_device ? fmax(seconds, default_policy.call_seconds) : seconds;
    bool good = process_start(executor, spec, &board, execution) && greet(executor, spec, board, &ready, execution) &&
                load_kernel(executor, &ready, execution);
    executor->seconds = seconds;
    if (board >= 0)
        close(board);
    if (good)
        return executor;
    if (executor->on_device && execution->end == EXECUTION_HUNG)
        execution->end = EXECUTION_LACKING;
    if (spec->wrapper && execution->end == EXECUTION_EXITED)
        ending_say(execution, EXECUTION_LACKING, "%s does not run here: is it installed?", spec->wrapper[0]);
    executor_close(executor, NULL);
    return NULL;
}

const struct kernel_facts *executor_facts(const struct executor *executor)
{
    return &executor->facts;
}

json_t *executor_sandbox(const struct executor *executor)
{
    if (executor->on_device) /* there is no code of the kernel's in the worker */
        return json_pack("{s:b}", "device_code_alone", 1);
    return json_pack("{s:i, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b}", "landlock", executor->landlock, "seccomp", executor->seccomp,
                     "own_code_only", executor->own_code, "no_time_stamp_counter", executor->no_counter, "no_cpuid",
                     executor->no_cpuid, "network_namespace", executor->has_own_network, "inputs_read_only", 1, "state_seen",
                     executor->state && state_is_whole(executor->state), "relaxed", executor->relaxed);
}

bool executor_read(const struct executor *executor, const char *image, uint64_t address, void *to, size_t size)
{
    char path[PATH_MAX];
    return executor->pid > 0 && realpath(image, path) && state_read_image(executor->pid, path, address, to, size);
}

/* ---- problems ------------------------------------------------------------------------------------------------------- */

/* The tensors are in its memory too, and must not count as its own, now or later. */
static void note_lent(struct executor *executor)
{
    int64_t lent = 0;
    for (int i = 0; i < EXECUTOR_SLOTS; i++)
        lent += (int64_t)(executor->slots[i].size[0] + executor->slots[i].size[1]);
    executor->lent = lent > executor->lent ? lent : executor->lent;
}

bool executor_load(struct executor *executor, int slot, const struct inputs *inputs, struct execution *execution)
{
    static _Thread_local struct ready ready; /* several executors may be asked at once */
    struct arena *arena = &executor->slots[slot];
    char why[256] = "";
    if (!is_there(executor, execution))
        return false;
    arena_free(arena);
    if (!arena_make(arena, inputs, executor->laid, executor->aligned, why, sizeof why)) {
        ending_say(execution, EXECUTION_LACKING, "%s", why);
        return false;
    }
    note_lent(executor);
    struct load load = {.head = {.kind = MESSAGE_LOAD, .number = random_number()},
                        .slot = slot,
                        .shift = (uint32_t)(random_number() % SHIFT_MOST),
                        .problem = inputs->problem};
    memcpy(load.pieces, arena->pieces, sizeof load.pieces);
    bool good = request_ready(executor, &load, sizeof load, arena->file, 2, &ready, execution);
    for (int i = 0; i < 2; i++) {
        close(arena->file[i]);
        arena->file[i] = -1;
    }
    struct execution trouble;
    if (!good && executor->on_device && execution->end == EXECUTION_CRASHED && executor->pid)
        give_up_on(executor, execution);
    if (executor->pid && (!stand_still(executor, &trouble) || !is_orderly(executor, &trouble))) {
        *execution = trouble;
        good = false;
    }
    if (good)
        arena_fill(arena, inputs);
    else
        arena_free(arena);
    return good;
}

bool executor_fill(struct executor *executor, int slot, const struct inputs *inputs)
{
    struct arena *arena = &executor->slots[slot];
    if (!executor->pid || !arena_suits(arena, inputs))
        return false;
    arena_fill(arena, inputs);
    return true;
}

void executor_poison(struct executor *executor, int slot, int byte)
{
    if (arena_is_made(&executor->slots[slot]))
        arena_poison(&executor->slots[slot], byte);
}

/* A run that failed, as the worker says. */
static void take_failure(struct executor *executor, struct ready *done, struct execution *execution)
{
    done->sentence[sizeof done->sentence - 1] = '\0';
    ending_clean(done->sentence);
    ending_say(execution, executor->on_device ? (enum execution_end)done->head.end : EXECUTION_INVALID, "%s", done->sentence);
    if (executor->on_device && execution->end == EXECUTION_CRASHED) /* the GPU has stopped working for it */
        give_up_on(executor, execution);
}

void executor_watch(struct executor *executor)
{
    executor->watched = true;
}

/* Has the worker look at the registers of all its threads. */
static bool threads_are_orderly(struct executor *executor, struct execution *execution)
{
    static _Thread_local struct ready ready; /* several executors may be asked at once */
    struct message_head check = {.kind = MESSAGE_CHECK, .number = random_number()};
    return request_ready(executor, &check, sizeof check, NULL, 0, &ready, execution) && stand_still(executor, execution) &&
           is_orderly(executor, execution);
}

/* What is looked at after a run, with a worker that stands still. */
static bool is_well(struct executor *executor, const struct state *before, struct execution *execution)
{
    if (!is_modest(executor, execution) || !is_quiet(executor, execution) || !is_orderly(executor, execution))
        return false;
    if (executor->watched && !executor->on_device && !threads_are_orderly(executor, execution))
        return false;
    return !before || is_unchanged(executor, before, execution);
}

/* False, and the worker ended, if it has run although it was stopped. */
static bool stood_still(struct executor *executor, const struct state *now, struct execution *execution)
{
    if (!now || executor->seconds_run < 0 || state_seconds(now) - executor->seconds_run < STILL_SECONDS)
        return true;
    ending_say(execution, EXECUTION_INVALID, "it ran for %.3g ms while it had to stand still",
               1e3 * (state_seconds(now) - executor->seconds_run));
    give_up_on(executor, execution);
    return false;
}

static struct execution run_or_time(struct executor *executor, struct run *run, const int *slots, double *seconds)
{
    static _Thread_local struct ready done; /* several executors may be asked at once */
    struct execution execution, trouble;
    if (!is_there(executor, &execution))
        return execution;
    uint64_t number = ++executor->runs;
    struct state *before = executor->watched || (number & (number - 1)) == 0 ? take_state(executor) : NULL;
    if (!stood_still(executor, before, &execution)) {
        state_free(before);
        return execution;
    }
    run->head = (struct message_head){.kind = MESSAGE_RUN, .number = random_number()};
    for (int i = 0; i < run->count && i < EXECUTOR_SLOTS; i++)
        run->slots[i] = slots[i];
    if (exchange(executor, run, sizeof *run, NULL, 0, MESSAGE_DONE, &done, sizeof done, &execution)) {
        *seconds = done.seconds;
        if (done.head.end != EXECUTION_DONE)
            take_failure(executor, &done, &execution);
    }
    if (executor->pid && (!stand_still(executor, &trouble) || !is_well(executor, before, &trouble)))
        execution = trouble;
    state_free(before);
    return execution;
}

struct execution executor_run(struct executor *executor, const int *slots, int count, int rubbish)
{
    struct run run = {.count = count, .rubbish = rubbish, .seed = random_number(), .moved = count};
    double seconds;
    if (rubbish == EXECUTOR_DRAWN && executor->on_device)
        run.rubbish = (int)(run.seed & 0xff);
    return run_or_time(executor, &run, slots, &seconds);
}

struct execution executor_time(struct executor *executor, const int *slots, int count, int replays, int moved, double *seconds)
{
    struct run run = {.count = count, .rubbish = EXECUTOR_LEFT, .replays = replays > 0 ? replays : 1, .moved = moved};
    return run_or_time(executor, &run, slots, seconds);
}

attest_tensors executor_outputs(struct executor *executor, int slot)
{
    return arena_outputs(&executor->slots[slot]);
}

static void copy_output(const attest_problem *problem, char letter, struct buffer *to, const void *from)
{
    int64_t first = 0, count = 0;
    if (!to->base || !from || attest_problem_extent(problem, letter, &first, &count) != ATTEST_OK)
        return;
    size_t size = element_size(to->dtype);
    memcpy((char *)to->at + first * (int64_t)size, (const char *)from + first * (int64_t)size, (size_t)count * size);
}

void executor_copy(struct executor *executor, int slot, struct outputs *outputs)
{
    attest_tensors tensors = executor_outputs(executor, slot);
    copy_output(&executor->slots[slot].problem, 'o', &outputs->o, tensors.o);
    copy_output(&executor->slots[slot].problem, 'l', &outputs->lse, tensors.lse);
}

bool executor_intact(struct executor *executor, int slot, char *why, size_t why_size)
{
    if (executor->board->overrun > 0) {
        snprintf(why, why_size, "it wrote byte %lld behind the end of its scratch memory", (long long)executor->board->overrun);
        return false;
    }
    return arena_intact(&executor->slots[slot], why, why_size);
}

/* ---- closing -------------------------------------------------------------------------------------------------------- */

void executor_end(struct executor *executor, struct execution *execution)
{
    struct message_head end = {.kind = MESSAGE_END, .number = random_number()};
    struct patience patience = {.last_look = seconds_now()};
    char stray;
    bool gone = false;
    if (!is_there(executor, execution))
        return;
    if (!is_silent(executor, execution))
        return;
    process_send(executor, &end, sizeof end, NULL, 0);
    process_wake(executor);
    while (!(gone = process_has_ended(executor)) && seconds_waited(&patience) < executor->seconds) {
        poll(NULL, 0, 1);
        process_drain(executor);
    }
    bool spoke = recv(executor->control, &stray, sizeof stray, MSG_DONTWAIT) > 0;
    int status = process_bury(executor);
    if (!gone)
        ending_say(execution, EXECUTION_HUNG, "it did not let the process end within %g seconds", executor->seconds);
    else if (spoke)
        ending_say(execution, EXECUTION_INVALID, "it wrote on the socket that the worker speaks through");
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        ending_describe(executor, status, execution);
    executor->end = *execution;
    if (execution->end == EXECUTION_DONE)
        ending_say(&executor->end, EXECUTION_EXITED, "the worker has ended");
}

void executor_close(struct executor *executor, struct execution *execution)
{
    if (!executor)
        return;
    if (execution)
        executor_end(executor, execution);
    process_bury(executor);
    state_free(executor->state);
    for (int i = 0; i < EXECUTOR_SLOTS; i++)
        arena_free(&executor->slots[i]);
    if (executor->board)
        munmap(executor->board, sizeof *executor->board);
    if (executor->control >= 0)
        close(executor->control);
    if (executor->output >= 0)
        close(executor->output);
    free(executor);
}

/* ---- subject -------------------------------------------------------------------------------------------------------- */

static struct execution run_subject(void *data, const struct inputs *inputs, struct outputs *outputs)
{
    struct executor *executor = data;
    struct execution execution;
    int slot = 0;
    if (!executor_load(executor, slot, inputs, &execution))
        return execution;
    execution = executor_run(executor, &slot, 1, EXECUTOR_DRAWN);
    if (execution.end == EXECUTION_DONE)
        executor_copy(executor, slot, outputs);
    return execution;
}

static struct execution run_subject_after(void *data, const struct inputs *before, const struct inputs *inputs,
                                          struct outputs *outputs)
{
    struct executor *executor = data;
    struct execution execution = {.end = EXECUTION_DONE};
    const struct inputs *both[] = {before, inputs};
    int slot = 0;
    executor_poison(executor, slot, EXECUTOR_DRAWN); /* what the first call finds in O is not its answer */
    for (int n = 0; n < COUNT_OF(both) && execution.end == EXECUTION_DONE; n++)
        if (!executor_fill(executor, slot, both[n]))
            ending_say(&execution, EXECUTION_LACKING, "the inputs could not be changed");
        else
            execution = executor_run(executor, &slot, 1, EXECUTOR_LEFT);
    if (execution.end == EXECUTION_DONE)
        executor_copy(executor, slot, outputs);
    return execution;
}

struct subject executor_subject(struct executor *executor)
{
    return (struct subject){.run = run_subject, .run_after = run_subject_after, .data = executor};
}
