/*
 * instruction_sets.h - whether an image has instructions of sub-features that it does not declare: AVX512-VNNI in a kernel that needs
 * avx512, BMI2 in one that needs avx2. The assembler judges: it knows every instruction by the name of its feature.
 */
#ifndef ATTEST_INSTRUCTION_SETS_H
#define ATTEST_INSTRUCTION_SETS_H

#include "evidence/verdict.h"

#include <jansson.h>
#include <stddef.h>

/* `needs` is what the kernel declares. VERDICT_PASS, VERDICT_FAIL with the instruction and its place, or VERDICT_INCONCLUSIVE with what
 * is missing. Puts `checked` (number of distinct instructions) and `features` (names for the assembler) into `details`. */
enum verdict instruction_sets_judge(const char *image, const char *needs, json_t *details, char *why, size_t why_size);

/* The processor for qemu-x86_64 -cpu that has what is declared and nothing else; NULL if qemu emulates no such processor. */
const char *instruction_sets_emulated(const char *needs);

#endif
