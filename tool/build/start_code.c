/*
 * start_code.c - the code that compilers add to every shared object: .init and .fini, a constructor and a destructor, which do
 * nothing in a kernel. They are compared, instruction by instruction, with those of an image that the same compiler makes of an
 * empty source. Addresses differ, and are compared by what is there: the same place in this code, the same imported function, the
 * same byte of its storage.
 */
#include "purity.h"

#include <stdio.h>
#include <string.h>

#include "base/session.h"

struct side {
    const struct elf_image *image;
    const struct code_listing *listing;
    uint64_t handle;
    uint64_t base, size; /* of the piece that is compared */
};

/* The imported function whose address a word of the GOT has, directly or as the PLT stub at an address jumps to it. */
static const char *import_at(const struct side *side, uint64_t address)
{
    const struct elf_relocation *entry = elf_relocation_at(side->image, address);
    const struct code_line *line = code_line_at(side->listing, address);
    if (!entry && line && code_line_is(line, "endbr64"))
        line++;
    if (!entry && line && line < side->listing->lines + side->listing->count && code_line_is(line, "jmp") && line->refers)
        entry = elf_relocation_at(side->image, line->target);
    return entry && entry->symbol ? entry->symbol->name : NULL;
}

static void describe(const struct side *side, uint64_t target, char *text, size_t size)
{
    const char *import = import_at(side, target);
    if (target >= side->base && target < side->base + side->size)
        snprintf(text, size, "here+%llu", (unsigned long long)(target - side->base));
    else if (import)
        snprintf(text, size, "%s", import);
    else if (side->handle && target >= side->handle && target < side->handle + 16)
        snprintf(text, size, "storage+%llu", (unsigned long long)(target - side->handle));
    else
        snprintf(text, size, "unknown at 0x%llx", (unsigned long long)target);
}

/* An instruction without its address. */
static void normalise(const struct side *side, const struct code_line *line, char *text, size_t size)
{
    char target[128] = "";
    const char *operands = strchr(line->text, ' ');
    int length = operands ? (int)(operands - line->text) : (int)strlen(line->text);
    if (line->branches || line->refers)
        describe(side, line->target, target, sizeof target);
    if (line->branches)
        snprintf(text, size, "%.*s %s", length, line->text, target);
    else if (line->refers) {
        const char *rest = strstr(line->text, "(%rip)");
        bool star = operands && operands[1] == '*';
        snprintf(text, size, "%.*s %s%s%s", length, line->text, star ? "*" : "", target, rest ? rest + 6 : "");
    } else
        snprintf(text, size, "%s", line->text);
}

/* Compares the code of `theirs` (the empty image's) with that of `ours`. */
static bool is_same(const struct side *ours, const struct side *theirs)
{
    const struct code_line *end = theirs->listing->lines + theirs->listing->count;
    const struct code_line *line = code_line_at(theirs->listing, theirs->base);
    for (; line && line < end && line->address < theirs->base + theirs->size; line++) {
        const struct code_line *mine = code_line_at(ours->listing, ours->base + (line->address - theirs->base));
        char expected[256], found[256];
        if (!mine)
            return false;
        normalise(theirs, line, expected, sizeof expected);
        normalise(ours, mine, found, sizeof found);
        if (strcmp(expected, found) != 0 || strstr(found, "unknown at"))
            return false;
    }
    return line != NULL;
}

/* The only entry of an array of functions. False if it has more, or one that the loader does not fill in. */
static bool only_entry(const struct elf_image *image, int64_t array, int64_t size_tag, uint64_t *function, bool *there)
{
    uint64_t address = 0, size = 0;
    *there = elf_tag(image, size_tag, &size) && size > 0;
    if (!*there)
        return true;
    const struct elf_relocation *entry = elf_tag(image, array, &address) ? elf_relocation_at(image, address) : NULL;
    if (size != 8 || !entry || entry->symbol)
        return false;
    *function = entry->addend;
    return true;
}

static uint64_t handle_of(const struct elf_image *image)
{
    for (int i = 0; i < image->relocation_count; i++)
        if (!image->relocations[i].symbol && image->relocations[i].addend == image->relocations[i].at)
            return image->relocations[i].at;
    return 0;
}

static const Elf64_Shdr *section_named(const struct elf_image *image, const char *name)
{
    for (int i = 0; i < image->section_count; i++)
        if (strcmp(image->section_names[i], name) == 0)
            return &image->sections[i];
    return NULL;
}

