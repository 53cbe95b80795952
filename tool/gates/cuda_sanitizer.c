/*
 * cuda_sanitizer.c - see cuda_sanitizer.h.
 *
 * compute-sanitizer can say "no errors" in many ways without having looked: its default exit status hides errors, it disables
 * itself when CUDA was initialised before it was there, and it ends well when the program never used CUDA or died early. So a check
 * passes only if its own summary line says zero, the exit status is 0, and the worker reached its end.
 */
#include "cuda_sanitizer.h"

#include <stdio.h>
#include <string.h>

#include "base/session.h"

static const struct {
    const char *name;
    int status;
    const char *status_text;
    const char *options[4]; /* beyond those of all */
} checks[CUDA_CHECK_COUNT] = {
    [CUDA_MEMCHECK] = {"memcheck", 81, "81", {"--padding", "512", "--check-warpgroup-mma", "yes"}},
    [CUDA_RACECHECK] = {"racecheck", 82, "82", {"--racecheck-report", "all", "--racecheck-detect-level", "warn"}},
    [CUDA_INITCHECK] = {"initcheck", 83, "83", {NULL}},
    [CUDA_SYNCCHECK] = {"synccheck", 84, "84", {"--check-warpgroup-mma", "yes"}},
};

const char *cuda_check_name(enum cuda_check check)
{
    return checks[check].name;
}

int cuda_check_status(enum cuda_check check)
{
    return checks[check].status;
}

int cuda_sanitizer_words(enum cuda_check check, const char *program, const char *log, const char *words[CUDA_MOST_WORDS])
{
    const char *all[] = {program,
                         "--tool",
                         checks[check].name,
                         "--error-exitcode",
                         checks[check].status_text,
                         "--log-file",
                         log,
                         "--print-limit",
                         "20",
                         "--launch-timeout",
                         "120",
                         "--check-exit-code",
                         "no",
                         NULL};
    int count = 0;
    for (; all[count]; count++)
        words[count] = all[count];
    for (int i = 0; i < COUNT_OF(checks[check].options) && checks[check].options[i]; i++)
        words[count++] = checks[check].options[i];
    words[count] = NULL;
    return count;
}

/* ---- reading ----------------------------------------------------------------------------------------------------------------- */

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end && end[1] ? end + 1 : NULL;
}

/* Sums what the summary lines of the log say. False if there is none for this check. */
static bool read_summaries(enum cuda_check check, const char *log, int64_t *errors, int64_t *warnings)
{
    bool found = false;
    *errors = *warnings = 0;
    for (const char *line = log; line; line = next_line(line)) {
        long long shown, wrong, warned;
        if (sscanf(line, "========= ERROR SUMMARY: %lld error", &shown) == 1) {
            *errors += shown;
            found = found || check != CUDA_RACECHECK;
        } else if (sscanf(line, "========= RACECHECK SUMMARY: %lld hazard%*[^(](%lld erro%*[^,], %lld", &shown, &wrong, &warned) ==
                   3) {
            *errors += wrong;
            *warnings += warned > shown - wrong ? warned : shown - wrong;
            found = found || check == CUDA_RACECHECK;
        }
    }
    return found;
}

/* The first thing that the log reports, with the line that says where. */
static void first_report(const char *log, char *text, size_t size)
{
    static const char prefix[] = "========= ";
    *text = '\0';
    for (const char *line = log; line; line = next_line(line)) {
        const char *said = line + sizeof prefix - 1, *below = next_line(line);
        if (strncmp(line, prefix, sizeof prefix - 1) != 0 || *said == ' ' || *said == '\n' || !*said ||
            strncmp(said, "COMPUTE-SANITIZER", 17) == 0 || strncmp(said, "ERROR SUMMARY", 13) == 0 ||
            strncmp(said, "RACECHECK SUMMARY", 17) == 0)
            continue;
        int used = snprintf(text, size, "%.*s", (int)strcspn(said, "\n"), said);
        if (below && strncmp(below, "=========     ", 14) == 0 && used > 0 && (size_t)used < size)
            snprintf(text + used, size - (size_t)used, ", %.*s", (int)strcspn(below + 14, "\n"), below + 14);
        return;
    }
}

