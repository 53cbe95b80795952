/* attest_merge against double precision, at its edges, in place, and with every kind of wrong argument. */
#include "drive.h"
#include "tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = 9 };

struct merge {
    attest_merge_args args;
    struct buffer o, lse, o_parts[MOST_PARTS], lse_parts[MOST_PARTS];
    const void *o_pointers[MOST_PARTS];
    const float *lse_pointers[MOST_PARTS];
};

static attest_context *context;

static int64_t span(int64_t rows, int64_t stride, int64_t dim)
{
    return rows ? (rows - 1) * stride + dim : 0;
}

static void merge_create(struct merge *m, struct rng *rng, int64_t parts, int64_t rows, int64_t dim_v, uint32_t dtype_parts,
                         uint32_t dtype_o, int64_t pad)
{
    memset(m, 0, sizeof *m);
    m->args = (attest_merge_args){.size = sizeof m->args,
                                  .parts = parts,
                                  .rows = rows,
                                  .dim_v = dim_v,
                                  .dtype_parts = dtype_parts,
                                  .dtype_o = dtype_o,
                                  .stride_o_parts = dim_v + pad,
                                  .stride_o = dim_v + 2 * pad};
    enum placement placement = rng_chance(rng, 2) ? PLACE_GUARD_AFTER : PLACE_GUARD_BEFORE;
    buffer_create(&m->o, placement, 0, span(rows, m->args.stride_o, dim_v), type_bytes(dtype_o));
    buffer_create(&m->lse, placement, 0, rows, sizeof(float));
    buffer_fill_nan(&m->o, dtype_o);
    buffer_fill_nan(&m->lse, ATTEST_F32);
    for (int64_t part = 0; part < parts; part++) {
        buffer_create(&m->o_parts[part], placement, 0, span(rows, m->args.stride_o_parts, dim_v), type_bytes(dtype_parts));
        buffer_create(&m->lse_parts[part], placement, 0, rows, sizeof(float));
        buffer_fill_nan(&m->o_parts[part], dtype_parts);
        for (int64_t r = 0; r < rows; r++) {
            /* A part that saw nothing is not looked at: its O stays NaN. */
            double lse = rng_chance(rng, 5) ? (double)-INFINITY : 20 * rng_normal(rng);
            store(ATTEST_F32, m->lse_parts[part].data, r, lse);
            for (int64_t d = 0; d < dim_v && lse != (double)-INFINITY; d++)
                store(dtype_parts, m->o_parts[part].data, r * m->args.stride_o_parts + d, rng_normal(rng));
        }
        m->o_pointers[part] = m->o_parts[part].data;
        m->lse_pointers[part] = m->lse_parts[part].data;
    }
    m->args.o_parts = m->o_pointers;
    m->args.lse_parts = m->lse_pointers;
    m->args.o = m->o.data;
    m->args.lse = m->lse.data;
}

static void merge_destroy(struct merge *m)
{
    buffer_destroy(&m->o);
    buffer_destroy(&m->lse);
    for (int part = 0; part < MOST_PARTS; part++) {
        buffer_destroy(&m->o_parts[part]);
        buffer_destroy(&m->lse_parts[part]);
    }
}

/* Row r of the result in double, from the parts as they are now. */
static double expected(const struct merge *m, int64_t r, double *o, double *size)
{
    double top = (double)-INFINITY, total = 0;
    for (int64_t part = 0; part < m->args.parts; part++)
        top = fmax(top, (double)m->lse_pointers[part][r]);
    memset(o, 0, sizeof(double) * (size_t)m->args.dim_v);
    memset(size, 0, sizeof(double) * (size_t)m->args.dim_v);
    for (int64_t part = 0; part < m->args.parts; part++) {
        double weight = exp((double)m->lse_pointers[part][r] - top);
        if (m->lse_pointers[part][r] == -INFINITY)
            continue;
        total += weight;
        for (int64_t d = 0; d < m->args.dim_v; d++) {
            double value = load(m->args.dtype_parts, m->o_pointers[part], r * m->args.stride_o_parts + d);
            o[d] += weight * value;
            size[d] += weight * fabs(value);
        }
    }
    for (int64_t d = 0; d < m->args.dim_v && total > 0; d++) {
        o[d] /= total;
        size[d] /= total;
    }
    return total > 0 ? top + log(total) : (double)-INFINITY;
}