static bool compare_piece(struct purity_subject *subject, struct side *ours, struct side *theirs, const char *what)
{
    ours->size = theirs->size;
    if (!is_same(ours, theirs))
        return purity_found(
            subject, ours->base,
            "%s at 0x%llx runs when the image is loaded or unloaded, and is not the compiler's own: a kernel has no "
            "constructors or destructors (a prebuilt image can be linked with -nostartfiles)",
            what, (unsigned long long)ours->base);
    subject->start[subject->start_count++] = (struct code_range){ours->base, ours->base + ours->size};
    return true;
}

/* .init or .fini: a function of the whole section. */
static bool compare_section(struct purity_subject *subject, struct side *ours, struct side *theirs, int64_t tag, const char *name)
{
    const Elf64_Shdr *section = section_named(theirs->image, name);
    uint64_t address = 0;
    if (!elf_tag(ours->image, tag, &address))
        return true;
    ours->base = address;
    theirs->base = section ? section->sh_addr : 0;
    theirs->size = section ? section->sh_size : 0;
    return compare_piece(subject, ours, theirs, name);
}

static bool compare_arrays(struct purity_subject *subject, struct side *ours, struct side *theirs)
{
    static const char sentence[] =
        "it has functions that run when the image is loaded or unloaded (%s): a kernel has no constructors or destructors";
    uint64_t first = 0, last = 0, their_first = 0, their_last = 0;
    bool begins, ends, their_begins, their_ends;
    const Elf64_Shdr *text = section_named(theirs->image, ".text");
    if (!only_entry(ours->image, DT_INIT_ARRAY, DT_INIT_ARRAYSZ, &first, &begins))
        return purity_found(subject, 0, sentence, ".init_array");
    if (!only_entry(ours->image, DT_FINI_ARRAY, DT_FINI_ARRAYSZ, &last, &ends))
        return purity_found(subject, 0, sentence, ".fini_array");
    if (!begins && !ends)
        return true;
    if (!only_entry(theirs->image, DT_INIT_ARRAY, DT_INIT_ARRAYSZ, &their_first, &their_begins) || !their_begins || !text ||
        !only_entry(theirs->image, DT_FINI_ARRAY, DT_FINI_ARRAYSZ, &their_last, &their_ends) || !their_ends)
        return purity_found(subject, first, sentence, ".init_array");
    theirs->base = text->sh_addr;
    theirs->size = text->sh_size;
    ours->base = first - (their_first - theirs->base);
    if ((begins && ends && last - first != their_last - their_first) || !begins || !ends)
        return purity_found(subject, begins ? first : last, sentence, begins ? ".init_array" : ".fini_array");
    return compare_piece(subject, ours, theirs, "code of .init_array and .fini_array");
}

enum purity start_code_judge(struct purity_subject *subject, const char *empty)
{
    static const int64_t tags[] = {DT_INIT, DT_FINI, DT_INIT_ARRAYSZ, DT_FINI_ARRAYSZ};
    struct elf_image image = {0};
    struct code_listing listing = {0};
    uint64_t value;
    bool any = subject->handle != 0;
    for (int i = 0; i < COUNT_OF(tags); i++)
        any = any || (elf_tag(subject->image, tags[i], &value) && value);
    if (!any)
        return PURITY_HOLDS;
    char why[256] = "there is no compiler";
    if (!empty || !elf_read(empty, &image, why, sizeof why) || !code_listing_make(empty, &image, &listing, why, sizeof why)) {
        purity_found(subject, 0,
                     "its start-up code cannot be compared with the compiler's (%s): install gcc, or link it with -nostartfiles",
                     why);
        elf_free(&image);
        code_listing_free(&listing);
        return PURITY_UNKNOWN;
    }
    struct side ours = {subject->image, subject->listing, subject->handle, 0, 0},
                theirs = {&image, &listing, handle_of(&image), 0, 0};
    bool good = compare_arrays(subject, &ours, &theirs) && compare_section(subject, &ours, &theirs, DT_INIT, ".init") &&
                compare_section(subject, &ours, &theirs, DT_FINI, ".fini");
    code_listing_free(&listing);
    elf_free(&image);
    return good ? PURITY_HOLDS : PURITY_BROKEN;
}
