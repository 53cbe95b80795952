/*
 * cpu_features.h - the features that `needs` of a CPU kernel can name, in the order in which each builds on those before it.
 */
#ifndef ATTEST_CPU_FEATURES_H
#define ATTEST_CPU_FEATURES_H

enum feature {
#define BASELINE(assembler, processor)
#define FEATURE(id, name, assembler, processor) FEATURE_##id,
#include "cpu_features.def"
#undef FEATURE
#undef BASELINE
    FEATURE_COUNT
};

extern const char *const feature_names[FEATURE_COUNT];

#endif
