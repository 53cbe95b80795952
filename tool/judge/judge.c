/*
 * judge.c - when is an error an error.
 *
 * The reference is the float64 oracle on the very inputs of the kernel. For component d of row i, with P the exact softmax,
 *
 *     A = sum_j P_j |v_jd|                   by the oracle with |V| for V; rounding errors of P are in proportion to it
 *     B = A sqrt(sum_j P_j^2) / sum_j P_j    the same where the errors of many keys average out: A / sqrt(n) for n equal keys
 *     S = |scale| |q_i| max_j |k_j|          how large a product of q and k can be
 *     T = S + |LSE| + min(softcap, 8 S) + b  how large a score and its parts can be; P has a relative error of about T u
 *     b = max_j |bias_ij| with ALiBi         0 without one of the two: a bias alone, or ALiBi alone, is no larger than |LSE| + S where
 *                                            a key counts; together they can be large and cancel
 *     u = unit roundoff                      2^-24 for f32, 2^-11 for f16, 2^-8 for bf16
 *
 * u_o is the u of the output, u_p that of a P rounded to the 16-bit type of the inputs (0 for f32), u_32 that of f32.
 *
 * 1. Component bound, worst case:   |error| <= A (2 u_o + 2 u_p + u_32 (16 + 4 T + 2 sqrt(n))) + n w max_j |v_jd|
 *    n: keys the row may see; their roundings average out, but for rows of V that are broadcast (a stride of 0), which are added to
 *    sums that round the same way every time: there it is n for 2 sqrt(n). w: weights exp(s - m), of which the largest is 1, are lost below the smallest normal number of float32,
 *    or, where P is rounded to f16, below half of its smallest number, 2^-25; the sum that they are divided by is 1 or more. It counts
 *    where a row's weights are all tiny beside its sink, or small beside a large V.
 *
 * 2. Block bound, statistical. Errors are counted in grains. A grain is what one rounding of the result and independent roundings
 *    of each P make of this component:
 *        grain = u_o |O| + B (u_p + u_32 (2 + T))
 *    In every block of 64 judged rows: max(error / grain) <= 2 max(error of the naive implementation / grain) + 2. The naive
 *    implementation is the oracle's text in float32 with P rounded to the type of the inputs, and its result rounded to the type
 *    of O. Dividing by each component's own grain first keeps rows with few keys, whose errors are large, from excusing errors in
 *    rows with many; and it keeps a lucky naive result from condemning a good kernel. Blocks of fewer than 64 components say too
 *    little about the naive error, and are judged by the first bound alone.
 *
 * LSE is judged likewise, with the bound u_32 (16 + 4 T + 2 sqrt(n)) and the grain u_32 (1 + T).
 *
 * Numbers below the smallest normal float32 (half the smallest f16) may be lost: kernels may flush them. NaN and infinities must be
 * exactly where the oracle, rounded to the type of the output, has them.
 *
 * Where rows see values that are not finite (judge_make_bounds, `special`), attest.h lets them reach other rows of the same KV head:
 * there a component that is not finite in the oracle must not be finite, and one that is finite must be right or not be finite.
 * Everywhere else the rules are the same.
 *
 * judge_make_bounds leaves the second bound out, and with it three of five evaluations by the oracle.
 */
#include "judge.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

#define UNIT_F32 0x1p-24

/* Multiplications of one evaluation by the oracle that a check is worth by default: about a second of one core. */
#define WORK 1.5e8

/* Fewer components than this do not tell how large a naive error can be. */
#define LEAST_COMPONENTS 64

static double unit_of(uint32_t dtype)
{
    return dtype == ATTEST_F32 ? UNIT_F32 : dtype == ATTEST_F16 ? 0x1p-11 : 0x1p-8;
}
static double tiny_of(uint32_t dtype)
{
    return dtype == ATTEST_F16 ? 0x1p-25 : (double)FLT_MIN;
}

