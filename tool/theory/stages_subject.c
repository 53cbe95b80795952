/*
 * stages_subject.c - an executor as the subject of the stage oracle (see stages.h).
 */
#include "stages.h"

static struct execution run(void *data, const struct inputs *inputs, struct outputs *outputs)
{
    struct executor *executor = data;
    struct execution execution;
    int slot = 0;
    if (!executor_fill(executor, slot, inputs) && !executor_load(executor, slot, inputs, &execution))
        return execution;
    executor_poison(executor, slot, outputs->o.base[0]);
    execution = executor_run(executor, &slot, 1, EXECUTOR_DRAWN);
    if (execution.end == EXECUTION_DONE)
        executor_copy(executor, slot, outputs);
    return execution;
}

struct subject stages_subject(struct executor *executor)
{
    return (struct subject){.run = run, .data = executor};
}
