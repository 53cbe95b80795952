/*
 * cuda_finding.c - see cuda_finding.h.
 */
#include "cuda_finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build.h"

enum { LOG_SIZE = 1 << 20, PRINTED_SIZE = 1 << 16, MOST_ARGUMENTS = 128 };

void cuda_conclude(struct cuda_finding *finding, enum verdict verdict, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->sentence, sizeof finding->sentence, format, arguments);
    va_end(arguments);
    finding->verdict = verdict;
}

struct cuda_run cuda_run_under(const char *const *words, const struct cuda_worker *worker, double seconds, const char *log)
{
    struct cuda_run run = {127, calloc(1, LOG_SIZE), calloc(1, PRINTED_SIZE)};
    const char *argv[MOST_ARGUMENTS];
    int count = 0;
    while (*words && count < MOST_ARGUMENTS - 1)
        argv[count++] = *words++;
    for (int i = 0; worker->argv[i] && count < MOST_ARGUMENTS - 1; i++)
        argv[count++] = worker->argv[i];
    argv[count] = NULL;
    if (!run.log || !run.printed) {
        cuda_run_free(&run);
        return run;
    }
    unlink(log);
    run.status = build_command((char *const *)(uintptr_t)argv, seconds, run.printed, PRINTED_SIZE);
    FILE *file = fopen(log, "rb");
    if (file) {
        run.log[fread(run.log, 1, LOG_SIZE - 1, file)] = '\0';
        fclose(file);
    }
    return run;
}

void cuda_run_free(struct cuda_run *run)
{
    free(run->log);
    free(run->printed);
    run->log = run->printed = NULL;
}

bool cuda_run_done(const char *printed, const char *marker)
{
    size_t length = strlen(marker);
    for (const char *line = printed; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, marker, length) == 0 && (line[length] == '\n' || !line[length]))
            return true;
    return false;
}

void cuda_run_last_line(const char *printed, char *line, size_t size)
{
    size_t end = strlen(printed);
    while (end && printed[end - 1] == '\n')
        end--;
    size_t begin = end;
    while (begin && printed[begin - 1] != '\n')
        begin--;
    snprintf(line, size, "%.*s", (int)(end - begin), printed + begin);
}
