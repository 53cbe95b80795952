/*
 * stages_save.h - a diagnosis as JSON, as a sentence and as arrays.
 */
#ifndef ATTEST_STAGES_SAVE_H
#define ATTEST_STAGES_SAVE_H

#include "stages_inquiry.h"

/* One line of diagnosis->probes. */
void save_probe(struct diagnosis *diagnosis, const char *name, enum stage stage, bool right, double error, double ratio);

/* diagnosis->heat: log10 of the error, the largest of each cell of at most 64 x 64. */
void save_heat(struct diagnosis *diagnosis, const struct exhibit *exhibit);

/* expected_STAGE.npy, found_STAGE.npy, rows.npy and columns.npy in the folder, which is made if it is not there. */
bool save_arrays(const char *folder, const struct lab *lab, const struct diagnosis *diagnosis, const struct exhibit *exhibit,
                 char *why, size_t why_size);

#endif
