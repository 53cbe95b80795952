/*
 * commands.h - the tables of commands and options, and the commands themselves, each in a cmd_*.c of its own. Help and the manual page are
 * made from the tables.
 */
#ifndef ATTEST_COMMANDS_H
#define ATTEST_COMMANDS_H

#include "base/session.h"

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
