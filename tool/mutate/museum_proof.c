/*
 * museum_proof.c - the proofs of the museum's kernels. See museum_proof.h.
 *
 * Each proof runs in a process of its own and on one thread (the determinism gate takes more by itself), as many at once as there
 * are processors. What they share is the seed and the policy, which is shorter than that of an ordinary proof where a planted bug
 * shows just as well; a mutant that gets past it is proven once more with the whole one, which has the large sizes.
 */
#include "museum_proof.h"

#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/subprocess.h"
#include "build/build.h"
#include "build/cuda_compile.h"
#include "evidence/member.h"
#include "gates/cuda_tools.h"
#include "gates/proof.h"

enum { MOST_AT_ONCE = 16, PROOF_SECONDS = 1800 };

/* ---- what this machine lacks ---------------------------------------------------------------------------------------------- */

/* Why there is no GPU, or "". */
static json_t *look_for_gpu(void *matter)
{
    struct cuda_device device;
    char why[256] = "";
    (void)matter;
    return json_string(cuda_device_find(NULL, &device, why, sizeof why) ? "" : why);
}

/* Whether there is a GPU. Asked in another process: one that has used CUDA cannot start others that use it. */
static bool gpu_is_there(char *why, size_t size)
{
    struct subprocess search;
    snprintf(why, size, "no GPU was looked for");
    if (!subprocess_begin(&search, look_for_gpu, NULL, 0))
        return false;
    subprocess_wait(search.process);
    json_t *answer = subprocess_answer(&search);
    if (answer)
        snprintf(why, size, "%s", json_string_value(answer));
    json_decref(answer);
    return !*why;
}

/* What the problems of the emulation gate do not show: a sum whose error is within the bound there. */
static bool is_unseen_in_emulation(const struct mutant *mutant)
{
    static const char *const stems[] = {"cuda/o_sum_in_f16"};
    for (int i = 0; i < COUNT_OF(stems); i++)
        if (strcmp(mutant->stem, stems[i]) == 0)
            return true;
    return false;
}

void museum_leave_out(struct museum *museum)
{
    bool any = false;
    for (int i = 0; i < museum->count; i++)
        any = any || (museum->mutants[i].chosen && museum_is_cuda(&museum->mutants[i]));
    if (!any)
        return;
    /* In emulation they take minutes: those are run that are asked for. */
    const bool named = museum->session->options.word_count > 0;
    char *nvcc = cuda_tool_find("nvcc"), *lister = cuda_tool_find("cuobjdump"), why[256] = "";
    bool gpu = gpu_is_there(why, sizeof why);
    if (!nvcc)
        snprintf(museum->lacking, sizeof museum->lacking, "no nvcc");
    else if (!lister)
        snprintf(museum->lacking, sizeof museum->lacking, "no cuobjdump (scripts/cuda_tools.sh gets it)");
    else if (!gpu)
        snprintf(museum->lacking, sizeof museum->lacking,
                 named ? "no GPU (%.120s), and the emulated device does not show what is planted"
                       : "no GPU (%.120s); attest selftest 'cuda/*' runs them in emulation",
                 why);
    museum->emulated = nvcc && !gpu;
    for (int i = 0; i < museum->count; i++) {
        struct mutant *mutant = &museum->mutants[i];
        bool builds = strcmp(mutant->expected, "build") != 0;
        mutant->left_out = mutant->chosen && museum_is_cuda(mutant) &&
                           (!nvcc || !lister || (!gpu && builds && (!named || is_unseen_in_emulation(mutant))));
        museum->left_out += mutant->left_out;
    }
    free(nvcc);
    free(lister);
}

bool museum_is_cheat(const json_t *gate)
{
    return json_is_true(json_object_get(json_object_get(gate, "details"), "cheat"));
}

const json_t *museum_rejection(const json_t *record, int first)
{
    for (int i = first; i < gate_count; i++) {
        const json_t *gate = record_gate(record, gates[i].name);
        if (text_is(gate, "verdict", "FAIL") && (gates[i].needed || museum_is_cheat(gate)))
            return gate;
    }
    return NULL;
}

/* ---- the proofs ------------------------------------------------------------------------------------------------------------ */

/* What a planted bug shows in just as well. Blocks are for statistics, which only rows of SPEED are about. */
static void shorten(struct policy *policy, enum kind kind)
{
    policy->call_seconds = 10;
    policy->memory_mb = 256; /* a machine may take more than these seconds to hand out the usual limit, and a kernel needs little */
    policy->determinism_runs = 12;
    policy->emulation_seconds = 25;
    policy->leak_runs = 60;
    policy->valgrind_problems = 0;
    policy->neighbours = 8;
    policy->cover_rows = 200;
    policy->constant_problems = 600;
    policy->large_rounds = 0;
    policy->resamples = 500;
    if (kind != KIND_SPEED)
        policy->blocks = 6;
}

/* Builds the kernel that a SPEED row is timed against, if it is one of this folder; the session then names it. */
static bool build_opponent(const struct mutant *mutant, struct session *session, const struct proof *proof, char *path, size_t size)
{
    char source[4200], log[1024];
    if (strcmp(mutant->opponent, "library") == 0)
        return true;
    snprintf(source, sizeof source, "%.4000s/%s.c", session->options.mutants, mutant->opponent);
    snprintf(path, size, "%.4000s/opponent.so", proof->folder);
    session->options.vs = path;
    char *flags = candidate_flags(source);
    bool built = flags && build_image(source, flags, path, false, log, sizeof log);
    free(flags);
    return built;
}

