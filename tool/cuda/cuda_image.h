/*
 * cuda_image.h - reads what the build gate has to know from a CUDA image (a cubin, which is an ELF file), with no tool of the
 * toolkit.
 */
#ifndef ATTEST_CUDA_IMAGE_H
#define ATTEST_CUDA_IMAGE_H

#include <attest_kernel_cuda.h>
#include <stdbool.h>

enum { CUDA_MOST_ENTRIES = 4 };

/* One function that can be launched. */
struct cuda_entry {
    char name[64];
    int64_t registers;  /* of a thread */
    int64_t stack;      /* bytes of its frame and of what it calls */
    int64_t shared;     /* static bytes */
    int64_t parameters; /* bytes, without gaps */
    int64_t threads;    /* of a block, at most (__launch_bounds__); 0: it does not say */
    int64_t cluster;    /* blocks of a cluster; 1 unless it says otherwise */
};

struct cuda_image {
    int arch; /* 80, 90 ... */
    struct cuda_entry entries[CUDA_MOST_ENTRIES];
    int entry_count;
    int64_t state;       /* bytes of __device__ variables, which outlive a call */
    char state_name[64]; /* the first of them */
    char import[64];     /* the first symbol that it needs from elsewhere, such as vprintf or malloc; "" for none */
    char odd[320]; /* the first section or symbol that a function of its arguments does not have, with the reason; "" for none */
    int64_t code;  /* bytes of machine code, all of which a listing must show */
    int64_t mma, gmma; /* tensor instructions in its code: of warps, of warp groups; known for architectures up to 9.0 */
    bool has_facts;    /* ATTEST_CUDA_FACTS is in it */
    attest_cuda_facts facts;
};

/* False, with a sentence, if these bytes are no image, or none that this reader understands. Any bytes will do. */
bool cuda_image_parse(const void *data, size_t size, struct cuda_image *image, char *why, size_t why_size);
bool cuda_image_read(const char *path, struct cuda_image *image, char *why, size_t why_size);
const struct cuda_entry *cuda_image_entry(const struct cuda_image *image, const char *name); /* NULL if it is not there */

#endif
