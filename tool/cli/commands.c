/*
 * commands.c - the table of commands. Help and the manual page are made from it.
 */
#include "commands.h"

#include <string.h>

const struct command commands[] = {
    {"info", CMD_INFO, NEEDS_CONTEXT, "", "what this machine and this build have",
     "Prints the version, the processor and its features (found, and disabled by ATTEST_DISABLE), threads, caches and system.",
     "info", cmd_info},
    {"list", CMD_LIST, NEEDS_CONTEXT, "", "all kernels, what they need, and whether they run here",
     "Lists the kernels of this build, best first. A problem is served by the first kernel that takes it.",
     "list\nlist --kernel '*bf16*'", cmd_list},
    {"explain", CMD_EXPLAIN, NEEDS_PROBLEMS, "PROBLEM ...", "which kernel runs, and why not the others",
     "Prints the kernel that a plan for the problem takes, its workspace, and for every other kernel the sentence that says why "
     "not.",
     "explain fwd:f16:b2:h8:s512:d64:causal", cmd_explain},
    {"run", CMD_RUN, NEEDS_PROBLEM, "PROBLEM", "compute one problem, from and to .npy files",
     "Computes the problem and prints the kernel, the range of the output and a digest of its bits. Inputs that are not given are "
     "drawn from the seed.\n"
     "Arrays have the shapes of include/attest.h whatever their strides in the problem: Q [batch, heads_q, seq_q, dim], or "
     "[total_q, "
     "heads_q, dim] when packed; K and V likewise, or [page_count, page_size, heads_kv, dim] when paged; LSE [batch, heads_q, "
     "seq_q] "
     "or [heads_q, total_q]; the page table [batch, pts]; a dimension whose stride is 0 has size 1. They are copied into the "
     "strides of the problem.\n"
     "f32 arrays are '<f4'. f16 arrays are '<f2'; bf16 arrays are their raw bits as '<u2' (or 'V2', as ml_dtypes writes them). "
     "Both "
     "may also be '<f4', which is rounded to nearest even. Lengths and page tables are '<i4' or '<i8', masks bytes or booleans, "
     "'|u1' or '|b1'. Fortran order is read; "
     "big-endian is refused. O is written as '<f4' or '<f2'; a bf16 O as '<f4', which holds it exactly. Files are replaced only "
     "when "
     "they are complete.",
     "run fwd:f32:b1:h8:s128:d64:causal:lse --q q.npy --k k.npy --v v.npy --out o.npy --lse lse.npy", cmd_run},
    {"check", CMD_CHECK, NEEDS_PROBLEMS, "PROBLEM ...", "compare kernels with the float64 oracle",
     "Draws inputs with NaN in every place that must not matter, runs the kernel that a plan would take (with --kernel, every "
     "matching "
     "kernel that takes the problem here), and judges O and LSE: each component against a bound scaled by sum P|v|, each block of "
     "64 "
     "rows against the error of a naive implementation of the same precision. Guard bands round the outputs, inputs and gaps must "
     "be "
     "unchanged; a second run and a run with another number of threads must give the same bits.\n"
     "Before that, wrong answers (zeros, the mean of V, the scale dropped, causal off by one, the last keys dropped) go through "
     "the "
     "same judge. If it accepts one, the inputs prove nothing and the verdict is INCONCLUSIVE.\n"
     "The column ratio is the error divided by its bound: PASS is 1 or less.",
     "check fwd:bf16:b2:hq8:hkv2:s300:d80:causal:lse --kernel '*'\ncheck --suite suites/prove.txt --seed 7", cmd_check},
    {"bench", CMD_BENCH, NEEDS_CONTEXT_AND_WORDS, "PROBLEM ... | KERNEL --vs KERNEL [PROBLEM ...]",
     "time kernels against each other",
     "Times the kernel that a plan would take (with --kernel, every matching kernel that takes the problem here), call by call in "
     "turns, after checking a sample of its output. Gflop/s counts 2 (D + Dv) for each pair of a row and a key that the masks let "
     "it "
     "see; GB/s counts K and V once, for problems of up to 8 rows a sequence. The spread is (slowest - fastest) / median. The "
     "ratio "
     "is the median of the first kernel divided by this one's: more is faster.\n"
     "With --vs two kernels, by name or as .c or .so files, are compared by the rules of the speed gate: in processes of their "
     "own, "
     "on inputs that are new for every call, in blocks of ABBA or BAAB order, with a 95 % bootstrap interval of the ratio and the "
     "verdict FASTER, SLOWER, SAME or INCONCLUSIVE. Without problems it times those of the speed gate.",
     "bench fwd:f32:b1:h8:s4096:d64 --kernel '*' --threads 1\nbench my_kernel.c --vs cpu_fwd_f32_avx2 fwd:f32:b2:h4:s512:d64",
     cmd_bench},
    {"prove", CMD_PROVE, NEEDS_CONTEXT_AND_WORDS, "KERNEL | FILE ...", "run the gates on a kernel, and say whether it is proven",
     "Takes kernels of the library by name (a pattern with * and ? names several), a C or CUDA source, or a built image (.so; "
     ".cubin or "
     ".ptx with its manifest), and runs the gates from cheap to costly: build, emulation (CUDA), oracle, memory, determinism, "
     "correctness, speed, "
     "profile. "
     "Each ends in PASS, FAIL, INCONCLUSIVE or NOT APPLICABLE, with a sentence. The first failure ends the proof unless "
     "--keep-going is "
     "given.\n"
     "A kernel is PROVEN if every gate that applies passed, speed aside; and a CHAMPION if it is also faster than the reigning "
     "one. "
     "The kernel runs in a process of its own, in a sandbox; the reference, the clock, the seeds and the verdict stay outside of "
     "it.\n"
     "Every run is kept in the run database. With --record the proof is also appended to the evidence; with --record --missing "
     "only "
     "the gates are run that were added or became stricter since the kernel's last record.",
     "prove my_kernel.c\nprove 'cpu_fwd_*' --record\nprove 'cpu_fwd_*' --record --missing\nprove my_kernel.so --only oracle,memory",
     cmd_prove},
    {"oracle", CMD_ORACLE, NEEDS_CONTEXT_AND_WORDS, "KERNEL | FILE PROBLEM", "name the first wrong stage of a kernel",
     "Chooses inputs that make a kernel tell its own stages: LSE speaks for the scores, the mask, the maximum and the sum; with V "
     "set to "
     "columns of the identity, O is the matrix P. Prints the first stage that is wrong (S, mask, P, normalisation, rescale, PV, "
     "epilogue; "
     "or several that cannot be told apart from outside), with tile, row, column, pattern and likely cause, and writes the arrays "
     "to "
     "--out.",
     "oracle my_kernel.c fwd:f32:b1:h2:s130:d64:causal:lse --out wrong", cmd_oracle},
    {"new", CMD_NEW, NEEDS_WORDS, "NAME", "write a kernel to begin with",
     "Writes NAME.c (--cpu) or NAME.cu (--cuda): a kernel that is complete, simple and right, and passes the gates as it stands. "
     "An "
     "existing file is not replaced.",
     "new my_kernel --cpu\nnew my_kernel --cuda\nnew my_kernel --cuda --arch sm_90a", cmd_new},
    {"evolve", CMD_EVOLVE, NEEDS_CONTEXT_AND_WORDS, "PROBLEM | SUITE ...", "search for a faster kernel, and prove what is found",
     "Begins with a kernel (--kernel; the reigning champion unless it is given), proves it, and lets a proposer change it: one of "
     "the built-in ones, which try values of the constants that the source declares, or any program (--proposer 'COMMAND'), which "
     "reads one JSON document and prints a source.\n"
     "A candidate is built, asked by the stage oracle, checked on few problems and timed shortly; that chooses parents and "
     "challengers, and proves nothing. After each generation the best one goes through all gates and is timed against the champion "
     "on new data, with an interval that takes into account how many challenges there were. Each candidate runs in a process of "
     "its "
     "own; two with the same image are one.\n"
     "The end is a verdict: PROMOTED, with the champion's source; NO IMPROVEMENT, with the interval of the best challenger; or a "
     "POST-MORTEM. A search that was interrupted goes on when the same command is given again.",
     "evolve fwd:f32:b2:h4:s512:d64 --kernel cpu_fwd_f32_avx2 --budget 600\nevolve suites/speed.txt --kernel my_kernel.c "
     "--proposer "
     "./propose.sh --generations 4\nevolve --status",
     cmd_evolve},
    {"selftest", CMD_SELFTEST, NEEDS_CONTEXT_AND_WORDS, "[MUTANT ...]",
     "prove the gates: planted bugs must fail, harmless variants pass",
     "Runs the gates on every kernel of the mutants folder, and prints the kill matrix: which gate was expected to reject each, "
     "which did, and whether the diagnosis names the planted stage. Every mutant must be rejected by its gate, and every harmless "
     "variant be proven.\n"
     "With --generate N the mutants are drawn edits of the library's own kernels, which nobody wrote: each is built and goes "
     "through "
     "every gate but speed, or those that --only names. Those with the image of the unchanged kernel are equivalent. Survivors are "
     "printed as diffs, then the "
     "kill "
     "rate by class of edit and by gate, with a 95 % interval.",
     "selftest\nselftest scale_dropped tail_not_masked\nselftest --generate 200 --seed 1 --of 'cpu_fwd_*_avx2' --out mutants.jsonl",
     cmd_selftest},
    {"verify", CMD_VERIFY, NEEDS_CONTEXT_AND_WORDS, "[KERNEL ...]", "check the evidence against the sources",
     "Reads every statement of the evidence, re-computes all digests and checks signatures. Fails if a record was edited, if an "
     "artefact "
     "is missing, if a kernel changed after it was proven, or if a kernel of the library has no record. A kernel whose record is "
     "of "
     "before a gate was added or became stricter is BEHIND: the gates it has not passed are named, and it does not fail.",
     "verify\nverify --key release.pub", cmd_verify},
    {"champion", CMD_CHAMPION, NEEDS_CONTEXT, "", "who reigns, and who reigned before",
     "Lists the reigning kernel for each device class and problem class, with its history, from the evidence. --restore makes an "
     "earlier "
     "champion reign again; --write writes the table that the library chooses by.",
     "champion\nchampion --restore cpu_fwd_f32_avx2\nchampion --write lib/champions.def", cmd_champion},
    {"reproduce", CMD_REPRODUCE, NEEDS_CONTEXT_AND_WORDS, "RECORD", "run a record again, and say whether it holds",
     "RECORD is the beginning of a statement's digest, or the name of a kernel for its last record. Proves the kernel again with "
     "the "
     "policy, suite and seed of the record, and compares gate by gate.",
     "reproduce cpu_fwd_f32_avx512", cmd_reproduce},
    {"log", CMD_LOG, NEEDS_WORDS, "[KERNEL ...]", "the engineering log: every run, from the run database",
     "Prints what was tried, in order: kernel, what changed, gates, verdict, and why.", "log\nlog my_kernel", cmd_log},
    {"postmortem", CMD_POSTMORTEM, NEEDS_WORDS, "KERNEL", "what failed, with the evidence, attempts, decision and what to try next",
     "Prints a post-mortem in Markdown from the records of a kernel.", "postmortem my_kernel", cmd_postmortem},
    {"report", CMD_REPORT, NEEDS_CONTEXT_AND_WORDS, "[KERNEL ...]", "one self-contained page about all proofs",
     "Writes the last record of every kernel as one HTML file that needs nothing else (or as TAP, JUnit XML or SARIF). "
     "The page goes to report.html, the others to standard output, unless --out is given.",
     "report --out report.html\nreport --format junit --out report.xml", cmd_report},
    {"keygen", CMD_KEYGEN, NEEDS_WORDS, "FILE", "make a key pair to sign evidence with",
     "Writes the secret key to FILE, which only you can read, and the public key to FILE.pub. Existing files are not replaced.",
     "keygen release", cmd_keygen},
    {"worker", CMD_WORKER, NEEDS_NOTHING, "", "run kernels for another attest; not for people", "Started by prove and others.",
     "worker", cmd_worker},
    {"help", CMD_HELP, NEEDS_WORDS, "[COMMAND]", "this list, or the help of a command", "Prints the help of a command.", "help run",
     cmd_help},
};
const int command_count = COUNT_OF(commands);

const struct command *find_command(const char *name)
{
    for (int i = 0; i < command_count; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}
