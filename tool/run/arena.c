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

static const char *const names[PLACE_COUNT] = {
    "Q", "K",  "V", "the bias", "the ALiBi slopes", "the sinks", "cu_seqlens_q", "cu_seqlens_kv", "kv_lengths", "the page table",
    "O", "LSE"};

/* What an input consists of. */
struct source {
    const void *data;
    size_t bytes;
    int64_t at; /* of the tensor's pointer, from data on */
};

static struct source buffer_source(const struct buffer *buffer)
{
    return (struct source){buffer->base, buffer->bytes, (unsigned char *)buffer->at - buffer->base};
}

static struct source find_source(const struct inputs *inputs, enum tensor_place place)
{
    const attest_problem *problem = &inputs->problem;
    size_t batch = (size_t)problem->batch, heads = (size_t)problem->heads_q;
    switch (place) {
    case PLACE_Q:
        return buffer_source(&inputs->q);
    case PLACE_K:
        return buffer_source(&inputs->k);
    case PLACE_V:
        return buffer_source(&inputs->v);
    case PLACE_BIAS:
        return buffer_source(&inputs->bias);
    case PLACE_SLOPES:
        return (struct source){inputs->slopes, heads * 4, 0};
    case PLACE_SINKS:
        return (struct source){inputs->sinks, heads * 4, 0};
    case PLACE_CU_Q:
        return (struct source){inputs->cu_q, (batch + 1) * 4, 0};
    case PLACE_CU_KV:
        return (struct source){inputs->cu_kv, (batch + 1) * 4, 0};
    case PLACE_LENGTHS:
        return (struct source){inputs->lengths, batch * 4, 0};
    case PLACE_PAGES:
        return (struct source){inputs->pages, (size_t)inputs->page_entries * 4, 0};
    default:
        return (struct source){0};
    }
}

