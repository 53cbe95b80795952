/*
 * The judge judged: it accepts the exact result rounded once and the naive implementation, and rejects every control. A control
 * is a plausible wrong kernel; an input set on which one passes would be worthless, so they run on the sets the tests use.
 */
#include "gen.h"
#include "tolerance.h"
#include "drive.h"
#include "tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static attest_context *context;

static const char *const problems[] = {
    "fwd:f32:b2:hq2:hkv1:sq33:skv65:d64:lse",
    "fwd:f32:b1:hq4:hkv2:sq1:skv300:d128:lse",
    "fwd:f32:b1:h2:s70:d17:dv40:causal:lse",
    "fwd:f32:b1:h2:sq17:skv129:d80:causal:br:lse",
    "fwd:f16:b2:hq2:hkv1:sq33:skv65:d64:lse",
    "fwd:f16:b1:h2:s70:d17:dv40:causal:o=f32:lse",
    "fwd:bf16:b2:hq2:hkv1:sq33:skv65:d64:lse",
    "fwd:bf16:b1:h2:s70:d32:causal:lse",
    "fwd:bf16:b1:h2:sq5:skv257:d128:causal:br:o=f32:lse",
    "fwd:f32:b1:h1:sq9:skv48:d16:softcap=3:sink:bias:lse",
};

/* The oracle on another problem than the one asked for: how the controls that change the problem are made. */
static bool oracle_of(const struct instance *in, attest_problem changed, double *o, double *lse)
{
    const attest_problem *p = &in->problem;
    changed.stride_o[0] = p->heads_q * p->seq_q * p->dim_v;
    changed.stride_o[1] = p->seq_q * p->dim_v;
    changed.stride_o[2] = p->dim_v;
    changed.stride_lse[0] = p->heads_q * p->seq_q;
    changed.stride_lse[1] = p->seq_q;
    changed.stride_lse[2] = 1;
    return attest_reference(context, &changed, &in->tensors, ATTEST_EXACT, 0, p->batch * p->heads_q * p->seq_q, o, lse) ==
           ATTEST_OK;
}

enum control { ZEROS, MEAN_V, NO_SCALE, OFF_BY_ONE, DROPPED_TILE, SWAPPED_ROWS, ONE_ROW_SCALED, NAN_LEFT, LSE_OFF, CONTROLS };
static const char *const control_names[CONTROLS] = {"zeros",        "mean of V",        "no scale",       "causal off by one",
                                                    "dropped tile", "two rows swapped", "one row x 1.05", "one element not written",
                                                    "LSE in base 2"};

/* Puts a control into the instance's outputs. False where the control does not apply. */
static bool put_control(enum control control, struct instance *in, const struct verdict_basis *basis, double *o, double *lse)
{
    attest_problem changed = in->problem;
    int64_t dim_v = basis->dim_v, rows = basis->rows;
    memcpy(o, basis->o, sizeof(double) * (size_t)(rows * dim_v));
    memcpy(lse, basis->lse, sizeof(double) * (size_t)rows);
    switch (control) {
    case ZEROS:
        memset(o, 0, sizeof(double) * (size_t)(rows * dim_v));
        break;
    case MEAN_V:
        changed.scale = 0;
        changed.flags &= ~(ATTEST_CAUSAL | ATTEST_BOTTOM_RIGHT);
        if (!oracle_of(in, changed, o, lse))
            return false;
        break;
    case NO_SCALE:
        changed.scale = 1;
        if (!oracle_of(in, changed, o, lse))
            return false;
        break;
    case OFF_BY_ONE:
        if (!(changed.flags & ATTEST_CAUSAL))
            return false;
        changed.flags = (changed.flags & ~ATTEST_CAUSAL) | ATTEST_WINDOW_RIGHT;
        changed.window_right = 1;
        if (!oracle_of(in, changed, o, lse))
            return false;
        break;
    case DROPPED_TILE:
        changed.seq_kv -= 8;
        if ((changed.flags & ATTEST_BOTTOM_RIGHT) || !oracle_of(in, changed, o, lse))
            return false;
        break;
    case SWAPPED_ROWS:
        if (rows < 2 || in->problem.seq_q < 2)
            return false;
        memcpy(o, basis->o + dim_v, sizeof(double) * (size_t)dim_v);
        memcpy(o + dim_v, basis->o, sizeof(double) * (size_t)dim_v);
        break;
    case ONE_ROW_SCALED:
        for (int64_t d = 0; d < dim_v; d++)
            o[(rows - 1) * dim_v + d] *= 1.05;
        break;
    case NAN_LEFT:
        o[(rows / 2) * dim_v + dim_v - 1] = NAN;
        break;
    default:
        for (int64_t r = 0; r < rows; r++)
            lse[r] /= log(2);
        break;
    }
    judge_put(basis, in, o, lse);
    return true;
}

