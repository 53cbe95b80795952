/*
 * cuda_emulation.h - a CUDA candidate for the emulated device (tool/emulation): its images compiled for the CPU, and workers that run
 * them through libattest's own host path.
 */
#ifndef ATTEST_CUDA_EMULATION_H
#define ATTEST_CUDA_EMULATION_H

#include <stdatomic.h>

#include "cuda/cuda_manifest.h"
#include "base/digest.h"
#include "run/executor.h"
#include "build/kernel_constants.h"
#include "evidence/verdict.h"

struct proof;

enum { EMULATION_ORDERS = 5, EMULATION_MOST_DEVICES = 8, EMULATION_MOST_GROUPS = 64 };

/* The images of one dtype and dim, which problems choose from. */
struct emulation_group {
    uint32_t dtype;
    int dim;
    char *index;        /* of its images (cuda_index.h); NULL until they are compiled */
    atomic_int verdict; /* -1 until they are compiled */
};

struct emulated_image;
struct cuda_emulation {
    char *folder;          /* with the driver and the images */
    char *headers;         /* the folder of attest's headers: written once, before several threads preprocess */
    int images, different; /* images, and those with a text of their own */
    atomic_int compiled;
    struct emulated_image *list;        /* [images] */
    struct cuda_configuration *telling; /* [different] the first image of each text */
    struct emulation_group groups[EMULATION_MOST_GROUPS];
    int group_count;
    int devices[EMULATION_MOST_DEVICES]; /* compute capabilities that the images are for: 80, 90 */
    int device_count;
    bool compared;                     /* its images are compiled to be compared, and not to be run */
    struct kernel_constants constants; /* of the first image's text */
    double seconds;                    /* that compiling took, of all threads */
};

/* Preprocesses and rewrites every image of the candidate for the emulated device. PASS; NOT APPLICABLE, with the line, for what cannot
 * be emulated; INCONCLUSIVE if something is missing here. */
enum verdict cuda_emulation_prepare(const struct proof *proof, struct cuda_emulation *emulation, char *why, size_t why_size);
void cuda_emulation_free(struct cuda_emulation *emulation);

/* The group of a problem that the manifest takes, or -1. */
int cuda_emulation_group(const struct proof *proof, const struct cuda_emulation *emulation, const attest_problem *problem);

/* The image of a group that most problems run on a device. */
const struct cuda_configuration *cuda_emulation_image(const struct cuda_emulation *emulation, int group, int device);

/* Compiles the images of a group, if that is not done yet; several threads share the work. Verdicts as above. */
enum verdict cuda_emulation_compile(const struct proof *proof, struct cuda_emulation *emulation, int group, char *why,
                                    size_t why_size);

/* The digest of the code of a group's images, which are compiled to be compared; "" if it cannot be made. */
void cuda_emulation_code(const struct cuda_emulation *emulation, int group, char digest[DIGEST_TEXT]);

/* A worker on the emulated device of this compute capability, with the images of a group that is compiled. Each launch has another order
 * of warps and copies. */
struct executor *cuda_emulation_open(const struct proof *proof, const struct cuda_emulation *emulation, int group, int compute,
                                     enum guard guard, struct execution *execution);

/* What the emulated device said when it stopped, with lines of the source for addresses: of a hazard; of an instruction that it does not
 * have; of memory that this machine lacks. FINDING_NONE: it said nothing. */
enum emulation_finding { FINDING_NONE, FINDING_HAZARD, FINDING_UNKNOWN, FINDING_EXHAUSTED };
enum emulation_finding cuda_emulation_finding(struct executor *executor, char *text, size_t size);

/* Likewise what it noted of a product whose operands changed under it, which matters if the result is used. */
bool cuda_emulation_torn(struct executor *executor, char *text, size_t size);

/* Launches and checked accesses of a worker that has ended. */
void cuda_emulation_counts(struct executor *executor, int64_t *launches, int64_t *accesses);

#endif
