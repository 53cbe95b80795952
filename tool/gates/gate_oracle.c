/*
 * gate_oracle.c - the oracle gate: every stage is right, or the first wrong one is named. Runs the stage oracle (stages.c) on a few
 * problems that between them take every path the kernel has: several tiles with ragged ends, shared heads, masks, modifiers, few
 * rows and many keys (split into pieces), packed, padded and paged sequences, other strides; in each of its types.
 *
 * details: problems [{problem, verdict, probes: how many}], diagnosis (null, or stages, tile, batch, head, row, column,
 * column_is, pattern, cause, error, heat), probes (of the problem that went wrong, else of the first one).
 * artefacts: the arrays of the first wrong stage, expected_S and found_S and the like, with rows and columns.
 */
#include "gate.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "theory/stages.h"

/* %s is the type. A problem that the kernel refuses is left out; one with `only_without` is for kernels that refuse that one. */
static const struct question {
    const char *text;
    int only_without; /* number of the question that this one makes up for; -1: none */
    bool every_type;  /* ask in every type, not only in the first */
} questions[] = {
    {"fwd:%s:b1:hq4:hkv2:sq35:skv150:d40:causal:br:lse", -1, true},
    {"fwd:%s:b1:hq4:hkv2:sq35:skv150:d40:lse", -1, true},
    {"fwd:%s:b1:hq4:hkv2:sq1:skv1300:d64:lse", -1, true},
    {"fwd:%s:b1:hq4:hkv2:sq3:skv1300:d64:causal:lse", -1, false}, /* pieces of the keys that no row sees */
    {"fwd:%s:b1:h2:sq40:skv24:d32:causal:br:lse", -1, false},     /* the first rows see no key */
    {"fwd:%s:b1:h2:sq33:skv90:d24:sink:lse", -1, false},          /* before there are rows that see no key, whose LSE is the sink */
    {"fwd:%s:b1:h2:sq33:skv90:d24:dv40:wl=30:wr=2:softcap=8:alibi:bias:sink:lse", -1, true},
    {"fwd:%s:b1:h2:sq33:skv90:d24:wl=30:wr=2:lse", 6, false},
    {"fwd:%s:b1:h2:sq33:skv90:d24:softcap=8:lse", 6, false},
    {"fwd:%s:b1:h2:sq33:skv90:d24:alibi:lse", 6, false},
    {"fwd:%s:b1:h2:sq33:skv90:d24:bias:lse", 6, false},
    {"fwd:%s:b1:h2:sq70:skv70:d32:causal:lse", -1, false},
    {"fwd:%s:b3:hq2:hkv1:s40:d32:varlenq=90:varlenkv=100:causal:lse", -1, false},
    {"fwd:%s:b3:hq4:hkv2:sq3:skv150:d32:page=16,40:lens:lse", -1, false},
    {"fwd:%s:b3:h2:sq12:skv70:d32:lens:lse", -1, false},
    {"fwd:%s:b2:hq4:hkv2:s20:d32:layout=bshd:lse", -1, false},
};

struct inquest {
    struct proof *proof;
    struct gate_result *result;
    struct executor *executor;
    json_t *problems;
    int right;
    size_t probes;
};

/* The arrays that were written are artefacts. */
static void name_arrays(struct inquest *inquest, const char *folder)
{
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char name[256], *ending, *path = gate_path(inquest->proof, "oracle/%s", entry->d_name);
        snprintf(name, sizeof name, "%s", entry->d_name);
        if (path && (ending = strstr(name, ".npy"))) {
            *ending = '\0';
            json_put(inquest->result->artefacts, name, json_string(path));
        }
        free(path);
    }
    if (directory)
        closedir(directory);
}

/* How the diagnosis of one problem ends the gate; false if the gate goes on. */
static bool ends(struct inquest *inquest, const char *text, const struct diagnosis *diagnosis, const char *folder)
{
    struct gate_result *result = inquest->result;
    char sentence[512];
    diagnosis_sentence(diagnosis, sentence, sizeof sentence);
    if (diagnosis->trouble.end == EXECUTION_REFUSED)
        return false;
    if (diagnosis->trouble.end != EXECUTION_DONE) {
        gate_say(result, diagnosis->trouble.end == EXECUTION_LACKING ? VERDICT_INCONCLUSIVE : VERDICT_FAIL, "%s, on %s", sentence,
                 text);
        return true;
    }
    inquest->probes += json_array_size(diagnosis->probes);
    if (diagnosis->wrong || !json_object_get(result->details, "probes"))
        json_put(result->details, "probes", json_incref(diagnosis->probes));
    if (!diagnosis->wrong) {
        inquest->right++;
        return false;
    }
    json_put(result->details, "diagnosis", diagnosis_json(diagnosis));
    name_arrays(inquest, folder);
    gate_say(result, VERDICT_FAIL, "%s, on %s", sentence, text);
    return true;
}

