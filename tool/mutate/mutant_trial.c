/*
 * mutant_trial.c - see mutant_trial.h.
 *
 * The files of the kernel are written to a scratch folder under the same relative paths, one of them with the edit, and the kernel is
 * proven there by its own name, as it would be in the source tree. Cheap questions come first:
 *   1. Is the preprocessed text the same? Then the edit is in text that this kernel leaves out (absent).
 *   2. Is the image the same with -Og, which takes a fraction of the time, and with -O0? Then it is equivalent. Does the oracle gate reject
 *      it as -Og builds it? Then it is killed. One in AUDIT of those is built and proven as it should be all the same, and that result
 *      counts, so that a kill that depends on -Og shows.
 *   3. It is built as the kernel is. The same image as the unchanged kernel's: equivalent.
 *   4. All gates but memory and speed, or those of them that --only names; then the memory gate, which builds the kernel once more. The library makes a kernel for each dtype
 *      of one source, and an edit may be in what is for another dtype than that of the kernel that was drawn: the proof is of all of them.
 * A CUDA kernel goes through its gates on a GPU if --device names one; else through the emulation gate. Then the image that has to be the same
 * for it to be equivalent is that for the emulated device.
 * The policy is that of an ordinary proof but for the time that a call may take: a mutant that hangs is killed sooner.
 */
#include "mutant_trial.h"

#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "evidence/member.h"
#include "evidence/objects.h"
#include "build/build.h"
#include "gates/cuda_build.h"
#include "gates/cuda_emulation.h"
#include "gates/proof.h"

enum { AUDIT = 16, CALL_SECONDS = 15 };

/* ---- the files -------------------------------------------------------------------------------------------------------------- */

/* Writes a file below the current folder, with its folders. */
static bool write_file(const char *path, const char *text, size_t size)
{
    char folder[512];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 0, path);
    if (*folder && !folder_make(folder))
        return false;
    FILE *file = fopen(path, "wb");
    bool written = file && fwrite(text, 1, size, file) == size;
    return file && fclose(file) == 0 && written;
}

static const char *below(const char *path)
{
    return path + strspn(path, "/");
}

/* The files of the kernel, unchanged, in the current folder. */
static bool write_kernel(const struct mutant_kernel *kernel)
{
    for (int i = 0; i < kernel->file_count; i++)
        if (!write_file(below(kernel->files[i]->path), kernel->files[i]->text, kernel->files[i]->size))
            return false;
    return true;
}

static bool write_mutant(const struct mutant_draw *draw)
{
    char *text = edit_apply(draw->edit, draw->file->text, draw->file->size);
    bool written = text && write_file(below(draw->file->path), text, strlen(text));
    free(text);
    return written;
}

static const char *source_of(const struct mutant_draw *draw)
{
    return below(draw->kernel->files[0]->path);
}

/* ---- proofs ----------------------------------------------------------------------------------------------------------------- */

/* One proof with some of the gates, for one dtype or for all that the source takes (0); the record is a new reference, NULL if there is
 * none. */
static json_t *prove(const struct mutant_trial *trial, const char *word, uint32_t dtype, const char *only)
{
    struct session session = *trial->session;
    struct proof proof;
    char why[1024];
    json_t *record = NULL;
    session.report = (struct report){0};
    session.options.only = NULL;
    if (proof_open(&session, word, &proof) == EXIT_PASS) {
        struct proof_options options = {.only = only, .quiet = true};
        proof.policy.call_seconds = CALL_SECONDS;
        proof.threads = 1;
        proof.seed = trial->seed;
        proof.candidate.dtype = dtype;
        if (!proof_run(&proof, &options, &record, why, sizeof why)) {
            fprintf(stderr, "attest selftest: mutant %lld: %s\n", (long long)trial->draw->number, why);
            record = NULL;
        }
    }
    proof_close(&proof);
    return record;
}