static void compare_row(const struct merge *m, int64_t r, double lse, const double *o, const double *size)
{
    for (int64_t d = 0; d < m->args.dim_v; d++) {
        double got = load(m->args.dtype_o, m->args.o, r * m->args.stride_o + d);
        double allowed = size[d] * (type_unit(m->args.dtype_o) + 64 * 0x1p-24) + type_smallest(m->args.dtype_o);
        tap_check(fabs(got - o[d]) <= allowed, "O[%lld,%lld] is %.9g, not %.9g", (long long)r, (long long)d, got, o[d]);
    }
    if (m->args.lse) {
        double got = (double)m->args.lse[r];
        tap_check(isinf(lse) ? got == lse : fabs(got - lse) <= 0x1p-22 * (1 + fabs(lse)), "LSE[%lld] is %.9g, not %.9g",
                  (long long)r, got, lse);
    }
}

static void random_merges(void)
{
    static const int64_t dims[] = {1, 2, 7, 8, 33, 64, 128, 512};
    for (int n = 0; n < tap_amount(60, 1500, 20000); n++) {
        if (!tap_case("%d", n))
            continue;
        struct rng rng = {tap.seed * 0x77777 + (uint64_t)n};
        struct merge m;
        double o[512], size[512];
        merge_create(&m, &rng, 1 + rng_below(&rng, MOST_PARTS), rng_below(&rng, 12), dims[rng_below(&rng, 8)],
                     (uint32_t)(1 + rng_below(&rng, 3)), (uint32_t)(1 + rng_below(&rng, 3)), rng_below(&rng, 3));
        if (rng_chance(&rng, 4))
            m.args.lse = NULL;
        uint64_t before[2 * MOST_PARTS];
        for (int part = 0; part < m.args.parts; part++) {
            before[2 * part] = buffer_hash(&m.o_parts[part]);
            before[2 * part + 1] = buffer_hash(&m.lse_parts[part]);
        }
        tap_check(attest_merge(context, &m.args) == ATTEST_OK, "%s", attest_context_detail(context));
        for (int64_t r = 0; r < m.args.rows; r++) {
            double lse = expected(&m, r, o, size);
            compare_row(&m, r, lse, o, size);
            for (int64_t d = m.args.dim_v; r + 1 < m.args.rows && d < m.args.stride_o; d++)
                tap_check(isnan(load(m.args.dtype_o, m.args.o, r * m.args.stride_o + d)), "a gap of O was written");
        }
        for (int part = 0; part < m.args.parts; part++)
            tap_check(before[2 * part] == buffer_hash(&m.o_parts[part]) && before[2 * part + 1] == buffer_hash(&m.lse_parts[part]),
                      "part %d was written", part);
        merge_destroy(&m);
    }
}

/* The result may be written over one of the parts. */
static void in_place(void)
{
    for (int part = 0; part < 3; part++) {
        struct rng rng = rng_from(tap.seed, "in place");
        struct merge m;
        double o[6][8], size[6][8], lse[6];
        merge_create(&m, &rng, 3, 6, 8, ATTEST_F32, ATTEST_F32, 0);
        for (int64_t r = 0; r < 6; r++)
            lse[r] = expected(&m, r, o[r], size[r]);
        m.args.o = m.o_parts[part].data;
        m.args.lse = m.lse_parts[part].data;
        tap_check(attest_merge(context, &m.args) == ATTEST_OK, "%s", attest_context_detail(context));
        for (int64_t r = 0; r < 6; r++)
            compare_row(&m, r, lse[r], o[r], size[r]);
        merge_destroy(&m);
    }
}

