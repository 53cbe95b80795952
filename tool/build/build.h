/*
 * build.h - compiles C kernels, the same way for the build gate, for verify and for anyone who wants the same bytes again.
 */
#ifndef ATTEST_BUILD_H
#define ATTEST_BUILD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { BUILD_LOG_SIZE = 1 << 16 }; /* room for what a compiler says */

enum build_kind {
    BUILD_SHIPPED, /* what is proven and ships */
    BUILD_CHECKED, /* under ASan and UBSan */
    BUILD_NAMED,   /* as shipped, with the names of its functions, to name places in it */
    BUILD_QUICK,   /* with -Og and without warnings: for a first look, in a fraction of the time */
    BUILD_RAW,     /* with -O0 and without warnings: shows every difference between two texts */
    BUILD_COVERED  /* notes which of its blocks ran, in the array BUILD_RAN: see source_coverage.h */
};

/* Exported by an image that is BUILD_COVERED: the function that every block of its code calls first, and an array of BUILD_RAN_SIZE bytes, of
 * which one is set for each address, from the beginning of the image on, that this function has returned to. */
#define BUILD_CALLED "__sanitizer_cov_trace_pc"
#define BUILD_RAN    "attest_ran"
enum { BUILD_RAN_SIZE = 1 << 24 };

/* Compiles a source to a shared object with warnings as errors. `flags` are the source's own (candidate_flags). All kinds are compiled
 * from the same preprocessed text. The command is run in the current folder and contains no absolute path, so that the image does
 * not depend on where the sources are. False if it failed; the messages of the compiler, or of the rules that the source or its flags
 * break, are in `log` (cut if they do not fit). */
bool build_image(const char *source, const char *flags, const char *out, enum build_kind kind, char *log, size_t log_size);

/* The preprocessed text that all images of a source are compiled from; to be freed. NULL, with the reason, if there is none. */
char *build_text(const char *source, const char *flags, char *log, size_t log_size);

/* From now on a source that breaks a rule (source_rules.c) is built all the same: for selftest, whose mutants have to get past the
 * build gate to be rejected by another one as well. */
void build_ignore_rules(void);

/* The same of an empty source: the start-up code that the compiler adds to every image. */
bool build_empty_image(const char *out, char *log, size_t log_size);

/* The first line of such messages that speaks of an error, or the first of all. */
void build_first_error(const char *log, char *text, size_t size);

/* "gcc (Debian 12.2.0-14) 12.2.0", or "" if there is no compiler. */
void build_compiler(char *text, size_t size);

/* All flags that build_image compiles with, the source's own included; to be freed. */
char *build_flags(const char *flags);

/* Digest of every file that the source includes, system headers aside, and of itself: {"path": sha256}. NULL on failure. */
json_t *build_sources(const char *source, const char *flags);

/* Runs a command; its output (both streams) goes to `log`. Returns the exit status; 128 + n for a signal; 127 if it is not there;
 * 124 if it took longer than `seconds`. */
int build_command(char *const argv[], double seconds, char *log, size_t log_size);

/* The same in the compilers' sandbox: it uses the programs of the system, reads these folders (at most 16, ended by NULL), and writes below
 * `writable` alone, which is also its TMPDIR. */
int build_command_confined(char *const argv[], const char *const *readable, const char *writable, double seconds, char *log,
                           size_t log_size);

#endif
