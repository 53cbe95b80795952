/*
 * instruction_sets.c - see instruction_sets.h.
 *
 * The distinct instructions of the listing are assembled again, for a processor that has the declared features and no others. What
 * the assembler refuses for a feature is an instruction that a machine may lack which the kernel says it runs on. Two kinds need no
 * asking: nops of any length, and tzcnt, whose bytes an older processor takes for bsf, with the same result but for 0; compilers emit it
 * for that reason.
 */
#include "instruction_sets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build.h"
#include "code_listing.h"
#include "elf_image.h"
#include "evidence/objects.h"
#include "base/report.h"
#include "base/session.h"

static const struct {
    const char *needs, *features, *processor;
} levels[] = {
#define BASELINE(features, processor)           {"", features, processor},
#define FEATURE(id, needs, features, processor) {needs, features, processor},
#include "base/cpu_features.def"
#undef FEATURE
#undef BASELINE
};

static int level_of(const char *needs)
{
    for (int i = 0; i < COUNT_OF(levels); i++)
        if (strcmp(levels[i].needs, needs) == 0)
            return i;
    return -1;
}

const char *instruction_sets_emulated(const char *needs)
{
    int level = level_of(needs);
    return level < 0 ? NULL : levels[level].processor;
}

static int by_text(const void *left, const void *right)
{
    const struct code_line *const *a = left, *const *b = right;
    return strcmp((*a)->text, (*b)->text);
}

static bool needs_asking(const struct code_line *line)
{
    return !code_line_is(line, "nop*") && !code_line_is(line, "tzcnt*") && strcmp(line->mnemonic, "xchg %ax,%ax") != 0;
}

/* The distinct instructions, each at its first place. To be freed. */
static const struct code_line **distinct(const struct code_listing *listing, int *count)
{
    const struct code_line **lines = calloc((size_t)listing->count + 1, sizeof *lines);
    int all = 0;
    *count = 0;
    for (int i = 0; lines && i < listing->count; i++)
        if (needs_asking(&listing->lines[i]))
            lines[all++] = &listing->lines[i];
    if (all)
        qsort(lines, (size_t)all, sizeof *lines, by_text);
    for (int i = 0; i < all; i++)
        if (!*count || strcmp(lines[*count - 1]->text, lines[i]->text) != 0)
            lines[(*count)++] = lines[i];
    return lines;
}

/* Writes the text for the assembler; *first is the number of the first instruction's line. */
static bool write_text(const char *path, int level, const struct code_line **lines, int count, int *first, json_t *features)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    fputs(".arch generic64\n", file);
    *first = 2;
    for (int i = 0; i <= level; i++)
        for (const char *at = levels[i].features; *at;) {
            size_t length = strcspn(at, " ");
            fprintf(file, ".arch .%.*s\n", (int)length, at);
            json_add(features, json_stringn(at, length));
            ++*first;
            at += length;
            at += strspn(at, " ");
        }
    for (int i = 0; i < count; i++)
        fprintf(file, "%s\n", lines[i]->text);
    return fclose(file) == 0;
}

/* Reads "x.s:12: Error: `vpdpbusd' is not supported on ..." */
static enum verdict read_errors(char *log, const struct code_line **lines, int count, int first, const char *needs, char *why,
                                size_t why_size)
{
    enum verdict verdict = VERDICT_PASS;
    char *rest = NULL;
    for (char *row = strtok_r(log, "\n", &rest); row; row = strtok_r(NULL, "\n", &rest)) {
        const char *error = strstr(row, ": Error: "), *colon = error;
        while (colon && colon > row && colon[-1] != ':')
            colon--;
        int number = error ? atoi(colon) - first : -1;
        if (!error)
            continue;
        const struct code_line *line = number >= 0 && number < count ? lines[number] : NULL;
        if (line && strstr(error, "not supported on")) {
            size_t word = strcspn(line->mnemonic, " ");
            snprintf(
                why, why_size,
                "it says that it needs %s, and has the instruction %.*s at 0x%llx (%.60s), which no processor is promised to have "
                "by that",
                *needs ? needs : "nothing", (int)word, line->mnemonic, (unsigned long long)line->address, line->text);
            return VERDICT_FAIL;
        }
        snprintf(why, why_size, "the assembler cannot judge its instructions: %.200s (%.60s); a newer version of binutils may",
                 error + 2, line ? line->text : "");
        verdict = VERDICT_INCONCLUSIVE;
    }
    return verdict;
}

enum verdict instruction_sets_judge(const char *path, const char *needs, json_t *details, char *why, size_t why_size)
{
    enum { ROOM = 4 << 20 };
    struct elf_image image = {0};
    struct code_listing listing = {0};
    enum verdict verdict = VERDICT_INCONCLUSIVE;
    int level = level_of(needs), count = 0, first = 0, status = 127;
    char folder[] = "/tmp/attest-assemble-XXXXXX", text[64], *log = malloc(ROOM);
    json_t *features = json_array();
    snprintf(why, why_size, "no temporary folder, or memory ran out");
    bool good = level >= 0 && log && mkdtemp(folder) && elf_read(path, &image, why, why_size) &&
                code_listing_make(path, &image, &listing, why, why_size);
    const struct code_line **lines = good ? distinct(&listing, &count) : NULL;
    snprintf(text, sizeof text, "%s/x.s", folder);
    if (lines && write_text(text, level, lines, count, &first, features)) {
        const char *argv[] = {"as", "--64", "-o", "/dev/null", text, NULL};
        status = build_command((char *const *)(uintptr_t)argv, 120, log, ROOM);
        if (status == 127 || status == 124)
            snprintf(why, why_size, "the assembler is not here, or takes too long: install binutils");
        else
            verdict = read_errors(log, lines, count, first, needs, why, why_size);
        if (status != 0 && verdict == VERDICT_PASS) {
            verdict = VERDICT_INCONCLUSIVE;
            snprintf(why, why_size, "the assembler failed without saying why: %.200s", log);
        }
    }
    if (log && strncmp(folder + strlen(folder) - 6, "XXXXXX", 6) != 0)
        folder_remove(folder);
    json_put(details, "features", features);
    json_put(details, "checked", json_integer(count));
    free(lines);
    free(log);
    code_listing_free(&listing);
    elf_free(&image);
    return verdict;
}
