/*
 * cuda_flags.h - what every CUDA image is compiled with, by the build gate (cuda_compile.c) and by the build of the library
 * (scripts/cuda_images.c): the image that is proven is the image that is shipped.
 */
#ifndef ATTEST_CUDA_FLAGS_H
#define ATTEST_CUDA_FLAGS_H

/* Warnings are errors, for the compiler and for the assembler; spills and local memory are warnings. */
#define CUDA_COMMON_FLAGS "-O3 -Werror all-warnings -Xptxas=-v,-warn-spills,-warn-lmem-usage,-Werror"

/* Of one image: the number of its architecture (80, 90a), twice, then attest_dtype, dim, tile_q, tile_kv, stages and threads. */
#define CUDA_IMAGE_FLAGS                                                                                                           \
    "-gencode=arch=compute_%s,code=sm_%s -DATTEST_DTYPE=%u -DATTEST_DIM=%d -DATTEST_TILE_Q=%lld -DATTEST_TILE_KV=%lld "            \
    "-DATTEST_STAGES=%lld -DATTEST_THREADS=%lld"

#endif
