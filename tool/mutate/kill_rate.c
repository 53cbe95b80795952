/*
 * kill_rate.c - see kill_rate.h. Draws mutants (mutant_draw.c), tries each in a process of its own (mutant_trial.c), some at once, and
 * prints what became of them: a row for each survivor with its diff, then a row for each class of operators, then the rate.
 *
 * A mutant is a function of the seed and its number. Numbers whose edit does not compile, or is not in the text of its kernel, are
 * passed over, so that N mutants may take more than N numbers; mutants are counted in the order of their numbers, whatever order the
 * processes end in. With --out each result is appended to a file as a line of JSON as soon as it is there; the same command goes on
 * where it was interrupted, and files of several machines can be put together.
 */
#include "kill_rate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/subprocess.h"
#include "base/digest.h"
#include "evidence/member.h"
#include "evidence/objects.h"
#include "explained.h"
#include "mutant_trial.h"
#include "gates/gate.h"
#include "base/random.h"
#include "text_diff.h"

enum { MOST_AT_ONCE = 64, TRIAL_SECONDS = 1800, STREAM_PROOF = 7101 };

struct measurement {
    struct session *session;
    struct mutant_field field;
    char shared[512];
    json_t *results;   /* by number, as text: what is known, from the file or from this run */
    json_t *explained; /* survivors that somebody has looked at: explained.h */
    FILE *file;
    int64_t wanted; /* mutants that compile */
};

struct running {
    struct subprocess trial;
    const struct measurement *measurement;
    struct mutant_draw draw;
};

/* ---- the file of results ------------------------------------------------------------------------------------------------------ */

static const char *number_text(int64_t number)
{
    static char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    return text;
}

/* What a file of results has to agree in: the draws depend on it. */
static json_t *heading(const struct measurement *measurement)
{
    const struct options *options = &measurement->session->options;
    char digest[DIGEST_TEXT];
    json_t *sources = json_object();
    for (int i = 0; i < measurement->field.file_count; i++) {
        const struct mutant_file *file = measurement->field.files[i];
        digest_of_bytes(file->text, file->size, digest);
        json_put(sources, file->path, json_string(digest));
    }
    digest_of_json(sources, digest);
    json_decref(sources);
    json_t *head = json_pack("{s:I, s:s, s:s}", "seed", (json_int_t)measurement->field.seed, "of", options->of ? options->of : "*",
                             "sources", digest);
    if (options->only)
        json_put(head, "gates", json_string(options->only));
    return head;
}

static enum exit_code read_results(struct measurement *measurement, const char *path)
{
    struct session *session = measurement->session;
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    enum exit_code code = EXIT_PASS;
    json_t *head = heading(measurement);
    for (int n = 1; file && code == EXIT_PASS && getline(&line, &size, file) >= 0; n++) {
        json_t *row = json_loads(line, 0, NULL), *measured = json_object_get(row, "measured");
        if (measured && !json_equal(measured, head))
            code = give_up(session, EXIT_USAGE, "name another file, or the same seed, kernels and gates",
                           "%s:%d: these results are of another seed, other kernels or another version of their sources", path, n);
        else if (json_is_integer(json_object_get(row, "number")))
            json_object_set(measurement->results, number_text(json_integer_value(json_object_get(row, "number"))), row);
        json_decref(row); /* a line that was cut off by an interruption is passed over */
    }
    free(line);
    if (file)
        fclose(file);
    if (code == EXIT_PASS && !(measurement->file = fopen(path, "a")))
        code = give_up(session, EXIT_USAGE, NULL, "%s cannot be written: %s", path, strerror(errno));
    if (code == EXIT_PASS && json_object_size(measurement->results) == 0) {
        char *text = json_dumps(head, JSON_COMPACT | JSON_SORT_KEYS);
        fprintf(measurement->file, "{\"measured\":%s}\n", text ? text : "{}");
        free(text);
    }
    json_decref(head);
    return code;
}

static void keep_result(struct measurement *measurement, json_t *row)
{
    json_object_set(measurement->results, number_text(json_integer_value(json_object_get(row, "number"))), row);
    if (measurement->file) {
        json_dumpf(row, measurement->file, JSON_COMPACT);
        fputc('\n', measurement->file);
        fflush(measurement->file);
    }
}

/* ---- the trials --------------------------------------------------------------------------------------------------------------- */

static json_t *describe(const struct mutant_draw *draw)
{
    const struct mutation_operator *made_by = &mutation_operators[draw->edit->operator_index];
    char *diff = text_diff(draw->file->path, draw->file->text, draw->file->size, draw->edit);
    json_t *row = json_pack("{s:I, s:s, s:s, s:s, s:s, s:i, s:s}", "number", (json_int_t)draw->number, "kernel", draw->kernel->word,
                            "class", made_by->class, "operator", made_by->name, "file", draw->file->path, "line",
                            text_line(draw->file->text, draw->edit->begin), "diff", diff ? diff : "");
    free(diff);
    return row;
}