/* The gates up to that one, as for --only. */
static void gates_up_to(const char *last, char *text, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < gate_count && used < size; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? "," : "", gates[i].name);
        if (strcmp(gates[i].name, last) == 0)
            return;
    }
}

/* One proof, with a short policy or with the whole one. NULL if there is none. */
static json_t *prove_once(const struct museum *museum, const struct mutant *mutant, bool whole)
{
    struct session session = *museum->session;
    const char *folder = session.options.mutants;
    char word[4200], suite[4200], timed[4200], opponent[4200], only[128], why[1024] = "its opponent cannot be built";
    struct proof proof;
    json_t *record = NULL;
    const char *below = museum_is_cuda(mutant) ? "cuda/" : "";
    snprintf(word, sizeof word, "%.4000s/%s.%s", folder, mutant->stem, museum_is_cuda(mutant) ? "cu" : "c");
    snprintf(suite, sizeof suite, "%.4000s/%ssuite.txt", folder, below);
    snprintf(timed, sizeof timed, "%.4000s/%stimed.txt", folder, below);
    session.options.suite = suite;
    session.options.timed = timed;
    session.options.clock = mutant->clock;
    session.report = (struct report){0};
    omp_set_num_threads(1);
    bool opened = proof_open(&session, word, &proof) == EXIT_PASS, done = false;
    if (opened) {
        struct proof_options options = {.only = mutant->kind == KIND_SPEED ? "build,speed" : session.options.only, .quiet = true};
        if (*museum_second_gate(mutant)) {
            gates_up_to(museum_second_gate(mutant), only, sizeof only);
            options.only = only;
            options.past_build = true;
        }
        /* With a GPU the other gates have to see what the emulation gate sees before them. */
        if (museum_is_cuda(mutant) && mutant->kind == KIND_MUTANT && !museum->emulated && !options.only &&
            !strstr(mutant->expected, "emulation"))
            options.only = "build,oracle,memory,determinism,correctness,speed,profile";
        if (!whole)
            shorten(&proof.policy, mutant->kind);
        proof.threads = 1;
        proof.seed = museum->seed;
        done = build_opponent(mutant, &session, &proof, opponent, sizeof opponent) &&
               proof_run(&proof, &options, &record, why, sizeof why);
    }
    if (opened && !done)
        fprintf(stderr, "attest selftest: %s: %s\n", mutant->stem, why);
    proof_close(&proof);
    return record;
}

/* Whether all that the gates had to say was yes: a short policy has none of the large sizes that some planted bugs need. */
static bool got_past(const struct mutant *mutant, const json_t *record)
{
    return mutant->kind == KIND_MUTANT && !museum_rejection(record, 0) &&
           text_is(record_gate(record, "correctness"), "verdict", "PASS");
}

struct running {
    struct subprocess proof;
    const struct museum *museum;
    struct mutant *mutant;
};

/* In a process of its own: the record of the proof of a mutant. */
static json_t *prove_mutant(void *matter)
{
    const struct running *running = matter;
    json_t *record = prove_once(running->museum, running->mutant, false);
    if (got_past(running->mutant, record)) {
        json_decref(record);
        record = prove_once(running->museum, running->mutant, true);
    }
    return record;
}

static bool start(const struct museum *museum, struct mutant *mutant, struct running *running)
{
    *running = (struct running){.museum = museum, .mutant = mutant};
    if (subprocess_begin(&running->proof, prove_mutant, running, PROOF_SECONDS))
        return true;
    snprintf(mutant->lost, sizeof mutant->lost, "no process: %s", strerror(errno));
    return false;
}

static void collect(struct running *running, int status)
{
    struct mutant *mutant = running->mutant;
    char end[64];
    subprocess_ending(status, end, sizeof end);
    mutant->record = subprocess_answer(&running->proof);
    if (!mutant->record)
        snprintf(mutant->lost, sizeof mutant->lost, "the proof itself %s and left no record", end);
}

/* True if the gates that have to speak are among those of --only. */
static bool is_asked(const struct museum *museum, const struct mutant *mutant)
{
    char gate[32];
    bool listed = true;
    for (const char *at = mutant->expected; museum_next_gate(&at, gate, sizeof gate);)
        listed = listed && gate_listed(museum->session->options.only, gate);
    return mutant->chosen && !mutant->left_out && listed;
}

void museum_prove(struct museum *museum, void (*ended)(void *data, const struct mutant *mutant), void *data)
{
    struct running running[MOST_AT_ONCE] = {0};
    struct subprocess *proofs[MOST_AT_ONCE];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int most = processors < 1 ? 1 : processors > MOST_AT_ONCE ? MOST_AT_ONCE : (int)processors, now = 0, printed = 0;
    for (int i = 0; i < most; i++)
        proofs[i] = &running[i].proof;
    for (int next = 0; next < museum->count || now > 0;) {
        for (int i = 0; i < most && next < museum->count; i++) {
            while (next < museum->count && !is_asked(museum, &museum->mutants[next]))
                next++;
            if (next < museum->count && !proofs[i]->process)
                now += start(museum, &museum->mutants[next++], &running[i]);
        }
        int status = 0;
        const int done = now > 0 ? subprocess_await_one(proofs, most, &status) : -1;
        if (done >= 0) {
            collect(&running[done], status);
            now--;
        }
        for (; printed < museum->count; printed++) {
            const struct mutant *mutant = &museum->mutants[printed];
            if (is_asked(museum, mutant) && !mutant->record && !*mutant->lost)
                break;
            if (is_asked(museum, mutant))
                ended(data, mutant);
        }
        if (printed < museum->count)
            progress("%s ...", museum->mutants[printed].stem);
    }
}
