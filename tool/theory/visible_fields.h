/*
 * visible_fields.h - which fields of a problem its inputs let show: a softcap on scores that are all small, or a stride of K where the scale
 * is 0, could be wrong without any output telling. Such a problem is examined, but does not count for those fields.
 */
#ifndef ATTEST_VISIBLE_FIELDS_H
#define ATTEST_VISIBLE_FIELDS_H

#include "judge/examine.h"
#include "problem_space.h"

/* Fills `observed` for an exam of the problem that `row` stands for. A feature is observed if the oracle without it, on some of the
 * judged rows, is further away than the bound. */
void observed_fields(const struct exam *exam, const int row[COVERING_FIELDS], bool observed[COVERING_FIELDS]);

#endif
