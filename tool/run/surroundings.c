/*
 * surroundings.c - the machine while something is timed on it, and what no machine can beat (see surroundings.h).
 */
#include "surroundings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/report.h"
#include "base/session.h"

/*
 * The floor is made of bounds that are beyond any core there is: a time below it is no achievement but a mistake. Each core of the
 * machine, at 6 GHz, makes two fused multiply-adds of 512 bits in a cycle (64 flops in f32), 16 times as many on 16-bit types (as
 * AMX does), and loads two times 64 bytes in a cycle.
 */
#define CLOCK_BOUND  6e9
#define FLOPS_BOUND  64.0 /* f32, a cycle and core */
#define SHORT_FACTOR 16.0 /* for 16-bit types */
#define BYTES_BOUND  128.0

/* And beyond any GPU there is: products of 16-bit types and of f32 (as TF32, by one that breaks the rules), and bytes from any
 * cache. */
#define GPU_SHORT_FLOPS 20e15 /* a second */
#define GPU_FLOAT_FLOPS 10e15
#define GPU_BYTES       40e12

#define SLOW_READING    0.5e-3 /* seconds that reading the clock may take */
#define MOST_CORES      64     /* whose clocks are read */

static double core_count(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? (double)cores : 1;
}

double floor_seconds(const struct layout *layout, bool gpu)
{
    const attest_problem *problem = layout->problem;
    double rows = (double)layout_total_rows(layout), size = (double)element_size(problem->dtype);
    double bytes = layout_kv_bytes(layout) + rows * (double)problem->dim * size +
                   rows * (double)problem->dim_v * (double)element_size(problem->dtype_o);
    if (gpu)
        return fmax(layout_flops(layout) / (problem->dtype == ATTEST_F32 ? GPU_FLOAT_FLOPS : GPU_SHORT_FLOPS), bytes / GPU_BYTES);
    double flops = FLOPS_BOUND * (problem->dtype == ATTEST_F32 ? 1 : SHORT_FACTOR);
    return fmax(layout_flops(layout) / flops, bytes / BYTES_BOUND) / (core_count() * CLOCK_BOUND);
}

json_t *floor_bounds(bool gpu)
{
    if (gpu)
        return json_pack("{s:f, s:f, s:f}", "flops_f32", GPU_FLOAT_FLOPS, "flops_16_bit", GPU_SHORT_FLOPS, "bytes", GPU_BYTES);
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "cores", core_count(), "clock_hz", CLOCK_BOUND, "flops_a_cycle_f32", FLOPS_BOUND,
                     "flops_a_cycle_16_bit", FLOPS_BOUND * SHORT_FACTOR, "bytes_a_cycle", BYTES_BOUND);
}

double cache_bytes(void)
{
    long size = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return size > 0 ? (double)size : 0x1p20;
}

/* A number at the beginning of a file; NaN if there is none. */
static double read_number(const char *path)
{
    double value = NAN;
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%lf", &value) != 1)
        value = NAN;
    if (file)
        fclose(file);
    return value;
}

/* The largest of the numbers in files whose names have a number in them, 0, 1, ...; NaN if there is no such file. */
static double read_largest(const char *before, const char *behind)
{
    double largest = NAN;
    for (int i = 0; i < MOST_CORES; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%d%s", before, i, behind);
        double value = read_number(path);
        if (isnan(value) && access(path, F_OK) != 0)
            break;
        largest = fmax(largest, value);
    }
    return largest;
}

static double read_cpuinfo(void)
{
    char line[512];
    double largest = NAN, value;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "cpu MHz : %lf", &value) == 1)
            largest = fmax(largest, value);
    if (file)
        fclose(file);
    return 1e6 * largest;
}

double clock_now(void)
{
    static bool slow;
    if (slow)
        return 0;
    double begin = seconds_now(), clock = 1e3 * read_largest("/sys/devices/system/cpu/cpu", "/cpufreq/scaling_cur_freq");
    if (isnan(clock))
        clock = read_cpuinfo();
    slow = seconds_now() - begin > SLOW_READING;
    return isnan(clock) ? 0 : clock;
}

static double temperature(void)
{
    return 1e-3 * read_largest("/sys/class/thermal/thermal_zone", "/temp");
}

/* Seconds of processor time that the whole machine has used. */
static double busy_seconds(void)
{
    double user, nice, system, idle, wait, interrupt, soft, steal;
    FILE *file = fopen("/proc/stat", "re");
    bool read = file && fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &wait, &interrupt, &soft,
                               &steal) == 8;
    if (file)
        fclose(file);
    return read ? (user + nice + system + interrupt + soft + steal) / (double)sysconf(_SC_CLK_TCK) : NAN;
}

static double own_seconds(void)
{
    static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    double sum = 0;
    for (int i = 0; i < COUNT_OF(whose); i++) {
        struct rusage usage;
        if (getrusage(whose[i], &usage) == 0)
            sum += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                   1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    }
    return sum;
}

void surroundings_begin(struct surroundings *surroundings)
{
    *surroundings = (struct surroundings){.load = read_number("/proc/loadavg"),
                                          .temperature = temperature(),
                                          .busy = busy_seconds(),
                                          .own = own_seconds(),
                                          .time = seconds_now()};
}

static json_t *number_or_null(double value)
{
    return isnan(value) ? json_null() : json_number(value);
}

json_t *surroundings_end(const struct surroundings *surroundings)
{
    double available = (seconds_now() - surroundings->time) * core_count(), clock = clock_now();
    double others = (busy_seconds() - surroundings->busy) - (own_seconds() - surroundings->own);
    return json_pack("{s:o, s:[o, o], s:[o, o], s:o}", "clock_hz", clock > 0 ? json_number(clock) : json_null(), "load",
                     number_or_null(surroundings->load), number_or_null(read_number("/proc/loadavg")), "temperature_c",
                     number_or_null(surroundings->temperature), number_or_null(temperature()), "others",
                     number_or_null(available > 0 ? fmax(others, 0) / available : NAN));
}
