/*
 * signals_blocked.c - planted: blocks all signals and leaves them blocked.
 *
 * Caught by: build and oracle (imports sigprocmask + block signals)
 */
#include <signal.h>

static inline void block_signals(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
}

#define TASK_BEGIN(task, scratch) block_signals()
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
