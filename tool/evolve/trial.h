/*
 * trial.h - one candidate through the stages of a search. These functions run in a process of their own (timed_job.h), one for each
 * candidate and purpose, and return what they found.
 */
#ifndef ATTEST_TRIAL_H
#define ATTEST_TRIAL_H

#include <jansson.h>
#include <stdint.h>

#include "base/session.h"

struct trial_spec {
    struct session *session;
    const char *source; /* path */
    uint32_t dtype;     /* only problems of this dtype; 0: all that the kernel takes */
    const char *suite;  /* file with the problems of the correctness gate; NULL: those of `attest prove` */
    const char *timed;  /* file with the problems of the search */
    uint64_t seed;      /* 0: drawn after the build */
    const char *clock;  /* NULL: the real one; else a model of it */

    const char *start_name, *start_image; /* screening: the kernel that the search began with */
    const json_t *known;                  /* screening: {identity: number of its trial} */

    const char *opponent; /* proof: source of the reigning champion; NULL: the speed is not asked */
    double confidence;    /* proof: of the intervals of the speed gate */
    double gpu_seconds;   /* proof: what is left; 0: no limit */
    bool keep;            /* proof: leave the image where it is, and say where */
};

/* build, oracle, correctness on few problems, and a short timing against the start, which ends at the first that fails:
 *   {"state": "SCREENED" | "REJECTED" | "DUPLICATE" | "INCONCLUSIVE", "stage", "sentence", "gates": [{"gate", "verdict", "sentence",
 *    "seconds"}], "image", "identity", "same_as" (of a duplicate), "score" (log of the ratio), "screen": {"ratio", "low", "high", "shapes"},
 *    "diagnosis", "resources", "gpu_seconds"} */
json_t *trial_screen(void *spec);

/* All gates, and with an opponent the challenge: {"record", "identity", "image": path if it is kept}. The record is also in the run database. */
json_t *trial_prove(void *spec);

/* The build alone: {"image": path} or {"sentence"}. */
json_t *trial_build(void *spec);

#endif
