/*
 * audit_speed.h - the verdict of the speed gate, computed again.
 */
#ifndef ATTEST_AUDIT_SPEED_H
#define ATTEST_AUDIT_SPEED_H

#include <jansson.h>

/* Adds a sentence to `findings` for each thing in the speed gate of a record that does not follow from its samples. */
void audit_speed(const char *evidence, const json_t *record, json_t *findings);

#endif
