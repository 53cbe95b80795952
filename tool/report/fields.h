/*
 * fields.h - reading records that may lack anything, and numbers as people read them.
 */
#ifndef ATTEST_FIELDS_H
#define ATTEST_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "evidence/member.h"

/* A member as text: "" if it is not there or is no string. Borrowed. */
const char *field_text(const json_t *object, const char *key);

/* A member as a number. "nan", "inf" and "-inf" are numbers (see json_number); what is none is NaN, and then `found` (may be NULL)
 * is false. */
double field_number(const json_t *object, const char *key, bool *found);
double value_number(const json_t *value, bool *found);

/* A member as an object or array; NULL if it is none. Iterating over NULL is allowed by jansson, and does nothing. Borrowed. */
json_t *field_object(const json_t *object, const char *key);
json_t *field_array(const json_t *object, const char *key);

/* The details of one gate of a record (record_gate of evidence/member.h); NULL if it was not run. Borrowed. */
json_t *details_of(const json_t *record, const char *gate);

/* The name of the gate of a result; "unnamed gate" if it has none. */
const char *gate_name(const json_t *result);

/* How a gate or a proof ended, as a class of the page's style: "pass", "fail", "open" or "none". */
enum tone { TONE_PASS, TONE_FAIL, TONE_OPEN, TONE_NONE };
enum tone tone_of(const char *verdict);

/* The gates of gates.def, in their order. */
struct gate_row {
    const char *name;
    const char *claim;
    bool needed; /* for PROVEN */
};
extern const struct gate_row gate_rows[];
extern const int gate_row_count;
bool gate_needed(const char *gate);     /* a gate that is not known is needed */
bool gate_counts(const json_t *result); /* if it says no: one that is needed does, and one that found a cheat */

/* Numbers as text in a buffer of FIGURE bytes: three significant digits and a unit where there is one. */
enum { FIGURE = 48 };
typedef char figure[FIGURE];
const char *figure_of(figure text, double value);         /* 1.31, 4.2e-07, NaN, inf */
const char *figure_seconds(figure text, double seconds);  /* 12.3 ms */
const char *figure_bytes(figure text, double bytes);      /* 3.2 MiB */
const char *figure_percent(figure text, double fraction); /* 81 % */
const char *figure_time(figure text, const char *stamp);  /* 2026-11-15 07:00 UTC, from 2026-11-15T07:00:00Z */

#endif
