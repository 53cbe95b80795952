/*
 * gate.h - the gates of a proof, one row each in gates.def, and what they work on.
 */
#ifndef ATTEST_GATE_H
#define ATTEST_GATE_H

#include "build/candidate.h"
#include "run/executor.h"
#include "data/shape_variants.h"
#include "evidence/policy.h"
#include "evidence/policy_number.h"
#include "evidence/verdict.h"

/* The champion a candidate is timed and compared with: a kernel of the library, or an image kept by the store. NULL name: none yet.
 */
struct opponent {
    char *name;  /* a kernel of the library; OPPONENT_LIBRARY; or any name if there is an image */
    char *image; /* NULL: a kernel of the library */
};
#define OPPONENT_LIBRARY "the library's choice" /* problem by problem: executor_spec with neither image nor kernel */

struct cuda_manifest;

struct proof {
    struct session *session;
    struct candidate candidate;
    struct policy policy;
    struct opponent opponent;
    bool brief;         /* a first look: no more than problems in the correctness gate */
    bool terse;         /* a verdict is enough: wrong numbers are not diagnosed (emulation) */
    bool without_image; /* no gate that is asked for needs the image of a CUDA candidate: the build gate reads the manifest */
    bool past_build;    /* the image is made and run although the build gate rejects it: for selftest */
    bool reigns;        /* the candidate is the reigning champion, unchanged: there is nobody to beat */
    struct problem_list suite; /* correctness problems; those that the kernel refuses are not applicable */
    struct problem_list timed; /* problems for the speed gate */
    uint64_t seed;             /* drawn after the build */
    char *folder;              /* scratch folder of this proof: the gates put logs, images and arrays here */
    const char *clock;         /* NULL: the real one. Else how to simulate it: see statistics.h. For tests. */
    struct kernel_facts facts; /* valid once a worker has loaded the image */
    int threads;
    const char *device;                 /* of a CUDA candidate: "cuda", "cuda:1"; NULL: the CPU */
    bool no_gpu;                        /* there is none, as a gate has found out */
    struct cuda_manifest *manifest;     /* of a CUDA candidate, once the build gate has read it */
    struct kernel_constants *constants; /* of a CUDA source, once the build gate has compiled it */
};

/* What a gate found. `details` and `artefacts` are made by the caller as empty objects. */
struct gate_result {
    enum verdict verdict;
    char sentence[2600]; /* always there: what was proven, what failed, or what is missing and how to get it */
    json_t *details;     /* numbers and findings; what each gate puts here is described at the head of its file */
    json_t *artefacts;   /* name -> path of a file in proof->folder; the recorder replaces paths by digests */
    double seconds;
};

struct gate {
    const char *name;
    const char *claim;
    void (*run)(struct proof *proof, struct gate_result *result);
    bool needed;         /* for the verdict PROVEN; the others (speed) are for CHAMPION */
    int came, cpu, cuda; /* policies: see gates.def */
};
extern const struct gate gates[];
extern const int gate_count;
const struct gate *gate_named(const char *name); /* NULL if there is none */

#define GATE(name, needed, came, cpu, cuda, claim) void gate_##name(struct proof *proof, struct gate_result *result);
#include "evidence/gates.def"
#undef GATE

/* Whether --only (NULL: all gates) has the gate; and whether all that --only names are gates: else says so. */
bool gate_listed(const char *only, const char *name);
enum exit_code gates_check(struct session *session);

/* Sets verdict and sentence; a gate ends with it. */
void gate_say(struct gate_result *result, enum verdict verdict, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A worker for the candidate with the given guard; NULL, and the result filled, if it does not
 * start. Fills proof->facts. */
struct executor *gate_open(struct proof *proof, enum guard guard, struct gate_result *result);

/* Whether the kernel declares that it takes the problem. */
bool gate_takes(const struct proof *proof, const attest_problem *problem);
struct taker gate_taker(const struct proof *proof);

/* Writes a text file into the proof's folder and names it as an artefact. */
bool gate_write(const struct proof *proof, struct gate_result *result, const char *artefact, const char *name, const char *text);

/* A path in the proof's folder; to be freed. */
char *gate_path(const struct proof *proof, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
