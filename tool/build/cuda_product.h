/*
 * cuda_product.h - one image of a CUDA candidate: what it is to be, and what it is.
 */
#ifndef ATTEST_CUDA_PRODUCT_H
#define ATTEST_CUDA_PRODUCT_H

#include "cuda_compile.h"
#include "cuda/cuda_image.h"
#include "cuda_listing.h"
#include "cuda/cuda_purity.h"
#include "kernel_constants.h"

enum { CUDA_LOG = 8192 };

struct cuda_product {
    struct cuda_configuration configuration; /* `arch` is one whose image is its own */
    char path[512];
    int status; /* of the compiler; 0: done */
    char log[CUDA_LOG];
    struct cuda_image image;                    /* valid if status is 0 */
    struct cuda_ptxas ptxas[CUDA_MOST_ENTRIES]; /* what the assembler said */
    int ptxas_count;                            /* 0 for an image that was built elsewhere */
    struct cuda_listing listing;                /* no instructions: it could not be listed */
    struct cuda_purity purity;                  /* likewise */
    char hidden[400];                           /* what the source would hide from the image (cuda_source.h); "" for nothing */
    struct kernel_constants constants;          /* of its preprocessed text */
};

/* True if the image is what the manifest says; otherwise the sentence that says what it is not. What fits where is judged
 * elsewhere. */
bool cuda_product_judge(const struct cuda_manifest *manifest, const struct cuda_product *product, char *why, size_t why_size);

/* True, with a sentence, if the assembler says that something is spilled or on a stack. */
bool cuda_spill_said(const struct cuda_ptxas *said, char *text, size_t size);

/* What a block of the product uses, by measure. */
struct cuda_use cuda_measured(const struct cuda_product *product);

#endif
