/*
 * cmd_selftest.c - attest selftest: proves the gates. Every kernel of the mutants folder goes through a proof like any other; then
 * what the gates said is compared with what mutants.def says they have to say.
 *
 * A MUTANT has a bug or a cheat planted. The first gate that rejects it must be the one expected, so that a gate cannot hide behind
 * another; and its diagnosis must be right: the stages that the oracle names are exactly those expected (a set, where causes cannot
 * be told apart from outside), or the gate's sentence has the words expected. A SPEED row is a right kernel timed by a simulated
 * clock, and the speed gate must come to what is expected. A HARMLESS variant must be proven. Where timing decides which gate sees a
 * bug first, as with races, a row names both: "oracle or memory". A kernel that the build gate rejects for its image, and that another
 * gate would find out by running it, has "build and oracle": its proof goes on past the build gate, both must reject it, and both have
 * a diagnosis: "writable static storage + earlier call".
 *
 * CUDA kernels are those of the folder cuda. Without a GPU only those are proven that the build gate has to reject, and without nvcc
 * none; what is left out is counted, and never as right.
 *
 * Each proof runs in a process of its own and on one thread (the determinism gate takes more by itself), as many at once as there
 * are processors. What they share is the seed and the policy, which is shorter than that of an ordinary proof where a planted bug
 * shows just as well.
 */
#include <errno.h>
#include <fnmatch.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/subprocess.h"
#include "evidence/member.h"
#include "mutate/kill_rate.h"
#include "build/build.h"
#include "build/cuda_compile.h"
#include "gates/cuda_tools.h"
#include "gates/proof.h"
#include "theory/stages.h"
#include "base/regular_file.h"
#include "base/random.h"

enum { MOST_AT_ONCE = 16, PROOF_SECONDS = 1800 };

/* Two kernels that are equally fast: what every row but those of SPEED is timed by. */
#define EVEN_CLOCK "a=1,b=1,noise=0.004,seed=7"

#define BOTH       " and " /* between two gates that both have to reject a kernel; PARTS is between their diagnoses */
#define PARTS      " + "

enum kind { KIND_MUTANT, KIND_SPEED, KIND_HARMLESS, KIND_COUNT };
static const char *const kind_words[] = {"MUTANT", "SPEED", "HARMLESS"};
static const int kind_fields[] = {4, 5, 2};
enum { MOST_FIELDS = 5 };

/* One row of mutants.def. */
struct mutant {
    enum kind kind;
    char stem[64];
    char expected[160]; /* MUTANT: gate, or "oracle or memory". SPEED: "speed". HARMLESS: "" */
    char names[160];    /* MUTANT: stages, or words of the sentence; may be "". SPEED: what the speed gate comes to */
    char opponent[64];  /* SPEED: another kernel of the folder, or "library" */
    char clock[160];
    char sentence[256];
    bool chosen;
    bool left_out;  /* it is chosen, and this machine cannot run it */
    json_t *record; /* of the proof, once it has ended */
    char lost[256]; /* why there is no record */
};

struct selftest {
    struct session *session;
    struct mutant *mutants;
    int count;
    uint64_t seed;
    int counts[KIND_COUNT], right[KIND_COUNT];
    int diagnoses, right_diagnoses;
    int undecided; /* rows that are not right because a gate was inconclusive */
    int left_out;
    char lacking[320]; /* why rows were left out */
    int of;            /* rows that a sample was drawn from */
    bool emulated;     /* CUDA rows run without a GPU: the emulation gate is the one to reject them */
};

/* ---- mutants.def ----------------------------------------------------------------------------------------------------------- */

/* The next field of a row: a word, or a text in quotes. False if there is none, or no room for it. */
static bool next_field(const char **at, char *field, size_t size)
{
    const char *begin = *at + strspn(*at, " \t,(");
    bool quoted = *begin == '"';
    begin += quoted;
    size_t length = strcspn(begin, quoted ? "\"" : " \t,)\n");
    if ((!quoted && length == 0) || length >= size || (quoted && begin[length] != '"'))
        return false;
    snprintf(field, size, "%.*s", (int)length, begin);
    *at = begin + length + quoted;
    return true;
}

