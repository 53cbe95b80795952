/*
 * worker_end.c - how a worker came to its end, in a sentence (see supervisor.h). From its status, from what its signal handler has
 * noted on the board, which a kernel can falsify but not to its advantage, and from what it has printed.
 */
#include "supervisor.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "sandbox.h"

enum { NEAR = 1 << 16 }; /* bytes: as far as an address can be from something and still belong to it */

void ending_say(struct execution *execution, enum execution_end end, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(execution->sentence, sizeof execution->sentence, format, arguments);
    va_end(arguments);
    execution->end = end;
    execution->seconds = 0;
}

bool ending_greedy(const struct executor *executor, struct execution *execution)
{
    int64_t used = executor->peak - executor->lent - (int64_t)sizeof(struct board);
    if (executor->relaxed || executor->on_device || used <= executor->memory)
        return false;
    ending_say(execution, EXECUTION_GREEDY, "it used %.0f MiB of memory; %.0f are allowed beside the tensors",
               (double)used / 0x1p20, (double)executor->memory / 0x1p20);
    return true;
}

/* Words for what is not as it was. */
static const struct {
    const char *what;
    bool shows; /* the register is worth showing */
} disorders[REGISTERS_COUNT] = {
    [REGISTERS_FLUSH] = {"flush-to-zero or denormals-are-zero is on", true},
    [REGISTERS_ROUNDING] = {"the rounding mode is another", true},
    [REGISTERS_MASKS] = {"floating-point exceptions are not masked as they were", true},
    [REGISTERS_PRECISION] = {"the control word of the x87 is another", true},
    [REGISTERS_STACK] = {"values are left on the x87 stack, or MMX registers are in use (emms is missing)", false},
    [REGISTERS_DIRECTION] = {"the direction flag is set", false},
    [REGISTERS_ALIGNMENT] = {"the alignment-check flag is set", false},
};

bool ending_disorder(const struct executor *executor, struct execution *execution)
{
    static const char *const functions[FUNCTION_COUNT] = {"entry", "scratch_size or shared_size", "prepare", "tile", "one"};
    const struct board *board = executor->board;
    int32_t state = board->state, place = board->place;
    uint32_t value = board->value;
    if (board->swapped) {
        ending_say(execution, EXECUTION_INVALID, "it changed its table after that was taken");
        return true;
    }
    if (state == REGISTERS_KEPT)
        return false;
    if (state < 0 || state >= REGISTERS_COUNT || place < 0 || place >= FUNCTION_COUNT) {
        ending_say(execution, EXECUTION_INVALID, "it wrote to the page on which the worker keeps notes");
        return true;
    }
    char shown[32] = "";
    if (disorders[state].shows)
        snprintf(shown, sizeof shown, " (%#x)", value);
    ending_say(execution, EXECUTION_INVALID, "it leaves the processor in another state: after a call of %s %s%s", functions[place],
               disorders[state].what, shown);
    return true;
}

/* ---- what it printed ------------------------------------------------------------------------------------------------ */

void ending_clean(char *text)
{
    json_t *valid = json_string(text);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f || (!valid && (unsigned char)*at > 0x7f))
            *at = ' ';
    json_decref(valid);
}

/* Copies the line that `at` is in. */
static void copy_line(const char *text, const char *at, char *line, size_t size)
{
    while (at > text && at[-1] != '\n')
        at--;
    snprintf(line, size, "%.*s", (int)strcspn(at, "\n"), at);
    ending_clean(line);
}

bool ending_report(struct executor *executor, char *text, size_t size)
{
    static const char *const marks[] = {"SUMMARY: AddressSanitizer", "SUMMARY: LeakSanitizer", "runtime error: ",
                                        "ERROR: AddressSanitizer",   "Invalid read",           "Invalid write",
                                        "Conditional jump",          "uninitialised",          "definitely lost in"};
    const char *printed = executor_printed(executor);
    for (int i = 0; i < COUNT_OF(marks); i++) {
        const char *found = strstr(printed, marks[i]);
        if (!found)
            continue;
        copy_line(printed, found, text, size);
        size_t prefix = strspn(text, "=0123456789 "); /* of valgrind: the process */
        memmove(text, text + prefix, strlen(text) + 1 - prefix);
        const char *end = strchr(found, '\n'), *place = end ? strstr(end, ": ") : NULL; /* in the next line: where */
        if (prefix && place) {
            size_t used = strlen(text);
            snprintf(text + used, size - used, " in %.*s", (int)strcspn(place + 2, "\n"), place + 2);
        }
        return true;
    }
    return false;
}

void ending_quote(struct executor *executor, struct execution *execution, bool last_line)
{
    const char *printed = executor_printed(executor), *last = printed + strlen(printed);
    size_t used = strlen(execution->sentence);
    char line[200];
    while (last > printed && last[-1] == '\n')
        last--;
    copy_line(printed, last_line ? last : printed + strspn(printed, "\n"), line, sizeof line);
    if (*line)
        snprintf(execution->sentence + used, sizeof execution->sentence - used, "; it printed: %s", line);
}

/* ---- addresses ------------------------------------------------------------------------------------------------------ */

