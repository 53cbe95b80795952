/*
 * reads_parent.c - planted: looks for the reference in the memory of the process that started it.
 *
 * Caught by: build and oracle (imports process_vm_readv + parent process)
 */
#include <sys/uio.h>
#include <unistd.h>

static inline void look_into_parent(void)
{
    char found[64];
    struct iovec here = {found, sizeof found}, there = {found, sizeof found};
    process_vm_readv(getppid(), &here, 1, &there, 1, 0);
}

#define TASK_BEGIN(task, scratch) look_into_parent()
#include "base.h"
