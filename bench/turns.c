/*
 * turns.c - several builds of the library, or several thread counts of one, timed in turns in one process:
 *
 *     turns [--forward] [--idle MICROSECONDS] [--rounds N] LIBRARY:THREADS ... -- PROBLEM ...
 *
 * for example `turns build/libattest.so:1 build/libattest.so:2 -- fwd:f32:b1:h1:s16:d16`. A round gives each contender one turn of many
 * calls of attest_run, or with --forward of attest_forward. With --idle the program sleeps before each call, so that the threads of
 * OpenMP, which wait for work in a loop at first, sleep too: a program that computes attention now and then pays that price.
 *
 * One line for each problem: for each contender the median over rounds of the time of a call, and in brackets the median of its time
 * over that of the first contender in the same round. Every contender has inputs, outputs and a workspace of its own.
 */
#include <attest.h>
#include <dlfcn.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 8, MOST_ROUNDS = 1001, LEAST_CALLS = 8, MOST_CALLS = 4096, COLD_CALLS = 8 };
static const double turn_seconds = 2e-3;

/* The threads of the turn before wait for work in a loop for some milliseconds, on a processor that this turn wants. */
static const struct timespec rest = {.tv_nsec = 8000000};

struct library {
    attest_status (*context_create)(attest_context **);
    attest_status (*set_threads)(attest_context *, int);
    attest_status (*plan_create)(attest_context *, const attest_problem *, const char *, attest_plan **);
    size_t (*workspace_size)(const attest_plan *);
    attest_status (*run)(attest_context *, const attest_plan *, const attest_tensors *, void *, size_t, void *);
    attest_status (*forward)(const attest_problem *, const attest_tensors *, char *, size_t);
    void (*plan_destroy)(attest_plan *);
    void (*context_destroy)(attest_context *);
};

struct contender {
    struct library library;
    const char *name;
    int threads;
    attest_context *context;
    attest_plan *plan;
    attest_tensors tensors;
    void *memory[5]; /* Q, K, V, O, workspace */
    size_t workspace_size;
    double seconds[MOST_ROUNDS]; /* of a call, by round */
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, int count)
{
    static double sorted[MOST_ROUNDS];
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    return sorted[count / 2];
}

static int find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol); /* ISO C has no way from an object's pointer to a function's */
    return symbol != NULL;
}

/* "build/libattest.so:2" */
static int contender_open(struct contender *one, char *text)
{
    char *colon = strrchr(text, ':');
    one->threads = colon ? atoi(colon + 1) : 0;
    one->name = text;
    if (one->threads < 1)
        return 0;
    *colon = '\0';
    void *handle = dlopen(text, RTLD_NOW | RTLD_LOCAL);
    *colon = ':';
    struct library *l = &one->library;
    return handle && find(handle, "attest_context_create", &l->context_create) &&
           find(handle, "attest_context_set_threads", &l->set_threads) && find(handle, "attest_plan_create", &l->plan_create) &&
           find(handle, "attest_plan_workspace_size", &l->workspace_size) && find(handle, "attest_run", &l->run) &&
           find(handle, "attest_forward", &l->forward) && find(handle, "attest_plan_destroy", &l->plan_destroy) &&
           find(handle, "attest_context_destroy", &l->context_destroy);
}

static void *filled(size_t bytes, uint32_t dtype, unsigned seed)
{
    size_t room = (bytes + 127) / 64 * 64;
    uint16_t *words = aligned_alloc(64, room);
    if (!words)
        exit(3);
    float *floats = (float *)words;
    for (size_t i = 0; i < room / 2; i++) {
        seed = seed * 1103515245 + 12345;
        if (dtype != ATTEST_F32) /* 16 bits of a sign and a number from 0.5 to 1 */
            words[i] = (uint16_t)((seed >> 16 & 0x8000) | (dtype == ATTEST_BF16 ? 0x3f00 : 0x3800) | (seed >> 18 & 0x7f));
        else if (i % 2)
            floats[i / 2] = (float)(seed >> 8) / (1 << 23) - 1;
    }
    return words;
}