/* Rounded once to the type of O. From double through float would round twice; a float32 that is odd in its last bit prevents it. */
static double rounded(double value, uint32_t dtype)
{
    float single = (float)value;
    if (dtype == ATTEST_F32)
        return (double)single;
    if (isfinite(single) && (double)single != value) {
        float toward = nextafterf(single, (double)single < value ? INFINITY : -INFINITY);
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        if (!(bits & 1))
            single = toward;
    }
    return dtype == ATTEST_F16 ? (double)attest_f16_to_float(attest_f16_from_float(single))
                               : (double)attest_bf16_to_float(attest_bf16_from_float(single));
}

struct place judge_place(const struct judge *judge, int64_t row)
{
    const attest_problem *problem = &judge->problem;
    int64_t number = judge->rows[row];
    int64_t head = number / problem->seq_q;
    return (struct place){head / problem->heads_q, head % problem->heads_q, number % problem->seq_q};
}

/* Rows that follow each other are computed in one call: checking the tensors costs more than a small row. */
enum { CHUNK = 16, CHUNKS_OF_THREAD = 32 };

/* Whether no row of the problem lies between two row numbers: sequences may be shorter than seq_q, and numbers beyond their end are not
 * computed. */
static bool is_next(const struct judge *judge, int64_t number, int64_t next)
{
    const attest_problem *problem = &judge->problem;
    int64_t head = number / problem->seq_q, next_head = next / problem->seq_q;
    if (next == number + 1)
        return true;
    if (next < number || next % problem->seq_q != 0 ||
        number % problem->seq_q != layout_rows(&judge->layout, head / problem->heads_q) - 1)
        return false;
    for (head++; head < next_head; head++)
        if (layout_rows(&judge->layout, head / problem->heads_q) > 0)
            return false;
    return true;
}

static attest_status evaluate_chunk(const struct judge *judge, attest_context *context, const attest_problem *problem,
                                    const attest_tensors *tensors, attest_precision precision, int64_t begin, int64_t end,
                                    double *o, double *lse)
{
    attest_status status = ATTEST_OK;
    while (begin < end && status == ATTEST_OK) {
        int64_t next = begin + 1;
        while (next < end && is_next(judge, judge->rows[next - 1], judge->rows[next]))
            next++;
        status = attest_reference(context, problem, tensors, precision, judge->rows[begin], judge->rows[next - 1] + 1, o, lse);
        begin = next;
    }
    return status;
}

/* Threads that are worth it: waking them costs as much as some hundred thousand multiplications. */
static int threads_for(const struct judge *judge, const attest_problem *problem, int64_t rows)
{
    double work = (double)rows * (double)(problem->seq_kv + 8) * (double)(problem->dim + problem->dim_v);
    return work > 1e6 ? judge->threads : 1;
}

bool judge_evaluate(const struct judge *judge, const attest_problem *problem, const attest_tensors *tensors,
                    attest_precision precision, int64_t rows, double *o, double *lse, char *why, size_t why_size)
{
    attest_status worst = ATTEST_OK;
    int threads = threads_for(judge, problem, rows);
    int64_t share = rows / (threads * CHUNKS_OF_THREAD), chunk = threads == 1 ? rows + 1 : share > CHUNK ? share : CHUNK;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        attest_context *context = NULL;
        attest_status status = attest_context_create_on("cpu", &context);
#pragma omp for schedule(dynamic, 1)
        for (int64_t n = 0; n < rows; n += chunk)
            if (status == ATTEST_OK)
                status =
                    evaluate_chunk(judge, context, problem, tensors, precision, n, n + chunk < rows ? n + chunk : rows, o, lse);
        if (status != ATTEST_OK) {
#pragma omp critical
            {
                worst = status;
                snprintf(why, why_size, "the oracle: %s", context ? attest_context_detail(context) : attest_status_name(status));
            }
        }
        attest_context_destroy(context);
    }
    return worst == ATTEST_OK;
}

