/*
 * Threads and processes: many threads with contexts of their own share a plan; a child after fork() computes with threads again,
 * even when the parent was in the middle of a run, inside an OpenMP region, or forked from several threads at once. Small problems
 * run on the calling thread.
 */
#include "drive.h"
#include "tap.h"

#include <attest_kernel.h>
#include <dirent.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 4 };

static const char *const lines[] = {"fwd:f32:b2:h4:sq100:skv150:d64:causal:br:lse", "fwd:bf16:b1:hq8:hkv2:sq1:skv4000:d64:lse",
                                    "fwd:f16:b3:hq4:hkv1:sq33:skv70:d40:lse"};
enum { LINES = sizeof lines / sizeof *lines };

/* A packed problem with data, a plan, and the bytes that O and LSE must have. */
struct job {
    struct instance in;
    attest_plan *plan;
    unsigned char *o, *lse;
};

static bool job_create(struct job *job, const char *line, int threads)
{
    attest_problem p;
    attest_context *context = drive_context(threads);
    memset(job, 0, sizeof *job);
    if (!tap_check(attest_problem_parse(line, &p, NULL, 0) == ATTEST_OK, "parse %s", line) ||
        !instance_create(&job->in, &p, tap.seed, NULL))
        return false;
    tap_check(attest_plan_create(context, &p, NULL, &job->plan) == ATTEST_OK, "plan: %s", attest_context_detail(context));
    bool ran = drive_run(context, NULL, &job->in, PLACE_PLAIN);
    job->o = malloc(job->in.o.size);
    job->lse = malloc(job->in.lse.size);
    if (job->in.o.size)
        memcpy(job->o, job->in.o.bytes, job->in.o.size);
    if (job->in.lse.size)
        memcpy(job->lse, job->in.lse.bytes, job->in.lse.size);
    attest_context_destroy(context);
    return ran && job->plan;
}

static void job_destroy(struct job *job)
{
    attest_plan_destroy(job->plan);
    free(job->o);
    free(job->lse);
    instance_destroy(&job->in);
}

/* One run with a context, outputs and a workspace of its own. No tap in here: it also runs in threads and in children. */
static bool job_run(const struct job *job, const attest_plan *plan)
{
    attest_context *context = NULL;
    size_t bytes = attest_plan_workspace_size(plan);
    attest_tensors t = job->in.tensors;
    void *workspace = aligned_alloc(64, (bytes + 127) / 64 * 64);
    t.o = calloc(1, job->in.o.size);
    t.lse = calloc(1, job->in.lse.size);
    bool good = attest_context_create(&context) == ATTEST_OK &&
                attest_run(context, plan, &t, workspace, bytes, NULL) == ATTEST_OK && !memcmp(t.o, job->o, job->in.o.size) &&
                !memcmp(t.lse, job->lse, job->in.lse.size);
    free(t.o);
    free(t.lse);
    free(workspace);
    attest_context_destroy(context);
    return good;
}

/* ------------------------------------------------------------------------------------------------------ shared plans -- */

struct worker {
    pthread_t thread;
    const struct job *job;
    const attest_plan *plan;
    int rounds;
    bool good;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    worker->good = true;
    for (int n = 0; n < worker->rounds; n++)
        worker->good = job_run(worker->job, worker->plan) && worker->good;
    return NULL;
}

static void shared_plan(void)
{
    for (int n = 0; n < LINES; n++) {
        struct job job;
        if (!tap_case("%s", lines[n]) || !job_create(&job, lines[n], 2))
            continue;
        struct worker workers[WORKERS];
        for (int w = 0; w < WORKERS; w++) {
            workers[w] = (struct worker){.job = &job, .plan = job.plan, .rounds = tap_amount(2, 10, 50)};
            tap_check(pthread_create(&workers[w].thread, NULL, work, &workers[w]) == 0, "no thread");
        }
        for (int w = 0; w < WORKERS; w++) {
            pthread_join(workers[w].thread, NULL);
            tap_check(workers[w].good, "thread %d got other bits or an error", w);
        }
        job_destroy(&job);
    }
}

/* Everything that asks and nothing that computes, from many threads at once. */
static void *ask(void *argument)
{
    struct worker *worker = argument;
    attest_context *context = NULL;
    worker->good = attest_context_create(&context) == ATTEST_OK;
    for (int n = 0; n < worker->rounds; n++)
        for (size_t k = 0; k < attest_kernel_count(); k++) {
            attest_kernel_info info = {.size = sizeof info};
            char text[512];
            worker->good = worker->good && attest_kernel_get(k, &info) == ATTEST_OK && strlen(info.name) > 0 &&
                           (strstr(info.name, "avx2") == NULL || strstr(info.needs, "avx2") != NULL);
            attest_kernel_refusal(context, k, &worker->job->in.problem, text, sizeof text);
            attest_explain(context, &worker->job->in.problem, text, sizeof text);
        }
    attest_context_destroy(context);
    return NULL;
}

