/*
 * policy_number.h - the versions of the rules that a proof is judged by. Every record names both.
 */
#ifndef ATTEST_POLICY_NUMBER_H
#define ATTEST_POLICY_NUMBER_H

enum {
    /* Counts up whenever a gate is added or becomes stricter, or a number of policy.def or a built-in suite changes. gates.def says
     * which gates changed with which number. Records of before this number was written down are of policy 1. */
    POLICY_NUMBER = 4,
    /* Counts up whenever the same seed draws other problems or other inputs. Records of before are of generator 1. */
    GENERATOR_VERSION = 15
};

#endif
