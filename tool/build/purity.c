/*
 * purity.c - what an image has beside its instructions: segments, dynamic tags, symbols, relocations, writable memory (purity.h).
 *
 * A kernel is a pure function of its arguments. The image shows it:
 * - No writable memory once it is loaded. Tables of pointers and the GOT are fine as far as they are read-only after relocation
 *   (RELRO). Two things of the toolchain stay writable unless an image is linked with -z now and -nostartfiles, and are allowed if
 *   nothing else is there: the words of the PLT, and the 16 bytes of the compiler's start-up code, which no other instruction may
 *   touch. They stay writable in the worker: a store to an address that was computed could still reach them.
 * - No thread-local memory, no code that runs when it is loaded or unloaded (start_code.c), no IFUNC.
 * - No text relocations, nothing writable and executable, no executable stack, no data in executable segments.
 * - It imports functions of purity_imports.def alone, from the C library, libm, libmvec and libgcc, and exports the entry alone.
 * - Its instructions are those of a computation (purity_code.c).
 *
 * What this does not show: an indirect jump or call may go to an address that was computed. Direct ones, addresses of functions and
 * tables of them are checked; computed ones are held by the worker's filter of system calls (sandbox.c).
 */
#include "purity.h"

#include <attest_kernel.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/report.h"
#include "base/session.h"

bool purity_found(struct purity_subject *subject, uint64_t address, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(subject->finding->sentence, sizeof subject->finding->sentence, format, arguments);
    va_end(arguments);
    subject->finding->address = address;
    return false;
}

bool purity_is_writable(const struct purity_subject *subject, uint64_t address)
{
    for (int i = 0; i < subject->writable_count; i++)
        if (address >= subject->writable[i].begin && address < subject->writable[i].end)
            return true;
    return false;
}

static unsigned long long hex(uint64_t value)
{
    return (unsigned long long)value;
}

/* ---- segments --------------------------------------------------------------------------------------------------------------- */

/* Where the loader ends write access again, in whole pages as the loader does it. */
static struct code_range read_only_range(const struct elf_image *image)
{
    uint64_t page = image->machine == EM_AARCH64 ? 65536 : 4096;
    for (int i = 0; i < image->segment_count; i++) {
        const Elf64_Phdr *segment = &image->segments[i];
        if (segment->p_type == PT_GNU_RELRO)
            return (struct code_range){segment->p_vaddr & ~(page - 1), (segment->p_vaddr + segment->p_memsz) & ~(page - 1)};
    }
    return (struct code_range){0};
}

static void add_writable(struct purity_subject *subject, uint64_t begin, uint64_t end)
{
    if (begin < end && subject->writable_count < COUNT_OF(subject->writable))
        subject->writable[subject->writable_count++] = (struct code_range){begin, end};
}

/* Whether the bytes of an executable segment are instructions, but for zeros between sections and to the end of the last page. */
static bool is_code_alone(struct purity_subject *subject, const Elf64_Phdr *segment)
{
    const struct elf_image *image = subject->image;
    uint64_t begin = segment->p_offset & ~4095ull, end = (segment->p_offset + segment->p_filesz + 4095) & ~4095ull;
    end = end < image->size ? end : image->size;
    for (uint64_t at = begin; at < end; at++) {
        if (!image->bytes[at])
            continue;
        bool code = false;
        for (int i = 0; i < image->section_count && !code; i++) {
            const Elf64_Shdr *section = &image->sections[i];
            code = elf_is_code(section) && at >= section->sh_offset && at - section->sh_offset < section->sh_size;
            if (code)
                at = section->sh_offset + section->sh_size - 1;
        }
        if (!code) {
            uint64_t address = segment->p_vaddr + (at - segment->p_offset);
            return purity_found(subject, address,
                                "data can be executed: the bytes at 0x%llx (%s) are in an executable segment; link with -z "
                                "separate-code",
                                hex(address), elf_section_name(image, address));
        }
    }
    return true;
}