static void questions(void)
{
    struct job job;
    if (!job_create(&job, lines[0], 2))
        return;
    struct worker workers[WORKERS];
    for (int w = 0; w < WORKERS; w++) {
        workers[w] = (struct worker){.job = &job, .rounds = tap_amount(20, 300, 3000)};
        tap_check(pthread_create(&workers[w].thread, NULL, ask, &workers[w]) == 0, "no thread");
    }
    for (int w = 0; w < WORKERS; w++) {
        pthread_join(workers[w].thread, NULL);
        tap_check(workers[w].good, "thread %d got a wrong answer", w);
    }
    job_destroy(&job);
}

/* From inside a parallel region of the caller, where OpenMP gives a nested team of one. */
static void inside_openmp(void)
{
    for (int n = 0; n < LINES; n++) {
        struct job job;
        if (!tap_case("%s", lines[n]) || !job_create(&job, lines[n], 3))
            continue;
        int good = 0;
#pragma omp parallel num_threads(3) reduction(+ : good)
        good += job_run(&job, job.plan);
        tap_check(good == 3, "%d of 3 threads of a parallel region got the right bits", good);
        job_destroy(&job);
    }
}

/* -------------------------------------------------------------------------------------------------------------- fork -- */

/* Not under AddressSanitizer: up to gcc 13 its allocator does not hold its locks over fork(), so that a child that is born while
 * any thread begins, ends or allocates may wait in malloc for ever, whatever the library does. */
#ifndef __SANITIZE_ADDRESS__

enum { HANG_S = 60 };

/* What a child does: the same computation with threads, twice, within a time limit. */
static void child(const struct job *job)
{
    alarm(HANG_S);
    _exit(job_run(job, job->plan) && job_run(job, job->plan) ? 0 : 1);
}

static bool child_is_fine(const struct job *job)
{
    pid_t pid = fork();
    if (pid == 0)
        child(job);
    int status = -1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void after_fork(void)
{
    for (int n = 0; n < LINES; n++) {
        struct job job;
        if (!tap_case("%s", lines[n]) || !job_create(&job, lines[n], 4))
            continue;
        for (int again = 0; again < 3; again++) {
            tap_check(child_is_fine(&job), "a child hangs, crashes or gets other bits");
            tap_check(job_run(&job, job.plan), "the parent gets other bits after a fork");
        }
        job_destroy(&job);
    }
}

/* A child of a child, neither of which has seen the parent's threads. */
static void after_two_forks(void)
{
    struct job job;
    if (!job_create(&job, lines[0], 3))
        return;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(HANG_S);
        _exit(job_run(&job, job.plan) && child_is_fine(&job) ? 0 : 1);
    }
    int status = -1;
    tap_check(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "a grandchild fails");
    job_destroy(&job);
}

/* Children are born while other threads are in the middle of runs. */
static void while_running(void)
{
    struct job job;
    if (!job_create(&job, lines[0], 2))
        return;
    struct worker workers[2];
    for (int w = 0; w < 2; w++) {
        workers[w] = (struct worker){.job = &job, .plan = job.plan, .rounds = tap_amount(10, 60, 300)};
        tap_check(pthread_create(&workers[w].thread, NULL, work, &workers[w]) == 0, "no thread");
    }
    for (int n = 0; n < tap_amount(3, 15, 60); n++)
        tap_check(child_is_fine(&job), "child %d hangs, crashes or gets other bits", n);
    for (int w = 0; w < 2; w++) {
        pthread_join(workers[w].thread, NULL);
        tap_check(workers[w].good, "thread %d got other bits while others forked", w);
    }
    job_destroy(&job);
}

static void *fork_some(void *argument)
{
    struct worker *worker = argument;
    worker->good = true;
    for (int n = 0; n < worker->rounds; n++)
        worker->good = job_run(worker->job, worker->plan) && child_is_fine(worker->job) && worker->good;
    return NULL;
}

static void from_many_threads(void)
{
    struct job job;
    if (!job_create(&job, lines[2], 2))
        return;
    struct worker workers[WORKERS];
    for (int w = 0; w < WORKERS; w++) {
        workers[w] = (struct worker){.job = &job, .plan = job.plan, .rounds = tap_amount(1, 4, 20)};
        tap_check(pthread_create(&workers[w].thread, NULL, fork_some, &workers[w]) == 0, "no thread");
    }
    for (int w = 0; w < WORKERS; w++) {
        pthread_join(workers[w].thread, NULL);
        tap_check(workers[w].good, "thread %d or a child of it failed", w);
    }
    job_destroy(&job);
}

static void from_an_openmp_region(void)
{
    struct job job;
    if (!job_create(&job, lines[0], 2))
        return;
    int good = 0;
#pragma omp parallel num_threads(2) reduction(+ : good)
    good += child_is_fine(&job);
    tap_check(good == 2, "%d of 2 children born in a parallel region are fine", good);
    job_destroy(&job);
}

#endif

