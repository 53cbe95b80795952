/*
 * cmd_evolve.c - attest evolve: what is asked for, the search that it is (a new one, or one that was interrupted), what became of
 * searches (--status), and their results for other tools (--export). The search itself is in evolve/.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "evidence/champions.h"
#include "base/digest.h"
#include "evidence/member.h"
#include "evidence/objects.h"
#include "evidence/statement.h"
#include "evidence/store.h"
#include "evolve/search_ledger.h"
#include "evolve/search.h"
#include "data/statistics.h"

/* ---- what is asked for ------------------------------------------------------------------------------------------------------ */

/* Operands are problems, or files with problems. */
static enum exit_code load_problems(struct session *session)
{
    struct options *options = &session->options;
    enum exit_code code = EXIT_PASS;
    int count = options->word_count;
    char **words = options->words;
    const char *suite = options->suite; /* of the correctness gate, and not what is searched for */
    options->suite = NULL;
    for (int i = 0; i < count && code == EXIT_PASS; i++) {
        if (strncmp(words[i], "fwd:", 4) != 0 && access(words[i], R_OK) == 0) {
            code = suite_load(session, &session->problems, words[i]);
            continue;
        }
        options->words = words + i;
        options->word_count = 1;
        code = problems_load(session, false);
    }
    options->words = words;
    options->word_count = count;
    options->suite = suite;
    if (code == EXIT_PASS && session->problems.count == 0)
        code = give_up(session, EXIT_USAGE, "such as: attest evolve fwd:f32:b2:h4:s512:d64 --kernel my_kernel.c --budget 300",
                       "a problem is missing, or a file with problems");
    return code;
}

/* The dtype of all problems; 0 if they differ. */
static uint32_t one_dtype(const struct problem_list *problems)
{
    uint32_t dtype = problems->entries[0].problem.dtype;
    for (int i = 1; i < problems->count; i++)
        if (problems->entries[i].problem.dtype != dtype)
            return 0;
    return dtype;
}

/* Who reigns on this machine for the problems, to be freed; NULL if nobody does, or if it depends on the problem. */
static char *reigning(struct session *session)
{
    static const char *const classes[] = {[ATTEST_F32] = "fwd:f32", [ATTEST_F16] = "fwd:f16", [ATTEST_BF16] = "fwd:bf16"};
    uint32_t dtype = one_dtype(&session->problems);
    char why[512], device[64], *name = NULL;
    json_t *statements = dtype ? statements_load(session->options.evidence, why, sizeof why) : NULL;
    if (statements) {
        device_class(session->context, NULL, device, sizeof device);
        const char *champion = champion_of(statements, device, classes[dtype]);
        name = champion ? strdup(champion) : NULL;
    }
    json_decref(statements);
    return name;
}

static enum exit_code open_start(struct session *session, struct search *search)
{
    char *named = session->options.kernel ? strdup(session->options.kernel) : reigning(session), why[512];
    size_t size;
    if (!named)
        return give_up(session, EXIT_USAGE, "name the kernel to begin with: --kernel NAME, or --kernel FILE.c",
                       one_dtype(&session->problems)
                           ? "no champion reigns here for these problems"
                           : "the problems are of several types, and no one champion reigns for all of them");
    enum exit_code code = candidate_open(session, named, &search->start);
    if (code == EXIT_PASS && !search->start.source)
        code = give_up(session, EXIT_USAGE, "give its source: a .c or .cu file, or a kernel of the library",
                       "%s is a built image, and a search changes sources", named);
    if (code == EXIT_PASS && !(search->start_text = file_read(search->start.source, &size)))
        code = give_up(session, EXIT_USAGE, NULL, "%s cannot be read: %s", search->start.source, strerror(errno));
    if (code == EXIT_PASS && !space_read(search->start_text, search->start.source, search->start.cuda, &session->problems,
                                         &search->space, why, sizeof why))
        code = give_up(session, EXIT_USAGE, "docs/evolve.md says how a source declares its space", "%s", why);
    free(named);
    return code;
}

