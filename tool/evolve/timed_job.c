/*
 * timed_job.c - processes with a deadline. See timed_job.h.
 *
 * A process that is late is killed, and so is whatever it started: compilers, workers, and what a proposer left in the background.
 * That all of these can be found, this process adopts orphans (PR_SET_CHILD_SUBREAPER), and after an job, when it should have no
 * child, it ends those that it has.
 */
#include "base/clock.h"
#include "base/subprocess.h"
#include "timed_job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "evidence/objects.h"

#define TICK_SECONDS 0.2
enum { PAUSE_MS = 10, SWEEPS = 200 };

void timed_jobs_begin(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGPIPE, SIG_IGN); /* a proposer need not read what it is told */
}

/* ---- ending what was started --------------------------------------------------------------------------------------------- */

/* Ends one round of children; false if there was none. */
static bool end_children(void)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file >= 0 ? read(file, text, sizeof text - 1) : 0;
    if (file >= 0)
        close(file);
    text[got > 0 ? got : 0] = '\0';
    char *rest = NULL, *word = strtok_r(text, " ", &rest);
    bool any = word != NULL;
    for (; word; word = strtok_r(NULL, " ", &rest))
        kill((pid_t)atoi(word), SIGKILL);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    return any;
}

static void end_all(void)
{
    struct timespec pause = {.tv_nsec = 2000000};
    for (int i = 0; i < SWEEPS && end_children(); i++)
        nanosleep(&pause, NULL);
}

/* ---- waiting --------------------------------------------------------------------------------------------------------------- */

struct waiting {
    struct timed_job *job;
    double next_tick;
};

/* Called often while a process runs; false once the time is over. */
static bool goes_on(struct waiting *waiting)
{
    double now = seconds_now();
    if (waiting->job->tick && now >= waiting->next_tick) {
        waiting->job->tick(waiting->job->data);
        waiting->next_tick = now + TICK_SECONDS;
    }
    return now < waiting->job->deadline;
}

/* ---- work ------------------------------------------------------------------------------------------------------------------ */

static void do_work(const struct timed_job *job, json_t *(*work)(void *), void *matter, const char *result, const char *log)
{
    int file = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || dup2(file, STDOUT_FILENO) < 0 || dup2(file, STDERR_FILENO) < 0 || setenv("TMPDIR", job->folder, 1) != 0)
        exit(3);
    json_t *value = work(matter);
    exit(value && json_dump_file(value, result, JSON_COMPACT | JSON_ENCODE_ANY) == 0 ? 0 : 1);
}

/* The last line that the process wrote is the best that is known of why it has no result. */
static void read_reason(const char *log, char *why, size_t size)
{
    size_t length = 0, used = strlen(why);
    char *text = file_read(log, &length), *line = NULL, *rest = NULL;
    for (char *next = text ? strtok_r(text, "\n", &rest) : NULL; next; next = strtok_r(NULL, "\n", &rest))
        line = strncmp(next, "attest", 6) == 0 || !line ? next : line;
    if (line)
        snprintf(why + used, used < size ? size - used : 0, ": %.300s", line);
    free(text);
}

json_t *timed_job_work(struct timed_job *job, json_t *(*work)(void *matter), void *matter, char *why, size_t why_size)
{
    char result[4200], log[4200];
    struct waiting waiting = {.job = job};
    int status = 0;
    json_t *value = NULL;
    job->late = false;
    snprintf(result, sizeof result, "%.4000s/result.json", job->folder);
    snprintf(log, sizeof log, "%.4000s/log", job->folder);
    if (!folder_make(job->folder)) {
        snprintf(why, why_size, "%s cannot be made: %s", job->folder, strerror(errno));
        return NULL;
    }
    unlink(result);
    pid_t child = subprocess_fork(SIGKILL);
    if (child == 0)
        do_work(job, work, matter, result, log);
    if (child < 0) {
        snprintf(why, why_size, "no process: %s", strerror(errno));
        return NULL;
    }
    pid_t ended = 0;
    while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
        struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
        if (!goes_on(&waiting)) {
            job->late = true;
            break;
        }
        nanosleep(&pause, NULL);
    }
    end_all();
    if (job->late) {
        snprintf(why, why_size, "the time was over");
        return NULL;
    }
    json_error_t error;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && (value = json_load_file(result, JSON_DECODE_ANY, &error)))
        return value;
    size_t used = (size_t)snprintf(why, why_size, "its process ");
    subprocess_ending(status, why + used, why_size - used);
    read_reason(log, why, why_size);
    return NULL;
}

