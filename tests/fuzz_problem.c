/* Fuzzer of the problem string: whatever parses is valid, prints, and parses back to the same struct; the rest gets a sentence. */
#include "fuzz_main.h"

#include <attest.h>

#include <stdlib.h>
#include <string.h>

static void demand(int condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = malloc(size + 1), why[300], text[ATTEST_PROBLEM_TEXT];
    demand(line != NULL);
    memcpy(line, data, size);
    line[size] = '\0';
    attest_problem p, again;
    memset(&p, 0x5A, sizeof p);
    attest_status status = attest_problem_parse(line, &p, why, sizeof why);
    demand(memchr(why, '\0', sizeof why) != NULL);
    if (status == ATTEST_OK) {
        demand(why[0] == '\0' && attest_problem_check(&p, NULL, 0) == ATTEST_OK);
        demand(attest_problem_print(&p, text, sizeof text) == ATTEST_OK);
        demand(attest_problem_parse(text, &again, NULL, 0) == ATTEST_OK && !memcmp(&p, &again, sizeof p));
        for (const char *letter = "qkvolb"; *letter; letter++) {
            int64_t first, count;
            demand(attest_problem_extent(&p, *letter, &first, &count) == ATTEST_OK && count >= 0 && (count == 0 || first <= 0));
        }
    } else {
        demand((status == ATTEST_ERROR_PARSE || status == ATTEST_ERROR_ARGUMENT) && why[0] != '\0');
    }
    free(line);
    return 0;
}
