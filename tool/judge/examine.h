/*
 * examine.h - one problem on one subject: inputs, the judge and its controls, runs into poisoned outputs. The command `check` and
 * the correctness gate share it.
 */
#ifndef ATTEST_EXAMINE_H
#define ATTEST_EXAMINE_H

#include "run/executor.h"
#include "judge.h"
#include "evidence/verdict.h"

struct value_set;

/* Inputs, and what outputs are judged by. It must not be moved: its parts point at each other. */
struct exam {
    struct inputs inputs;
    struct judge judge;
    struct controls controls;
    uint64_t digest; /* of the inputs */
};

/* Draws inputs from the seed, puts `values` (may be NULL) into them, and computes what outputs are judged by, for at most about
 * `rows` rows (0: as many as a fixed amount of work allows). */
bool exam_make(struct exam *exam, const attest_problem *problem, uint64_t seed, const struct value_set *values, int64_t rows,
               int threads, char *why, size_t why_size);

/* The same with other contents (NULL: the usual ones) and component bounds alone, without controls: for many problems. All rows are
 * judged, or, if `choose` is not NULL, those that it chooses: it returns their numbers, rising, to be freed. */
typedef int64_t *row_chooser(const struct inputs *inputs, uint64_t seed, int64_t *count);
bool exam_make_quick(struct exam *exam, const attest_problem *problem, uint64_t seed, const struct contents *contents,
                     row_chooser *choose, int threads, char *why, size_t why_size);
void exam_free(struct exam *exam);

/* One run into poisoned outputs, which were made for these inputs; `digest` is that of the inputs. PASS says that it ended, and
 * left alone what it does not own; it says nothing about the numbers. Else `why` is a sentence. `end` may be NULL. */
enum verdict subject_run(struct subject subject, const struct inputs *inputs, uint64_t digest, struct outputs *outputs,
                         enum execution_end *end, char *why, size_t why_size);

/* Judges the outputs of a run; finding->what is a sentence if the verdict is not PASS. INCONCLUSIVE if the judge would accept a
 * wrong answer (a control) too. Rows that are not judged must at least be finite. */
enum verdict exam_judge(const struct exam *exam, const struct outputs *outputs, struct finding *finding);

/* Of outputs that are wrong: runs the subject again, into outputs that were poisoned with something else, and adds to the note if there are
 * other bits. */
void exam_run_again(const struct exam *exam, struct subject subject, const struct outputs *outputs, char *note, size_t note_size);

/* A kernel of the library, in this process, as a subject. */
struct library_kernel {
    const char *name;
    int threads;
    int rubbish;        /* what the workspace is filled with */
    const char *device; /* NULL: the CPU */
};
struct subject library_subject(struct library_kernel *kernel);

#endif
