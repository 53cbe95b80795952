/*
 * problem_space.h - problems by the levels of their fields (problem_fields.def): which levels can meet, and the problem and the
 * contents of its tensors that a row of levels stands for.
 */
#ifndef ATTEST_PROBLEM_SPACE_H
#define ATTEST_PROBLEM_SPACE_H

#include "data/contents.h"
#include "covering.h"
#include "data/shape_variants.h"

enum problem_field {
#define WHOLE(name, covers, ...)  FIELD_##name,
#define REAL(name, covers, ...)   FIELD_##name,
#define CHOICE(name, covers, ...) FIELD_##name,
#define FILLED(name, covers)      FIELD_##name,
#include "problem_fields.def"
#undef WHOLE
#undef REAL
#undef CHOICE
#undef FILLED
    FIELD_COUNT
};

const char *field_name(int field);
const char *field_covers(int field);
int field_levels(int field);
const char *field_level_name(int field, int level);

/* The space of problems that a kernel takes. Levels that it refuses, asked on a small problem, are in no row. Multiplications of one
 * evaluation by the oracle stay within `most`, and within `usual` where the levels allow it: values inside of them are then drawn
 * smaller. */
struct problem_space {
    struct covering_space covering;
    bool refused[COVERING_FIELDS][COVERING_LEVELS];
    struct taker taker;
    double usual;
};
void problem_space_make(struct problem_space *space, struct taker taker, double usual, double most);

/* Sizes instead of those that the levels stand for; 0: as the level says. */
struct problem_sizes {
    int64_t batch, group, heads_kv, rows, keys, dim, dim_v, page, window_left, window_right;
    float softcap, scale;
    bool full;   /* packed sequences are as long as they may be */
    bool padded; /* rows of Q, K, V and O are padded to whole vectors of 8 elements */
};

/* A problem of these levels, with values drawn from the seed. What the library or the kernel does not take, or what is too large, is drawn
 * again, also with padded rows, which many kernels of GPUs need. False if none that is drawn is taken. */
bool problem_space_draw(const struct problem_space *space, const int row[COVERING_FIELDS], uint64_t seed, attest_problem *problem,
                        struct contents *contents);

/* Why a row is not drawn: levels of two or three fields that are taken in no row whose other fields are plain. Returns how many they are; 0 if
 * there are none so few. */
enum { MOST_BLAMED = 3 };
int problem_space_blame(const struct problem_space *space, const int row[COVERING_FIELDS], uint64_t seed, int blamed[MOST_BLAMED],
                        int levels[MOST_BLAMED]);

/* The first level of a field that the kernel takes in a plain problem. */
int problem_space_plain(const struct problem_space *space, int field);

/* The same with other sizes, and tensors of up to `elements` elements. */
bool problem_space_draw_sized(const struct problem_space *space, const int row[COVERING_FIELDS], uint64_t seed,
                              const struct problem_sizes *sizes, double elements, attest_problem *problem,
                              struct contents *contents);

#endif
