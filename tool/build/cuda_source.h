/*
 * cuda_source.h - what a CUDA source could hide from its image: judged on the text that was compiled, which nvcc --keep leaves.
 *
 * The image is what is judged (cuda_purity.h). Three things leave no trace in it: a pragma that silences a warning, a file from
 * somewhere else that was included, and an order to the assembler. Which are allowed is in cuda_purity.def.
 */
#ifndef ATTEST_CUDA_SOURCE_H
#define ATTEST_CUDA_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

/* Where the files of a candidate may be. */
struct cuda_places {
    const char *source;  /* the candidate; files below its folder */
    const char *headers; /* the folder with attest_kernel_cuda.h */
    const char *nvcc;    /* the compiler; files of its toolkit and of the system */
};

/* Judges the preprocessed text, in which lines such as # 1 "file" 1 say where it comes from; false with a sentence that names file
 * and line. */
bool cuda_source_judge(const char *text, const struct cuda_places *places, char *why, size_t why_size);

/* Judges PTX: orders to the assembler, and with `compiled` what text in asm statements declares. */
bool cuda_ptx_judge(const char *text, bool compiled, char *why, size_t why_size);

#endif
