/*
 * schedule.c - cuts a problem into tasks, hands them to threads, and joins what was split over keys.
 *
 * A task is a tile of rows of one KV head with all its keys; or, for a sequence with at most SPLIT_ROWS rows and more than
 * SPLIT_KEYS keys, all its rows with one piece of SPLIT_KEYS keys, so that a single sequence can use every core. How a sequence is
 * cut depends on its own lengths alone, and pieces are joined in their order: the result does not depend on threads or batch.
 *
 * Tasks are numbered (sequence, KV head, slot); every sequence has as many slots as the longest may need, and those it does not
 * need are empty. Within a head the last rows come first: under a causal mask they are the longest. Pieces of keys come in the
 * order of memory.
 *
 * A plan has one thread or all that the context has. With one, the calling thread computes the tasks one after the other and OpenMP is
 * not called. That is so where there is a single task, and where the work is estimated to be done sooner than other threads begin.
 *
 * Workspace: one scratch for each thread, then what kernels prepare for each KV head, then the partial results
 * [sequence, KV head][piece][row][dim_v + 2].
 */
#include "cpu.h"
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <string.h>

struct layout {
    int64_t group, tile_rows, slots, pieces, partial_rows;
    size_t scratch, shared, total; /* bytes: for a thread, for a KV head, in all */
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static bool is_split(int64_t rows, int64_t keys)
{
    return rows <= SPLIT_ROWS && keys > SPLIT_KEYS;
}

static struct layout layout_get(const struct attest_plan *plan)
{
    const attest_problem *p = &plan->problem;
    struct layout x = {.group = p->heads_q / p->heads_kv, .tile_rows = plan->tile_rows};
    int64_t rows = p->seq_q * x.group, most_rows = x.tile_rows;
    x.slots = ceil_div(rows, x.tile_rows);
    if (is_split(has(p, ATTEST_VARLEN_Q | ATTEST_Q_LENGTHS) && rows ? 1 : rows, p->seq_kv)) {
        x.pieces = ceil_div(p->seq_kv, SPLIT_KEYS);
        x.partial_rows = rows < SPLIT_ROWS ? rows : SPLIT_ROWS;
        if (x.slots < x.pieces)
            x.slots = x.pieces;
        if (most_rows < x.partial_rows)
            most_rows = x.partial_rows;
    }
    x.scratch = (plan->kernel.code->scratch_size(p, most_rows) + 4095) / 4096 * 4096;
    size_t partials =
        (size_t)(p->batch * p->heads_kv * x.pieces * x.partial_rows * (p->dim_v + ATTEST_PARTIAL_EXTRA)) * sizeof(float);
    if (plan->kernel.code->prepare && rows > DECODE_ROWS)
        x.shared = (plan->kernel.code->shared_size(p) + 63) / 64 * 64;
    x.total = (size_t)plan->threads * x.scratch + (size_t)(p->batch * p->heads_kv) * x.shared + partials;
    return x;
}

/* What the work takes on one thread, in nanoseconds, from the sizes alone: lengths that only the tensors have count as the longest, and
 * windows as none. The rates are those of small problems in caches on a Zen 5 core; with them the estimate is within 20 % of what f32
 * takes with AVX-512, from 1 to 60 us, and up to twice what the kernels take that multiply bf16 in hardware. */
static double work_estimate(const struct attest_plan *plan)
{
    const double head_ns = 300, vector_flop_per_ns = 100, scalar_flop_per_ns = 20, bytes_per_ns = 80;
    const attest_problem *p = &plan->problem;
    double rows = has(p, ATTEST_VARLEN_Q) ? (double)p->total_q : (double)p->batch * (double)p->seq_q;
    double keys = has(p, ATTEST_VARLEN_KV) ? (double)p->total_kv : (double)p->batch * (double)p->seq_kv;
    double seen = keys < (double)p->seq_kv ? keys : (double)p->seq_kv, width = (double)(p->dim + p->dim_v),
           heads = (double)p->batch * (double)p->heads_kv;
    if (has(p, ATTEST_CAUSAL) && p->seq_q == p->seq_kv)
        seen /= 2;
    double flop_ns =
        2 * rows * (double)p->heads_q * seen * width / (*plan->kernel.code->needs ? vector_flop_per_ns : scalar_flop_per_ns);
    double bytes_ns = keys * (double)p->heads_kv * width * (double)dtype_size(p->dtype) / bytes_per_ns;
    return heads * head_ns + (flop_ns > bytes_ns ? flop_ns : bytes_ns);
}

/* Work of less than this many nanoseconds is for the calling thread. Measured on two Zen 5 cores (docs/kernels/cpu.md): a second thread
 * that waits in a loop is worth calling from 2 to 3 us on; one that sleeps, from 20 to 60 us on, and before that it costs up to 30 us. So
 * this is the largest number with which no problem becomes slower where threads wait in a loop, as those of OpenMP do by default for some
 * milliseconds. Fewer threads than all are no choice in between: the OpenMP runtime of gcc would end the others and begin them again. */
enum { SMALL_NS = 3000 };

/* As many rows as their Q and O fit into a part of a typical second-level cache, so that K and V are packed rarely, cut evenly;
 * fewer where there would not be enough tasks for the threads. */
void cpu_plan(struct attest_plan *plan, bool exactly)
{
    enum { CACHE_BYTES = 384 * 1024, TASKS_PER_THREAD = 4 };
    const attest_problem *p = &plan->problem;
    const attest_cpu_kernel *code = plan->kernel.code;
    int64_t rows = p->seq_q * (p->heads_q / p->heads_kv), heads = p->batch * p->heads_kv;
    if (!exactly && work_estimate(plan) < SMALL_NS)
        plan->threads = 1;
    int64_t most = CACHE_BYTES / ((p->dim + p->dim_v) * (int64_t)sizeof(float)), tiles = 1;
    if (most > code->rows_wanted)
        most = code->rows_wanted;
    if (most < code->row_step)
        most = code->row_step;
    if (rows > most)
        tiles = ceil_div(rows, most);
    while (plan->threads > 1 && heads * tiles < (int64_t)plan->threads * TASKS_PER_THREAD && rows > tiles * code->row_step)
        tiles++;
    plan->tile_rows = ceil_div(ceil_div(rows > 0 ? rows : 1, tiles), code->row_step) * code->row_step;
    struct layout x = layout_get(plan);
    if (!exactly && heads * x.slots <= 1 && (!x.shared || p->seq_kv <= ATTEST_PREPARE_KEYS))
        plan->threads = 1;
    plan->workspace = layout_get(plan).total;
}

/* ---- running --------------------------------------------------------------------------------------------------------------- */

struct job {
    const struct attest_plan *plan;
    const attest_tensors *t;
    struct layout layout;
    char *workspace, *shared;
    float *partials;
};

static float *partial_at(const struct job *job, int64_t head, int64_t piece)
{
    const struct layout *x = &job->layout;
    return job->partials + (head * x->pieces + piece) * x->partial_rows * (job->plan->problem.dim_v + ATTEST_PARTIAL_EXTRA);
}

static attest_task task_of(const struct job *job, int64_t head)
{
    const attest_problem *p = &job->plan->problem;
    struct sequence seq = sequence_get(p, job->t, head / p->heads_kv);
    attest_task task = {
        .problem = p,
        .tensors = job->t,
        .batch = head / p->heads_kv,
        .head_kv = head % p->heads_kv,
        .q_first = seq.q_row,
        .q_count = seq.q_len,
        .kv_first = seq.kv_row,
        .kv_count = seq.kv_len,
        .kv_start = seq.kv_first,
        .place = seq.place,
        .row_end = seq.q_len * job->layout.group,
        .key_end = seq.kv_len,
    };
    task.shared = job->shared + (size_t)head * job->layout.shared;
    return task;
}

static void prepare_task(const struct job *job, int64_t head, int64_t block, void *scratch)
{
    attest_task task = task_of(job, head);
    task.key_begin = block * ATTEST_PREPARE_KEYS;
    if (task.key_begin >= task.key_end || task.row_end <= DECODE_ROWS)
        return;
    if (task.key_end > task.key_begin + ATTEST_PREPARE_KEYS)
        task.key_end = task.key_begin + ATTEST_PREPARE_KEYS;
    job->plan->kernel.code->prepare(&task, scratch);
}

static void run_task(const struct job *job, int64_t index, void *scratch)
{
    const struct layout *x = &job->layout;
    int64_t head = index / x->slots, slot = index % x->slots;
    attest_task task = task_of(job, head);
    int64_t rows = task.row_end, keys = task.key_end;
    if (is_split(rows, keys)) {
        task.key_begin = slot * SPLIT_KEYS;
        if (task.key_begin >= keys)
            return;
        if (keys > task.key_begin + SPLIT_KEYS)
            task.key_end = task.key_begin + SPLIT_KEYS;
        task.partial = partial_at(job, head, slot);
    } else {
        task.row_begin = (x->slots - 1 - slot) * x->tile_rows;
        if (rows > task.row_begin + x->tile_rows)
            task.row_end = task.row_begin + x->tile_rows;
    }
    if (task.row_begin < task.row_end)
        job->plan->kernel.code->tile(&task, scratch);
}

/* Joins the pieces of row `row` of a KV head: each weighs exp(its maximum - the largest maximum). */
static void join_row(const struct job *job, int64_t head, int64_t index)
{
    const attest_problem *p = &job->plan->problem;
    attest_task task = task_of(job, head);
    int64_t width = p->dim_v + ATTEST_PARTIAL_EXTRA;
    if (index >= task.row_end || !is_split(task.row_end, task.key_end))
        return;
    int64_t pieces = ceil_div(task.key_end, SPLIT_KEYS);
    float top = -INFINITY, sum = 0, o[DIM_MAX] = {0};
    for (int64_t n = 0; n < pieces; n++) {
        const float *part = partial_at(job, head, n) + index * width;
        if (part[p->dim_v] > top)
            top = part[p->dim_v];
    }
    for (int64_t n = 0; n < pieces; n++) {
        const float *part = partial_at(job, head, n) + index * width;
        if (part[p->dim_v + 1] == 0) /* this piece has nothing that the row sees */
            continue;
        float weight = (float)exp((double)part[p->dim_v] - (double)top);
        sum += weight * part[p->dim_v + 1];
        for (int64_t d = 0; d < p->dim_v; d++)
            o[d] += weight * part[d];
    }
    attest_row row = attest_row_get(&task, index);
    attest_ending ending = attest_row_ending(p, top, sum, row.sink);
    for (int64_t d = 0; d < p->dim_v; d++)
        attest_store(row.o, p->dtype_o, d, sum == 0 ? 0 : o[d] * ending.factor);
    if (row.lse)
        *row.lse = ending.lse;
}

/* All tasks on the calling thread, in the order of their numbers. */
static void run_alone(const struct job *job, int64_t prepared, int64_t blocks, int64_t tasks, int64_t joins)
{
    for (int64_t index = 0; index < prepared; index++)
        prepare_task(job, index / blocks, index % blocks, job->workspace);
    for (int64_t index = 0; index < tasks; index++)
        run_task(job, index, job->workspace);
    for (int64_t index = 0; index < joins; index++)
        join_row(job, index / job->layout.partial_rows, index % job->layout.partial_rows);
}

static void *run_job(void *argument)
{
    const struct job *job = argument;
    const struct layout *x = &job->layout;
    int64_t heads = job->plan->problem.batch * job->plan->problem.heads_kv, tasks = heads * x->slots,
            joins = heads * x->partial_rows;
    int64_t blocks = x->shared ? ceil_div(job->plan->problem.seq_kv, ATTEST_PREPARE_KEYS) : 0;
    if (job->plan->threads == 1) {
        run_alone(job, heads * blocks, blocks, tasks, joins);
        return NULL;
    }
    /* Threads meet only where one needs what another has written, and at the end: each such point costs as much as the slowest to come. */
#pragma omp parallel num_threads(job->plan->threads)
    {
        void *scratch = job->workspace + (size_t)omp_get_thread_num() * x->scratch;
        if (blocks) {
#pragma omp for schedule(static)
            for (int64_t index = 0; index < heads * blocks; index++)
                prepare_task(job, index / blocks, index % blocks, scratch);
        }
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t index = 0; index < tasks; index++)
            run_task(job, index, scratch);
        if (joins) {
#pragma omp barrier
#pragma omp for schedule(static) nowait
            for (int64_t index = 0; index < joins; index++)
                join_row(job, index / x->partial_rows, index % x->partial_rows);
        }
    }
    return NULL;
}