static json_t *try_draw(void *matter)
{
    const struct running *running = matter;
    const struct measurement *measurement = running->measurement;
    struct mutant_trial trial = {
        .session = measurement->session,
        .draw = &running->draw,
        .shared = measurement->shared,
        .seed = 1 + (random_bits(measurement->field.seed, STREAM_PROOF, (uint64_t)running->draw.number) >> 12)};
    return mutant_try(&trial);
}

static void collect(struct measurement *measurement, struct running *running, int status)
{
    json_t *row = describe(&running->draw), *result = subprocess_answer(&running->trial);
    char end[64];
    subprocess_ending(status, end, sizeof end);
    if (result)
        json_object_update(row, result);
    else
        json_object_update_new(row, json_pack("{s:s, s:s, s:o, s:f}", "outcome", MUTANT_LOST, "gate", "", "sentence",
                                              json_text("the proof itself %s", end), "seconds", 0.0));
    keep_result(measurement, row);
    json_decref(result);
    json_decref(row);
}

static bool counts(const json_t *row)
{
    return row && !text_is(row, "outcome", MUTANT_ABSENT) && !text_is(row, "outcome", MUTANT_UNBUILT);
}

/* How many numbers up to `number` are mutants that count. */
static int64_t counted(const struct measurement *measurement, int64_t number)
{
    int64_t count = 0;
    for (int64_t n = 1; n <= number; n++)
        count += counts(json_object_get(measurement->results, number_text(n)));
    return count;
}

static int processes(const struct options *options)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t most = options->jobs ? options->jobs : processors;
    return most < 1 ? 1 : most > MOST_AT_ONCE ? MOST_AT_ONCE : (int)most;
}

/* Runs trials until there are as many mutants as are wanted. Returns the number of the last draw. */
static int64_t run_all(struct measurement *measurement)
{
    const struct options *options = &measurement->session->options;
    struct running running[MOST_AT_ONCE] = {0};
    struct subprocess *trials[MOST_AT_ONCE];
    struct mutant_draw draw = {0};
    int most = processes(options), now = 0;
    bool more = true;
    for (int i = 0; i < most; i++)
        trials[i] = &running[i].trial;
    for (;;) {
        for (int i = 0; i < most && more && counted(measurement, draw.number) + now < measurement->wanted; i++) {
            if (trials[i]->process)
                continue;
            if (!(more = mutant_next(&measurement->field, &draw)))
                break;
            bool known = json_object_get(measurement->results, number_text(draw.number)) != NULL;
            bool asked = !options->only_mutant || draw.number == options->only_mutant;
            more = !options->only_mutant || draw.number < options->only_mutant;
            running[i] = (struct running){.measurement = measurement, .draw = draw};
            if (!known && asked && subprocess_begin(trials[i], try_draw, &running[i], TRIAL_SECONDS))
                now++;
            else
                i--; /* the place is still free */
        }
        if (now == 0)
            return draw.number;
        progress("%lld of %lld mutants ...", (long long)counted(measurement, draw.number), (long long)measurement->wanted);
        int status = 0;
        const int ended = subprocess_await_one(trials, most, &status);
        if (ended >= 0) {
            collect(measurement, &running[ended], status);
            now--;
        }
    }
}

/* ---- what they came to ---------------------------------------------------------------------------------------------------------- */

struct tally {
    int killed, equivalent, survived, lost, by_gate[16];
    int explained[3], unexplained; /* of the survivors */
};
static const char *const explanations[] = {"equivalent", "within-the-bound", "gap"};

/* The class that somebody has put a survivor in; "" if nobody has. */
static const char *explanation(const struct measurement *measurement, const json_t *row)
{
    char key[EXPLAINED_KEY];
    explained_key(text_at(row, "diff"), key);
    return text_at(measurement->explained, key);
}

static void tally_add(const struct measurement *measurement, struct tally *tally, const json_t *row)
{
    if (text_is(row, "outcome", MUTANT_SURVIVED)) {
        const char *class = explanation(measurement, row);
        tally->unexplained += !*class;
        for (int i = 0; i < COUNT_OF(explanations); i++)
            tally->explained[i] += strcmp(class, explanations[i]) == 0;
    }
    tally->killed += text_is(row, "outcome", MUTANT_KILLED);
    tally->equivalent += text_is(row, "outcome", MUTANT_EQUIVALENT);
    tally->survived += text_is(row, "outcome", MUTANT_SURVIVED);
    tally->lost += text_is(row, "outcome", MUTANT_LOST);
    for (int i = 0; i < gate_count && i < COUNT_OF(tally->by_gate); i++)
        tally->by_gate[i] += text_is(row, "outcome", MUTANT_KILLED) && text_is(row, "gate", gates[i].name);
}

