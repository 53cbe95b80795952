/*
 * build_ahead.h - images that later gates will ask for are compiled beside the first gate, in a process of their own: compilers use one
 * core each, and a proof has to wait for three of them.
 */
#ifndef ATTEST_BUILD_AHEAD_H
#define ATTEST_BUILD_AHEAD_H

#include <stdbool.h>

#include "build.h"

/* Begins to compile these kinds, in this order, in a folder that the caller removes after build_ahead_end. Nothing comes of it if it cannot
 * be done; one source at a time. */
void build_ahead_start(const char *source, const char *flags, const char *folder, const enum build_kind *kinds, int count);

/* Waits for an image and copies it to `out`. False if it was not asked for ahead, or does not compile: then build_image says why. */
bool build_ahead_take(const char *source, const char *flags, enum build_kind kind, const char *out);

/* Ends what is under way. */
void build_ahead_end(void);

#endif