/* Which rows are judged: all of them, or the last block, the first, and others at random. */
static bool choose_rows(struct judge *judge, uint64_t seed, int64_t wanted)
{
    const attest_problem *problem = &judge->problem;
    int64_t blocks = (judge->total_rows + JUDGE_BLOCK - 1) / JUDGE_BLOCK;
    int64_t taken = wanted / JUDGE_BLOCK > 1 ? wanted / JUDGE_BLOCK : 1;
    taken = taken < blocks ? taken : blocks;
    int64_t *order = malloc(((size_t)blocks + 1) * sizeof *order);
    judge->rows = malloc(((size_t)taken * JUDGE_BLOCK + 1) * sizeof *judge->rows);
    if (!order || !judge->rows) {
        free(order);
        return false;
    }
    for (int64_t n = 0; n < blocks; n++)
        order[n] = n == 0 ? blocks - 1 : n - 1;
    for (int64_t n = 2; n < taken; n++) {
        int64_t other = n + random_below(random_bits(seed, 100, (uint64_t)n), blocks - 1 - n);
        int64_t block = order[other];
        order[other] = order[n];
        order[n] = block;
    }
    /* The blocks keep the drawn order, so that the first few of them are a sample of their own. */
    for (int64_t n = 0; n < taken; n++) {
        int64_t begin = order[n] * JUDGE_BLOCK;
        int64_t end = begin + JUDGE_BLOCK < judge->total_rows ? begin + JUDGE_BLOCK : judge->total_rows;
        int64_t b = 0, before = 0;
        for (int64_t row = begin; row < end; row++) {
            while (row - before >= layout_rows(&judge->layout, b) * problem->heads_q)
                before += layout_rows(&judge->layout, b++) * problem->heads_q;
            int64_t h = (row - before) / layout_rows(&judge->layout, b);
            int64_t i = (row - before) % layout_rows(&judge->layout, b);
            judge->rows[judge->row_count++] = (b * problem->heads_q + h) * problem->seq_q + i;
        }
    }
    free(order);
    return true;
}

static bool take_rows(struct judge *judge, const struct judge_rows *chosen)
{
    judge->rows = malloc(((size_t)chosen->count + 1) * sizeof *judge->rows);
    if (!judge->rows)
        return false;
    memcpy(judge->rows, chosen->numbers, (size_t)chosen->count * sizeof *judge->rows);
    judge->row_count = chosen->count;
    return true;
}

/* The largest |v| of each column, for every sequence and KV head. */
static bool measure_largest(struct judge *judge)
{
    const attest_problem *problem = &judge->problem;
    const struct buffer *v = &judge->inputs->v;
    judge->largest = calloc((size_t)(problem->batch * problem->heads_kv * problem->dim_v) + 1, sizeof *judge->largest);
    for (int64_t bh = 0; bh < problem->batch * problem->heads_kv && judge->largest; bh++) {
        int64_t b = bh / problem->heads_kv, begin, end;
        layout_live(&judge->layout, b, &begin, &end);
        for (int64_t j = begin; j < end; j++) {
            int64_t at = layout_key_at(&judge->layout, problem->stride_v, b, bh % problem->heads_kv, j);
            for (int64_t d = 0; d < problem->dim_v; d++)
                judge->largest[bh * problem->dim_v + d] =
                    fmaxf(judge->largest[bh * problem->dim_v + d], fabsf(element_load(v->at, problem->dtype, at + d)));
        }
    }
    return judge->largest != NULL;
}

static double norm(const void *base, uint32_t dtype, int64_t at, int64_t dim)
{
    double sum = 0;
    for (int64_t d = 0; d < dim; d++) {
        double value = (double)element_load(base, dtype, at + d);
        sum += value * value;
    }
    return sqrt(sum);
}

/* The largest finite bias that a row sees. */
static double largest_bias(const struct judge *judge, struct place place)
{
    const int64_t *stride = judge->problem.stride_bias;
    int64_t begin, end, at = place.b * stride[0] + place.h * stride[1] + place.i * stride[2];
    double largest = 0;
    layout_visible(&judge->layout, place.b, place.i, &begin, &end);
    for (int64_t j = begin; j < end; j++) {
        double bias = fabs((double)element_load(judge->inputs->bias.at, judge->problem.dtype_bias, at + j * stride[3]));
        if (isfinite(bias))
            largest = fmax(largest, bias);
    }
    return largest;
}

