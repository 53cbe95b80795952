/*
 * record.c - records a space: the AVX-512 kernel on one problem with all sizes of its tiles, for the benchmark of proposers in
 * tests/tool/test_evolve.c. It was made on a machine that others used too, and so not by `attest evolve --proposer grid --export`, whose
 * short timings were mostly noise there: this takes the smallest of many CPU times, which a scheduler does not change.
 *
 *     cc -O2 -Iinclude tests/data/evolve/record.c build/libattest.a -fopenmp -lm -ldl -ljansson -o record
 *     ./record FOLDER > tests/data/evolve/avx512_space.json
 *
 * FOLDER has the images, k_VECS_KEYS_BLOCK.so, each built from lib/cpu/cpu_fwd_avx512.c with these values and with its flags. The rows
 * of a tile are in the table of a kernel, and are changed there.
 */
#define _GNU_SOURCE
#include <attest.h>
#include <attest_kernel.h>
#include <dlfcn.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char problem_text[] = "fwd:f32:b1:h2:s384:d64";
static const int vecs[] = {1, 2, 3, 4}, keys[] = {2, 4, 8, 16}, blocks[] = {32, 64, 128, 256}, rows[] = {48, 96, 144, 240, 384};
enum { PASSES = 5, CALLS = 25, REGISTERS = 32 };

static double least[4][4][4][5];

static double cpu_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The smallest of the times of one kernel with one number of rows; 0 if it cannot be run. */
static double time_kernel(const attest_cpu_kernel *table, int rows_wanted)
{
    static float q[2 * 384 * 64], k[2 * 384 * 64], v[2 * 384 * 64], o[2 * 384 * 64];
    attest_cpu_kernel changed = *table;
    attest_context *context = NULL;
    attest_plan *plan = NULL;
    attest_problem problem;
    double best = 0;
    changed.rows_wanted = rows_wanted;
    for (int i = 0; i < 2 * 384 * 64; i++) {
        q[i] = sinf((float)i);
        k[i] = cosf(0.7f * (float)i);
        v[i] = sinf(0.3f * (float)i);
    }
    attest_tensors tensors = {.size = sizeof tensors, .q = q, .k = k, .v = v, .o = o};
    if (attest_problem_parse(problem_text, &problem, NULL, 0) == ATTEST_OK &&
        attest_context_create_on("cpu", &context) == ATTEST_OK && attest_context_set_threads(context, 1) == ATTEST_OK &&
        attest_context_add_kernel(context, &changed) == ATTEST_OK &&
        attest_plan_create(context, &problem, changed.name, &plan) == ATTEST_OK) {
        size_t size = attest_plan_workspace_size(plan);
        void *workspace = aligned_alloc(64, (size + 64) / 64 * 64);
        for (int call = 0; workspace && call < CALLS; call++) {
            double begin = cpu_time();
            attest_run(context, plan, &tensors, workspace, size, NULL);
            double seconds = cpu_time() - begin;
            best = best == 0 || seconds < best ? seconds : best;
        }
        free(workspace);
    }
    attest_plan_destroy(plan);
    attest_context_destroy(context);
    return best;
}

static void time_all(const char *folder)
{
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++)
            for (int c = 0; c < 4; c++) {
                char path[512];
                snprintf(path, sizeof path, "%s/k_%d_%d_%d.so", folder, vecs[a], keys[b], blocks[c]);
                void *image = dlopen(path, RTLD_NOW | RTLD_LOCAL);
                const attest_cpu_kernel *(*entry)(void) =
                    image ? (const attest_cpu_kernel *(*)(void))dlsym(image, ATTEST_CPU_KERNEL_ENTRY) : NULL;
                for (int d = 0; entry && d < 5; d++) {
                    double seconds = rows[d] >= 16 * vecs[a] ? time_kernel(entry(), rows[d]) : 0;
                    double *best = &least[a][b][c][d];
                    *best = *best == 0 || (seconds > 0 && seconds < *best) ? seconds : *best;
                }
                if (image)
                    dlclose(image);
            }
}

static json_t *knob(const char *name, const int *values, int count, int start)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_integer(values[i]));
    return json_pack("{s:s, s:s, s:o, s:i}", "Name", name, "Type", "int", "Values", list, "Default", start);
}

int main(int argc, char **argv)
{
    json_t *results = json_array();
    double start = 0;
    if (argc != 2)
        return 2;
    for (int pass = 0; pass < PASSES; pass++)
        time_all(argv[1]);
    start = least[2][2][2][3];
    for (int n = 0; n < 4 * 4 * 4 * 5; n++) {
        int a = n / 80, b = n / 20 % 4, c = n / 5 % 4, d = n % 5;
        double seconds = least[a][b][c][d];
        if (seconds == 0)
            continue;
        json_array_append_new(results, json_pack("{s:{s:i, s:i, s:i, s:i}, s:{s:[f]}, s:s, s:i, s:[{s:s, s:f, s:s}], s:[s]}",
                                                 "configuration", "TILE_VECS", vecs[a], "TILE_KEYS", keys[b], "BLOCK_KEYS",
                                                 blocks[c], "ROWS_WANTED", rows[d], "times", "runtimes", 1e3 * seconds,
                                                 "invalidity", "correct", "correctness", 1, "measurements", "name", "speed",
                                                 "value", start / seconds, "unit", "of the start", "objectives", "speed"));
    }
    json_t *all =
        json_pack("{s:s, s:{s:s, s:s, s:s, s:s}, s:{s:[o, o, o, o], s:[{s:s}, {s:s}]}, s:o}", "schema_version", "1.0.0", "metadata",
                  "tool", "tests/data/evolve/record.c", "kernel", "cpu_fwd_f32_avx512", "problem", problem_text, "clock",
                  "the smallest CPU time of 125 calls on one thread, AMD EPYC (Zen 4)", "ConfigurationSpace", "TuningParameters",
                  knob("TILE_VECS", vecs, 4, 3), knob("TILE_KEYS", keys, 4, 8), knob("BLOCK_KEYS", blocks, 4, 128),
                  knob("ROWS_WANTED", rows, 5, 240), "Conditions", "Expression", "TILE_VECS * TILE_KEYS + TILE_VECS + 1 <= 32",
                  "Expression", "16 * TILE_VECS <= ROWS_WANTED", "results", results);
    json_dumpf(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(5));
    return 0;
}