/* ---- fork ------------------------------------------------------------------------------------------------------------------ */

/* After a fork the child has only the thread that forked, while the OpenMP runtime of that thread still believes in its team and
 * would wait for it for ever. A new thread has no team yet, so in a child the work starts from one. */
static int forked;

static void in_child(void)
{
    __atomic_store_n(&forked, 1, __ATOMIC_RELAXED);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

void cpu_run(const struct attest_plan *plan, const attest_tensors *t, void *workspace)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    struct job job = {.plan = plan, .t = t, .layout = layout_get(plan), .workspace = workspace};
    job.shared = job.workspace + (size_t)plan->threads * job.layout.scratch;
    job.partials = (float *)(job.shared + (size_t)(plan->problem.batch * plan->problem.heads_kv) * job.layout.shared);
    pthread_t thread;
    if (plan->threads > 1 && __atomic_load_n(&forked, __ATOMIC_RELAXED) && pthread_create(&thread, NULL, run_job, &job) == 0)
        pthread_join(thread, NULL);
    else if (plan->threads > 1 && __atomic_load_n(&forked, __ATOMIC_RELAXED)) {
        /* No thread to be had: one task after another, which gives the same bits. */
        struct attest_plan alone = *plan;
        alone.threads = 1;
        job.plan = &alone;
        run_job(&job);
    } else
        run_job(&job);
}
