/*
 * code_listing.c - see code_listing.h.
 */
#include "code_listing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "base/session.h"

enum { ROOM = 64 << 20, LIST_SECONDS = 120 };

static const char *const prefixes[] = {"lock", "rep", "repz",    "repnz", "data16", "addr32",   "cs",       "ds",    "es",
                                       "ss",   "bnd", "notrack", "{vex}", "{evex}", "xacquire", "xrelease", "{vex3}"};

static bool is_prefix(const char *word, size_t length)
{
    if (length >= 3 && strncmp(word, "rex", 3) == 0)
        return true;
    for (int i = 0; i < COUNT_OF(prefixes); i++)
        if (strlen(prefixes[i]) == length && strncmp(word, prefixes[i], length) == 0)
            return true;
    return false;
}

/* Makes blanks single, in place. */
static void squeeze(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++)
        if (*at != ' ' || (to > text && to[-1] != ' '))
            *to++ = *at;
    while (to > text && to[-1] == ' ')
        to--;
    *to = '\0';
}

static void find_target(struct code_line *line, char *text)
{
    char *comment = strstr(text, " # ");
    if (!comment)
        comment = strstr(text, " // ");
    if (comment) {
        char *end = NULL;
        const char *number = comment + strspn(comment, " #/");
        line->target = strtoull(number, &end, 16);
        line->refers = end != number;
        *comment = '\0';
    }
    const char *operand = line->mnemonic + strcspn(line->mnemonic, " ");
    operand += strspn(operand, " ");
    bool branch = line->mnemonic[0] == 'j' || strncmp(line->mnemonic, "call", 4) == 0 || strncmp(line->mnemonic, "loop", 4) == 0 ||
                  strncmp(line->mnemonic, "xbegin", 6) == 0;
    if (branch && strncmp(operand, "0x", 2) == 0) {
        line->target = strtoull(operand, NULL, 16);
        line->branches = true;
    }
}

static bool add_line(struct code_listing *listing, char *row)
{
    char *end = NULL, *tab = strchr(row, '\t');
    uint64_t address = strtoull(row, &end, 16);
    if (!tab || end == row || *end != ':')
        return true;
    if (listing->count == listing->room) {
        int room = listing->room ? 2 * listing->room : 4096;
        struct code_line *grown = realloc(listing->lines, (size_t)room * sizeof *grown);
        if (!grown)
            return false;
        listing->lines = grown;
        listing->room = room;
    }
    for (char *at = tab; *at; at++)
        if (*at == '\t')
            *at = ' ';
    char *text = tab + 1;
    squeeze(text);
    struct code_line *line = &listing->lines[listing->count++];
    *line = (struct code_line){.address = address, .text = text, .mnemonic = text};
    for (size_t length; (length = strcspn(line->mnemonic, " ")) && line->mnemonic[length] && is_prefix(line->mnemonic, length);)
        line->mnemonic += length + 1;
    find_target(line, text);
    return true;
}

/* One section, which lies at `shift` behind its place in the file. */
static bool list_section(const char *path, const char *machine, const Elf64_Shdr *section, struct code_listing *listing)
{
    char shift[64], start[64], stop[64], *text = malloc(ROOM), *rest = NULL;
    snprintf(shift, sizeof shift, "--adjust-vma=0x%llx", (unsigned long long)(section->sh_addr - section->sh_offset));
    snprintf(start, sizeof start, "--start-address=0x%llx", (unsigned long long)section->sh_addr);
    snprintf(stop, sizeof stop, "--stop-address=0x%llx", (unsigned long long)(section->sh_addr + section->sh_size));
    const char *argv[] = {"objdump", "-D", "-w", "-z", "--no-show-raw-insn", "-b", "binary", "-m", machine, shift,
                          start,     stop, path, NULL};
    bool done = text && build_command((char *const *)(uintptr_t)argv, LIST_SECONDS, text, ROOM) == 0;
    if (!done) {
        free(text);
        return false;
    }
    char *fitting = realloc(text, strlen(text) + 1);
    text = fitting ? fitting : text;
    char **texts = realloc(listing->texts, ((size_t)listing->text_count + 1) * sizeof *texts);
    if (!texts) {
        free(text);
        return false;
    }
    listing->texts = texts;
    texts[listing->text_count++] = text;
    int before = listing->count;
    for (char *row = strtok_r(text, "\n", &rest); row && done; row = strtok_r(NULL, "\n", &rest))
        done = add_line(listing, row);
    return done && listing->count > before && listing->lines[before].address == section->sh_addr;
}

static int by_address(const void *left, const void *right)
{
    const struct code_line *a = left, *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

bool code_listing_make(const char *path, const struct elf_image *image, struct code_listing *listing, char *why, size_t why_size)
{
    const char *machine = image->machine == EM_X86_64 ? "i386:x86-64" : image->machine == EM_AARCH64 ? "aarch64" : NULL;
    *listing = (struct code_listing){0};
    if (!machine) {
        snprintf(why, why_size, "it is for a processor that is not known here (ELF machine %u)", image->machine);
        return false;
    }
    for (int i = 0; i < image->section_count; i++)
        if (elf_is_code(&image->sections[i]) && !list_section(path, machine, &image->sections[i], listing)) {
            snprintf(why, why_size, "objdump does not list its section %s, or is not here: install binutils",
                     image->section_names[i]);
            return false;
        }
    if (listing->count)
        qsort(listing->lines, (size_t)listing->count, sizeof *listing->lines, by_address);
    return true;
}

void code_listing_free(struct code_listing *listing)
{
    for (int i = 0; i < listing->text_count; i++)
        free(listing->texts[i]);
    free(listing->texts);
    free(listing->lines);
    *listing = (struct code_listing){0};
}

const struct code_line *code_line_at(const struct code_listing *listing, uint64_t address)
{
    const struct code_line key = {.address = address};
    return listing->count ? bsearch(&key, listing->lines, (size_t)listing->count, sizeof key, by_address) : NULL;
}

bool code_line_is(const struct code_line *line, const char *word)
{
    size_t length = strlen(word);
    if (word[length - 1] == '*')
        return strncmp(line->mnemonic, word, length - 1) == 0;
    return strncmp(line->mnemonic, word, length) == 0 && (line->mnemonic[length] == ' ' || line->mnemonic[length] == '\0');
}
