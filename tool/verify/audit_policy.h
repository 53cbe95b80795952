/*
 * audit_policy.h - the rules that a record was judged by against those of this program.
 */
#ifndef ATTEST_AUDIT_POLICY_H
#define ATTEST_AUDIT_POLICY_H

#include <jansson.h>

/* Adds a sentence to `findings` if the record names a policy that this program does not know, other gates than that policy needs, or, for
 * the policy of this program, numbers that are laxer than policy.def or, for a kernel of the library, fewer problems than the built-in
 * suite. */
void audit_policy(const json_t *record, json_t *findings);

#endif