void kill_rate_interval(int hits, int count, double *low, double *high)
{
    double z = 1.959964, n = count, p = count ? hits / n : 0, middle = p + z * z / (2 * n);
    double half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)), whole = 1 + z * z / n;
    *low = count ? (middle - half) / whole : 0;
    *high = count ? (middle + half) / whole : 1;
}

static json_t *tally_row(const char *class, const struct tally *tally)
{
    int judged = tally->killed + tally->survived;
    json_t *row = json_pack("{s:s, s:i, s:i, s:i, s:i}", "class", class, "mutants", judged + tally->equivalent + tally->lost,
                            "killed", tally->killed, "equivalent", tally->equivalent, "survived", tally->survived);
    for (int i = 0; i < gate_count && i < COUNT_OF(tally->by_gate); i++)
        if (strcmp(gates[i].name, "speed") != 0)
            json_put(row, gates[i].name, json_integer(tally->by_gate[i]));
    json_put(row, "rate", judged ? json_text("%.1f %%", 100.0 * tally->killed / judged) : json_string("-"));
    return row;
}

static void print_classes(const struct measurement *measurement, int64_t last, struct tally *all)
{
    static struct column columns[24] = {{"class", "class", -10}, {"mutants", "mutants", 7}};
    struct report *report = &measurement->session->report;
    int count = 2;
    for (int i = 0; i < gate_count && count < COUNT_OF(columns) - 4; i++)
        if (strcmp(gates[i].name, "speed") != 0)
            columns[count++] = (struct column){gates[i].name, gates[i].name, 6};
    columns[count++] = (struct column){"killed", "killed", 6};
    columns[count++] = (struct column){"equivalent", "equivalent", 10};
    columns[count++] = (struct column){"survived", "survived", 8};
    columns[count++] = (struct column){"rate", "rate", 8};
    report_table(report, "classes", columns, count, NULL);
    const char *class;
    for (int c = 0; (class = mutation_class(c)); c++) {
        struct tally tally = {0};
        for (int64_t n = 1; n <= last; n++) {
            const json_t *row = json_object_get(measurement->results, number_text(n));
            if (counts(row) && text_is(row, "class", class))
                tally_add(measurement, &tally, row);
        }
        if (tally.killed + tally.equivalent + tally.survived + tally.lost > 0)
            report_row(report, tally_row(class, &tally));
    }
    report_row(report, tally_row("all", all));
}

/* The lines of a text as strings. */
static void add_lines(json_t *notes, const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        json_add(notes, json_stringn(text, length));
        text += length + (text[length] == '\n');
    }
}

static void print_survivors(const struct measurement *measurement, int64_t last)
{
    static const struct column columns[] = {
        {"number", "mutant", 6},   {"outcome", "outcome", -9},      {"gate", "gate", -11}, {"operator", "operator", -21},
        {"kernel", "kernel", -22}, {"explained", "explained", -16}, {"key", "key", -12},   {"place", "place", -30}};
    const struct options *options = &measurement->session->options;
    struct report *report = &measurement->session->report;
    report_table(report, "survived", columns, COUNT_OF(columns), NULL);
    for (int64_t n = 1; n <= last; n++) {
        json_t *row = json_object_get(measurement->results, number_text(n));
        bool shown = options->only_mutant ? n == options->only_mutant
                                          : text_is(row, "outcome", MUTANT_SURVIVED) || text_is(row, "outcome", MUTANT_LOST);
        if (!row || !shown)
            continue;
        json_t *copy = json_copy(row), *notes = json_array(), *why;
        size_t i;
        char key[EXPLAINED_KEY];
        explained_key(text_at(row, "diff"), key);
        json_put(copy, "key", json_string(key));
        json_put(copy, "explained", json_string(explanation(measurement, row)));
        json_put(copy, "place", json_text("%s:%d", text_at(row, "file"), (int)json_integer_value(json_object_get(row, "line"))));
        if (*text_at(row, "sentence"))
            json_add(notes, json_text("%s", text_at(row, "sentence")));
        json_array_foreach(json_object_get(row, "undecided"), i, why)
            json_add(notes, json_text("undecided: %s", json_string_value(why)));
        add_lines(notes, text_at(row, "diff"));
        json_add(notes, json_text("reproduce: attest selftest --generate %lld --seed %llu%s%s --only-mutant %lld",
                                  (long long)measurement->wanted, (unsigned long long)measurement->field.seed,
                                  options->of ? " --of " : "", options->of ? options->of : "", (long long)n));
        json_put(copy, "notes", notes);
        report_row(report, copy);
    }
}

