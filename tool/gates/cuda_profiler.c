/*
 * cuda_profiler.c - see cuda_profiler.h.
 *
 * Two claims can be checked with counters. The first is that the products run where the manifest says: a kernel that claims tensor
 * cores must have executed at least the instructions that the visible pairs of rows and keys need, and not many times more than
 * whole tiles without any mask would; one that claims none must have executed none. The second is that it read its inputs and wrote
 * its outputs: the bytes that passed through the L2 cache or came from memory are not fewer than the problem's. Whether a unit is
 * busy is said, never judged: good kernels win at low occupancy.
 */
#include "cuda_profiler.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/objects.h"
#include "base/session.h"

enum { MOST_COLUMNS = 1024, SECTOR = 32, BUSY = 60, IDLE = 5 };

/* Executed tensor instructions may be so many times those of whole tiles without a mask: some counts depend on the device. */
#define MOST_TENSOR_WORK 4

static const struct {
    const char *name;
    int arch; /* there from this one on */
} metrics[METRIC_COUNT] = {
    [METRIC_TIME] = {"gpu__time_duration.sum", 0},
    [METRIC_SM] = {"sm__throughput.avg.pct_of_peak_sustained_elapsed", 0},
    [METRIC_TENSOR] = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", 0},
    [METRIC_DRAM] = {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", 0},
    [METRIC_L2] = {"lts__throughput.avg.pct_of_peak_sustained_elapsed", 0},
    [METRIC_HMMA] = {"sm__inst_executed_pipe_tensor_op_hmma.sum", 0},
    [METRIC_HFMA2] = {"sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum", 90},
    [METRIC_GMMA] = {"sm__inst_executed_pipe_tensor_op_gmma.sum", 90},
    [METRIC_DRAM_READ] = {"dram__bytes_read.sum", 0},
    [METRIC_DRAM_WRITE] = {"dram__bytes_write.sum", 0},
    [METRIC_L2_READ] = {"lts__t_sectors_op_read.sum", 0},
    [METRIC_L2_WRITE] = {"lts__t_sectors_op_write.sum", 0},
    [METRIC_L2_HITS] = {"lts__t_sector_hit_rate.pct", 0},
    [METRIC_REGISTERS] = {"launch__registers_per_thread", 0},
};

const char *cuda_metric_name(enum cuda_metric metric)
{
    return metrics[metric].name;
}

/* ---- the table --------------------------------------------------------------------------------------------------------------- */

/* Cuts one line of CSV into fields, in place; returns how many there are. `line` is set behind the line. */
static int cut_fields(char **line, char *fields[MOST_COLUMNS])
{
    char *at = *line;
    int count = 0;
    bool more = *at != '\0';
    while (more) {
        bool quoted = *at == '"';
        char *out = at += quoted, *start = out;
        while (*at && (quoted || (*at != ',' && *at != '\n'))) {
            if (quoted && *at == '"' && *++at != '"')
                break;
            *out++ = *at++;
        }
        char end = *at;
        while (end && end != ',' && end != '\n') /* what follows a closing quote does not belong here */
            end = *++at;
        more = end == ',';
        at += end != '\0';
        *out = '\0';
        if (count < MOST_COLUMNS)
            fields[count++] = start;
    }
    *line = at;
    return count;
}

/* "1,234.5" is a number in this table. */
static bool parse_value(const char *text, double *value)
{
    char plain[64], *end;
    size_t length = 0;
    for (; *text && length < sizeof plain - 1; text++)
        if (*text != ',')
            plain[length++] = *text;
    plain[length] = '\0';
    *value = strtod(plain, &end);
    return length && !*end && *value >= 0 && *value < 1e300;
}

bool cuda_profile_parse(const char *csv, int launch, struct cuda_profile *profile, char *why, size_t why_size)
{
    char *copy = strdup(csv), *at = copy, *fields[MOST_COLUMNS];
    int columns[METRIC_COUNT], kernel_column = -1, id_column = -1;
    bool read = false;
    *profile = (struct cuda_profile){0};
    for (int i = 0; i < METRIC_COUNT; i++)
        columns[i] = -1;
    while (at && *at && !read) {
        int count = cut_fields(&at, fields);
        if (id_column < 0) { /* lines of the tool, then the names */
            for (int f = 0; f < count; f++) {
                if (strcmp(fields[f], "ID") == 0)
                    id_column = f;
                if (strcmp(fields[f], "Kernel Name") == 0)
                    kernel_column = f;
                for (int i = 0; i < METRIC_COUNT; i++)
                    if (strcmp(fields[f], metrics[i].name) == 0)
                        columns[i] = f;
            }
            if (kernel_column < 0)
                id_column = -1;
            continue;
        }
        if (count <= kernel_column || !isdigit((unsigned char)fields[id_column][0])) /* units, and lines of the tool */
            continue;
        if (launch-- > 0)
            continue;
        snprintf(profile->kernel, sizeof profile->kernel, "%s", fields[kernel_column]);
        for (int i = 0; i < METRIC_COUNT; i++)
            profile->there[i] = columns[i] >= 0 && columns[i] < count && parse_value(fields[columns[i]], &profile->values[i]);
        read = true;
    }
    free(copy);
    if (!read)
        snprintf(why, why_size, "ncu printed no table with a launch of the kernel");
    return read;
}

/* ---- judging ----------------------------------------------------------------------------------------------------------------- */

static double element_bytes(uint32_t dtype)
{
    return (double)element_size(dtype);
}

struct cuda_workload cuda_workload(const struct layout *layout, const struct cuda_manifest *manifest,
                                   const struct cuda_configuration *configuration)
{
    const attest_problem *p = layout->problem;
    const int64_t *n = configuration->numbers;
    struct cuda_workload load = {.dim = p->dim, .dim_v = p->dim_v, .instance = configuration->dim};
    int64_t pack = cuda_configuration_pack(manifest, configuration, p), seeing = 0;
    int64_t tiles = (p->seq_q * pack + n[CUDA_TILE_Q] - 1) / n[CUDA_TILE_Q];
    int64_t blocks = (p->seq_kv + n[CUDA_TILE_KV] - 1) / n[CUDA_TILE_KV];
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t i = 0; i < layout_rows(layout, b); i++) {
            int64_t begin, end;
            layout_visible(layout, b, i, &begin, &end);
            seeing += begin < end;
        }
    load.pairs = layout_flops(layout) / (2.0 * (double)(p->dim + p->dim_v));
    load.padded_pairs =
        (double)(p->batch * (p->heads_q / pack) * tiles) * (double)n[CUDA_TILE_Q] * (double)blocks * (double)n[CUDA_TILE_KV];
    struct view q = layout_view(p, 'q');
    double q_elements = (double)view_count(&q), rows_elements = (double)(seeing * p->heads_q * p->dim);
    load.read = layout_kv_bytes(layout) + (q_elements < rows_elements ? q_elements : rows_elements) * element_bytes(p->dtype);
    load.written = (double)(layout_total_rows(layout) * p->dim_v) * element_bytes(p->dtype_o);
    return load;
}

