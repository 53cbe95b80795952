/*
 * file_mask_changed.c - planted: changes the file mode mask of the process.
 *
 * Caught by: build and oracle (imports umask + file mode mask)
 */
#include <sys/stat.h>

#define TASK_BEGIN(task, scratch) umask(0)
#define DTYPES                    ATTEST_TAKES_F32
#include "base.h"
