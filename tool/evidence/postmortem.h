/*
 * postmortem.h - a post-mortem in Markdown, from the records of one kernel.
 */
#ifndef ATTEST_POSTMORTEM_H
#define ATTEST_POSTMORTEM_H

#include <jansson.h>
#include <stdio.h>

/* `records` are those of store_records for one kernel, newest first, and at least one. */
void postmortem_write(FILE *out, const json_t *records);

#endif
