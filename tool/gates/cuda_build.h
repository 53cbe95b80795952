/*
 * cuda_build.h - compiles CUDA candidates and holds what came out against what their manifest says.
 */
#ifndef ATTEST_CUDA_BUILD_H
#define ATTEST_CUDA_BUILD_H

#include "cuda/cuda_manifest.h"
#include "gate.h"

/* The build gate of a CUDA candidate. What it puts into `details` is at the head of cuda_build.c. */
void cuda_gate_build(struct proof *proof, struct gate_result *result);

/* The folder with attest_kernel_cuda.h and the device vocabulary: that of the source tree, or one with the copies that the program
 * carries. To be freed; NULL if it cannot be made. */
char *cuda_header_folder(const struct proof *proof);

/* The manifest of a candidate: in its source, or in the .manifest file beside its image. */
bool cuda_candidate_manifest(const struct candidate *candidate, struct cuda_manifest *manifest, char *why, size_t why_size);

#endif
