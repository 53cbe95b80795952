/*
 * purity.h - a CPU kernel is a pure function: no state, environment, clock, file or identity. Judged on the image, before any of it
 * runs, for kernels from a source and for prebuilt ones alike. The rules are at the head of purity.c.
 */
#ifndef ATTEST_PURITY_H
#define ATTEST_PURITY_H

#include <jansson.h>

#include "code_listing.h"
#include "elf_image.h"

enum purity { PURITY_HOLDS, PURITY_BROKEN, PURITY_UNKNOWN };

struct purity_finding {
    char sentence[480]; /* what is wrong, or what is missing to find out */
    uint64_t address;   /* of what is wrong; 0: of nothing in particular */
};

/* `empty` is an image that the compiler made of an empty source, to know its start-up code by; NULL: there is no compiler. Fills
 * `details`: imports, exports, needed (libraries), instructions, indirect (number of indirect jumps and calls). */
enum purity purity_judge(const char *path, const char *empty, json_t *details, struct purity_finding *finding);

/* ---- between purity.c, purity_code.c and start_code.c ------------------------------------------------------------------------- */

struct code_range {
    uint64_t begin, end;
};
enum { START_RANGES = 3 };

struct purity_subject {
    const struct elf_image *image;
    const struct code_listing *listing;
    struct purity_finding *finding;
    struct code_range writable[8]; /* memory that stays writable once the image is loaded */
    int writable_count;
    uint64_t handle;                       /* address of __dso_handle of the start-up code; 0: none */
    struct code_range start[START_RANGES]; /* the start-up code, once it has been compared */
    int start_count;
};

/* Notes what is wrong; returns false. */
bool purity_found(struct purity_subject *subject, uint64_t address, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool purity_is_writable(const struct purity_subject *subject, uint64_t address);

/* Compares constructors, destructors, .init and .fini with those of an empty image; PURITY_UNKNOWN if there is no such image and the
 * subject has some. */
enum purity start_code_judge(struct purity_subject *subject, const char *empty);

/* All rules on instructions. */
bool purity_code_judge(struct purity_subject *subject, json_t *details);

#endif