/* The number of the last draw that belongs to the mutants wanted. */
static int64_t last_wanted(const struct measurement *measurement, int64_t last)
{
    int64_t count = 0;
    for (int64_t n = 1; n <= last; n++)
        if ((count += counts(json_object_get(measurement->results, number_text(n)))) == measurement->wanted)
            return n;
    return last;
}

static enum exit_code conclude(const struct measurement *measurement, int64_t last)
{
    const struct options *options = &measurement->session->options;
    struct report *report = &measurement->session->report;
    struct tally all = {0};
    int passed_over = 0, audited = 0, disagreed = 0;
    double seconds = 0, low, high;
    for (int64_t n = 1; n <= last; n++) {
        const json_t *row = json_object_get(measurement->results, number_text(n));
        passed_over += row && !counts(row);
        seconds += json_number_value(json_object_get(row, "seconds"));
        audited += json_is_true(json_object_get(row, "audited"));
        disagreed += json_is_true(json_object_get(row, "audited")) && !text_is(row, "outcome", MUTANT_KILLED);
        if (counts(row))
            tally_add(measurement, &all, row);
    }
    print_survivors(measurement, last);
    print_classes(measurement, last, &all);
    int judged = all.killed + all.survived, mutants = judged + all.equivalent + all.lost;
    double rate = judged ? 100.0 * all.killed / judged : 0;
    kill_rate_interval(all.killed, judged, &low, &high);
    report_put(report, "seed", json_integer((json_int_t)measurement->field.seed));
    report_put(report, "mutants", json_integer(mutants));
    report_put(report, "passed_over",
               json_text("%d that do not compile without warnings, or are not in the text of their kernel", passed_over));
    report_put(report, "equivalent", json_text("%d with the image of the unchanged kernel", all.equivalent));
    report_put(report, "screening",
               json_text("%d kills with -Og were proven again without, %d of them otherwise", audited, disagreed));
    report_put(report, "processor_seconds", json_text("%.0f, %.1f for each mutant", seconds, mutants ? seconds / mutants : 0));
    report_put(report, "killed",
               json_text("%d of %d with another image: %.1f %%, interval %.1f to %.1f %%", all.killed, judged, rate, 100 * low,
                         100 * high));
    report_put(report, "survivors",
               json_text("%d: %d explained as equivalent, %d within the bound, %d gaps, %d not explained (docs/survivors.md)",
                         all.survived, all.explained[0], all.explained[1], all.explained[2], all.unexplained));
    judged -= all.explained[0];
    rate = judged ? 100.0 * all.killed / judged : 0;
    kill_rate_interval(all.killed, judged, &low, &high);
    report_put(report, "kill_rate",
               json_text("%d of %d that are not equivalent: %.1f %%, interval %.1f to %.1f %%", all.killed, judged, rate, 100 * low,
                         100 * high));
    if (all.lost)
        report_put(report, "lost", json_text("%d proofs did not end", all.lost));
    bool enough = all.lost == 0 && mutants >= (options->only_mutant ? 1 : measurement->wanted) && judged > 0;
    bool good = rate >= (double)options->least;
    report_put(report, "verdict", json_string(!good ? "FAIL" : enough ? "PASS" : "INCONCLUSIVE"));
    return judged && !good ? EXIT_FAILED : enough ? EXIT_PASS : EXIT_LACKING;
}

enum exit_code kill_rate_measure(struct session *session)
{
    struct measurement measurement = {.session = session, .results = json_object(), .wanted = session->options.generate};
    const char *base = getenv("TMPDIR");
    static char evidence[4096];
    if (realpath(session->options.evidence, evidence)) /* trials change their folder */
        session->options.evidence = evidence;
    char why[256];
    if (!(measurement.explained = explained_load(session->options.survivors, why, sizeof why))) {
        json_decref(measurement.results);
        return give_up(session, EXIT_USAGE, NULL, "%s: %s", session->options.survivors, why);
    }
    enum exit_code code =
        mutant_field_open(session, session->options.of, (uint64_t)session->options.proof_seed, &measurement.field);
    if (code == EXIT_PASS && session->options.out)
        code = read_results(&measurement, session->options.out);
    snprintf(measurement.shared, sizeof measurement.shared, "%.400s/attest-mutants-XXXXXX", base && *base ? base : "/tmp");
    if (code == EXIT_PASS && !mkdtemp(measurement.shared))
        code =
            give_up(session, EXIT_LACKING, "set TMPDIR to a folder that can be written", "no scratch folder: %s", strerror(errno));
    if (code == EXIT_PASS) {
        int64_t last = run_all(&measurement);
        progress_clear();
        folder_remove(measurement.shared);
        code = conclude(&measurement, session->options.only_mutant ? last : last_wanted(&measurement, last));
    }
    if (measurement.file)
        fclose(measurement.file);
    json_decref(measurement.results);
    json_decref(measurement.explained);
    mutant_field_close(&measurement.field);
    return code;
}
