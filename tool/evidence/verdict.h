/*
 * verdict.h - how a gate, a check or a whole proof can end. A crash is FAIL; a missing tool is INCONCLUSIVE; neither is ever PASS.
 */
#ifndef ATTEST_VERDICT_H
#define ATTEST_VERDICT_H

enum verdict { VERDICT_PASS, VERDICT_FAIL, VERDICT_INCONCLUSIVE, VERDICT_NOT_APPLICABLE, VERDICT_COUNT };

const char *verdict_name(enum verdict verdict); /* "PASS", "FAIL", "INCONCLUSIVE", "NOT APPLICABLE" */
enum verdict verdict_find(const char *name);    /* VERDICT_COUNT if there is none of that name */

#endif
