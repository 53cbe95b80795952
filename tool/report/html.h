/*
 * html.h - what the files of the HTML page share. Reading order: html.c (the page), html_gates.c (what each gate found),
 * html_speed.c (speed, peers, roofline), html_evolve.c (searches), html_charts.c (pictures), html_parts.c (badges, facts, values); the style is report.css.
 */
#ifndef ATTEST_HTML_H
#define ATTEST_HTML_H

#include "fields.h"
#include "render.h"
#include "writer.h"

/* ---- html_parts.c -------------------------------------------------------------------------------------------------------- */

const char *tone_class(enum tone tone);  /* "pass", "fail", "open", "none" */
const char *tone_symbol(enum tone tone); /* a check mark, a cross, a question mark, a dash */
void html_badge(FILE *out, const char *verdict);

/* A value of any type: text, a number, a list, a table of objects. */
void html_value(FILE *out, json_t *value);

/* A list of facts: html_facts_begin, then facts, then html_facts_end. What is NULL, null, "" or empty is left out. */
void html_facts_begin(FILE *out);
void html_fact(FILE *out, const char *name, json_t *value);
void html_fact_text(FILE *out, const char *name, const char *text);
void html_fact_digest(FILE *out, const char *name, const char *digest);
void html_facts_end(FILE *out);

/* All members of an object but those in `known` (ended by NULL), as facts: what a gate says beyond what this page expects. */
void html_facts_rest(FILE *out, json_t *object, const char *const *known);

/* The head of a table of class "small", up to the beginning of its body; a title that begins with > heads a column of figures. The
 * list is ended by NULL. html_table_end ends it. */
void html_table_begin(FILE *out, const char *caption, const char *const *titles); /* no caption: NULL */
void html_table_end(FILE *out);

/* A problem string, or another long name, that may be broken over lines. */
void html_code(FILE *out, const char *text);

/* ---- html_charts.c ------------------------------------------------------------------------------------------------------- */

/* A logarithmic axis with round numbers as ticks. */
enum { MOST_TICKS = 16 };
struct axis {
    double low, high;
    double ticks[MOST_TICKS];
    int tick_count;
};
struct axis axis_over(double low, double high);
double axis_at(const struct axis *axis, double value); /* 0 to 100: percent of its length */

/* Widens [low, high] so that it has the value, if it is positive and finite. Begin with low > high. */
void range_add(double *low, double *high, double value);

/* The ticks above a column of intervals, and one interval with the line of 1; `effect` is how far from 1 a ratio counts as 1. */
void chart_ticks(FILE *out, const struct axis *axis);
void chart_interval(FILE *out, const struct axis *axis, double low, double estimate, double high, double effect, enum tone tone);

/* The map of the error of a diagnosis. */
void chart_heat(FILE *out, json_t *diagnosis);

/* Rate over intensity: points with their bounds, under ceilings. */
struct roof_point {
    double intensity; /* flop a byte */
    double rate;      /* flop/s; 0 if it is not known */
    double bound;     /* flop/s at the floor of the gate; 0 if it is not known */
};
struct roof_ceiling {
    const char *name;
    double flops; /* flop/s, or 0 */
    double bytes; /* byte/s, or 0 */
    bool measured;
};
void chart_roofline(FILE *out, const struct roof_point *points, int count, const struct roof_ceiling *ceilings, int ceiling_count);

/* ---- html_gates.c, html_speed.c ------------------------------------------------------------------------------------------ */

/* What a gate found, below its sentence. */
void html_gate_details(FILE *out, const struct matter *matter, const json_t *record, const char *gate, json_t *details);
void html_speed(FILE *out, const struct matter *matter, const json_t *record, json_t *details);

/* ---- html_evolve.c --------------------------------------------------------------------------------------------------------- */

/* The section about searches; nothing if there are none. */
void html_searches(FILE *out, const struct matter *matter);

#endif
