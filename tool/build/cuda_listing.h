/*
 * cuda_listing.h - reads a listing of machine code, as cuobjdump -sass prints it, for what no other tool sees: registers that are
 * written while a product under way still reads them, and copies with a cache policy of their own.
 *
 * wgmma may take its first matrix from registers. It reads them while the warp goes on, until a wait for it; PTX calls writing them
 * before that undefined, and the assembler does not keep anybody from it. Results are often right all the same, in every run that is
 * made, and sanitizers do not look at registers.
 *
 * A load, store or copy names a descriptor, desc[UR4], which usually is the one that the driver left in the constants of the launch. With
 * createpolicy or L2::cache_hint it is one of the kernel's own, which can pin lines in the second-level cache beyond the kernel's end.
 * Policies that let lines go first, or treat them as all others, are fine where the listing shows their value.
 */
#ifndef ATTEST_CUDA_LISTING_H
#define ATTEST_CUDA_LISTING_H

#include <stdbool.h>

struct cuda_listing {
    int instructions;
    int products;     /* whose first matrix is in registers */
    int early;        /* instructions that write registers of such a product before the wait for it, on some path */
    char first[160];  /* the first of these, with its address */
    int policies;     /* instructions with a descriptor that is neither the driver's nor a harmless constant, on some path */
    char policy[160]; /* the first of these, with its address */
};

/* Follows every path through every function of the listing. False if there is no memory for it. */
bool cuda_listing_read(const char *text, struct cuda_listing *listing);

#endif