/* With keys beyond the causal diagonal readable, because the controls look at them. */
static double readable(const struct instance *in, struct rng *rng, char tensor, int64_t b, int64_t h, int64_t row, int64_t d)
{
    return tensor == 'b' ? rng_normal(rng) : values_normal(in, rng, tensor, b, h, row, d);
}

static void one_problem(const char *line)
{
    attest_problem p;
    char why[512] = "";
    if (!tap_case("%s", line) || !tap_check(attest_problem_parse(line, &p, why, sizeof why) == ATTEST_OK, "%s: %s", line, why))
        return;
    struct instance in;
    struct instance_options options = {.values = readable};
    attest_problem open = p;
    open.flags &= ~(ATTEST_CAUSAL | ATTEST_BOTTOM_RIGHT);
    if (!instance_create(&in, &open, tap.seed, &options))
        return;
    in.problem = p;
    struct verdict_basis basis;
    if (tap_check(basis_create(&basis, context, &in), "the oracle refused")) {
        double *o = malloc(sizeof(double) * (size_t)(basis.rows * (basis.dim_v + 1))), *lse = o + basis.rows * basis.dim_v;
        judge_put(&basis, &in, basis.o, basis.lse);
        tap_check(judge(&basis, &in, ATTEST_F32, why, sizeof why), "%s: rejects the exact result: %s", line, why);
        judge_put(&basis, &in, basis.naive, basis.lse_naive);
        tap_check(judge(&basis, &in, p.dtype, why, sizeof why), "%s: rejects the naive result: %s", line, why);
        for (enum control c = ZEROS; c < CONTROLS; c++)
            if (put_control(c, &in, &basis, o, lse))
                tap_check(!judge(&basis, &in, p.dtype == ATTEST_BF16 ? ATTEST_BF16 : ATTEST_F32, why, sizeof why),
                          "%s: accepts the control '%s'", line, control_names[c]);
        free(o);
        basis_destroy(&basis);
    }
    instance_destroy(&in);
}

static void controls(void)
{
    context = drive_context(1);
    for (size_t n = 0; n < sizeof problems / sizeof *problems; n++)
        one_problem(problems[n]);
    attest_context_destroy(context);
}

/* Writing one byte outside the outputs, or into an input, is seen. */
static void watches_memory(void)
{
    attest_problem p;
    attest_problem_init(&p, ATTEST_F16, 1, 2, 1, 5, 7, 3);
    p.flags = ATTEST_LSE;
    attest_problem_pack(&p);
    p.stride_o[1] += 2;
    struct instance in;
    char why[128];
    if (!instance_create(&in, &p, tap.seed, NULL))
        return;
    tap_check(instance_untouched(&in, why, sizeof why) && instance_no_write(&in), "sees a write where there was none");
    unsigned char *const places[] = {in.o.bytes - 1, in.o.bytes + in.o.size, in.o.bytes + 5 * 3 * 2,
                                     in.q.bytes + 1, in.v.bytes - 1,         in.lse.bytes + in.lse.size};
    for (size_t n = 0; n < sizeof places / sizeof *places; n++) {
        *places[n] ^= 1;
        tap_check(!instance_untouched(&in, why, sizeof why), "does not see a write at place %zu", n);
        *places[n] ^= 1;
    }
    in.o.bytes[0] ^= 1;
    tap_check(instance_untouched(&in, why, sizeof why), "an addressed element counts as a gap");
    tap_check(!instance_no_write(&in), "does not see a write to O");
    instance_destroy(&in);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {{"controls", controls}, {"watches memory", watches_memory}};
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
