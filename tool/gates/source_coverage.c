/*
 * source_coverage.c - see source_coverage.h.
 *
 * objdump says where the calls are (code_listing.h), and addr2line with which clause a block begins: of the frames that are inlined
 * there, the innermost whose text is the candidate's own. Those clauses have to run. A clause ran if a block ran that begins with it,
 * or has code of it (the line table says), or is inlined into it: a function that is inlined in several places, for several types, has
 * blocks in each, which need not begin alike.
 */
#include "source_coverage.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build/build.h"
#include "build/clause_lines.h"
#include "build/code_listing.h"
#include "theory/cover_problems.h"
#include "base/report.h"
#include "run/state.h"

enum {
    LIST_SECONDS = 120,
    LIST_ROOM = 64 << 20,
    READ_EVERY = 64,
    MOST_NAMED = 3,
    MOST_LISTED = 100,
    TRY_SECONDS = 10,
    MOST_TRIED = 8,
    QUIET = 384,
    EVERY = 4
};
#define SLOWER        20.0 /* than the candidate, at most */
#define LIGHT         1e7  /* multiplications of a problem that always runs: no problem of the covering array has more */
#define HEAVY_SECONDS 10.0 /* for all others, by each worker */

struct site {
    uint64_t begin;   /* of the block */
    uint64_t address; /* that its call returns to */
    int *clauses;     /* of the candidate's own text that ran if the block did; the first is what it begins with */
    int count;
};

struct source_coverage {
    char *image;
    struct clause_lines lines;
    struct site *sites;
    int site_count;
    uint64_t ran_at; /* the array's address in the image */
    size_t span;     /* bytes of it that are used */
    unsigned char *bytes;
    bool *begins, *ran; /* by clause: a block begins with it, and so it has to run; it ran */
    atomic_bool complete;
    const struct proof *proof;
    struct executor *workers[COVERAGE_LANES];
    struct executor *trying; /* for source_coverage_try; NULL: to be opened */
    int tried_in_vain;       /* workers that were lost there */
    uint64_t runs[COVERAGE_LANES];
    uint64_t news[COVERAGE_LANES];       /* the number of the run when a clause was last seen to run for the first time */
    uint64_t passed[COVERAGE_LANES];     /* problems that were not worth it after that */
    double heavy[COVERAGE_LANES + 1];    /* processor seconds of problems that are not light; the last: in source_coverage_try */
    double slowness[COVERAGE_LANES + 1]; /* the most of them for a multiplication, in problems that are nearly heavy */
    bool asked_for;                      /* the suite is one that somebody has named: it runs, whatever it costs */
    char lost[700];                      /* why a worker is gone */
};

/* ---- where the blocks are ---------------------------------------------------------------------------------------------------- */

static const struct elf_symbol *find_symbol(const struct elf_image *image, const char *name)
{
    for (int i = 1; i < image->symbol_count; i++)
        if (image->symbols[i].defined && strcmp(image->symbols[i].name, name) == 0)
            return &image->symbols[i];
    return NULL;
}

/* Whether something may jump to each instruction, or comes to it from nowhere: behind a jump or a return. To be freed. */
static bool *find_leaders(const struct code_listing *listing)
{
    bool *leads = calloc((size_t)listing->count + 1, sizeof *leads);
    for (int i = 0; leads && i < listing->count; i++) {
        const struct code_line *line = &listing->lines[i], *target = line->branches ? code_line_at(listing, line->target) : NULL;
        if (target)
            leads[target - listing->lines] = true;
        leads[i + 1] = leads[i + 1] || line->mnemonic[0] == 'j' || code_line_is(line, "ret");
    }
    return leads;
}

static bool find_calls(struct source_coverage *coverage, const struct code_listing *listing, uint64_t called)
{
    bool *leads = find_leaders(listing);
    uint64_t begin = 0;
    coverage->sites = calloc((size_t)listing->count + 1, sizeof *coverage->sites);
    for (int i = 0; coverage->sites && leads && i + 1 < listing->count; i++) {
        const struct code_line *line = &listing->lines[i];
        const bool calls = line->branches && line->target == called && line[1].address < BUILD_RAN_SIZE;
        if (leads[i] || (calls && !begin))
            begin = line->address;
        if (!calls)
            continue;
        coverage->sites[coverage->site_count++] = (struct site){.begin = begin, .address = line[1].address};
        coverage->span = (size_t)line[1].address + 1;
        begin = 0; /* the next one may follow without a jump */
    }
    free(leads);
    return coverage->site_count > 0;
}

