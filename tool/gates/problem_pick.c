/*
 * problem_pick.c - a few problems instead of many (see problem_pick.h): again and again the one that has most of what is still missing.
 */
#include "problem_pick.h"

#include <string.h>

/* An upper bound. */
static double operations(const attest_problem *problem)
{
    return 2.0 * (double)problem->batch * (double)problem->heads_q * (double)problem->seq_q * (double)problem->seq_kv *
           (double)(problem->dim + problem->dim_v);
}

/* Whether some stride of an input, or of O, is less than `limit`. */
static bool has_stride_below(const attest_problem *problem, int64_t limit)
{
    for (int i = 0; i < 3; i++)
        if (problem->stride_q[i] < limit || problem->stride_k[i] < limit || problem->stride_v[i] < limit ||
            problem->stride_o[i] < limit)
            return true;
    return false;
}

/* What a kernel could stumble over, as bits: the flags, and above them properties of sizes, types and strides. */
static uint64_t features(const attest_problem *problem)
{
    attest_problem packed = *problem;
    attest_problem_pack(&packed);
    const bool properties[] = {
        problem->dtype == ATTEST_F32,
        problem->dtype == ATTEST_F16,
        problem->dtype == ATTEST_BF16,
        problem->dtype_o != problem->dtype,
        problem->heads_q != problem->heads_kv,
        problem->dim % 16 || problem->dim_v % 16,
        problem->dim != problem->dim_v,
        problem->seq_q % 16 && problem->seq_kv % 16,
        problem->seq_q != problem->seq_kv,
        problem->batch > 1,
        memcmp(&packed, problem, sizeof packed) != 0,
        has_stride_below(problem, 0),
        !(problem->flags & (ATTEST_VARLEN_Q | ATTEST_VARLEN_KV)) && has_stride_below(problem, 1),
        problem->heads_q > 1 && problem->stride_o[2] > problem->dim_v && problem->stride_o[1] > problem->dim_v,
        problem->stride_o[2] > problem->dim_v * problem->heads_q,
        (problem->flags & ATTEST_LSE) && problem->stride_lse[2] > 1,
        problem->seq_q <= 8 && problem->seq_kv > 512,
        problem->seq_kv > 128,
        operations(problem) == 0,
    };
    uint64_t bits = problem->flags;
    for (int i = 0; i < COUNT_OF(properties); i++)
        bits |= (uint64_t)properties[i] << (32 + i);
    return bits;
}

int pick_problems(const struct proof *proof, double flops, const struct problem_entry **picked, int most)
{
    uint64_t covered = 0;
    int count = 0;
    while (count < most) {
        const struct problem_entry *best = NULL;
        int best_new = 0;
        for (int i = 0; i < proof->suite.count; i++) {
            const struct problem_entry *entry = &proof->suite.entries[i];
            int new = __builtin_popcountll(features(&entry->problem) & ~covered);
            if (new <= best_new || operations(&entry->problem) > flops || !gate_takes(proof, &entry->problem))
                continue;
            best = entry;
            best_new = new;
        }
        if (!best)
            break;
        picked[count++] = best;
        covered |= features(&best->problem);
    }
    return count;
}

const struct problem_entry *pick_cheapest(const struct problem_entry *const *picked, int count)
{
    const struct problem_entry *best = picked[0];
    for (int i = 1; i < count; i++) {
        double this = operations(&picked[i]->problem);
        if (this > 0 && (this < operations(&best->problem) || operations(&best->problem) == 0))
            best = picked[i];
    }
    return best;
}

attest_problem pick_padded(const attest_problem *problem)
{
    enum { PAD = 8 }; /* elements */
    attest_problem wide = *problem, padded = *problem;
    wide.dim += PAD;
    wide.dim_v += PAD;
    attest_problem_pack(&wide);
    memcpy(padded.stride_q, wide.stride_q, sizeof padded.stride_q);
    memcpy(padded.stride_k, wide.stride_k, sizeof padded.stride_k);
    memcpy(padded.stride_v, wide.stride_v, sizeof padded.stride_v);
    memcpy(padded.stride_o, wide.stride_o, sizeof padded.stride_o);
    for (int i = 0; i < 3; i++)
        padded.stride_lse[i] = 2 * wide.stride_lse[i];
    return padded;
}