static bool says(const char *log, const char *words)
{
    return strcasestr(log, words) != NULL;
}

/* ---- judging ----------------------------------------------------------------------------------------------------------------- */

void cuda_sanitizer_judge(enum cuda_check check, int status, const char *log, const char *printed, const char *marker,
                          struct cuda_finding *finding)
{
    const char *name = checks[check].name;
    char report[300], line[200];
    int64_t errors, warnings;
    bool summed = read_summaries(check, log, &errors, &warnings);
    finding->errors = summed ? errors : -1;
    finding->warnings = summed ? warnings : -1;
    first_report(log, report, sizeof report);
    cuda_run_last_line(printed, line, sizeof line);
    if (errors || warnings)
        cuda_conclude(finding, VERDICT_FAIL, "%s: %lld error%s, %lld warning%s; the first: %s", name, (long long)errors,
                      errors == 1 ? "" : "s", (long long)warnings, warnings == 1 ? "" : "s", report);
    else if (says(log, "initialized before the sanitizer") || says(log, "sanitizer will be disabled"))
        cuda_conclude(finding, VERDICT_FAIL, "%s: CUDA was initialised before the sanitizer was there, so nothing was checked",
                      name);
    else if (status == 127)
        cuda_conclude(finding, VERDICT_INCONCLUSIVE, "compute-sanitizer could not be run; install the CUDA toolkit");
    else if (says(log, "not supported") || says(log, "internal sanitizer error") || says(log, "injection library"))
        cuda_conclude(finding, VERDICT_INCONCLUSIVE, "%s cannot work on this machine: %s", name, report);
    else if (status == 124 && *report) /* too many errors to be counted in time */
        cuda_conclude(finding, VERDICT_FAIL, "%s: errors, and no end of them in time; the first: %s", name, report);
    else if (status == 124)
        cuda_conclude(finding, VERDICT_INCONCLUSIVE, "%s: the worker was not done in time under the sanitizer; allow it more",
                      name);
    else if (status == cuda_check_status(check))
        cuda_conclude(finding, VERDICT_FAIL, "%s: it ended with the status for errors, and its log has none: %s", name, report);
    else if ((status == EXIT_LACKING || status == EXIT_USAGE) && !cuda_run_done(printed, marker))
        cuda_conclude(finding, VERDICT_INCONCLUSIVE, "%s: the worker could not run the kernel: %s", name, line);
    else if (status != 0)
        cuda_conclude(finding, VERDICT_FAIL, "%s: the worker ended with status %d: %s", name, status, *report ? report : line);
    else if (!cuda_run_done(printed, marker))
        cuda_conclude(finding, VERDICT_FAIL, "%s: the worker ended before it was done", name);
    else if (!summed)
        cuda_conclude(finding, VERDICT_FAIL, "%s: there is no summary in its log, so nothing was checked: %s", name, report);
    else
        cuda_conclude(finding, VERDICT_PASS, "%s: nothing found", name);
}

void cuda_sanitizer_run(enum cuda_check check, const char *program, const struct cuda_worker *worker, double seconds,
                        const char *log, struct cuda_finding *finding)
{
    const char *words[CUDA_MOST_WORDS];
    cuda_sanitizer_words(check, program, log, words);
    struct cuda_run run = cuda_run_under(words, worker, seconds, log);
    if (run.log)
        cuda_sanitizer_judge(check, run.status, run.log, run.printed, worker->marker, finding);
    else
        cuda_conclude(finding, VERDICT_INCONCLUSIVE, "out of memory");
    cuda_run_free(&run);
}
