/*
 * purity_code.c - what the instructions of an image may do (purity.h).
 *
 * Every executable byte is an instruction of one straight listing. None is of purity_instructions.def; none uses a segment register,
 * but for the word that stack protectors read; none touches what stays writable in the image. Direct branches, addresses of code that
 * are taken, and pointers to code in tables lead to the beginning of a listed instruction, so that none hides in the middle of
 * another. A large constant must not have the bytes of a forbidden instruction in it, because a computed jump could go there.
 */
#include "purity.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "base/session.h"

static unsigned long long hex(uint64_t value)
{
    return (unsigned long long)value;
}

/* ---- single instructions ---------------------------------------------------------------------------------------------------- */

enum { X86 = EM_X86_64, ARM = EM_AARCH64 };

static const struct {
    uint16_t machine;
    const char *mnemonic, *does;
} refused[] = {
#define INSTRUCTION(machine, mnemonic, does) {machine, mnemonic, does},
#include "purity_instructions.def"
#undef INSTRUCTION
};

static bool is_refused(struct purity_subject *subject, const struct code_line *line)
{
    for (int i = 0; i < COUNT_OF(refused); i++)
        if (refused[i].machine == subject->image->machine && code_line_is(line, refused[i].mnemonic))
            return !purity_found(subject, line->address, "it has the instruction '%.60s' at 0x%llx, which %s", line->text,
                                 hex(line->address), refused[i].does);
    return false;
}

/* A register name in the operands that is not a segment prefix: "mov %fs,%eax", and not "%fs:0x28". */
static bool names_segment(const char *operands)
{
    static const char *const names[] = {"%cs", "%ds", "%es", "%ss", "%cr", "%db", "%dr"};
    for (int i = 0; i < COUNT_OF(names); i++)
        for (const char *at = operands; (at = strstr(at, names[i])); at++)
            if (at[3] != ':' && !islower((unsigned char)at[3]))
                return true;
    return false;
}

static bool judge_segments(struct purity_subject *subject, const struct code_line *line)
{
    static const char canary[] = "%fs:0x28";
    const char *at = line->text;
    if (strncmp(at, "fs ", 3) == 0 || strncmp(at, "gs ", 3) == 0 || names_segment(line->text))
        return purity_found(subject, line->address, "the instruction '%.60s' at 0x%llx uses a segment or control register",
                            line->text, hex(line->address));
    while ((at = strpbrk(at, "%")) != NULL) {
        if (strncmp(at, "%fs", 3) == 0 || strncmp(at, "%gs", 3) == 0) {
            bool canary_read =
                strncmp(at, canary, sizeof canary - 1) == 0 && (at[sizeof canary - 1] == ',') &&
                (code_line_is(line, "mov") || code_line_is(line, "sub") || code_line_is(line, "xor") || code_line_is(line, "cmp"));
            if (!canary_read)
                return purity_found(subject, line->address,
                                    "the instruction '%.60s' at 0x%llx reads thread-local storage or another thread's data",
                                    line->text, hex(line->address));
        }
        at++;
    }
    return true;
}

/* Conversion of a long double to an integer changes the rounding and changes it back: fldcw, fistp, fldcw. */
static bool judge_rounding(struct purity_subject *subject, const struct code_line *line)
{
    const struct code_line *first = subject->listing->lines, *end = first + subject->listing->count;
    if (!code_line_is(line, "fldcw"))
        return true;
    bool opens = line + 2 < end && code_line_is(line + 1, "fist*") && code_line_is(line + 2, "fldcw") &&
                 strcmp(line->text, line[2].text) != 0;
    bool closes = line - 2 >= first && code_line_is(line - 1, "fist*") && code_line_is(line - 2, "fldcw") &&
                  strcmp(line->text, line[-2].text) != 0;
    return opens || closes ||
           purity_found(subject, line->address,
                        "it has the instruction '%.60s' at 0x%llx, which changes rounding and exceptions of its caller", line->text,
                        hex(line->address));
}

/* ---- where they lead -------------------------------------------------------------------------------------------------------- */

static bool is_code(const struct elf_image *image, uint64_t address)
{
    int section = elf_section_at(image, address);
    return section >= 0 && elf_is_code(&image->sections[section]);
}

static bool in_start_code(const struct purity_subject *subject, uint64_t address)
{
    for (int i = 0; i < subject->start_count; i++)
        if (address >= subject->start[i].begin && address < subject->start[i].end)
            return true;
    return false;
}

/* The PLT jumps through its words, and its first entry pushes one. */
static bool is_jump_through(const struct code_line *line)
{
    return code_line_is(line, "jmp") || code_line_is(line, "call") || code_line_is(line, "push");
}

