/*
 * cuda_listing.h - reads a listing of machine code, as cuobjdump -sass prints it, for what no other tool sees: registers that are
 * written while a product under way still reads them.
 *
 * wgmma may take its first matrix from registers. It reads them while the warp goes on, until a wait for it; PTX calls writing them
 * before that undefined, and the assembler does not keep anybody from it. Results are often right all the same, in every run that is
 * made, and sanitizers do not look at registers.
 */
#ifndef ATTEST_CUDA_LISTING_H
#define ATTEST_CUDA_LISTING_H

#include <stdbool.h>

struct cuda_listing {
    int instructions;
    int products;    /* whose first matrix is in registers */
    int early;       /* instructions that write registers of such a product before the wait for it, on some path */
    char first[160]; /* the first of these, with its address */
};

/* Follows every path through every function of the listing. False if there is no memory for it. */
bool cuda_listing_read(const char *text, struct cuda_listing *listing);

#endif
