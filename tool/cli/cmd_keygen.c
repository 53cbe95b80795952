/*
 * cmd_keygen.c - attest keygen: a key pair to sign evidence with.
 */
#include "commands.h"

#include "evidence/dsse.h"

enum exit_code cmd_keygen(struct session *session)
{
    const struct options *options = &session->options;
    char key[KEY_TEXT], why[1024] = "";
    if (options->word_count != 1)
        return give_up(session, EXIT_USAGE, "such as: attest keygen release", "keygen takes one FILE, and got %d words",
                       options->word_count);
    const char *path = options->words[0];
    if (!key_generate(path, key, why, sizeof why))
        return give_up(session, EXIT_USAGE, "choose another name", "%s", why);
    report_put(&session->report, "secret_key", json_string(path));
    report_put(&session->report, "public_key", json_text("%s.pub", path));
    report_put(&session->report, "key", json_string(key));
    report_put(&session->report, "sign_with", json_text("attest prove KERNEL --record --sign %s", path));
    report_put(&session->report, "verify_with", json_text("attest verify --key %s.pub", path));
    return EXIT_PASS;
}
