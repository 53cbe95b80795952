/*
 * session.h - what the options ask for, and what a command and all that it calls share: context, problems, the report.
 *
 * The program uses libattest through <attest.h> and nothing else of it. An error ends in give_up, which says what is wrong and what to
 * type instead.
 */
#ifndef ATTEST_SESSION_H
#define ATTEST_SESSION_H

#include <attest.h>
#include <stdbool.h>

#include "exit_code.h"
#include "nearest_word.h"
#include "report.h"

struct command;

/* Arrays that `run` reads, in the order of the options table; see npy.h. */
enum {
    FILE_Q,
    FILE_K,
    FILE_V,
    FILE_BIAS,
    FILE_ALIBI,
    FILE_SINKS,
    FILE_CU_Q,
    FILE_CU_KV,
    FILE_LENGTHS,
    FILE_PAGES,
    FILE_MASK,
    FILE_OFFSETS,
    FILE_STARTS,
    FILE_ROWS,
    FILE_COUNT
};

struct options {
    bool json;
    bool help;
    bool man;
    int64_t seed;
    int64_t proof_seed; /* 0: not given */
    int64_t threads;    /* 0: not given */
    int64_t rows;       /* 0: not given */
    double seconds;
    bool cpu, cuda;
    const char *arch; /* NULL: not given */
    bool keep_going;
    bool record, missing;
    bool thorough;
    const char *policy;      /* NAME=VALUE,...: numbers other than those of policy.def */
    int64_t sample;          /* 0: not given */
    int64_t max_fixes;       /* 0: not given */
    int64_t max_gpu_seconds; /* 0: not given */
    int64_t generations, population;
    int64_t generate, only_mutant, jobs; /* 0: not given */
    int64_t least;                       /* percent */
    const char *of, *survivors;
    double budget; /* seconds; 0: no limit */
    double proposer_seconds;
    const char *proposer, *strategy, *export;
    bool status;
    const char *only;  /* gates, separated by commas */
    const char *timed; /* suite of problems to time */
    const char *vs;
    const char *evidence;
    const char *state;
    const char *sign;
    const char *key;
    const char *restore;
    const char *write;
    const char *format;
    const char *mutants;
    const char *clock;
    const char *marker;   /* of a worker under a tool */
    const char *device;   /* NULL: not given */
    const char *contents; /* of the tensors, see contents.h; NULL: the usual ones */
    const char *kernel;
    const char *suite;
    const char *out;
    const char *lse;
    const char *files[FILE_COUNT];
    char **words; /* operands, in argv */
    int word_count;
};

/* A problem with where it was found: "argument 1" or "suites/prove.txt:12". */
struct problem_entry {
    attest_problem problem;
    char *text; /* as it was typed */
    char *place;
};

struct problem_list {
    struct problem_entry *entries;
    int count;
};

struct session {
    const struct command *command; /* of cli/commands.h; NULL before it is known */
    const char *name;              /* of the command */
    struct options options;
    attest_context *context;
    struct problem_list problems;
    struct report report;
};

/* The problems of the command line: operands, and --suite. One: exactly one operand. */
enum exit_code problems_load(struct session *session, bool one);
struct embedded;
enum exit_code suite_load(struct session *session, struct problem_list *list, const char *path); /* adds to the list */
enum exit_code suite_load_embedded(struct session *session, struct problem_list *list, const struct embedded *file);
void problem_list_free(struct problem_list *list);

/* Says on stderr what is wrong and, on a second line, what to type instead (hint may be NULL); with --json also on stdout. Returns
 * `code`, so that a command can end with it. */
enum exit_code give_up(struct session *session, enum exit_code code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The device that the options ask for, as attest_context_create_on takes it: --device; $ATTEST_DEVICE; the CPU or the GPU that the
 * kernels of --kernel run on; else "auto". */
const char *session_device(const struct options *options);

/* Kernels whose name matches `glob`. kernel_matches is for one, kernels_check says whether there is any at all. */
bool kernel_matches(const char *glob, const char *name);
enum exit_code kernels_check(struct session *session);

/* Whether this build has a kernel of this name. */
bool kernel_is_there(const char *name);

/* The words of `needs` that the list `features` lacks, such as "amx"; "" if it has all. */
void missing_features(const char *needs, const char *features, char *text, size_t size);

/* What a kernel of the library needs and this machine lacks, such as "amx" or "an NVIDIA GPU"; "" if it can run here. */
void kernel_missing(const struct session *session, const attest_kernel_info *info, char *text, size_t size);

#endif