static bool judge_segments(struct purity_subject *subject)
{
    const struct elf_image *image = subject->image;
    struct code_range kept = read_only_range(image);
    bool stack = false;
    int relro = 0;
    for (int i = 0; i < image->segment_count; i++) {
        const Elf64_Phdr *segment = &image->segments[i];
        uint64_t end = segment->p_vaddr + segment->p_memsz;
        bool writes = segment->p_flags & PF_W, runs = segment->p_flags & PF_X;
        relro += segment->p_type == PT_GNU_RELRO;
        if (segment->p_type == PT_TLS)
            return purity_found(subject, segment->p_vaddr,
                                "it has %llu bytes of thread-local storage; a kernel keeps no state between calls",
                                hex(segment->p_memsz));
        if (segment->p_type == PT_GNU_STACK) {
            stack = true;
            if (runs)
                return purity_found(subject, 0, "it asks for an executable stack (nested functions and assembler files do)");
        }
        if (segment->p_type != PT_LOAD)
            continue;
        if (writes && runs)
            return purity_found(subject, segment->p_vaddr, "its segment at 0x%llx is writable and executable",
                                hex(segment->p_vaddr));
        if (runs && image->machine == EM_X86_64 && !is_code_alone(subject, segment))
            return false;
        if (writes && kept.end > segment->p_vaddr && kept.begin < end) {
            add_writable(subject, segment->p_vaddr, kept.begin);
            add_writable(subject, kept.end > segment->p_vaddr ? kept.end : segment->p_vaddr, end);
        } else if (writes) {
            add_writable(subject, segment->p_vaddr, end);
        }
    }
    if (relro > 1)
        return purity_found(subject, 0, "it has two read-only-after-relocation segments");
    if (!stack)
        return purity_found(subject, 0, "it does not say that its stack is not executable (no PT_GNU_STACK)");
    for (int i = 0; i < image->section_count; i++)
        if (image->sections[i].sh_flags & SHF_WRITE && image->sections[i].sh_flags & SHF_EXECINSTR)
            return purity_found(subject, image->sections[i].sh_addr, "its section %s is writable and executable",
                                image->section_names[i]);
    return true;
}

/* ---- dynamic tags ----------------------------------------------------------------------------------------------------------- */

