/*
 * cuda_image.c - a reader for cubin files. See cuda_image.h.
 *
 * A cubin is a 64-bit little-endian ELF file for the machine 190. What we need of it:
 *
 *     .symtab            functions: entries, which have a mark and are defined, and imports, which are not; the object attest_facts
 *     .nv.shared.NAME    static shared memory of an entry; from 9.0 on with the 1 KB in it that the hardware keeps
 *     .nv.info           attributes with the number of a symbol: registers (0x2f), frame size (0x11), stack size (0x12)
 *     .nv.info.NAME      attributes of one entry, among them its parameters (0x17), each with its bytes from bit 18 of the third word on,
 *                        and the blocks of its cluster (0x3d)
 *     .nv.global*        __device__ variables
 *     .nv.constant3      __constant__ variables
 *
 * Sections that are not in cuda_purity.def, symbols from elsewhere and relocations to them are noted: a kernel has none.
 *
 * An attribute is a byte for its form, a byte for its kind, and two bytes that are its value or, with form 4, the size of what
 * follows.
 */
#include "cuda_image.h"

#include <elf.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_resources.h"

enum { MACHINE_CUDA = 190, ENTRY_MARK = 0x10, FORM_HALF = 3, FORM_SIZED = 4 };
enum {
    ATTRIBUTE_MAX_THREADS = 0x05,
    ATTRIBUTE_REQUIRED_THREADS = 0x10,
    ATTRIBUTE_FRAME_SIZE = 0x11,
    ATTRIBUTE_STACK_SIZE = 0x12,
    ATTRIBUTE_PARAMETER = 0x17,
    ATTRIBUTE_REGISTERS = 0x2f,
    ATTRIBUTE_CLUSTER = 0x3d
};
enum { MOST_IMAGE = 64 << 20 };

struct elf {
    const unsigned char *data;
    size_t size;
    Elf64_Ehdr head;
};

/* The bytes of section `index`, or NULL if it is not wholly in the file. A section without bytes in the file has its size in
 * `head`. */
static const unsigned char *section(const struct elf *elf, size_t index, Elf64_Shdr *head)
{
    if (index >= elf->head.e_shnum || elf->head.e_shoff > elf->size ||
        (index + 1) * sizeof *head > elf->size - (size_t)elf->head.e_shoff)
        return NULL;
    memcpy(head, elf->data + elf->head.e_shoff + index * sizeof *head, sizeof *head);
    if (head->sh_type == SHT_NOBITS)
        return elf->data;
    return head->sh_offset > elf->size || head->sh_size > elf->size - (size_t)head->sh_offset ? NULL : elf->data + head->sh_offset;
}

/* The string at `offset` of string section `index`; "" if it is not there. */
static const char *string(const struct elf *elf, size_t index, size_t offset)
{
    Elf64_Shdr head;
    const unsigned char *strings = section(elf, index, &head);
    if (!strings || head.sh_type != SHT_STRTAB || offset >= head.sh_size ||
        !memchr(strings + offset, 0, (size_t)head.sh_size - offset))
        return "";
    return (const char *)strings + offset;
}

static bool find_section(const struct elf *elf, const char *name, Elf64_Shdr *head, const unsigned char **bytes)
{
    for (size_t i = 1; i < elf->head.e_shnum; i++)
        if ((*bytes = section(elf, i, head)) && strcmp(string(elf, elf->head.e_shstrndx, head->sh_name), name) == 0)
            return true;
    return false;
}

