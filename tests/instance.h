/*
 * instance.h - a problem with its data in memory: where the bytes lie, what is in them, and whether a run left alone what it
 * must leave alone. The masks and addresses here are written from attest.h again and share nothing with the library.
 */
#ifndef INSTANCE_H
#define INSTANCE_H

#include <attest.h>

#include <stdbool.h>

/* ------------------------------------------------------------------------------------------------------------ random -- */

struct rng {
    uint64_t state;
};
struct rng rng_from(uint64_t seed, const char *name);
uint64_t rng_next(struct rng *rng);
int64_t rng_below(struct rng *rng, int64_t n); /* 0 .. n-1 */
double rng_uniform(struct rng *rng);           /* [0, 1) */
double rng_normal(struct rng *rng);
bool rng_chance(struct rng *rng, int one_in);

/* ----------------------------------------------------------------------------------------------------------- buffers -- */

/* PLAIN has a fringe of known bytes on both sides; the others put an inaccessible page right behind or right before. */
enum placement { PLACE_PLAIN, PLACE_GUARD_AFTER, PLACE_GUARD_BEFORE };

struct buffer {
    void *data;           /* element 0: what the library is given (it may lie outside the bytes when strides are negative) */
    unsigned char *bytes; /* the bytes that may be addressed */
    size_t size;
    unsigned char *whole; /* bytes and fringe */
    size_t whole_size;
    void *map; /* what to unmap or to free */
    size_t map_size;
};
bool buffer_create(struct buffer *buffer, enum placement placement, int64_t first, int64_t count, size_t element);
void buffer_destroy(struct buffer *buffer);
void buffer_fill_nan(struct buffer *buffer, uint32_t dtype);
uint64_t buffer_hash(const struct buffer *buffer);

size_t type_bytes(uint32_t dtype);
const char *type_name(uint32_t dtype);
double type_unit(uint32_t dtype);     /* unit roundoff: half an ulp of 1 */
double type_smallest(uint32_t dtype); /* the smallest denormal */
double type_largest(uint32_t dtype);
double type_round(uint32_t dtype, double value);
double load(uint32_t dtype, const void *data, int64_t offset);
void store(uint32_t dtype, void *data, int64_t offset, double value);

/* ---------------------------------------------------------------------------------------------------------- instance -- */

struct instance {
    attest_problem problem;
    attest_tensors tensors;
    uint64_t seed;
    int64_t first_batch;
    bool nan_behind_bias;
    struct buffer q, k, v, o, lse, bias, alibi, sinks, cu_q, cu_kv, lengths, pages;
    uint64_t input_hash;
};

/*
 * The value of one element: tensor is 'q', 'k', 'v', 'b' (bias; d is the key), 'a' (slope of head h) or 's' (sink of head h).
 * NULL stands for values_normal.
 */
typedef double value_function(const struct instance *in, struct rng *rng, char tensor, int64_t b, int64_t h, int64_t row,
                              int64_t d);
value_function values_normal;

/* The generator that a value function gets for this element, to look up what another element's value is. */
struct rng instance_rng(const struct instance *in, char tensor, int64_t b, int64_t h, int64_t row, int64_t d);

struct instance_options {
    enum placement placement;
    value_function *values;
    int64_t first_batch;  /* sequence b here has the values that sequence first_batch + b has in an instance with the same seed */
    const int32_t *rows;  /* [batch] lengths instead of drawn ones */
    const int32_t *keys;  /* [batch] */
    bool nan_behind_bias; /* keys that nothing but a bias of -inf hides are NaN, too */
};

/*
 * Lengths and page tables are drawn from the seed; whatever no row may see is NaN. A value depends on the seed and its logical
 * place alone, so two instances with one seed have the same values in any layout. False (and a tap failure) if it cannot be.
 */
bool instance_create(struct instance *in, const attest_problem *problem, uint64_t seed, const struct instance_options *options);
void instance_destroy(struct instance *in);

/* Fills the outputs with NaN and remembers the inputs; after a run, checks that inputs and all unaddressed bytes are as before. */
void instance_poison(struct instance *in);
bool instance_untouched(const struct instance *in, char *why, size_t why_size);
bool instance_no_write(const struct instance *in);

/* Rewrites Q, K, V and bias with other values, at the places that rows can see; lengths and page tables stay. */
void instance_refill(struct instance *in, value_function *values);

int64_t instance_rows(const struct instance *in, int64_t b);
int64_t instance_keys(const struct instance *in, int64_t b);
bool instance_visible(const struct instance *in, int64_t b, int64_t i, int64_t j);         /* by the mask */
bool instance_seen(const struct instance *in, int64_t b, int64_t h, int64_t i, int64_t j); /* by mask and bias */
/* Whether any row of the sequence may see the key: by the mask, and by the bias if the instance was made so. */
bool instance_key_in_use(const struct instance *in, int64_t b, int64_t kv_head, int64_t j);

int64_t offset_q(const struct instance *in, int64_t b, int64_t h, int64_t i);
int64_t offset_k(const struct instance *in, int64_t b, int64_t kv_head, int64_t j);
int64_t offset_v(const struct instance *in, int64_t b, int64_t kv_head, int64_t j);
int64_t offset_o(const struct instance *in, int64_t b, int64_t h, int64_t i);
int64_t offset_lse(const struct instance *in, int64_t b, int64_t h, int64_t i);
int64_t offset_bias(const struct instance *in, int64_t b, int64_t h, int64_t i, int64_t j);

#endif
