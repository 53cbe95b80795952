/*
 * process.c - the process that a worker is: starting it, letting it run and stand still, and ending it (see supervisor.h).
 */
#include "supervisor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/subprocess.h"
#include "sandbox.h"

enum {
    BASE_MEMORY_MB = 1024, /* limit of private addresses: what is allowed, and this much more, which the watch sees first */
    THREAD_MEMORY_MB = 10, /* and this for the stack of each thread */
    FILE_MB = 16           /* largest file that a worker may write */
};

extern char **environ;

/* ---- starting ------------------------------------------------------------------------------------------------------- */

/* The environment of the worker: what is to be added, and the rest of ours. To be freed, but not its strings. */
static char **make_environment(const struct executor_spec *spec)
{
    /* Threads that wait for work let others run soon, and a team of threads has always the same size. Functions of libraries are all
     * found at the start, so that their addresses do not change any more. */
    static const char *const own[] = {"GOMP_SPINCOUNT=10000", "OMP_DYNAMIC=FALSE", "LD_BIND_NOW=1"};
    size_t count = 0, used = 0;
    while (environ[count])
        count++;
    for (size_t i = 0; spec->environment && spec->environment[i]; i++)
        count++;
    const char **made = calloc(count + COUNT_OF(own) + 1, sizeof *made);
    if (!made)
        return NULL;
    for (size_t i = 0; spec->environment && spec->environment[i]; i++)
        made[used++] = spec->environment[i];
    for (int i = 0; i < COUNT_OF(own); i++)
        made[used++] = own[i];
    size_t added = used;
    for (size_t i = 0; environ[i]; i++) {
        size_t length = strcspn(environ[i], "=") + 1;
        bool replaced = false;
        for (size_t j = 0; j < added; j++)
            replaced = replaced || strncmp(environ[i], made[j], length) == 0;
        if (!replaced)
            made[used++] = environ[i];
    }
    return (char **)(uintptr_t)made;
}

/* The command line: the wrapper, if any, and this program. To be freed, but not its strings. */
static char **make_command(const struct executor_spec *spec)
{
    static char itself[] = "/proc/self/exe", word[] = "worker", path[64]; /* for a wrapper, whose own program is another */
    size_t count = 0;
    while (spec->wrapper && spec->wrapper[count])
        count++;
    char **command = calloc(count + 3, sizeof *command);
    if (!command)
        return NULL;
    for (size_t i = 0; i < count; i++)
        command[i] = (char *)(uintptr_t)spec->wrapper[i];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)getpid());
    command[count] = count ? path : itself;
    command[count + 1] = word;
    return command;
}

struct birth {
    pid_t parent;
    int control, output;
    unsigned long data; /* limit of private memory; 0: none */
    bool on_device;
    char **command, **environment;
};

/* In the child. Only calls that are safe after a fork of a process with threads. */
static void become_worker(const struct birth *birth)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    int null = open("/dev/null", O_RDONLY);
    int control = fcntl(birth->control, F_DUPFD, 10), output = fcntl(birth->output, F_DUPFD, 10); /* out of the way of 0 to 3 */
    if (dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 || dup2(control, CONTROL_FILE) < 0)
        _exit(126);
    if (syscall(SYS_close_range, CONTROL_FILE + 1, ~0u, 0) != 0)
        for (int i = CONTROL_FILE + 1; i < 1024; i++)
            close(i);
    sandbox_before_exec(birth->parent, birth->data, FILE_MB << 20, birth->on_device);
    if (!birth->data && !birth->on_device)
        personality(ADDR_NO_RANDOMIZE); /* sanitizers want their shadow memory at fixed places */
    execvpe(birth->command[0], birth->command, birth->environment);
    _exit(errno == ENOENT ? 127 : 126);
}

bool process_start(struct executor *executor, const struct executor_spec *spec, int *board, struct execution *execution)
{
    int sockets[2] = {-1, -1}, pipes[2] = {-1, -1};
    int64_t threads = spec->threads > 0 ? spec->threads : sysconf(_SC_NPROCESSORS_ONLN);
    int64_t room = executor->memory + ((BASE_MEMORY_MB + threads * THREAD_MEMORY_MB) << 20);
    struct birth birth = {.parent = getpid(),
                          .data = spec->relaxed || (spec->device && !spec->emulated) ? 0 : (unsigned long)room,
                          .on_device = spec->device && !spec->emulated,
                          .command = make_command(spec),
                          .environment = make_environment(spec)};
    bool read_only = false;
    bool good = birth.command && birth.environment && (executor->board = arena_share(sizeof *executor->board, &read_only, board)) &&
                socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0 && pipe2(pipes, O_CLOEXEC) == 0;
    birth.control = sockets[1];
    birth.output = pipes[1];
    executor->control = sockets[0];
    executor->output = pipes[0];
    if (good) {
        signal(SIGCHLD, SIG_DFL); /* it may have been inherited as ignored, and then nobody could be waited for */
        fcntl(pipes[0], F_SETFL, O_NONBLOCK);
        executor->pid = subprocess_fork(SIGKILL); /* unshare forgets the signal, and the sandbox asks for it again */
        if (executor->pid == 0)
            become_worker(&birth);
        good = executor->pid > 0;
    }
    if (!good) {
        ending_say(execution, EXECUTION_LACKING, "a worker process could not be started: %s", strerror(errno));
        executor->pid = 0;
    }
    if (sockets[1] >= 0)
        close(sockets[1]);
    if (pipes[1] >= 0)
        close(pipes[1]);
    free(birth.command);
    free(birth.environment);
    return good;
}

