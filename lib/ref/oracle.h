/*
 * oracle.h - the two forms of the oracle; see oracle_body.h.
 */
#ifndef ATTEST_ORACLE_H
#define ATTEST_ORACLE_H

#include <attest.h>

/* Row i of query head h of sequence b: dim_v values and the LSE. The scratch holds seq_kv doubles and seq_kv bytes. */
void oracle_exact(const attest_problem *p, const attest_tensors *t, int64_t b, int64_t h, int64_t i, void *scratch, double *out,
                  double *lse);
void oracle_naive(const attest_problem *p, const attest_tensors *t, int64_t b, int64_t h, int64_t i, void *scratch, double *out,
                  double *lse);

#endif