/* False if the line is no row, or a wrong one; then `wrong` says which. */
static bool parse_row(const char *line, struct mutant *mutant, bool *wrong)
{
    char fields[MOST_FIELDS][256];
    *wrong = false;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        size_t length = strlen(kind_words[kind]);
        if (strncmp(line, kind_words[kind], length) != 0 || line[length] != '(')
            continue;
        const char *at = line + length;
        for (int i = 0; i < kind_fields[kind]; i++)
            if (!next_field(&at, fields[i], sizeof fields[i])) {
                *wrong = true;
                return false;
            }
        *mutant = (struct mutant){.kind = (enum kind)kind};
        snprintf(mutant->stem, sizeof mutant->stem, "%.63s", fields[0]);
        snprintf(mutant->opponent, sizeof mutant->opponent, "%.63s", kind == KIND_SPEED ? fields[1] : "library");
        snprintf(mutant->clock, sizeof mutant->clock, "%.159s", kind == KIND_SPEED ? fields[2] : EVEN_CLOCK);
        snprintf(mutant->expected, sizeof mutant->expected, "%.159s",
                 kind == KIND_MUTANT  ? fields[1]
                 : kind == KIND_SPEED ? "speed"
                                      : "");
        snprintf(mutant->names, sizeof mutant->names, "%.159s",
                 kind == KIND_MUTANT  ? fields[2]
                 : kind == KIND_SPEED ? fields[3]
                                      : "");
        snprintf(mutant->sentence, sizeof mutant->sentence, "%.255s", fields[kind_fields[kind] - 1]);
        return true;
    }
    return false;
}

static enum exit_code read_table(struct selftest *test)
{
    struct session *session = test->session;
    char path[4096], *line = NULL;
    size_t size = 0;
    enum exit_code code = EXIT_PASS;
    snprintf(path, sizeof path, "%.4000s/mutants.def", session->options.mutants);
    char why[4300];
    FILE *file = regular_file_open(path, why, sizeof why);
    if (!file)
        return give_up(session, EXIT_USAGE, "run this in the root of attest's source tree, or name the folder: --mutants DIR", "%s",
                       why);
    for (int number = 1; code == EXIT_PASS && getline(&line, &size, file) >= 0; number++) {
        struct mutant mutant, *grown;
        bool wrong;
        if (parse_row(line, &mutant, &wrong)) {
            grown = realloc(test->mutants, ((size_t)test->count + 1) * sizeof *grown);
            if (!grown) {
                code = give_up(session, EXIT_LACKING, NULL, "out of memory");
                break;
            }
            test->mutants = grown;
            test->mutants[test->count++] = mutant;
        } else if (wrong) {
            code = give_up(session, EXIT_USAGE, "the head of the file says what a row has", "%s:%d: this row is not complete", path,
                           number);
        }
    }
    free(line);
    fclose(file);
    return code;
}

/* Which mutants are to be run: all, or those that the words name. */
static enum exit_code choose(struct selftest *test)
{
    const struct options *options = &test->session->options;
    const char *stems[512];
    int count = 0;
    for (int i = 0; i < test->count; i++) {
        test->mutants[i].chosen = options->word_count == 0;
        if (count < COUNT_OF(stems))
            stems[count++] = test->mutants[i].stem;
    }
    for (int w = 0; w < options->word_count; w++) {
        bool found = false;
        for (int i = 0; i < test->count; i++)
            if (fnmatch(options->words[w], test->mutants[i].stem, 0) == 0)
                found = test->mutants[i].chosen = true;
        if (found)
            continue;
        const char *near = nearest_word(options->words[w], stems, count);
        char hint[160];
        snprintf(hint, sizeof hint, near ? "did you mean %s?" : "the rows of mutants.def name them", near);
        return give_up(test->session, EXIT_USAGE, hint, "there is no mutant called %s", options->words[w]);
    }
    return EXIT_PASS;
}

/* Whether another row of the sample is of the same kind and expects the same gate, for the same device. */
static bool is_represented(const struct selftest *test, const struct mutant *mutant, const bool *drawn)
{
    for (int i = 0; i < test->count; i++)
        if (drawn[i] && test->mutants[i].kind == mutant->kind && strcmp(test->mutants[i].expected, mutant->expected) == 0 &&
            (strncmp(test->mutants[i].stem, "cuda/", 5) == 0) == (strncmp(mutant->stem, "cuda/", 5) == 0))
            return true;
    return false;
}

