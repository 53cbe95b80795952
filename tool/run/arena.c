/*
 * arena.c - tensors in shared memory, with guards (see arena.h).
 *
 * Each tensor has a piece of its own, of whole pages, and the worker maps the pieces with pages between them that cannot be
 * touched. Within its piece a tensor lies
 *   GUARD_BANDS   between bands of at least BAND bytes, at a place that is drawn for each load, a multiple of 64 bytes or, unless it is
 *                 for timing, of its elements alone;
 *   GUARD_END     at the very end, so that the first byte behind it cannot be touched;
 *   GUARD_START   at the very beginning;
 *   GUARD_DRAWN   as one of these: whatever problem is run, nothing beyond a tensor can be counted on. In
 *                 one problem of six all lie alike.
 * What is left of a piece is filled with a byte that is drawn: for inputs most often 0xff, which makes NaN of any type. A kernel cannot
 * tell from any of it in which gate it runs.
 *
 * The file of the inputs is sealed against writing after this process has mapped it: the worker can map it for reading only.
 */
#include "arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/rubbish.h"

enum { BAND = 4096, INPUT_BYTE = 0xff, PLACES = 64 };

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static bool is_output(const struct arena *arena, int tensor)
{
    return arena->list.of[tensor].role & ATTEST_ROLE_OUTPUT;
}

static uint64_t draw(void)
{
    uint64_t bits = 0;
    if (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        bits = 0;
    return bits;
}

/* Where a tensor between bands begins. Every other one of those that need not be aligned is. */
static size_t draw_start(size_t element, bool aligned)
{
    uint64_t bits = draw();
    size_t step = aligned || bits & 1 ? 64 : element;
    return BAND + (bits >> 1) % (64 * PLACES / step) * step;
}

/* In some problems all tensors lie alike, between bands, as an allocator would have it: a header behind the beginning of a page, at its
 * beginning, or at a line of the cache. */
static int draw_alike(enum guard guard, bool aligned)
{
    static const int offsets[] = {0, 64, 16};
    const uint64_t bits = draw();
    return guard == GUARD_DRAWN && bits % 6 == 0 ? offsets[(bits >> 8) % (aligned ? 2 : 3)] : -1;
}

/* Bands show what is written beside a tensor; what is read behind it shows at the end of its pages alone. */
static enum guard draw_guard(bool output)
{
    static const enum guard inputs[] = {GUARD_BANDS, GUARD_END, GUARD_END, GUARD_START},
                            outputs[] = {GUARD_BANDS, GUARD_END, GUARD_BANDS, GUARD_START};
    return (output ? outputs : inputs)[draw() % 4];
}

/* Lays a tensor at the end of its file. */
static void lay(struct arena *arena, int tensor, enum guard asked, bool aligned)
{
    const attest_tensor_info *info = &arena->list.of[tensor];
    const bool output = is_output(arena, tensor);
    const enum guard guard = asked != GUARD_DRAWN ? asked : arena->alike >= 0 ? GUARD_BANDS : draw_guard(output);
    const size_t bytes = (size_t)info->bytes;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), *size = &arena->size[output];
    size_t before = guard != GUARD_BANDS ? 0
                    : arena->alike >= 0  ? (size_t)(BAND + arena->alike)
                                         : draw_start(info->element_size, aligned),
           behind = guard == GUARD_BANDS ? BAND : 0;
    struct piece *piece = &arena->pieces[tensor];
    piece->output = output;
    piece->offset = *size;
    piece->size = (before + bytes + behind + page - 1) / page * page;
    if (!piece->size)
        piece->size = page;
    piece->start = guard == GUARD_END ? piece->size - bytes : before;
    piece->bytes = bytes;
    piece->at = (int64_t)piece->start - info->first_byte;
    *size += piece->size;
}

void *arena_share(size_t size, bool *read_only, int *file)
{
    bool wants = *read_only;
    *file = memfd_create("attest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*file < 0)
        return NULL;
    void *memory = ftruncate(*file, (off_t)size) == 0 ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0) : MAP_FAILED;
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    *read_only = wants && memory != MAP_FAILED && fcntl(*file, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE) == 0;
    bool sealed = memory != MAP_FAILED && (*read_only || fcntl(*file, F_ADD_SEALS, seals) == 0);
    if (sealed && wants) { /* also where the system does not know that seal: a descriptor that cannot write */
        char path[64];
        int writable = *file;
        snprintf(path, sizeof path, "/proc/self/fd/%d", writable);
        *file = open(path, O_RDONLY | O_CLOEXEC);
        close(writable);
        sealed = *file >= 0;
    }
    if (sealed)
        return memory;
    if (memory != MAP_FAILED)
        munmap(memory, size);
    if (*file >= 0)
        close(*file);
    *file = -1;
    return NULL;
}

/* The memory that the system could still give, in bytes. */
static double memory_left(void)
{
    double kilobytes = 1e30;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lf", &kilobytes) == 1)
            break;
    if (file)
        fclose(file);
    return kilobytes * 1024;
}

