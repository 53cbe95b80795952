/*
 * rewritten.c - what tool/emulation/rewrite.h makes of the preprocessed kernel on stdin, on stdout.
 */
#include "emulation/rewrite.h"

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    size_t size = 0, room = 1 << 24;
    char *text = malloc(room), why[400];
    if (!text)
        return 1;
    size = fread(text, 1, room, stdin);
    char *made = size < room ? rewrite_kernel(text, size, why, sizeof why) : NULL;
    if (made)
        fputs(made, stdout);
    else
        fprintf(stderr, "%s\n", size < room ? why : "too long");
    free(text);
    free(made);
    return made && fflush(stdout) == 0 ? 0 : 1;
}
