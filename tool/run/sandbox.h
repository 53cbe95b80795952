/*
 * sandbox.h - takes away from a process what a kernel has no need of. What is taken, and why, is at the head of sandbox.c.
 */
#ifndef ATTEST_SANDBOX_H
#define ATTEST_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

/* Between fork and exec, in the child: ends with its parent, has no core file, a session of its own, a network of its own if it can
 * be, and limits. Only calls that are safe there. `data` is in bytes; 0: no limit. With `driver` it can still use the driver of a
 * GPU, which wants privileges and large files of its own; there is no code of a kernel in such a process. */
void sandbox_before_exec(int parent, unsigned long data, unsigned long file_size, bool driver);

/* Files: system libraries (with `relaxed` everything) and the folder of `image` (NULL: none) can be read, files below `scratch`
 * ("": none) also be written, nothing else opened. For the calling thread and those it will start. Version of Landlock, or 0 if
 * this kernel has none. */
int sandbox_files(const char *image, const char *scratch, bool relaxed);

/* For a compiler, between fork and exec: ends with its parent, a network of its own if it can be, limits of memory, of the size of
 * files and of processor time. */
void sandbox_before_compiler(int parent, unsigned long data, unsigned long file_size, unsigned long seconds);

/* Likewise: programs and libraries of the system can be used, these folders be read and those be written, both ended by NULL, and
 * /dev/null be used; nothing else can be opened. Version of Landlock, or 0 if this kernel has none. */
int sandbox_folders(const char *const *readable, const char *const *writable);

/* The version of Landlock that this system has; 0: none. */
int sandbox_version(void);

/* What is left to do. */
enum sandbox_level {
    SANDBOX_LOADING, /* files can be opened for reading, as far as Landlock allows: for loading an image */
    SANDBOX_SCRATCH, /* files can be opened as far as Landlock allows */
    SANDBOX_RUNNING, /* only what it takes to run a kernel that has been loaded */
    SANDBOX_RELAXED  /* all but what no tool does: for sanitizers, which start threads, trace and look at files */
};

/* System calls, for all threads of the process. Can be called again to take more away. False if the kernel has no seccomp. */
bool sandbox_calls(enum sandbox_level level);

/* Refuses system calls that are made by any code but that of the objects which are loaded now, for all threads. si_errno of the signal
 * is SANDBOX_FOREIGN then. False if the kernel has no seccomp. */
enum { SANDBOX_FOREIGN = 1 };
bool sandbox_own_code(void);

/* The calling thread, and those it will start, can no longer read the time-stamp counter (true: so it is), nor use cpuid. */
bool sandbox_processor(bool *no_cpuid);

/* What the process wanted when it made this refused call: "open a socket (socket)". */
void sandbox_call_text(int number, char *text, size_t size);

#endif
