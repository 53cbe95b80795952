/*
 * policy.h - the numbers that a proof is bound by (policy.def), as a record names them.
 */
#ifndef ATTEST_POLICY_H
#define ATTEST_POLICY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct policy {
#define POLICY(name, value, text) double name;
#include "policy.def"
#undef POLICY
};
extern const struct policy default_policy;
json_t *policy_json(const struct policy *policy);                                        /* {"blocks": 20, ...}; new reference */
void policy_read(struct policy *policy, const json_t *object);                           /* takes over the values that are there */
bool policy_change(struct policy *policy, const char *text, char *why, size_t why_size); /* "blocks=6,neighbours=8" */

#endif
