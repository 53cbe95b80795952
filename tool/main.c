/*
 * main.c - the table of commands, and what happens before and after one: options, problems, context, report, exit code.
 */
#include "tool.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct command commands[] = {
    {"info", CMD_INFO, NEEDS_CONTEXT, "", "what this machine and this build have",
     "Prints the version, the processor and its features (found, and disabled by ATTEST_DISABLE), threads, caches and system.",
     "info", cmd_info},
    {"list", CMD_LIST, NEEDS_CONTEXT, "", "all kernels, what they need, and whether they run here",
     "Lists the kernels of this build, best first. A problem is served by the first kernel that takes it.",
     "list\nlist --kernel '*bf16*'", cmd_list},
    {"explain", CMD_EXPLAIN, NEEDS_PROBLEMS, "PROBLEM ...", "which kernel runs, and why not the others",
     "Prints the kernel that a plan for the problem takes, its workspace, and for every other kernel the sentence that says why "
     "not.",
     "explain fwd:f16:b2:h8:s512:d64:causal", cmd_explain},
    {"run", CMD_RUN, NEEDS_PROBLEM, "PROBLEM", "compute one problem, from and to .npy files",
     "Computes the problem and prints the kernel, the range of the output and a digest of its bits. Inputs that are not given are "
     "drawn from the seed.\n"
     "Arrays have the shapes of include/attest.h whatever their strides in the problem: Q [batch, heads_q, seq_q, dim], or "
     "[total_q, "
     "heads_q, dim] when packed; K and V likewise, or [page_count, page_size, heads_kv, dim] when paged; LSE [batch, heads_q, "
     "seq_q] "
     "or [heads_q, total_q]; the page table [batch, pts]; a dimension whose stride is 0 has size 1. They are copied into the "
     "strides of the problem.\n"
     "f32 arrays are '<f4'. f16 arrays are '<f2'; bf16 arrays are their raw bits as '<u2' (or 'V2', as ml_dtypes writes them). "
     "Both "
     "may also be '<f4', which is rounded to nearest even. Lengths and page tables are '<i4' or '<i8'. Fortran order is read; "
     "big-endian is refused. O is written as '<f4' or '<f2'; a bf16 O as '<f4', which holds it exactly. Files are replaced only "
     "when "
     "they are complete.",
     "run fwd:f32:b1:h8:s128:d64:causal:lse --q q.npy --k k.npy --v v.npy --out o.npy --lse lse.npy", cmd_run},
    {"check", CMD_CHECK, NEEDS_PROBLEMS, "PROBLEM ...", "compare kernels with the float64 oracle",
     "Draws inputs with NaN in every place that must not matter, runs the kernel that a plan would take (with --kernel, every "
     "matching "
     "kernel that takes the problem here), and judges O and LSE: each component against a bound scaled by sum P|v|, each block of "
     "64 "
     "rows against the error of a naive implementation of the same precision. Guard bands round the outputs, inputs and gaps must "
     "be "
     "unchanged; a second run and a run with another number of threads must give the same bits.\n"
     "Before that, wrong answers (zeros, the mean of V, the scale dropped, causal off by one, the last keys dropped) go through "
     "the "
     "same judge. If it accepts one, the inputs prove nothing and the verdict is INCONCLUSIVE.\n"
     "The column ratio is the error divided by its bound: PASS is 1 or less.",
     "check fwd:bf16:b2:hq8:hkv2:s300:d80:causal:lse --kernel '*'\ncheck --suite suites/prove.txt --seed 7", cmd_check},
    {"bench", CMD_BENCH, NEEDS_PROBLEMS, "PROBLEM ...", "time kernels against each other",
     "Times the kernel that a plan would take (with --kernel, every matching kernel that takes the problem here), call by call in "
     "turns, after checking a sample of its output. Gflop/s counts 2 (D + Dv) for each pair of a row and a key that the masks let "
     "it "
     "see; GB/s counts K and V once, for problems of up to 8 rows a sequence. The spread is (slowest - fastest) / median. The "
     "ratio "
     "is the median of the first kernel divided by this one's: more is faster.",
     "bench fwd:f32:b1:h8:s4096:d64 --kernel '*' --threads 1", cmd_bench},
    {"help", CMD_HELP, NEEDS_WORDS, "[COMMAND]", "this list, or the help of a command", "Prints the help of a command.", "help run",
     cmd_help},
};
const int command_count = COUNT_OF(commands);

