/*
 * reference.h - the oracle as a kernel.
 */
#ifndef ATTEST_REFERENCE_H
#define ATTEST_REFERENCE_H

#include <attest.h>

size_t reference_workspace(const attest_problem *p);
void reference_run(const attest_problem *p, const attest_tensors *t, void *workspace);

#endif
