/*
 * worker.c - the process that a kernel runs in (see executor.h and protocol.h).
 *
 * The kernel shares this process. So nothing here is a judgement: expected values, verdict and clock are in the supervisor, and this
 * code maps tensors, calls libattest, and answers. What a kernel could change in here to hide something from these lines is either in
 * memory that it cannot write (text, constants, and tables that are made read-only before it is called) or is looked at from outside
 * (state.c).
 *
 * The order at the start matters. Features of the processor are asked for first; files are closed off; the threads are started, so
 * that they are closed off too; then clocks and system calls, for all threads, after which no thread can be started; then the words
 * that say what this process is are overwritten. Now the supervisor takes down what state the process is in, and only then is the image
 * loaded, and its constructors, if it has any, run under all filters. Once it is loaded, the last filter leaves only what it takes to
 * run a kernel (sandbox.c).
 */
#include "worker.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rubbish.h"
#include "kernel_table.h"
#include "worker_parts.h"

/* ---- answers -------------------------------------------------------------------------------------------------------- */

struct worker worker;
struct ready worker_answer;

bool worker_refuse(enum execution_end end, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(worker_answer.sentence, sizeof worker_answer.sentence, format, arguments);
    va_end(arguments);
    worker_answer.head.end = end;
    return false;
}

static void say(const void *message, size_t size)
{
    while (send(CONTROL_FILE, message, size, MSG_NOSIGNAL) < 0)
        if (errno != EINTR)
            _exit(EXIT_LOST);
}

static void say_answer(enum message_kind kind, uint64_t number, bool good)
{
    worker_answer.head.kind = kind;
    worker_answer.head.number = number;
    if (good)
        worker_answer.head.end = EXECUTION_DONE;
    say(&worker_answer, sizeof worker_answer);
}

static void say_ready(uint64_t number, bool good)
{
    say_answer(MESSAGE_READY, number, good);
}

