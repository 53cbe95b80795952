/*
 * claimed_feature.h - instructions of the features that `needs` of a CPU kernel can name, in an image.
 */
#ifndef ATTEST_CLAIMED_FEATURE_H
#define ATTEST_CLAIMED_FEATURE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cpu_features.h"

/* How many instructions of each there are. False, with the reason, if the image cannot be listed. */
bool feature_counts(const char *image, long counts[FEATURE_COUNT], char *why, size_t why_size);

/* Writes a copy of the image to `path` that stops (SIGILL) at every instruction of the feature, or, if it has instructions with the
 * widest registers of the feature, at those: it runs to its end only where it needs none of them. False, with the reason, if that cannot be done. */
bool feature_trap(const char *image, enum feature feature, const char *path, char *why, size_t why_size);

#endif