/* The tensor before this one whose memory this one has as well (contents.def, shared), or itself. */
static int shared_with(const struct arena *arena, const struct inputs *inputs, int tensor)
{
    const void *own = tensor_pointer(&inputs->tensors, &arena->list.of[tensor]);
    for (int before = 0; before < tensor; before++)
        if (arena->pieces[before].size && !is_output(arena, before) &&
            tensor_pointer(&inputs->tensors, &arena->list.of[before]) == own)
            return before;
    return tensor;
}

/* Whether two tensors have one piece of memory. */
static bool is_one_piece(const struct arena *arena, int a, int b)
{
    return arena->pieces[a].size && arena->pieces[b].size && is_output(arena, a) == is_output(arena, b) &&
           arena->pieces[a].offset == arena->pieces[b].offset;
}

bool arena_suits(const struct arena *arena, const struct inputs *inputs)
{
    if (!arena_is_made(arena) || memcmp(&arena->problem, &inputs->problem, sizeof arena->problem) != 0)
        return false;
    for (int tensor = 0; tensor < arena->list.count; tensor++) {
        const int shared = is_output(arena, tensor) ? tensor : shared_with(arena, inputs, tensor);
        for (int before = 0; before < tensor; before++)
            if (is_one_piece(arena, before, tensor) !=
                (shared == before || (shared != tensor && is_one_piece(arena, before, shared))))
                return false;
    }
    return true;
}

bool arena_make(struct arena *arena, const struct inputs *inputs, enum guard guard, bool aligned, char *why, size_t why_size)
{
    const attest_problem *problem = &inputs->problem;
    *arena = (struct arena){.problem = *problem, .alike = draw_alike(guard, aligned), .file = {-1, -1}};
    bool good = tensor_list_get(problem, &arena->list);
    for (int tensor = 0; tensor < arena->list.count && good; tensor++) {
        const attest_tensor_info *info = &arena->list.of[tensor];
        if (!info->present || (!is_output(arena, tensor) && !tensor_pointer(&inputs->tensors, info)))
            continue;
        const int shared = is_output(arena, tensor) ? tensor : shared_with(arena, inputs, tensor);
        if (shared != tensor)
            arena->pieces[tensor] = arena->pieces[shared];
        else
            lay(arena, tensor, guard, aligned);
    }
    double bytes = (double)arena->size[0] + (double)arena->size[1];
    if (bytes > 0.9 * memory_left()) {
        snprintf(why, why_size, "the tensors take another %.1f GiB, and this machine has not so much memory left", bytes / 0x1p30);
        return false;
    }
    struct outputs maps = {0};
    good = good && outputs_make(&maps, inputs);
    arena->owned[tensor_find(&arena->list, "o")] = maps.o_owned;
    arena->owned[tensor_find(&arena->list, "lse")] = maps.lse_owned;
    maps.o_owned = maps.lse_owned = NULL;
    outputs_free(&maps);
    for (int i = 0; i < 2 && good; i++) {
        bool read_only = i == 0;
        good = (arena->memory[i] = arena_share(arena->size[i], &read_only, &arena->file[i])) != NULL;
        arena->sealed = arena->sealed || read_only;
    }
    if (good) {
        uint64_t bits = draw();
        arena->band = rubbish_band(bits >> 8);
        memset(arena->memory[0], bits & 3 ? INPUT_BYTE : (int)(bits >> 16 & 0xff), arena->size[0]);
        memset(arena->memory[1], arena->band, arena->size[1]);
        arena_poison(arena, EXECUTOR_DRAWN);
        return true;
    }
    snprintf(why, why_size, "no shared memory for %.0f bytes: %s", bytes, strerror(errno));
    arena_free(arena);
    return false;
}

void arena_free(struct arena *arena)
{
    for (int i = 0; i < 2 && arena->size[0]; i++) {
        if (arena->memory[i])
            munmap(arena->memory[i], arena->size[i]);
        if (arena->file[i] >= 0)
            close(arena->file[i]);
    }
    for (int tensor = 0; tensor < TENSORS_MOST; tensor++)
        free(arena->owned[tensor]);
    *arena = (struct arena){0};
}

bool arena_is_made(const struct arena *arena)
{
    return arena->memory[0] != NULL;
}

void arena_fill(struct arena *arena, const struct inputs *inputs)
{
    for (int tensor = 0; tensor < arena->list.count; tensor++) {
        const attest_tensor_info *info = &arena->list.of[tensor];
        const struct piece *piece = &arena->pieces[tensor];
        const unsigned char *pointer = tensor_pointer(&inputs->tensors, info);
        if (piece->size && !piece->output && piece->bytes)
            memcpy(arena->memory[0] + piece->offset + piece->start, pointer + info->first_byte, piece->bytes);
    }
    if (!arena->sealed)
        arena->digest = digest_bytes(1, arena->memory[0], arena->size[0]);
}

