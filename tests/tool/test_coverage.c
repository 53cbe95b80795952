/*
 * test_coverage.c - the text with a line for each clause (clause_lines.h): what a line is, and where it says that it comes from.
 */
#include "build/clause_lines.h"

#include <stdio.h>
#include <string.h>

#include "tap.h"

static const char text[] = "# 1 \"/tmp/kernel.c\"\n"
                           "# 1 \"/usr/include/math.h\" 1 3\n"
                           "int of_system(void);\n"
                           "# 2 \"/tmp/kernel.c\" 2\n"
                           "#pragma GCC unroll 4\n"
                           "/* no; clause\n"
                           "   here */ int f(int a, int b) { return a && b ? \";{\" [0] : '\\''; }\n"
                           "# 9 \"include/attest_kernel.h\"\n"
                           "int of_attest;\n";

/* "LINE own|other TEXT" of each clause that has text. */
static const char expected[] = "1 other int of_system(void);\n"
                               "2 own #pragma GCC unroll 4\n"
                               "4 own int f(int a, int b) {\n"
                               "4 own return a &&\n"
                               "4 own b ?\n"
                               "4 own \";{\" [0] :\n"
                               "4 own '\\'';\n"
                               "4 own }\n"
                               "9 other int of_attest;\n";

static void clauses(void)
{
    struct clause_lines lines;
    char found[2000] = "";
    size_t used = 0;
    if (!tap_check(clause_lines_make(&lines, text), "out of memory"))
        return;
    for (int i = 0; i < lines.count; i++) {
        char clause[200];
        clause_print(&lines, i, clause, sizeof clause);
        if (*clause)
            used += (size_t)snprintf(found + used, sizeof found - used, "%d %s %s\n", lines.clauses[i].line,
                                     lines.clauses[i].is_own ? "own" : "other", clause);
    }
    tap_check(strcmp(found, expected) == 0, "the clauses are %s", found);
    int ends = 0;
    for (const char *at = lines.text; *at; at++)
        ends += *at == '\n';
    tap_check(ends == lines.count, "%d clauses in %d lines", lines.count, ends);
    clause_lines_free(&lines);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {{"clauses", clauses}};
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