/* T of every judged row, except |LSE|. */
static bool measure_reach(struct judge *judge)
{
    const attest_problem *problem = &judge->problem;
    const struct inputs *inputs = judge->inputs;
    int64_t heads = problem->batch * problem->heads_kv;
    double *longest = calloc((size_t)heads + 1, sizeof *longest);
    if (!longest)
        return false;
#pragma omp parallel for schedule(dynamic) num_threads(judge->threads) if (heads * problem->seq_kv * problem->dim > 1 << 18)
    for (int64_t bh = 0; bh < heads; bh++) {
        int64_t b = bh / problem->heads_kv, begin, end;
        layout_live(&judge->layout, b, &begin, &end);
        for (int64_t j = begin; j < end; j++) {
            int64_t at = layout_key_at(&judge->layout, problem->stride_k, b, bh % problem->heads_kv, j);
            longest[bh] = fmax(longest[bh], norm(inputs->k.at, problem->dtype, at, problem->dim));
        }
    }
    for (int64_t n = 0; n < judge->row_count; n++) {
        struct place place = judge_place(judge, n);
        int64_t head = place.b * problem->heads_kv + place.h / (problem->heads_q / problem->heads_kv);
        int64_t at = layout_row_at(&judge->layout, problem->stride_q, place.b, place.h, place.i);
        double query = norm(inputs->q.at, problem->dtype, at, problem->dim);
        judge->reach[n] = fabs((double)problem->scale) * query * longest[head];
        if (problem->flags & ATTEST_SOFTCAP)
            judge->reach[n] += fmin((double)problem->softcap, 8 * judge->reach[n]);
        if ((problem->flags & (ATTEST_ALIBI | ATTEST_BIAS)) == (ATTEST_ALIBI | ATTEST_BIAS))
            judge->reach[n] += largest_bias(judge, place);
    }
    free(longest);
    return true;
}

/* A copy of a buffer in which every element is its absolute value, or twice its value. */
static bool copy_buffer(struct buffer *copy, const struct buffer *buffer, bool twice)
{
    size_t size = element_size(buffer->dtype);
    *copy = *buffer;
    copy->base = aligned_alloc(64, (buffer->bytes + 64) / 64 * 64);
    if (!copy->base)
        return false;
    copy->at = copy->base + ((const unsigned char *)buffer->at - buffer->base);
    memcpy(copy->base, buffer->base, buffer->bytes);
    for (size_t n = 0; n < buffer->bytes / size; n++) {
        if (twice)
            element_store(copy->base, buffer->dtype, (int64_t)n, 2 * element_load(buffer->base, buffer->dtype, (int64_t)n));
        else
            copy->base[(n + 1) * size - 1] &= 0x7f;
    }
    return true;
}

/* A: the oracle with |V|. */
static bool measure_mass(struct judge *judge, char *why, size_t why_size)
{
    struct buffer absolute;
    attest_tensors tensors = judge->inputs->tensors;
    if (!copy_buffer(&absolute, &judge->inputs->v, false))
        return false;
    tensors.v = absolute.at;
    bool done = judge_evaluate(judge, &judge->problem, &tensors, ATTEST_EXACT, judge->row_count, judge->mass, NULL, why, why_size);
    buffer_free(&absolute);
    return done;
}

/* LSE of a variant of the problem without its sink, in naive_lse. Of V it reads one column, which nobody looks at; naive is room
 * for that column of O. */
static bool sinkless_lse(struct judge *judge, attest_problem variant, attest_tensors tensors, char *why, size_t why_size)
{
    variant.dim_v = 1;
    variant.flags &= ~ATTEST_SINK;
    tensors.sinks = NULL;
    return judge_evaluate(judge, &variant, &tensors, ATTEST_EXACT, judge->row_count, judge->naive, judge->naive_lse, why, why_size);
}

/* LSE of the problem without its sink in spread, for the time being. */
static bool measure_keys(struct judge *judge, char *why, size_t why_size)
{
    bool sink = (judge->problem.flags & ATTEST_SINK) != 0;
    if (sink && !sinkless_lse(judge, judge->problem, judge->inputs->tensors, why, why_size))
        return false;
    const double *lse = sink ? judge->naive_lse : judge->exact_lse;
    for (int64_t n = 0; n < judge->row_count; n++) {
        struct place place = judge_place(judge, n);
        int64_t at = layout_row_at(&judge->layout, judge->problem.stride_lse, place.b, place.h, place.i);
        judge->spread[n] = lse[at];
        if (isfinite(lse[at]))
            judge->reach[n] += fmax(fabs(lse[at]), fabs(judge->exact_lse[at]));
    }
    return true;
}

