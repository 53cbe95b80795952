/*
 * cuda_index.h - the index of a CUDA candidate's images, which the build gate writes and workers load: a JSON file beside the
 * images.
 *
 *     {"kernel", "abi", "summary", "needs": "sm_80,sm_90", "dtypes", "refuses", "launch", "options": as in attest_cuda_kernel,
 *      "maps": [{"tensor", "swizzle"}], "images": {"f16 d64 sm_80": {"file", "sha256", "bytes", "order", "arch", "kind",
 *      "split_keys", "partial", "align", "rows_most", "tiles_most", "cluster", "map_rows", "map_columns", and "rate" unless it is 0}}}
 *
 * What else the host has to know of an image is in the image (ATTEST_CUDA_FACTS).
 */
#ifndef ATTEST_CUDA_INDEX_H
#define ATTEST_CUDA_INDEX_H

#include "cuda_manifest.h"

/* What a manifest says for all images, as an object without "images". New reference. */
json_t *cuda_index_head(const char *kernel, const struct cuda_manifest *manifest);

/* The numbers of one image. `order` counts up from 0 and says which of two images that would do is to run. New reference. */
json_t *cuda_index_image(const struct cuda_configuration *configuration, int order, const char *file, const char *sha256,
                         int64_t bytes);

/* A kernel that was loaded from an index, with the images in memory. */
struct cuda_loaded {
    attest_cuda_kernel kernel;
    char needs[64];
    json_t *index;
    attest_cuda_image *images;
};

/* Images are looked for beside the index, and then as the store of evidence keeps them. False, with a sentence, if the index or an
 * image is not there or not what it was. */
bool cuda_index_load(const char *path, struct cuda_loaded *loaded, char *why, size_t why_size);
void cuda_index_free(struct cuda_loaded *loaded);

#endif
