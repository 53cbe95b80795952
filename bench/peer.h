/*
 * peer.h - what a peer library looks like to the benchmark: set up one problem, run it many times, free it.
 *
 * A peer is a shared object that exports these functions. Tensors are gap-free [batch, head, row, dim]; query head h reads
 * KV head h / (heads_q / heads_kv); causal is top-left. A peer offers several variants of itself because we do not know its
 * fastest way for every shape beforehand: the benchmark tries them all and times the best one.
 */
#ifndef PEER_H
#define PEER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PEER_F32 = 1, PEER_F16 = 2, PEER_BF16 = 3 };

struct peer_shape {
    int64_t batch, heads_q, heads_kv, seq_q, seq_kv, dim;
    int64_t dtype;
    int64_t causal;
    int64_t threads;
};

/* The version of the library behind the peer, with what it found out about this CPU. */
const char *peer_version(void);

/* The name of a variant, NULL after the last one. */
const char *peer_variant(int variant);

/* NULL and a sentence in `why` if the variant cannot do this problem here. */
void *peer_setup(const struct peer_shape *shape, int variant, const void *q, const void *k, const void *v, void *o, char *why,
                 size_t why_size);

/* Computes O once; 0 is success. */
int peer_run(void *peer);
void peer_free(void *peer);

#ifdef __cplusplus
}
#endif
#endif
