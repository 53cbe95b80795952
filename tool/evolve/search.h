/*
 * search.h - a search: candidates are proposed, proven and timed; the best become champions; it ends in a verdict. Reading order:
 * search.c (the loop), search_candidates.c and search_sources.c (what it goes through), challenge.c (who becomes champion),
 * search_verdict.c (the verdict), proposer.c (programs that propose), trial.c (one candidate, in a process of its own), strategy.c and
 * surrogate_model.c (built-in proposers), space.c, search_ledger.c (state), timed_job.c (processes), export.c (T4).
 */
#ifndef ATTEST_SEARCH_H
#define ATTEST_SEARCH_H

#include "timed_job.h"
#include "build/candidate.h"
#include "strategy.h"
#include "trial.h"

struct store;

/* What a proposer that is a program is told beside the task and the champion. */
enum telling { TELL_FREE, TELL_INSIGHT, TELL_FULL, TELL_COUNT };
extern const char *const telling_names[TELL_COUNT]; /* "free", "insight", "full" */

struct search {
    struct session *session;
    struct store *store;
    bool text;      /* say what happens as it happens */
    int64_t id;     /* in the ledger */
    json_t *about;  /* what was asked for: "kernel", "source", "problems", ...; see search.c */
    json_t *trials; /* by number; the first is the start */

    struct candidate start;
    char *start_text; /* its source */
    struct space space;
    bool command;           /* the proposer is a program */
    enum strategy strategy; /* else one of these */
    enum telling telling;

    char *scratch;     /* folder of this process: sources, problems, one folder for each job */
    char *start_image; /* the start, built */
    char *timed;       /* file with the problems */
    bool seeded;       /* by the user: then everything can be done again */
    uint64_t seed;
    int generations, population;

    double began, used_before; /* by seconds_now; seconds of the budget that earlier processes used */
    double budget;             /* seconds; 0: no limit */
    double beat;               /* when the ledger last heard of the time */
    double challenge_seconds;  /* what the last one took */
    const char *doing;         /* for the progress line */
    char last[160];            /* verdict, likewise */
    const char *stopped;       /* why no more candidates are proposed */
};

/* ---- search.c ------------------------------------------------------------------------------------------------------------ */

/* The loop, up to a result in the ledger and on standard output. */
enum exit_code search_run(struct search *search);

double search_left(const struct search *search);                    /* seconds of the budget; infinite without one */
struct timed_job search_job(struct search *search, double seconds); /* with a deadline in so many seconds, or at the budget's end */
/* timed_job_work, with the run database closed meanwhile, which the other process may open. */
json_t *search_work(struct search *search, struct timed_job *job, json_t *(*work)(void *matter), void *matter, char *why,
                    size_t why_size);
bool search_keep(struct search *search, json_t *trial);                /* puts it into the ledger */
json_t *search_trial(const struct search *search, int number);         /* borrowed */
char *search_source(const struct search *search, const json_t *trial); /* its text; to be freed */
char *search_path(const struct search *search, const json_t *trial);   /* where its source is for the compiler; to be freed */
uint64_t search_seed(const struct search *search, int stream, int number);
void search_tell(const struct search *search, const char *format, ...) __attribute__((format(printf, 2, 3)));
double search_gpu_seconds(const struct search *search); /* used so far */

/* A trial in the words of people: its settings, or its sentence. */
void trial_words(const json_t *trial, char *text, size_t size);

/* What a candidate is built from and compared with. */
struct trial_spec search_spec(const struct search *search, const char *source);

/* ---- search_sources.c ----------------------------------------------------------------------------------------------------- */

/* A new trial with its source in the store; NULL on failure. `text` may be NULL: then nothing was proposed. */
json_t *search_new_trial(struct search *search, const char *text, const char *origin, const int *parents);

/* Settings as they are in the text, and what of them is not as in the start. */
void search_put_settings(const struct search *search, json_t *trial, const char *text);

/* The text of a CUDA kernel with the name of its file in its manifest; to be freed. */
char *search_renamed(const char *text, const char *name);

/* A CUDA kernel finds the files beside it because they are beside the candidates, too. */
void search_link_headers(const struct search *search);

/* ---- search_candidates.c ---------------------------------------------------------------------------------------------------- */

/* The next candidate, from its proposal to its score. False if the state cannot be kept. */
bool search_take_turn(struct search *search);

/* One candidate that was proposed, as far as it gets. */
bool search_screen(struct search *search, json_t *trial);

/* ---- challenge.c --------------------------------------------------------------------------------------------------------- */

/* The trial that reigns, and how fast it is beside the start: a logarithm, from challenges alone. */
int champion_of_search(const struct search *search, double *score);

/* Challenges so far, those among them that were interrupted: they have had their chance. */
int challenges_made(const struct search *search);

/* The confidence of the interval of challenge `number`, counted from 1. */
double challenge_confidence(int number);

/* Lets the best candidates challenge the champion: those that screening puts ahead of it, or, when `closing`, the best of all if
 * nobody had a chance yet. */
void challenge_round(struct search *search, bool closing);

/* What the profile gate found, for proposers. */
void trial_put_profile(json_t *trial, const json_t *record);

/* ---- search_verdict.c ------------------------------------------------------------------------------------------------------------- */

/* The verdict: {"verdict": "PROMOTED" | "NO IMPROVEMENT" | "POST-MORTEM", "sentence", "champion", "ratio", "low", "high", "counts",
 * "next"}. New reference. */
json_t *search_verdict(const struct search *search);
void search_verdict_print(FILE *out, const json_t *result);

/* ---- proposer.c ----------------------------------------------------------------------------------------------------------- */

/* Asks the program for a candidate: its source, to be freed; or NULL and why not. */
char *proposer_ask(struct search *search, int number, char *why, size_t why_size);

/* What it is told, as JSON. New reference. */
json_t *proposer_document(const struct search *search, int number);

/* ---- export.c --------------------------------------------------------------------------------------------------------------- */

/* A search of the ledger in the T4 format of auto-tuners, with its space. New reference. */
json_t *search_export(const json_t *search);

#endif
