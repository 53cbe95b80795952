/*
 * timed_inputs.c - fresh inputs for every timed call (see timed_inputs.h).
 */
#include "timed_inputs.h"

#include <string.h>

#include "base/random.h"

bool feed_make(struct feed *feed, const attest_problem *problem, uint64_t seed, enum exit_code *code, char *why, size_t why_size)
{
    *feed = (struct feed){.seed = seed};
    return inputs_make(problem, seed, NULL, &feed->inputs, code, why, why_size);
}

void feed_free(struct feed *feed)
{
    inputs_free(&feed->inputs);
    *feed = (struct feed){0};
}

/* The signs of eight bytes of a tensor, in the sets of this key; none in set 0. */
static uint64_t signs(uint64_t key, uint64_t word)
{
    return key ? random_mix(key + word * UINT64_C(0x9e3779b97f4a7c15)) : 0;
}

static uint64_t key_of(const struct feed *feed, uint64_t number, int tensor)
{
    return number ? random_bits(feed->seed, number, (uint64_t)tensor) | 1 : 0;
}

static void turn_buffer(struct buffer *buffer, uint64_t old, uint64_t new)
{
    uint64_t bits = buffer->dtype == ATTEST_F32 ? UINT64_C(0x8000000080000000) : UINT64_C(0x8000800080008000);
    for (size_t at = 0, word = 0; at < buffer->bytes; at += 8, word++) {
        size_t size = buffer->bytes - at < 8 ? buffer->bytes - at : 8;
        uint64_t value = 0;
        memcpy(&value, buffer->base + at, size);
        value ^= (signs(old, word) ^ signs(new, word)) & bits;
        memcpy(buffer->base + at, &value, size);
    }
}

void feed_turn(struct feed *feed, uint64_t number)
{
    struct buffer *buffers[] = {&feed->inputs.q, &feed->inputs.k, &feed->inputs.v};
    for (int i = 0; i < COUNT_OF(buffers); i++)
        turn_buffer(buffers[i], key_of(feed, feed->number, i), key_of(feed, number, i));
    feed->number = number;
}

size_t feed_bytes(const struct feed *feed)
{
    return feed->inputs.q.bytes + feed->inputs.k.bytes + feed->inputs.v.bytes + feed->inputs.bias.bytes;
}
