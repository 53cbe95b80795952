/*
 * code_listing.h - the instructions of an image, section by section, as objdump reads the bare bytes in a straight line. Symbols and
 * section types of the image play no part, so that an image cannot choose what is listed.
 */
#ifndef ATTEST_CODE_LISTING_H
#define ATTEST_CODE_LISTING_H

#include "elf_image.h"

struct code_line {
    uint64_t address;
    const char *text;     /* "rep stos %al,%es:(%rdi)"; blanks are single */
    const char *mnemonic; /* in `text`, behind the prefixes: "stos %al,..." */
    uint64_t target;      /* of a direct branch, or of an operand that is relative to the instruction pointer */
    bool branches;        /* `target` is that of a direct branch or call */
    bool refers;          /* `target` is that of an operand */
};

struct code_listing {
    struct code_line *lines; /* by address */
    int count, room;
    char **texts;
    int text_count;
};

/* False, with the reason, if objdump is not there or does not list the image. code_listing_free in either case. */
bool code_listing_make(const char *path, const struct elf_image *image, struct code_listing *listing, char *why, size_t why_size);
void code_listing_free(struct code_listing *listing);

/* The line that begins at an address, or NULL. */
const struct code_line *code_line_at(const struct code_listing *listing, uint64_t address);

/* Whether the first word of an instruction is this one; with a '*' at its end, whether it begins so. */
bool code_line_is(const struct code_line *line, const char *word);

#endif
