/*
 * stages_inquiry.h - from readings that are wrong to a diagnosis: what the files that draw conclusions share.
 */
#ifndef ATTEST_STAGES_INQUIRY_H
#define ATTEST_STAGES_INQUIRY_H

#include "stages_experiment.h"
#include "stages_pattern.h"

/* The arrays that show what is wrong: expected and found at the lab's rows. */
struct exhibit {
    int64_t rows, columns;
    bool by_key; /* columns are lab->keys; else elements of O, or, with one column, LSE */
    double *expected, *found;
};

struct inquiry {
    struct lab *lab;
    struct diagnosis *diagnosis;
    struct reading equal, comb[2], other; /* what further questions go back to */
    const struct reading *first_o;        /* of these the first whose LSE is right and whose O is not; NULL: none */
    struct experiment last;               /* what the diagnosis was drawn from */
    struct exhibit exhibit;
    bool failed;  /* the laboratory, or a run: see lab_read */
    bool settled; /* nothing is learnt by asking again */
};

/* What to look at for place, pattern and error: O (or P, if it was read by key) or LSE. */
enum sight { SIGHT_O, SIGHT_LSE };

/* Puts the diagnosis together: the stages, the first wrong place, the pattern, the error there and the cause. */
struct pattern conclude(struct inquiry *inquiry, unsigned stages, const struct reading *reading, enum sight sight,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The same for a table of its own, which the inquiry takes over (the arrays; cells are only looked at). */
struct pattern conclude_table(struct inquiry *inquiry, unsigned stages, const struct cells *cells, struct exhibit exhibit,
                              const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Another experiment; its reading is freed by the caller. False if it could not be done, and inquiry->failed is set. */
bool ask(struct inquiry *inquiry, const struct experiment *experiment, struct reading *reading);

/* The cells of a reading that are wrong. To be freed; NULL if there is no memory. */
unsigned char *wrong_cells(const struct reading *reading, enum sight sight);

/* LSE is wrong in this reading, or there is no LSE and O is: which stage before the product with V. */
void inquire_before(struct inquiry *inquiry, const struct reading *reading);
void inquire_mask(struct inquiry *inquiry, const struct reading *reading);   /* of equal scores */
void inquire_scores(struct inquiry *inquiry, const struct reading *reading); /* of a comb */

/* No wrong row sees more than one key: its weight is 1 whatever its score is, and little can be told apart. */
bool single_keys(const struct inquiry *inquiry, const struct reading *reading);

/* All scores at one level, where LSE is that score and ln n, and no exponential but exp(0) is needed. */
struct experiment flat_level(const struct lab *lab, double level);

/* O is right and LSE is not: concludes and returns true, unless O was read too roughly to clear the sum. */
bool inquire_lse(struct inquiry *inquiry, const struct reading *reading);

/* Keys of a tile, from how a row takes one step up or down that it does not handle; 0 if that does not show. */
int64_t find_tile(struct inquiry *inquiry, int64_t row, bool up);

/* LSE is right in every reading, and O is not in this one. */
void inquire_after(struct inquiry *inquiry, const struct reading *reading);

/* Equal scores: every row weighs exactly the keys that it sees. */
bool same_keys(const struct inquiry *inquiry, const struct reading *reading);

/* Rows that see no key are wrong, and no others: concludes and returns true. */
bool inquire_empty(struct inquiry *inquiry, const struct reading *reading);

/* O does not depend on the inputs: concludes and returns true. */
bool inquire_stale(struct inquiry *inquiry, const struct reading *reading);

/* Weights that stand in the wrong row, head or key (stages_layout.c): each concludes and returns true if that is all that is wrong
 * with them. inquire_layout is the three that need no further experiment. */
bool inquire_layout(struct inquiry *inquiry, const struct reading *reading);
bool inquire_rows(struct inquiry *inquiry, const struct reading *reading); /* rows, or heads of V */
bool inquire_keys(struct inquiry *inquiry, const struct reading *reading);
bool inquire_order(struct inquiry *inquiry, const struct reading *reading);
bool inquire_columns(struct inquiry *inquiry);

/* A row of O that is wrong somewhere, and the factor that it is wrong by; NaN if there is no such factor. */
bool row_is_wrong(const struct reading *reading, int64_t row);
double row_factor(const struct reading *reading, int64_t row);

/*
 * Known mistakes (stages_cause.c): each is a variant of the problem or its tensors on which the reference is evaluated; a variant
 * that gives exactly what was found names its mistake. `question` is what the reading is about.
 */
enum question { QUESTION_SCORES, QUESTION_VALUES, QUESTION_ALIBI, QUESTION_BIAS, QUESTION_SOFTCAP, QUESTION_SINK };
struct cause {
    unsigned stages;
    char text[256];
};
bool cause_find(struct inquiry *inquiry, const struct reading *reading, enum question question, struct cause *cause);

#endif
