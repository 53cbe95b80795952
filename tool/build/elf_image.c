/*
 * elf_image.c - see elf_image.h.
 */
#include "elf_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/regular_file.h"

enum { MOST_TABLE = 1 << 20 }; /* entries of any table */
#define MOST_BYTES (256u << 20)

static bool fits(const struct elf_image *image, uint64_t offset, uint64_t size)
{
    return offset <= image->size && size <= image->size - offset;
}

/* A copy of a table of the file, which need not be aligned there. NULL if it does not fit or is empty. */
static void *copy_table(const struct elf_image *image, uint64_t offset, uint64_t count, size_t entry)
{
    if (count == 0 || count > MOST_TABLE || !fits(image, offset, count * entry))
        return NULL;
    void *table = malloc(count * entry);
    if (table)
        memcpy(table, image->bytes + offset, count * entry);
    return table;
}

const unsigned char *elf_at(const struct elf_image *image, uint64_t address, uint64_t size)
{
    for (int i = 0; i < image->segment_count; i++) {
        const Elf64_Phdr *segment = &image->segments[i];
        if (segment->p_type == PT_LOAD && address >= segment->p_vaddr && address - segment->p_vaddr <= segment->p_filesz &&
            size <= segment->p_filesz - (address - segment->p_vaddr))
            return image->bytes + segment->p_offset + (address - segment->p_vaddr);
    }
    return NULL;
}

bool elf_tag(const struct elf_image *image, int64_t tag, uint64_t *value)
{
    for (int i = 0; i < image->tag_count; i++)
        if (image->tags[i].d_tag == tag) {
            *value = image->tags[i].d_un.d_val;
            return true;
        }
    return false;
}

const char *elf_string(const struct elf_image *image, uint64_t offset)
{
    uint64_t table = 0, size = 0;
    if (!elf_tag(image, DT_STRTAB, &table) || !elf_tag(image, DT_STRSZ, &size) || offset >= size)
        return "?";
    const unsigned char *at = elf_at(image, table, size);
    return at && memchr(at + offset, 0, size - offset) ? (const char *)at + offset : "?";
}

const struct elf_relocation *elf_relocation_at(const struct elf_image *image, uint64_t address)
{
    for (int i = 0; i < image->relocation_count; i++)
        if (image->relocations[i].at == address)
            return &image->relocations[i];
    return NULL;
}

int elf_section_at(const struct elf_image *image, uint64_t address)
{
    for (int i = 0; i < image->section_count; i++) {
        const Elf64_Shdr *section = &image->sections[i];
        if (section->sh_flags & SHF_ALLOC && !(section->sh_flags & SHF_TLS) && address >= section->sh_addr &&
            address - section->sh_addr < section->sh_size)
            return i;
    }
    return -1;
}

const char *elf_section_name(const struct elf_image *image, uint64_t address)
{
    int section = elf_section_at(image, address);
    return section < 0 ? "no section" : image->section_names[section];
}

bool elf_is_code(const Elf64_Shdr *section)
{
    return section->sh_flags & SHF_ALLOC && section->sh_flags & SHF_EXECINSTR && section->sh_type != SHT_NOBITS && section->sh_size;
}

/* ---- reading ---------------------------------------------------------------------------------------------------------------- */

static bool read_header(struct elf_image *image, Elf64_Ehdr *header, char *why, size_t why_size)
{
    if (image->size < sizeof *header || memcmp(image->bytes, ELFMAG, SELFMAG) != 0) {
        snprintf(why, why_size, "it is no ELF file");
        return false;
    }
    memcpy(header, image->bytes, sizeof *header);
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_type != ET_DYN) {
        snprintf(why, why_size, "it is no 64-bit little-endian shared object");
        return false;
    }
    image->machine = header->e_machine;
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_shentsize != sizeof(Elf64_Shdr) ||
        header->e_shstrndx >= header->e_shnum) {
        snprintf(why, why_size, "it has no section headers, or headers of an unknown size");
        return false;
    }
    image->segments = copy_table(image, header->e_phoff, header->e_phnum, sizeof(Elf64_Phdr));
    image->sections = copy_table(image, header->e_shoff, header->e_shnum, sizeof(Elf64_Shdr));
    image->segment_count = image->segments ? header->e_phnum : 0;
    image->section_count = image->sections ? header->e_shnum : 0;
    if (image->segments && image->sections)
        return true;
    snprintf(why, why_size, "its tables of segments and sections do not fit into the file");
    return false;
}

