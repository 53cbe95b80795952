/*
 * cuda_compile.h - finds and runs the CUDA compiler, and reads what it says.
 */
#ifndef ATTEST_CUDA_COMPILE_H
#define ATTEST_CUDA_COMPILE_H

#include "cuda/cuda_manifest.h"

/* The path of a tool of the toolkit, such as nvcc: $ATTEST_NVCC for nvcc if it is set, else in a folder of PATH that begins with /, else
 * in cuda-tools/bin beside this program, else beside nvcc, else the newest of /usr/local/cuda* /bin. NULL if it is not here. To be
 * freed. No place is one that a candidate's code can write to or name. */
char *cuda_tool_find(const char *name);

/* A sentence that says where a tool was looked for, and what helps. */
void cuda_tool_missing(const char *name, char *text, size_t size);

/* "nvcc release 13.0, V13.0.88", or "" if it does not run. */
void cuda_compiler_version(const char *nvcc, char *text, size_t size);

/* Compiles one image. `headers` is the folder with attest_kernel_cuda.h; the compiler's messages go to `log`. Returns its exit
 * status as build_command does: 124 if it took longer than `seconds`. No line information and no debugging code: the same source
 * gives the same bytes in any folder. With `keep`, a folder, the texts on the way are left there: preprocessed (.ii) and PTX. */
int cuda_compile(const char *nvcc, const char *source, const char *flags, const char *headers,
                 const struct cuda_configuration *configuration, const char *out, const char *keep, double seconds, char *log,
                 size_t log_size);

/* Assembles a .ptx for one architecture (index in cuda_limits). */
int cuda_assemble(const char *ptxas, const char *source, int arch, const char *out, double seconds, char *log, size_t log_size);

/* All flags that images are compiled with, but those of one image; to be freed. */
char *cuda_compile_flags(const char *flags);

/* Digest of every file that the source includes, those of the system and the toolkit aside, and of itself: {"path": sha256}. NULL
 * on failure. */
json_t *cuda_compile_sources(const char *nvcc, const char *source, const char *flags, const char *headers,
                             const struct cuda_configuration *configuration, double seconds);

/* The first line of a log that speaks of an error, else its first line. */
void cuda_first_error(const char *log, char *text, size_t size);

/* What ptxas -v says of one function that can be launched. */
struct cuda_ptxas {
    char name[64];
    char arch[16];
    int64_t registers, barriers, shared, stack, spill_stores, spill_loads; /* -1: not said */
};

/* Reads a log; returns how many functions it speaks of, and stores at most `most` of them. */
int cuda_ptxas_parse(const char *log, struct cuda_ptxas *entries, int most);

#endif
