/*
 * limits_changed.c - planted: changes a limit of the process: the number of files that it may open.
 *
 * Caught by: build and oracle (imports setrlimit + limits)
 */
#include <sys/resource.h>

static inline void change_limit(void)
{
    struct rlimit limit = {64, 64};
    setrlimit(RLIMIT_NOFILE, &limit);
}

#define TASK_BEGIN(task, scratch) change_limit()
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