/* ---- questions ------------------------------------------------------------------------------------------------------------- */

struct pipes {
    pid_t child;
    int to, from; /* -1: closed */
    const char *input;
    size_t left;
    char *output;
    size_t size, room, most;
};

static void close_pipe(int *pipe_end)
{
    if (*pipe_end >= 0)
        close(*pipe_end);
    *pipe_end = -1;
}

static void feed(struct pipes *pipes)
{
    ssize_t done = write(pipes->to, pipes->input, pipes->left);
    if (done > 0) {
        pipes->input += done;
        pipes->left -= (size_t)done;
    }
    if (pipes->left == 0 || (done < 0 && errno != EAGAIN && errno != EINTR))
        close_pipe(&pipes->to);
}

/* False if there is too much of it, or no memory. */
static bool drain(struct pipes *pipes)
{
    if (pipes->size + 4097 > pipes->room) {
        char *grown = realloc(pipes->output, pipes->room = 2 * pipes->room + 8192);
        if (!grown)
            return false;
        pipes->output = grown;
    }
    ssize_t got = read(pipes->from, pipes->output + pipes->size, 4096);
    if (got > 0)
        pipes->size += (size_t)got;
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        close_pipe(&pipes->from);
    return pipes->size <= pipes->most;
}

/* Both directions at once, so that nobody waits for anybody. */
static bool talk(struct pipes *pipes, struct waiting *waiting, char *why, size_t why_size)
{
    while (pipes->from >= 0) {
        struct pollfd ends[2] = {{.fd = pipes->from, .events = POLLIN}, {.fd = pipes->to, .events = POLLOUT}};
        if (!goes_on(waiting)) {
            waiting->job->late = true;
            snprintf(why, why_size, "it did not answer in time");
            return false;
        }
        if (poll(ends, 2, 50) <= 0)
            continue;
        if (pipes->to >= 0 && ends[1].revents)
            feed(pipes);
        if (ends[0].revents && !drain(pipes)) {
            snprintf(why, why_size, "it wrote more than %zu bytes", pipes->most);
            return false;
        }
    }
    return true;
}

static bool start_command(const struct timed_job *job, const char *command, struct pipes *pipes)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0)
        return false;
    if (pipe2(out, O_CLOEXEC) != 0) {
        close(in[0]);
        close(in[1]);
        return false;
    }
    pipes->child = subprocess_fork(SIGKILL);
    if (pipes->child == 0) {
        signal(SIGPIPE, SIG_DFL);
        setenv("TMPDIR", job->folder, 1);
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    pipes->to = in[1];
    pipes->from = out[0];
    if (pipes->child < 0) {
        close_pipe(&pipes->to);
        close_pipe(&pipes->from);
        return false;
    }
    fcntl(pipes->to, F_SETFL, O_NONBLOCK);
    fcntl(pipes->from, F_SETFL, O_NONBLOCK);
    return true;
}

char *timed_job_ask(struct timed_job *job, const char *command, const char *input, size_t most, size_t *size, char *why,
                    size_t why_size)
{
    struct pipes pipes = {.to = -1, .from = -1, .input = input, .left = strlen(input), .most = most};
    struct waiting waiting = {.job = job};
    int status = 0;
    job->late = false;
    if (!folder_make(job->folder) || !start_command(job, command, &pipes)) {
        snprintf(why, why_size, "it cannot be started: %s", strerror(errno));
        return NULL;
    }
    bool heard = talk(&pipes, &waiting, why, why_size);
    close_pipe(&pipes.to);
    close_pipe(&pipes.from);
    /* It has closed its output, and should be about to end. */
    pid_t ended = 0;
    while (heard && (ended = waitpid(pipes.child, &status, WNOHANG)) == 0 && goes_on(&waiting))
        poll(NULL, 0, PAUSE_MS);
    end_all();
    if (heard && ended <= 0) {
        snprintf(why, why_size, "it closed its output and did not end");
        heard = false;
    } else if (heard && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
        size_t used = (size_t)snprintf(why, why_size, "it ");
        subprocess_ending(status, why + used, why_size - used);
        heard = false;
    }
    if (!heard || !pipes.output) {
        if (heard)
            snprintf(why, why_size, "out of memory");
        free(pipes.output);
        return NULL;
    }
    pipes.output[pipes.size] = '\0';
    *size = pipes.size;
    return pipes.output;
}
