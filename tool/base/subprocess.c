/*
 * subprocess.c - other processes. See subprocess.h.
 */
#include "subprocess.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t subprocess_fork(int death_signal)
{
    const pid_t parent = getpid();
    fflush(NULL);
    const pid_t process = fork();
    if (process == 0) {
        prctl(PR_SET_PDEATHSIG, death_signal);
        if (getppid() != parent) /* it ended before the signal was asked for */
            _exit(127);
    }
    return process;
}

int subprocess_wait(pid_t process)
{
    int status = -1;
    pid_t got;
    while ((got = waitpid(process, &status, 0)) < 0 && errno == EINTR)
        ;
    return got == process ? status : -1;
}

void subprocess_end(pid_t process)
{
    if (process <= 0)
        return;
    kill(process, SIGKILL);
    subprocess_wait(process);
}

void subprocess_ending(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "ended with signal %d", WTERMSIG(status));
    else
        snprintf(text, size, "ended with status %d", WEXITSTATUS(status));
}

bool subprocess_begin(struct subprocess *subprocess, json_t *(*work)(void *matter), void *matter, unsigned seconds)
{
    *subprocess = (struct subprocess){.answer = tmpfile()};
    if (!subprocess->answer)
        return false;
    subprocess->process = subprocess_fork(SIGTERM);
    if (subprocess->process == 0) {
        alarm(seconds);
        json_t *value = work(matter);
        exit(value && json_dumpf(value, subprocess->answer, JSON_COMPACT | JSON_ENCODE_ANY) == 0 && fflush(subprocess->answer) == 0
                 ? 0
                 : 1);
    }
    if (subprocess->process > 0)
        return true;
    fclose(subprocess->answer);
    *subprocess = (struct subprocess){0};
    return false;
}

int subprocess_await_one(struct subprocess *const *subprocesses, int count, int *status)
{
    const pid_t ended = waitpid(-1, status, 0);
    for (int n = 0; n < count; n++)
        if (ended > 0 && subprocesses[n]->process == ended)
            return n;
    return -1;
}

json_t *subprocess_answer(struct subprocess *subprocess)
{
    rewind(subprocess->answer);
    json_t *value = json_loadf(subprocess->answer, JSON_DECODE_ANY, NULL);
    fclose(subprocess->answer);
    *subprocess = (struct subprocess){0};
    return value;
}
