/*
 * render.h - records of proofs as documents: one HTML page for people, TAP, JUnit XML and SARIF for machines.
 *
 * A record is the predicate of a statement (docs/evidence.md). Whatever is missing in one, or is of another type than it should be,
 * is left out of the document; every string is somebody else's and is escaped.
 */
#ifndef ATTEST_RENDER_H
#define ATTEST_RENDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* What a document is about. Only `records` is needed, and TAP, JUnit and SARIF use nothing else; the others may be NULL. */
struct matter {
    /* Records in the order in which they are shown. One that is also in the evidence may have the member "evidence":
     * {"file", "line", "signed": bool, "digest"}. */
    const json_t *records;
    /* Who reigns: [{"device", "problem_class", "kernel", "history": [{"kernel", "since", "decision"}, ...]}], history oldest first.
     */
    const json_t *champions;
    /* Measurements against other libraries: [{"file", "results"}], the results as bench/peers.py writes them. */
    const json_t *peers;
    /* Searches, newest first, as ledger_searches() gives them. */
    const json_t *searches;
    /* Sentences about what could not be read and is left out. */
    const json_t *notices;
};

/* "html", "tap", "junit" or "sarif"; false if there is no format of that name. */
bool render_knows(const char *format);
#define RENDER_FORMATS "html, tap, junit or sarif"

/* Writes the document. False if it could not be written, or if the format is not known. */
bool render(FILE *out, const char *format, const struct matter *matter);

#endif