static bool judge_target(struct purity_subject *subject, const struct code_line *line)
{
    const struct elf_image *image = subject->image;
    if (line->branches && !is_code(image, line->target))
        return purity_found(subject, line->address, "the instruction '%.60s' at 0x%llx jumps out of its instructions", line->text,
                            hex(line->address));
    if ((line->branches || line->refers) && is_code(image, line->target) && !code_line_at(subject->listing, line->target))
        return purity_found(subject, line->address,
                            "the instruction '%.60s' at 0x%llx leads into the middle of another one, where an instruction can hide",
                            line->text, hex(line->address));
    if (line->refers && purity_is_writable(subject, line->target) && !in_start_code(subject, line->address) &&
        !is_jump_through(line))
        return purity_found(subject, line->address,
                            "the instruction '%.60s' at 0x%llx touches writable static storage (%s); a kernel keeps no state",
                            line->text, hex(line->address), elf_section_name(image, line->target));
    return true;
}

static bool judge_pointers(struct purity_subject *subject)
{
    const struct elf_image *image = subject->image;
    for (int i = 0; i < image->relocation_count; i++) {
        const struct elf_relocation *entry = &image->relocations[i];
        uint64_t target = entry->symbol && entry->symbol->defined ? entry->symbol->value + entry->addend
                          : entry->symbol                         ? 0
                                                                  : entry->addend;
        if (target && is_code(image, target) && !code_line_at(subject->listing, target))
            return purity_found(
                subject, entry->at,
                "the pointer at 0x%llx leads into the middle of the instruction before 0x%llx, where another can hide",
                hex(entry->at), hex(target));
    }
    for (int i = 1; i < image->symbol_count; i++)
        if (image->symbols[i].defined && image->symbols[i].type == STT_FUNC &&
            !code_line_at(subject->listing, image->symbols[i].value))
            return purity_found(subject, image->symbols[i].value, "%.100s begins in the middle of an instruction",
                                image->symbols[i].name);
    return true;
}

/* ---- constants -------------------------------------------------------------------------------------------------------------- */

static const struct {
    unsigned char bytes[3], mask[3];
    const char *name;
} hidden[] = {
    {{0x0f, 0x05}, {0xff, 0xff}, "syscall"},
    {{0x0f, 0x34}, {0xff, 0xff}, "sysenter"},
    {{0xcd, 0x80}, {0xff, 0xff}, "int $0x80"},
    {{0x0f, 0xa2}, {0xff, 0xff}, "cpuid"},
    {{0x0f, 0x31}, {0xff, 0xff}, "rdtsc"},
    {{0x0f, 0x01, 0xf9}, {0xff, 0xff, 0xff}, "rdtscp"},
    {{0x0f, 0x01, 0xd0}, {0xff, 0xff, 0xff}, "xgetbv"},
    {{0x0f, 0xc7, 0xf0}, {0xff, 0xff, 0xf0}, "rdrand or rdseed"},
};
#define LARGE_CONSTANT 0x1000000u /* smaller ones are sizes and counts, which may have any bytes */

static bool judge_constant(struct purity_subject *subject, const struct code_line *line)
{
    const char *at = strstr(line->text, "$0x");
    uint64_t value = at && subject->image->machine == EM_X86_64 ? strtoull(at + 1, NULL, 16) : 0;
    if (value < LARGE_CONSTANT)
        return true;
    unsigned char bytes[8];
    int size = value >> 32 && value >> 31 != 0x1ffffffffull ? 8 : 4;
    memcpy(bytes, &value, sizeof bytes);
    for (int i = 0; i < COUNT_OF(hidden); i++)
        for (int offset = 0; offset + (hidden[i].mask[2] ? 3 : 2) <= size; offset++) {
            bool found = true;
            for (int j = 0; j < 3 && hidden[i].mask[j]; j++)
                found = found && (bytes[offset + j] & hidden[i].mask[j]) == hidden[i].bytes[j];
            if (found)
                return purity_found(
                    subject, line->address,
                    "the constant of '%.60s' at 0x%llx has the bytes of the instruction %s in it, which a jump could "
                    "reach",
                    line->text, hex(line->address), hidden[i].name);
        }
    return true;
}

/* ---- all of it -------------------------------------------------------------------------------------------------------------- */

bool purity_code_judge(struct purity_subject *subject, json_t *details)
{
    const struct code_listing *listing = subject->listing;
    long indirect = 0;
    for (int i = 0; i < listing->count; i++) {
        const struct code_line *line = &listing->lines[i];
        const char *operands = strchr(line->mnemonic, ' ');
        if (strstr(line->text, "(bad)") || line->text[0] == '.')
            return purity_found(subject, line->address, "the bytes at 0x%llx (%s) are no instruction: data must not be executable",
                                hex(line->address), elf_section_name(subject->image, line->address));
        if (is_refused(subject, line))
            return false;
        if (subject->image->machine == EM_X86_64 &&
            (!judge_segments(subject, line) || !judge_rounding(subject, line) || !judge_constant(subject, line)))
            return false;
        if (!judge_target(subject, line))
            return false;
        indirect += operands && operands[1] == '*' && !line->refers;
    }
    json_put(details, "instructions", json_integer(listing->count));
    json_put(details, "indirect", json_integer(indirect));
    return judge_pointers(subject);
}
