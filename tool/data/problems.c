/*
 * problems.c - problem strings from the command line and from suites. A suite is a text file with one problem a line; # starts a
 * comment, blank lines do not matter. Errors name the argument, or the file and the line.
 */
#include "base/embedded.h"
#include "base/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/regular_file.h"

#define EXAMPLE "a problem looks like fwd:f16:b2:hq8:hkv2:s512:d64:causal; type attest help for all its words"

static enum exit_code add_problem(struct session *session, struct problem_list *list, const char *text, const char *place)
{
    char why[512] = "";
    struct problem_entry *grown = realloc(list->entries, ((size_t)list->count + 1) * sizeof *grown);
    if (!grown)
        return give_up(session, EXIT_LACKING, NULL, "out of memory");
    list->entries = grown;
    struct problem_entry *entry = &grown[list->count];
    attest_status status = attest_problem_parse(text, &entry->problem, why, sizeof why);
    if (status == ATTEST_OK)
        status = attest_problem_check(&entry->problem, why, sizeof why);
    if (status != ATTEST_OK)
        return give_up(session, exit_code_of(status), "type attest help for the words of a problem", "%s: '%s': %s", place, text,
                       why);
    entry->text = strdup(text);
    entry->place = strdup(place);
    list->count++;
    if (!entry->text || !entry->place)
        return give_up(session, EXIT_LACKING, NULL, "out of memory");
    return EXIT_PASS;
}

/* The line without its comment and the blanks round it. */
static char *trim(char *line)
{
    line[strcspn(line, "#\r\n")] = '\0';
    line += strspn(line, " \t");
    size_t length = strlen(line);
    while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\t'))
        line[--length] = '\0';
    return line;
}

static enum exit_code read_suite(struct session *session, struct problem_list *list, FILE *stream, const char *path)
{
    enum exit_code code = EXIT_PASS;
    char *line = NULL;
    size_t size = 0;
    int before = list->count;
    for (long number = 1; code == EXIT_PASS; number++) {
        char place[512];
        ssize_t length = getline(&line, &size, stream);
        if (length < 0)
            break;
        snprintf(place, sizeof place, "%.480s:%ld", path, number);
        if (strlen(line) != (size_t)length) {
            code = give_up(session, EXIT_USAGE, "a suite is a text file with one problem a line", "%s: a zero byte", place);
        } else if (strlen(line) > 0) {
            char *text = trim(line);
            if (*text)
                code = add_problem(session, list, text, place);
        }
    }
    if (code == EXIT_PASS && ferror(stream))
        code = give_up(session, EXIT_USAGE, NULL, "suite %s cannot be read: %s", path, strerror(errno));
    if (code == EXIT_PASS && list->count == before)
        code = give_up(session, EXIT_USAGE, EXAMPLE, "suite %s has no problem in it", path);
    free(line);
    return code;
}

enum exit_code suite_load(struct session *session, struct problem_list *list, const char *path)
{
    char why[512];
    FILE *stream = strcmp(path, "-") == 0 ? stdin : regular_file_open(path, why, sizeof why);
    if (!stream)
        return give_up(session, EXIT_USAGE,
                       "the suites of the repository are suites/prove.txt, suites/speed.txt, suites/bench.txt and suites/peers.txt",
                       "suite %s", why);
    enum exit_code code = read_suite(session, list, stream, path);
    if (stream != stdin)
        fclose(stream);
    return code;
}

enum exit_code suite_load_embedded(struct session *session, struct problem_list *list, const struct embedded *file)
{
    FILE *stream = fmemopen((void *)(uintptr_t)file->data, (size_t)(file->end - file->data), "r");
    if (!stream)
        return give_up(session, EXIT_LACKING, NULL, "out of memory");
    enum exit_code code = read_suite(session, list, stream, file->name);
    fclose(stream);
    return code;
}

enum exit_code problems_load(struct session *session, bool one)
{
    const struct options *options = &session->options;
    enum exit_code code = EXIT_PASS;
    if (one && options->word_count != 1)
        return give_up(session, EXIT_USAGE, EXAMPLE, "%s takes one problem, and got %d", session->name, options->word_count);
    if (!options->suite && options->word_count == 0)
        return give_up(session, EXIT_USAGE, EXAMPLE, "%s needs a problem%s", session->name,
                       one ? "" : ", or --suite FILE with problems");
    for (int i = 0; i < options->word_count && code == EXIT_PASS; i++) {
        char place[64];
        snprintf(place, sizeof place, "problem %d", i + 1);
        code = add_problem(session, &session->problems, options->words[i], place);
    }
    if (code == EXIT_PASS && options->suite)
        code = suite_load(session, &session->problems, options->suite);
    return code;
}

void problem_list_free(struct problem_list *list)
{
    for (int i = 0; i < list->count; i++) {
        free(list->entries[i].text);
        free(list->entries[i].place);
    }
    free(list->entries);
    *list = (struct problem_list){0};
}
