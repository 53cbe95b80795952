/* The harness of tap.h. */
#include "tap.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Enough to see a pattern, not enough to bury the first failure. */
enum { MOST_DIAGNOSTICS = 5, TIME_LIMIT_S = 900 };

struct tap_options tap = {.seed = 1};
static const char *program;
static const char *test_name;
static char case_name[2048];
static const char *skip_reason;
static int checks, failures;

static void reproduce(char *text, size_t size)
{
    int n = snprintf(text, size, "# reproduce: %s%s --seed %" PRIu64 " --only '%s'", program, tap.quick ? " --quick" : "", tap.seed,
                     test_name);
    if (case_name[0] && n > 0 && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n, " --case '%s'", case_name);
    if (n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, "\n");
}

/* A crash or a hang still says which test it was in; snprintf is not async-signal-safe, but the process is lost anyway. */
static void crashed(int number)
{
    static char text[4096];
    int n = snprintf(text, sizeof text, "not ok - %s died of signal %d (%s)\n", test_name, number, strsignal(number));
    reproduce(text + n, sizeof text - (size_t)n);
    ssize_t written = write(STDOUT_FILENO, text, strlen(text));
    _exit(written > 0 ? 1 : 2);
}

static void watch_for_crashes(void)
{
    signal(SIGALRM, crashed);
    alarm(TIME_LIMIT_S);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        signal(fatal[i], crashed);
#endif
}

static void usage(const struct tap_test *tests, size_t count)
{
    printf("usage: %s [--seed N] [--only TEST] [--case NAME] [--quick]\ntests:\n", program);
    for (size_t i = 0; i < count; i++)
        printf("  %s\n", tests[i].name);
}

static bool parse_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--quick"))
            tap.quick = true;
        else if (!strcmp(argv[i], "--seed") && more)
            tap.seed = strtoull(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--only") && more)
            tap.only = argv[++i];
        else if (!strcmp(argv[i], "--case") && more)
            tap.one_case = argv[++i];
        else
            return false;
    }
    return true;
}

int tap_main(int argc, char **argv, const struct tap_test *tests, size_t count)
{
    program = argv[0];
    const char *lengthy = getenv("ATTEST_TEST_LONG");
    tap.lengthy = lengthy && *lengthy && strcmp(lengthy, "0") != 0;
    if (!parse_options(argc, argv)) {
        usage(tests, count);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    watch_for_crashes();

    int number = 0, bad = 0;
    for (size_t i = 0; i < count; i++) {
        if (tap.only && fnmatch(tap.only, tests[i].name, 0) != 0)
            continue;
        test_name = tests[i].name;
        case_name[0] = '\0';
        skip_reason = NULL;
        checks = failures = 0;
        tests[i].run();
        if (checks == 0 && !skip_reason) {
            failures++;
            printf("# %s\n", tap.one_case ? "no case has this name" : "the test checked nothing");
        }
        bad += failures != 0;
        printf("%s %d - %s (%d checks)%s%s\n", failures ? "not ok" : "ok", ++number, test_name, checks,
               skip_reason && !failures ? " # SKIP " : "", skip_reason && !failures ? skip_reason : "");
    }
    printf("1..%d\n", number);
    if (number == 0)
        printf("# no test matches '%s'\n", tap.only ? tap.only : "");
    return bad || number == 0;
}

bool tap_case(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(case_name, sizeof case_name, format, args);
    va_end(args);
    return !tap.one_case || !strcmp(tap.one_case, case_name);
}

bool tap_check(bool good, const char *format, ...)
{
    checks++;
    if (good)
        return true;
    if (failures++ < MOST_DIAGNOSTICS) {
        char text[4096];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        printf("# %s: %s\n", test_name, text);
        reproduce(text, sizeof text);
        fputs(text, stdout);
    } else if (failures == MOST_DIAGNOSTICS + 1) {
        printf("# %s: further failures are counted, not printed\n", test_name);
    }
    return false;
}

void tap_note(const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("# %s\n", text);
}

void tap_skip(const char *reason)
{
    skip_reason = reason;
}
int tap_failures(void)
{
    return failures;
}
int tap_amount(int quick, int normal, int lengthy)
{
    return tap.quick ? quick : tap.lengthy ? lengthy : normal;
}
