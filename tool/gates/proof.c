/*
 * proof.c - a whole proof. The order matters: the policy and the suite are fixed, and their digests stored, before anything runs;
 * the seed is drawn after the build, so that a source cannot know the inputs it will be judged by; a gate's result is stored before
 * the next gate begins.
 */
#include "proof.h"

#include <attest_kernel.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "build/build_ahead.h"
#include "cuda/cuda_manifest.h"
#include "base/embedded.h"
#include "evidence/champions.h"
#include "evidence/continuation.h"
#include "evidence/decision.h"
#include "base/digest.h"
#include "evidence/objects.h"
#include "evidence/statement.h"
#include "evidence/store.h"

/* ---- opening and closing ---- */

static enum exit_code load_suites(struct session *session, struct proof *proof)
{
    const struct options *options = &session->options;
    enum exit_code code = options->suite ? suite_load(session, &proof->suite, options->suite)
                                         : suite_load_embedded(session, &proof->suite, &embedded_prove_suite);
    if (code == EXIT_PASS)
        code = options->timed ? suite_load(session, &proof->timed, options->timed)
                              : suite_load_embedded(session, &proof->timed,
                                                    proof->candidate.cuda ? &embedded_gpu_speed_suite : &embedded_speed_suite);
    return code;
}

enum exit_code proof_open(struct session *session, const char *word, struct proof *proof)
{
    const char *base = getenv("TMPDIR");
    *proof = (struct proof){.session = session, .policy = default_policy, .clock = session->options.clock};
    proof->threads = attest_context_threads(session->context);
    char why[160];
    if (session->options.policy && !policy_change(&proof->policy, session->options.policy, why, sizeof why))
        return give_up(session, EXIT_USAGE, NULL, "--policy: %s", why);
    if (session->options.thorough || session->options.record) {
        proof->policy.cover_rows *= proof->policy.thorough;
        proof->policy.constant_problems *= proof->policy.thorough;
        proof->policy.large_rounds *= proof->policy.thorough;
        proof->policy.emulation_seconds *= proof->policy.thorough;
    }
    enum exit_code code = candidate_open(session, word, &proof->candidate);
    if (code == EXIT_PASS && proof->candidate.cuda) {
        proof->device = session->options.device ? session->options.device : "cuda";
        if (strncmp(proof->device, "cuda", 4) != 0)
            code = give_up(session, EXIT_USAGE, "leave --device away, or name a GPU: cuda, cuda:1",
                           "%s runs on a GPU, and not on %s", word, proof->device);
    }
    if (code == EXIT_PASS)
        code = load_suites(session, proof);
    if (code != EXIT_PASS)
        return code;
    if (asprintf(&proof->folder, "%s/attest-prove-XXXXXX", base && *base ? base : "/tmp") < 0)
        proof->folder = NULL;
    if (!proof->folder || !mkdtemp(proof->folder)) {
        code =
            give_up(session, EXIT_LACKING, "set TMPDIR to a folder that can be written", "no scratch folder: %s", strerror(errno));
        free(proof->folder);
        proof->folder = NULL;
    }
    return code;
}

void proof_close(struct proof *proof)
{
    if (proof->folder)
        folder_remove(proof->folder);
    free(proof->folder);
    free(proof->opponent.name);
    free(proof->opponent.image);
    if (proof->manifest)
        cuda_manifest_free(proof->manifest);
    free(proof->manifest);
    free(proof->constants);
    problem_list_free(&proof->suite);
    problem_list_free(&proof->timed);
    candidate_close(&proof->candidate);
    *proof = (struct proof){0};
}

/* ---- parts of the record ---- */

json_t *flag_names(uint64_t flags)
{
    static const struct {
        uint64_t flag;
        const char *name;
    } names[] = {
#define FLAG(name, word, title) {ATTEST_##name, word},
#include <attest/flags.def>
#undef FLAG
    };
    json_t *list = json_array();
    for (int i = 0; i < COUNT_OF(names); i++)
        if (flags & names[i].flag)
            json_add(list, json_string(names[i].name));
    return list;
}

static json_t *problem_texts(const struct proof *proof, const struct problem_list *list)
{
    json_t *texts = json_array();
    for (int i = 0; i < list->count; i++)
        if (!proof->candidate.dtype || proof->candidate.dtype == list->entries[i].problem.dtype)
            json_add(texts, json_string(list->entries[i].text));
    return texts;
}

