/*
 * worker_surroundings.c - a command line and an environment that say nothing (see worker_surroundings.h).
 *
 * A kernel that finds out in which process it runs can be right in that one and wrong elsewhere. Its image imports nothing that would
 * tell (build gate), but the words are on the stack, and an address can be computed. So they are overwritten before the image is
 * loaded, when the libraries that want to know them have read them, and each worker has others: what a kernel makes of them is not the
 * same in two workers.
 */
#include "worker_surroundings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/random.h"
#include "base/session.h"

extern char **environ;

enum { MOST_ARGUMENTS = 64, TEXT_MOST = 64 };

static const char *const programs[] = {"./a.out", "python3", "server", "/usr/bin/serve",
                                       "bench",   "run",     "main",   "/opt/app/bin/app"};
static const char *const arguments[] = {"--verbose", "8", "data", "-c", "input.bin", "worker", "/tmp/config", "--port=80"};
static const char *const variables[] = {"HOME=/root",
                                        "PATH=/usr/local/bin:/usr/bin:/bin",
                                        "USER=user",
                                        "LANG=C.UTF-8",
                                        "SHELL=/bin/sh",
                                        "TERM=xterm",
                                        "PWD=/",
                                        "LOGNAME=user",
                                        "HOSTNAME=localhost",
                                        "OMP_NUM_THREADS=4",
                                        "LC_ALL=C",
                                        "TMPDIR=/tmp",
                                        "SHLVL=1",
                                        "EDITOR=vi",
                                        "DISPLAY=:0",
                                        "OLDPWD=/tmp"};

/* Writes the text behind *at if it fits before `end`. Returns where it was written. */
static char *put(char **at, const char *end, const char *text)
{
    size_t size = strlen(text) + 1;
    char *written = *at;
    if ((size_t)(end - written) < size)
        return NULL;
    memcpy(written, text, size);
    *at += size;
    return written;
}

/* The number of arguments, which lies before them, and they before the environment; 0 if it is not so. */
static int count_arguments(char **after)
{
    if (!after || after[-1])
        return 0;
    for (int count = 1; count < MOST_ARGUMENTS; count++)
        if ((uintptr_t)after[-2 - count] == (uintptr_t)count)
            return count;
    return 0;
}

void neutral_words(uint64_t seed)
{
    int count = count_arguments(environ), used = 0;
    char **words = environ - 1 - count;
    if (!count)
        return;
    char *at = words[0], *end = at;
    for (char **word = words; word < environ + 1 || *word; word++) /* the arguments, NULL, the environment, NULL */
        if (*word && *word >= at && *word + strlen(*word) + 1 > end)
            end = *word + strlen(*word) + 1;
    char *name = (char *)getauxval(AT_EXECFN); /* NOLINT: an address */
    if (name >= end && name < end + TEXT_MOST)
        end = name + strlen(name) + 1;
    memset(at, 0, (size_t)(end - at));
    words[0] = put(&at, end, programs[random_bits(seed, 0, 0) % COUNT_OF(programs)]);
    for (int i = 1; i < count; i++)
        words[i] = put(&at, end, arguments[random_bits(seed, 1, (uint64_t)i) % COUNT_OF(arguments)]);
    char **variable = environ;
    int room = 0;
    while (environ[room])
        room++;
    for (int i = 0; i < COUNT_OF(variables) && used < room; i++)
        if (random_bits(seed, 2, (uint64_t)i) & 1 && (variable[used] = put(&at, end, variables[i])))
            used++;
    for (int i = used; i < room; i++)
        variable[i] = NULL;
}