/* Edges of LSE: all -inf, far apart, very large, NaN in any order. */
static void edges(void)
{
    static const struct {
        float lse[2];
        double o, out; /* parts have O = 1 and 3; -inf parts have O = NaN */
    } table[] = {
        {{-INFINITY, -INFINITY}, 0, -INFINITY},
        {{-INFINITY, 5}, 3, 5},
        {{5, -INFINITY}, 1, 5},
        {{1e30f, -1e30f}, 1, 1e30},
        {{-1e30f, 1e30f}, 3, 1e30},
        {{-1000, -1000}, 2, -999.306852819},
        {{3e38f, 3e38f}, 2, 3e38},
        {{NAN, 0}, NAN, NAN},
        {{0, NAN}, NAN, NAN},
        {{NAN, -INFINITY}, NAN, NAN},
        {{-INFINITY, NAN}, NAN, NAN},
    };
    for (size_t n = 0; n < sizeof table / sizeof *table; n++) {
        float parts[2] = {table[n].lse[0] == -INFINITY ? NAN : 1, table[n].lse[1] == -INFINITY ? NAN : 3}, o = 77, lse = 77;
        const void *const o_parts[2] = {&parts[0], &parts[1]};
        const float *const lse_parts[2] = {&table[n].lse[0], &table[n].lse[1]};
        attest_merge_args args = {.size = sizeof args,
                                  .parts = 2,
                                  .rows = 1,
                                  .dim_v = 1,
                                  .dtype_parts = ATTEST_F32,
                                  .dtype_o = ATTEST_F32,
                                  .o_parts = o_parts,
                                  .lse_parts = lse_parts,
                                  .stride_o_parts = 1,
                                  .o = &o,
                                  .lse = &lse,
                                  .stride_o = 1};
        tap_check(attest_merge(context, &args) == ATTEST_OK, "%s", attest_context_detail(context));
        bool good_o = isnan(table[n].o) ? isnan(o) : fabs((double)o - table[n].o) <= 1e-6;
        bool good_lse = isnan(table[n].out)   ? isnan(lse)
                        : isinf(table[n].out) ? (double)lse == table[n].out
                                              : fabs((double)lse - table[n].out) <= 1e-6 * fabs(table[n].out);
        tap_check(good_o && good_lse, "LSE %g and %g give O %g, LSE %g", (double)table[n].lse[0], (double)table[n].lse[1],
                  (double)o, (double)lse);
    }
}

static void errors(void)
{
    static const struct {
        const char *what, *part;
    } table[] = {
        {"size", "size"},
        {"parts 0", "parts"},
        {"parts -1", "parts"},
        {"rows -1", "rows"},
        {"dim_v 0", "dim_v"},
        {"dim_v 513", "dim_v"},
        {"dtype_parts 0", "dtype"},
        {"dtype_o 9", "dtype_o"},
        {"o_parts", "o_parts"},
        {"lse_parts", "lse_parts"},
        {"o_parts[1]", "o_parts"},
        {"lse_parts[1]", "lse_parts"},
        {"o", "o"},
        {"stride_o", "stride_o"},
        {"stride_parts", "stride_o_parts"},
        {"o unaligned", "o"},
        {"o part unaligned", "o_parts"},
        {"lse unaligned", "lse"},
        {"huge stride", "stride"},
        {"huge rows", "rows"},
        {"o overlaps", "overlap"},
        {"lse overlaps", "overlap"},
        {"lse overlaps o", "overlap"},
        {"size tail", "args"},
    };
    for (size_t n = 0; n < sizeof table / sizeof *table; n++) {
        const char *what = table[n].what;
        struct rng rng = rng_from(tap.seed, "errors");
        struct merge m;
        struct {
            attest_merge_args args;
            uint64_t tail;
        } big = {.tail = 1};
        merge_create(&m, &rng, 2, 3, 4, ATTEST_F32, ATTEST_F32, 0);
        attest_merge_args *args = &m.args;
        uint64_t before[2] = {buffer_hash(&m.o), buffer_hash(&m.lse)};
        if (!strcmp(what, "size"))
            args->size = 8;
        else if (!strcmp(what, "parts 0"))
            args->parts = 0;
        else if (!strcmp(what, "parts -1"))
            args->parts = -1;
        else if (!strcmp(what, "rows -1"))
            args->rows = -1;
        else if (!strcmp(what, "dim_v 0"))
            args->dim_v = 0;
        else if (!strcmp(what, "dim_v 513"))
            args->dim_v = args->stride_o = args->stride_o_parts = 513;
        else if (!strcmp(what, "dtype_parts 0"))
            args->dtype_parts = 0;
        else if (!strcmp(what, "dtype_o 9"))
            args->dtype_o = 9;
        else if (!strcmp(what, "o_parts"))
            args->o_parts = NULL;
        else if (!strcmp(what, "lse_parts"))
            args->lse_parts = NULL;
        else if (!strcmp(what, "o_parts[1]"))
            m.o_pointers[1] = NULL;
        else if (!strcmp(what, "lse_parts[1]"))
            m.lse_pointers[1] = NULL;
        else if (!strcmp(what, "o"))
            args->o = NULL;
        else if (!strcmp(what, "stride_o"))
            args->stride_o = 3;
        else if (!strcmp(what, "stride_parts"))
            args->stride_o_parts = -4;
        else if (!strcmp(what, "o unaligned"))
            args->o = (char *)args->o + 1;
        else if (!strcmp(what, "o part unaligned"))
            m.o_pointers[0] = (const char *)m.o_pointers[0] + 2;
        else if (!strcmp(what, "lse unaligned"))
            args->lse = (float *)(void *)((char *)args->lse + 1);
        else if (!strcmp(what, "huge stride"))
            args->stride_o = INT64_MAX - 1;
        else if (!strcmp(what, "huge rows"))
            args->rows = INT64_MAX / 2;
        else if (!strcmp(what, "o overlaps"))
            args->o = (float *)m.o_parts[0].data + 1;
        else if (!strcmp(what, "lse overlaps"))
            args->lse = (float *)m.lse_parts[1].data + 1;
        else if (!strcmp(what, "lse overlaps o"))
            args->lse = (float *)args->o + 4;
        else {
            big.args = m.args;
            big.args.size = sizeof big;
            args = &big.args;
        }
        attest_status status = attest_merge(context, args);
        tap_check(status == ATTEST_ERROR_ARGUMENT, "%s: %s", what, attest_status_name(status));
        tap_check(strstr(attest_context_detail(context), table[n].part) != NULL, "%s: '%s' is not in: %s", what, table[n].part,
                  attest_context_detail(context));
        tap_check(before[0] == buffer_hash(&m.o) && before[1] == buffer_hash(&m.lse), "%s: an output was written", what);
        merge_destroy(&m);
    }
    tap_check(attest_merge(NULL, NULL) == ATTEST_ERROR_ARGUMENT, "merge of nothing");
    tap_check(attest_merge(context, NULL) == ATTEST_ERROR_ARGUMENT, "merge of no arguments");
}