/* With the sink aside, sum P^2 / (sum P)^2 = exp(LSE of the doubled scores - 2 LSE). The doubled problem has twice everything that
 * makes a score. */
static bool measure_spread(struct judge *judge, char *why, size_t why_size)
{
    attest_problem twice = judge->problem;
    attest_tensors tensors = judge->inputs->tensors;
    struct buffer bias = {0};
    int64_t heads = twice.heads_q, ladders = twice.stride_alibi_slopes ? twice.batch : 1;
    float *slopes = calloc((size_t)(ladders * heads) + 1, sizeof *slopes);
    bool done = slopes != NULL;
    twice.scale *= 2;
    twice.softcap *= 2;
    if (twice.softcap > 0x1p60f) { /* more than the library takes, and too much to change a score */
        twice.softcap = 0;
        twice.flags &= ~ATTEST_SOFTCAP;
    }
    if (done && twice.flags & ATTEST_ALIBI) {
        for (int64_t n = 0; n < ladders * heads; n++)
            slopes[n] = 2 * tensors.alibi_slopes[n / heads * twice.stride_alibi_slopes + n % heads];
        tensors.alibi_slopes = slopes;
        twice.stride_alibi_slopes = ladders > 1 ? heads : 0;
    }
    if (done && twice.flags & ATTEST_BIAS) {
        done = copy_buffer(&bias, &judge->inputs->bias, true);
        tensors.bias = bias.at;
    }
    done = done && measure_keys(judge, why, why_size) && sinkless_lse(judge, twice, tensors, why, why_size);
    for (int64_t n = 0; n < judge->row_count && done; n++) {
        struct place place = judge_place(judge, n);
        int64_t at = layout_row_at(&judge->layout, judge->problem.stride_lse, place.b, place.h, place.i);
        double squares = exp(judge->naive_lse[at] - 2 * judge->spread[n]);
        judge->spread[n] = squares < 1 ? sqrt(squares) : 1;
    }
    free(slopes);
    buffer_free(&bias);
    return done;
}

/* The problem with O and LSE without gaps, the rows, and room for what they are judged by. */
static bool prepare(struct judge *judge, const struct inputs *inputs, uint64_t seed, int64_t rows, const struct judge_rows *chosen,
                    int threads, bool naive)
{
    *judge = (struct judge){.inputs = inputs, .problem = inputs->problem, .layout = inputs->layout, .threads = threads};
    attest_problem *problem = &judge->problem;
    bool packed = (problem->flags & ATTEST_VARLEN_Q) != 0;
    int64_t row_count = packed ? problem->total_q : problem->batch * problem->seq_q;
    size_t o_count = (size_t)(row_count * problem->heads_q * problem->dim_v) + 1;
    size_t lse_count = (size_t)(row_count * problem->heads_q) + 1;
    int64_t dense_o[3] = {problem->heads_q * problem->seq_q * problem->dim_v, problem->seq_q * problem->dim_v, problem->dim_v};
    int64_t packed_o[3] = {0, problem->dim_v, problem->heads_q * problem->dim_v};
    int64_t dense_lse[3] = {problem->heads_q * problem->seq_q, problem->seq_q, 1};
    int64_t packed_lse[3] = {0, problem->total_q, 1};
    problem->flags |= ATTEST_LSE;
    memcpy(problem->stride_o, packed ? packed_o : dense_o, sizeof dense_o);
    memcpy(problem->stride_lse, packed ? packed_lse : dense_lse, sizeof dense_lse);
    judge->layout.problem = problem;
    judge->total_rows = layout_total_rows(&judge->layout);

    int64_t work = (problem->seq_kv + 1) * (problem->dim + problem->dim_v);
    /* Pages that are never touched cost nothing, so these arrays are as large as O even where few rows are judged. */
    return (chosen ? take_rows(judge, chosen) : choose_rows(judge, seed, rows ? rows : (int64_t)(WORK / (double)work))) &&
           (judge->exact = calloc(o_count, sizeof(double))) && (judge->mass = calloc(o_count, sizeof(double))) &&
           (judge->exact_lse = calloc(lse_count, sizeof(double))) && (judge->naive_lse = calloc(lse_count, sizeof(double))) &&
           (judge->reach = calloc((size_t)judge->row_count + 1, sizeof(double))) &&
           (judge->spread = calloc((size_t)judge->row_count + 1, sizeof(double))) &&
           (judge->naive = calloc(naive || problem->flags & ATTEST_SINK ? o_count : 1, sizeof(double)));
}

