/*
 * peer_openblas.c - attention the way one writes it over a BLAS: S = Q K^T, softmax of the rows, O = S V, one head at a time.
 *
 * The whole square of scores is computed for causal problems too, as BLAS knows no triangle times rectangle of this kind; the
 * softmax then reads the visible part of each row only, and the rest is zeroed. float32 only. Two ways to use the threads:
 *   heads  each thread takes whole heads and calls a single-threaded BLAS: best when there are enough heads
 *   blas   heads one after the other, the threads inside sgemm and over the rows of the softmax
 * The query heads that share a KV head are adjacent in memory, so a decode step (one row a head) is one product of
 * group x dim for each KV head, which reads K and V once only.
 */
#include "peer.h"

#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

struct peer {
    struct peer_shape shape;
    const float *q, *k, *v;
    float *o;
    float *scores; /* [teams][rows][seq_kv] */
    int64_t rows;  /* rows of Q that one product takes: a whole head, or the group of heads of one KV head */
    int heads_in_parallel;
};

const char *peer_version(void)
{
    static char text[256];
    char version[64] = "";
    sscanf(openblas_get_config(), "OpenBLAS %63s", version);
    snprintf(text, sizeof text, "%s, %s kernels", version, openblas_get_corename());
    return text;
}

const char *peer_variant(int variant)
{
    static const char *const names[] = {"heads in parallel", "threads inside BLAS"};
    return variant < 2 ? names[variant] : NULL;
}

void *peer_setup(const struct peer_shape *shape, int variant, const void *q, const void *k, const void *v, void *o, char *why,
                 size_t why_size)
{
    if (shape->dtype != PEER_F32) {
        snprintf(why, why_size, "BLAS has float32 products only");
        return NULL;
    }
    struct peer *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    int64_t group = shape->heads_q / shape->heads_kv;
    *p = (struct peer){.shape = *shape, .q = q, .k = k, .v = v, .o = o, .heads_in_parallel = variant == 0};
    p->rows = shape->seq_q == 1 && !shape->causal ? group : shape->seq_q;
    int64_t teams = p->heads_in_parallel ? shape->threads : 1;
    size_t bytes = (size_t)(teams * p->rows * shape->seq_kv) * sizeof(float);
    p->scores = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!p->scores) {
        snprintf(why, why_size, "no memory for %zu bytes of scores", bytes);
        free(p);
        return NULL;
    }
    return p;
}

/* Softmax of s[0..n), in place and without the division: returns the sum, which is divided out of O instead of out of S when
 * that is less work. Plain loops: -ffast-math lets the compiler use vector max, vector exp (libmvec) and vector sum. */
__attribute__((target_clones("avx512f", "avx2", "default"))) static float exp_row(float *s, int64_t n)
{
    float top = -INFINITY;
    for (int64_t j = 0; j < n; j++)
        top = s[j] > top ? s[j] : top;
    float sum = 0;
    for (int64_t j = 0; j < n; j++) {
        float e = expf(s[j] - top);
        s[j] = e;
        sum += e;
    }
    return sum;
}

__attribute__((target_clones("avx512f", "avx2", "default"))) static void scale_row(float *o, int64_t n, float factor)
{
    for (int64_t j = 0; j < n; j++)
        o[j] *= factor;
}

/* One product pair: `unit` counts heads, or KV heads when a group is one product. */
static void one_head(const struct peer *p, int64_t unit, float *scores, int threads)
{
    const struct peer_shape *s = &p->shape;
    int64_t units_per_kv = s->heads_q / s->heads_kv * s->seq_q / p->rows;
    const float *q = p->q + unit * p->rows * s->dim;
    const float *k = p->k + unit / units_per_kv * s->seq_kv * s->dim;
    const float *v = p->v + unit / units_per_kv * s->seq_kv * s->dim;
    float *o = p->o + unit * p->rows * s->dim;
    blasint rows = (blasint)p->rows, keys = (blasint)s->seq_kv, dim = (blasint)s->dim;

    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, keys, dim, 1.0f / sqrtf((float)dim), q, dim, k, dim, 0.0f, scores,
                keys);
    float sums[rows];
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t i = 0; i < p->rows; i++) {
        float *row = scores + i * s->seq_kv;
        int64_t visible = s->causal && i + 1 < s->seq_kv ? i + 1 : s->seq_kv;
        sums[i] = exp_row(row, visible);
        for (int64_t j = visible; j < s->seq_kv; j++)
            row[j] = 0;
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, dim, keys, 1.0f, scores, keys, v, dim, 0.0f, o, dim);
    for (int64_t i = 0; i < p->rows; i++)
        scale_row(o + i * s->dim, s->dim, 1.0f / sums[i]);
}

int peer_run(void *peer)
{
    const struct peer *p = peer;
    const struct peer_shape *s = &p->shape;
    int threads = (int)s->threads;
    int64_t units = s->batch * s->heads_q * s->seq_q / p->rows;

    openblas_set_num_threads(p->heads_in_parallel ? 1 : threads);
    if (p->heads_in_parallel) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
        for (int64_t unit = 0; unit < units; unit++)
            one_head(p, unit, p->scores + omp_get_thread_num() * p->rows * s->seq_kv, 1);
    } else {
        for (int64_t unit = 0; unit < units; unit++)
            one_head(p, unit, p->scores, threads);
    }
    return 0;
}

void peer_free(void *peer)
{
    struct peer *p = peer;
    if (p)
        free(p->scores);
    free(p);
}