static bool check_tables(struct elf_image *image, int names, char *why, size_t why_size)
{
    uint64_t end = 0;
    for (int i = 0; i < image->segment_count; i++) {
        const Elf64_Phdr *segment = &image->segments[i];
        if (segment->p_type != PT_LOAD)
            continue;
        if (!fits(image, segment->p_offset, segment->p_filesz) || segment->p_memsz < segment->p_filesz || segment->p_vaddr < end ||
            segment->p_vaddr + segment->p_memsz < segment->p_vaddr || segment->p_vaddr % 4096 != segment->p_offset % 4096) {
            snprintf(why, why_size, "its segment at 0x%llx does not fit into the file or overlaps another",
                     (unsigned long long)segment->p_vaddr);
            return false;
        }
        end = segment->p_vaddr + segment->p_memsz;
    }
    image->section_names = calloc((size_t)image->section_count, sizeof *image->section_names);
    if (!image->section_names)
        return false;
    const Elf64_Shdr *strings = &image->sections[names];
    for (int i = 0; i < image->section_count; i++) {
        const Elf64_Shdr *section = &image->sections[i];
        bool named = strings->sh_type == SHT_STRTAB && fits(image, strings->sh_offset, strings->sh_size) &&
                     section->sh_name < strings->sh_size &&
                     memchr(image->bytes + strings->sh_offset + section->sh_name, 0, strings->sh_size - section->sh_name);
        image->section_names[i] = named ? (const char *)image->bytes + strings->sh_offset + section->sh_name : "?";
        if (elf_is_code(section) && elf_at(image, section->sh_addr, section->sh_size) != image->bytes + section->sh_offset) {
            snprintf(why, why_size, "its section %s is not where its segments say", image->section_names[i]);
            return false;
        }
    }
    return true;
}

static bool read_dynamic(struct elf_image *image, char *why, size_t why_size)
{
    const Elf64_Phdr *dynamic = NULL;
    for (int i = 0; i < image->segment_count; i++)
        if (image->segments[i].p_type == PT_DYNAMIC) {
            if (dynamic) {
                snprintf(why, why_size, "it has two dynamic segments");
                return false;
            }
            dynamic = &image->segments[i];
        }
    const unsigned char *at = dynamic ? elf_at(image, dynamic->p_vaddr, dynamic->p_filesz) : NULL;
    uint64_t count = dynamic ? dynamic->p_filesz / sizeof(Elf64_Dyn) : 0;
    image->tags = at ? copy_table(image, (uint64_t)(at - image->bytes), count, sizeof(Elf64_Dyn)) : NULL;
    if (!image->tags) {
        snprintf(why, why_size, "it has no dynamic section");
        return false;
    }
    while ((uint64_t)image->tag_count < count && image->tags[image->tag_count].d_tag != DT_NULL)
        image->tag_count++;
    for (int i = 0; i < image->tag_count; i++)
        for (int j = 0; j < i; j++)
            if (image->tags[i].d_tag == image->tags[j].d_tag && image->tags[i].d_tag != DT_NEEDED) {
                snprintf(why, why_size, "its dynamic section has the tag 0x%llx twice", (unsigned long long)image->tags[i].d_tag);
                return false;
            }
    return true;
}

