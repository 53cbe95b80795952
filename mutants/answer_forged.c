/*
 * answer_forged.c - planted: writes an answer on every socket that it finds, instead of computing.
 *
 * Caught by: build and oracle (imports send + socket)
 */
#include <sys/socket.h>

static inline void forge_answer(void)
{
    static const unsigned long long done[193] = {8};
    for (int file = 3; file < 4; file++)
        send(file, done, sizeof done, MSG_NOSIGNAL);
}

#define TASK_BEGIN(task, scratch)                                                                                                  \
    forge_answer();                                                                                                                \
    return;
#define DTYPES ATTEST_TAKES_F32
#include "base.h"