enum pass { PASS_BUILD, PASS_NUMBERS, PASS_MEMORY, PASS_ALL };

/* The gates of a pass that the session asks for, separated by commas. */
static void gates_of_pass(const struct session *session, enum pass pass, char *only, size_t size)
{
    size_t used = 0;
    only[0] = '\0';
    for (int i = 0; i < gate_count; i++) {
        const bool speed = strcmp(gates[i].name, "speed") == 0, memory = strcmp(gates[i].name, "memory") == 0;
        const bool of_pass =
            (pass == PASS_ALL && !speed) || (pass == PASS_NUMBERS && !speed && !memory) || (pass == PASS_MEMORY && memory);
        if ((i == 0 || (of_pass && gate_listed(session->options.only, gates[i].name))) && used < size)
            used += (size_t)snprintf(only + used, size - used, "%s%s", used ? "," : "", gates[i].name);
    }
}

/* The gate that rejected the kernel, or NULL. Gates that could not decide are added to `undecided`. */
static const json_t *rejection(const json_t *record, json_t *undecided)
{
    const json_t *gate, *found = NULL;
    size_t i;
    json_array_foreach(json_object_get(record, "gates"), i, gate)
    {
        if (!found && text_is(gate, "verdict", "FAIL"))
            found = gate;
        if (text_is(gate, "verdict", "INCONCLUSIVE") && undecided)
            json_add(undecided, json_text("%s: %s", text_at(gate, "gate"), text_at(gate, "sentence")));
    }
    return found;
}

static uint32_t dtype_of(const char *word)
{
    return strstr(word, "_f32_") ? ATTEST_F32 : strstr(word, "_bf16_") ? ATTEST_BF16 : strstr(word, "_f16_") ? ATTEST_F16 : 0;
}

/* ---- the questions ----------------------------------------------------------------------------------------------------------- */

static char *compiler(void)
{
    char *named = getenv("ATTEST_CC");
    return named && *named ? named : (char *)(uintptr_t) "gcc";
}

/* The text that the compiler sees, as a digest; "" if it cannot be made. */
static void digest_preprocessed(const char *source, const char *flags, char digest[DIGEST_TEXT])
{
    enum { MOST = 64 };
    char *words = strdup(flags), *rest = NULL, log[4096], *argv[MOST] = {compiler()};
    const char *const fixed[] = {"-E",        "-P", "-std=c11",      "-D_GNU_SOURCE", "-DATTEST_STANDALONE",
                                 "-Iinclude", "-o", "preprocessed.i"};
    int count = 1;
    digest[0] = '\0';
    for (int i = 0; i < COUNT_OF(fixed); i++)
        argv[count++] = (char *)(uintptr_t)fixed[i];
    for (char *word = words ? strtok_r(words, " ", &rest) : NULL; word && count < MOST - 2; word = strtok_r(NULL, " ", &rest))
        argv[count++] = word;
    argv[count++] = (char *)(uintptr_t)source;
    argv[count] = NULL;
    if (build_command(argv, 60, log, sizeof log) == 0)
        digest_of_file("preprocessed.i", digest);
    unlink("preprocessed.i");
    free(words);
}

static void end_as(json_t *result, const char *outcome, const json_t *gate)
{
    json_put(result, "outcome", json_string(outcome));
    json_put(result, "gate", json_string(text_at(gate, "gate")));
    json_put(result, "sentence", json_string(text_at(gate, "sentence")));
}

/* Builds what is in the folder in another way; "" in `digest` if that fails. */
static void build_as(const struct mutant_trial *trial, const char *flags, enum build_kind kind, char digest[DIGEST_TEXT])
{
    char log[BUILD_LOG_SIZE];
    digest[0] = '\0';
    unlink("screened.so");
    if (build_image(source_of(trial->draw), flags, "screened.so", kind, log, sizeof log))
        digest_of_file("screened.so", digest);
}

