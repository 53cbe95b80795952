/*
 * policy.c - the numbers that a proof is bound by. See policy.h.
 */
#include "policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"

const struct policy default_policy = {
#define POLICY(name, value, text) .name = (value),
#include "policy.def"
#undef POLICY
};

json_t *policy_json(const struct policy *policy)
{
    json_t *object = json_object();
#define POLICY(name, value, text) json_put(object, #name, json_real(policy->name));
#include "policy.def"
#undef POLICY
    return object;
}

void policy_read(struct policy *policy, const json_t *object)
{
#define POLICY(name, value, text)                                                                                                  \
    if (json_is_number(json_object_get(object, #name)))                                                                            \
        policy->name = json_number_value(json_object_get(object, #name));
#include "policy.def"
#undef POLICY
}

static bool change_one(struct policy *policy, const char *name, double value)
{
#define POLICY(number, usual, text)                                                                                                \
    if (strcmp(name, #number) == 0) {                                                                                              \
        policy->number = value;                                                                                                    \
        return true;                                                                                                               \
    }
#include "policy.def"
#undef POLICY
    return false;
}

bool policy_change(struct policy *policy, const char *text, char *why, size_t why_size)
{
    for (const char *at = text; *at;) {
        char name[64];
        double value;
        int used = 0;
        if (sscanf(at, "%63[a-z_]=%lf%n", name, &value, &used) != 2 || (at[used] && at[used] != ',') || !(value >= 0)) {
            snprintf(why, why_size, "'%.60s' is not of the form NAME=NUMBER,...", at);
            return false;
        }
        if (!change_one(policy, name, value)) {
            snprintf(why, why_size, "the policy has no number '%s'; those it has are in every record", name);
            return false;
        }
        at += used + (at[used] == ',');
    }
    return true;
}
