/*
 * cmd_help.c - attest help [COMMAND], and attest help --man, which prints docs/attest.1.
 */
#include "commands.h"

enum exit_code cmd_help(struct session *session)
{
    const struct options *options = &session->options;
    if (options->man) {
        help_man();
        return EXIT_PASS;
    }
    if (options->word_count == 0) {
        help_all();
        return EXIT_PASS;
    }
    const struct command *command = find_command(options->words[0]);
    if (!command || options->word_count > 1)
        return give_up(session, EXIT_USAGE, "type: attest help, for the list of commands", "there is no command '%s'",
                       options->words[command ? 1 : 0]);
    help_command(command);
    return EXIT_PASS;
}