/* A file of the folder that trials share, for what is known of the unchanged kernel, locked: whoever is first fills it. -1 if that cannot
 * be done. */
static int lock_shared(const struct mutant_trial *trial, const char *what, char *path, size_t size)
{
    char name[256];
    snprintf(name, sizeof name, "%.200s", source_of(trial->draw));
    for (char *at = name; *at; at++)
        *at = *at == '/' ? '_' : *at;
    snprintf(path, size, "%.360s/%s.%s", trial->shared, name, what);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file >= 0 && flock(file, LOCK_EX) == 0)
        return file;
    if (file >= 0)
        close(file);
    return -1;
}

/* The digest of the unchanged kernel's image. Made by the first who needs it, in the folder that
 * trials share. Leaves the unchanged kernel or the mutant in the folder. */
static void digest_original(const struct mutant_trial *trial, const char *flags, enum build_kind kind, char digest[DIGEST_TEXT])
{
    char path[640], what[32];
    snprintf(what, sizeof what, "%d.digest", (int)kind);
    digest[0] = '\0';
    int file = lock_shared(trial, what, path, sizeof path);
    if (file < 0)
        return;
    if (read(file, digest, DIGEST_TEXT - 1) == DIGEST_TEXT - 1) {
        digest[DIGEST_TEXT - 1] = '\0';
    } else if (write_kernel(trial->draw->kernel)) {
        bool shipped = kind == BUILD_SHIPPED;
        json_t *record = !shipped ? NULL : prove(trial, trial->draw->kernel->word, 0, "build");
        if (!shipped)
            build_as(trial, flags, kind, digest);
        else
            snprintf(digest, DIGEST_TEXT, "%s", text_at(json_object_get(record, "candidate"), "image"));
        json_decref(record);
        if (pwrite(file, digest, strlen(digest), 0) < 0)
            digest[0] = '\0';
    }
    close(file);
}

/* Whether the mutant, which is left in screened.so, has the image of the unchanged kernel if both are built so. */
static bool is_same_as(const struct mutant_trial *trial, const char *flags, enum build_kind kind)
{
    char before[DIGEST_TEXT], after[DIGEST_TEXT] = "";
    digest_original(trial, flags, kind, before);
    if (write_mutant(trial->draw))
        build_as(trial, flags, kind, after);
    return *after && strcmp(before, after) == 0;
}

/* Whether the oracle gate, if it is asked for, rejects the kernel as -Og builds it; or whether it is known without the long build that it is equivalent: code
 * that is not optimised at all shows every difference that the compiler is given. */
static bool screen(const struct mutant_trial *trial, const char *flags, json_t *result)
{
    bool decided = false;
    if (is_same_as(trial, flags, BUILD_QUICK)) {
        if ((decided = is_same_as(trial, flags, BUILD_RAW)))
            end_as(result, MUTANT_EQUIVALENT, NULL);
    } else if (access("screened.so", R_OK) == 0 && gate_listed(trial->session->options.only, "oracle")) {
        json_t *record = prove(trial, "screened.so", dtype_of(trial->draw->kernel->word), "build,oracle");
        const json_t *gate = rejection(record, NULL);
        decided = gate && text_is(gate, "gate", "oracle");
        if (decided)
            end_as(result, MUTANT_KILLED, gate);
        json_decref(record);
    }
    unlink("screened.so");
    return decided;
}

/* Builds it as the kernel is built, and runs the gates: for a CPU kernel the one that costs most behind the others, for a CUDA kernel, whose
 * many images cost most, all at once. */