/* --sample N: of the rows that are chosen and can be run here only N stay, drawn from the seed, with at least one of every kind and every expected gate,
 * even if those are more. */
static enum exit_code draw_sample(struct selftest *test)
{
    enum { STREAM = 77 };
    int64_t most = test->session->options.sample, drawn_count = 0;
    bool *drawn = calloc((size_t)test->count + 1, sizeof *drawn);
    int *order = calloc((size_t)test->count + 1, sizeof *order);
    for (int i = 0; drawn && order && i < test->count; i++) { /* a drawn order of the rows */
        int at = (int)random_below(random_bits(test->seed, STREAM, (uint64_t)i), i);
        order[i] = order[at];
        order[at] = i;
    }
    for (int pass = 0; drawn && order && pass < 2; pass++)
        for (int n = 0; n < test->count; n++) {
            const struct mutant *mutant = &test->mutants[order[n]];
            bool wanted = pass == 0 ? !is_represented(test, mutant, drawn) : drawn_count < most;
            if (mutant->chosen && !mutant->left_out && !drawn[order[n]] && wanted)
                drawn[order[n]] = ++drawn_count;
        }
    bool done = drawn && order;
    for (int i = 0; done && i < test->count; i++) {
        struct mutant *mutant = &test->mutants[i];
        test->of += mutant->chosen && !mutant->left_out;
        mutant->chosen = drawn[i] || mutant->left_out;
    }
    free(drawn);
    free(order);
    return done ? EXIT_PASS : give_up(test->session, EXIT_LACKING, NULL, "out of memory");
}

/* ---- what this machine lacks ---------------------------------------------------------------------------------------------- */

static bool is_cuda(const struct mutant *mutant)
{
    return strncmp(mutant->stem, "cuda/", 5) == 0;
}

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

/* Leaves out what cannot be run here. */
static void leave_out(struct selftest *test)
{
    bool any = false;
    for (int i = 0; i < test->count; i++)
        any = any || (test->mutants[i].chosen && is_cuda(&test->mutants[i]));
    if (!any)
        return;
    /* In emulation they take minutes: those are run that are asked for. */
    const bool named = test->session->options.word_count > 0;
    char *nvcc = cuda_tool_find("nvcc"), *lister = cuda_tool_find("cuobjdump"), why[256] = "";
    bool gpu = gpu_is_there(why, sizeof why);
    if (!nvcc)
        snprintf(test->lacking, sizeof test->lacking, "no nvcc");
    else if (!lister)
        snprintf(test->lacking, sizeof test->lacking, "no cuobjdump");
    else if (!gpu)
        snprintf(test->lacking, sizeof test->lacking,
                 named ? "no GPU (%.120s), and the emulated device does not show what is planted"
                       : "no GPU (%.120s); attest selftest 'cuda/*' runs them in emulation",
                 why);
    test->emulated = nvcc && !gpu;
    for (int i = 0; i < test->count; i++) {
        struct mutant *mutant = &test->mutants[i];
        bool builds = strcmp(mutant->expected, "build") != 0;
        mutant->left_out = mutant->chosen && is_cuda(mutant) &&
                           (!nvcc || !lister || (!gpu && builds && (!named || is_unseen_in_emulation(mutant))));
        test->left_out += mutant->left_out;
    }
    free(nvcc);
    free(lister);
}

/* ---- the proofs ------------------------------------------------------------------------------------------------------------ */

static const json_t *gate_of(const json_t *record, const char *name)
{
    const json_t *gate;
    size_t i;
    json_array_foreach(json_object_get(record, "gates"), i, gate)
    {
        if (text_is(gate, "gate", name))
            return gate;
    }
    return NULL;
}

static bool is_cheat(const json_t *gate)
{
    return json_is_true(json_object_get(json_object_get(gate, "details"), "cheat"));
}

/* The first gate that rejects the kernel, from gate number `first` on. A kernel that is not faster is not rejected for that. NULL if
 * none does. */
static const json_t *rejection(const json_t *record, int first)
{
    for (int i = first; i < gate_count; i++) {
        const json_t *gate = gate_of(record, gates[i].name);
        if (text_is(gate, "verdict", "FAIL") && (gates[i].needed || is_cheat(gate)))
            return gate;
    }
    return NULL;
}

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