static bool judge_tags(struct purity_subject *subject, json_t *needed)
{
    static const int64_t harmless[] = {
        DT_NEEDED,   DT_PLTRELSZ,  DT_PLTGOT, DT_HASH,       DT_STRTAB,     DT_SYMTAB,       DT_RELA,        DT_RELASZ,
        DT_RELAENT,  DT_STRSZ,     DT_SYMENT, DT_SONAME,     DT_SYMBOLIC,   DT_PLTREL,       DT_JMPREL,      DT_BIND_NOW,
        DT_GNU_HASH, DT_RELACOUNT, DT_VERSYM, DT_VERNEED,    DT_VERNEEDNUM, DT_VERDEF,       DT_VERDEFNUM,   DT_FLAGS,
        DT_FLAGS_1,  DT_INIT,      DT_FINI,   DT_INIT_ARRAY, DT_FINI_ARRAY, DT_INIT_ARRAYSZ, DT_FINI_ARRAYSZ};
    static const struct {
        int64_t tag;
        const char *sentence;
    } named[] = {
        {DT_RPATH, "it names a folder to look for libraries in (RPATH)"},
        {DT_RUNPATH, "it names a folder to look for libraries in (RUNPATH)"},
        {DT_TEXTREL, "the loader has to write into its instructions (text relocations): compile with -fPIC"},
        {DT_PREINIT_ARRAY, "it has functions that run before it is loaded (PREINIT_ARRAY)"},
        {DT_AUDIT, "it names a library that watches the loader (AUDIT)"},
        {DT_DEPAUDIT, "it names a library that watches the loader (DEPAUDIT)"},
        {DT_AUXILIARY, "it names a library that takes its place (AUXILIARY)"},
        {DT_FILTER, "it names a library that takes its place (FILTER)"},
        {DT_REL, "it has relocations without addends (DT_REL), which are not those of this processor"},
        {36 /* DT_RELR */, "it has packed relocations (DT_RELR): link without -z pack-relative-relocs"},
    };
    static const char *const libraries[] = {"libc.so.6", "libm.so.6", "libmvec.so.1", "libgcc_s.so.1"};
    const struct elf_image *image = subject->image;
    for (int i = 0; i < image->tag_count; i++) {
        int64_t tag = image->tags[i].d_tag;
        uint64_t value = image->tags[i].d_un.d_val;
        bool known = false;
        for (int j = 0; j < COUNT_OF(named); j++)
            if (named[j].tag == tag)
                return purity_found(subject, 0, "%s", named[j].sentence);
        for (int j = 0; j < COUNT_OF(harmless); j++)
            known = known || harmless[j] == tag;
        if (!known)
            return purity_found(subject, 0, "its dynamic section has the tag 0x%llx, which is not one that a kernel needs",
                                hex((uint64_t)tag));
        if (tag == DT_FLAGS && value & ~(uint64_t)(DF_BIND_NOW | DF_SYMBOLIC))
            return purity_found(subject, 0,
                                value & DF_TEXTREL
                                    ? "the loader has to write into its instructions (text relocations): compile with -fPIC"
                                    : "its dynamic flags (0x%llx) ask for thread-local storage or another origin",
                                hex(value));
        if (tag == DT_FLAGS_1 && value & ~(uint64_t)(DF_1_NOW | DF_1_GLOBAL | DF_1_NODELETE))
            return purity_found(subject, 0, "its dynamic flags (FLAGS_1 0x%llx) are not those of a kernel", hex(value));
        if (tag == DT_RELAENT && value != sizeof(Elf64_Rela))
            return purity_found(subject, 0, "its relocations have an unknown size");
        if (tag == DT_PLTREL && value != DT_RELA)
            return purity_found(subject, 0, "its PLT has relocations of an unknown kind");
        if (tag != DT_NEEDED)
            continue;
        const char *name = elf_string(image, value);
        bool listed = false;
        for (int j = 0; j < COUNT_OF(libraries); j++)
            listed = listed || strcmp(libraries[j], name) == 0;
        json_add(needed, json_string(name));
        if (!listed)
            return purity_found(subject, 0, "it needs the library %.80s; a kernel needs the C library and libm alone", name);
    }
    return true;
}

/* ---- symbols ---------------------------------------------------------------------------------------------------------------- */

/* Functions of libmvec, which compilers call in loops: _ZGV, instruction set, mask, lanes, arguments, _, name. */
static bool is_vector_maths(const char *name)
{
    return strncmp(name, "_ZGV", 4) == 0 && strspn(name + 4, "bcdeNMv0123456789l") > 3 &&
           name[4 + strspn(name + 4, "bcdeNMv0123456789l")] == '_';
}

static bool is_importable(const char *name, bool weak)
{
    static const char *const listed[] = {
#define IMPORT(name) #name,
#define MATHS(name)  #name, #name "f", #name "l",
#define WEAK(name)
#include "purity_imports.def"
#undef IMPORT
#undef MATHS
#undef WEAK
    };
    static const char *const stubs[] = {
#define IMPORT(name)
#define MATHS(name)
#define WEAK(name) #name,
#include "purity_imports.def"
#undef IMPORT
#undef MATHS
#undef WEAK
    };
    for (int i = 0; i < COUNT_OF(listed); i++)
        if (strcmp(listed[i], name) == 0)
            return true;
    for (int i = 0; weak && i < COUNT_OF(stubs); i++)
        if (strcmp(stubs[i], name) == 0)
            return true;
    return is_vector_maths(name);
}