static uint32_t word(const unsigned char *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* Calls `each` for the attributes of a section. */
static void attributes(const struct elf *elf, const char *name,
                       void (*each)(void *data, int kind, uint32_t half, const unsigned char *bytes, size_t size), void *data)
{
    Elf64_Shdr head;
    const unsigned char *bytes;
    if (!find_section(elf, name, &head, &bytes) || head.sh_type == SHT_NOBITS)
        return;
    for (size_t at = 0; at + 4 <= head.sh_size;) {
        uint32_t half = (uint32_t)bytes[at + 2] | (uint32_t)bytes[at + 3] << 8;
        int form = bytes[at], kind = bytes[at + 1];
        size_t size = form == FORM_SIZED ? half : 0;
        at += 4;
        if (size > head.sh_size - at)
            return;
        each(data, kind, half, bytes + at, size);
        at += size;
    }
}

/* Attributes of all functions, each with the number of its symbol. */
struct of_symbol {
    uint32_t symbol;
    struct cuda_entry *entry;
};

static void take_of_symbol(void *data, int kind, uint32_t half, const unsigned char *bytes, size_t size)
{
    const struct of_symbol *of = data;
    (void)half;
    if (size < 8 || word(bytes) != of->symbol)
        return;
    if (kind == ATTRIBUTE_REGISTERS)
        of->entry->registers = word(bytes + 4);
    if ((kind == ATTRIBUTE_FRAME_SIZE || kind == ATTRIBUTE_STACK_SIZE) && of->entry->stack < word(bytes + 4))
        of->entry->stack = word(bytes + 4);
}

static void take_of_entry(void *data, int kind, uint32_t half, const unsigned char *bytes, size_t size)
{
    struct cuda_entry *entry = data;
    (void)half;
    if (kind == ATTRIBUTE_PARAMETER && size >= 12)
        entry->parameters += word(bytes + 8) >> 18;
    if ((kind == ATTRIBUTE_MAX_THREADS || kind == ATTRIBUTE_REQUIRED_THREADS) && size >= 12)
        entry->threads = (int64_t)word(bytes) * word(bytes + 4) * word(bytes + 8);
    if (kind == ATTRIBUTE_CLUSTER && size >= 12)
        entry->cluster = (int64_t)word(bytes) * word(bytes + 4) * word(bytes + 8);
}

static void read_entry(const struct elf *elf, struct cuda_image *image, uint32_t symbol, const char *name)
{
    struct cuda_entry entry = {.registers = -1, .cluster = 1};
    char section_name[128];
    Elf64_Shdr head;
    const unsigned char *bytes;
    if (image->entry_count == CUDA_MOST_ENTRIES)
        return;
    snprintf(entry.name, sizeof entry.name, "%s", name);
    attributes(elf, ".nv.info", take_of_symbol, &(struct of_symbol){symbol, &entry});
    snprintf(section_name, sizeof section_name, ".nv.info.%s", name);
    attributes(elf, section_name, take_of_entry, &entry);
    snprintf(section_name, sizeof section_name, ".nv.shared.%s", name);
    if (find_section(elf, section_name, &head, &bytes)) {
        entry.shared = (int64_t)(head.sh_size & INT32_MAX);
        if (image->arch >= 90 && entry.shared >= CUDA_SHARED_RESERVED)
            entry.shared -= CUDA_SHARED_RESERVED;
    }
    image->entries[image->entry_count++] = entry;
}

static void read_facts(const struct elf *elf, struct cuda_image *image, const Elf64_Sym *symbol)
{
    Elf64_Shdr head;
    const unsigned char *bytes = section(elf, symbol->st_shndx, &head);
    if (!bytes || head.sh_type == SHT_NOBITS || symbol->st_size != sizeof image->facts || symbol->st_value > head.sh_size ||
        symbol->st_size > head.sh_size - symbol->st_value)
        return;
    memcpy(&image->facts, bytes + symbol->st_value, sizeof image->facts);
    image->has_facts = true;
}

/* .nv.global and .nv.global.init */
static bool is_state(const struct elf *elf, size_t index)
{
    static const char prefix[] = ".nv.global";
    Elf64_Shdr head;
    return section(elf, index, &head) && strncmp(string(elf, elf->head.e_shstrndx, head.sh_name), prefix, sizeof prefix - 1) == 0;
}

/* ---- what an image may consist of: cuda_purity.def ------------------------------------------------------------------------------ */

static const struct {
    const char *pattern, *reason; /* without a reason: allowed */
} sections[] = {
#define SECTION(pattern)            {pattern, NULL},
#define SECTION_NO(pattern, reason) {pattern, reason},
#include "cuda_purity.def"
};

static const char *section_name(const struct elf *elf, size_t index)
{
    Elf64_Shdr head;
    return section(elf, index, &head) ? string(elf, elf->head.e_shstrndx, head.sh_name) : "";
}

/* Whether a function that can be launched has this name. */
static bool is_entry(const struct cuda_image *image, const char *name)
{
    for (int i = 0; i < image->entry_count; i++)
        if (strcmp(image->entries[i].name, name) == 0)
            return true;
    return false;
}

static const char *section_refused(const struct cuda_image *image, const char *name, const Elf64_Shdr *head)
{
    static const char code[] = ".text.", shared[] = ".nv.shared.";
    const char *reason = "a kind of section that kernels do not have";
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (fnmatch(sections[i].pattern, name, 0) == 0) {
            reason = sections[i].reason;
            break;
        }
    if (reason)
        return reason;
    bool is_code = strncmp(name, code, sizeof code - 1) == 0;
    if (head->sh_flags & SHF_EXECINSTR && !is_code)
        return "code where none is to be";
    if (is_code && image->entry_count < CUDA_MOST_ENTRIES && !is_entry(image, name + sizeof code - 1))
        return "code of a function that is not launched, which only a call through a pointer or a recursion needs";
    if (head->sh_flags & SHF_WRITE && strncmp(name, shared, sizeof shared - 1) != 0)
        return "memory that is written and is not shared memory";
    return NULL;
}

/* Symbols that the driver defines: where shared memory begins. */
static bool is_of_driver(const char *name)
{
    return !*name || strncmp(name, ".nv.reservedSmem.", 17) == 0 || strncmp(name, "__nv_reservedSMEM_", 18) == 0;
}

/* Relocations are to symbols of the image itself. */
static void judge_relocations(const struct elf *elf, size_t index, struct cuda_image *image)
{
    Elf64_Shdr head, table;
    const unsigned char *bytes = section(elf, index, &head), *symbols = NULL;
    if (!bytes || (head.sh_type != SHT_RELA && head.sh_type != SHT_REL))
        return;
    size_t size = head.sh_type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    if (!find_section(elf, ".symtab", &table, &symbols) || table.sh_type != SHT_SYMTAB)
        return;
    for (size_t at = 0; at + size <= head.sh_size && !image->odd[0]; at += size) {
        Elf64_Rel entry;
        Elf64_Sym symbol;
        memcpy(&entry, bytes + at, sizeof entry);
        uint64_t number = ELF64_R_SYM(entry.r_info);
        if (number >= table.sh_size / sizeof symbol) {
            snprintf(image->odd, sizeof image->odd, "a relocation to a symbol that is not there");
            return;
        }
        memcpy(&symbol, symbols + number * sizeof symbol, sizeof symbol);
        const char *name = string(elf, table.sh_link, symbol.st_name);
        if (symbol.st_shndx == SHN_UNDEF && !is_of_driver(name))
            snprintf(image->odd, sizeof image->odd, "a relocation to %.64s, which is not in the image", name);
    }
}

static void judge_sections(const struct elf *elf, struct cuda_image *image)
{
    for (size_t i = 1; i < elf->head.e_shnum && !image->odd[0]; i++) {
        Elf64_Shdr head;
        if (!section(elf, i, &head)) {
            snprintf(image->odd, sizeof image->odd, "section %zu, which lies outside of the file", i);
            return;
        }
        const char *name = section_name(elf, i), *reason = section_refused(image, name, &head);
        if (reason && head.sh_size > 0)
            snprintf(image->odd, sizeof image->odd, "section %.64s: %s", name, reason);
        judge_relocations(elf, i, image);
    }
}

static bool read_symbols(const struct elf *elf, struct cuda_image *image)
{
    Elf64_Shdr head;
    const unsigned char *bytes;
    if (!find_section(elf, ".symtab", &head, &bytes) || head.sh_type != SHT_SYMTAB)
        return false;
    for (size_t i = 1; i < head.sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, bytes + i * sizeof symbol, sizeof symbol);
        const char *name = string(elf, head.sh_link, symbol.st_name);
        bool is_function = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
        if (symbol.st_shndx == SHN_UNDEF && !is_of_driver(name) && !image->import[0])
            snprintf(image->import, sizeof image->import, "%s", name);
        else if (is_function && symbol.st_shndx != SHN_UNDEF && symbol.st_other & ENTRY_MARK)
            read_entry(elf, image, (uint32_t)i, name);
        else if (strcmp(name, ATTEST_CUDA_FACTS_SYMBOL) == 0 && symbol.st_shndx != SHN_UNDEF)
            read_facts(elf, image, &symbol);
        else if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && !image->state_name[0] && is_state(elf, symbol.st_shndx))
            snprintf(image->state_name, sizeof image->state_name, "%s", name);
    }
    return true;
}

