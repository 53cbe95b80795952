/*
 * relation_run.h - how a relation is asked: values by their place whatever the layout, a run of the subject, a comparison of two results.
 */
#ifndef ATTEST_RELATION_RUN_H
#define ATTEST_RELATION_RUN_H

#include "relations.h"

struct asking {
    struct subject subject;
    struct taker taker;
    attest_problem problem;
    bool device;
    uint64_t seed;
    struct relation_verdict *verdict;
};

/* A value of Q, K or V by its place: row is a key for K and V. Of a bias ('b') row is a row, and d a key; only relations whose problem has one
 * are asked for it. */
typedef double value_function(const struct asking *asking, char tensor, int64_t b, int64_t h, int64_t row, int64_t d);

/* O and LSE by place: O[b][h][i][d]. LSE is NaN where the problem has none. */
struct result {
    int64_t heads, rows, dim_v;
    double *o, *lse;
    double slack_o, slack_lse; /* what two right results of these inputs may differ by */
};
double *result_o(const struct result *result, int64_t b, int64_t h, int64_t i);
double *result_lse(const struct result *result, int64_t b, int64_t h, int64_t i);
int64_t result_rows(const attest_problem *problem); /* of all heads and sequences */

/* Sets the verdict and its sentence, and returns false. */
bool asking_end(struct asking *asking, enum verdict verdict, const char *sentence);

/* Runs the subject on these values. On failure the verdict is set, and result->o is NULL; else it is to be freed. */
bool asking_compute(struct asking *asking, const attest_problem *problem, value_function *values, struct result *result);

/* One element: what it is, and what it should be within `slack` (0: to the bit). A wish of NaN says nothing. Column -1 is LSE.
 * False, and the verdict set, if they do not agree. */
bool asking_agree(struct asking *asking, int64_t b, int64_t h, int64_t i, int64_t column, double got, double wanted, double slack);

/* What O[b,h,i,d] should be after a change, from a result before it; *lse likewise. NaN: nothing is claimed. */
typedef double wish_function(const struct asking *asking, const struct result *before, int64_t b, int64_t h, int64_t i, int64_t d,
                             double *lse);
void asking_compare(struct asking *asking, const struct result *before, const struct result *after, wish_function *wish,
                    bool to_the_bit);

#endif
