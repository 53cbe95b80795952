/*
 * nearest_word.h - the word that was probably meant, for messages about one that is not known.
 */
#ifndef ATTEST_NEAREST_WORD_H
#define ATTEST_NEAREST_WORD_H

/* Few edits away, or one that `word` begins. NULL if none is near. */
const char *nearest_word(const char *word, const char *const *words, int count);

#endif