static json_t *time_text(void)
{
    char text[32];
    time_t seconds = time(NULL);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return json_string(text);
}

static void put_digest(json_t *record, const char *key, const json_t *value)
{
    char digest[DIGEST_TEXT];
    digest_of_json(value, digest);
    json_put(record, key, json_string(digest));
}

/* What is known, and fixed, before the first gate. */
static json_t *begin_record(const struct proof *proof)
{
    const struct candidate *candidate = &proof->candidate;
    json_t *record = json_object(), *policy = policy_json(&proof->policy);
    json_t *suite =
        json_pack("{s:o, s:o}", "suite", problem_texts(proof, &proof->suite), "timed", problem_texts(proof, &proof->timed));
    json_put(record, "kernel", json_string(candidate->name));
    json_put(record, "word", json_string(candidate->word));
    json_put(record, "kind", json_string(candidate_kind_name(candidate->kind)));
    json_put(record, "backend", json_string(candidate->cuda ? "cuda" : "cpu"));
    json_put(record, "device",
             proof->device ? gpu_json(proof->session->context, proof->device) : machine_json(proof->session->context));
    json_put(record, "tool", json_pack("{s:s, s:s}", "version", attest_version(), "build", attest_build_id()));
    json_put(record, "started", time_text());
    json_put(record, "policy_number", json_integer(POLICY_NUMBER));
    json_put(record, "generator", json_integer(GENERATOR_VERSION));
    json_put(record, "needed", decision_needed(record));
    put_digest(record, "policy_digest", policy);
    put_digest(record, "suite_digest", suite);
    json_put(record, "policy", policy);
    json_object_update(record, suite);
    json_decref(suite);
    json_put(record, "threads", json_integer(proof->threads));
    json_put(record, "gates", json_array());
    return record;
}

/* What kind of problems the kernel is made for: "few" rows, as in decoding, or more of them but still "short" sequences
 * (`rows_most`), "small" ones of few tiles (`tiles_most`), or all (""). The library asks specialists first, wherever they take a
 * problem, and the champion is chosen among the others. */
static const char *speciality(const struct proof *proof)
{
    enum { FEW_ROWS = 64 };
    struct cuda_configuration configuration;
    char why[256];
    const struct cuda_manifest *manifest = proof->manifest;
    for (int arch = 0; manifest && arch < cuda_limits_count; arch++)
        for (uint32_t dtype = ATTEST_F32; dtype <= ATTEST_BF16; dtype++)
            if (manifest->archs >> arch & 1 && manifest->dtypes >> dtype & 1 && manifest->dims.count &&
                cuda_configure(manifest, arch, dtype, manifest->dims.values[0], NULL, &configuration, why, sizeof why)) {
                const int64_t *n = configuration.numbers;
                if (n[CUDA_ROWS_MOST])
                    return n[CUDA_ROWS_MOST] <= FEW_ROWS ? "few:" : "short:";
                return n[CUDA_TILES_MOST] ? "small:" : "";
            }
    return "";
}

/* The problems that a kernel competes in: those of its one dtype, "fwd:f16", or "fwd:any"; with a word between for a specialist.
 * Valid until the next call. */
static const char *problem_class(const struct proof *proof)
{
    static char class[48];
    uint32_t dtypes = proof->candidate.dtype ? 1u << proof->candidate.dtype : proof->facts.dtypes;
    snprintf(class, sizeof class, "fwd:%s%s", speciality(proof),
             dtypes == ATTEST_TAKES_F32    ? "f32"
             : dtypes == ATTEST_TAKES_F16  ? "f16"
             : dtypes == ATTEST_TAKES_BF16 ? "bf16"
                                           : "any");
    return class;
}

/* ---- the opponent
 * -------------------------------------------------------------------------------------------------------------------- */

