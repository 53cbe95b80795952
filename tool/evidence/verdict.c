/*
 * verdict.c - the names of verdicts, in one place.
 */
#include "verdict.h"

#include <string.h>

static const char *const names[] = {"PASS", "FAIL", "INCONCLUSIVE", "NOT APPLICABLE"};

const char *verdict_name(enum verdict verdict)
{
    return names[verdict];
}

enum verdict verdict_find(const char *name)
{
    int found = 0;
    while (found < VERDICT_COUNT && strcmp(names[found], name) != 0)
        found++;
    return (enum verdict)found;
}
