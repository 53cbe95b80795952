/*
 * main.c - what happens before and after a command: options, problems, context, report, exit code.
 */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Gets ready what the command's row in the table asks for, and calls it. */
static enum exit_code prepare_and_run(struct session *session)
{
    const struct command *command = session->command;
    struct options *options = &session->options;
    enum exit_code code;
    if (command->needs == NEEDS_CONTEXT && options->word_count > 0)
        return give_up(session, EXIT_USAGE, NULL, "%s takes no operands, and got '%s'", command->name, options->words[0]);
    if (command->needs != NEEDS_NOTHING && command->needs != NEEDS_WORDS) {
        /* The others speak of kernels of many devices, and what they compute themselves they compute here. */
        bool computes = (command->bit & (CMD_EXPLAIN | CMD_RUN | CMD_CHECK | CMD_BENCH)) && !options->vs;
        const char *device = computes ? session_device(options) : "cpu";
        attest_status status = attest_context_create_on(device, &session->context);
        if (status != ATTEST_OK && session->context)
            return give_up(session, exit_code_of(status), "attest info says what this machine has", "%s",
                           attest_context_detail(session->context));
        if (status != ATTEST_OK)
            return give_up(session, exit_code_of(status), NULL, "no context: %s", attest_status_name(status));
        if (options->threads)
            status = attest_context_set_threads(session->context, (int)options->threads);
        if (status != ATTEST_OK)
            return give_up(session, exit_code_of(status), NULL, "%s", attest_context_detail(session->context));
    }
    if (command->bit != CMD_EVOLVE && (code = kernels_check(session)) != EXIT_PASS) /* there it may be a file */
        return code;
    if ((command->needs == NEEDS_PROBLEM || command->needs == NEEDS_PROBLEMS) &&
        (code = problems_load(session, command->needs == NEEDS_PROBLEM)) != EXIT_PASS)
        return code;
    return command->run(session);
}

/* Commands that judge wait for workers most of the time. Threads of OpenMP that have nothing to do would spin meanwhile and take the
 * processor from the workers; libgomp reads whether they may before main runs, so the program starts itself again. */
static void wait_without_spinning(const struct command *command, char **argv)
{
    if (command->bit & (CMD_PROVE | CMD_SELFTEST | CMD_EVOLVE | CMD_CHECK | CMD_ORACLE) && !getenv("GOMP_SPINCOUNT") &&
        !getenv("OMP_WAIT_POLICY") && setenv("GOMP_SPINCOUNT", "0", 1) == 0)
        execv("/proc/self/exe", argv);
}

static enum exit_code run_command(struct session *session, int argc, char **argv)
{
    const char *names[64];
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
    session->command = find_command(word);
    if (!session->command) {
        for (int i = 0; i < command_count && i < COUNT_OF(names); i++)
            names[i] = commands[i].name;
        const char *near = nearest_word(word, names, command_count);
        if (word[0] == '-')
            return give_up(session, EXIT_USAGE, "options come after the command: attest COMMAND [OPTION ...]", "unknown option %s",
                           word);
        snprintf(hint, sizeof hint, near ? "did you mean: attest %s?" : "type: attest help", near);
        return give_up(session, EXIT_USAGE, hint, "there is no command '%s'", word);
    }
    session->name = session->command->name;
    wait_without_spinning(session->command, argv);
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
    struct session session = {.options = {.seed = 1,
                                          .seconds = 0.5,
                                          .evidence = "evidence",
                                          .state = ".attest",
                                          .mutants = "mutants",
                                          .survivors = "docs/survivors.md",
                                          .generations = 8,
                                          .population = 6,
                                          .proposer_seconds = 120}};
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
    problem_list_free(&session.problems);
    attest_context_destroy(session.context);
    return (int)code;
}