/* A message with the files that came along. */
static ssize_t hear(void *message, size_t size, int *files, int most_files)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    struct iovec vector = {message, size};
    struct msghdr envelope = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t got;
    while ((got = recvmsg(CONTROL_FILE, &envelope, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    for (int i = 0; i < most_files; i++)
        files[i] = -1;
    const struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&envelope) : NULL;
    if (head && head->cmsg_type == SCM_RIGHTS) {
        size_t bytes = head->cmsg_len - CMSG_LEN(0);
        if (bytes <= (size_t)most_files * sizeof *files)
            memcpy(files, CMSG_DATA(head), bytes);
    }
    return got;
}

/* ---- running -------------------------------------------------------------------------------------------------------- */

static bool may_run(const struct run *run)
{
    if (run->count < 0 || run->count > EXECUTOR_SLOTS)
        return worker_refuse(EXECUTION_INVALID, "there are not so many slots");
    for (int i = 0; i < run->count; i++)
        if (run->slots[i] < 0 || run->slots[i] >= EXECUTOR_SLOTS || !worker.slots[run->slots[i]].plan)
            return worker_refuse(EXECUTION_INVALID, "slot %d is empty", run->slots[i]);
    return true;
}

/* What the GPU complains of ends its work for this process. */
static bool device_failed(attest_status status)
{
    return worker_refuse(status == ATTEST_ERROR_DEVICE   ? EXECUTION_CRASHED
                         : status == ATTEST_ERROR_MEMORY ? EXECUTION_LACKING
                                                         : EXECUTION_INVALID,
                         "%s%.600s", status == ATTEST_ERROR_DEVICE ? "" : "libattest did not take the tensors: ",
                         attest_context_detail(worker.context));
}

/* Puts the tensors of the slots where the kernel will see them, and rubbish into the workspace. */
static bool prepare(const struct run *run)
{
    attest_status status = ATTEST_OK;
    if (!may_run(run))
        return false;
    if (!worker.on_device) {
        if (run->rubbish >= 0)
            memset(worker.workspace, run->rubbish, worker.workspace_size);
        else if (run->rubbish == EXECUTOR_DRAWN)
            rubbish_fill(worker.workspace, worker.workspace_size, run->seed);
        return true;
    }
    for (int i = 0; i < run->count && i < run->moved && status == ATTEST_OK; i++)
        status = device_slot_put(&worker.slots[run->slots[i]].device);
    if (status == ATTEST_OK && run->rubbish >= 0)
        status = attest_memory_set(worker.context, worker.workspace, run->rubbish, worker.workspace_size, NULL);
    for (int i = 0; i < run->count && worker.hello.emulated; i++)
        device_slot_extents(&worker.slots[run->slots[i]].device, &worker.device_workspace);
    if (status == ATTEST_OK)
        status = attest_synchronize(worker.context, NULL);
    return status == ATTEST_OK || device_failed(status);
}

/* Runs the slots, or times them by the clock of the GPU. */
static attest_status compute(const struct run *run)
{
    attest_cuda_call calls[EXECUTOR_SLOTS];
    attest_status status = ATTEST_OK;
    if (run->replays > 0 && worker.on_device) {
        for (int i = 0; i < run->count; i++) {
            const struct worker_slot *slot = &worker.slots[run->slots[i]];
            calls[i] = (attest_cuda_call){slot->plan, &slot->tensors, worker.workspace, worker.workspace_size};
        }
        return attest_cuda_time(worker.context, calls, run->count, run->replays, &worker_answer.seconds);
    }
    for (int i = 0; i < run->count; i++) {
        const struct worker_slot *slot = &worker.slots[run->slots[i]];
        attest_status this = attest_run(worker.context, slot->plan, &slot->tensors, worker.workspace, worker.workspace_size, NULL);
        status = status == ATTEST_OK ? this : status;
    }
    return status;
}

/* Brings the outputs back from a GPU, and looks at what should not have changed there. */
static bool collect(const struct run *run)
{
    enum execution_end end = EXECUTION_INVALID;
    char why[512];
    attest_status status = attest_synchronize(worker.context, NULL);
    if (status != ATTEST_OK)
        return device_failed(status);
    for (int i = 0; i < run->count && i < run->moved; i++)
        if (!device_slot_get(&worker.slots[run->slots[i]].device, &end, why, sizeof why))
            return worker_refuse(end, "%s", why);
    return device_workspace_intact(&worker.device_workspace, why, sizeof why) || worker_refuse(EXECUTION_INVALID, "%s", why);
}

static void run_slots(const struct run *run)
{
    bool good = prepare(run);
    if (good) {
        kernel_table_choose(run->rubbish != EXECUTOR_LEFT);
        attest_status status = compute(run);
        if (status != ATTEST_OK && worker.on_device)
            good = device_failed(status);
        else if (status != ATTEST_OK)
            good = worker_refuse(EXECUTION_INVALID, "libattest did not take the tensors: something in the worker was overwritten");
        else if (worker.on_device)
            good = collect(run);
    }
    say_answer(MESSAGE_DONE, run->head.number, good);
}

/* ---- the conversation ----------------------------------------------------------------------------------------------- */

static bool begin(void)
{
    int files[2];
    if (hear(&worker.hello, sizeof worker.hello, files, 2) != (ssize_t)sizeof worker.hello ||
        worker.hello.head.kind != MESSAGE_HELLO)
        return false;
    worker.board = mmap(NULL, sizeof *worker.board, PROT_READ | PROT_WRITE, MAP_SHARED, files[0], 0);
    close(files[0]);
    if (worker.board == MAP_FAILED)
        return false;
    worker.on_device = strcmp(worker.hello.device, "cpu") != 0;
    bool good = worker.hello.emulated ? worker_set_up_emulated() : worker.on_device ? worker_set_up_device() : worker_set_up();
    say_ready(worker.hello.head.number, good);
    return good;
}

static union request {
    struct message_head head;
    struct load load;
    struct run run;
} request;

int worker_main(void)
{
    int files[2];
    if (!begin())
        return EXIT_LOST;
    for (;;) {
        ssize_t got = hear(&request, sizeof request, files, 2);
        uint32_t kind = got >= (ssize_t)sizeof request.head ? request.head.kind : 0;
        bool good = false;
        kernel_table_choose(true);
        if (kind == MESSAGE_KERNEL && got == (ssize_t)sizeof request.head && !worker.facts.name[0]) {
            good = worker_load_kernel();
            worker_answer.facts = worker.facts;
        } else if (kind == MESSAGE_LOAD && got == (ssize_t)sizeof request.load) {
            good = worker_load_slot(&request.load, files);
        } else if (kind == MESSAGE_CHECK && got == (ssize_t)sizeof request.head) {
            worker_look_at_threads();
            good = true;
        } else if (kind == MESSAGE_RUN && got == (ssize_t)sizeof request.run) {
            run_slots(&request.run);
        } else {
            return kind == MESSAGE_END && got == (ssize_t)sizeof request.head ? 0 : EXIT_LOST;
        }
        for (int i = 0; i < 2; i++)
            if (files[i] >= 0)
                close(files[i]);
        if (kind != MESSAGE_RUN)
            say_ready(request.head.number, good);
    }
}