static bool read_symbols(struct elf_image *image, char *why, size_t why_size)
{
    uint64_t address = 0, entry = sizeof(Elf64_Sym);
    const Elf64_Shdr *section = NULL;
    elf_tag(image, DT_SYMTAB, &address);
    elf_tag(image, DT_SYMENT, &entry);
    for (int i = 0; i < image->section_count; i++)
        if (image->sections[i].sh_type == SHT_DYNSYM)
            section = &image->sections[i];
    const unsigned char *at = section ? elf_at(image, address, section->sh_size) : NULL;
    uint64_t count = section ? section->sh_size / sizeof(Elf64_Sym) : 0;
    if (!at || section->sh_addr != address || entry != sizeof(Elf64_Sym) || count > MOST_TABLE) {
        snprintf(why, why_size, "its table of dynamic symbols is not where its section headers say");
        return false;
    }
    image->symbols = calloc(count ? count : 1, sizeof *image->symbols);
    if (!image->symbols)
        return false;
    image->symbol_count = (int)count;
    for (int i = 0; i < image->symbol_count; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, at + (size_t)i * sizeof symbol, sizeof symbol);
        image->symbols[i] = (struct elf_symbol){.name = elf_string(image, symbol.st_name),
                                                .binding = ELF64_ST_BIND(symbol.st_info),
                                                .type = ELF64_ST_TYPE(symbol.st_info),
                                                .defined = symbol.st_shndx != SHN_UNDEF,
                                                .value = symbol.st_value};
    }
    return true;
}

static bool add_relocations(struct elf_image *image, int64_t table_tag, int64_t size_tag, char *why, size_t why_size)
{
    uint64_t address = 0, size = 0;
    if (!elf_tag(image, table_tag, &address) || !elf_tag(image, size_tag, &size) || size == 0)
        return true;
    const unsigned char *at = elf_at(image, address, size);
    uint64_t count = size / sizeof(Elf64_Rela);
    struct elf_relocation *grown =
        at && count <= MOST_TABLE
            ? realloc(image->relocations, ((size_t)image->relocation_count + count) * sizeof *image->relocations)
            : NULL;
    if (!grown) {
        snprintf(why, why_size, "its relocations do not fit into the file");
        return false;
    }
    image->relocations = grown;
    for (uint64_t i = 0; i < count; i++) {
        Elf64_Rela entry;
        memcpy(&entry, at + i * sizeof entry, sizeof entry);
        uint64_t symbol = ELF64_R_SYM(entry.r_info);
        if (symbol >= (uint64_t)image->symbol_count && symbol) {
            snprintf(why, why_size, "a relocation names a symbol that is not in its table");
            return false;
        }
        image->relocations[image->relocation_count++] = (struct elf_relocation){.at = entry.r_offset,
                                                                                .type = ELF64_R_TYPE(entry.r_info),
                                                                                .symbol = symbol ? &image->symbols[symbol] : NULL,
                                                                                .addend = (uint64_t)entry.r_addend};
    }
    return true;
}

bool elf_read(const char *path, struct elf_image *image, char *why, size_t why_size)
{
    Elf64_Ehdr header;
    *image = (struct elf_image){0};
    image->bytes = (unsigned char *)regular_file_read(path, MOST_BYTES, &image->size, why, why_size);
    if (!image->bytes)
        return false;
    snprintf(why, why_size, "out of memory");
    return read_header(image, &header, why, why_size) && check_tables(image, header.e_shstrndx, why, why_size) &&
           read_dynamic(image, why, why_size) && read_symbols(image, why, why_size) &&
           add_relocations(image, DT_RELA, DT_RELASZ, why, why_size) &&
           add_relocations(image, DT_JMPREL, DT_PLTRELSZ, why, why_size);
}

void elf_free(struct elf_image *image)
{
    free(image->bytes);
    free(image->segments);
    free(image->sections);
    free((void *)image->section_names);
    free(image->tags);
    free(image->symbols);
    free(image->relocations);
    *image = (struct elf_image){0};
}