/* `line` is that of the rewritten text. False if memory ran out. */
static bool add_clause(struct source_coverage *coverage, struct site *site, int line)
{
    const int clause = line - 1;
    if (clause < 0 || clause >= coverage->lines.count || !coverage->lines.clauses[clause].is_own)
        return true;
    for (int i = 0; i < site->count; i++)
        if (site->clauses[i] == clause)
            return true;
    int *grown = realloc(site->clauses, ((size_t)site->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    site->clauses = grown;
    site->clauses[site->count++] = clause;
    return true;
}

static bool write_addresses(const struct source_coverage *coverage, const char *path)
{
    FILE *file = fopen(path, "w");
    for (int i = 0; file && i < coverage->site_count; i++)
        fprintf(file, "0x%" PRIx64 "\n", coverage->sites[i].address - 1); /* within the call */
    return file && fclose(file) == 0;
}

/* What a program prints of the image; to be freed. NULL if it does not. */
static char *printed_by(const char *const *argv)
{
    char *text = malloc(LIST_ROOM);
    if (text && build_command((char *const *)(uintptr_t)argv, LIST_SECONDS, text, LIST_ROOM) == 0)
        return text;
    free(text);
    return NULL;
}

/* The frames at the beginning of each block, the innermost first. */
static bool find_frames(struct source_coverage *coverage)
{
    char *list = gate_path(coverage->proof, "blocks.txt"), *option = NULL, *text = NULL, *rest = NULL;
    if (list && asprintf(&option, "@%s", list) >= 0 && write_addresses(coverage, list)) {
        const char *argv[] = {"addr2line", "-a", "-i", "-e", coverage->image, option, NULL};
        text = printed_by(argv);
    }
    bool good = text != NULL;
    int site = -1;
    for (char *row = good ? strtok_r(text, "\n", &rest) : NULL; row && good; row = strtok_r(NULL, "\n", &rest)) {
        const char *colon = strrchr(row, ':');
        if (strncmp(row, "0x", 2) == 0)
            site++;
        else if (colon && site >= 0 && site < coverage->site_count)
            good = add_clause(coverage, &coverage->sites[site], atoi(colon + 1));
    }
    free(list);
    free(option);
    free(text);
    return good;
}

/* The block that an address lies in, or NULL. */
static struct site *block_of(const struct source_coverage *coverage, uint64_t address)
{
    int low = 0, high = coverage->site_count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (coverage->sites[middle].begin <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &coverage->sites[low - 1] : NULL;
}

/* Code of other clauses in a block: rows "FILE LINE ADDRESS ..." of the line table. */
static bool find_rows(struct source_coverage *coverage)
{
    const char *argv[] = {"objdump", "--dwarf=decodedline", coverage->image, NULL};
    char *text = printed_by(argv), *rest = NULL;
    bool good = text != NULL;
    for (char *row = good ? strtok_r(text, "\n", &rest) : NULL; row && good; row = strtok_r(NULL, "\n", &rest)) {
        int line;
        uint64_t address;
        struct site *site;
        if (sscanf(row, "%*s %d 0x%" SCNx64, &line, &address) == 2 && (site = block_of(coverage, address)) && site->count)
            good = add_clause(coverage, site, line);
    }
    free(text);
    return good;
}

static bool find_blocks(struct source_coverage *coverage, char *why, size_t why_size)
{
    struct elf_image image = {0};
    struct code_listing listing = {0};
    snprintf(why, why_size, "no block of its code was found");
    bool good =
        elf_read(coverage->image, &image, why, why_size) && code_listing_make(coverage->image, &image, &listing, why, why_size);
    const struct elf_symbol *called = good ? find_symbol(&image, BUILD_CALLED) : NULL,
                            *ran = good ? find_symbol(&image, BUILD_RAN) : NULL;
    good = called && ran && find_calls(coverage, &listing, called->value);
    if (good) {
        coverage->ran_at = ran->value;
        snprintf(why, why_size, "its lines are not found; addr2line and objdump are needed: install binutils");
        good = find_frames(coverage) && find_rows(coverage);
    }
    code_listing_free(&listing);
    elf_free(&image);
    for (int i = 0; good && i < coverage->site_count; i++)
        if (coverage->sites[i].count)
            coverage->begins[coverage->sites[i].clauses[0]] = true;
    return good;
}

/* ---- opening ----------------------------------------------------------------------------------------------------------------- */

static bool build_covered(struct source_coverage *coverage, char *why, size_t why_size)
{
    const struct proof *proof = coverage->proof;
    char log[BUILD_LOG_SIZE] = "", *flags = candidate_flags(proof->candidate.source), *text = NULL;
    coverage->image = gate_path(proof, "covered.so");
    bool good = flags && coverage->image &&
                build_image(proof->candidate.source, flags, coverage->image, BUILD_COVERED, log, sizeof log) &&
                (text = build_text(proof->candidate.source, flags, log, sizeof log)) && clause_lines_make(&coverage->lines, text);
    if (!good)
        build_first_error(log, why, why_size);
    free(flags);
    free(text);
    return good;
}

static struct executor *open_worker(const struct source_coverage *coverage, double seconds, struct execution *execution)
{
    const struct executor_spec spec = {.image = coverage->image,
                                       .threads = 1,
                                       .guard = GUARD_BANDS,
                                       .seconds = seconds,
                                       .memory = (int64_t)coverage->proof->policy.memory_mb << 20,
                                       .lifted = true,
                                       .relaxed = true};
    return executor_open(&spec, execution);
}

struct source_coverage *source_coverage_open(const struct proof *proof, char *why, size_t why_size)
{
    struct execution execution;
    struct source_coverage *coverage = calloc(1, sizeof *coverage);
    snprintf(why, why_size, "out of memory");
    if (coverage)
        coverage->proof = proof;
    bool good = coverage && build_covered(coverage, why, why_size);
    if (good) {
        coverage->begins = calloc((size_t)coverage->lines.count, sizeof *coverage->begins);
        coverage->ran = calloc((size_t)coverage->lines.count, sizeof *coverage->ran);
        good = coverage->begins && coverage->ran && find_blocks(coverage, why, why_size);
    }
    good = good && (coverage->bytes = calloc(1, coverage->span));
    if (good)
        coverage->asked_for = proof->session->options.suite != NULL;
    for (int lane = 0; lane < COVERAGE_LANES && good; lane++)
        if (!(coverage->workers[lane] = open_worker(coverage, SLOWER * proof->policy.call_seconds, &execution))) {
            snprintf(why, why_size, "%s", execution.sentence);
            good = false;
        }
    if (good)
        return coverage;
    source_coverage_close(coverage);
    return NULL;
}

void source_coverage_close(struct source_coverage *coverage)
{
    if (!coverage)
        return;
    for (int lane = 0; lane < COVERAGE_LANES; lane++)
        executor_close(coverage->workers[lane], NULL);
    executor_close(coverage->trying, NULL);
    clause_lines_free(&coverage->lines);
    free(coverage->image);
    for (int i = 0; i < coverage->site_count; i++)
        free(coverage->sites[i].clauses);
    free(coverage->sites);
    free(coverage->bytes);
    free(coverage->begins);
    free(coverage->ran);
    free(coverage);
}

/* ---- what ran ---------------------------------------------------------------------------------------------------------------- */

static int count_never(const struct source_coverage *coverage)
{
    int count = 0;
    for (int i = 0; i < coverage->lines.count; i++)
        count += coverage->begins[i] && !coverage->ran[i];
    return count;
}

static bool take_ran(struct source_coverage *coverage, const struct executor *worker)
{
    if (!executor_read(worker, coverage->image, coverage->ran_at, coverage->bytes, coverage->span))
        return false;
    for (int i = 0; i < coverage->site_count; i++) {
        const struct site *site = &coverage->sites[i];
        for (int n = 0; n < site->count && coverage->bytes[site->address]; n++)
            coverage->ran[site->clauses[n]] = true;
    }
    return true;
}

static void take_lane(struct source_coverage *coverage, int lane)
{
    if (!take_ran(coverage, coverage->workers[lane]))
        snprintf(coverage->lost, sizeof coverage->lost, "what ran could not be read");
}

bool source_coverage_is_complete(struct source_coverage *coverage)
{
    for (int lane = 0; lane < COVERAGE_LANES && !coverage->complete; lane++)
        if (coverage->workers[lane] && coverage->runs[lane])
            take_lane(coverage, lane);
    coverage->complete = coverage->complete || count_never(coverage) == 0;
    return coverage->complete;
}

/* Whether a size is one that only large problems have: more of what smaller ones have shows nothing. */
static bool is_large(const attest_problem *p)
{
    enum { LARGE = 8192, MANY = 256, LARGE_BYTES = 16 << 20 };
    return p->seq_q > LARGE || p->seq_kv > LARGE || p->batch > MANY || p->heads_q > MANY ||
           (double)p->batch * (double)p->heads_kv * (double)p->seq_kv * (double)(p->dim + p->dim_v) *
                   (p->dtype == ATTEST_F32 ? 4 : 2) >
               LARGE_BYTES;
}

/* The copy is slow where a block is short. */
static bool is_worth_it(const struct source_coverage *coverage, int lane, const attest_problem *problem)
{
    const double work = cover_work(problem), seconds = work * coverage->slowness[lane];
    return work <= LIGHT || coverage->asked_for || (is_large(problem) && coverage->heavy[lane] + seconds <= HEAVY_SECONDS);
}

static struct execution compute(struct source_coverage *coverage, int lane, struct executor *worker, const struct inputs *inputs)
{
    struct execution execution;
    const int slot = 0;
    if (executor_load(worker, slot, inputs, &execution)) {
        const double work = cover_work(&inputs->problem), begin = executor_processor_seconds(worker);
        execution = executor_run(worker, &slot, 1, EXECUTOR_DRAWN);
        const double seconds = executor_processor_seconds(worker) - begin;
        if (work > LIGHT)
            coverage->heavy[lane] += seconds;
        if (work > LIGHT / 10) /* else most of the time is not the kernel's */
            coverage->slowness[lane] = fmax(coverage->slowness[lane], seconds / work);
    }
    return execution;
}

/* Most clauses run in the first problems, and when all have, no more are computed. */
static bool is_time_to_read(uint64_t runs)
{
    return runs % READ_EVERY == 0 || (runs & (runs - 1)) == 0;
}

void source_coverage_run(struct source_coverage *coverage, int lane, const struct inputs *inputs)
{
    struct execution execution;
    struct executor *worker = coverage->workers[lane];
    if (coverage->complete || !worker || !is_worth_it(coverage, lane, &inputs->problem))
        return;
    /* Where nothing new has run for long, every fourth of the small problems is enough. */
    if (coverage->runs[lane] > coverage->news[lane] + QUIET && !coverage->asked_for && !is_large(&inputs->problem) &&
        ++coverage->passed[lane] % EVERY != 0)
        return;
    execution = compute(coverage, lane, worker, inputs);
    if (!execution_survived(&execution)) {
#pragma omp critical(source_coverage)
        {
            snprintf(coverage->lost, sizeof coverage->lost, "%s", execution.sentence);
            executor_close(worker, NULL);
            coverage->workers[lane] = NULL;
        }
    } else if (is_time_to_read(++coverage->runs[lane])) {
#pragma omp critical(source_coverage)
        {
            const int before = count_never(coverage);
            take_lane(coverage, lane);
            if (count_never(coverage) < before)
                coverage->news[lane] = coverage->runs[lane];
            coverage->complete = count_never(coverage) == 0;
        }
    }
}

bool source_coverage_try(struct source_coverage *coverage, const struct inputs *inputs)
{
    struct execution execution;
    if (!is_worth_it(coverage, COVERAGE_LANES, &inputs->problem))
        return true;
    if (!coverage->trying && !(coverage->trying = open_worker(coverage, TRY_SECONDS, &execution)))
        return false;
    execution = compute(coverage, COVERAGE_LANES, coverage->trying, inputs);
    if (execution_survived(&execution))
        return take_ran(coverage, coverage->trying);
    executor_close(coverage->trying, NULL);
    coverage->trying = NULL;
    return ++coverage->tried_in_vain < MOST_TRIED;
}

json_t *source_coverage_report(struct source_coverage *coverage, char *sentence, size_t size)
{
    *sentence = '\0';
    const bool complete = source_coverage_is_complete(coverage);
    if (*coverage->lost && !complete) {
        snprintf(sentence, size, "%s", coverage->lost);
        return json_pack("{s:s}", "lost", coverage->lost);
    }
    json_t *never = json_array();
    int all = 0;
    size_t used = 0;
    for (int i = 0, named = 0; i < coverage->lines.count; i++) {
        char text[120];
        all += coverage->begins[i];
        if (!coverage->begins[i] || coverage->ran[i])
            continue;
        const struct clause *clause = &coverage->lines.clauses[i];
        clause_print(&coverage->lines, i, text, sizeof text);
        if (json_array_size(never) < MOST_LISTED)
            json_add(never, json_pack("{s:s, s:i, s:s}", "file", clause->file, "line", clause->line, "text", text));
        if (named++ < MOST_NAMED && used < size)
            used += (size_t)snprintf(sentence + used, size - used, "%s%.160s:%d '%.60s'", used ? ", " : "", clause->file,
                                     clause->line, text);
    }
    return json_pack("{s:i, s:i, s:o}", "clauses", all, "ran", all - count_never(coverage), "never", never);
}
