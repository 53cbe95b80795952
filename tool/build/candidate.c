/*
 * candidate.c - from a word of the command line to a candidate: see candidate.h.
 *
 * candidate.facts, which go into evidence, are filled by the build gate: source, sources (every file it includes, system headers
 * aside, with its digest), closure (one digest of sources and flags), flags, compiler, image (digest), image_bytes; and what the
 * kernel declares of itself: name, needs, summary, dtypes, refuses.
 */
#include "candidate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/regular_file.h"

static const struct {
    const char *ending;
    enum candidate_kind kind;
    bool cuda, built;
} kinds[] = {
    {".c", CANDIDATE_C, false, false},       {".so", CANDIDATE_SO, false, true},    {".cu", CANDIDATE_CU, true, false},
    {".cubin", CANDIDATE_IMAGE, true, true}, {".ptx", CANDIDATE_IMAGE, true, true},
};

const char *candidate_kind_name(enum candidate_kind kind)
{
    static const char *const names[] = {"shipped", "c", "so", "cu", "image"};
    return names[kind];
}

char *candidate_flags(const char *source)
{
    static const char mark[] = "attest-flags:";
    char why[512];
    FILE *file = regular_file_open(source, why, sizeof why);
    char *line = NULL, *flags = file ? calloc(1, 1) : NULL;
    size_t size = 0, used = 0;
    while (flags && getline(&line, &size, file) >= 0) {
        char *at = line + strspn(line, " *\t");
        if (strncmp(at, mark, sizeof mark - 1) == 0) {
            at += sizeof mark - 1;
            at += strspn(at, " \t");
            at[strcspn(at, "\r\n")] = '\0';
            size_t length = strlen(at);
            char *grown = realloc(flags, used + length + 2);
            if (!grown) {
                free(flags);
                flags = NULL;
                break;
            }
            flags = grown;
            used += (size_t)sprintf(flags + used, "%s%s", used ? " " : "", at);
        }
        if (strstr(line, "*/")) /* the first comment is over */
            break;
    }
    free(line);
    if (file)
        fclose(file);
    return flags;
}

/* cpu_fwd_f32_avx512 has the dtype f32, and lib/cpu/cpu_fwd_avx512.c is its source; that of cuda_fwd_f16_sm80 is
 * lib/cuda/kernels/cuda_fwd_sm80.cu. */
static enum exit_code open_shipped(struct session *session, struct candidate *candidate)
{
    static const struct {
        const char *word;
        uint32_t dtype;
    } dtypes[] = {{"_f32_", ATTEST_F32}, {"_f16_", ATTEST_F16}, {"_bf16_", ATTEST_BF16}};
    const char *names[64];
    int count = 0;
    bool found = false;
    attest_kernel_info info = {.size = sizeof info};
    for (size_t i = 0; i < attest_kernel_count(); i++) {
        if (attest_kernel_get(i, &info) != ATTEST_OK || strcmp(info.backend, "ref") == 0)
            continue;
        if (strcmp(info.name, candidate->word) == 0) {
            found = true;
            candidate->cuda = strcmp(info.backend, "cuda") == 0;
        }
        if (count < COUNT_OF(names))
            names[count++] = info.name;
    }
    if (!found) {
        const char *near = nearest_word(candidate->word, names, count);
        char hint[256];
        snprintf(hint, sizeof hint,
                 near ? "did you mean %s?" : "attest list names the kernels; a file ends in .c, .so, .cu, .cubin or .ptx", near);
        return give_up(session, EXIT_USAGE, hint, "%s is no kernel of this build, and no file that can be proven", candidate->word);
    }
    for (int i = 0; i < COUNT_OF(dtypes); i++) {
        const char *at = strstr(candidate->word, dtypes[i].word);
        if (!at)
            continue;
        candidate->dtype = dtypes[i].dtype;
        if (asprintf(&candidate->source, candidate->cuda ? "lib/cuda/kernels/%.*s_%s.cu" : "lib/cpu/%.*s_%s.c",
                     (int)(at - candidate->word), candidate->word, at + strlen(dtypes[i].word)) < 0)
            candidate->source = NULL;
    }
    candidate->name = strdup(candidate->word);
    if (!candidate->source || !candidate->name)
        return give_up(session, EXIT_LACKING, NULL, "out of memory");
    if (access(candidate->source, R_OK) != 0)
        return give_up(session, EXIT_LACKING, "run this in the root of attest's source tree",
                       "%s: its source %s is not here: a kernel of the library is proven from its source", candidate->word,
                       candidate->source);
    return EXIT_PASS;
}

enum exit_code candidate_open(struct session *session, const char *word, struct candidate *candidate)
{
    const char *ending = strrchr(word, '.'), *slash = strrchr(word, '/'), *stem = slash ? slash + 1 : word;
    *candidate = (struct candidate){.kind = CANDIDATE_SHIPPED, .word = strdup(word), .facts = json_object()};
    if (!candidate->word || !candidate->facts)
        return give_up(session, EXIT_LACKING, NULL, "out of memory");
    for (int i = 0; i < COUNT_OF(kinds); i++) {
        if (!ending || strcmp(ending, kinds[i].ending) != 0)
            continue;
        candidate->kind = kinds[i].kind;
        candidate->cuda = kinds[i].cuda;
        candidate->name = strndup(stem, (size_t)(ending - stem));
        *(kinds[i].built ? &candidate->image : &candidate->source) = strdup(word);
        char why[512];
        int file = regular_file_descriptor(word, why, sizeof why);
        if (file < 0)
            return give_up(session, EXIT_USAGE, "attest new NAME --cpu writes a kernel to begin with", "%s", why);
        close(file);
        if (!candidate->name || !*candidate->name ||
            candidate->name[strspn(candidate->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")])
            return give_up(session, EXIT_USAGE, "rename the file: letters, digits and _", "%s: '%s' cannot be the name of a kernel",
                           word, candidate->name ? candidate->name : "");
        return EXIT_PASS;
    }
    if (slash || (ending && access(word, F_OK) == 0))
        return give_up(session, EXIT_USAGE,
                       "a file ends in .c, .so, .cu, .cubin or .ptx; attest list names the kernels of the library",
                       "%s is no file that can be proven", word);
    return open_shipped(session, candidate);
}

void candidate_close(struct candidate *candidate)
{
    free(candidate->word);
    free(candidate->name);
    free(candidate->source);
    free(candidate->image);
    json_decref(candidate->facts);
    *candidate = (struct candidate){0};
}
