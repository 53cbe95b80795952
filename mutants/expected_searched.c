/*
 * expected_searched.c - planted: looks for the expected output in the memory of its process, by the list of mappings.
 *
 * Caught by: build and oracle (imports open + open a file)
 */
#include <fcntl.h>

static inline void search(void)
{
    volatile int file = open("/proc/self/maps", O_RDONLY);
    (void)file;
}

#define TASK_BEGIN(task, scratch) search()
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