void cuda_limiter(const struct cuda_profile *profile, char *text, size_t size)
{
    static const struct {
        enum cuda_metric metric;
        const char *name;
    } units[] = {
        {METRIC_TENSOR, "tensor cores"}, {METRIC_DRAM, "memory bandwidth"}, {METRIC_L2, "L2 bandwidth"}, {METRIC_SM, "the SMs"}};
    int most = 0;
    for (int i = 1; i < COUNT_OF(units); i++)
        if (profile->values[units[i].metric] > profile->values[units[most].metric])
            most = i;
    double busy = profile->values[units[most].metric];
    snprintf(text, size, busy >= BUSY ? "%s (%.0f %% busy)" : "latency (%s, the busiest, %.0f %%)", units[most].name, busy);
}

/* False if the tensor instructions contradict the claim. */
static bool judge_tensor(const struct cuda_profile *profile, const struct cuda_workload *load, const struct cuda_manifest *manifest,
                         const struct cuda_configuration *configuration, struct cuda_finding *finding)
{
    const int64_t *n = configuration->numbers;
    double hmma = profile->values[METRIC_HMMA] - profile->values[METRIC_HFMA2], gmma = profile->values[METRIC_GMMA];
    if (manifest->tensor == CUDA_TENSOR_NONE) {
        /* The compiler moves constants with HFMA2.MMA. Where that is not counted apart: it keeps the pipe busy for no time, and the
         * build gate has seen that there is no product in the image. */
        if (gmma == 0 && (hmma == 0 || (!profile->there[METRIC_HFMA2] && profile->values[METRIC_TENSOR] < IDLE)))
            return true;
        cuda_conclude(finding, VERDICT_FAIL, "it claims no tensor cores, and executed %.0f tensor instructions", hmma + gmma);
        return false;
    }
    /* A kernel with wgmma may do some of its products by mma.sync. */
    const char *pipe = manifest->tensor == CUDA_TENSOR_GMMA ? "gmma" : "hmma";
    double executed = manifest->tensor != CUDA_TENSOR_GMMA ? hmma : gmma > 0 ? gmma + hmma : 0;
    double least = load->pairs * ((double)load->dim / (double)n[CUDA_MMA_QK] + (double)load->dim_v / (double)n[CUDA_MMA_PV]);
    double most = load->padded_pairs * (double)load->instance * (1 / (double)n[CUDA_MMA_QK] + 1 / (double)n[CUDA_MMA_PV]);
    if (executed < least)
        cuda_conclude(finding, VERDICT_FAIL, "it claims tensor cores: the work needs %.0f %s instructions, and it executed %.0f",
                      least, pipe, executed);
    else if (executed > MOST_TENSOR_WORK * most)
        cuda_conclude(
            finding, VERDICT_FAIL,
            "it executed %.0f %s instructions, where whole tiles need %.0f: mma_qk or mma_pv is wrong, or work is done many times",
            executed, pipe, most);
    else
        return true;
    return false;
}