static enum exit_code choose_proposer(struct session *session, struct search *search)
{
    struct options *options = &session->options;
    const char *wanted = options->proposer ? options->proposer : "model", *telling = options->strategy ? options->strategy : "full";
    struct simulated_clock clock;
    char why[256];
    search->command = true;
    for (int i = 0; i < STRATEGY_COUNT; i++)
        if (strcmp(wanted, strategy_names[i]) == 0) {
            search->command = false;
            search->strategy = (enum strategy)i;
        }
    search->telling = TELL_COUNT;
    for (int i = 0; i < TELL_COUNT; i++)
        if (strcmp(telling, telling_names[i]) == 0)
            search->telling = (enum telling)i;
    if (search->telling == TELL_COUNT)
        return give_up(session, EXIT_USAGE, "--strategy is free, insight or full", "there is no strategy '%s'", telling);
    if (search->command && !strpbrk(wanted, " /.")) {
        const char *near = nearest_word(wanted, strategy_names, STRATEGY_COUNT);
        char hint[160];
        snprintf(hint, sizeof hint, "%s%s%s; a program has a path: ./%.40s",
                 near ? "did you mean --proposer " : "the built-in ones are ",
                 near ? near : "grid, random, local, evolution and model", near ? "?" : "", wanted);
        return give_up(session, EXIT_USAGE, hint, "there is no proposer '%s'", wanted);
    }
    if (!search->command && search->space.fitting < 2)
        return give_up(session, EXIT_USAGE,
                       search->start.cuda ? "add a line such as attest-cuda: space = tile_q 64 128; tile_kv 32 64"
                                          : "add lines such as attest-space: BLOCK_KEYS 32 64 128 to its first comment, or give "
                                            "--proposer 'COMMAND'",
                       "%s declares no space to search", search->start.source);
    if (options->clock && !simulated_clock_parse(options->clock, &clock, why, sizeof why))
        return give_up(session, EXIT_USAGE, "such as --simulate-clock a=0.99,b=1", "--simulate-clock: %s", why);
    options->proposer = wanted;
    return EXIT_PASS;
}

/* What the search is about, for the ledger. */
static json_t *about_json(struct session *session, const struct search *search)
{
    const struct options *options = &session->options;
    json_t *problems = json_array(), *fits = json_array();
    char digest[DIGEST_TEXT], time_text[32], device[64];
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(time_text, sizeof time_text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    digest_of_bytes(search->start_text, strlen(search->start_text), digest);
    device_class(session->context, NULL, device, sizeof device);
    for (int i = 0; i < session->problems.count; i++)
        json_add(problems, json_string(session->problems.entries[i].text));
    for (int i = 0; i < search->space.rule_count; i++)
        json_add(fits, json_string(search->space.rules[i]));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:s, s:s, s:o, s:o, s:I, s:I, s:i, s:I, s:I, s:f, s:s, s:s, s:s}", "kernel",
                     search->start.word, "name", search->start.name, "source", search->start.source, "source_digest", digest,
                     "backend", search->start.cuda ? "cuda" : "cpu", "problems", problems, "proposer", options->proposer,
                     "strategy", telling_names[search->telling], "space", space_json(&search->space), "fits", fits, "points",
                     (json_int_t)search->space.size, "fitting", (json_int_t)search->space.fitting, "threads",
                     attest_context_threads(session->context), "generations", (json_int_t)options->generations, "population",
                     (json_int_t)options->population, "budget", options->budget, "started", time_text, "device",
                     search->start.cuda ? options->device ? options->device : "cuda" : device, "suite",
                     options->suite ? options->suite : "");
}

/* Searches that were asked for with the same words are one. What may be different is how long they go on. */
static void key_of(const struct session *session, const json_t *about, char key[DIGEST_TEXT])
{
    static const char *const keys[] = {"kernel",  "source_digest", "problems", "proposer", "strategy",
                                       "threads", "population",    "suite",    NULL};
    json_t *parts = json_pack("{s:I, s:s}", "seed", (json_int_t)session->options.proof_seed, "clock",
                              session->options.clock ? session->options.clock : "");
    for (int i = 0; keys[i]; i++)
        json_put(parts, keys[i], json_incref(json_object_get(about, keys[i])));
    digest_of_json(parts, key);
    json_decref(parts);
}

/* ---- the ledger --------------------------------------------------------------------------------------------------------------- */

static bool is_alive(const json_t *entry)
{
    long long process = json_integer_value(json_object_get(entry, "process"));
    char path[64], words[4096];
    size_t size = 0;
    snprintf(path, sizeof path, "/proc/%lld/cmdline", process);
    FILE *file = process > 0 && process != getpid() ? fopen(path, "r") : NULL;
    if (file) {
        size = fread(words, 1, sizeof words, file);
        fclose(file);
    }
    return size > 0 && memmem(words, size, "evolve", 6) != NULL; /* a number is given again to other processes */
}