static bool judge_symbols(struct purity_subject *subject, json_t *exports, json_t *imports)
{
    const struct elf_image *image = subject->image;
    const struct elf_symbol *other = NULL, *wrong = NULL;
    bool entry = false;
    for (int i = 1; i < image->symbol_count; i++) {
        const struct elf_symbol *symbol = &image->symbols[i];
        json_add(symbol->defined ? exports : imports, json_string(symbol->name));
        if (symbol->type == STT_TLS)
            return purity_found(subject, symbol->value, "%.100s is thread-local storage; a kernel keeps no state", symbol->name);
        if (symbol->type == STT_GNU_IFUNC)
            return purity_found(subject, symbol->value, "%.100s is an IFUNC, whose resolver runs when the image is loaded",
                                symbol->name);
        bool is_entry = symbol->defined && strcmp(symbol->name, ATTEST_CPU_KERNEL_ENTRY) == 0;
        entry = entry || is_entry;
        if (symbol->defined && !is_entry && symbol->binding != STB_LOCAL && !other)
            other = symbol;
        if (!symbol->defined && !wrong && !is_importable(symbol->name, symbol->binding == STB_WEAK))
            wrong = symbol;
    }
    if (!entry)
        return purity_found(subject, 0, "it does not export " ATTEST_CPU_KERNEL_ENTRY "; see attest_kernel.h");
    if (other)
        return purity_found(subject, 0,
                            "it exports %.100s too; a kernel exports " ATTEST_CPU_KERNEL_ENTRY " alone: make the rest static",
                            other->name);
    if (wrong)
        return purity_found(
            subject, 0,
            "it imports %.100s; a kernel calls functions of libm, memcpy and its like, and what compilers emit, and "
            "nothing else",
            wrong->name);
    return true;
}

/* ---- relocations and writable memory ---------------------------------------------------------------------------------------- */

enum relocation_kind { RELOCATES_OTHER, RELOCATES_SELF, RELOCATES_SYMBOL, RELOCATES_SLOT };

static enum relocation_kind kind_of(const struct elf_image *image, uint32_t type)
{
    if (image->machine == EM_X86_64)
        return type == R_X86_64_RELATIVE                          ? RELOCATES_SELF
               : type == R_X86_64_GLOB_DAT || type == R_X86_64_64 ? RELOCATES_SYMBOL
               : type == R_X86_64_JUMP_SLOT                       ? RELOCATES_SLOT
                                                                  : RELOCATES_OTHER;
    return type == R_AARCH64_RELATIVE                              ? RELOCATES_SELF
           : type == R_AARCH64_GLOB_DAT || type == R_AARCH64_ABS64 ? RELOCATES_SYMBOL
           : type == R_AARCH64_JUMP_SLOT                           ? RELOCATES_SLOT
                                                                   : RELOCATES_OTHER;
}

static bool is_executable(const struct elf_image *image, uint64_t address)
{
    for (int i = 0; i < image->segment_count; i++) {
        const Elf64_Phdr *segment = &image->segments[i];
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_X && address >= segment->p_vaddr &&
            address - segment->p_vaddr < segment->p_memsz)
            return true;
    }
    return false;
}

static bool judge_relocations(struct purity_subject *subject)
{
    const struct elf_image *image = subject->image;
    for (int i = 0; i < image->relocation_count; i++) {
        const struct elf_relocation *entry = &image->relocations[i];
        enum relocation_kind kind = kind_of(image, entry->type);
        bool ifunc = entry->type == (image->machine == EM_X86_64 ? R_X86_64_IRELATIVE : R_AARCH64_IRELATIVE);
        if (ifunc)
            return purity_found(subject, entry->addend,
                                "it has an IFUNC (resolver at 0x%llx): code that runs when the image is loaded",
                                hex(entry->addend));
        if (kind == RELOCATES_OTHER)
            return purity_found(subject, entry->at, "its relocation of type %u at 0x%llx is not one that a kernel needs",
                                entry->type, hex(entry->at));
        if (is_executable(image, entry->at))
            return purity_found(subject, entry->at, "the loader has to write into its instructions at 0x%llx (text relocations)",
                                hex(entry->at));
        if (kind == RELOCATES_SELF && entry->addend == entry->at)
            subject->handle = entry->at;
        else if (kind == RELOCATES_SELF && purity_is_writable(subject, entry->addend))
            return purity_found(subject, entry->addend, "it has writable static storage at 0x%llx (%s); a kernel keeps no state",
                                hex(entry->addend), elf_section_name(image, entry->addend));
    }
    return true;
}