/* The opponent that --vs names: a kernel of the library, or a file, which is built as the candidate was. */
static bool open_other(struct proof *proof, const char *word, char *why, size_t why_size)
{
    struct opponent *opponent = &proof->opponent;
    struct proof other = {
        .session = proof->session, .policy = proof->policy, .threads = proof->threads, .device = proof->device, .brief = true};
    struct gate_result result = {.verdict = VERDICT_INCONCLUSIVE, .details = json_object(), .artefacts = json_object()};
    bool file = strchr(word, '.') || strchr(word, '/'), good = false;
    snprintf(why, why_size, "--vs %s could not be opened", word);
    if (!file) {
        opponent->name = strdup(word);
        good = opponent->name && kernel_is_there(word);
        if (!good)
            snprintf(why, why_size, "--vs %s is no kernel of this build, and no file", word);
    } else if (candidate_open(proof->session, word, &other.candidate) == EXIT_PASS) {
        other.folder = gate_path(proof, "opponent");
        good = other.folder && (mkdir(other.folder, 0700) == 0 || errno == EEXIST);
        if (good && other.candidate.cuda != proof->candidate.cuda)
            snprintf(why, why_size, "--vs %s and %s do not run on the same device", word, proof->candidate.word), good = false;
        if (good) {
            gate_build(&other, &result);
            good = other.candidate.image != NULL && result.verdict == VERDICT_PASS;
            snprintf(why, why_size, "--vs %s: %s", word, result.sentence);
        }
        if (good) {
            opponent->name = strdup(other.candidate.name);
            opponent->image = strdup(other.candidate.image);
        }
    }
    json_decref(result.details);
    json_decref(result.artefacts);
    free(other.folder);
    if (other.manifest)
        cuda_manifest_free(other.manifest);
    free(other.manifest);
    free(other.constants);
    candidate_close(&other.candidate);
    return good;
}

/* Whether the image that won was built for another version of attest_kernel.h, and so cannot run beside the candidate. */
static bool is_of_another_abi(const char *image)
{
    const struct executor_spec spec = {.image = image, .threads = 1, .guard = GUARD_BANDS};
    struct execution execution;
    struct executor *executor = executor_open(&spec, &execution);
    if (executor)
        executor_close(executor, NULL);
    return !executor && execution.end == EXECUTION_INVALID && strstr(execution.sentence, "kernel.abi is ");
}

/* Who is to be beaten: --vs; for a kernel of the library the reigning champion of its class, if there is one; for a kernel from
 * elsewhere what the library would choose, problem by problem. A champion is not timed against itself unless it has changed, and
 * then against the image that won, if that was kept, else against the champion before it. With a new version of the kernel ABI it goes on
 * reigning unopposed: the image that won does not run any more (bench/turns times two libraries). */
static bool find_opponent(struct proof *proof, struct store *store, char *why, size_t why_size)
{
    struct session *session = proof->session;
    struct opponent *opponent = &proof->opponent;
    char class[64];
    if (session->options.vs)
        return open_other(proof, session->options.vs, why, why_size);
    if (proof->candidate.kind != CANDIDATE_SHIPPED) {
        opponent->name = strdup(OPPONENT_LIBRARY);
        return opponent->name != NULL;
    }
    json_t *statements = statements_load(session->options.evidence, why, why_size);
    if (!statements)
        return false;
    device_class(session->context, proof->device, class, sizeof class);
    const char *champion = champion_of(statements, class, problem_class(proof));
    const char *image = champion ? champion_image(statements, class, problem_class(proof)) : NULL;
    if (champion && strcmp(champion, proof->candidate.name) != 0) {
        opponent->name = strdup(champion);
        if (!kernel_is_there(champion))
            opponent->image = image && store ? store_artefact(store, image) : NULL;
    } else if (champion && image && store &&
               strcmp(image, json_string_value(json_object_get(proof->candidate.facts, "image"))) != 0) {
        opponent->image = store_artefact(store, image);
        const char *before = champion_before(statements, class, problem_class(proof), champion);
        if (opponent->image && !proof->candidate.cuda && is_of_another_abi(opponent->image)) {
            free(opponent->image);
            opponent->image = NULL;
            proof->reigns = true;
        } else if (opponent->image) {
            opponent->name = strdup(champion);
        } else if (before) {
            opponent->name = strdup(before);
        }
    } else if (champion) {
        proof->reigns = true;
    }
    json_decref(statements);
    if (opponent->name && !opponent->image &&
        !kernel_is_there(opponent->name)) { /* it won on another machine, and is not to be had here */
        free(opponent->name);
        opponent->name = NULL;
    }
    return true;
}

/* ---- running
 * ------------------------------------------------------------------------------------------------------------------------- */

