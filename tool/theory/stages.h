/*
 * stages.h - the black-box stage oracle: which stage of a kernel is the first to go wrong, from the shipped binary, by choosing its
 * inputs. How each stage is made to speak is at the head of stages.c.
 */
#ifndef ATTEST_STAGES_H
#define ATTEST_STAGES_H

#include "run/executor.h"

/* In the order of the computation. A diagnosis is a set of them: those that cannot be told apart from outside. */
enum stage {
    STAGE_S = 1 << 0,             /* scores: Q K^T and the scale, softcap, ALiBi, bias */
    STAGE_MASK = 1 << 1,          /* which keys are seen */
    STAGE_P = 1 << 2,             /* maximum, exponential, sum */
    STAGE_NORMALISATION = 1 << 3, /* division by the sum, the sink */
    STAGE_RESCALE = 1 << 4,       /* what is carried from one tile of keys to the next */
    STAGE_PV = 1 << 5,            /* P V: layout and precision */
    STAGE_EPILOGUE = 1 << 6,      /* writing O and LSE: strides, rounding, heads */
    STAGE_COUNT = 7
};
const char *stage_name(enum stage stage); /* "S", "mask", "P", "normalisation", "rescale", "PV", "epilogue" */

struct diagnosis {
    bool wrong;               /* false: every stage is right */
    unsigned stages;          /* the first wrong stage, or the set that cannot be told apart */
    struct execution trouble; /* if a run did not end in EXECUTION_DONE, that is the diagnosis; REFUSED and LACKING are not wrong */
    int64_t batch, head, row, column; /* first wrong place; -1 unknown */
    bool by_key;                      /* column is a key; else it is an element of O */
    int64_t tile;                     /* keys after which it goes wrong, if it starts at a boundary; else 0 */
    char pattern[128];                /* "every 3rd column", "from key 64 on", "row factor", "columns permuted" ... */
    char cause[320];                  /* the likely cause in one sentence */
    double error;                     /* at that place */
    json_t *probes;                   /* what was asked, with each answer: [{"probe", "stage", "verdict", "error"}, ...] */
    json_t *heat; /* {"rows", "columns", "values": [[...]]}: log10 of the error over rows and columns, at most 64 x 64 */
};

/* Judges a kernel on a problem. Arrays (expected and found, of the first wrong stage) go to `folder` as .npy if it is not NULL. */
bool stages_diagnose(struct subject subject, const attest_problem *problem, uint64_t seed, const char *folder,
                     struct diagnosis *diagnosis, char *why, size_t why_size);
void diagnosis_free(struct diagnosis *diagnosis);

/* An executor as the oracle's subject: tensors stay at their addresses while the problem is the same, so that a result that is kept
 * by address shows; outputs of the worker are poisoned as those of the caller are. */
struct subject stages_subject(struct executor *executor);

/* "the first wrong stage is rescale: ...", and the diagnosis as an object (without probes and trouble); new reference. */
void diagnosis_sentence(const struct diagnosis *diagnosis, char *text, size_t size);
json_t *diagnosis_json(const struct diagnosis *diagnosis);
void stages_text(unsigned stages, char *text, size_t size); /* "S or mask" */

#endif
