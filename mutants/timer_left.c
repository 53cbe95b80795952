/*
 * timer_left.c - planted: leaves a timer that will send a signal.
 *
 * Caught by: build and oracle (imports setitimer + set a timer)
 */
#include <stddef.h>
#include <sys/time.h>

static inline void leave_timer(void)
{
    struct itimerval soon = {.it_value = {.tv_sec = 3600}};
    setitimer(ITIMER_REAL, &soon, NULL);
}

#define TASK_BEGIN(task, scratch) leave_timer()
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
