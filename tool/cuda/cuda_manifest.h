/*
 * cuda_manifest.h - what a CUDA kernel says of itself: read from its head comment or its .manifest file, checked, and put to use.
 * include/attest_kernel_cuda.h explains the keys.
 */
#ifndef ATTEST_CUDA_MANIFEST_H
#define ATTEST_CUDA_MANIFEST_H

#include <attest_kernel_cuda.h>
#include <jansson.h>

#include "cuda_resources.h"

/* The keys whose values are numbers, in the order in which they may use each other: the first four are names in expressions. */
enum cuda_number {
    CUDA_TILE_Q,
    CUDA_TILE_KV,
    CUDA_STAGES,
    CUDA_THREADS,
    CUDA_SHARED,
    CUDA_THREAD_REGISTERS_MOST,
    CUDA_BLOCKS_PER_SM,
    CUDA_SPLIT_KEYS,
    CUDA_PARTIAL,
    CUDA_ROWS_MOST,
    CUDA_TILES_MOST,
    CUDA_RATE,
    CUDA_CLUSTER,
    CUDA_ALIGN,
    CUDA_MMA_QK,
    CUDA_MMA_PV,
    CUDA_NUMBER_COUNT
};
enum {
    CUDA_SPACE_NUMBERS = CUDA_THREADS + 1,
    CUDA_MOST_VALUES = 16,
    CUDA_MOST_TILES = 16,
    CUDA_MOST_RULES = 96,
    CUDA_EXPRESSION_TEXT = 128
};

enum cuda_tensor_pipe { CUDA_TENSOR_NONE, CUDA_TENSOR_HMMA, CUDA_TENSOR_GMMA };

/* One line with a number: its value where the conditions hold. */
struct cuda_rule {
    enum cuda_number number;
    int arch;       /* index in cuda_limits; -1: any */
    uint32_t dtype; /* 0: any */
    int dim;        /* 0: any */
    int line;
    char text[CUDA_EXPRESSION_TEXT];
};

struct cuda_map {
    char tensor; /* 'q', 'k', 'v' or 'o' */
    char rows[CUDA_EXPRESSION_TEXT], columns[CUDA_EXPRESSION_TEXT];
    int swizzle, line;
};

struct cuda_values {
    int count;
    int values[CUDA_MOST_VALUES];
};

/* A pair of tile_q and tile_kv. */
struct cuda_tile {
    int q, kv;
    int dim; /* it is for; 0: any */
    int line;
};

struct cuda_manifest {
    char path[256]; /* for messages */
    char name[128]; /* "" unless given */
    char summary[256];
    char flags[512];   /* for nvcc; "" for none */
    unsigned archs;    /* bits: 1 << index in cuda_limits */
    unsigned dtypes;   /* bits: 1 << attest_dtype */
    uint64_t refuses;  /* flags of problems */
    bool refuses_o32;  /* an O of another type than Q */
    bool refuses_dimv; /* a dim_v that is not dim */
    bool padding, packs, pdl;
    attest_cuda_launch launch;
    enum cuda_tensor_pipe tensor;
    struct cuda_values dims;
    struct cuda_tile tiles[CUDA_MOST_TILES]; /* beside tile_q x tile_kv */
    int tile_count;
    struct cuda_values space[CUDA_SPACE_NUMBERS]; /* what a search may try; count 0: nothing but the manifest's value */
    struct cuda_map maps[ATTEST_CUDA_MAPS];
    int map_count;
    struct cuda_rule rules[CUDA_MOST_RULES];
    int rule_count;
    json_t *lines; /* {"tile_kv [d256]": "32", ...}, as written; for evidence */
};

/* Reads the manifest of a source (the lines `attest-cuda:` of its first comment) or of a manifest file (all lines). On failure
 * `why` says where, what is wrong and what to write. `text` need not end in a zero byte. */
bool cuda_manifest_parse(const char *text, size_t size, const char *path, bool is_source, struct cuda_manifest *manifest, char *why,
                         size_t why_size);
