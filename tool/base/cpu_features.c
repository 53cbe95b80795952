/*
 * cpu_features.c - the names of the features. See cpu_features.h.
 */
#include "cpu_features.h"

#include <stddef.h>

const char *const feature_names[FEATURE_COUNT] = {
#define BASELINE(assembler, processor)
#define FEATURE(id, name, assembler, processor) name,
#include "cpu_features.def"
#undef FEATURE
#undef BASELINE
};
