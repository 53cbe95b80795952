/*
 * museum.c - the rows of mutants.def, and which of them are wanted. See museum.h.
 */
#include "museum.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest_word.h"
#include "base/random.h"
#include "base/regular_file.h"

/* Two kernels that are equally fast: what every row but those of SPEED is timed by. */
#define EVEN_CLOCK "a=1,b=1,noise=0.004,seed=7"

const char *const kind_words[KIND_COUNT] = {"MUTANT", "SPEED", "HARMLESS"};
static const int kind_fields[] = {4, 5, 2};
enum { MOST_FIELDS = 5 };

bool museum_is_cuda(const struct mutant *mutant)
{
    return strncmp(mutant->stem, "cuda/", 5) == 0;
}

const char *museum_second_gate(const struct mutant *mutant)
{
    const char *both = strstr(mutant->expected, MUSEUM_BOTH);
    return both ? both + sizeof MUSEUM_BOTH - 1 : "";
}

bool museum_next_gate(const char **at, char *gate, size_t size)
{
    size_t length = strcspn(*at, " ");
    snprintf(gate, size, "%.*s", (int)length, *at);
    *at += length;
    *at += strncmp(*at, " or ", 4) == 0 ? 4 : strncmp(*at, MUSEUM_BOTH, sizeof MUSEUM_BOTH - 1) == 0 ? sizeof MUSEUM_BOTH - 1 : 0;
    return length > 0;
}

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

static enum exit_code read_table(struct museum *museum)
{
    struct session *session = museum->session;
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
            grown = realloc(museum->mutants, ((size_t)museum->count + 1) * sizeof *grown);
            if (!grown) {
                code = give_up(session, EXIT_LACKING, NULL, "out of memory");
                break;
            }
            museum->mutants = grown;
            museum->mutants[museum->count++] = mutant;
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
static enum exit_code choose(struct museum *museum)
{
    const struct options *options = &museum->session->options;
    const char *stems[512];
    int count = 0;
    for (int i = 0; i < museum->count; i++) {
        museum->mutants[i].chosen = options->word_count == 0;
        if (count < COUNT_OF(stems))
            stems[count++] = museum->mutants[i].stem;
    }
    for (int w = 0; w < options->word_count; w++) {
        bool found = false;
        for (int i = 0; i < museum->count; i++)
            if (fnmatch(options->words[w], museum->mutants[i].stem, 0) == 0)
                found = museum->mutants[i].chosen = true;
        if (found)
            continue;
        const char *near = nearest_word(options->words[w], stems, count);
        char hint[160];
        snprintf(hint, sizeof hint, near ? "did you mean %s?" : "the rows of mutants.def name them", near);
        return give_up(museum->session, EXIT_USAGE, hint, "there is no mutant called %s", options->words[w]);
    }
    return EXIT_PASS;
}

/* Whether another row of the sample is of the same kind and expects the same gate, for the same device. */
static bool is_represented(const struct museum *museum, const struct mutant *mutant, const bool *drawn)
{
    for (int i = 0; i < museum->count; i++)
        if (drawn[i] && museum->mutants[i].kind == mutant->kind && strcmp(museum->mutants[i].expected, mutant->expected) == 0 &&
            museum_is_cuda(&museum->mutants[i]) == museum_is_cuda(mutant))
            return true;
    return false;
}

enum exit_code museum_sample(struct museum *museum)
{
    enum { STREAM = 77 };
    int64_t most = museum->session->options.sample, drawn_count = 0;
    bool *drawn = calloc((size_t)museum->count + 1, sizeof *drawn);
    int *order = calloc((size_t)museum->count + 1, sizeof *order);
    for (int i = 0; drawn && order && i < museum->count; i++) { /* a drawn order of the rows */
        int at = (int)random_below(random_bits(museum->seed, STREAM, (uint64_t)i), i);
        order[i] = order[at];
        order[at] = i;
    }
    for (int pass = 0; drawn && order && pass < 2; pass++)
        for (int n = 0; n < museum->count; n++) {
            const struct mutant *mutant = &museum->mutants[order[n]];
            bool wanted = pass == 0 ? !is_represented(museum, mutant, drawn) : drawn_count < most;
            if (mutant->chosen && !mutant->left_out && !drawn[order[n]] && wanted)
                drawn[order[n]] = ++drawn_count;
        }
    bool done = drawn && order;
    for (int i = 0; done && i < museum->count; i++) {
        struct mutant *mutant = &museum->mutants[i];
        museum->of += mutant->chosen && !mutant->left_out;
        mutant->chosen = drawn[i] || mutant->left_out;
    }
    free(drawn);
    free(order);
    return done ? EXIT_PASS : give_up(museum->session, EXIT_LACKING, NULL, "out of memory");
}

enum exit_code museum_read(struct museum *museum)
{
    enum exit_code code = read_table(museum);
    return code == EXIT_PASS ? choose(museum) : code;
}

void museum_free(struct museum *museum)
{
    for (int i = 0; i < museum->count; i++)
        json_decref(museum->mutants[i].record);
    free(museum->mutants);
    museum->mutants = NULL;
    museum->count = 0;
}