static uint64_t draw(void)
{
    uint64_t bits = 0;
    if (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        bits = 0;
    return bits;
}

/* Bytes of an element of the tensor, which its address is a multiple of. */
static size_t element_of(const attest_problem *problem, enum tensor_place place)
{
    return place <= PLACE_V      ? element_size(problem->dtype)
           : place == PLACE_BIAS ? element_size(problem->dtype_bias)
           : place == PLACE_O    ? element_size(problem->dtype_o)
                                 : 4;
}

/* Where a tensor between bands begins. Every other one of those that need not be aligned is. */
static size_t draw_start(const attest_problem *problem, enum tensor_place place, bool aligned)
{
    uint64_t bits = draw();
    size_t step = aligned || bits & 1 ? 64 : element_of(problem, place);
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
static enum guard draw_guard(enum tensor_place place)
{
    static const enum guard inputs[] = {GUARD_BANDS, GUARD_END, GUARD_END, GUARD_START},
                            outputs[] = {GUARD_BANDS, GUARD_END, GUARD_BANDS, GUARD_START};
    return (place < PLACE_O ? inputs : outputs)[draw() % 4];
}

/* Lays a tensor of so many bytes at the end of its file. `at` is where its pointer is, from its first byte on. */
static void lay(struct arena *arena, enum tensor_place place, enum guard asked, bool aligned, size_t bytes, int64_t at)
{
    const enum guard guard = asked != GUARD_DRAWN ? asked : arena->alike >= 0 ? GUARD_BANDS : draw_guard(place);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), *size = &arena->size[place >= PLACE_O];
    size_t before = guard != GUARD_BANDS ? 0
                    : arena->alike >= 0  ? (size_t)(BAND + arena->alike)
                                         : draw_start(&arena->problem, place, aligned),
           behind = guard == GUARD_BANDS ? BAND : 0;
    struct piece *piece = &arena->pieces[place];
    piece->offset = *size;
    piece->size = (before + bytes + behind + page - 1) / page * page;
    if (!piece->size)
        piece->size = page;
    piece->start = guard == GUARD_END ? piece->size - bytes : before;
    piece->bytes = bytes;
    piece->at = (int64_t)piece->start + at;
    *size += piece->size;
}

static bool lay_output(struct arena *arena, enum tensor_place place, enum guard guard, bool aligned, char letter, uint32_t dtype)
{
    int64_t first = 0, count = 0;
    if (attest_problem_extent(&arena->problem, letter, &first, &count) != ATTEST_OK)
        return false;
    size_t size = element_size(dtype);
    lay(arena, place, guard, aligned, (size_t)count * size, count ? -first * (int64_t)size : 0);
    return true;
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

/* The tensor whose memory this one has as well (contents.def, shared), or itself. */
static enum tensor_place shared_with(const struct inputs *inputs, enum tensor_place place)
{
    const attest_tensors *tensors = &inputs->tensors;
    if (place == PLACE_V && tensors->v == tensors->k)
        return PLACE_K;
    if (place == PLACE_SINKS && tensors->sinks == tensors->alibi_slopes)
        return PLACE_SLOPES;
    return place == PLACE_CU_KV && tensors->cu_seqlens_kv == tensors->cu_seqlens_q ? PLACE_CU_Q : place;
}

bool arena_make(struct arena *arena, const struct inputs *inputs, enum guard guard, bool aligned, char *why, size_t why_size)
{
    const attest_problem *problem = &inputs->problem;
    *arena = (struct arena){.problem = *problem, .alike = draw_alike(guard, aligned), .file = {-1, -1}};
    for (int place = 0; place < PLACE_O; place++) {
        struct source source = find_source(inputs, (enum tensor_place)place);
        const enum tensor_place shared = shared_with(inputs, (enum tensor_place)place);
        if (source.data && shared != (enum tensor_place)place)
            arena->pieces[place] = arena->pieces[shared];
        else if (source.data)
            lay(arena, (enum tensor_place)place, guard, aligned, source.bytes, source.at);
    }
    bool good = lay_output(arena, PLACE_O, guard, aligned, 'o', problem->dtype_o);
    if (problem->flags & ATTEST_LSE)
        good = lay_output(arena, PLACE_LSE, guard, aligned, 'l', ATTEST_F32) && good;
    double bytes = (double)arena->size[0] + (double)arena->size[1];
    if (bytes > 0.9 * memory_left()) {
        snprintf(why, why_size, "the tensors take another %.1f GiB, and this machine has not so much memory left", bytes / 0x1p30);
        return false;
    }
    struct outputs maps = {0};
    good = good && outputs_make(&maps, inputs);
    arena->owned[0] = maps.o_owned;
    arena->owned[1] = maps.lse_owned;
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
        free(arena->owned[i]);
    }
    *arena = (struct arena){0};
}

bool arena_is_made(const struct arena *arena)
{
    return arena->memory[0] != NULL;
}

void arena_fill(struct arena *arena, const struct inputs *inputs)
{
    for (int place = 0; place < PLACE_O; place++) {
        const struct piece *piece = &arena->pieces[place];
        struct source source = find_source(inputs, (enum tensor_place)place);
        if (piece->size && source.bytes)
            memcpy(arena->memory[0] + piece->offset + piece->start, source.data, source.bytes);
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
    for (int place = PLACE_O; place < PLACE_COUNT; place++) {
        const struct piece *piece = &arena->pieces[place];
        unsigned char *memory = arena->memory[1] + piece->offset + piece->start;
        if (!piece->bytes)
            continue;
        memset(memory, arena->poison, (size_t)piece->bytes);
        if (byte == EXECUTOR_DRAWN)
            poison_elements(memory, piece, arena->owned[place - PLACE_O], element_of(&arena->problem, (enum tensor_place)place));
    }
}

static void place_text(const struct piece *piece, int place, int64_t at, char *text, size_t size)
{
    int64_t start = (int64_t)piece->start, end = (int64_t)(piece->start + piece->bytes);
    if (at < start)
        snprintf(text, size, "byte %lld before the start of %s", (long long)(start - at), names[place]);
    else if (at >= end)
        snprintf(text, size, "byte %lld behind the end of %s", (long long)(at - end) + 1, names[place]);
    else
        snprintf(text, size, "byte %lld of %s", (long long)(at - start), names[place]);
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

static bool piece_intact(const struct arena *arena, int place, char *why, size_t why_size)
{
    const struct piece *piece = &arena->pieces[place];
    size_t element = element_size(place == PLACE_O ? arena->problem.dtype_o : ATTEST_F32);
    size_t at = first_change(arena, piece, arena->owned[place - PLACE_O], element);
    if (at == piece->size)
        return true;
    char text[128];
    bool inside = at >= piece->start && at < piece->start + piece->bytes;
    place_text(piece, place, (int64_t)at, text, sizeof text);
    snprintf(why, why_size, "it wrote %s%s", text, inside ? ", in a gap that belongs to no row" : "");
    return false;
}

bool arena_intact(const struct arena *arena, char *why, size_t why_size)
{
    for (int place = PLACE_O; place < PLACE_COUNT; place++)
        if (arena->pieces[place].size && !piece_intact(arena, place, why, why_size))
            return false;
    if (arena->sealed || digest_bytes(1, arena->memory[0], arena->size[0]) == arena->digest)
        return true;
    snprintf(why, why_size, "it changed its inputs");
    return false;
}

static void *pointer(const struct arena *arena, enum tensor_place place)
{
    const struct piece *piece = &arena->pieces[place];
    return piece->size ? arena->memory[1] + piece->offset + piece->at : NULL;
}

attest_tensors arena_outputs(const struct arena *arena)
{
    return (attest_tensors){.size = sizeof(attest_tensors), .o = pointer(arena, PLACE_O), .lse = pointer(arena, PLACE_LSE)};
}

int64_t arena_locate(const struct arena *arena, const uint64_t bases[PLACE_COUNT], uint64_t address, char *text, size_t size,
                     bool *input)
{
    const int64_t near = 1 << 16;
    int64_t best = -1;
    for (int place = 0; place < PLACE_COUNT; place++) {
        const struct piece *piece = &arena->pieces[place];
        if (!piece->size || !bases[place])
            continue;
        int64_t at = (int64_t)(address - bases[place]), start = (int64_t)piece->start, end = start + (int64_t)piece->bytes;
        int64_t distance = at < start ? start - at : at >= end ? at - end + 1 : 0;
        if (distance < 0 || distance > near || (best >= 0 && distance >= best))
            continue;
        best = distance;
        *input = place < PLACE_O;
        place_text(piece, place, at, text, size);
    }
    return best;
}