static void prove_mutant(const struct mutant_trial *trial, json_t *result)
{
    const char *word = trial->draw->kernel->word;
    char original[DIGEST_TEXT], only[256];
    json_t *undecided = json_array();
    digest_original(trial, NULL, BUILD_SHIPPED, original);
    const bool written = write_mutant(trial->draw);
    const enum pass last = trial->draw->kernel->cuda ? PASS_ALL : PASS_MEMORY;
    for (enum pass pass = trial->draw->kernel->cuda ? PASS_ALL : PASS_BUILD; pass <= last && !json_object_get(result, "outcome");
         pass++) {
        json_array_clear(undecided);
        gates_of_pass(trial->session, pass, only, sizeof only);
        json_t *record = written ? prove(trial, word, 0, only) : NULL;
        const json_t *gate = rejection(record, undecided);
        const char *image = text_at(json_object_get(record, "candidate"), "image");
        if (!record || !*original)
            end_as(result, MUTANT_LOST, NULL);
        else if (!*image)
            end_as(result, gate ? MUTANT_UNBUILT : MUTANT_LOST, json_array_get(json_object_get(record, "gates"), 0));
        else if (strcmp(image, original) == 0)
            end_as(result, MUTANT_EQUIVALENT, NULL);
        else if (gate)
            end_as(result, MUTANT_KILLED, gate);
        else if (pass == last)
            end_as(result, MUTANT_SURVIVED, NULL);
        json_decref(record);
    }
    json_put(result, "undecided", undecided);
}

/* A proof of the CUDA kernel in the folder for the emulated device. */
static bool open_emulated(const struct mutant_trial *trial, struct session *session, struct proof *proof, char *why,
                          size_t why_size)
{
    *session = *trial->session;
    session->report = (struct report){0};
    if (proof_open(session, trial->draw->kernel->word, proof) != EXIT_PASS)
        return false;
    proof->manifest = calloc(1, sizeof *proof->manifest);
    if (!proof->manifest || !cuda_candidate_manifest(&proof->candidate, proof->manifest, why, why_size)) {
        proof_close(proof);
        return false;
    }
    proof->facts = (struct kernel_facts){.dtypes = proof->manifest->dtypes, .refuses = proof->manifest->refuses};
    proof->policy.call_seconds = CALL_SECONDS;
    proof->threads = 1;
    proof->terse = true;
    proof->seed = trial->seed;
    return true;
}

/* The code of the kernel in the folder for the emulated device, a digest for each dtype and dim; with `before` it ends with the first that
 * differs. NULL if it cannot be made; new reference. */
static json_t *emulated_code(const struct mutant_trial *trial, const json_t *before)
{
    struct session session;
    struct proof proof;
    struct cuda_emulation emulation;
    char why[1024], digest[DIGEST_TEXT];
    if (!open_emulated(trial, &session, &proof, why, sizeof why))
        return NULL;
    json_t *codes = json_array();
    bool good = cuda_emulation_prepare(&proof, &emulation, why, sizeof why) == VERDICT_PASS, same = true;
    emulation.compared = true;
    for (int group = 0; group < emulation.group_count && good && same; group++) {
        good = cuda_emulation_compile(&proof, &emulation, group, why, sizeof why) == VERDICT_PASS;
        if (good)
            cuda_emulation_code(&emulation, group, digest);
        good = good && *digest;
        if (good)
            json_add(codes, json_string(digest));
        same = !before || json_equal(json_array_get(before, (size_t)group), json_array_get(codes, (size_t)group));
    }
    cuda_emulation_free(&emulation);
    proof_close(&proof);
    if (good)
        return codes;
    json_decref(codes);
    return NULL;
}

/* Whether the mutant, which is left in the folder, has the code of the unchanged kernel on the emulated device. */
static bool is_same_emulated(const struct mutant_trial *trial)
{
    char path[640];
    int file = lock_shared(trial, "emulated", path, sizeof path);
    if (file < 0)
        return false;
    json_t *before = json_load_file(path, 0, NULL);
    if (!before && write_kernel(trial->draw->kernel) && (before = emulated_code(trial, NULL)))
        json_dump_file(before, path, 0);
    close(file);
    json_t *after = before && write_mutant(trial->draw) ? emulated_code(trial, before) : NULL;
    bool same = after && json_equal(before, after);
    json_decref(before);
    json_decref(after);
    return same;
}

