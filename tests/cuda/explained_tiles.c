/*
 * explained_tiles.c - what `attest explain` says of a kernel with two pairs of tiles, for tests/cuda_backend.t, which runs it with
 * the driver that is made up. The library's own kernels are what explain is about, so this one is handed to the functions within.
 */
#include "cuda/gpu.h"

#include <stdio.h>
#include <string.h>

static attest_cuda_image image_make(uint32_t tile_q, uint32_t tile_kv, uint32_t rate, const char *data)
{
    return (attest_cuda_image){
        .arch = 90,
        .kind = ATTEST_CUBIN,
        .facts = {ATTEST_CUDA_ABI, sizeof(attest_cuda_args), ATTEST_F16, 64, tile_q, tile_kv, 2, 128, 1000, 0},
        .align = 16,
        .rate = rate,
        .map_rows = {tile_kv},
        .map_columns = {64},
        .data = data,
        .bytes = strlen(data),
    };
}

int main(void)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"fwd:f16:b1:h1:sq192:skv96:d64", "tiles of 192x96, 1 block of 128 threads"},
        {"fwd:f16:b1:h1:sq128:skv96:d64", "tiles of 128x64 (192x96 would take 12.5 % longer), 1 block of 128 threads"},
        {"fwd:f16:b2:h1:sq192:skv96:d64:page=64,9", "tiles of 128x64 (192x96 does not take it), 4 blocks of 128 threads"},
    };
    const attest_cuda_image images[] = {image_make(192, 96, 100, "image of 192x96"), image_make(128, 64, 75, "image of 128x64")};
    const attest_cuda_kernel kernel = {.abi = ATTEST_CUDA_ABI,
                                       .dtypes = 1u << ATTEST_F16,
                                       .name = "two_pairs",
                                       .launch = ATTEST_LAUNCH_TILE,
                                       .map_count = 1,
                                       .image_count = 2,
                                       .map_tensor = {'k'},
                                       .images = images};
    char why_text[256] = "", text[224];
    struct text why = {why_text, sizeof why_text};
    struct gpu *gpu;
    int wrong = 0;
    if (gpu_open(0, &gpu, why) != ATTEST_OK) {
        puts(why_text);
        return 1;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        attest_problem p;
        const attest_cuda_image *image;
        struct cuda_plan *plan = NULL;
        size_t workspace;
        if (attest_problem_parse(cases[i].line, &p, why_text, sizeof why_text) != ATTEST_OK ||
            cuda_refusal(gpu, &kernel, (struct tile_wish){0}, &p, &image, why) != ATTEST_OK ||
            cuda_plan_create(gpu, &kernel, image, &p, &plan, &workspace, why) != ATTEST_OK) {
            printf("%s: %s\n", cases[i].line, why_text);
            return 1;
        }
        cuda_plan_describe(plan, text, sizeof text);
        if (strcmp(text, cases[i].says) != 0) {
            printf("%s: '%s', not '%s'\n", cases[i].line, text, cases[i].says);
            wrong++;
        }
        cuda_plan_destroy(plan);
    }
    return wrong > 0;
}
