/*
 * tap.h - the smallest test harness that does what we ask of one: TAP on stdout, one command that reproduces each failure.
 *
 * A program has a table of tests. A test may have many cases; a case has a name (often a problem string) and everything random
 * in it comes from the seed and that name, so `--only TEST --case NAME --seed N` runs it alone and does the same again.
 */
#ifndef TAP_H
#define TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tap_test {
    const char *name;
    void (*run)(void);
};

struct tap_options {
    uint64_t seed;        /* --seed N */
    const char *only;     /* --only TEST: a name or a pattern with * and ? */
    const char *one_case; /* --case NAME, exactly */
    bool quick;           /* --quick: a small selection, for sanitizers and emulators */
    bool lengthy;         /* ATTEST_TEST_LONG is set */
};
extern struct tap_options tap;

/* Parses the command line, runs the tests and returns the exit status of the program. */
int tap_main(int argc, char **argv, const struct tap_test *tests, size_t count);

/* Names the case that the next checks belong to. False if --case asks for another one: leave this one out then. */
bool tap_case(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Records a check. A failed one prints the message and the command that reproduces it. Returns `good`. */
bool tap_check(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A line of comment in the output. */
void tap_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Marks the running test as skipped, for things that only the hardware can lack. */
void tap_skip(const char *reason);

/* Failed checks of the running test so far. */
int tap_failures(void);

/* n for a full run, less for --quick, more for the long one. */
int tap_amount(int quick, int normal, int lengthy);

#endif
