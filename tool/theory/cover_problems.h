/*
 * cover_problems.h - the problems of the correctness gate that a table of all fields makes (problem_fields.def): a covering array of
 * strength 3, every row of every problem judged; and problems of the sizes that users run, judged at both ends of every wrap.
 */
#ifndef ATTEST_COVER_PROBLEMS_H
#define ATTEST_COVER_PROBLEMS_H

#include "data/contents.h"
#include "covering.h"
#include "judge/examine.h"
#include "run/executor.h"
#include "judge/judge.h"
#include "data/shape_variants.h"
#include "evidence/verdict.h"

struct kernel_constants;

/* One problem, and what came of it. */
struct cover_outcome {
    const char *part; /* "covering", "empty", "constant", "large" */
    attest_problem problem;
    struct contents contents;
    uint64_t seed;
    bool again;    /* it is also computed after other inputs, in the same memory, */
    bool alone;    /* or one of its sequences alone */
    bool unjudged; /* it is run, and nobody looks at its results: there is no oracle */
    enum verdict verdict;
    enum execution_end end;
    struct finding finding;
    char note[400];
};

struct cover_plan {
    struct subject subject;
    struct subject second; /* the same kernel once more, to run while the first is judged; run is NULL: there is none */
    struct taker taker;
    uint64_t seed;
    int threads;                              /* of the judge */
    int rows;                                 /* problems of the covering array */
    int large;                                /* rounds of large problems */
    int constant_problems;                    /* next to numbers of the kernel, */
    const struct kernel_constants *constants; /* which these are; NULL: they are not known */
    bool device;                              /* of a GPU: larger problems cost less */
    bool numbers_only; /* bits are not compared with those of other calls: for subjects of tests that count their calls */
    bool unjudged;     /* see cover_outcome */
    /* Told of every problem. Returns whether to go on. */
    bool (*report)(void *data, const struct cover_outcome *outcome);
    void *data;
};

struct cover_summary {
    int problems, constant, large,
        refused; /* examined; next to numbers of the kernel; of large sizes; drawn and not taken by the kernel or the library */
    int64_t triples, infeasible, covered;
    int64_t rows_judged;
};

/* Examines problems of the covering array. */
void cover_array(const struct cover_plan *plan, struct cover_summary *summary);

/* Examines problems on both sides of the numbers that the kernel's code compares with (constant_problems.c). */
void cover_constants(const struct cover_plan *plan, struct cover_summary *summary);

/* Examines large problems. */
void cover_large(const struct cover_plan *plan, struct cover_summary *summary);

/* Multiplications of the oracle over all rows of a problem. */
double cover_work(const attest_problem *problem);

/* Makes inputs, runs the subject, judges all rows, or those that `choose` chooses if it is not NULL; fills verdict, end, finding and
 * note. If `observed` is not NULL it says which fields of `row` show. Returns the number of rows that were judged. */
int64_t cover_examine(struct subject subject, struct cover_outcome *outcome, row_chooser *choose, int threads, const int *row,
                      bool *observed);

/* Whether a sequence has to have the same bits alone: on a GPU only where the problem says so. */
bool cover_compares_alone(const struct cover_plan *plan, const attest_problem *problem);

/* A problem that is drawn, to be examined beside others. */
struct cover_job {
    struct cover_outcome outcome;
    bool wanted;         /* by the library and the kernel; others are not examined */
    row_chooser *choose; /* as of cover_examine */
    bool has_row;        /* of the covering array: */
    int row[COVERING_FIELDS];
    bool observed[COVERING_FIELDS]; /* which of its fields showed */
    int64_t judged;                 /* rows of output */
};

/* How many are drawn before they are examined, whether or not there are two workers, so that a seed draws the same. The two take turns,
 * and do not wait for each other: some problems cost a hundred times as much as others. */
enum { COVER_JOBS = 16 };
void cover_examine_jobs(const struct cover_plan *plan, struct cover_job *jobs, int count);

/* A row_chooser (examine.h) for problems of which not all rows can be judged: some of every head of every sequence, the ends and both
 * sides of every power of two of each of sequence, head and row, and others at random. */
int64_t *cover_choose_rows(const struct inputs *inputs, uint64_t seed, int64_t *count);

/* Seeds that can be typed. */
uint64_t cover_seed(uint64_t seed, uint64_t stream, uint64_t index);

#endif
