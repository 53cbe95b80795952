/*
 * judge.h - when is an error an error. The rules are at the head of judge.c.
 */
#ifndef ATTEST_JUDGE_H
#define ATTEST_JUDGE_H

#include "data/inputs.h"

#define JUDGE_BLOCK 64 /* rows */

struct judge {
    const struct inputs *inputs;
    attest_problem
        problem; /* the problem with LSE, and with O and LSE without gaps: where the arrays of doubles have their elements */
    struct layout layout;
    int64_t total_rows;
    int64_t row_count; /* rows that are judged */
    int64_t *rows;     /* their numbers, as attest_reference counts them; JUDGE_BLOCK of them make a block */
    int threads;
    double *exact, *exact_lse; /* the oracle */
    double *mass;              /* A: sum over keys of P |v| */
    double *naive, *naive_lse; /* the naive implementation */
    double *spread;            /* [row_count] sqrt(sum of P^2) / sum of P: 1 for one key, 1/sqrt(n) for n equal ones */
    double *reach;             /* [row_count] how large scores and what they are made of can be */
    float *largest;            /* [batch, heads_kv, dim_v] max |v| */
    bool bounds_alone;         /* made by judge_make_bounds */
    unsigned char *tainted;    /* [batch, heads_kv] values that are not finite may reach its rows; or NULL */
};

/* What the judge found: the largest error of all, and the worst place in terms of its bound. */
struct finding {
    bool accepted;
    double max_error; /* of O */
    double ratio;     /* worst error divided by its bound; infinite for a NaN or Inf in the wrong place */
    char what[256];   /* if not accepted, a sentence */
};

/* Computes what outputs are judged by, for at most about `rows` rows (0: as many as a fixed amount of work allows). */
bool judge_make(struct judge *judge, const struct inputs *inputs, uint64_t seed, int64_t rows, int threads, char *why,
                size_t why_size);

/* Rows that are to be judged, by their numbers as attest_reference counts them, rising. */
struct judge_rows {
    const int64_t *numbers;
    int64_t count;
};

/* The same for component bounds alone, at less than half the price, of all rows, or of those that are chosen (NULL: all). `special`:
 * rows see values that are not finite. */
bool judge_make_bounds(struct judge *judge, const struct inputs *inputs, const struct judge_rows *chosen, bool special, int threads,
                       char *why, size_t why_size);
void judge_free(struct judge *judge);

/* The bound of one component of the O of a judged row, and of its LSE. */
double judge_bound(const struct judge *judge, int64_t row, int64_t column);
double judge_bound_lse(const struct judge *judge, int64_t row);

/* Judges O and LSE (NULL: O alone), which have the given strides, on the first `rows` judged rows. */
void judge_output(const struct judge *judge, int64_t rows, const void *o, const int64_t stride_o[3], const float *lse,
                  const int64_t stride_lse[3], struct finding *finding);

/* One finite component of O, for statistics of errors. */
struct judged {
    double exact;
    double error; /* with its sign */
    double naive; /* the error of the naive implementation */
    double grain; /* see judge.c */
};

/* Shows all components of the first `rows` judged rows that are finite, here and in the oracle. */
void judge_each(const struct judge *judge, int64_t rows, const void *o, const int64_t stride_o[3],
                void (*see)(void *data, const struct judged *judged), void *data);

/* The oracle on a variant of the problem, on the first `rows` judged rows, by all threads. */
bool judge_evaluate(const struct judge *judge, const attest_problem *problem, const attest_tensors *tensors,
                    attest_precision precision, int64_t rows, double *o, double *lse, char *why, size_t why_size);

/* Place of a judged row. */
struct place {
    int64_t b, h, i;
};
struct place judge_place(const struct judge *judge, int64_t row);

/*
 * Wrong answers that must be rejected (controls.c). For each the judge says REJECTED, ACCEPTED (then these inputs prove nothing),
 * or SAME: the control is no wrong answer on these rows, such as the mean of V where every row sees one key.
 */
enum control_state { CONTROL_REJECTED, CONTROL_ACCEPTED, CONTROL_SAME };
enum { CONTROL_COUNT = 5 };
struct controls {
    const char *names[CONTROL_COUNT];
    enum control_state states[CONTROL_COUNT];
    int accepted;
};
bool controls_run(const struct judge *judge, struct controls *controls, char *why, size_t why_size);

#endif