bool cuda_manifest_read(const char *path, bool is_source, struct cuda_manifest *manifest, char *why, size_t why_size);
void cuda_manifest_free(struct cuda_manifest *manifest);

/* ---- one image ------------------------------------------------------------------------------------------------------------------
 */

/* What one image is compiled for, and its numbers. */
struct cuda_configuration {
    int arch; /* index in cuda_limits */
    uint32_t dtype;
    int dim;
    int tile; /* 0: tile_q x tile_kv; n: pair n of `tiles`, counted from 1 */
    int64_t numbers[CUDA_NUMBER_COUNT];
    int64_t map_rows[ATTEST_CUDA_MAPS], map_columns[ATTEST_CUDA_MAPS];
};

/* Evaluates the manifest. `chosen` (may be NULL) are values for the first CUDA_SPACE_NUMBERS numbers, as a search chooses them.
 * False, with a sentence, if a number is missing, is no number or is out of range. */
bool cuda_configure(const struct cuda_manifest *manifest, int arch, uint32_t dtype, int dim, const int64_t *chosen,
                    struct cuda_configuration *configuration, char *why, size_t why_size);

/* Whether `tiles` has pair `tile`, counted from 1, for this dim; 0, which is tile_q x tile_kv, is always there. */
bool cuda_has_tile(const struct cuda_manifest *manifest, int dim, int tile);

/* The same as cuda_configure with a pair that is there, and with what the manifest says otherwise. */
bool cuda_configure_tile(const struct cuda_manifest *manifest, int arch, uint32_t dtype, int dim, int tile,
                         struct cuda_configuration *configuration, char *why, size_t why_size);

/* Every image that the manifest promises for `dtype` (0: for all of them), architecture by architecture, and there by dtype, dim
 * and tile. `arch` of a configuration is the one whose image it is (sm_80 for 8.9); the numbers are those of the first architecture
 * of the manifest that runs it. Pairs of tiles that are tile_q x tile_kv anyway are left out. Returns how many there are, or -1
 * with a sentence, also if they are more than `most`. */
int cuda_manifest_images(const struct cuda_manifest *manifest, uint32_t dtype, struct cuda_configuration *images, int most,
                         char *why, size_t why_size);

/* Query heads that share a tile: those of a KV head where the kernel packs them and its tiles hold whole groups, else 1. */
int64_t cuda_configuration_pack(const struct cuda_manifest *manifest, const struct cuda_configuration *configuration,
                                const attest_problem *problem);

/* What a block uses as the manifest predicts it: registers at their bound. */
struct cuda_use cuda_predicted(const struct cuda_configuration *configuration);

/* Calls `each` for every choice in the declared space for one architecture, dtype and dim. `why` is NULL if it fits there, else the
 * sentence that says why not. Returns the number of choices. */
int cuda_space_visit(const struct cuda_manifest *manifest, int arch, uint32_t dtype, int dim,
                     void (*each)(void *data, const struct cuda_configuration *configuration, const char *why), void *data);

/* "f16", "sm_80" and so on in words: "f16 d64 sm_80", and with another pair of tiles "f16 d64 48x64 sm_80". */
void cuda_configuration_name(const struct cuda_configuration *configuration, char *text, size_t size);
const char *cuda_dtype_name(uint32_t dtype);
const char *cuda_number_name(enum cuda_number number);

/* Features of problems that a manifest can refuse: the word it writes, and how a sentence says it. */
struct cuda_feature {
    const char *word;
    uint64_t flag;
    const char *said;
};
extern const struct cuda_feature cuda_features[];
extern const int cuda_feature_count;

/* ---- problems -------------------------------------------------------------------------------------------------------------------
 */

/* NULL if the kernel takes the problem; else the sentence that says why not, in `text`. */
const char *cuda_manifest_refusal(const struct cuda_manifest *manifest, const attest_problem *problem, char *text, size_t size);

/* The one of `dims` that runs a problem that is not refused. */
int cuda_manifest_instance(const struct cuda_manifest *manifest, const attest_problem *problem);

#endif