/* What both bounds need. */
static bool evaluate_exact(struct judge *judge, char *why, size_t why_size)
{
    return judge_evaluate(judge, &judge->problem, &judge->inputs->tensors, ATTEST_EXACT, judge->row_count, judge->exact,
                          judge->exact_lse, why, why_size) &&
           measure_reach(judge) && measure_largest(judge) && measure_mass(judge, why, why_size);
}

bool judge_make(struct judge *judge, const struct inputs *inputs, uint64_t seed, int64_t rows, int threads, char *why,
                size_t why_size)
{
    snprintf(why, why_size, "out of memory for the judge");
    bool done = prepare(judge, inputs, seed, rows, NULL, threads, true) && evaluate_exact(judge, why, why_size) &&
                measure_spread(judge, why, why_size) &&
                judge_evaluate(judge, &judge->problem, &inputs->tensors, ATTEST_NAIVE, judge->row_count, judge->naive,
                               judge->naive_lse, why, why_size);
    if (!done)
        judge_free(judge);
    return done;
}

/* Sequences and KV heads in which a row has a result that is not finite. */
static bool find_tainted(struct judge *judge)
{
    const attest_problem *problem = &judge->problem;
    judge->tainted = calloc((size_t)(problem->batch * problem->heads_kv) + 1, 1);
    for (int64_t n = 0; n < judge->row_count && judge->tainted; n++) {
        struct place place = judge_place(judge, n);
        int64_t at = layout_row_at(&judge->layout, problem->stride_o, place.b, place.h, place.i);
        double lse = judge->exact_lse[layout_row_at(&judge->layout, problem->stride_lse, place.b, place.h, place.i)];
        bool finite = lse < INFINITY;
        for (int64_t d = 0; d < problem->dim_v && finite; d++)
            finite = isfinite(judge->exact[at + d]);
        if (!finite)
            judge->tainted[place.b * problem->heads_kv + place.h / (problem->heads_q / problem->heads_kv)] = 1;
    }
    return judge->tainted != NULL;
}

bool judge_make_bounds(struct judge *judge, const struct inputs *inputs, const struct judge_rows *chosen, bool special, int threads,
                       char *why, size_t why_size)
{
    snprintf(why, why_size, "out of memory for the judge");
    bool done = prepare(judge, inputs, 0, INT64_MAX / 2, chosen, threads, false) && evaluate_exact(judge, why, why_size) &&
                measure_keys(judge, why, why_size) && (!special || find_tainted(judge));
    judge->bounds_alone = true;
    if (!done)
        judge_free(judge);
    return done;
}

void judge_free(struct judge *judge)
{
    free(judge->rows);
    free(judge->exact);
    free(judge->exact_lse);
    free(judge->mass);
    free(judge->naive);
    free(judge->naive_lse);
    free(judge->spread);
    free(judge->reach);
    free(judge->tainted);
    free(judge->largest);
    *judge = (struct judge){0};
}

/* The errors of one block, in grains, and where the kernel's is worst. */
struct block {
    double worst, naive;
    int components;
    char what[200];
};

/* One component of O, or one LSE, for the judge. */
struct component {
    struct place place;
    int64_t column;           /* -1: LSE */
    double got, exact, naive; /* exact is rounded to the output's type only where that makes it infinite */
    double bound, grain;
    bool tainted; /* a value that is not finite may have reached it */
};

