/*
 * source_coverage.h - which clauses of a candidate's source ran in the problems that it was judged on. What never ran is not shown to be
 * right by any number of them.
 *
 * The source is compiled once more, with a line for each clause (clause_lines.h) and a call at the beginning of each block of code, which
 * notes that the block ran. A worker with that image computes what the candidate computes, until every clause has run, and every fourth of
 * the small problems where nothing new has run for long; its results are looked at by nobody.
 */
#ifndef ATTEST_SOURCE_COVERAGE_H
#define ATTEST_SOURCE_COVERAGE_H

#include "gate.h"

struct source_coverage;

/* Workers that may be asked at once. */
enum { COVERAGE_LANES = 2 };

/* Of a candidate with a source. NULL, with the reason, if it cannot be measured: there is no tool that finds lines, say. */
struct source_coverage *source_coverage_open(const struct proof *proof, char *why, size_t why_size);
void source_coverage_close(struct source_coverage *coverage);

/* Computes the problem too, if there are clauses that did not run yet. */
void source_coverage_run(struct source_coverage *coverage, int lane, const struct inputs *inputs);

/* Computes a problem that the candidate refuses, which may crash or hang. False if there is no point in going on. */
bool source_coverage_try(struct source_coverage *coverage, const struct inputs *inputs);

/* What is known now. */
bool source_coverage_is_complete(struct source_coverage *coverage);

/* {"clauses", "ran", "never": [{"file", "line", "text"}]}; new reference. The sentence names the first of what never ran, and is "" if
 * all ran. {"lost": why} if a worker is gone and not all had run. */
json_t *source_coverage_report(struct source_coverage *coverage, char *sentence, size_t size);

#endif