/* Asks one question; true if the gate is over. */
static bool inquire(struct inquest *inquest, const char *text, const attest_problem *problem)
{
    struct diagnosis diagnosis;
    char why[512] = "", *folder = gate_path(inquest->proof, "oracle");
    bool over = true;
    progress("%s: oracle on %s", inquest->proof->candidate.name, text);
    if (!stages_diagnose(stages_subject(inquest->executor), problem, inquest->proof->seed, folder, &diagnosis, why, sizeof why)) {
        gate_say(inquest->result, VERDICT_INCONCLUSIVE, "the stage oracle could not work: %s, on %s", why, text);
    } else {
        const char *verdict = diagnosis.wrong ? "FAIL" : diagnosis.trouble.end == EXECUTION_DONE ? "PASS" : "NOT APPLICABLE";
        json_add(inquest->problems, json_pack("{s:s, s:s, s:I}", "problem", text, "verdict", verdict, "probes",
                                              (json_int_t)json_array_size(diagnosis.probes)));
        over = ends(inquest, text, &diagnosis, folder);
    }
    diagnosis_free(&diagnosis);
    free(folder);
    return over;
}

/* The same question for another dim, which dim_v then follows. */
static void change_dim(char *text, size_t size, int dim)
{
    char changed[256] = "", *rest = NULL;
    for (char *word = strtok_r(text, ":", &rest); word; word = strtok_r(NULL, ":", &rest)) {
        bool digit = word[1] >= '0' && word[1] <= '9';
        size_t used = strlen(changed);
        if (strncmp(word, "dv", 2) == 0)
            continue;
        if (word[0] == 'd' && digit)
            snprintf(changed + used, sizeof changed - used, ":d%d", dim);
        else
            snprintf(changed + used, sizeof changed - used, "%s%s", used ? ":" : "", word);
    }
    snprintf(text, size, "%s", changed);
}

/* The problem of a question, without LSE if the kernel does not write it, and with another dim if it does not take that one; false
 * if the kernel does not take it at all. */
static bool prepare(const struct proof *proof, const char *dtype, int number, char *text, size_t size, attest_problem *problem)
{
    static const int dims[] = {0, 64, 128};
    const struct question *question = &questions[number];
    for (int i = 0; i < COUNT_OF(dims); i++) {
        snprintf(text, size, question->text, dtype);
        if (proof->facts.refuses & ATTEST_LSE)
            text[strlen(text) - strlen(":lse")] = '\0';
        if (dims[i])
            change_dim(text, size, dims[i]);
        if (attest_problem_parse(text, problem, NULL, 0) == ATTEST_OK && gate_takes(proof, problem))
            return true;
    }
    return false;
}

static void inquire_all(struct inquest *inquest)
{
    static const char *const dtypes[] = {"f32", "f16", "bf16"};
    bool taken[COUNT_OF(questions)][COUNT_OF(dtypes)];
    for (int n = 0; n < COUNT_OF(questions); n++) {
        bool first = true;
        for (int d = 0; d < COUNT_OF(dtypes); d++) {
            char text[256];
            attest_problem problem;
            int instead = questions[n].only_without;
            taken[n][d] = prepare(inquest->proof, dtypes[d], n, text, sizeof text, &problem);
            if (!taken[n][d] || !(first || questions[n].every_type) || (instead >= 0 && taken[instead][d]))
                continue;
            first = false;
            if (inquire(inquest, text, &problem))
                return;
        }
    }
    if (inquest->right == 0)
        gate_say(inquest->result, VERDICT_NOT_APPLICABLE, "it takes none of the problems that the stage oracle asks");
    else
        gate_say(inquest->result, VERDICT_PASS, "every stage is right: %d problems, %zu probes", inquest->right, inquest->probes);
}

void gate_oracle(struct proof *proof, struct gate_result *result)
{
    struct inquest inquest = {.proof = proof, .result = result, .problems = json_array()};
    json_put(result->details, "problems", inquest.problems);
    json_put(result->details, "diagnosis", json_null());
    inquest.executor = gate_open(proof, GUARD_DRAWN, result);
    if (!inquest.executor)
        return;
    inquire_all(&inquest);
    executor_close(inquest.executor, NULL);
}
