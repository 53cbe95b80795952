/*
 * versus.h - the half of `attest bench` that compares two kernels: attest bench A --vs B [PROBLEM ...].
 */
#ifndef ATTEST_VERSUS_H
#define ATTEST_VERSUS_H

#include "commands.h"

enum exit_code versus_run(struct session *session);

#endif
