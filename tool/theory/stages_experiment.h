/*
 * stages_experiment.h - the laboratory of the stage oracle: inputs made to a design, runs of the kernel on them, and what the float64
 * reference says of the same inputs. The files stages*.c share it; callers include stages.h.
 */
#ifndef ATTEST_STAGES_EXPERIMENT_H
#define ATTEST_STAGES_EXPERIMENT_H

#include "judge/judge.h"
#include "stages.h"

/* What the scores of a row are. Numbers are natural units (after the scale); each is a whole number of lab->unit, so that they are
 * exact. */
enum scores {
    SCORES_EQUAL,   /* Q is 0: every score is 0, whatever K is */
    SCORES_COMB,    /* key 0 and every second key (j % 2 == at) are anchors, which have score 0 whatever Q is; the others lie
                       between 0 and about -5, all different: small whole numbers in Q and K */
    SCORES_FINE,    /* the same with Q and K that use every bit of their type */
    SCORES_SMALL,   /* the same, 128 times smaller */
    SCORES_DIMS,    /* like the comb, but each key has only one element that is not 0: design_dim */
    SCORES_LEVEL,   /* all about `level`: anchors there, the others up to 1 below */
    SCORES_LADDER,  /* 0, -1.5, -3 ... -22.5, again and again */
    SCORES_RISING,  /* from key to key, to 0 at the last */
    SCORES_FALLING, /* from 0 at the first key on */
    SCORES_MIXED,   /* rising or falling by row, about 0 */
    SCORES_STEP_UP, /* keys before `at` at -FAR_BELOW, from there on 0 */
    SCORES_STEP_DOWN,
    SCORES_NEEDLE, /* one key at +100, chosen by `at`, sequence and head; all others at -100 */
    SCORES_FIRST,  /* key `at` at 0, all others at -FAR_BELOW */
    SCORES_TOP     /* keys j < at if at > 0, else those with j % -at == 0, at 0; all others at -FAR_BELOW */
};

/* What V is. */
enum values {
    VALUES_KEYS,     /* columns of the identity: O is then P. As many runs as it takes to see all of lab->keys */
    VALUES_COLUMNS,  /* a number that names head and column, the same for all keys */
    VALUES_WHOLE,    /* whole numbers 1 to 100, times `size`: sums of them are exact */
    VALUES_ROUNDING, /* means of two of them lie a quarter or three quarters between numbers of the output's type */
    VALUES_PLAIN     /* small fractions, different everywhere */
};

struct experiment {
    const char *name;
    enum stage stage; /* what it is about */
    enum scores scores;
    enum values values;
    uint64_t modifiers; /* flags of the problem that are on; the others are made harmless by their data */
    double level;
    int64_t at;
    double size; /* of V; 0 is 1 */
};

/* Score of the keys that are meant not to count, relative to those that do. */
#define FAR_BELOW 60.0

/* O of an earlier run, row by row: its digest, and whether it and LSE were right. */
struct past_row {
    uint64_t digest;
    bool right;
};
struct past_run {
    struct past_row *rows; /* [row_count] */
};

struct lab {
    struct subject subject;
    attest_problem problem; /* with LSE, if the kernel takes it */
    bool lse;
    uint64_t seed;
    int threads;
    struct inputs inputs;
    struct outputs outputs;
    attest_problem plain; /* the problem with O and LSE without gaps: where the arrays of the reference have their elements */
    double *o_exact, *lse_exact;

    int64_t row_count; /* the rows that are looked at, their places, their numbers as attest_reference counts them */
    struct place *rows;
    int64_t *numbers;
    int64_t key_count; /* the keys whose weights are looked at, in rising order */
    int64_t *keys;

    double unit; /* score of the smallest step in K where Q is 1 */
    double step; /* that step */
    int runs;
    struct past_run *past; /* [runs] */
    struct execution trouble;
    char *why;
    size_t why_size;
};

/* What an experiment gave. Rows are those of the lab; columns are its keys (by_key) or the elements of a row of O. */
struct reading {
    struct experiment experiment;
    bool by_key;
    int64_t rows, columns;
    unsigned char *skip;                    /* [rows] rows that this design says nothing about */
    double *lse, *lse_expected, *lse_bound; /* [rows] */
    double *o, *o_expected, *o_bound;       /* [rows][columns] */
    double lse_error, o_error;              /* the largest */
    double lse_ratio, o_ratio;              /* the worst error divided by its bound; infinite for NaN in the wrong place */
    bool lse_right, o_right;
    int first_run, end_run; /* in lab->past */
};

bool lab_make(struct lab *lab, struct subject subject, const attest_problem *problem, uint64_t seed, char *why, size_t why_size);
void lab_free(struct lab *lab);

/* Makes the inputs, runs the kernel and the reference, compares. False if a run did not end in EXECUTION_DONE (lab->trouble), or
 * if the laboratory itself failed (lab->why, and lab->trouble is EXECUTION_DONE). */
bool lab_read(struct lab *lab, const struct experiment *experiment, struct reading *reading);
void reading_free(struct reading *reading);

/* One run on the inputs as they are. */
bool lab_run(struct lab *lab);

/* What outputs are filled with before a run: finite in every type, so that it is no NaN which scratch memory might also hold, and
 * less than 0, which no output of a design is. */
enum { LAB_POISON = 0xa5 };

/* The reference on any problem and tensors, at the lab's rows. Results lie where lab->plain says; o may have its dim_v only. */
bool lab_evaluate(struct lab *lab, const attest_problem *problem, const attest_tensors *tensors, double *o, double *lse);

/* Worst ratio of LSE if `expected` were right, over the rows that are read. */
double reading_lse_ratio(const struct reading *reading, const double *expected);
bool reading_wrong_lse(const struct reading *reading, int64_t row);
bool reading_wrong_o(const struct reading *reading, int64_t row, int64_t column);

/* True if most wrong rows of a run of the reading are the very ones that were right for the inputs of an earlier one. A kernel that
 * leaves something out can do that too; the inquiry makes sure. */
bool lab_repeats(const struct lab *lab, const struct reading *reading);

/* The design of the inputs (stages_design.c). */
void design_scores(struct lab *lab, const struct experiment *experiment);
void design_values(struct lab *lab, const struct experiment *experiment, int64_t block);
enum { ALL_ANCHORS = 2 }; /* `at` of a level without the keys below it */
int64_t design_dim(const struct lab *lab, const struct experiment *experiment, int64_t key);
bool design_anchor(const struct experiment *experiment, int64_t key);
int64_t design_column(const struct lab *lab, int64_t block, int64_t b, int64_t head_kv, int64_t d); /* place in lab->keys, or -1 */

/* What each row may see. */
void lab_visible(const struct lab *lab, int64_t row, int64_t *begin, int64_t *end);
int64_t lab_head_kv(const struct lab *lab, int64_t head);

double unit_roundoff(uint32_t dtype);

#endif