/* The artefacts of a result with digests for paths; kept in the store. */
static json_t *keep_artefacts(const struct gate_result *result, struct store *store)
{
    json_t *kept = json_object(), *path;
    const char *name;
    json_object_foreach(result->artefacts, name, path)
    {
        char digest[DIGEST_TEXT] = "";
        if (store ? store_keep(store, json_string_value(path), digest) : digest_of_file(json_string_value(path), digest))
            json_put(kept, name, json_string(digest));
    }
    return kept;
}

static json_t *result_json(const struct gate *gate, const struct gate_result *result, struct store *store)
{
    return json_pack("{s:s, s:s, s:s, s:f, s:O, s:o}", "gate", gate->name, "verdict", verdict_name(result->verdict), "sentence",
                     result->sentence, "seconds", result->seconds, "details", result->details, "artefacts",
                     keep_artefacts(result, store));
}

static bool draw_seed(struct proof *proof)
{
    if (proof->seed)
        return true;
    uint64_t bits;
    if (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        return false;
    proof->seed = (bits >> 12) + 1; /* exact as a number of JSON, and never 0 */
    return true;
}

struct running {
    struct proof *proof;
    const struct proof_options *options;
    json_t *record;
    const json_t *base; /* combined record that this one continues; NULL: none, or the image is another */
    int64_t run;
    double gpu_seconds; /* that gates have taken on a GPU */
};

int proof_lock(const struct proof *proof, const struct gate *gate)
{
    char path[64];
    if (!proof->device || gate->run == gate_build || gate->run == gate_emulation) /* these use no GPU */
        return -1;
    const char *number = strchr(proof->device, ':');
    snprintf(path, sizeof path, "/tmp/attest-gpu%d.lock", number ? atoi(number + 1) : 0);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    bool alone = gate->run == gate_speed || gate->run == gate_profile;
    while (file >= 0 && flock(file, alone ? LOCK_EX : LOCK_SH) != 0 && errno == EINTR)
        ;
    return file;
}

/* Runs one gate and puts its result on record. */
static bool run_gate(struct running *running, const struct gate *gate, bool judged, enum verdict *verdict)
{
    struct gate_result result = {.verdict = VERDICT_INCONCLUSIVE, .details = json_object(), .artefacts = json_object()};
    struct store *store = running->options->store;
    int lock = proof_lock(running->proof, gate);
    double begin = seconds_now();
    if (!running->options->quiet)
        progress("%s: %s ...", running->proof->candidate.name, gate->name);
    snprintf(result.sentence, sizeof result.sentence, "the gate did not say how it ended");
    gate->run(running->proof, &result);
    result.seconds = seconds_now() - begin;
    if (lock >= 0)
        close(lock);
    *verdict = result.verdict;
    if (running->proof->no_gpu && result.verdict == VERDICT_INCONCLUSIVE)
        json_put(result.details, "lacking", json_string("gpu"));
    if (running->proof->device && gate != gates)
        running->gpu_seconds += result.seconds;
    bool stored = true;
    if (judged || result.verdict != VERDICT_PASS) { /* what ends the proof is on record, whether it was asked for or not */
        json_t *object = result_json(gate, &result, store);
        json_add(json_object_get(running->record, "gates"), json_incref(object));
        stored = !store || store_gate(store, running->run, gate->name, object);
        json_decref(object);
        if (!running->options->quiet)
            progress_clear();
        if (running->options->finished)
            running->options->finished(running->options->data, gate, &result);
    }
    json_decref(result.details);
    json_decref(result.artefacts);
    return stored;
}

/* The emulation gate compiles for itself. */
static bool is_emulation_alone(const char *only)
{
    bool alone = gate_listed(only, "emulation");
    for (int i = 0; i < gate_count; i++)
        alone = alone && (gates[i].run == gate_emulation || !gate_listed(only, gates[i].name));
    return alone;
}

/* The images that gates will ask for beside the one that ships. */
static void compile_ahead(const struct proof *proof, const char *only)
{
    const struct {
        const char *gate;
        enum build_kind kind;
    } asked[] = {{"memory", BUILD_CHECKED}, {"correctness", BUILD_COVERED}};
    enum build_kind kinds[COUNT_OF(asked)];
    char *flags = candidate_flags(proof->candidate.source);
    int count = 0;
    for (int i = 0; i < COUNT_OF(asked); i++)
        if (gate_listed(only, asked[i].gate))
            kinds[count++] = asked[i].kind;
    if (flags)
        build_ahead_start(proof->candidate.source, flags, proof->folder, kinds, count);
    free(flags);
}

static bool run_gates(struct running *running, char *why, size_t why_size)
{
    struct proof *proof = running->proof;
    const char *only = running->options->only;
    running->base = running->options->base;
    bool failed = false;
    double most = running->options->gpu_seconds;
    proof->without_image = proof->device && is_emulation_alone(only);
    for (int i = 0; i < gate_count && !failed && !(most > 0 && running->gpu_seconds >= most); i++) {
        enum verdict verdict;
        bool build = i == 0, judged = gate_listed(only, gates[i].name);
        if ((proof->device ? gates[i].cuda : gates[i].cpu) == 0) /* not for kernels of this kind */
            continue;
        if (!build && !judged)
            continue;
        if (!run_gate(running, &gates[i], judged, &verdict)) {
            snprintf(why, why_size, "%s", store_error(running->options->store));
            return false;
        }
        bool past_build = running->options->past_build || running->options->keep_going;
        bool goes_on = verdict == VERDICT_PASS || (past_build && proof->candidate.image);
        if (build && (!draw_seed(proof) ||
                      (goes_on && proof->candidate.image && !find_opponent(proof, running->options->store, why, why_size))))
            return false;
        /* What another image passed says nothing about this one. */
        if (build && running->base &&
            !json_equal(json_object_get(json_object_get(running->base, "candidate"), "image"),
                        json_object_get(proof->candidate.facts, "image")))
            only = NULL, running->base = NULL;
        /* Without an image there is nothing to go on with. */
        failed = verdict == VERDICT_FAIL && gates[i].needed &&
                 (!(running->options->keep_going || (build && running->options->past_build)) || (build && !proof->candidate.image));
        failed = failed || (build && verdict != VERDICT_PASS && !proof->candidate.image);
    }
    return true;
}

/* The verdicts; of a record that continues another by the results of both. */
static void decide_on(struct running *running)
{
    static const char *const keys[] = {"verdict", "champion", "decision", "promoted"};
    json_t *record = running->record;
    if (!running->base) {
        decision_make(record);
        return;
    }
    json_put(record, "continues", json_string(running->options->continues));
    json_t *combined = continuation_add(running->base, record);
    decision_make(combined);
    for (int i = 0; i < COUNT_OF(keys); i++)
        json_put(record, keys[i], json_incref(json_object_get(combined, keys[i])));
    json_decref(combined);
}

bool proof_run(struct proof *proof, const struct proof_options *options, json_t **record, char *why, size_t why_size)
{
    struct running running = {.proof = proof, .options = options, .record = begin_record(proof)};
    proof->past_build = options->past_build;
    double begin = seconds_now();
    snprintf(why, why_size, "out of memory");
    *record = NULL;
    running.run = options->store ? store_begin(options->store, running.record) : 0;
    if (running.run < 0) {
        snprintf(why, why_size, "%s", store_error(options->store));
        json_decref(running.record);
        return false;
    }
    if (options->ahead && proof->candidate.source && !proof->candidate.cuda)
        compile_ahead(proof, options->only);
    const bool stored = run_gates(&running, why, why_size);
    build_ahead_end();
    if (!stored) {
        json_decref(running.record);
        return false;
    }
    json_put(running.record, "problem_class", json_string(problem_class(proof)));
    json_put(running.record, "candidate", json_incref(proof->candidate.facts));
    json_put(running.record, "seed", json_integer((json_int_t)proof->seed));
    json_put(running.record, "opponent", proof->opponent.name ? json_string(proof->opponent.name) : json_null());
    json_put(running.record, "reigns", json_boolean(proof->reigns));
    if (proof->device)
        json_put(running.record, "gpu_seconds", json_real(running.gpu_seconds));
    json_put(running.record, "finished", time_text());
    json_put(running.record, "seconds", json_real(seconds_now() - begin));
    decide_on(&running);
    if (options->store && !store_finish(options->store, running.run, running.record)) {
        snprintf(why, why_size, "%s", store_error(options->store));
        json_decref(running.record);
        return false;
    }
    *record = running.record;
    return true;
}
