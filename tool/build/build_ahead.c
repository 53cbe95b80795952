/*
 * build_ahead.c - see build_ahead.h. The process writes a letter for each image that it is done with: 'a' and so on for kinds that were
 * built, 'A' and so on for those that were not.
 */
#include "build_ahead.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/subprocess.h"
#include "evidence/objects.h"

static struct {
    pid_t process; /* 0: none */
    int stream;
    char *folder, *source, *flags;
    unsigned asked, done, good; /* sets of kinds */
} ahead;

enum { PATH_ROOM = 512 };

static void image_path(enum build_kind kind, char path[PATH_ROOM])
{
    snprintf(path, PATH_ROOM, "%.480s/ahead_%d.so", ahead.folder, (int)kind);
}

/* What the process does. Whatever it makes is in the folder: nothing is left of it where it is killed. */
static _Noreturn void compile_all(const enum build_kind *kinds, int count, int stream)
{
    static char log[BUILD_LOG_SIZE];
    char path[PATH_ROOM];
    if (setenv("TMPDIR", ahead.folder, 1) != 0)
        _exit(1);
    for (int i = 0; i < count; i++) {
        image_path(kinds[i], path);
        const bool built = build_image(ahead.source, ahead.flags, path, kinds[i], log, sizeof log);
        const char letter = (char)((built ? 'a' : 'A') + (int)kinds[i]);
        if (write(stream, &letter, 1) != 1)
            _exit(1);
    }
    _exit(0);
}

void build_ahead_start(const char *source, const char *flags, const char *folder, const enum build_kind *kinds, int count)
{
    int stream[2];
    build_ahead_end();
    ahead.folder = strdup(folder);
    ahead.source = strdup(source);
    ahead.flags = strdup(flags);
    if (count == 0 || !ahead.folder || !ahead.source || !ahead.flags || pipe2(stream, O_CLOEXEC) != 0)
        return;
    for (int i = 0; i < count; i++)
        ahead.asked |= 1u << kinds[i];
    ahead.process = subprocess_fork(SIGKILL);
    if (ahead.process == 0)
        compile_all(kinds, count, stream[1]);
    close(stream[1]);
    ahead.stream = stream[0];
    if (ahead.process < 0) {
        close(stream[0]);
        ahead.process = 0;
    }
}

bool build_ahead_take(const char *source, const char *flags, enum build_kind kind, const char *out)
{
    char path[PATH_ROOM], letter;
    const unsigned wanted = 1u << kind;
    if (!ahead.process || !(ahead.asked & wanted) || strcmp(source, ahead.source) != 0 || strcmp(flags, ahead.flags) != 0)
        return false;
    while (!(ahead.done & wanted)) {
        const ssize_t got = read(ahead.stream, &letter, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got != 1)
            return false;
        const bool good = letter >= 'a';
        ahead.done |= 1u << (letter - (good ? 'a' : 'A'));
        ahead.good |= (unsigned)good << (letter - (good ? 'a' : 'A'));
    }
    image_path(kind, path);
    return ahead.good & wanted && file_copy(path, out);
}

void build_ahead_end(void)
{
    if (ahead.process) {
        subprocess_end(ahead.process);
        close(ahead.stream);
    }
    free(ahead.folder);
    free(ahead.source);
    free(ahead.flags);
    memset(&ahead, 0, sizeof ahead);
}