void cuda_profile_judge(const struct cuda_profile *profile, const struct cuda_workload *workload,
                        const struct cuda_manifest *manifest, const struct cuda_configuration *configuration, int arch,
                        struct cuda_finding *finding)
{
    char limiter[96];
    *finding = (struct cuda_finding){.errors = -1, .warnings = -1};
    for (int i = 0; i < METRIC_COUNT; i++)
        if (!profile->there[i] && arch >= metrics[i].arch && i != METRIC_HFMA2) {
            cuda_conclude(finding, VERDICT_INCONCLUSIVE, "ncu did not measure %s here; a newer ncu may", metrics[i].name);
            return;
        }
    if (strcmp(profile->kernel, ATTEST_CUDA_KERNEL) != 0 && strncmp(profile->kernel, ATTEST_CUDA_KERNEL "(", 14) != 0) {
        cuda_conclude(finding, VERDICT_INCONCLUSIVE, "ncu measured %s, not " ATTEST_CUDA_KERNEL, profile->kernel);
        return;
    }
    if (!judge_tensor(profile, workload, manifest, configuration, finding))
        return;
    double read = profile->values[METRIC_L2_READ] * SECTOR, written = profile->values[METRIC_L2_WRITE] * SECTOR;
    read = read > profile->values[METRIC_DRAM_READ] ? read : profile->values[METRIC_DRAM_READ];
    written = written > profile->values[METRIC_DRAM_WRITE] ? written : profile->values[METRIC_DRAM_WRITE];
    if (read < workload->read)
        cuda_conclude(finding, VERDICT_FAIL, "it read %.0f bytes, and the problem has %.0f that must be read", read,
                      workload->read);
    else if (written < workload->written && manifest->launch != ATTEST_LAUNCH_SPLIT) /* a split kernel leaves O to attest_combine */
        cuda_conclude(finding, VERDICT_FAIL, "it wrote %.0f bytes, and the problem has %.0f that must be written", written,
                      workload->written);
    else {
        cuda_limiter(profile, limiter, sizeof limiter);
        cuda_conclude(finding, VERDICT_PASS,
                      "%.1f us, limited by %s; tensor pipe %.0f %%, memory %.0f %%, L2 hits %.0f %%, %.0f registers",
                      profile->values[METRIC_TIME] / 1e3, limiter, profile->values[METRIC_TENSOR], profile->values[METRIC_DRAM],
                      profile->values[METRIC_L2_HITS], profile->values[METRIC_REGISTERS]);
    }
}

