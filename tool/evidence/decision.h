/*
 * decision.h - the decision matrix: from what the gates said to PROVEN, REJECTED or INCONCLUSIVE, and to who reigns. The matrix is
 * at the head of decision.c. Whoever makes a record and whoever verifies one asks here, so that both mean the same.
 */
#ifndef ATTEST_DECISION_H
#define ATTEST_DECISION_H

#include <jansson.h>

struct decision {
    const char *verdict;  /* "PROVEN", "PROVEN IN EMULATION", "REJECTED" or "INCONCLUSIVE" */
    const char *champion; /* "CHAMPION", "FIRST", "REIGNS", "SLOWER", "SAME", "INCONCLUSIVE", "NOT PROVEN" or "NOT ASKED" */
    const json_t *gate;   /* the gate that decided against it; NULL if it is proven, or a gate is missing */
    char sentence[2048];
};

/* The policy a record was judged by: 1 if it names none; POLICY_NUMBER + 1 for all that this program does not know. */
int record_policy(const json_t *record);

/* The gates that a record of its policy needs for PROVEN, by name. New reference. */
json_t *decision_needed(const json_t *record);

/* Decides by the members "gates", "opponent" and "reigns" of a record. */
void decide(const json_t *record, struct decision *decision);

/* Puts "verdict", "champion", "decision" and "promoted" (the problem classes it reigns in from now on; none if it was not promoted)
 * into a record. */
void decision_make(json_t *record);

/* The problem classes that a record speaks for: its own, or one for each dtype it takes if it takes several. New reference. */
json_t *decision_classes(const json_t *record);

#endif
