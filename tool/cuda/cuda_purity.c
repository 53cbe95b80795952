/*
 * cuda_purity.c - see cuda_purity.h and the table cuda_purity.def.
 */
#include "cuda_purity.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit_code.h"

struct rule {
    const char *pattern, *reason; /* without a reason: allowed */
};

static const struct rule rules[] = {
#define REFUSED(pattern, reason) {pattern, reason},
#include "cuda_purity.def"
};

static const char *const opcodes[] = {
#define ALLOWED(opcode) #opcode,
#include "cuda_purity.def"
};

static const char *const special[] = {
#define REGISTER(name) #name,
#include "cuda_purity.def"
};

static const struct rule special_refused[] = {
#define REGISTER_NO(pattern, reason) {pattern, reason},
#include "cuda_purity.def"
};

static const struct words {
    int from, to;
    long first, last;
    const char *what; /* NULL: may be read */
} words[] = {
#define WORD(from, to, first, last)          {from, to, first, last, NULL},
#define WORD_NO(from, to, first, last, what) {from, to, first, last, what},
#include "cuda_purity.def"
};

static const char *const clusters[] = {
#define CLUSTER(pattern) pattern,
#include "cuda_purity.def"
};

/* ---- one instruction ---------------------------------------------------------------------------------------------------------- */

static bool is_allowed(const char *opcode)
{
    for (int i = 0; i < COUNT_OF(opcodes); i++)
        if (strcmp(opcodes[i], opcode) == 0)
            return true;
    return false;
}

/* The special register that an instruction reads. */
static bool judge_special(const char *text, char *why, size_t size)
{
    const char *at = strstr(text, "SR_");
    if (!at)
        return true;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " ,;"), at);
    for (int i = 0; i < COUNT_OF(special); i++)
        if (strcmp(special[i], name) == 0)
            return true;
    const char *reason = "a special register that is not a function of the launch";
    for (int i = 0; i < COUNT_OF(special_refused); i++)
        if (fnmatch(special_refused[i].pattern, name, 0) == 0)
            reason = special_refused[i].reason;
    snprintf(why, size, "reads %s", reason);
    return false;
}

/* The words of constant bank 0 that an instruction reads, such as c[0x0][0x28] or c[0x0][R2+0x210]. */
static bool judge_words(const char *text, int arch, char *why, size_t size)
{
    static const char bank[] = "c[0x0][";
    for (const char *at = strstr(text, bank); at; at = strstr(at, bank)) {
        at += sizeof bank - 1;
        const char *end = at + strcspn(at, "]"), *number = at;
        while (number < end && strncmp(number, "0x", 2) != 0)
            number++;
        if (number == end) {
            snprintf(why, size, "reads the driver's constants at a place that only a register says");
            return false;
        }
        bool negative = number > at && number[-1] == '-', good = false;
        const char *what = "a word of the driver's that is not an argument";
        long place = negative ? -1 : strtol(number, NULL, 16);
        for (int i = 0; i < COUNT_OF(words); i++)
            if (arch >= words[i].from && arch <= words[i].to && place >= words[i].first && place <= words[i].last) {
                good = good || !words[i].what;
                what = words[i].what ? words[i].what : what;
            }
        if (!good) {
            snprintf(why, size, "reads %s", what);
            return false;
        }
    }
    return true;
}

static bool judge_instruction(const char *text, int arch, char *why, size_t size)
{
    char opcode[48];
    snprintf(opcode, sizeof opcode, "%.*s", (int)strcspn(text, ". "), text);
    bool known = false;
    for (int i = 0; i < COUNT_OF(rules) && !known; i++) {
        const char *pattern = rules[i].pattern;
        if (*pattern != '*' && *pattern != *text)
            continue;
        known = fnmatch(pattern, text, 0) == 0;
        if (known && rules[i].reason) {
            snprintf(why, size, "%s", rules[i].reason);
            return false;
        }
    }
    if (!known && !is_allowed(opcode)) {
        snprintf(why, size, "is not among the instructions that a kernel is known to need");
        return false;
    }
    return judge_special(text, why, size) && judge_words(text, arch, why, size);
}

/* ---- a listing ------------------------------------------------------------------------------------------------------------------ */

/* An instruction of the listing, without its predicate; false if the line has none. */
static bool read_line(const char *line, const char *end, char *text, size_t size, unsigned long *address)
{
    char *after;
    while (line < end && (*line == ' ' || *line == '\t'))
        line++;
    if (end - line < 8 || strncmp(line, "/*", 2) != 0 || line[2] == ' ')
        return false;
    *address = strtoul(line + 2, &after, 16);
    const char *stop = memchr(line, ';', (size_t)(end - line));
    if (strncmp(after, "*/", 2) != 0 || !stop)
        return false;
    line = after + 2;
    while (line < stop && *line == ' ')
        line++;
    if (*line == '@') {
        while (line < stop && *line != ' ')
            line++;
        while (line < stop && *line == ' ')
            line++;
    }
    while (stop > line && stop[-1] == ' ')
        stop--;
    snprintf(text, size, "%.*s", (int)(stop - line), line);
    return true;
}

void cuda_purity_listing(const char *listing, int arch, struct cuda_purity *purity)
{
    static const char mark[] = "Function : ";
    char name[64] = "?", text[256], why[240];
    *purity = (struct cuda_purity){0};
    for (const char *line = listing; line;) {
        const char *newline = strchr(line, '\n'), *end = newline ? newline : line + strlen(line);
        const char *function = memmem(line, (size_t)(end - line), mark, sizeof mark - 1);
        unsigned long address;
        if (function) {
            function += sizeof mark - 1;
            snprintf(name, sizeof name, "%.*s", (int)(end - function), function);
        } else if (read_line(line, end, text, sizeof text, &address)) {
            purity->instructions++;
            for (int i = 0; i < COUNT_OF(clusters) && !purity->cluster[0]; i++)
                if (fnmatch(clusters[i], text, 0) == 0)
                    snprintf(purity->cluster, sizeof purity->cluster, "%s+%#lx %.100s", name, address, text);
            if (!judge_instruction(text, arch, why, sizeof why) && purity->refused++ == 0) {
                snprintf(purity->first, sizeof purity->first, "%s+%#lx %.120s %s", name, address, text, why);
                snprintf(purity->first_name, sizeof purity->first_name, "%s", name);
                purity->address = address;
            }
        }
        line = newline ? newline + 1 : NULL;
    }
}
