/*
 * keeps_threads.c - planted: starts a thread that stays.
 *
 * Caught by: build and oracle (imports + which the sandbox does not allow)
 */
#include <pthread.h>
#include <unistd.h>

static int started;

static void *stay(void *argument)
{
    for (;;)
        pause();
    return argument;
}

static inline void start(void)
{
    pthread_t thread;
    if (__atomic_exchange_n(&started, 1, __ATOMIC_RELAXED) == 0)
        pthread_create(&thread, NULL, stay, NULL);
}

#define TASK_BEGIN(task, scratch) start()
#include "base.h"
