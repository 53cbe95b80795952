/*
 * emulated_flags.c - what a kernel's manifest says for one image, as macros for emulated_kernel.cpp:
 *
 *     emulated_flags KERNEL.cu sm_80 f16 64 > header
 */
#include "prove/cuda_manifest.h"
#include "prove/cuda_resources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the reader of manifests needs of the rest of the workbench. */
const char *nearest_word(const char *word, const char *const *words, int count);
const char *nearest_word(const char *word, const char *const *words, int count)
{
    (void)word, (void)words, (void)count;
    return NULL;
}

void json_put(json_t *object, const char *key, json_t *value);
void json_put(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        uint32_t dtype;
    } dtypes[] = {{"f32", ATTEST_F32}, {"f16", ATTEST_F16}, {"bf16", ATTEST_BF16}};
    static struct cuda_manifest m;
    struct cuda_configuration image;
    uint32_t dtype = 0;
    char why[600] = "usage: emulated_flags KERNEL.cu ARCH DTYPE DIM";
    for (size_t i = 0; argc == 5 && i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(argv[3], dtypes[i].name) == 0)
            dtype = dtypes[i].dtype;
    int arch = argc == 5 ? cuda_arch_find(argv[2]) : -1;
    if (!dtype || arch < 0 || !cuda_manifest_read(argv[1], true, &m, why, sizeof why) ||
        !cuda_configure(&m, arch, dtype, atoi(argv[4]), NULL, &image, why, sizeof why)) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    const int64_t *n = image.numbers;
    printf("#define ATTEST_DTYPE %u\n#define ATTEST_DIM %d\n", dtype, image.dim);
    printf("#define ATTEST_TILE_Q %d\n#define ATTEST_TILE_KV %d\n", (int)n[CUDA_TILE_Q], (int)n[CUDA_TILE_KV]);
    printf("#define ATTEST_STAGES %d\n#define ATTEST_THREADS %d\n", (int)n[CUDA_STAGES], (int)n[CUDA_THREADS]);
    printf("#define EMULATED_LAUNCH %d\n#define EMULATED_MANIFEST {%d, %d, %d, %d, %d, %d, %d, %lluu, %d, %d, %d, %d, %d, {",
           (int)m.launch, (int)m.launch, (int)n[CUDA_CLUSTER], m.packs, m.padding, m.tensor != CUDA_TENSOR_NONE, m.refuses_o32,
           m.refuses_dimv, (unsigned long long)m.refuses, (int)n[CUDA_SPLIT_KEYS], (int)n[CUDA_PARTIAL], (int)n[CUDA_ROWS_MOST],
           (int)n[CUDA_ALIGN], m.map_count);
    for (int i = 0; i < m.map_count; i++)
        printf("{'%c', %d, %d, %d}, ", m.maps[i].tensor, (int)image.map_rows[i], (int)image.map_columns[i], m.maps[i].swizzle);
    printf("}}\n");
    cuda_manifest_free(&m);
    return 0;
}
