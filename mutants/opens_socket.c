/*
 * opens_socket.c - planted: opens a socket.
 *
 * Caught by: build and oracle (imports + open a socket)
 */
#include <sys/socket.h>
#include <unistd.h>

static inline void call_home(void)
{
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connection >= 0)
        close(connection);
}

#define TASK_BEGIN(task, scratch) call_home()
#include "base.h"
