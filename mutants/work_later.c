/*
 * work_later.c - planted: A thread of its own does the work, and the call returns before it is done.
 *
 * Caught by: build and oracle (imports + which the sandbox does not allow)
 */
#include <attest_kernel.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static inline bool started_later(const attest_task *task);

#define TASK_BEGIN(task, scratch)                                                                                                  \
    if (started_later(task))                                                                                                       \
        return;
#include "base.h"

struct later {
    attest_task task;
    attest_problem problem;
    attest_tensors tensors;
    void *scratch;
};

static void *do_it_now(void *argument)
{
    struct later *later = argument;
    usleep(20000);
    compute(&later->task, later->scratch);
    free(later->scratch);
    free(later);
    return NULL;
}

static inline bool started_later(const attest_task *task)
{
    pthread_t thread;
    struct later *later = task->partial ? NULL : malloc(sizeof *later);
    if (!later)
        return false;
    *later = (struct later){*task, *task->problem, *task->tensors, NULL};
    later->task.problem = &later->problem;
    later->task.tensors = &later->tensors;
    later->scratch = malloc(scratch_size(task->problem, task->row_end - task->row_begin));
    if (later->scratch && pthread_create(&thread, NULL, do_it_now, later) == 0) {
        pthread_detach(thread);
        return true;
    }
    free(later->scratch);
    free(later);
    return false;
}
