/*
 * compiler_flags.c - see compiler_flags.h. A flag is allowed if it fits a row of `good` and none of `bad`; a row fits what begins with
 * it. The reason in `bad` becomes part of the sentence.
 */
#include "compiler_flags.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/session.h"

static const char *const good[] = {"-m", "-O1", "-O2",      "-O3",      "-Os",      "-Ofast",   "-D", "-U",
                                   "-I", "-f",  "-std=c11", "-std=c17", "-std=c99", "--param=", "-W"};

/* -f flags with a value are refused but for these, because some write files and others name programs. */
static const char *const values[] = {"-ffp-contract=", "-fexcess-precision=", "-falign-",
                                     "-fvect-cost-model=", "-fsimd-cost-model="};

static const struct {
    const char *begin, *reason;
} bad[] = {
    {"-Wno-", "turns a warning off"},
    {"-Wl,", "is for the linker"},
    {"-Wa,", "is for the assembler"},
    {"-Wp,", "is for the preprocessor"},
    {"-Werror=", "changes what is an error"},
    {"-O0", "turns off the analysis that finds warnings"},
    {"-fsanitize", "is about sanitizers, which the memory gate chooses"},
    {"-fno-sanitize", "turns sanitizers off"},
    {"-fasan", "is about sanitizers"},
    {"-fdump", "writes files"},
    {"-fprofile", "writes or reads files"},
    {"-fno-profile", "is about profiles"},
    {"-fbranch-probabilities", "reads files"},
    {"-fauto-profile", "reads files"},
    {"-ftest", "writes files"},
    {"-fcallgraph", "writes files"},
    {"-fstack-usage", "writes files"},
    {"-fopt-info", "writes files"},
    {"-fsave", "writes files"},
    {"-finstrument", "calls functions at every entry"},
    {"-fplugin", "loads a program into the compiler"},
    {"-flto", "leaves the image to another compiler run"},
    {"-ffat-lto", "leaves the image to another compiler run"},
    {"-fpreprocessed", "is about the preprocessor"},
    {"-fdirectives", "is about the preprocessor"},
    {"-fsyntax-only", "compiles nothing"},
    {"-fdiagnostics", "changes messages"},
    {"-fno-diagnostics", "changes messages"},
    {"-fmax-errors", "changes messages"},
    {"-fmessage", "changes messages"},
    {"-fsplit-stack", "needs thread-local storage"},
    {"-fnested", "makes the stack executable"},
    {"-ftrampolines", "makes the stack executable"},
    {"-fno-pic", "makes text relocations"},
    {"-fno-PIC", "makes text relocations"},
    {"-fno-pie", "makes text relocations"},
    {"-fpie", "is for programs"},
    {"-fPIE", "is for programs"},
    {"-fchecking", "is about the compiler itself"},
    {"-fcompare-debug", "is about the compiler itself"},
    {"-m16", "is for another machine"},
    {"-m32", "is for another machine"},
    {"-mx32", "is for another machine"},
    {"-mabi", "is for another machine"},
    {"-mfentry", "calls functions at every entry"},
    {"-mnop-mcount", "calls functions at every entry"},
    {"-mrecord", "calls functions at every entry"},
    {"-minstrument", "calls functions at every entry"},
    {"-mstack-protector-guard", "reads other memory than its own"},
    {"-mtls", "is about thread-local storage"},
    {"-mthreads", "is about threads"},
};

static bool begins(const char *flag, const char *with)
{
    return strncmp(flag, with, strlen(with)) == 0;
}

/* -DNAME[=VALUE]: a name of its own, not one of the compiler's or the C library's. */
static const char *judge_macro(const char *flag)
{
    const char *name = flag + 2;
    if (!isalpha((unsigned char)*name))
        return "defines a name that belongs to the compiler or the C library, or nothing";
    for (const char *at = flag; *at; at++)
        if (strchr("\\;`$#@%{}", *at))
            return "has a character that has no place in a constant";
    return NULL;
}

/* -IFOLDER: not one of the system's. */
static const char *judge_folder(const char *flag)
{
    static const char *const closed[] = {"/etc", "/proc", "/sys", "/dev", "/run", "/boot"};
    const char *folder = flag + 2;
    if (!*folder || strcmp(folder, "/") == 0)
        return "names no folder of headers";
    for (int i = 0; i < COUNT_OF(closed); i++) {
        size_t length = strlen(closed[i]);
        if (strncmp(folder, closed[i], length) == 0 && (folder[length] == '/' || !folder[length]))
            return "names a folder of the system";
    }
    return NULL;
}

/* NULL if the flag is allowed, else the reason. */
static const char *judge(const char *flag)
{
    bool allowed = false, valued = !begins(flag, "-f") || !strchr(flag, '=');
    for (int i = 0; i < COUNT_OF(bad); i++)
        if (begins(flag, bad[i].begin))
            return bad[i].reason;
    for (int i = 0; i < COUNT_OF(good); i++)
        allowed = allowed || begins(flag, good[i]);
    if (!allowed)
        return "is not on the list of flags that concern a kernel's own code";
    for (int i = 0; i < COUNT_OF(values); i++)
        valued = valued || begins(flag, values[i]);
    if (!valued)
        return "has a value that may name a file or a program";
    if (begins(flag, "-W") && (!islower((unsigned char)flag[2]) || strchr(flag, ',')))
        return "is not on the list of flags that concern a kernel's own code";
    if (begins(flag, "-D") || begins(flag, "-U"))
        return judge_macro(flag);
    return begins(flag, "-I") ? judge_folder(flag) : NULL;
}

bool compiler_flags_check(const char *flags, char *why, size_t why_size)
{
    for (const char *at = flags + strspn(flags, " \t\r\n"); *at;) {
        char flag[512];
        size_t length = strcspn(at, " \t\r\n");
        snprintf(flag, sizeof flag, "%.*s", (int)(length < sizeof flag ? length : sizeof flag - 1), at);
        const char *reason = judge(flag);
        if (reason) {
            snprintf(why, why_size, "it asks for the flag %.80s, which %s", flag, reason);
            return false;
        }
        at += length;
        at += strspn(at, " \t\r\n");
    }
    return true;
}