static void describe(char *text, size_t size, const struct component *component, const char *rule)
{
    char column[32] = "";
    if (component->column >= 0)
        snprintf(column, sizeof column, ",%lld", (long long)component->column);
    snprintf(text, size, "%s[%lld,%lld,%lld%s] is %.9g and should be %.9g (%s)", component->column >= 0 ? "O" : "LSE",
             (long long)component->place.b, (long long)component->place.h, (long long)component->place.i, column, component->got,
             component->exact, rule);
}

static void judge_component(struct finding *finding, struct block *block, const struct component *component)
{
    if (component->tainted && !isfinite(component->got))
        return;
    if (!isfinite(component->exact)) {
        bool same = isnan(component->exact) ? isnan(component->got) : component->got == component->exact;
        if (!same && finding->ratio < INFINITY) {
            finding->ratio = INFINITY;
            describe(finding->what, sizeof finding->what, component, "NaN and Inf must be where the oracle has them");
        }
        return;
    }
    if (!isfinite(component->got)) {
        if (finding->ratio < INFINITY)
            describe(finding->what, sizeof finding->what, component, "it must be finite");
        finding->ratio = INFINITY;
        return;
    }
    double error = fabs(component->got - component->exact);
    if (error > component->bound * finding->ratio) {
        finding->ratio = error / component->bound;
        describe(finding->what, sizeof finding->what, component, "component bound");
    }
    if (!block)
        return;
    double grains = error / component->grain;
    block->components++;
    block->naive = fmax(block->naive, fabs(component->naive - component->exact) / component->grain);
    if (grains > block->worst) {
        block->worst = grains;
        describe(block->what, sizeof block->what, component, "block bound");
    }
}

static void close_block(struct finding *finding, const struct block *block)
{
    double ratio = block->worst / (2 * block->naive + 2);
    if (block->components >= LEAST_COMPONENTS && ratio > finding->ratio) {
        finding->ratio = ratio;
        snprintf(finding->what, sizeof finding->what, "%s: %.1f grains, naive %.1f", block->what, block->worst, block->naive);
    }
}

/* What a row adds to its components. */
struct row {
    struct place place;
    int64_t at, got_at;    /* of its first component: in the oracle's arrays, and in O */
    double spread, reach;  /* see struct judge */
    double worst_units;    /* relative rounding errors of float32, at worst */
    double unit_o, unit_p; /* of the result and of P */
    double tiny;
    double lost;          /* by weights below the smallest number of their type, for every 1 of |v| */
    const float *largest; /* [dim_v] */
    bool tainted;
};

/* Weights, of which the largest is 1, may be lost below this. */
static double lost_weight(uint32_t dtype)
{
    return dtype == ATTEST_F16 ? 0x1p-25 : (double)FLT_MIN;
}

/* Whether the rows of V are one and the same. The roundings of a sum of equal numbers all go one way. */
static bool rows_repeat(const attest_problem *problem)
{
    return problem->stride_v[2] == 0 || (problem->flags & ATTEST_PAGED && problem->stride_v[0] == 0);
}

static struct row row_of(const struct judge *judge, int64_t n, const int64_t stride_o[3])
{
    const attest_problem *problem = &judge->problem;
    struct place place = judge_place(judge, n);
    int64_t begin, end;
    layout_visible(&judge->layout, place.b, place.i, &begin, &end);
    int64_t kv_head = place.b * problem->heads_kv + place.h / (problem->heads_q / problem->heads_kv);
    double keys = (double)(end - begin);
    return (struct row){
        .place = place,
        .at = layout_row_at(&judge->layout, problem->stride_o, place.b, place.h, place.i),
        .got_at = layout_row_at(&judge->layout, stride_o, place.b, place.h, place.i),
        .spread = judge->spread[n],
        .reach = judge->reach[n],
        .worst_units = UNIT_F32 * (16 + 4 * judge->reach[n] + (rows_repeat(problem) ? keys : 2 * sqrt(keys))),
        .unit_o = unit_of(problem->dtype_o),
        .unit_p = problem->dtype == ATTEST_F32 ? 0 : unit_of(problem->dtype),
        .tiny = tiny_of(problem->dtype_o),
        .lost = lost_weight(problem->dtype) * keys,
        .largest = judge->largest + kv_head * problem->dim_v,
        .tainted = judge->tainted && judge->tainted[kv_head],
    };
}

