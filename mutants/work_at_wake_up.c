/*
 * work_at_wake_up.c - planted: computes half of its tasks in a signal handler, when the worker is woken and before the clock starts.
 *
 * Caught by: build and oracle (imports sigaction + install a signal handler)
 */
#include <attest_kernel.h>
#include <signal.h>
#include <stdlib.h>

static inline bool done_at_wake_up(const attest_task *task);

#define TASK_BEGIN(task, scratch)                                                                                                  \
    if (done_at_wake_up(task))                                                                                                     \
        return;
#define DTYPES ATTEST_TAKES_F32
#include "base.h"

enum { MOST_KEPT = 64 };
static struct kept {
    attest_task task;
    attest_problem problem;
    attest_tensors tensors;
    void *scratch;
} kept[MOST_KEPT];
static int count, done;

/* The inputs of the next call are there already. */
static void wake_up(int number)
{
    (void)number;
    for (done = 0; done < count; done++)
        compute(&kept[done].task, kept[done].scratch);
}

/* Keeps every other task for later. */
static inline bool done_at_wake_up(const attest_task *task)
{
    for (int i = 0; i < done; i++)
        if (memcmp(&kept[i].tensors, task->tensors, sizeof kept[i].tensors) == 0 && kept[i].task.row_begin == task->row_begin &&
            kept[i].task.head_kv == task->head_kv && kept[i].task.batch == task->batch)
            return true;
    struct sigaction action = {.sa_handler = wake_up};
    if (count == MOST_KEPT || task->partial || sigaction(SIGCONT, &action, NULL) != 0)
        return false;
    struct kept *next = &kept[count];
    *next =
        (struct kept){*task, *task->problem, *task->tensors, malloc(scratch_size(task->problem, task->row_end - task->row_begin))};
    next->task.problem = &next->problem;
    next->task.tensors = &next->tensors;
    count += next->scratch != NULL;
    return false;
}
