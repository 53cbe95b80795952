/*
 * cuda_emulation.h - a CUDA candidate for the emulated device (tool/emulation): its images compiled for the CPU, and workers that run
 * them through libattest's own host path.
 */
#ifndef ATTEST_CUDA_EMULATION_H
#define ATTEST_CUDA_EMULATION_H

#include "cuda_manifest.h"
#include "executor.h"
#include "verdict.h"

struct proof;

enum { EMULATION_ORDERS = 5, EMULATION_MOST_DEVICES = 8 };

struct cuda_emulation {
    char *folder; /* with the driver and the images */
    char *index;  /* of the images (cuda_index.h) */
    int images, compiled;
    struct cuda_configuration *different; /* [compiled] the first image of each text */
    int devices[EMULATION_MOST_DEVICES];  /* compute capabilities that the images are for: 80, 90 */
    int device_count;
    double seconds; /* that compiling took */
};

/* Compiles every image of the candidate for the emulated device. PASS; NOT APPLICABLE, with the line, for what cannot be emulated;
 * INCONCLUSIVE if something is missing here. */
enum verdict cuda_emulation_build(const struct proof *proof, struct cuda_emulation *emulation, char *why, size_t why_size);
void cuda_emulation_free(struct cuda_emulation *emulation);

/* A worker on the emulated device of this compute capability. `order` is one of EMULATION_ORDERS, or -1: a new one for every
 * launch. */
struct executor *cuda_emulation_open(const struct proof *proof, const struct cuda_emulation *emulation, int compute, int order,
                                     struct execution *execution);

/* What the emulated device said of a hazard, with lines of the source for addresses; false if it said nothing. *unknown: it met an
 * instruction that it does not have, and the text says where. */
bool cuda_emulation_finding(struct executor *executor, char *text, size_t size, bool *unknown);

/* Likewise what it noted of a product whose operands changed under it, which matters if the result is used. */
bool cuda_emulation_torn(struct executor *executor, char *text, size_t size);

/* Launches and checked accesses of a worker that has ended. */
void cuda_emulation_counts(struct executor *executor, int64_t *launches, int64_t *accesses);

#endif
