/*
 * mutant_trial.h - what becomes of one mutant: it is written, built and proven in a process of its own.
 */
#ifndef ATTEST_MUTANT_TRIAL_H
#define ATTEST_MUTANT_TRIAL_H

#include "mutant_draw.h"

/* Words for what a mutant came to. */
#define MUTANT_ABSENT     "absent"       /* the edit is in text that this kernel leaves out (#if): drawn again */
#define MUTANT_UNBUILT    "not compiled" /* or not without a warning: drawn again */
#define MUTANT_EQUIVALENT "equivalent"   /* the same image */
#define MUTANT_KILLED     "killed"
#define MUTANT_SURVIVED   "survived"
#define MUTANT_LOST       "lost" /* the proof itself did not end as it should */

struct mutant_trial {
    struct session *session;
    const struct mutant_draw *draw;
    uint64_t seed;
    const char *shared; /* folder for what the trials share: digests of the unchanged kernels */
};

/* In a process of its own, which changes its folder. The result is {"outcome", "gate", "sentence", "screened", "seconds" (of
 * processor time), "undecided"}; a new reference. */
json_t *mutant_try(const struct mutant_trial *trial);

#endif
