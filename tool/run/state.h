/*
 * state.h - what a worker has besides its registers, as the system says from outside, and whether a kernel has changed it.
 */
#ifndef ATTEST_STATE_H
#define ATTEST_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct state;

enum { STATE_TABLES = 24 };

/* Addresses in a worker, as it says before a kernel is there. */
struct state_places {
    uint64_t variable; /* of `environ` */
    int32_t count;
    struct {
        uint64_t begin, size;
    } tables[STATE_TABLES]; /* the GOTs of its libraries, all of whose functions have been found */
};

/* Takes down everything, from a worker that stands still. NULL without memory. To be freed. */
struct state *state_take(pid_t process, const struct state_places *places);
void state_free(struct state *state);

/* False, with a sentence, if the process is not as it was: signals, limits, environment, folder, files, threads, timers. */
bool state_same(const struct state *before, const struct state *now, char *why, size_t size);

/* False, with a sentence, if code or constants are not as they were, or if there is executable memory that was not there before; other
 * than that of files, if an image was loaded meanwhile. */
bool state_same_code(const struct state *before, const struct state *now, bool loaded, char *why, size_t size);

/* False, with a sentence, if memory was mapped, unmapped or protected otherwise; heap and stack aside. */
bool state_same_mappings(const struct state *before, const struct state *now, char *why, size_t size);

/* Whether this system let us see all of it. */
bool state_is_whole(const struct state *state);

/* Reads what is at an address of an image (a file) that the process has loaded. False if it has not. */
bool state_read_image(pid_t process, const char *path, uint64_t address, void *to, size_t size);

/* The time that its threads have run so far, in seconds; 0 if this system does not say. */
double state_seconds(const struct state *state);

#endif