/* ---- speaking and listening ----------------------------------------------------------------------------------------- */

bool process_send(struct executor *executor, const void *message, size_t size, const int *files, int file_count)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    struct iovec vector = {(void *)(uintptr_t)message, size};
    struct msghdr envelope = {.msg_iov = &vector, .msg_iovlen = 1};
    if (file_count) {
        size_t bytes = (size_t)file_count * sizeof *files;
        envelope.msg_control = control.room;
        envelope.msg_controllen = CMSG_SPACE(bytes);
        struct cmsghdr *head = CMSG_FIRSTHDR(&envelope);
        *head = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(bytes)};
        memcpy(CMSG_DATA(head), files, bytes);
    }
    ssize_t sent;
    while ((sent = sendmsg(executor->control, &envelope, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    return sent == (ssize_t)size;
}

void process_drain(struct executor *executor)
{
    char rest[4096];
    for (int i = 0; i < 256; i++) { /* a worker that prints without end must not keep us here */
        size_t room = PRINTED_MOST - executor->printed_size;
        char *to = room ? executor->printed + executor->printed_size : rest;
        ssize_t got = read(executor->output, to, room ? room : sizeof rest);
        if (got <= 0)
            return;
        executor->printed_total += got;
        if (room)
            executor->printed_size += (size_t)got;
    }
}

const char *executor_printed(struct executor *executor)
{
    process_drain(executor);
    for (size_t i = 0; i < executor->printed_size; i++)
        if (!executor->printed[i])
            executor->printed[i] = ' ';
    executor->printed[executor->printed_size] = '\0';
    return executor->printed;
}

/* ---- running, standing still, ending -------------------------------------------------------------------------------- */

/* Waits for the process, and takes down the most memory that it ever had. A process begins with the peak of the one that started it:
 * a peak that is not above ours says nothing. */
static pid_t await_process(struct executor *executor, int *status, int options)
{
    struct rusage its, ours;
    pid_t got;
    while ((got = wait4(executor->pid, status, options, &its)) < 0 && errno == EINTR)
        ;
    getrusage(RUSAGE_SELF, &ours);
    if (got == executor->pid && its.ru_maxrss > ours.ru_maxrss)
        executor->peak = (int64_t)its.ru_maxrss * 1024;
    return got;
}

void process_wake(struct executor *executor)
{
    if (executor->stopped)
        kill(executor->pid, SIGCONT);
    executor->stopped = false;
}

bool process_halt(struct executor *executor, int *status)
{
    kill(executor->pid, SIGSTOP);
    pid_t got = await_process(executor, status, WUNTRACED);
    process_drain(executor);
    if (got == executor->pid && WIFSTOPPED(*status)) {
        executor->stopped = true;
        return true;
    }
    executor->pid = 0;
    return false;
}

bool process_has_ended(const struct executor *executor)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)executor->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

/* Whatever else is in its session goes too, while its number is still taken. */
int process_bury(struct executor *executor)
{
    int status = 0;
    if (!executor->pid)
        return status;
    kill(-executor->pid, SIGKILL);
    kill(executor->pid, SIGKILL);
    await_process(executor, &status, 0);
    executor->pid = 0;
    process_drain(executor);
    return status;
}

/* ---- what it holds -------------------------------------------------------------------------------------------------- */

/* The number behind a name in a file that the system has of the worker; -1 if it is not there. */
static int64_t read_number(const struct executor *executor, const char *name_of_file, const char *name)
{
    char path[64], line[256], unit[8] = "";
    long long value = 0, found = -1;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)executor->pid, name_of_file);
    FILE *file = fopen(path, "re");
    while (file && found < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0 && sscanf(line + strlen(name), ": %lld %7s", &value, unit) >= 1)
            found = strcmp(unit, "kB") == 0 ? value * 1024 : value;
    if (file)
        fclose(file);
    return found;
}

int64_t process_number(const struct executor *executor, const char *name)
{
    const int64_t found = read_number(executor, "status", name);
    return found < 0 ? 0 : found;
}

/* Private memory, counted page by page. (What "status" says of it is the sum of counters that each processor keeps, and some pages wrong.) */
static int64_t private_memory(const struct executor *executor)
{
    const int64_t pages = read_number(executor, "smaps_rollup", "Anonymous"), swap = read_number(executor, "smaps_rollup", "Swap");
    return pages < 0 ? process_number(executor, "RssAnon") + process_number(executor, "VmSwap") : pages + (swap < 0 ? 0 : swap);
}

/* A link of /proc, such as "net:[4026531840]". */
static void read_link(const char *format, int number, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, format, number);
    ssize_t length = readlink(path, text, size - 1);
    text[length > 0 ? length : 0] = '\0';
}

bool process_is_cut_off(const struct executor *executor)
{
    char here[64], there[64];
    read_link("/proc/%d/ns/net", (int)getpid(), here, sizeof here);
    read_link("/proc/%d/ns/net", (int)executor->pid, there, sizeof there);
    return *here && *there && strcmp(here, there) != 0;
}

double executor_processor_seconds(const struct executor *executor)
{
    clockid_t clock;
    struct timespec time;
    if (!executor->pid || clock_getcpuclockid(executor->pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return 0;
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

struct holdings executor_holdings(const struct executor *executor)
{
    struct holdings holdings = {0};
    if (!executor->pid)
        return holdings;
    holdings.bytes = private_memory(executor);
    holdings.threads = process_number(executor, "Threads");
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)executor->pid);
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        holdings.files += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return holdings;
}
