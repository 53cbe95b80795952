/*
 * oracle_exact.c - the oracle: attention in double precision.
 */
#include "oracle.h"

#define REAL          double
#define REAL_EXP      exp
#define REAL_LOG      log
#define REAL_TANH     tanh
#define SUMS          8
#define ROUND_P(p, d) (p)
#define ORACLE        oracle_exact
#include "oracle_body.h"
