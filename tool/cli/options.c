/*
 * options.c - the table of options and its parser. Help, the manual page and the errors are made from the same table.
 */
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(name) offsetof(struct options, name)
#define EVERY       (~(CMD_HELP | CMD_WORKER))
#define PROVING     (CMD_PROVE | CMD_ORACLE | CMD_REPRODUCE | CMD_EVOLVE)
#define EVIDENCE    (CMD_PROVE | CMD_VERIFY | CMD_CHAMPION | CMD_REPRODUCE | CMD_LOG | CMD_POSTMORTEM | CMD_REPORT | CMD_EVOLVE)
#define DRAWING     (CMD_RUN | CMD_CHECK | CMD_BENCH)
#define PLANNING    (CMD_EXPLAIN | DRAWING)
#define MANY        (CMD_EXPLAIN | CMD_CHECK | CMD_BENCH)
#define ARRAY(name, what, index)                                                                                                   \
    {                                                                                                                              \
        name, "FILE.npy", what, CMD_RUN, OPTION_TEXT, FIELD(files[index]), 0, 0                                                    \
    }

const struct option_spec option_specs[] = {
    {"json", NULL, "Print one JSON object instead of text. Numbers read back to the same bits.", EVERY, OPTION_FLAG, FIELD(json), 0,
     0},
    {"help", NULL, "Print the help of the command and exit.", EVERY | CMD_HELP, OPTION_FLAG, FIELD(help), 0, 0},
    {"man", NULL, "Print the manual page.", CMD_HELP, OPTION_FLAG, FIELD(man), 0, 0},
    {"suite", "FILE", "Read problem strings from FILE (- is standard input), one a line; # starts a comment.", MANY | CMD_PROVE,
     OPTION_TEXT, FIELD(suite), 0, 0},
    {"suite", "FILE", "Let the correctness gate check the problems in FILE instead of the built-in ones.", CMD_EVOLVE, OPTION_TEXT,
     FIELD(suite), 0, 0},
    {"kernel", "KERNEL", "Begin with this kernel, a name or a file. The default is the reigning champion.", CMD_EVOLVE, OPTION_TEXT,
     FIELD(kernel), 0, 0},
    {"proposer", "WORD",
     "Who proposes candidates: grid, random, local, evolution or model, which search the space that the source declares; or a "
     "command of the shell. The default is model.",
     CMD_EVOLVE, OPTION_TEXT, FIELD(proposer), 0, 0},
    {"strategy", "WORD",
     "What a proposing program is told beside the task and the champion: free (nothing), insight (what became of the last "
     "candidates, and why), full (that, and the best sources). The default is full.",
     CMD_EVOLVE, OPTION_TEXT, FIELD(strategy), 0, 0},
    {"proposer-seconds", "S", "A proposing program has S seconds to answer. The default is 120.", CMD_EVOLVE, OPTION_SECONDS,
     FIELD(proposer_seconds), 0, 0},
    {"generations", "N", "End after N generations. The default is 8.", CMD_EVOLVE, OPTION_INTEGER, FIELD(generations), 1, 100000},
    {"population", "N", "Candidates of a generation. The default is 6.", CMD_EVOLVE, OPTION_INTEGER, FIELD(population), 1, 1000},
    {"budget", "S", "End after S seconds, with a verdict. The default is no limit.", CMD_EVOLVE, OPTION_SECONDS, FIELD(budget), 0,
     0},
    {"status", NULL, "List the searches of the run database, and make none.", CMD_EVOLVE, OPTION_FLAG, FIELD(status), 0, 0},
    {"export", "FILE", "Write the space and the results to FILE as JSON in the T4 format of auto-tuners.", CMD_EVOLVE, OPTION_TEXT,
     FIELD(export), 0, 0},
    {"kernel", "GLOB", "Use kernels whose name matches GLOB, a name or a pattern with * and ?. Quote it for the shell.",
     PLANNING | CMD_LIST, OPTION_TEXT, FIELD(kernel), 0, 0},
    {"device", "DEVICE",
     "Compute on cpu, cuda (the first GPU), cuda:N or auto (a GPU if there is one, else the CPU). The default is $ATTEST_DEVICE, "
     "else what --kernel runs on, else auto.",
     PLANNING, OPTION_TEXT, FIELD(device), 0, 0},
    {"device", "DEVICE", "Run CUDA kernels on this GPU: cuda (the first one) or cuda:N.", PROVING | CMD_SELFTEST | CMD_WORKER,
     OPTION_TEXT, FIELD(device), 0, 0},
    {"marker", "WORD", "Print this word when all is done.", CMD_WORKER, OPTION_TEXT, FIELD(marker), 0, 0},
    {"threads", "N", "Use N threads, 1 to 1024. The default is what OpenMP would use.", PLANNING | CMD_INFO | PROVING,
     OPTION_INTEGER, FIELD(threads), 1, 1024},
    {"seed", "N", "Draw inputs from seed N. The default is 1; the same seed gives the same inputs.",
     DRAWING | CMD_ORACLE | CMD_WORKER, OPTION_INTEGER, FIELD(seed), 0, INT64_MAX},
    {"seed", "N", "Use this seed, to see the same again. Otherwise it is drawn after the build, so that no source can know it.",
     CMD_PROVE | CMD_SELFTEST | CMD_EVOLVE, OPTION_INTEGER, FIELD(proof_seed), 1, INT64_C(1) << 52},
    {"contents", "WORDS",
     "Fill the tensors as WORDS say, such as slopes=mixed,v=by-head; a word that is not known lists all. The gates print them.",
     CMD_CHECK, OPTION_TEXT, FIELD(contents), 0, 0},
    {"rows", "N",
     "Check at most about N output rows of a problem, in blocks of 64. The default depends on the size of the problem.", CMD_CHECK,
     OPTION_INTEGER, FIELD(rows), 1, INT64_MAX},
    {"seconds", "S", "Time each kernel for S seconds on each problem, and at least 3 calls. The default is 0.5.", CMD_BENCH,
     OPTION_SECONDS, FIELD(seconds), 0, 0},
    {"only", "GATES",
     "Run these gates alone, separated by commas: build, emulation, oracle, memory, determinism, correctness, speed, profile. "
     "(What another "
     "gate needs, such as the build, is done without being judged.)",
     CMD_PROVE | CMD_SELFTEST, OPTION_TEXT, FIELD(only), 0, 0},
    {"keep-going", NULL, "Go on after a gate has failed.", CMD_PROVE | CMD_WORKER, OPTION_FLAG, FIELD(keep_going), 0, 0},
    {"thorough", NULL,
     "Draw three times as many problems for the correctness gate, and give the emulation gate three times its time. A proof that "
     "is "
     "recorded always does.",
     CMD_PROVE, OPTION_FLAG, FIELD(thorough), 0, 0},
    {"policy", "NAME=N,...",
     "Prove by other numbers than those of the policy, such as cover_rows=300,large_rounds=0 for a first look. The record names "
     "them, and verify takes none that are laxer. With selftest: for the mutants of --generate.",
     CMD_PROVE | CMD_SELFTEST, OPTION_TEXT, FIELD(policy), 0, 0},
    {"timed", "FILE", "Time the problems in FILE instead of the built-in ones.", CMD_PROVE, OPTION_TEXT, FIELD(timed), 0, 0},
    {"vs", "KERNEL",
     "Compare with this kernel, a name or a file. prove takes the reigning champion unless this is given; bench then uses the "
     "paired statistics of the speed gate.",
     CMD_PROVE | CMD_BENCH, OPTION_TEXT, FIELD(vs), 0, 0},
    {"record", NULL, "Append the proof to the evidence, and promote the kernel if it won.", CMD_PROVE, OPTION_FLAG, FIELD(record),
     0, 0},
    {"missing", NULL,
     "With --record: run only the gates that the kernel's last record of the same sources and image has not passed as they are "
     "today, "
     "and append what they found as a continuation of it.",
     CMD_PROVE, OPTION_FLAG, FIELD(missing), 0, 0},
    {"evidence", "DIR", "Where evidence is. The default is evidence.", EVIDENCE, OPTION_TEXT, FIELD(evidence), 0, 0},
    {"state", "DIR", "Where the run database and the artefacts are. The default is .attest.", EVIDENCE, OPTION_TEXT, FIELD(state),
     0, 0},
    {"sign", "FILE", "Sign what is recorded with the secret key in FILE.", CMD_PROVE | CMD_CHAMPION, OPTION_TEXT, FIELD(sign), 0,
     0},
    {"key", "FILE", "Accept only statements signed with the public key in FILE.", CMD_VERIFY, OPTION_TEXT, FIELD(key), 0, 0},
    {"max-fixes", "N", "After N rejected attempts at a kernel of this name, give up with a post-mortem.", CMD_PROVE, OPTION_INTEGER,
     FIELD(max_fixes), 1, 1000000},
    {"max-gpu-seconds", "N", "Give up, with a post-mortem, once the gates have used a GPU for N seconds.", CMD_PROVE | CMD_EVOLVE,
     OPTION_INTEGER, FIELD(max_gpu_seconds), 1, 1000000},
    {"cpu", NULL, "A kernel in C.", CMD_NEW, OPTION_FLAG, FIELD(cpu), 0, 0},
    {"cuda", NULL, "A kernel in CUDA C.", CMD_NEW | CMD_WORKER, OPTION_FLAG, FIELD(cuda), 0, 0},
    {"arch", "ARCH",
     "With --cuda: sm_80 (tensor cores by mma.sync, copies by cp.async; the default) and sm_90a (wgmma, TMA, a producer warp) "
     "use the device vocabulary; any is without tensor cores, and takes every problem.",
     CMD_NEW, OPTION_TEXT, FIELD(arch), 0, 0},
    {"mutants", "DIR", "Where the mutants are. The default is mutants.", CMD_SELFTEST, OPTION_TEXT, FIELD(mutants), 0, 0},
    {"sample", "N",
     "Run only N of the mutants, drawn from the seed, with at least one for every kind and gate. The whole folder takes several "
     "minutes.",
     CMD_SELFTEST, OPTION_INTEGER, FIELD(sample), 1, 100000},
    {"generate", "N",
     "Make N mutants of the library's own kernels by drawn edits of their sources, run the gates on each, and print how many were "
     "killed, the survivors as diffs.",
     CMD_SELFTEST, OPTION_INTEGER, FIELD(generate), 1, 1000000},
    {"of", "KERNEL",
     "Make mutants of kernels whose name matches this pattern, or of this .c or .cu file. The default is every CPU kernel that "
     "runs here.",
     CMD_SELFTEST, OPTION_TEXT, FIELD(of), 0, 0},
    {"survivors", "FILE", "Where survivors are explained. The default is docs/survivors.md.", CMD_SELFTEST, OPTION_TEXT,
     FIELD(survivors), 0, 0},
    {"only-mutant", "K", "Of the mutants of --generate, try number K alone.", CMD_SELFTEST, OPTION_INTEGER, FIELD(only_mutant), 1,
     INT64_C(1) << 40},
    {"least", "PERCENT",
     "Exit with 1 if less than this part of the mutants was killed, those aside that have the same image or are explained as "
     "equivalent. The default is 0.",
     CMD_SELFTEST, OPTION_INTEGER, FIELD(least), 0, 100},
    {"jobs", "N", "Try N mutants at once. The default is the number of processors.", CMD_SELFTEST, OPTION_INTEGER, FIELD(jobs), 1,
     64},
    {"restore", "KERNEL", "Make an earlier champion reign again.", CMD_CHAMPION, OPTION_TEXT, FIELD(restore), 0, 0},
    {"write", "FILE", "Write the table that the library chooses by.", CMD_CHAMPION, OPTION_TEXT, FIELD(write), 0, 0},
    {"format", "WORD", "html, tap, junit or sarif. prove prints tap, junit or sarif instead of its table.", CMD_REPORT | CMD_PROVE,
     OPTION_TEXT, FIELD(format), 0, 0},
    {"simulate-clock", "MODEL",
     "Take times from a model instead of the clock, to test the speed gate: "
     "a=1.01,b=1,noise=0.004,drift=0.01,period=400,spike=0.08,spikes=0.01,seed=7.",
     CMD_PROVE | CMD_BENCH | CMD_EVOLVE, OPTION_TEXT, FIELD(clock), 0, 0},
    ARRAY("q", "Read Q from FILE.npy.", FILE_Q),
    ARRAY("k", "Read K from FILE.npy.", FILE_K),
    ARRAY("v", "Read V from FILE.npy.", FILE_V),
    ARRAY("bias", "Read the bias from FILE.npy.", FILE_BIAS),
    ARRAY("alibi-slopes", "Read the ALiBi slopes from FILE.npy.", FILE_ALIBI),
    ARRAY("sinks", "Read the sink logits from FILE.npy.", FILE_SINKS),
    ARRAY("cu-seqlens-q", "Read the cumulative lengths of packed queries from FILE.npy.", FILE_CU_Q),
    ARRAY("cu-seqlens-kv", "Read the cumulative lengths of packed keys from FILE.npy.", FILE_CU_KV),
    ARRAY("kv-lengths", "Read the number of keys of each sequence from FILE.npy.", FILE_LENGTHS),
    ARRAY("page-table", "Read the page table from FILE.npy.", FILE_PAGES),
    ARRAY("mask", "Read the mask, bytes, from FILE.npy.", FILE_MASK),
    ARRAY("row-offsets", "Read the place of each sequence's first row from FILE.npy.", FILE_OFFSETS),
    ARRAY("kv-starts", "Read the first key of each sequence from FILE.npy.", FILE_STARTS),
    ARRAY("q-lengths", "Read the number of rows of each sequence from FILE.npy.", FILE_ROWS),
    {"out", "FILE",
     "Append what became of each mutant of --generate to FILE, a line of JSON each. The same command goes on where it was "
     "interrupted.",
     CMD_SELFTEST, OPTION_TEXT, FIELD(out), 0, 0},
    {"out", "PATH",
     "run: write O to this .npy file. oracle: write arrays to this folder. report: write to this file. new: write to this folder. "
     "evolve: write the champion's source to this file.",
     CMD_RUN | CMD_ORACLE | CMD_REPORT | CMD_NEW | CMD_EVOLVE, OPTION_TEXT, FIELD(out), 0, 0},
    {"lse", "FILE.npy", "Write LSE to FILE.npy; the problem must have the word lse.", CMD_RUN, OPTION_TEXT, FIELD(lse), 0, 0},
};
const int option_count = COUNT_OF(option_specs);

