/*
 * proof.h - a whole proof: gates in their order, the record, the verdict.
 */
#ifndef ATTEST_PROOF_H
#define ATTEST_PROOF_H

#include "gate.h"

struct store;

/* What may be left out or changed; all zeros is an ordinary proof. */
struct proof_options {
    const char *only;    /* gates, separated by commas */
    bool keep_going;     /* after a failure */
    bool past_build;     /* after a failure of the build gate alone, if there is an image; for selftest */
    bool quiet;          /* no progress line */
    bool ahead;          /* images of later gates are compiled beside the first one (build_ahead.h) */
    double gpu_seconds;  /* after so many seconds of gates on a GPU no other is begun; 0: no limit */
    struct store *store; /* where gates are recorded as they finish; NULL: nowhere */
    /* To continue an earlier record (evidence/continuation.h): its combined form, and the digest of its line. `only` names what is
     * missing then. If the build gives another image than that record's, all gates are run, and nothing is continued. */
    const json_t *base;
    const char *continues;
    void (*finished)(void *data, const struct gate *gate,
                     const struct gate_result *result); /* called after each gate; may be NULL */
    void *data;
};

/* Fills a proof with defaults for a candidate that is open: policy, built-in suites (or --suite and --timed of the session),
 * threads, opponent (--vs, or the reigning champion in --evidence), a scratch folder, the clock. Says why and returns an exit code
 * on failure. */
enum exit_code proof_open(struct session *session, const char *word, struct proof *proof);
void proof_close(struct proof *proof); /* frees everything and removes the scratch folder */

/* Runs the gates. The record (docs/evidence.md) is a new reference. False only if the record could not be made or stored. A seed
 * that is not 0 is used as it is (to reproduce); otherwise it is drawn after the build. */
bool proof_run(struct proof *proof, const struct proof_options *options, json_t **record, char *why, size_t why_size);

/* Proofs that share a GPU: gates that time or profile have it to themselves, the others together. A file to be closed, or -1 where it
 * cannot be locked: then nobody waits for anybody. */
int proof_lock(const struct proof *proof, const struct gate *gate);

/* Names for the flags of a problem, to say what a kernel refuses: an array of strings. New reference. */
json_t *flag_names(uint64_t flags);

#endif
