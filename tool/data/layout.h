/*
 * layout.h - where the elements of a problem lie, and which keys a row may see. Written from the text of <attest.h>, for walking
 * over tensors and counting work; the oracle does not use it.
 */
#ifndef ATTEST_LAYOUT_H
#define ATTEST_LAYOUT_H

#include <attest.h>
#include <stdbool.h>
#include <stddef.h>

/* A problem together with the lengths and tables that are data. Pointers of features that are off are NULL; where the last
 * three are, every row, the first key and place 0 are taken. */
struct layout {
    const attest_problem *problem;
    const int32_t *cu_q;
    const int32_t *cu_kv;
    const int32_t *lengths;
    const int32_t *pages;
    const int32_t *rows, *starts, *offsets;
};

/* Rows and keys of sequence b, and the query rows of all sequences and heads together. */
int64_t layout_rows(const struct layout *layout, int64_t b);
int64_t layout_keys(const struct layout *layout, int64_t b);
int64_t layout_total_rows(const struct layout *layout);

/* Offset of row i of head h, in a tensor with the layout of Q (Q, O, LSE), and of key j of KV head h (K, V). */
int64_t layout_row_at(const struct layout *layout, const int64_t stride[3], int64_t b, int64_t h, int64_t i);
int64_t layout_key_at(const struct layout *layout, const int64_t stride[3], int64_t b, int64_t h, int64_t j);

/* Keys begin <= j < end are what the masks let row i see, and what they let any row of sequence b see. Biases are not looked at. */
void layout_visible(const struct layout *layout, int64_t b, int64_t i, int64_t *begin, int64_t *end);
void layout_live(const struct layout *layout, int64_t b, int64_t *begin, int64_t *end);

/* Floating-point operations of the problem, and the bytes of K and V that some row sees. */
double layout_flops(const struct layout *layout);
double layout_kv_bytes(const struct layout *layout);

/* A tensor as an array of up to four dimensions, as run reads and writes it. A dimension that is broadcast (stride 0) has size 1.
 */
struct view {
    int rank;
    int64_t shape[4];
    int64_t stride[4];
};

/* `tensor` is 'q', 'k', 'v', 'o', 'l', 'b' or 'm', as in attest_problem_extent. */
struct view layout_view(const attest_problem *problem, char tensor);
int64_t view_count(const struct view *view);

/* True if no two elements of the tensor can share a place, so that threads may write different elements at once. */
bool layout_distinct(const attest_problem *problem, char tensor);

/* Offset of the element with the given place in C order. */
int64_t view_at(const struct view *view, int64_t index);

/* Elements of the types that a problem sets, and bytes of a mask. */
size_t element_size(uint32_t dtype);
const char *element_name(uint32_t dtype);
float element_load(const void *base, uint32_t dtype, int64_t at);
void element_store(void *base, uint32_t dtype, int64_t at, float value);

#endif