static enum exit_code unknown_option(struct session *session, const char *name, size_t length)
{
    const struct command *command = session->command;
    const char *words[COUNT_OF(option_specs)];
    char text[64] = "";
    char hint[256];
    int count = 0;
    snprintf(text, sizeof text, "%.*s", (int)(length < 60 ? length : 60), name);
    snprintf(hint, sizeof hint, "type: attest help %s", command->name);
    for (int i = 0; i < option_count; i++) {
        if (option_specs[i].commands & command->bit) {
            words[count++] = option_specs[i].name;
        } else if (strcmp(option_specs[i].name, text) == 0) {
            char others[400] = "";
            for (int k = 0; k < command_count; k++)
                if (option_specs[i].commands & commands[k].bit)
                    snprintf(others + strlen(others), sizeof others - strlen(others), "%s%s", *others ? ", " : "",
                             commands[k].name);
            return give_up(session, EXIT_USAGE, hint, "--%s is an option of %s, and not of %s", text, others, command->name);
        }
    }
    const char *near = nearest_word(text, words, count);
    if (near)
        snprintf(hint, sizeof hint, "did you mean --%s?", near);
    return give_up(session, EXIT_USAGE, hint, "there is no option --%s", text);
}

static enum exit_code store_option(struct session *session, const struct option_spec *spec, const char *value)
{
    char *field = (char *)&session->options + spec->offset;
    char *end;
    errno = 0;
    switch (spec->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return EXIT_PASS;
    case OPTION_TEXT:
        if (!*value)
            return give_up(session, EXIT_USAGE, NULL, "--%s needs a %s, and got an empty word", spec->name, spec->argument);
        *(const char **)field = value;
        return EXIT_PASS;
    case OPTION_INTEGER: {
        long long number = strtoll(value, &end, 10);
        if (errno || end == value || *end || number < spec->low || number > spec->high)
            return give_up(session, EXIT_USAGE, NULL, "--%s takes a whole number from %" PRId64 " to %" PRId64 ", not '%s'",
                           spec->name, spec->low, spec->high, value);
        *(int64_t *)field = number;
        return EXIT_PASS;
    }
    case OPTION_SECONDS: {
        double number = strtod(value, &end);
        if (errno || end == value || *end || !isfinite(number) || number < 0 || number > 86400)
            return give_up(session, EXIT_USAGE, NULL, "--%s takes seconds, such as 0.5, not '%s'", spec->name, value);
        *(double *)field = number;
        return EXIT_PASS;
    }
    }
    return EXIT_INTERNAL;
}