/* The first bound. */
static double bound_of(const struct row *row, double mass, int64_t d)
{
    return mass * (2 * row->unit_o + 2 * row->unit_p + row->worst_units) + row->lost * (double)row->largest[d] + 2 * row->tiny;
}

static struct component component_of(const struct judge *judge, const struct row *row, const void *o, int64_t d)
{
    uint32_t dtype_o = judge->problem.dtype_o;
    double exact = judge->exact[row->at + d], mass = judge->mass[row->at + d];
    double expected = rounded(exact, dtype_o);
    return (struct component){
        .place = row->place,
        .column = d,
        .got = (double)element_load(o, dtype_o, row->got_at + d),
        .exact = isfinite(expected) ? exact : expected,
        .naive = judge->bounds_alone ? 0 : rounded(judge->naive[row->at + d], dtype_o),
        .tainted = row->tainted,
        .bound = bound_of(row, mass, d),
        .grain = row->unit_o * fabs(exact) + row->tiny + mass * row->spread * (row->unit_p + UNIT_F32 * (2 + row->reach)),
    };
}

void judge_output(const struct judge *judge, int64_t rows, const void *o, const int64_t stride_o[3], const float *lse,
                  const int64_t stride_lse[3], struct finding *finding)
{
    const attest_problem *problem = &judge->problem;
    struct block block_o = {0}, block_lse = {0};
    *finding = (struct finding){0};
    for (int64_t n = 0; n < rows; n++) {
        struct row row = row_of(judge, n, stride_o);
        struct place place = row.place;
        for (int64_t d = 0; d < problem->dim_v; d++) {
            struct component component = component_of(judge, &row, o, d);
            judge_component(finding, judge->bounds_alone ? NULL : &block_o, &component);
            if (isfinite(component.got) && isfinite(component.exact))
                finding->max_error = fmax(finding->max_error, fabs(component.got - component.exact));
        }
        if (lse) {
            int64_t at_lse = layout_row_at(&judge->layout, problem->stride_lse, place.b, place.h, place.i);
            struct component component = {
                .place = place,
                .column = -1,
                .got = (double)lse[layout_row_at(&judge->layout, stride_lse, place.b, place.h, place.i)],
                .exact = judge->exact_lse[at_lse],
                .naive = judge->naive_lse[at_lse],
                .tainted = row.tainted,
                .bound = row.worst_units,
                .grain = UNIT_F32 * (1 + row.reach),
            };
            judge_component(finding, judge->bounds_alone ? NULL : &block_lse, &component);
        }
        if (n % JUDGE_BLOCK == JUDGE_BLOCK - 1 || n == rows - 1) {
            close_block(finding, &block_o);
            close_block(finding, &block_lse);
            block_o = block_lse = (struct block){0};
        }
    }
    finding->accepted = finding->ratio <= 1;
    if (finding->accepted)
        finding->what[0] = '\0';
}

void judge_each(const struct judge *judge, int64_t rows, const void *o, const int64_t stride_o[3],
                void (*see)(void *data, const struct judged *judged), void *data)
{
    for (int64_t n = 0; n < rows; n++) {
        struct row row = row_of(judge, n, stride_o);
        for (int64_t d = 0; d < judge->problem.dim_v; d++) {
            struct component component = component_of(judge, &row, o, d);
            struct judged judged = {component.exact, component.got - component.exact, component.naive - component.exact,
                                    component.grain};
            if (isfinite(component.got) && isfinite(component.exact))
                see(data, &judged);
        }
    }
}

double judge_bound(const struct judge *judge, int64_t n, int64_t column)
{
    struct row row = row_of(judge, n, judge->problem.stride_o);
    return bound_of(&row, judge->mass[row.at + column], column);
}

double judge_bound_lse(const struct judge *judge, int64_t n)
{
    return row_of(judge, n, judge->problem.stride_o).worst_units;
}
