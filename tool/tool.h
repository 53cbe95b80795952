/*
 * tool.h - what the files of the program `attest` share: exit codes, the tables of commands and options, one session.
 *
 * The program uses libattest through <attest.h> and nothing else of it. Reading order: main.c (dispatch), commands.c, options.c
 * (the options table), problems.c (problem strings and suites), layout.c and inputs.c (data for a problem), judge.c and controls.c
 * (when an error is an error), then one cmd_*.c for each command. report.c writes text and JSON from the same values.
 */
#ifndef ATTEST_TOOL_H
#define ATTEST_TOOL_H

#include <attest.h>
#include <stdbool.h>

#include "report.h"

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof(array)[0]))

enum exit_code {
    EXIT_PASS = 0,    /* all is well */
    EXIT_FAILED = 1,  /* a kernel is wrong */
    EXIT_USAGE = 2,   /* the command line, a file or a problem string is wrong */
    EXIT_LACKING = 3, /* nothing could be concluded, or the machine lacks something */
    EXIT_INTERNAL = 4 /* a defect, or output that could not be written */
};

/* Bits of the commands, for the options table. */
enum {
    CMD_INFO = 1 << 0,
    CMD_LIST = 1 << 1,
    CMD_EXPLAIN = 1 << 2,
    CMD_RUN = 1 << 3,
    CMD_CHECK = 1 << 4,
    CMD_BENCH = 1 << 5,
    CMD_HELP = 1 << 6,
    CMD_PROVE = 1 << 7,
    CMD_ORACLE = 1 << 8,
    CMD_NEW = 1 << 9,
    CMD_SELFTEST = 1 << 10,
    CMD_VERIFY = 1 << 11,
    CMD_CHAMPION = 1 << 12,
    CMD_REPRODUCE = 1 << 13,
    CMD_LOG = 1 << 14,
    CMD_POSTMORTEM = 1 << 15,
    CMD_REPORT = 1 << 16,
    CMD_KEYGEN = 1 << 17,
    CMD_WORKER = 1 << 18,
    CMD_EVOLVE = 1 << 19
};

/* What main() gets ready before it calls a command. */
enum needs { NEEDS_NOTHING, NEEDS_CONTEXT, NEEDS_PROBLEM, NEEDS_PROBLEMS, NEEDS_WORDS, NEEDS_CONTEXT_AND_WORDS };

struct session;

struct command {
    const char *name;
    int bit;
    enum needs needs;
    const char *operands; /* as shown in the usage line */
    const char *summary;  /* one line */
    const char *text;     /* the paragraphs of its help, separated by newlines */
    const char *example;  /* without the program's name, one a line */
    enum exit_code (*run)(struct session *session);
};

extern const struct command commands[];
extern const int command_count;
const struct command *find_command(const char *name);

/* Arrays that `run` reads, in the order of the options table; see npy.h. */
enum { FILE_Q, FILE_K, FILE_V, FILE_BIAS, FILE_ALIBI, FILE_SINKS, FILE_CU_Q, FILE_CU_KV, FILE_LENGTHS, FILE_PAGES, FILE_COUNT };

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

enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_INTEGER, OPTION_SECONDS };

struct option_spec {
    const char *name;     /* without the dashes */
    const char *argument; /* NULL for a flag */
    const char *text;     /* one or two sentences */
    int commands;         /* CMD_* bits */
    enum option_kind kind;
    size_t offset; /* of the field in struct options */
    int64_t low;   /* smallest and largest integer */
    int64_t high;
};

extern const struct option_spec option_specs[];
extern const int option_count;
enum exit_code options_parse(struct session *session, int argc, char **argv);
const char *nearest_word(const char *word, const char *const *words, int count);

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
    const struct command *command;
    struct options options;
    attest_context *context;
    struct problem_list problems;
    struct report report;
};

enum exit_code problems_load(struct session *session);
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

/* The one place where a status of the library becomes an exit code. */
enum exit_code exit_code_of(attest_status status);

/* Kernels whose name matches `glob`. kernel_matches is for one, kernels_check says whether there is any at all. */
bool kernel_matches(const char *glob, const char *name);
enum exit_code kernels_check(struct session *session);

/* The words of `needs` that the list `features` lacks, such as "amx"; "" if it has all. */
void missing_features(const char *needs, const char *features, char *text, size_t size);

/* What a kernel of the library needs and this machine lacks, such as "amx" or "an NVIDIA GPU"; "" if it can run here. */
void kernel_missing(const struct session *session, const attest_kernel_info *info, char *text, size_t size);

/* The help of one command, the list of all commands, and the manual page, on stdout. */
void help_command(const struct command *command);
void help_all(void);
void help_man(void);

enum exit_code cmd_info(struct session *session);
enum exit_code cmd_list(struct session *session);
enum exit_code cmd_explain(struct session *session);
enum exit_code cmd_run(struct session *session);
enum exit_code cmd_check(struct session *session);
enum exit_code cmd_bench(struct session *session);
enum exit_code cmd_help(struct session *session);
enum exit_code cmd_prove(struct session *session);
enum exit_code cmd_oracle(struct session *session);
enum exit_code cmd_new(struct session *session);
enum exit_code cmd_selftest(struct session *session);
enum exit_code cmd_verify(struct session *session);
enum exit_code cmd_champion(struct session *session);
enum exit_code cmd_reproduce(struct session *session);
enum exit_code cmd_log(struct session *session);
enum exit_code cmd_postmortem(struct session *session);
enum exit_code cmd_report(struct session *session);
enum exit_code cmd_keygen(struct session *session);
enum exit_code cmd_worker(struct session *session);
enum exit_code cmd_evolve(struct session *session);

#endif
