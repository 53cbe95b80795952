/*
 * made_up.h - for the tests of the CUDA backend that need no GPU: tests/cuda_backend.t runs them with a driver that is made up
 * (tests/cuda/fake_driver.c), which writes down what it is told to do. Here are kernels for it that are made up too.
 */
#ifndef MADE_UP_H
#define MADE_UP_H

#include "cuda/fake_cuda.h"
#include "drive.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the driver remembers. */
extern struct fake_cuda *fake;

/* A kernel "made_up" with images of f16 for dims 64 and 128, tiles 32x64 and 48x64 (PTX has the first alone); free() it. */
enum { MOST_IMAGES = 16 };
struct made {
    attest_cuda_kernel kernel;
    attest_cuda_image images[MOST_IMAGES];
};
struct made *kernel_make(uint32_t launch, uint32_t options);

/* The bytes of its images. */
extern const char made_up_code[4][64];

/* A context with this kernel added, unless it is NULL. */
attest_context *context_on(const char *device, const attest_cuda_kernel *kernel);

attest_problem problem_of(const char *line);

/* Places for Q, K, V and O in an arena: ordinary memory, as the fake driver's is. */
extern char arena[1 << 16];
attest_tensors tensors_of(void);

/* The launch that was the last but n. */
const struct fake_launch *launch_back(int n);

/* The context's detail has this in it. */
void says(attest_context *context, const char *part);

/* Whether the library has a kernel for GPUs, and one that is proven: for candidates alone `auto` does not take a GPU. */
bool has_kernels(bool proven);

/* tap_main with the driver that is made up; without it everything is skipped. */
int made_up_main(int argc, char **argv, const struct tap_test *tests, size_t count);

#endif