/* The gate that has to reject the kernel after the build gate did; "" if that one is enough. */
static const char *second_gate(const struct mutant *mutant)
{
    const char *both = strstr(mutant->expected, BOTH);
    return both ? both + sizeof BOTH - 1 : "";
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
static json_t *prove_once(const struct selftest *test, const struct mutant *mutant, bool whole)
{
    struct session session = *test->session;
    const char *folder = session.options.mutants;
    char word[4200], suite[4200], timed[4200], opponent[4200], only[128], why[1024] = "its opponent cannot be built";
    struct proof proof;
    json_t *record = NULL;
    const char *below = is_cuda(mutant) ? "cuda/" : "";
    snprintf(word, sizeof word, "%.4000s/%s.%s", folder, mutant->stem, is_cuda(mutant) ? "cu" : "c");
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
        if (*second_gate(mutant)) {
            gates_up_to(second_gate(mutant), only, sizeof only);
            options.only = only;
            options.past_build = true;
        }
        /* With a GPU the other gates have to see what the emulation gate sees before them. */
        if (is_cuda(mutant) && mutant->kind == KIND_MUTANT && !test->emulated && !options.only &&
            !strstr(mutant->expected, "emulation"))
            options.only = "build,oracle,memory,determinism,correctness,speed,profile";
        if (!whole)
            shorten(&proof.policy, mutant->kind);
        proof.threads = 1;
        proof.seed = test->seed;
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
    return mutant->kind == KIND_MUTANT && !rejection(record, 0) && text_is(gate_of(record, "correctness"), "verdict", "PASS");
}

struct running {
    struct subprocess proof;
    const struct selftest *test;
    struct mutant *mutant;
};

/* In a process of its own: the record of the proof of a mutant. */
static json_t *prove_mutant(void *matter)
{
    const struct running *running = matter;
    json_t *record = prove_once(running->test, running->mutant, false);
    if (got_past(running->mutant, record)) {
        json_decref(record);
        record = prove_once(running->test, running->mutant, true);
    }
    return record;
}

static bool start(const struct selftest *test, struct mutant *mutant, struct running *running)
{
    *running = (struct running){.test = test, .mutant = mutant};
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

static void print_mutant(struct selftest *test, const struct mutant *mutant);

/* Takes the next gate of "oracle or memory". False if there is none. */
static bool next_expected(const char **at, char *gate, size_t size)
{
    size_t length = strcspn(*at, " ");
    snprintf(gate, size, "%.*s", (int)length, *at);
    *at += length;
    *at += strncmp(*at, " or ", 4) == 0 ? 4 : strncmp(*at, BOTH, sizeof BOTH - 1) == 0 ? sizeof BOTH - 1 : 0;
    return length > 0;
}

/* True if the gates that have to speak are among those of --only. */
static bool is_asked(const struct selftest *test, const struct mutant *mutant)
{
    char gate[32];
    bool listed = true;
    for (const char *at = mutant->expected; next_expected(&at, gate, sizeof gate);)
        listed = listed && gate_listed(test->session->options.only, gate);
    return mutant->chosen && !mutant->left_out && listed;
}

static bool is_expected(const struct selftest *test, const struct mutant *mutant, const json_t *failed)
{
    char gate[32];
    if (test->emulated && is_cuda(mutant) && strcmp(mutant->expected, "build") != 0 && text_is(failed, "gate", "emulation"))
        return true;
    for (const char *at = mutant->expected; next_expected(&at, gate, sizeof gate);)
        if (text_is(failed, "gate", gate))
            return true;
    return false;
}

/* Runs the proofs, some at once, and prints each row when those above it are there. */
static void run_all(struct selftest *test)
{
    struct running running[MOST_AT_ONCE] = {0};
    struct subprocess *proofs[MOST_AT_ONCE];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int most = processors < 1 ? 1 : processors > MOST_AT_ONCE ? MOST_AT_ONCE : (int)processors, now = 0, printed = 0;
    for (int i = 0; i < most; i++)
        proofs[i] = &running[i].proof;
    for (int next = 0; next < test->count || now > 0;) {
        for (int i = 0; i < most && next < test->count; i++) {
            while (next < test->count && !is_asked(test, &test->mutants[next]))
                next++;
            if (next < test->count && !proofs[i]->process)
                now += start(test, &test->mutants[next++], &running[i]);
        }
        int status = 0;
        const int ended = now > 0 ? subprocess_await_one(proofs, most, &status) : -1;
        if (ended >= 0) {
            collect(&running[ended], status);
            now--;
        }
        for (; printed < test->count; printed++) {
            const struct mutant *mutant = &test->mutants[printed];
            if (is_asked(test, mutant) && !mutant->record && !*mutant->lost)
                break;
            if (is_asked(test, mutant))
                print_mutant(test, mutant);
        }
        if (printed < test->count)
            progress("%s ...", test->mutants[printed].stem);
    }
}

/* ---- what they came to ------------------------------------------------------------------------------------------------------ */

/* What the speed gate came to: FASTER, SLOWER, SAME or INCONCLUSIVE; CHEAT; or nothing, if it was not run. */
static const char *speed_of(const struct mutant *mutant)
{
    const json_t *gate = gate_of(mutant->record, "speed");
    if (is_cheat(gate) || text_is(gate, "verdict", "INCONCLUSIVE"))
        return is_cheat(gate) ? "CHEAT" : "INCONCLUSIVE";
    return text_at(json_object_get(json_object_get(gate, "details"), "suite"), "speed");
}

/* The stages that a diagnosis names, as they are written in mutants.def: "S or mask". */
static void stages_found(const json_t *gate, char *text, size_t size)
{
    const json_t *stages = json_object_get(json_object_get(json_object_get(gate, "details"), "diagnosis"), "stages"), *stage;
    size_t i, used = 0;
    text[0] = '\0';
    json_array_foreach(stages, i, stage)
    {
        if (used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " or " : "", json_string_value(stage));
    }
}

/* Whether a text is a set of stages, such as "S or mask". */
static bool is_stages(const char *text)
{
    while (*text) {
        size_t length = strcspn(text, " ");
        bool found = false;
        for (int i = 0; i < STAGE_COUNT; i++) {
            const char *name = stage_name((enum stage)(1 << i));
            found = found || (strlen(name) == length && strncmp(text, name, length) == 0);
        }
        if (!found)
            return false;
        text += length;
        text += strncmp(text, " or ", 4) == 0 ? 4 : strlen(text) ? 1 : 0;
    }
    return true;
}

/* Whether the gate names what was planted: exactly these stages, or these words in its sentence. */
static bool diagnosed(const char *names, const json_t *gate, char *found, size_t size)
{
    stages_found(gate, found, size);
    if (*names && is_stages(names))
        return strcmp(found, names) == 0;
    bool said = strstr(text_at(gate, "sentence"), names) != NULL;
    snprintf(found, size, "%s", said ? names : "something else");
    return said;
}

/* A kernel that two gates have to reject. */
static const char *outcome_of_both(struct selftest *test, const struct mutant *mutant, json_t *row, bool *right)
{
    const json_t *build = gate_of(mutant->record, gates[0].name), *failed = rejection(mutant->record, 1);
    char first[160], found[160];
    const char *parts = strstr(mutant->names, PARTS), *second = parts ? parts + sizeof PARTS - 1 : "";
    snprintf(first, sizeof first, "%.*s", parts ? (int)(parts - mutant->names) : (int)sizeof first - 1, mutant->names);
    if (!text_is(build, "verdict", "FAIL"))
        return failed ? "WRONG GATE" : "SURVIVED";
    if (!failed)
        return "SURVIVED";
    if (!text_is(failed, "gate", second_gate(mutant)))
        return "WRONG GATE";
    bool named = diagnosed(first, build, found, sizeof found) && diagnosed(second, failed, found, sizeof found);
    test->diagnoses++;
    test->right_diagnoses += named;
    json_put(row, "diagnosis", json_string(named ? mutant->names : found));
    *right = named;
    return named ? "killed" : "WRONG DIAGNOSIS";
}

/* One cell of the matrix. */
static const char *mark(const struct mutant *mutant, const struct gate *gate)
{
    const json_t *found = gate_of(mutant->record, gate->name);
    enum verdict verdict = found ? verdict_find(text_at(found, "verdict")) : VERDICT_COUNT;
    static const char *const marks[] = {"pass", "FAIL", "?", "n/a", "."};
    if (verdict == VERDICT_FAIL && !gate->needed && !is_cheat(found))
        return strcmp(speed_of(mutant), "SLOWER") == 0 ? "slower" : "same";
    return marks[verdict];
}

static bool is_inconclusive(const struct mutant *mutant)
{
    for (int i = 0; i < gate_count; i++)
        if (text_is(gate_of(mutant->record, gates[i].name), "verdict", "INCONCLUSIVE"))
            return true;
    return false;
}

/* In one word, what a row came to; the row is right if it is "killed", "as expected" or "proven". */
static const char *outcome(struct selftest *test, const struct mutant *mutant, json_t *row, bool *right)
{
    const json_t *failed = rejection(mutant->record, 0);
    const char *only = test->session->options.only;
    char found[160] = "";
    *right = false;
    if (!mutant->record)
        return "LOST";
    if (mutant->kind == KIND_HARMLESS) {
        *right = !failed && (only || text_is(mutant->record, "verdict", "PROVEN") ||
                             (test->emulated && is_cuda(mutant) && text_is(mutant->record, "verdict", "PROVEN IN EMULATION")));
        return *right ? "proven" : failed ? "REJECTED" : "NOT PROVEN";
    }
    if (mutant->kind == KIND_SPEED) {
        *right = strcmp(speed_of(mutant), mutant->names) == 0;
        json_put(row, "diagnosis", json_string(speed_of(mutant)));
        return *right ? "as expected" : "NOT AS EXPECTED";
    }
    if (*second_gate(mutant))
        return outcome_of_both(test, mutant, row, right);
    if (!failed)
        return "SURVIVED";
    if (!is_expected(test, mutant, failed))
        return "WRONG GATE";
    if (*mutant->names && strstr(mutant->expected, text_at(failed, "gate"))) {
        bool named = diagnosed(mutant->names, failed, found, sizeof found);
        test->diagnoses++;
        test->right_diagnoses += named;
        json_put(row, "diagnosis", json_string(found));
        if (!named)
            return "WRONG DIAGNOSIS";
    }
    *right = true;
    return "killed";
}

/* What the gate said that matters most for a row that is not right. */
static const char *sentence_of(const struct mutant *mutant, const json_t *failed)
{
    const json_t *second = *second_gate(mutant) ? rejection(mutant->record, 1) : NULL;
    return second ? text_at(second, "sentence") : failed ? text_at(failed, "sentence") : text_at(mutant->record, "decision");
}

static void print_mutant(struct selftest *test, const struct mutant *mutant)
{
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s}", "mutant", mutant->stem, "kind", kind_words[mutant->kind], "expected",
                            *mutant->expected ? mutant->expected : "none", "planted", mutant->sentence, "diagnosis", "");
    bool right;
    for (int i = 0; i < gate_count; i++)
        json_put(row, gates[i].name, json_string(mark(mutant, &gates[i])));
    const char *word = outcome(test, mutant, row, &right);
    const json_t *failed = rejection(mutant->record, 0);
    json_put(row, "outcome", json_string(word));
    json_put(row, "right", json_boolean(right));
    json_put(row, "sentence", json_string(sentence_of(mutant, failed)));
    json_put(row, "seconds", json_real(json_number_value(json_object_get(mutant->record, "seconds"))));
    test->counts[mutant->kind]++;
    test->right[mutant->kind] += right;
    test->undecided += !right && !failed && mutant->kind != KIND_SPEED && is_inconclusive(mutant);
    if (!right) {
        json_t *notes = json_array();
        json_add(notes, json_text("planted: %s", mutant->sentence));
        if (*mutant->names)
            json_add(notes, json_text("expected: %s", mutant->names));
        json_add(notes, json_text("found: %s", *mutant->lost ? mutant->lost : text_at(row, "sentence")));
        json_add(notes, json_text("reproduce: attest selftest %s --seed %llu", mutant->stem, (unsigned long long)test->seed));
        json_put(row, "notes", notes);
    }
    report_row(&test->session->report, row);
}

