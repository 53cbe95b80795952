/*
 * museum.h - the kernels of the mutants folder: planted bugs and cheats, kernels that are timed by a simulated clock, and harmless variants,
 * with what the gates have to say of each (mutants.def).
 *
 * A MUTANT has a bug or a cheat planted. The first gate that rejects it must be the one expected, so that a gate cannot hide behind
 * another; and its diagnosis must be right: the stages that the oracle names are exactly those expected (a set, where causes cannot
 * be told apart from outside), or the gate's sentence has the words expected. A SPEED row is a right kernel timed by a simulated
 * clock, and the speed gate must come to what is expected. A HARMLESS variant must be proven. Where timing decides which gate sees a
 * bug first, as with races, a row names both: "oracle or memory". A kernel that the build gate rejects for its image, and that another
 * gate would find out by running it, has "build and oracle": its proof goes on past the build gate, both must reject it, and both have
 * a diagnosis: "writable static storage + earlier call".
 */
#ifndef ATTEST_MUSEUM_H
#define ATTEST_MUSEUM_H

#include <jansson.h>

#include "base/session.h"

#define MUSEUM_BOTH  " and " /* between two gates that both have to reject a kernel; MUSEUM_PARTS is between their diagnoses */
#define MUSEUM_PARTS " + "

enum kind { KIND_MUTANT, KIND_SPEED, KIND_HARMLESS, KIND_COUNT };
extern const char *const kind_words[KIND_COUNT];

/* One row of mutants.def. */
struct mutant {
    enum kind kind;
    char stem[64];
    char expected[160]; /* MUTANT: gate, or "oracle or memory". SPEED: "speed". HARMLESS: "" */
    char names[160];    /* MUTANT: stages, or words of the sentence; may be "". SPEED: what the speed gate comes to */
    char opponent[64];  /* SPEED: another kernel of the folder, or "library" */
    char clock[160];
    char sentence[256];
    bool chosen;
    bool left_out;  /* it is chosen, and this machine cannot run it */
    json_t *record; /* of the proof, once it has ended */
    char lost[256]; /* why there is no record */
};

struct museum {
    struct session *session;
    struct mutant *mutants;
    int count;
    uint64_t seed;
    int left_out;
    char lacking[320]; /* why rows were left out */
    int of;            /* rows that a sample was drawn from */
    bool emulated;     /* CUDA rows run without a GPU: the emulation gate is the one to reject them */
};

/* Reads mutants.def, and chooses what the words of the command line name, or all. */
enum exit_code museum_read(struct museum *museum);
void museum_free(struct museum *museum);

/* --sample N: of the rows that are chosen and can be run here only N stay, drawn from the seed, with at least one of every kind and every
 * expected gate, even if those are more. */
enum exit_code museum_sample(struct museum *museum);

/* CUDA kernels are those of the folder cuda. */
bool museum_is_cuda(const struct mutant *mutant);

/* Takes the next gate of "oracle or memory". False if there is none. */
bool museum_next_gate(const char **at, char *gate, size_t size);

/* The gate that has to reject the kernel after the build gate did; "" if that one is enough. */
const char *museum_second_gate(const struct mutant *mutant);

#endif