/* The library leaves the caller's OpenMP settings alone. */
static void settings_unchanged(void)
{
    struct job job;
    omp_set_num_threads(3);
    omp_set_dynamic(0);
    int levels = omp_get_max_active_levels();
    if (!job_create(&job, lines[0], 2))
        return;
    tap_check(job_run(&job, job.plan), "a run fails");
    tap_check(omp_get_max_threads() == 3, "omp_get_max_threads is %d, not 3", omp_get_max_threads());
    tap_check(omp_get_dynamic() == 0 && omp_get_max_active_levels() == levels, "dynamic or nested changed");
    attest_context *context = NULL;
    attest_context_create(&context);
    tap_check(attest_context_threads(context) == 3, "the default is %d threads, not 3", attest_context_threads(context));
    attest_context_destroy(context);
    job_destroy(&job);
}

/* ---------------------------------------------------------------------------------------------------- small problems -- */

static int threads_here(void)
{
    DIR *folder = opendir("/proc/self/task");
    int count = 0;
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count - 2; /* "." and ".." */
}

/* The workspace of a plan that is made with so many threads; 0 if there is none. */
static size_t workspace_with(attest_context *context, const attest_problem *p, const char *kernel, int threads)
{
    attest_plan *plan = NULL;
    attest_context_set_threads(context, threads);
    if (!tap_check(attest_plan_create(context, p, kernel, &plan) == ATTEST_OK, "plan: %s", attest_context_detail(context)))
        return 0;
    size_t bytes = attest_plan_workspace_size(plan);
    attest_plan_destroy(plan);
    return bytes;
}

/* What explain says of the kernel that runs. */
static bool explained_as(attest_context *context, const attest_problem *p, const char *words)
{
    char text[32768];
    if (attest_explain(context, p, text, sizeof text) != ATTEST_OK)
        return false;
    const char *line = strstr(text, ": runs, with ");
    return line && !strncmp(line + strlen(": runs, with "), words, strlen(words));
}

static void small_problems(void)
{
    static const struct {
        const char *line;
        bool alone;
    } cases[] = {
        {"fwd:f32:b1:h1:s16:d16", true},
        {"fwd:bf16:b1:h1:s16:d16:lse", true},
        {"fwd:f16:b2:hq2:hkv1:sq1:skv8:d32", true},
        {"fwd:f32:b1:h1:sq1:skv1000:d64", true}, /* one task, which takes longer */
        {"fwd:f32:b2:h1:s400:d16:varlenq=20:varlenkv=20", true},
        {"fwd:f32:b0:h1:s16:d16", true},
        {"fwd:f32:b1:h4:s128:d64", false},
        {"fwd:f32:b1:h4:s1000:d64:causal:wl=30", false},
        {"fwd:bf16:b1:hq8:hkv2:sq1:skv3000:d128", false},
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        struct job job;
        if (!tap_case("%s", cases[n].line) || !job_create(&job, cases[n].line, 5))
            continue;
        const attest_problem *p = &job.in.problem;
        attest_context *context = drive_context(1);
        size_t one = workspace_with(context, p, NULL, 1), five = workspace_with(context, p, NULL, 5);
        tap_check(cases[n].alone ? one == five : one < five, "workspace: %zu bytes with one thread, %zu with five", one, five);
        tap_check(explained_as(context, p, cases[n].alone ? "1 thread and" : "5 threads and"), "explain says otherwise");
        if (n == 0) /* the others leave threads behind, of which one cannot say whether they were used again */
            tap_check(threads_here() == 1, "%d threads after a small run", threads_here());
        attest_context_destroy(context);
        job_destroy(&job);
    }
}

static size_t own_scratch(const attest_problem *p, int64_t rows)
{
    (void)p, (void)rows;
    return 4096;
}

static void own_tile(const attest_task *task, void *scratch)
{
    (void)task, (void)scratch;
}

/* A kernel that was added is on trial: it has all threads on the smallest problem too, so that a race in it can show. */
static void added_kernels(void)
{
    static const attest_cpu_kernel own = {
        .abi = ATTEST_KERNEL_ABI,
        .name = "own",
        .summary = "does nothing",
        .needs = "",
        .dtypes = ATTEST_TAKES_F32,
        .row_step = 1,
        .rows_wanted = 64,
        .scratch_size = own_scratch,
        .tile = own_tile,
    };
    attest_problem p;
    attest_context *context = drive_context(1);
    attest_problem_parse("fwd:f32:b1:h2:s2:d1", &p, NULL, 0);
    tap_check(attest_context_add_kernel(context, &own) == ATTEST_OK, "%s", attest_context_detail(context));
    size_t one = workspace_with(context, &p, "own", 1), five = workspace_with(context, &p, "own", 5);
    tap_check(one == 4096 && five == 5 * 4096, "workspace: %zu bytes with one thread, %zu with five", one, five);
    attest_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"small problems", small_problems}, /* first: it counts threads */
        {"added kernels", added_kernels},
        {"shared plan", shared_plan},
        {"questions", questions},
        {"inside OpenMP", inside_openmp},
        {"settings unchanged", settings_unchanged},
#ifndef __SANITIZE_ADDRESS__
        {"fork: after a run", after_fork},
        {"fork: twice", after_two_forks},
        {"fork: while running", while_running},
        {"fork: from many threads", from_many_threads},
        {"fork: from an OpenMP region", from_an_openmp_region},
#endif
    };
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