/* Draws the elements that the problem writes; what is between them stays as it is. */
static void poison_elements(unsigned char *memory, const struct piece *piece, const unsigned char *owned, size_t element)
{
    uint64_t seed = draw();
    size_t count = (size_t)piece->bytes / element, in_word = 8 / element;
    for (size_t i = 0; i < count; i += in_word) {
        uint64_t word = rubbish_word(seed, i / in_word);
        for (size_t j = 0; j < in_word && i + j < count; j++)
            if (owned[i + j])
                memcpy(memory + (i + j) * element, (unsigned char *)&word + j * element, element);
    }
}

void arena_poison(struct arena *arena, int byte)
{
    arena->poison = byte >= 0 ? byte & 0xff : 0xff;
    for (int tensor = 0; tensor < arena->list.count; tensor++) {
        const struct piece *piece = &arena->pieces[tensor];
        unsigned char *memory = arena->memory[1] + piece->offset + piece->start;
        if (!piece->bytes || !piece->output)
            continue;
        memset(memory, arena->poison, (size_t)piece->bytes);
        if (byte == EXECUTOR_DRAWN)
            poison_elements(memory, piece, arena->owned[tensor], arena->list.of[tensor].element_size);
    }
}

static void place_text(const struct arena *arena, int tensor, int64_t at, char *text, size_t size)
{
    const struct piece *piece = &arena->pieces[tensor];
    const char *title = tensor_title(&arena->list.of[tensor]);
    int64_t start = (int64_t)piece->start, end = (int64_t)(piece->start + piece->bytes);
    if (at < start)
        snprintf(text, size, "byte %lld before the start of %s", (long long)(start - at), title);
    else if (at >= end)
        snprintf(text, size, "byte %lld behind the end of %s", (long long)(at - end) + 1, title);
    else
        snprintf(text, size, "byte %lld of %s", (long long)(at - start), title);
}

/* The first of `count` bytes that is not `byte`, or `count`. */
static size_t first_other(const unsigned char *bytes, size_t count, int byte)
{
    if (count == 0 || (bytes[0] == byte && memcmp(bytes, bytes + 1, count - 1) == 0))
        return count;
    size_t at = 0;
    while (bytes[at] == byte)
        at++;
    return at;
}

/* The first byte of a piece that changed and belongs to no row, or the size of the piece. */
static size_t first_change(const struct arena *arena, const struct piece *piece, const unsigned char *owned, size_t element)
{
    const unsigned char *bytes = arena->memory[1] + piece->offset;
    size_t start = (size_t)piece->start, end = start + (size_t)piece->bytes, size = (size_t)piece->size;
    size_t at = first_other(bytes, start, arena->band);
    if (at < start)
        return at;
    for (size_t i = 0; i < piece->bytes / element; i++)
        if (!owned[i]) {
            size_t j = first_other(bytes + start + i * element, element, arena->poison);
            if (j < element)
                return start + i * element + j;
        }
    return end + first_other(bytes + end, size - end, arena->band);
}

static bool piece_intact(const struct arena *arena, int tensor, char *why, size_t why_size)
{
    const struct piece *piece = &arena->pieces[tensor];
    size_t at = first_change(arena, piece, arena->owned[tensor], arena->list.of[tensor].element_size);
    if (at == piece->size)
        return true;
    char text[128];
    bool inside = at >= piece->start && at < piece->start + piece->bytes;
    place_text(arena, tensor, (int64_t)at, text, sizeof text);
    snprintf(why, why_size, "it wrote %s%s", text, inside ? ", in a gap that belongs to no row" : "");
    return false;
}

bool arena_intact(const struct arena *arena, char *why, size_t why_size)
{
    for (int tensor = 0; tensor < arena->list.count; tensor++)
        if (arena->pieces[tensor].size && arena->pieces[tensor].output && !piece_intact(arena, tensor, why, why_size))
            return false;
    if (arena->sealed || digest_bytes(1, arena->memory[0], arena->size[0]) == arena->digest)
        return true;
    snprintf(why, why_size, "it changed its inputs");
    return false;
}

attest_tensors arena_outputs(const struct arena *arena)
{
    attest_tensors tensors = {.size = sizeof tensors};
    for (int tensor = 0; tensor < arena->list.count; tensor++) {
        const struct piece *piece = &arena->pieces[tensor];
        if (piece->size && piece->output)
            tensor_set_pointer(&tensors, &arena->list.of[tensor], arena->memory[1] + piece->offset + piece->at);
    }
    return tensors;
}

int64_t arena_locate(const struct arena *arena, const uint64_t bases[TENSORS_MOST], uint64_t address, char *text, size_t size,
                     bool *input)
{
    const int64_t near = 1 << 16;
    int64_t best = -1;
    for (int tensor = 0; tensor < arena->list.count; tensor++) {
        const struct piece *piece = &arena->pieces[tensor];
        if (!piece->size || !bases[tensor])
            continue;
        int64_t at = (int64_t)(address - bases[tensor]), start = (int64_t)piece->start, end = start + (int64_t)piece->bytes;
        int64_t distance = at < start ? start - at : at >= end ? at - end + 1 : 0;
        if (distance < 0 || distance > near || (best >= 0 && distance >= best))
            continue;
        best = distance;
        *input = !piece->output;
        place_text(arena, tensor, at, text, size);
    }
    return best;
}