const struct command *find_command(const char *name)
{
    for (int i = 0; i < command_count; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

enum exit_code give_up(struct session *session, enum exit_code code, const char *hint, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    progress_clear();
    fflush(stdout);
    fprintf(stderr, "attest%s%s: %s\n", session->command ? " " : "", session->command ? session->command->name : "", text);
    if (hint)
        fprintf(stderr, "    %s\n", hint);
    if (session->report.json) {
        report_put(&session->report, "error", json_string(text));
        if (hint)
            report_put(&session->report, "hint", json_string(hint));
    }
    return code;
}

enum exit_code exit_code_of(attest_status status)
{
    switch (status) {
    case ATTEST_OK:
        return EXIT_PASS;
    case ATTEST_ERROR_ARGUMENT:
    case ATTEST_ERROR_PARSE:
        return EXIT_USAGE;
    case ATTEST_ERROR_UNSUPPORTED:
    case ATTEST_ERROR_UNAVAILABLE:
    case ATTEST_ERROR_MEMORY:
        return EXIT_LACKING;
    case ATTEST_ERROR_WORKSPACE:
    case ATTEST_ERROR_INTERNAL:
        break;
    }
    return EXIT_INTERNAL;
}

bool kernel_matches(const char *glob, const char *name)
{
    return fnmatch(glob, name, 0) == 0;
}

/* A pattern that no kernel of this build has is a slip of the keyboard, on any machine. */
enum exit_code kernels_check(struct session *session)
{
    const char *glob = session->options.kernel;
    const char *names[64];
    int count = 0;
    attest_kernel_info info = {.size = sizeof info};
    if (!glob)
        return EXIT_PASS;
    for (size_t i = 0; i < attest_kernel_count(); i++) {
        if (attest_kernel_get(i, &info) != ATTEST_OK)
            continue;
        if (kernel_matches(glob, info.name))
            return EXIT_PASS;
        if (count < COUNT_OF(names))
            names[count++] = info.name;
    }
    const char *near = nearest_word(glob, names, count);
    char hint[256];
    snprintf(hint, sizeof hint, near ? "did you mean --kernel %s?" : "type: attest list", near);
    return give_up(session, EXIT_USAGE, hint, "no kernel of this build is called %s", glob);
}

void missing_features(const char *needs, const char *features, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    while (*needs) {
        size_t length = strcspn(needs, ",");
        bool found = false;
        for (const char *at = features; *at && !found;) {
            size_t word = strcspn(at, ",");
            found = word == length && strncmp(at, needs, length) == 0;
            at += word + (at[word] == ',');
        }
        if (!found && used + length + 2 < size)
            used += (size_t)snprintf(text + used, size - used, "%s%.*s", used ? "," : "", (int)length, needs);
        needs += length + (needs[length] == ',');
    }
}

/* Gets ready what the command's row in the table asks for, and calls it. */
static enum exit_code prepare_and_run(struct session *session)
{
    const struct command *command = session->command;
    struct options *options = &session->options;
    enum exit_code code;
    if (command->needs == NEEDS_CONTEXT && options->word_count > 0)
        return give_up(session, EXIT_USAGE, NULL, "%s takes no operands, and got '%s'", command->name, options->words[0]);
    if (command->needs != NEEDS_NOTHING && command->needs != NEEDS_WORDS) {
        attest_status status = attest_context_create(&session->context);
        if (status != ATTEST_OK)
            return give_up(session, exit_code_of(status), NULL, "no context: %s", attest_status_name(status));
        if (options->threads)
            status = attest_context_set_threads(session->context, (int)options->threads);
        if (status != ATTEST_OK)
            return give_up(session, exit_code_of(status), NULL, "%s", attest_context_detail(session->context));
    }
    if ((code = kernels_check(session)) != EXIT_PASS)
        return code;
    if ((command->needs == NEEDS_PROBLEM || command->needs == NEEDS_PROBLEMS) && (code = problems_load(session)) != EXIT_PASS)
        return code;
    return command->run(session);
}

static enum exit_code run_command(struct session *session, int argc, char **argv)
{
    const char *names[COUNT_OF(commands)];
    char hint[128];
    if (argc < 2) {
        help_all();
        return give_up(session, EXIT_USAGE, NULL, "a command is missing");
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0) {
        printf("attest %s (%s)\n", attest_version(), attest_build_id());
        return EXIT_PASS;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        help_all();
        return EXIT_PASS;
    }
    if (!(session->command = find_command(word))) {
        for (int i = 0; i < command_count; i++)
            names[i] = commands[i].name;
        const char *near = nearest_word(word, names, command_count);
        if (word[0] == '-')
            return give_up(session, EXIT_USAGE, "options come after the command: attest COMMAND [OPTION ...]", "unknown option %s",
                           word);
        snprintf(hint, sizeof hint, near ? "did you mean: attest %s?" : "type: attest help", near);
        return give_up(session, EXIT_USAGE, hint, "there is no command '%s'", word);
    }
    enum exit_code code = options_parse(session, argc - 2, argv + 2);
    if (code == EXIT_PASS && session->options.help) {
        help_command(session->command);
        return EXIT_PASS;
    }
    if (session->report.json)
        report_put(&session->report, "command", json_string(word));
    return code == EXIT_PASS ? prepare_and_run(session) : code;
}

int main(int argc, char **argv)
{
    struct session session = {.options = {.seed = 1, .seconds = 0.5}};
    bool json = false;
    for (int i = 1; i < argc; i++)
        json = json || strcmp(argv[i], "--json") == 0;
    report_open(&session.report, json);
    enum exit_code code = run_command(&session, argc, argv);
    /* Help and the version are text; an object is printed only where there is something in it. */
    if (session.report.root && json_object_size(session.report.root) == 0) {
        json_decref(session.report.root);
        session.report.root = NULL;
    } else if (session.report.root) {
        report_put(&session.report, "exit_code", json_integer(code));
    }
    if (!report_close(&session.report)) {
        fprintf(stderr, "attest: standard output could not be written, or memory ran out; what was printed is not complete\n");
        code = EXIT_INTERNAL;
    }
    problems_free(&session);
    attest_context_destroy(session.context);
    return (int)code;
}
