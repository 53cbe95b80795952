/*
 * writes_file.c - planted: keeps notes in a file outside of its folder, and gives up where it cannot.
 *
 * Caught by: build and oracle (imports + open a file)
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static inline void leave_a_note(void)
{
    int file = open("/tmp/attest_mutant_was_here", O_WRONLY | O_CREAT, 0600);
    if (file < 0)
        abort();
    close(file);
}

#define TASK_BEGIN(task, scratch) leave_a_note()
#include "base.h"