/* Parses the words after the command. Operands are moved to the front of argv, where options.words points. */
enum exit_code options_parse(struct session *session, int argc, char **argv)
{
    struct options *options = &session->options;
    options->words = argv;
    for (int i = 0; i < argc; i++) {
        char *word = argv[i];
        if (strcmp(word, "-h") == 0)
            word = "--help";
        if (strcmp(word, "--") == 0) {
            while (++i < argc)
                argv[options->word_count++] = argv[i];
            return EXIT_PASS;
        }
        if (word[0] != '-' || !word[1]) {
            argv[options->word_count++] = word;
            continue;
        }
        if (word[1] != '-')
            return give_up(session, EXIT_USAGE, "options are written with two dashes and in full, such as --json",
                           "unknown option %s", word);
        const char *name = word + 2;
        const char *value = strchr(name, '=');
        size_t length = value ? (size_t)(value - name) : strlen(name);
        const struct option_spec *spec = NULL;
        for (int k = 0; k < option_count; k++)
            if (strlen(option_specs[k].name) == length && strncmp(option_specs[k].name, name, length) == 0 &&
                option_specs[k].commands & session->command->bit)
                spec = &option_specs[k];
        if (!spec)
            return unknown_option(session, name, length);
        if (spec->argument) {
            value = value ? value + 1 : i + 1 < argc ? argv[++i] : NULL;
            if (!value)
                return give_up(session, EXIT_USAGE, NULL, "--%s needs a word after it: --%s %s", spec->name, spec->name,
                               spec->argument);
        } else if (value) {
            return give_up(session, EXIT_USAGE, NULL, "--%s takes no value", spec->name);
        }
        enum exit_code code = store_option(session, spec, value);
        if (code != EXIT_PASS)
            return code;
    }
    return EXIT_PASS;
}