/* The tensor of any slot that is nearest to the address; as arena_locate. */
static int64_t locate(const struct executor *executor, uint64_t address, char *text, size_t size, bool *input)
{
    int64_t best = -1;
    for (int i = 0; i < EXECUTOR_SLOTS; i++) {
        char this[160];
        bool this_input = false;
        if (!arena_is_made(&executor->slots[i]))
            continue;
        int64_t distance = arena_locate(&executor->slots[i], executor->board->bases[i], address, this, sizeof this, &this_input);
        if (distance < 0 || distance > NEAR || (best >= 0 && distance >= best))
            continue;
        best = distance;
        *input = this_input;
        snprintf(text, size, "%s", this);
    }
    return best;
}

static int64_t distance_between(uint64_t a, uint64_t b)
{
    uint64_t distance = a > b ? a - b : b - a;
    return distance > INT64_MAX ? INT64_MAX : (int64_t)distance;
}

static void describe_address(struct executor *executor, struct execution *execution)
{
    const struct board *board = executor->board;
    const char *did = board->written < 0 ? "touched" : board->written ? "wrote" : "read";
    uint64_t address = board->address;
    char tensor[160] = "";
    bool input = false, behind = address >= board->scratch_end;
    int64_t from_tensor = locate(executor, address, tensor, sizeof tensor, &input);
    int64_t from_scratch =
        behind ? distance_between(address, board->scratch_end) + 1 : distance_between(board->scratch_begin, address);
    if (address < 4096)
        ending_say(execution, EXECUTION_CRASHED, "it crashed: it %s address %llu, through a null pointer", did,
                   (unsigned long long)address);
    else if (from_tensor == 0 && input && board->written != 0)
        ending_say(execution, EXECUTION_CRASHED, "it crashed: it wrote to an input: %s", tensor);
    else if (board->scratch_end && from_scratch < NEAR && (from_tensor < 0 || from_scratch < from_tensor))
        ending_say(execution, EXECUTION_CRASHED, "it crashed: it %s byte %lld %s its scratch memory", did, (long long)from_scratch,
                   behind ? "behind the end of" : "before the start of");
    else if (from_tensor > 0)
        ending_say(execution, EXECUTION_CRASHED, "it crashed: it %s %s", did, tensor);
    else if (distance_between(address, board->stack) < NEAR)
        ending_say(execution, EXECUTION_CRASHED, "it crashed: its stack overflowed");
    else
        ending_say(execution, EXECUTION_CRASHED, "it crashed: it %s address %#llx, which belongs to no tensor", did,
                   (unsigned long long)address);
}

/* ---- statuses ------------------------------------------------------------------------------------------------------- */

static void describe_signal(struct executor *executor, int number, struct execution *execution)
{
    const struct board *board = executor->board;
    bool noted = board->signal == number;
    char text[128];
    if (number == SIGSEGV && noted && (board->faulting == FAULTING_COUNTER || board->faulting == FAULTING_CPUID)) {
        ending_say(execution, EXECUTION_CRASHED, "it %s, which the sandbox does not allow",
                   board->faulting == FAULTING_COUNTER ? "read the clock (the time-stamp counter)"
                                                       : "asked which processor it runs on (cpuid)");
    } else if ((number == SIGSEGV || number == SIGBUS) && noted) {
        describe_address(executor, execution);
    } else if (number == SIGSYS && noted) {
        sandbox_call_text(board->call, text, sizeof text);
        ending_say(execution, EXECUTION_CRASHED, "it tried to %s%s, which the sandbox does not allow", text,
                   board->foreign == 1 ? " by a system call of its own" : "");
    } else if (number == SIGSYS) {
        ending_say(
            execution, EXECUTION_CRASHED,
            "it tried to start a thread or a process (or something else with signals blocked), which the sandbox does not allow");
    } else {
        ending_say(execution, EXECUTION_CRASHED, "it crashed: %s%s", strsignal(number),
                   number == SIGFPE    ? ", such as a division by zero"
                   : number == SIGILL  ? ", which this processor does not have"
                   : number == SIGABRT ? ", by a call of abort"
                   : number == SIGKILL ? ", by the system, perhaps for want of memory"
                                       : "");
    }
}

void ending_describe(struct executor *executor, int status, struct execution *execution)
{
    char line[400];
    if (executor->relaxed && ending_report(executor, line, sizeof line)) {
        ending_say(execution, EXECUTION_CRASHED, "%s", line);
        return;
    }
    if (ending_greedy(executor, execution)) /* it took it faster than anyone looks, and then died for want of more */
        return;
    if (WIFSIGNALED(status))
        describe_signal(executor, WTERMSIG(status), execution);
    else if (WEXITSTATUS(status) == EXIT_LOST)
        ending_say(execution, EXECUTION_INVALID, "it closed the socket that the worker speaks through");
    else if (WEXITSTATUS(status) == EXIT_MEMORY)
        ending_say(execution, EXECUTION_GREEDY, "there was no memory for its scratch");
    else
        ending_say(execution, EXECUTION_EXITED, "it left by itself, with exit status %d, in the middle of a request",
                   WEXITSTATUS(status));
    ending_quote(executor, execution, WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT); /* which says why last of all */
}
