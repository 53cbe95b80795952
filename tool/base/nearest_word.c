/*
 * nearest_word.c - the word that was probably meant. See nearest_word.h.
 */
#include "nearest_word.h"

#include <string.h>

/* Edits (insert, delete, replace) from a to b, for words of up to 63 letters; a large number for longer ones. */
static int distance(const char *a, const char *b)
{
    size_t length_a = strlen(a);
    size_t length_b = strlen(b);
    int row[64];
    if (length_a > 63 || length_b > 63)
        return 1000;
    for (size_t j = 0; j <= length_b; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= length_a; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= length_b; j++) {
            int replace = diagonal + (a[i - 1] != b[j - 1]);
            int other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replace < other ? replace : other;
        }
    }
    return row[length_b];
}

/* The word that was probably meant: few edits away, or one that `word` begins. NULL if none is near. */
const char *nearest_word(const char *word, const char *const *words, int count)
{
    const char *best = NULL;
    int least = strlen(word) > 4 ? 3 : 2;
    for (int i = 0; i < count; i++) {
        int edits = distance(word, words[i]);
        if (strlen(word) >= 2 && strncmp(word, words[i], strlen(word)) == 0)
            edits = 1;
        if (edits < least) {
            least = edits;
            best = words[i];
        }
    }
    return best;
}
