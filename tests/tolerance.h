/*
 * tolerance.h - when is an error an error. The rule is that of the project's proving guide:
 *
 * 1. Every component: |o - exact| <= tolerance * A, where A = sum_j P_j |v_j| comes from the oracle run on |V|, and the tolerance
 *    is a bound that float32 arithmetic (and the rounding of P where a kernel declares it) can be shown to keep.
 * 2. Every block of 64 rows: max error <= 2 x max error of the naive implementation + 2 x the rounding grain.
 * NaN and infinities sit exactly where the oracle has them, and LSE is judged in the same two ways.
 */
#ifndef TOLERANCE_H
#define TOLERANCE_H

#include "instance.h"

/* What the oracle says about an instance. Rows are indexed by judge_row, elements of a row follow each other. */
struct verdict_basis {
    int64_t rows;
    int64_t dim_v;
    double *o, *size, *naive; /* [rows][dim_v]: exact O, A, naive O */
    double *lse, *lse_naive;  /* [rows] */
    double *score, *keys;     /* [rows]: largest sum of magnitudes in a score; number of keys seen */
    double largest_v;         /* the largest finite |V| that there is */
    bool exact_scores;        /* dot products are exact in float32 (small integers): the tolerance need not allow for them */
};

bool basis_create(struct verdict_basis *basis, attest_context *context, const struct instance *in);
void basis_destroy(struct verdict_basis *basis);
int64_t judge_row(const struct instance *in, int64_t b, int64_t h, int64_t i);

/* Judges what lies in the instance's O and LSE. `p_dtype` is the type a kernel rounds P to. False, with a sentence, if it is wrong.
 */
bool judge(const struct verdict_basis *basis, const struct instance *in, uint32_t p_dtype, char *why, size_t why_size);

/* Writes rows of doubles, indexed by judge_row, to the instance's O, rounded to its dtype. */
void judge_put(const struct verdict_basis *basis, struct instance *in, const double *o, const double *lse);

#endif