static void print_table(const struct selftest *test)
{
    static struct column columns[16] = {{"mutant", "mutant", -22}, {"expected", "expected", -11}};
    int count = 2, widths[COUNT_OF(columns)] = {0};
    for (int i = 0; i < gate_count && count < COUNT_OF(columns) - 2; i++)
        columns[count++] = (struct column){gates[i].name, gates[i].name, -6};
    columns[count++] = (struct column){"diagnosis", "diagnosis", -14};
    columns[count++] = (struct column){"outcome", "outcome", -8};
    for (int i = 0; i < test->count; i++) {
        int length = (int)strlen(test->mutants[i].stem), named = (int)strlen(test->mutants[i].names);
        int expected = (int)strlen(test->mutants[i].expected);
        widths[0] = length > widths[0] ? length : widths[0];
        widths[1] = expected > widths[1] ? expected : widths[1];
        widths[count - 2] = named > widths[count - 2] ? named : widths[count - 2];
    }
    report_table(&test->session->report, "mutants", columns, count, widths);
}

/* ---- mutants that nobody wrote ----------------------------------------------------------------------------------------------- */

static enum exit_code measure_kill_rate(struct session *session)
{
    uint64_t seed;
    if (session->options.word_count)
        return give_up(session, EXIT_USAGE, "--of KERNEL names the kernels that mutants are made of",
                       "--generate takes no mutant's name, and got '%s'", session->options.words[0]);
    if (session->options.only && gate_listed(session->options.only, "speed"))
        return give_up(session, EXIT_USAGE, "leave speed away",
                       "--generate has no use for the speed gate: mutants are to be right, not fast");
    if (!session->options.proof_seed && getrandom(&seed, sizeof seed, 0) == (ssize_t)sizeof seed)
        session->options.proof_seed = (int64_t)(seed >> 12) + 1;
    return kill_rate_measure(session);
}