/* The first section that has memory from an address on, below `end`. */
static int section_from(const struct elf_image *image, uint64_t address, uint64_t end)
{
    int found = -1;
    for (int i = 0; i < image->section_count; i++) {
        const Elf64_Shdr *section = &image->sections[i];
        if (section->sh_flags & SHF_ALLOC && section->sh_size && section->sh_addr < end &&
            section->sh_addr + section->sh_size > address && (found < 0 || section->sh_addr < image->sections[found].sh_addr))
            found = i;
    }
    return found;
}

/* What stays writable must be words of the PLT, or the storage of the start-up code: the address of itself, and a flag behind it. */
static bool judge_storage(struct purity_subject *subject)
{
    const struct elf_image *image = subject->image;
    uint64_t got = 0;
    bool has_got = elf_tag(image, DT_PLTGOT, &got);
    for (int i = 0; i < subject->writable_count; i++) {
        struct code_range range = subject->writable[i];
        for (uint64_t at = range.begin; at < range.end; at += 8) {
            const struct elf_relocation *entry = elf_relocation_at(image, at);
            bool slot = entry && kind_of(image, entry->type) == RELOCATES_SLOT, head = has_got && at - got < 24;
            bool start = subject->handle && (at == subject->handle || at == subject->handle + 8);
            if (slot || head || start)
                continue;
            int section = section_from(image, at, range.end);
            uint64_t begin = section < 0 ? at : image->sections[section].sh_addr;
            uint64_t size = section < 0 ? range.end - at : image->sections[section].sh_size;
            return purity_found(subject, begin + size - 1,
                                "it has %llu bytes of writable static storage at 0x%llx (%s): a kernel keeps no state", hex(size),
                                hex(begin), section < 0 ? "no section" : image->section_names[section]);
        }
    }
    return true;
}

/* ---- all of it -------------------------------------------------------------------------------------------------------------- */

enum purity purity_judge(const char *path, const char *empty, json_t *details, struct purity_finding *finding)
{
    struct elf_image image;
    struct code_listing listing = {0};
    struct purity_subject subject = {.image = &image, .listing = &listing, .finding = finding};
    json_t *exports = json_array(), *imports = json_array(), *needed = json_array();
    *finding = (struct purity_finding){0};
    enum purity purity = PURITY_BROKEN;
    bool good = elf_read(path, &image, finding->sentence, sizeof finding->sentence) && judge_segments(&subject) &&
                judge_symbols(&subject, exports, imports) && judge_tags(&subject, needed) && judge_relocations(&subject) &&
                judge_storage(&subject);
    json_put(details, "exports", exports);
    json_put(details, "imports", imports);
    json_put(details, "needed", needed);
    if (good && !code_listing_make(path, &image, &listing, finding->sentence, sizeof finding->sentence)) {
        good = false;
        purity = PURITY_UNKNOWN;
    }
    if (good) {
        purity = start_code_judge(&subject, empty);
        good = purity == PURITY_HOLDS;
    }
    if (good && !purity_code_judge(&subject, details)) {
        good = false;
        purity = PURITY_BROKEN;
    }
    code_listing_free(&listing);
    elf_free(&image);
    return good ? PURITY_HOLDS : purity;
}
