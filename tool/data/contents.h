/*
 * contents.h - what tensors hold: lengths, tables, slopes, sinks, biases, magnitudes, and values that are not finite, each by a word
 * of contents.def. A problem says nothing of these, and kernels go wrong on them all the same.
 */
#ifndef ATTEST_CONTENTS_H
#define ATTEST_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum content {
#define CONTENT(name, ...) CONTENT_##name,
#include "contents.def"
#undef CONTENT
    CONTENT_COUNT
};

/* Words of three of them, in their order. */
enum { SHARED_APART, SHARED_K_V, SHARED_CU_SEQLENS, SHARED_SLOPES_SINKS };
enum { QK_NORMAL, QK_Q_TINY, QK_Q_LARGE, QK_BY_HEAD, QK_BY_ROW, QK_ONE_ROW };
enum { V_NORMAL, V_TINY, V_LARGE, V_BY_HEAD, V_BY_ROW, V_BY_COLUMN, V_HUGE, V_ONE_COLUMN };

/* The number of a word for each property; 0 is the default. */
struct contents {
    int word[CONTENT_COUNT];
};

const char *content_name(enum content content);
int content_words(enum content content);
const char *content_word(enum content content, int word);

/* "slopes=mixed,v=by-head"; "" if all are the defaults. Parsing returns false, with a sentence, for words that are not there. */
enum { CONTENTS_TEXT = 256 };
void contents_print(const struct contents *contents, char text[CONTENTS_TEXT]);
bool contents_parse(const char *text, struct contents *contents, char *why, size_t why_size);

struct inputs;

/* Puts slopes, sinks, biases, magnitudes and special values into inputs that inputs_make drew for their lengths and tables. What must
 * not matter stays NaN. */
void contents_apply(const struct contents *contents, struct inputs *inputs, uint64_t seed);

/* Whether some row sees a value that is not finite, by the words alone. */
bool contents_special(const struct contents *contents);

#endif