/* Counts the tensor instructions of a section of code. From 7.0 to 9.0 an instruction has 16 bytes, and its lowest 9 bits say
 * which it is, as nvdisasm shows. HFMA2.MMA, which is no matrix product, is another. */
static void count_tensor(const unsigned char *bytes, size_t size, struct cuda_image *image)
{
    enum { HMMA = 0x03c, IMMA = 0x037, DMMA = 0x03f, GMMA = 0x1f0, OPCODE = 0x1ff, INSTRUCTION = 16 };
    for (size_t at = 0; at + INSTRUCTION <= size; at += INSTRUCTION) {
        uint32_t opcode = word(bytes + at) & OPCODE;
        image->mma += opcode == HMMA || opcode == IMMA || opcode == DMMA;
        image->gmma += opcode == GMMA;
    }
}

bool cuda_image_parse(const void *data, size_t size, struct cuda_image *image, char *why, size_t why_size)
{
    struct elf elf = {.data = data, .size = size};
    *image = (struct cuda_image){0};
    if (size < sizeof elf.head || memcmp(data, ELFMAG, SELFMAG) != 0 || ((const unsigned char *)data)[EI_CLASS] != ELFCLASS64 ||
        ((const unsigned char *)data)[EI_DATA] != ELFDATA2LSB) {
        snprintf(why, why_size, "it is no cubin: not a 64-bit ELF file");
        return false;
    }
    memcpy(&elf.head, data, sizeof elf.head);
    if (elf.head.e_machine != MACHINE_CUDA || elf.head.e_shentsize != sizeof(Elf64_Shdr)) {
        snprintf(why, why_size, "it is no cubin: an ELF file for machine %d, not for CUDA's %d", elf.head.e_machine, MACHINE_CUDA);
        return false;
    }
    /* Where the number of the architecture is moved with version 8 of the format. */
    image->arch = (int)(elf.head.e_flags >> (elf.head.e_ident[EI_ABIVERSION] >= 8 ? 8 : 0) & 0xff);
    if (!read_symbols(&elf, image)) {
        snprintf(why, why_size, "the cubin has no symbols that can be read");
        return false;
    }
    for (size_t i = 1; i < elf.head.e_shnum; i++) {
        Elf64_Shdr head;
        const unsigned char *bytes = section(&elf, i, &head);
        if (is_state(&elf, i) && bytes)
            image->state += (int64_t)(head.sh_size & INT32_MAX);
        if (bytes && head.sh_type != SHT_NOBITS && strncmp(string(&elf, elf.head.e_shstrndx, head.sh_name), ".text.", 6) == 0) {
            count_tensor(bytes, head.sh_size, image);
            image->code += (int64_t)(head.sh_size & INT32_MAX);
        }
    }
    judge_sections(&elf, image);
    return true;
}

bool cuda_image_read(const char *path, struct cuda_image *image, char *why, size_t why_size)
{
    FILE *file = fopen(path, "rb");
    char *data = file ? malloc(MOST_IMAGE) : NULL;
    size_t size = data ? fread(data, 1, MOST_IMAGE, file) : 0;
    bool read = data && !ferror(file);
    if (!read)
        snprintf(why, why_size, "%s cannot be read: %s", path, strerror(errno));
    if (file)
        fclose(file);
    read = read && cuda_image_parse(data, size, image, why, why_size);
    free(data);
    return read;
}

const struct cuda_entry *cuda_image_entry(const struct cuda_image *image, const char *name)
{
    for (int i = 0; i < image->entry_count; i++)
        if (strcmp(image->entries[i].name, name) == 0)
            return &image->entries[i];
    return NULL;
}