/* Attention over two halves of the keys, merged, is attention over all of them. */
static void halves_of_attention(void)
{
    attest_problem p;
    struct instance in;
    char why[512] = "";
    attest_problem_parse("fwd:f32:b1:h3:sq5:skv70:d16:lse", &p, NULL, 0);
    if (!instance_create(&in, &p, tap.seed, NULL))
        return;
    struct verdict_basis basis;
    if (!tap_check(basis_create(&basis, context, &in), "the oracle refused"))
        return;
    enum { ROWS = 15, DIM = 16 };
    float o[2][ROWS * DIM], lse[2][ROWS];
    for (int part = 0; part < 2; part++) {
        attest_problem half = p;
        attest_tensors t = in.tensors;
        half.seq_kv = part ? 41 : 29;
        t.k = (const float *)t.k + (part ? 29 * DIM : 0);
        t.v = (const float *)t.v + (part ? 29 * DIM : 0);
        t.o = o[part];
        t.lse = lse[part];
        tap_check(attest_forward(&half, &t, why, sizeof why) == ATTEST_OK, "part %d: %s", part, why);
    }
    const void *const o_parts[] = {o[0], o[1]};
    const float *const lse_parts[] = {lse[0], lse[1]};
    attest_merge_args args = {.size = sizeof args,
                              .parts = 2,
                              .rows = ROWS,
                              .dim_v = DIM,
                              .dtype_parts = ATTEST_F32,
                              .dtype_o = ATTEST_F32,
                              .o_parts = o_parts,
                              .lse_parts = lse_parts,
                              .stride_o_parts = DIM,
                              .o = in.o.data,
                              .lse = in.lse.data,
                              .stride_o = DIM};
    tap_check(attest_merge(context, &args) == ATTEST_OK, "%s", attest_context_detail(context));
    tap_check(judge(&basis, &in, ATTEST_F32, why, sizeof why), "merged: %s", why);
    basis_destroy(&basis);
    instance_destroy(&in);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"random", random_merges},
        {"in place", in_place},
        {"edges", edges},
        {"errors", errors},
        {"halves of attention", halves_of_attention},
    };
    attest_context_create(&context);
    int status = tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
    attest_context_destroy(context);
    return status;
}
