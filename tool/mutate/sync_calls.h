/*
 * sync_calls.h - which calls of CUDA code synchronise: those whose name has one of the words of the device vocabulary for it.
 */
#ifndef ATTEST_SYNC_CALLS_H
#define ATTEST_SYNC_CALLS_H

#include <string.h>

#include "finder.h"

/* Whether the name at i contains one of the words. */
static inline bool sync_call_has(const struct finder *finder, int i, const char *words)
{
    const struct tokens *tokens = &finder->tokens;
    const char *name = tokens->text + tokens->list[i].begin;
    size_t length = token_length(tokens, i);
    while (*words) {
        size_t n = strcspn(words, " ");
        if (memmem(name, length, words, n))
            return true;
        words += n;
        words += strspn(words, " ");
    }
    return false;
}

static inline bool is_sync_call(const struct finder *finder, int i)
{
    return finder->options->cuda && token_is_kind(&finder->tokens, i, TOKEN_NAME) &&
           (finder_is(finder, i + 1, "(") || finder_is(finder, i + 1, "<")) &&
           sync_call_has(finder, i, "__syncthreads __syncwarp barrier fence wait arrive expect commit");
}

#endif