/* ---- running ----------------------------------------------------------------------------------------------------------------- */

int cuda_profiler_words(const char *program, const char *log, int arch, int launches, const char *words[CUDA_MOST_WORDS])
{
    static _Thread_local char wanted[METRIC_COUNT * 80], count_text[16];
    snprintf(count_text, sizeof count_text, "%d", launches);
    wanted[0] = '\0';
    for (int i = 0; i < METRIC_COUNT; i++)
        if (arch >= metrics[i].arch)
            snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "%s%s", *wanted ? "," : "", metrics[i].name);
    const char *all[] = {program,
                         "--csv",
                         "--page",
                         "raw",
                         "--print-units",
                         "base",
                         "--clock-control",
                         "none",
                         "--cache-control",
                         "all",
                         "-k",
                         ATTEST_CUDA_KERNEL,
                         "-c",
                         count_text,
                         "--metrics",
                         wanted,
                         "--log-file",
                         log,
                         NULL};
    int count = 0;
    for (; all[count]; count++)
        words[count] = all[count];
    words[count] = NULL;
    return count;
}

/* True, and the finding filled, if there is nothing to be read. */
static bool explain_failure(const struct cuda_run *run, const char *marker, struct cuda_finding *finding)
{
    const char *error = strstr(run->log, "==ERROR==");
    bool done = cuda_run_done(run->printed, marker);
    int status = run->status;
    char line[200];
    cuda_run_last_line(run->printed, line, sizeof line);
    if (strstr(run->log, "ERR_NVGPUCTRPERM"))
        cuda_conclude(finding, VERDICT_INCONCLUSIVE,
                      "the counters of this GPU are for administrators; run as root, or load the driver with "
                      "NVreg_RestrictProfilingToAdminUsers=0");
    else if (status == 127)
        cuda_conclude(finding, VERDICT_INCONCLUSIVE, "ncu could not be run; install Nsight Compute");
    else if (status == 124)
        cuda_conclude(finding, VERDICT_INCONCLUSIVE, "the worker was not done in time under ncu; allow it more");
    else if (error)
        cuda_conclude(finding, VERDICT_INCONCLUSIVE, "ncu: %.*s", (int)strcspn(error + 10, "\n"), error + 10);
    else if ((status == EXIT_LACKING || status == EXIT_USAGE) && !done)
        cuda_conclude(finding, VERDICT_INCONCLUSIVE, "the worker could not run the kernel: %s", line);
    else if (status != 0)
        cuda_conclude(finding, VERDICT_FAIL, "the worker ended with status %d under ncu", status);
    else if (!done)
        cuda_conclude(finding, VERDICT_FAIL, "the worker ended before it was done, under ncu");
    else
        return false;
    return true;
}

/* ncu says in which folder the program lies that it looked into: the log is kept as evidence, and that is no part of it. */
static void forget_folder(char *said, const char *log)
{
    static const char mark[] = "==PROF== Connected to process ";
    for (char *line = strstr(said, mark); line; line = strstr(line + 1, mark)) {
        size_t length = strcspn(line, "\n");
        char *folder = memchr(line, '(', length), *name = memrchr(line, '/', length);
        if (folder && name && folder < name)
            memmove(folder + 1, name + 1, strlen(name + 1) + 1);
    }
    file_replace(log, said, strlen(said));
}

char *cuda_profiler_run(const char *program, int arch, int launches, const struct cuda_worker *worker, double seconds,
                        const char *log, struct cuda_finding *finding)
{
    const char *words[CUDA_MOST_WORDS];
    cuda_profiler_words(program, log, arch, launches, words);
    *finding = (struct cuda_finding){.errors = -1, .warnings = -1};
    struct cuda_run run = cuda_run_under(words, worker, seconds, log);
    char *said = NULL;
    if (!run.log)
        cuda_conclude(finding, VERDICT_INCONCLUSIVE, "out of memory");
    else {
        if (*run.log)
            forget_folder(run.log, log);
        if (!explain_failure(&run, worker->marker, finding)) {
            said = run.log;
            run.log = NULL;
        }
    }
    cuda_run_free(&run);
    return said;
}