/* A search that was interrupted goes on where it was. */
static enum exit_code resume(struct session *session, struct search *search)
{
    json_t *found = ledger_searches(search->store, search->id), *entry = json_array_get(found, 0);
    enum exit_code code = EXIT_PASS;
    if (!entry) {
        code = give_up(session, EXIT_LACKING, NULL, "search %lld cannot be read", (long long)search->id);
    } else if (is_alive(entry)) {
        code =
            give_up(session, EXIT_USAGE, "attest evolve --status shows how far it is", "search %lld is being made by process %lld",
                    (long long)search->id, (long long)json_integer_value(json_object_get(entry, "process")));
    } else {
        json_decref(search->trials);
        search->trials = json_incref(json_object_get(entry, "trials"));
        search->used_before = json_number_value(json_object_get(entry, "used"));
        search->seed = (uint64_t)json_integer_value(json_object_get(json_object_get(entry, "start"), "seed"));
        if (*text_at(entry, "scratch"))
            folder_remove(text_at(entry, "scratch")); /* of a process that was killed */
        search_tell(search, "search %lld goes on: %d candidates so far, %.0f s used\n", (long long)search->id,
                    (int)json_array_size(search->trials) - 1, search->used_before);
    }
    json_decref(found);
    return code;
}

static enum exit_code enter(struct session *session, struct search *search)
{
    char key[DIGEST_TEXT];
    search->about = about_json(session, search);
    if (!search->about)
        return give_up(session, EXIT_LACKING, NULL, "out of memory");
    key_of(session, search->about, key);
    search->id = ledger_unfinished(search->store, key);
    if (search->id > 0)
        return resume(session, search);
    search->seed = (uint64_t)session->options.proof_seed;
    if (!search->seed && getrandom(&search->seed, sizeof search->seed, 0) == (ssize_t)sizeof search->seed)
        search->seed = (search->seed >> 12) + 1;
    json_put(search->about, "seed", json_integer((json_int_t)search->seed));
    if (search->id == 0)
        search->id = ledger_begin(search->store, key, search->about);
    if (search->id < 0)
        return give_up(session, EXIT_LACKING, NULL, "the run database cannot be written: %s", store_error(search->store));
    return EXIT_PASS;
}

static void print_head(const struct search *search)
{
    const struct options *options = &search->session->options;
    search_tell(search, "search %lld: %s on %d problem%s, proposer %s", (long long)search->id, search->start.word,
                search->session->problems.count, search->session->problems.count == 1 ? "" : "s", options->proposer);
    if (!search->command)
        search_tell(search, ", %lld points of which %lld fit", (long long)search->space.size, (long long)search->space.fitting);
    search_tell(search, ", %d generations of %d", search->generations, search->population);
    if (search->budget > 0)
        search_tell(search, ", %.0f s", search->budget);
    if (options->clock)
        search_tell(search, "\nthe clock is simulated (--simulate-clock): what follows says nothing about speed");
    search_tell(search, "\n%5s %4s  %-10s %-12s %9s  %s\n", "gen", "no", "origin", "state", "screened", "changed");
}

/* ---- --status and --export ------------------------------------------------------------------------------------------------- */

static const char *state_of(const json_t *entry)
{
    const json_t *result = json_object_get(entry, "result");
    return json_is_object(result) ? text_at(result, "verdict") : is_alive(entry) ? "RUNNING" : "INTERRUPTED";
}

static json_t *status_row(const json_t *entry)
{
    const json_t *about = json_object_get(entry, "start"), *result = json_object_get(entry, "result"),
                 *trials = json_object_get(entry, "trials"), *problems = json_object_get(about, "problems");
    const char *sentence = text_at(result, "sentence");
    double budget = json_number_value(json_object_get(about, "budget"));
    int count = (int)json_array_size(trials);
    json_t *row =
        json_pack("{s:O, s:s, s:s, s:s, s:i, s:o, s:o}", "search", json_object_get(entry, "search"), "state", state_of(entry),
                  "kernel", text_at(about, "kernel"), "proposer", text_at(about, "proposer"), "candidates",
                  count > 0 ? count - 1 : 0, "seconds", json_text("%.0f", json_number_value(json_object_get(entry, "used"))),
                  "budget", budget > 0 ? json_text("%.0f", budget) : json_string("-"));
    json_t *notes = json_array();
    size_t i;
    json_t *problem, *last = count > 1 ? json_array_get(trials, (size_t)count - 1) : NULL;
    json_array_foreach(problems, i, problem) if (i < 4) json_add(notes, json_incref(problem));
    if (*sentence)
        json_add(notes, json_string(sentence));
    else if (last)
        json_add(notes, json_text("candidate %d: %s", count - 1, text_at(last, "state")));
    json_put(row, "notes", notes);
    return row;
}