/* ---- the command ------------------------------------------------------------------------------------------------------------ */

enum exit_code cmd_selftest(struct session *session)
{
    struct selftest test = {.session = session, .seed = (uint64_t)session->options.proof_seed};
    enum exit_code code = gates_check(session);
    if (code == EXIT_PASS && session->options.generate)
        return measure_kill_rate(session);
    if (code == EXIT_PASS)
        code = read_table(&test);
    if (code == EXIT_PASS)
        code = choose(&test);
    if (code == EXIT_PASS && !test.seed && getrandom(&test.seed, sizeof test.seed, 0) == (ssize_t)sizeof test.seed)
        test.seed = (test.seed >> 12) + 1;
    if (code == EXIT_PASS)
        leave_out(&test);
    if (code == EXIT_PASS && session->options.sample)
        code = draw_sample(&test);
    if (code == EXIT_PASS) {
        struct report *report = &session->report;
        print_table(&test);
        run_all(&test);
        progress_clear();
        int all = 0, right = 0;
        for (int kind = 0; kind < KIND_COUNT; kind++) {
            all += test.counts[kind];
            right += test.right[kind];
        }
        report_put(report, "seed", json_integer((json_int_t)test.seed));
        if (session->options.sample)
            report_put(report, "sample", json_text("%d rows of %d", all, test.of));
        report_put(report, "killed",
                   json_text("%d of %d mutants, by the gate expected", test.right[KIND_MUTANT], test.counts[KIND_MUTANT]));
        report_put(report, "diagnosed", json_text("%d of %d", test.right_diagnoses, test.diagnoses));
        report_put(report, "clocked", json_text("%d of %d as expected", test.right[KIND_SPEED], test.counts[KIND_SPEED]));
        report_put(report, "harmless", json_text("%d of %d proven", test.right[KIND_HARMLESS], test.counts[KIND_HARMLESS]));
        if (test.left_out)
            report_put(report, "left out", json_text("%d CUDA rows: %s", test.left_out, test.lacking));
        bool lacking = right < all && all - right == test.undecided;
        report_put(report, "verdict", json_string(all == 0 || lacking ? "INCONCLUSIVE" : right == all ? "PASS" : "FAIL"));
        code = all == 0 || lacking ? EXIT_LACKING : right == all ? EXIT_PASS : EXIT_FAILED;
    }
    for (int i = 0; i < test.count; i++)
        json_decref(test.mutants[i].record);
    free(test.mutants);
    return code;
}
