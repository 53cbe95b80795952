/*
 * cmd_new.c - attest new: writes a kernel to begin with. What it writes are kernels themselves, those of templates/ and the
 * library's lib/cuda/kernels/cuda_fwd_scalar.cu; the word that is their name is replaced by the new one.
 */
#include "commands.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/embedded.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
enum { LONGEST_NAME = 64 };

static const struct {
    const char *arch; /* as --arch names it; the first is the default */
    const struct embedded *template;
} cuda_templates[] = {{"sm_80", &embedded_cuda_sm80}, {"sm_90a", &embedded_cuda_sm90}, {"any", &embedded_cuda_scalar}};

/* NULL if there is none of this name. */
static const struct embedded *cuda_template(const char *arch)
{
    for (int i = 0; i < COUNT_OF(cuda_templates); i++)
        if (!arch || strcmp(arch, cuda_templates[i].arch) == 0)
            return cuda_templates[i].template;
    return NULL;
}

static bool is_of_name(char c)
{
    return c && strchr(NAME_CHARACTERS, c);
}

/* The name becomes that of a file, of a table and of evidence. */
static enum exit_code check_name(struct session *session, const char *name)
{
    attest_kernel_info info = {.size = sizeof info};
    size_t length = strlen(name);
    if (length == 0 || length > LONGEST_NAME || name[strspn(name, NAME_CHARACTERS)] || isdigit((unsigned char)name[0]))
        return give_up(session, EXIT_USAGE,
                       "letters, digits and _, at most 64 of them, and no digit first: attest new my_kernel --cpu",
                       "'%.80s' cannot be the name of a kernel", name);
    for (size_t i = 0; i < attest_kernel_count(); i++)
        if (attest_kernel_get(i, &info) == ATTEST_OK && strcmp(info.name, name) == 0)
            return give_up(session, EXIT_USAGE, "choose another name: evidence is kept by it", "%s is a kernel of the library",
                           name);
    return EXIT_PASS;
}

/* Writes the template with its name, where it stands alone, replaced. */
static bool write_template(FILE *file, const struct embedded *template, const char *name)
{
    size_t length = strlen(template->name);
    for (const char *at = template->data; at < template->end; at++) {
        bool here =
            strncmp(at, template->name, length) == 0 && !is_of_name(at[length]) && (at == template->data || !is_of_name(at[-1]));
        if (here) {
            fputs(name, file);
            at += length - 1;
        } else {
            fputc(*at, file);
        }
    }
    return !ferror(file);
}

enum exit_code cmd_new(struct session *session)
{
    const struct options *options = &session->options;
    const char *ending = options->cuda ? "cu" : "c", *folder = options->out ? options->out : ".";
    char *path = NULL;
    if (options->word_count != 1)
        return give_up(session, EXIT_USAGE, "such as: attest new my_kernel --cpu", "new takes one NAME, and got %d words",
                       options->word_count);
    if (options->cpu == options->cuda)
        return give_up(session, EXIT_USAGE, "such as: attest new my_kernel --cpu",
                       "say which kind of kernel: --cpu (in C) or --cuda (in CUDA C)%s", options->cpu ? ", not both" : "");
    const struct embedded *template = options->cuda ? cuda_template(options->arch) : &embedded_cpu_template;
    if (options->arch && !options->cuda)
        return give_up(session, EXIT_USAGE, "leave it out, or say --cuda", "--arch is for CUDA kernels");
    if (!template)
        return give_up(session, EXIT_USAGE, "say sm_80, sm_90a or any", "there is no template for --arch %.40s", options->arch);
    const char *name = options->words[0];
    enum exit_code code = check_name(session, name);
    if (code != EXIT_PASS)
        return code;
    bool here = strcmp(folder, ".") == 0;
    if (asprintf(&path, "%s%s%s.%s", here ? "" : folder, here ? "" : "/", name, ending) < 0)
        return give_up(session, EXIT_LACKING, NULL, "out of memory");
    FILE *file = fopen(path, "wx"); /* fails if there is such a file */
    if (!file) {
        code = errno == EEXIST
                   ? give_up(session, EXIT_USAGE, "choose another name, or remove the file", "%s is there already", path)
                   : give_up(session, EXIT_USAGE, "choose a folder that is there with --out DIR", "%s cannot be written: %s", path,
                             strerror(errno));
    } else {
        bool written = write_template(file, template, name);
        written = fclose(file) == 0 && written;
        if (!written) {
            code = give_up(session, EXIT_LACKING, NULL, "%s could not be written to its end: %s", path, strerror(errno));
            unlink(path);
        }
    }
    if (code == EXIT_PASS) {
        report_put(&session->report, "wrote", json_string(path));
        report_put(&session->report, "prove_it_with", json_text("attest prove %s", path));
    }
    free(path);
    return code;
}
