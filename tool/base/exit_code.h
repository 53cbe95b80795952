/*
 * exit_code.h - how the program ends, and how a function that may end it says so.
 */
#ifndef ATTEST_EXIT_CODE_H
#define ATTEST_EXIT_CODE_H

#include <attest.h>

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof(array)[0]))

enum exit_code {
    EXIT_PASS = 0,    /* all is well */
    EXIT_FAILED = 1,  /* a kernel is wrong */
    EXIT_USAGE = 2,   /* the command line, a file or a problem string is wrong */
    EXIT_LACKING = 3, /* nothing could be concluded, or the machine lacks something */
    EXIT_INTERNAL = 4 /* a defect, or output that could not be written */
};

/* The one place where a status of the library becomes an exit code. */
enum exit_code exit_code_of(attest_status status);

#endif