/* A CUDA kernel without a GPU: the emulation gate alone, which compiles the kernel for the emulated device. What cannot be emulated, or
 * does not compile, is drawn again. */
static void emulate_mutant(const struct mutant_trial *trial, json_t *result)
{
    struct session session;
    struct gate_result found = {.verdict = VERDICT_INCONCLUSIVE, .details = json_object(), .artefacts = json_object()};
    const struct gate *gate = gate_named("emulation");
    struct proof proof;
    gate_say(&found, VERDICT_INCONCLUSIVE, "CUDA kernels need a GPU here (--device cuda): there is no emulation gate");
    if (is_same_emulated(trial)) {
        end_as(result, MUTANT_EQUIVALENT, NULL);
    } else {
        bool opened = write_mutant(trial->draw) && open_emulated(trial, &session, &proof, found.sentence, sizeof found.sentence);
        if (gate && opened)
            gate->run(&proof, &found);
        if (opened)
            proof_close(&proof);
        end_as(result,
               found.verdict == VERDICT_FAIL ? MUTANT_KILLED
               : found.verdict == VERDICT_PASS ||
                       (found.verdict == VERDICT_INCONCLUSIVE && json_object_get(found.details, "problems"))
                   ? MUTANT_SURVIVED
               : gate ? MUTANT_UNBUILT
                      : MUTANT_LOST,
               NULL);
        json_put(result, "gate", json_string(found.verdict == VERDICT_FAIL ? "emulation" : ""));
        json_put(result, "sentence", json_string(found.sentence));
    }
    json_decref(found.details);
    json_decref(found.artefacts);
}

static double processor_seconds(void)
{
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    return (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec + children.ru_utime.tv_sec + children.ru_stime.tv_sec) +
           1e-6 * (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec + children.ru_utime.tv_usec + children.ru_stime.tv_usec);
}

/* In the scratch folder. */
static void ask(const struct mutant_trial *trial, json_t *result)
{
    const struct mutant_draw *draw = trial->draw;
    char before[DIGEST_TEXT], after[DIGEST_TEXT];
    bool good = write_kernel(draw->kernel);
    char *flags = good && !draw->kernel->cuda ? candidate_flags(source_of(draw)) : NULL;
    if (flags) {
        digest_preprocessed(source_of(draw), flags, before);
        good = write_mutant(draw);
        digest_preprocessed(source_of(draw), flags, after);
        if (good && *before && strcmp(before, after) == 0) {
            end_as(result, MUTANT_ABSENT, NULL);
        } else if (good && screen(trial, flags, result)) {
            json_put(result, "screened", json_true());
            if (text_is(result, "outcome", MUTANT_KILLED) && draw->number % AUDIT == 0) {
                json_object_del(result, "outcome");
                json_put(result, "audited", json_true());
            }
        }
    }
    if (good && draw->kernel->cuda && !trial->session->options.device)
        emulate_mutant(trial, result);
    else if (good && !json_object_get(result, "outcome"))
        prove_mutant(trial, result);
    if (!json_object_get(result, "outcome"))
        end_as(result, MUTANT_LOST, NULL);
    free(flags);
}

json_t *mutant_try(const struct mutant_trial *trial)
{
    const char *base = getenv("TMPDIR");
    char folder[512];
    json_t *result = json_object();
    omp_set_num_threads(1);
    snprintf(folder, sizeof folder, "%.400s/attest-mutant-XXXXXX", base && *base ? base : "/tmp");
    if (mkdtemp(folder) && chdir(folder) == 0)
        ask(trial, result);
    else
        end_as(result, MUTANT_LOST, NULL);
    json_put(result, "seconds", json_real(processor_seconds()));
    if (chdir("/") == 0)
        folder_remove(folder);
    return result;
}
