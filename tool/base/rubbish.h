/*
 * rubbish.h - what is in memory before a kernel writes to it: bits that are not a number, zeros, numbers that look like results, or
 * any bits, drawn anew each time, so that a kernel can tell nothing from them.
 */
#ifndef ATTEST_RUBBISH_H
#define ATTEST_RUBBISH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "random.h"

enum rubbish_kind { RUBBISH_NAN, RUBBISH_ZERO, RUBBISH_NUMBERS, RUBBISH_BITS, RUBBISH_KINDS };

/* Word `at` of what this seed draws. */
static inline uint64_t rubbish_word(uint64_t seed, uint64_t at)
{
    const uint64_t signs = UINT64_C(0x8000800080008000), halves = UINT64_C(0x3fff3fff3fff3fff);
    uint64_t bits;
    switch ((enum rubbish_kind)(seed % RUBBISH_KINDS)) {
    case RUBBISH_NAN:
        return UINT64_MAX;
    case RUBBISH_ZERO:
        return 0;
    case RUBBISH_NUMBERS: /* of any type between -2 and 2 */
        bits = (seed + at) * UINT64_C(0x9e3779b97f4a7c15);
        return (bits & (signs | halves)) | UINT64_C(0x3000300030003000);
    default:
        return (seed + at) * UINT64_C(0x9e3779b97f4a7c15);
    }
}

/* A byte for memory that must not be written: none of those that are written most often by mistake, 0, 1 and 0xff. */
static inline unsigned char rubbish_band(uint64_t bits)
{
    return (unsigned char)(2 + bits % 253);
}

static inline void rubbish_fill(void *memory, size_t size, uint64_t seed)
{
    unsigned char *bytes = memory;
    enum rubbish_kind kind = (enum rubbish_kind)(seed % RUBBISH_KINDS);
    if (kind == RUBBISH_NAN || kind == RUBBISH_ZERO) {
        memset(memory, kind == RUBBISH_NAN ? 0xff : 0, size);
        return;
    }
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word = rubbish_word(seed, at / 8);
        memcpy(bytes + at, &word, size - at < 8 ? size - at : 8);
    }
}

#endif