static enum exit_code write_export(struct session *session, struct store *store, int64_t search)
{
    json_t *searches = ledger_searches(store, search), *made = search_export(json_array_get(searches, 0));
    char *text = made ? json_dumps(made, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;
    const char *path = session->options.export;
    enum exit_code code = EXIT_PASS;
    if (json_array_size(searches) == 0)
        code =
            give_up(session, EXIT_LACKING, "attest evolve PROBLEM makes one", "there is no search in %s", session->options.state);
    else if (!text || !file_replace(path, text, strlen(text)))
        code = give_up(session, EXIT_USAGE, "choose another file with --export FILE", "%s cannot be written: %s", path,
                       strerror(errno));
    free(text);
    json_decref(made);
    json_decref(searches);
    return code;
}

static enum exit_code show_status(struct session *session)
{
    static const struct column columns[] = {
        {"search", "search", 6},          {"state", "state", -14},   {"kernel", "kernel", -20}, {"proposer", "proposer", -10},
        {"candidates", "candidates", 10}, {"seconds", "seconds", 7}, {"budget", "budget", 6}};
    char why[1024] = "";
    struct store *store = NULL;
    if (!store_exists(session->options.state))
        return give_up(session, EXIT_LACKING, "attest evolve PROBLEM makes one; --state DIR names another folder",
                       "there is no search in %s", session->options.state);
    if (!(store = store_open(session->options.state, why, sizeof why)))
        return give_up(session, EXIT_LACKING, NULL, "the run database: %s", why);
    json_t *searches = ledger_searches(store, 0), *entry;
    size_t i;
    enum exit_code code = searches ? EXIT_PASS : give_up(session, EXIT_LACKING, NULL, "the run database cannot be read");
    report_table(&session->report, "searches", columns, COUNT_OF(columns), NULL);
    json_array_foreach(searches, i, entry) report_row(&session->report, status_row(entry));
    if (code == EXIT_PASS && session->options.export && json_array_size(searches))
        code = write_export(session, store, json_integer_value(json_object_get(json_array_get(searches, 0), "search")));
    json_decref(searches);
    store_close(store);
    return code;
}

/* ---- the command --------------------------------------------------------------------------------------------------------------- */

static void search_close(struct search *search)
{
    space_free(&search->space);
    if (search->start.word)
        candidate_close(&search->start);
    free(search->start_text);
    free(search->start_image);
    free(search->scratch);
    free(search->timed);
    json_decref(search->about);
    json_decref(search->trials);
    store_close(search->store);
}

enum exit_code cmd_evolve(struct session *session)
{
    struct options *options = &session->options;
    struct search search = {.session = session, .trials = json_array(), .text = !session->report.json, .doing = "starting"};
    char why[1024] = "";
    if (options->status) {
        json_decref(search.trials);
        return show_status(session);
    }
    search.began = search.beat = seconds_now();
    search.budget = options->budget;
    search.seeded = options->proof_seed != 0;
    search.generations = (int)options->generations;
    search.population = (int)options->population;
    enum exit_code code = load_problems(session);
    if (code == EXIT_PASS)
        code = open_start(session, &search);
    if (code == EXIT_PASS)
        code = choose_proposer(session, &search);
    if (code == EXIT_PASS && !(search.store = store_open(options->state, why, sizeof why)))
        code = give_up(session, EXIT_LACKING, "choose another folder with --state DIR", "the run database: %s", why);
    if (code == EXIT_PASS)
        code = enter(session, &search);
    if (code == EXIT_PASS) {
        print_head(&search);
        code = search_run(&search);
    }
    if (options->export && search.id > 0 && search.store) {
        enum exit_code written = write_export(session, search.store, search.id);
        code = code == EXIT_PASS ? written : code;
    }
    search_close(&search);
    return code;
}
