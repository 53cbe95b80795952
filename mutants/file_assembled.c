/*
 * file_assembled.c - planted: has a file of the host put into its image by the assembler.
 *
 * Caught by: build (asm with instructions)
 */
__asm__(".section .rodata\n.incbin \"/etc/passwd\"\n.text");

#define DTYPES ATTEST_TAKES_F32
#include "base.h"
