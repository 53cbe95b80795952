/*
 * starts_process.c - planted: starts another process.
 *
 * Caught by: build and oracle (imports + start a thread or a process)
 */
#include <sys/wait.h>
#include <unistd.h>

static inline void start_process(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    if (child > 0)
        waitpid(child, NULL, 0);
}

#define TASK_BEGIN(task, scratch) start_process()
#include "base.h"
