/*
 * elf_image.h - reads a 64-bit little-endian ELF shared object. The file may be hostile: every offset is checked, and what the
 * dynamic loader would read by other rules than this reader (two dynamic sections, tags twice, tables that do not fit) is refused.
 */
#ifndef ATTEST_ELF_IMAGE_H
#define ATTEST_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_symbol {
    const char *name;
    int binding, type;
    bool defined;
    uint64_t value;
};

struct elf_relocation {
    uint64_t at; /* address of the word that the loader writes */
    uint32_t type;
    const struct elf_symbol *symbol; /* NULL: none */
    uint64_t addend;
};

struct elf_image {
    unsigned char *bytes;
    size_t size;
    uint16_t machine;
    Elf64_Phdr *segments;
    int segment_count;
    Elf64_Shdr *sections;
    int section_count;
    const char **section_names;
    Elf64_Dyn *tags;
    int tag_count;
    struct elf_symbol *symbols; /* of .dynsym */
    int symbol_count;
    struct elf_relocation *relocations; /* DT_RELA and DT_JMPREL */
    int relocation_count;
};

/* False, with the reason, if the file is no such image. elf_free in either case. */
bool elf_read(const char *path, struct elf_image *image, char *why, size_t why_size);
void elf_free(struct elf_image *image);

/* The bytes that the file has for an address range of a segment; NULL if it has none. */
const unsigned char *elf_at(const struct elf_image *image, uint64_t address, uint64_t size);

/* The string of the dynamic string table; "?" if there is none. */
const char *elf_string(const struct elf_image *image, uint64_t offset);

/* The value of a dynamic tag. False if there is none. */
bool elf_tag(const struct elf_image *image, int64_t tag, uint64_t *value);

/* The relocation of a word, or NULL. */
const struct elf_relocation *elf_relocation_at(const struct elf_image *image, uint64_t address);

/* The section (number) that an address lies in, or -1; and its name. */
int elf_section_at(const struct elf_image *image, uint64_t address);
const char *elf_section_name(const struct elf_image *image, uint64_t address);

/* Whether a section holds instructions that are loaded. */
bool elf_is_code(const Elf64_Shdr *section);

#endif
