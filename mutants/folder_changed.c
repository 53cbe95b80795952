/*
 * folder_changed.c - planted: changes the current folder of the process.
 *
 * Caught by: build and oracle (imports chdir + change its folder)
 */
#include <unistd.h>

static inline void change_folder(void)
{
    if (chdir("/") != 0)
        return;
}

#define TASK_BEGIN(task, scratch) change_folder()
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
