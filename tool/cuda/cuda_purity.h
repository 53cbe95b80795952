/*
 * cuda_purity.h - a CUDA kernel is a function of its arguments: whether the machine code of an image can be anything else.
 *
 * The rule is judged on the image, because that is what runs: every instruction of the listing (cuobjdump -sass), every special
 * register and every word of the driver's constants that it reads must be in the table cuda_purity.def. What is not in the table is
 * refused, so a new way to read a clock is not allowed because nobody thought of it.
 */
#ifndef ATTEST_CUDA_PURITY_H
#define ATTEST_CUDA_PURITY_H

struct cuda_purity {
    int instructions;
    int refused;           /* instructions that are */
    char first[480];       /* the first of these: function, address, instruction and reason */
    char cluster[200];     /* the first instruction that only blocks of a cluster need; "" if there is none */
    char first_name[64];   /* function and address of `first`, to find its line */
    unsigned long address; /* likewise */
};

/* Judges every instruction of a listing for an architecture (80, 90 ...). */
void cuda_purity_listing(const char *text, int arch, struct cuda_purity *purity);

#endif