static int prepare(struct contender *one, const attest_problem *p, unsigned seed)
{
    size_t size = p->dtype == ATTEST_F32 ? 4 : 2, rows = (size_t)(p->batch * p->heads_q * p->seq_q) * size,
           keys = (size_t)(p->batch * p->heads_kv * p->seq_kv) * size;
    if (one->library.context_create(&one->context) != ATTEST_OK ||
        one->library.set_threads(one->context, one->threads) != ATTEST_OK ||
        one->library.plan_create(one->context, p, NULL, &one->plan) != ATTEST_OK)
        return 0;
    one->workspace_size = one->library.workspace_size(one->plan);
    const size_t bytes[5] = {rows * (size_t)p->dim, keys * (size_t)p->dim, keys * (size_t)p->dim_v,
                             (size_t)(p->batch * p->heads_q * p->seq_q * p->dim_v) * 4, one->workspace_size};
    for (int i = 0; i < 5; i++)
        one->memory[i] = filled(bytes[i], p->dtype, seed + (unsigned)i);
    one->tensors = (attest_tensors){
        .size = sizeof one->tensors, .q = one->memory[0], .k = one->memory[1], .v = one->memory[2], .o = one->memory[3]};
    return 1;
}

static void clear(struct contender *one)
{
    one->library.plan_destroy(one->plan);
    one->library.context_destroy(one->context);
    for (int i = 0; i < 5; i++)
        free(one->memory[i]);
}

static void call(struct contender *one, const attest_problem *p, int forward)
{
    attest_status status =
        forward ? one->library.forward(p, &one->tensors, NULL, 0)
                : one->library.run(one->context, one->plan, &one->tensors, one->memory[4], one->workspace_size, NULL);
    if (status != ATTEST_OK)
        exit(3);
}

/* The seconds of one of `calls` calls. */
static double turn(struct contender *one, const attest_problem *p, int forward, int calls, double idle)
{
    double total = 0, begin;
    nanosleep(&rest, NULL);
    omp_set_num_threads(one->threads); /* what attest_forward goes by */
    if (idle <= 0) {
        for (int i = 0; i < LEAST_CALLS; i++) /* wakes the threads */
            call(one, p, forward);
        begin = now();
        for (int i = 0; i < calls; i++)
            call(one, p, forward);
        return (now() - begin) / calls;
    }
    for (int i = 0; i < calls; i++) {
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * idle)}, NULL);
        begin = now();
        call(one, p, forward);
        total += now() - begin;
    }
    return total / calls;
}

static void measure(struct contender *all, int count, const char *text, int forward, int rounds, double idle)
{
    static double ratios[MOST_ROUNDS];
    attest_problem p;
    char why[256];
    if (attest_problem_parse(text, &p, why, sizeof why) != ATTEST_OK) {
        fprintf(stderr, "turns: %s: %s\n", text, why);
        exit(2);
    }
    for (int i = 0; i < count; i++)
        if (!prepare(&all[i], &p, 1)) {
            fprintf(stderr, "turns: %s: %s does not take it\n", text, all[i].name);
            exit(3);
        }
    double once = turn(&all[0], &p, forward, LEAST_CALLS, 0), wanted = turn_seconds / once;
    int calls = idle > 0 ? COLD_CALLS : wanted < LEAST_CALLS ? LEAST_CALLS : wanted > MOST_CALLS ? MOST_CALLS : (int)wanted;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count; i++) { /* each begins as often as any other */
            struct contender *one = &all[(i + round) % count];
            one->seconds[round] = turn(one, &p, forward, calls, idle);
        }
    printf("%-44s", text);
    for (int i = 0; i < count; i++) {
        for (int round = 0; round < rounds; round++)
            ratios[round] = all[i].seconds[round] / all[0].seconds[round];
        printf("  %9.2f us (%5.3f)", 1e6 * median(all[i].seconds, rounds), median(ratios, rounds));
        clear(&all[i]);
    }
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct contender all[MOST];
    int count = 0, forward = 0, rounds = 41, at = 1;
    double idle = 0;
    for (; at < argc && strcmp(argv[at], "--"); at++) {
        if (!strcmp(argv[at], "--forward"))
            forward = 1;
        else if (!strcmp(argv[at], "--idle") && at + 1 < argc)
            idle = 1e-6 * atof(argv[++at]);
        else if (!strcmp(argv[at], "--rounds") && at + 1 < argc)
            rounds = atoi(argv[++at]);
        else if (count == MOST || !contender_open(&all[count++], argv[at])) {
            fprintf(stderr, "turns: %s: not LIBRARY:THREADS that can be loaded, or one too many\n", argv[at]);
            return 2;
        }
    }
    if (!count || at + 1 >= argc || rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: turns [--forward] [--idle MICROSECONDS] [--rounds N] LIBRARY:THREADS ... -- PROBLEM ...\n");
        return 2;
    }
    printf("%-44s", "");
    for (int i = 0; i < count; i++)
        printf("  %20.20s", strlen(all[i].name) > 20 ? all[i].name + strlen(all[i].name) - 20 : all[i].name);
    printf("\n");
    for (at++; at < argc; at++)
        measure(all, count, argv[at], forward, rounds, idle);
    return 0;
}
