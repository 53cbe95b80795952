/*
 * space.h - what a search may try at a kernel: named constants ("knobs") with the values that the source declares for each, and what
 * must hold between them. docs/evolve.md says how a source declares it.
 */
#ifndef ATTEST_SPACE_H
#define ATTEST_SPACE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/session.h"

enum { SPACE_KNOBS = 16, SPACE_VALUES = 24, SPACE_WORD = 48, SPACE_RULES = 8, SPACE_RULE = 160, SPACE_MOST_POINTS = 1 << 20 };

struct knob {
    char name[SPACE_WORD];
    char values[SPACE_VALUES][SPACE_WORD]; /* numbers, or words that choose between pieces */
    int count;
    bool numeric; /* all values are whole numbers; they are in the order of the source */
};

/* A point: for each knob the index of its value. */
struct point {
    int at[SPACE_KNOBS];
};

struct cuda_manifest;

struct space {
    struct knob knobs[SPACE_KNOBS];
    int count;
    char rules[SPACE_RULES][SPACE_RULE]; /* "EXPRESSION <= EXPRESSION" */
    int rule_count;
    struct point start;             /* what the source has */
    struct cuda_manifest *manifest; /* of a CUDA kernel; else NULL */
    int dims[8], dim_count;         /* of a CUDA kernel: the instances that the problems use, and that a choice is for */
    int64_t size;                   /* points, those that do not fit among them */
    int64_t fitting;
    unsigned char *fits; /* [size], by number */
};

/* Reads the space of a source; one without has no knob, and one point. The problems say which instances of a CUDA kernel count.
 * False with a sentence that says what to write instead. */
bool space_read(const char *text, const char *path, bool cuda, const struct problem_list *problems, struct space *space, char *why,
                size_t why_size);
void space_free(struct space *space);

/* Points have numbers, the last knob changing fastest. */
int64_t space_number(const struct space *space, const struct point *point);
struct point space_point(const struct space *space, int64_t number);

/* Whether a point fits the resources, by prediction alone; if not, `why` says it with numbers. */
bool space_fits(const struct space *space, const struct point *point, char *why, size_t why_size);

/* The source with the values of a point; to be freed. NULL without memory. */
char *space_write(const struct space *space, const char *text, const struct point *point);

/* {"TILE_VECS": "3", ...}; and back: false if a knob is missing, or has a value that is not declared. */
json_t *space_settings(const struct space *space, const struct point *point);
bool space_find(const struct space *space, const json_t *settings, struct point *point);

/* The knobs as JSON: [{"name", "values": [...], "start"}, ...]. New reference. */
json_t *space_json(const struct space *space);

#endif
