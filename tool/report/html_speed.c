/*
 * html_speed.c - speed: against the champion (as the speed gate judged it), against other libraries (as bench/peers.py measured
 * them), and against what the machine can do.
 *
 * Three kinds of numbers meet here, and the page says which is which. Times and their intervals are measured. The floor of a shape
 * is a bound: what the gate holds to be the least time that an honest call can take. Ceilings are measured too, but by the peer
 * benchmark, on a machine of the same class at another time.
 */
#include "html.h"

#include <attest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/layout.h"

enum { MOST_SHAPES = 64, MOST_ROUNDS = 64 };

/* ---- against the champion ------------------------------------------------------------------------------------------------ */

static void write_ratio(FILE *out, const json_t *row)
{
    figure texts[3];
    bool ranged;
    double low = field_number(row, "low", &ranged);
    write_markup(out, "<td class=\"figure\"><b>%s</b>", figure_of(texts[0], field_number(row, "ratio", NULL)));
    if (ranged)
        write_markup(out, " <span class=\"range\">%s to %s</span>", figure_of(texts[1], low),
                     figure_of(texts[2], field_number(row, "high", NULL)));
    fputs("</td>", out);
}

static void write_seconds(FILE *out, const json_t *row, const char *key)
{
    figure text;
    bool found;
    double seconds = field_number(row, key, &found);
    write_markup(out, "<td class=\"figure wide\">%s</td>", found && seconds > 0 ? figure_seconds(text, seconds) : "–");
}

static enum tone speed_tone(const char *speed)
{
    return strcmp(speed, "SLOWER") == 0 ? TONE_FAIL : strcmp(speed, "INCONCLUSIVE") == 0 ? TONE_OPEN : tone_of(speed);
}

static void write_shape(FILE *out, const struct axis *axis, const json_t *shape, size_t number)
{
    figure text;
    bool timed;
    double share = field_number(shape, "floor_s", NULL) / field_number(shape, "median_a_s", NULL);
    field_number(shape, "ratio", &timed);
    write_markup(out, "<tr><td class=\"figure\">%zu</td><th scope=\"row\">", number);
    html_code(out, field_text(shape, "problem"));
    if (!timed) {
        write_markup(out, "</th><td class=\"plot\"></td><td colspan=\"6\">%s</td></tr>\n", field_text(shape, "sentence"));
        return;
    }
    fputs("</th><td class=\"plot\">", out);
    chart_interval(out, axis, field_number(shape, "low", NULL), field_number(shape, "ratio", NULL),
                   field_number(shape, "high", NULL), field_number(shape, "effect", NULL), speed_tone(field_text(shape, "speed")));
    fputs("</td>", out);
    write_ratio(out, shape);
    write_markup(out, "<td title=\"%s\">%s%s</td>", field_text(shape, "sentence"), field_text(shape, "speed"),
                 json_is_true(json_object_get(shape, "below_floor")) ? ", BELOW THE FLOOR" : "");
    write_seconds(out, shape, "median_a_s");
    write_seconds(out, shape, "median_b_s");
    write_seconds(out, shape, "floor_s");
    write_markup(out, "<td class=\"figure wide\">%s</td></tr>\n", isfinite(share) && share > 0 ? figure_percent(text, share) : "–");
}

static void write_statistics(FILE *out, json_t *shapes)
{
    static const char *const keys[] = {"blocks", "effect", "self_mad", "g", "gz"};
    static const char *const titles[] = {"shape",      ">blocks",   ">least effect", ">MAD of A/A, log",
                                         ">Hedges’ g", ">paired g", "in words",      NULL};
    size_t index;
    json_t *shape;
    fputs("<details class=\"more\"><summary>Statistics of each shape</summary>", out);
    html_table_begin(out, NULL, titles);
    json_array_foreach(shapes, index, shape)
    {
        fputs("<tr><th scope=\"row\">", out);
        html_code(out, field_text(shape, "problem"));
        fputs("</th>", out);
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            figure text;
            bool found;
            double value = field_number(shape, keys[i], &found);
            write_markup(out, "<td class=\"figure\">%s</td>", found ? figure_of(text, value) : "–");
        }
        write_markup(out, "<td>%s</td></tr>\n", field_text(shape, "sentence"));
    }
    html_table_end(out);
    fputs("</details>\n", out);
}

static void write_champion(FILE *out, json_t *details)
{
    json_t *shapes = field_array(details, "shapes"), *suite = field_object(details, "suite"), *shape;
    double low = 1, high = 1;
    size_t index;
    const char *opponent = field_text(details, "opponent");
    json_array_foreach(shapes, index, shape)
    {
        range_add(&low, &high, field_number(shape, "low", NULL));
        range_add(&low, &high, field_number(shape, "ratio", NULL));
        range_add(&low, &high, field_number(shape, "high", NULL));
    }
    struct axis axis = axis_over(low, high);
    if (strcmp(field_text(details, "clock"), "simulated") == 0)
        fputs("<p class=\"notice\">These times come from a simulated clock. They test the gate and say nothing about the "
              "kernel.</p>\n",
              out);
    write_markup(out,
                 "<div class=\"scroll\"><table class=\"forest\"><caption>Speed against %s: time of the opponent divided by "
                 "time of this kernel, more than 1 is faster; 95&nbsp;%% intervals (BCa bootstrap over blocks)</caption>\n",
                 *opponent ? opponent : "the opponent");
    fputs("<thead><tr><th scope=\"col\"><span class=\"hidden\">number</span></th><th scope=\"col\">shape</th><th scope=\"col\" "
          "class=\"plot\">",
          out);
    chart_ticks(out, &axis);
    fputs("<span class=\"hidden\">interval</span></th><th scope=\"col\" class=\"figure\">ratio</th><th scope=\"col\">"
          "verdict</th><th scope=\"col\" class=\"figure wide\">this kernel</th><th scope=\"col\" class=\"figure wide\">"
          "opponent</th><th scope=\"col\" class=\"figure wide\">floor</th><th scope=\"col\" class=\"figure wide\">floor ÷ "
          "time</th></tr></thead><tbody>\n",
          out);
    json_array_foreach(shapes, index, shape) write_shape(out, &axis, shape, index + 1);
    if (suite) {
        fputs("<tr class=\"total\"><td></td><th scope=\"row\">suite (weighted geometric mean)</th><td class=\"plot\">", out);
        chart_interval(out, &axis, field_number(suite, "low", NULL), field_number(suite, "ratio", NULL),
                       field_number(suite, "high", NULL), 0, speed_tone(field_text(suite, "speed")));
        fputs("</td>", out);
        write_ratio(out, suite);
        write_markup(out, "<td>%s</td><td class=\"wide\" colspan=\"4\"></td></tr>\n", field_text(suite, "speed"));
    }
    fputs("</tbody></table></div>\n", out);
    write_statistics(out, shapes);
}

/* ---- against other libraries --------------------------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The ratio of one peer to attest in one cell: the median over the rounds of the ratios within a round, and their range. False if
 * there is no round with both. */
static bool peer_ratio(json_t *cell, const char *peer, double *low, double *middle, double *high, int *rounds)
{
    json_t *contenders = field_object(cell, "contenders");
    json_t *theirs = field_array(field_object(contenders, peer), "seconds");
    json_t *ours = field_array(field_object(contenders, "attest"), "seconds"), *value;
    double ratios[MOST_ROUNDS];
    size_t index;
    int count = 0;
    json_array_foreach(theirs, index, value)
    {
        double ratio = value_number(value, NULL) / value_number(json_array_get(ours, index), NULL);
        if (isfinite(ratio) && ratio > 0 && count < MOST_ROUNDS)
            ratios[count++] = ratio;
    }
    if (count == 0)
        return false;
    qsort(ratios, (size_t)count, sizeof ratios[0], compare_numbers);
    *low = ratios[0];
    *high = ratios[count - 1];
    *middle = count % 2 ? ratios[count / 2] : (ratios[count / 2 - 1] + ratios[count / 2]) / 2;
    *rounds = count;
    return true;
}

/* The device class of a benchmark: that of the best feature of its machine, the last in the list. */
static bool same_class(const json_t *results, const char *class)
{
    const char *features = field_text(field_object(field_object(results, "versions"), "attest"), "features");
    const char *last = strrchr(features, ',');
    return strncmp(class, "cpu-", 4) == 0 && *features && strcmp(class + 4, last ? last + 1 : features) == 0;
}

static int cell_threads(const json_t *cell)
{
    return (int)json_integer_value(json_object_get(cell, "threads"));
}

/* The number of threads to show: that of the record if the benchmark has it for this kernel, else the most; 0 if it has none. */
static int threads_shown(json_t *cells, const char *kernel, int wanted)
{
    size_t index;
    json_t *cell;
    int most = 0;
    json_array_foreach(cells, index, cell)
    {
        if (strcmp(field_text(field_object(field_object(cell, "contenders"), "attest"), "variant"), kernel) != 0)
            continue;
        if (cell_threads(cell) == wanted)
            return wanted;
        most = cell_threads(cell) > most ? cell_threads(cell) : most;
    }
    return most;
}

static bool cell_shown(const json_t *cell, const char *kernel, int threads)
{
    return cell_threads(cell) == threads &&
           strcmp(field_text(field_object(field_object(cell, "contenders"), "attest"), "variant"), kernel) == 0;
}

struct peer {
    const char *key, *name;
};
static const struct peer peer_names[] = {{"pytorch", "PyTorch"}, {"onednn", "oneDNN"}, {"openblas", "OpenBLAS"}};
enum { PEER_COUNT = sizeof peer_names / sizeof peer_names[0] };

static void write_peer_row(FILE *out, const struct axis *axis, double low, double middle, double high)
{
    figure texts[3];
    fputs("<td class=\"plot\">", out);
    chart_interval(out, axis, low, middle, high, 0, low > 1 ? TONE_PASS : high < 1 ? TONE_FAIL : TONE_NONE);
    write_markup(out, "</td><td class=\"figure\"><b>%s</b> <span class=\"range\">%s to %s</span></td></tr>\n",
                 figure_of(texts[0], middle), figure_of(texts[1], low), figure_of(texts[2], high));
}

static void write_peer_head(FILE *out, const struct axis *axis, const char *first)
{
    write_markup(out, "<thead><tr><th scope=\"col\">%s</th><th scope=\"col\">peer</th><th scope=\"col\" class=\"plot\">", first);
    chart_ticks(out, axis);
    fputs("<span class=\"hidden\">interval</span></th><th scope=\"col\" class=\"figure\">ratio</th></tr></thead><tbody>\n", out);
}

static void write_peer_shapes(FILE *out, const struct axis *axis, json_t *cells, const char *kernel, int threads, int rounds)
{
    size_t index;
    json_t *cell;
    /* The range of n independent draws misses their median with probability 2 to the power 1 - n. */
    write_markup(
        out,
        "<details class=\"more\"><summary>Every shape</summary><div class=\"scroll\"><table class=\"forest peers\"><caption>"
        "Median and range of %d rounds; the range is a %.0f&nbsp;%% interval of the median</caption>\n",
        rounds, 100 * (1 - pow(2, 1 - rounds)));
    write_peer_head(out, axis, "shape");
    json_array_foreach(cells, index, cell)
    {
        if (!cell_shown(cell, kernel, threads))
            continue;
        for (int i = 0; i < PEER_COUNT; i++) {
            double low, middle, high;
            int count;
            if (!peer_ratio(cell, peer_names[i].key, &low, &middle, &high, &count))
                continue;
            fputs("<tr><th scope=\"row\">", out);
            html_code(out, field_text(cell, "problem"));
            write_markup(out, "</th><td>%s</td>", peer_names[i].name);
            write_peer_row(out, axis, low, middle, high);
        }
    }
    fputs("</tbody></table></div></details>\n", out);
}

static void write_peer_file(FILE *out, const char *file, json_t *results, const json_t *record)
{
    const char *kernel = field_text(record, "kernel");
    json_t *cells = field_array(results, "cells"), *cell, *machine = field_object(results, "machine");
    int threads = threads_shown(cells, kernel, (int)json_integer_value(json_object_get(record, "threads"))),
        least_rounds = MOST_ROUNDS;
    double low = 1, high = 1;
    struct {
        double low, high, logs;
        int count;
    } sums[PEER_COUNT] = {{0}};
    size_t index;
    json_array_foreach(cells, index, cell)
    {
        for (int i = 0; i < PEER_COUNT && cell_shown(cell, kernel, threads); i++) {
            double least, middle, most;
            int rounds;
            if (!peer_ratio(cell, peer_names[i].key, &least, &middle, &most, &rounds))
                continue;
            range_add(&low, &high, least);
            range_add(&low, &high, most);
            sums[i].low = sums[i].count == 0 ? middle : fmin(sums[i].low, middle);
            sums[i].high = fmax(sums[i].high, middle);
            sums[i].logs += log(middle);
            sums[i].count++;
            least_rounds = rounds < least_rounds ? rounds : least_rounds;
        }
    }
    if (low == high)
        return;
    struct axis axis = axis_over(low, high);
    write_markup(out, "<h5>Against other libraries</h5><p>Measured on %s with %d threads on %s (%lld cores), attest build %s; ",
                 field_text(results, "date"), threads, field_text(machine, "cpu"),
                 (long long)json_integer_value(json_object_get(machine, "cores")),
                 field_text(field_object(field_object(results, "versions"), "attest"), "build_id"));
    html_code(out, file);
    fputs(".</p><div class=\"scroll\"><table class=\"forest peers\"><caption>Time of the peer divided by time of this kernel, "
          "more than 1 is faster: geometric mean over shapes; the line goes from the worst shape to the best</caption>\n",
          out);
    write_peer_head(out, &axis, "shapes");
    for (int i = 0; i < PEER_COUNT; i++) {
        if (sums[i].count == 0)
            continue;
        write_markup(out, "<tr><td>%d</td><th scope=\"row\">%s</th>", sums[i].count, peer_names[i].name);
        write_peer_row(out, &axis, sums[i].low, exp(sums[i].logs / sums[i].count), sums[i].high);
    }
    fputs("</tbody></table></div>\n", out);
    write_peer_shapes(out, &axis, cells, kernel, threads, least_rounds);
}

static void write_peers(FILE *out, const struct matter *matter, const json_t *record)
{
    size_t index;
    json_t *entry;
    const char *class = field_text(field_object(record, "device"), "class");
    json_array_foreach(matter->peers, index, entry)
    {
        json_t *results = field_object(entry, "results");
        if (same_class(results, class))
            write_peer_file(out, field_text(entry, "file"), results, record);
    }
}

/* ---- against the machine ------------------------------------------------------------------------------------------------- */

/* The work of a problem: operations, and the bytes of its tensors, each once. False if it depends on data, or is absurd. */
static bool problem_work(const char *text, double *flops, double *bytes)
{
    attest_problem problem;
    char why[256];
    if (attest_problem_parse(text, &problem, why, sizeof why) != ATTEST_OK ||
        attest_problem_check(&problem, why, sizeof why) != ATTEST_OK ||
        (problem.flags & (ATTEST_VARLEN_Q | ATTEST_VARLEN_KV | ATTEST_KV_LENGTHS)) != 0 ||
        (double)problem.batch * (double)problem.seq_q > 1e8)
        return false;
    struct layout layout = {.problem = &problem};
    double rows = (double)problem.batch * (double)problem.heads_q * (double)problem.seq_q;
    *flops = layout_flops(&layout);
    *bytes = layout_kv_bytes(&layout) + rows * ((double)problem.dim * (double)element_size(problem.dtype) +
                                                (double)problem.dim_v * (double)element_size(problem.dtype_o));
    if (problem.flags & ATTEST_LSE)
        *bytes += 4 * rows;
    return *flops > 0 && *bytes > 0;
}

enum { MOST_CEILINGS = 8 };
struct ceilings {
    struct roof_ceiling list[MOST_CEILINGS];
    int count;
};

static void add_ceiling(struct ceilings *ceilings, const char *name, double flops, double bytes, bool measured)
{
    if (ceilings->count < MOST_CEILINGS && isfinite(flops + bytes) && flops + bytes > 0)
        ceilings->list[ceilings->count++] = (struct roof_ceiling){name, flops, bytes, measured};
}

/* What the peer benchmark measured of this processor, with as many threads. */
static void add_measured(struct ceilings *ceilings, const struct matter *matter, const json_t *record, bool is_short)
{
    char threads[24];
    size_t index;
    json_t *entry, *device = field_object(record, "device");
    snprintf(threads, sizeof threads, "%lld", (long long)json_integer_value(json_object_get(record, "threads")));
    json_array_foreach(matter->peers, index, entry)
    {
        json_t *results = field_object(entry, "results"), *found = field_object(field_object(results, "ceilings"), threads);
        if (!same_class(results, field_text(device, "class")) ||
            strcmp(field_text(field_object(results, "machine"), "cpu"), field_text(device, "model")) != 0)
            continue;
        add_ceiling(ceilings, "f32 multiply-add, measured", 1e9 * field_number(field_object(found, "fma_f32"), "best", NULL), 0,
                    true);
        if (is_short)
            add_ceiling(ceilings, "bf16 products, measured", 1e9 * field_number(field_object(found, "dot_bf16"), "best", NULL), 0,
                        true);
        add_ceiling(ceilings, "memory read, measured", 0, 1e9 * field_number(field_object(found, "read"), "best", NULL), true);
        return;
    }
}

/* What the floor of the gate is made of: more than any processor does in a cycle, at a clock that none reaches. */
static void add_bounds(struct ceilings *ceilings, const json_t *details, bool is_short)
{
    json_t *bounds = field_object(details, "floor");
    double cycles = field_number(bounds, "cores", NULL) * field_number(bounds, "clock_hz", NULL);
    add_ceiling(ceilings, "arithmetic, bound",
                cycles * field_number(bounds, is_short ? "flops_a_cycle_16_bit" : "flops_a_cycle_f32", NULL), 0, false);
    add_ceiling(ceilings, "bytes, bound", 0, cycles * field_number(bounds, "bytes_a_cycle", NULL), false);
}

/* The measured ceiling at an intensity; 0 if none was measured. */
static double measured_at(const struct ceilings *ceilings, double intensity)
{
    double flops = 0, bytes = INFINITY;
    for (int i = 0; i < ceilings->count; i++) {
        if (ceilings->list[i].measured && ceilings->list[i].flops > 0)
            flops = fmax(flops, ceilings->list[i].flops);
        else if (ceilings->list[i].measured)
            bytes = ceilings->list[i].bytes;
    }
    return fmin(flops, bytes * intensity);
}

/* One point for each shape; those that cannot be drawn have rate 0. Returns how many can. */
static int make_points(json_t *shapes, struct roof_point *points)
{
    size_t index;
    json_t *shape;
    int drawn = 0;
    json_array_foreach(shapes, index, shape)
    {
        double flops, bytes, seconds = field_number(shape, "median_a_s", NULL), least = field_number(shape, "floor_s", NULL);
        if (index == MOST_SHAPES)
            break;
        if (!problem_work(field_text(shape, "problem"), &flops, &bytes) || !isfinite(seconds) || !(seconds > 0))
            continue;
        points[index] = (struct roof_point){.intensity = flops / bytes,
                                            .rate = isfinite(flops / seconds) ? flops / seconds : 0,
                                            .bound = isfinite(least) && least > 0 ? flops / least : 0};
        drawn += points[index].rate > 0;
    }
    return drawn;
}

static void write_points(FILE *out, json_t *shapes, const struct roof_point *points, const struct ceilings *ceilings)
{
    static const char *const titles[] = {"point", "shape", ">flop per byte", ">Gflop/s", ">of the ceiling", ">of the bound", NULL};
    size_t index;
    json_t *shape;
    html_table_begin(out, NULL, titles);
    json_array_foreach(shapes, index, shape)
    {
        figure texts[4];
        if (index >= MOST_SHAPES || points[index].rate <= 0)
            continue;
        const struct roof_point *point = &points[index];
        double ceiling = measured_at(ceilings, point->intensity);
        write_markup(out, "<tr><td class=\"figure\">%zu</td><th scope=\"row\">", index + 1);
        html_code(out, field_text(shape, "problem"));
        write_markup(out, "</th><td class=\"figure\">%s</td><td class=\"figure\">%s</td>", figure_of(texts[0], point->intensity),
                     figure_of(texts[1], point->rate / 1e9));
        write_markup(out, "<td class=\"figure\">%s</td><td class=\"figure\">%s</td></tr>\n",
                     ceiling > 0 ? figure_percent(texts[2], point->rate / ceiling) : "–",
                     point->bound > 0 ? figure_percent(texts[3], point->rate / point->bound) : "–");
    }
    html_table_end(out);
}

static void write_roofline(FILE *out, const struct matter *matter, const json_t *record, json_t *details)
{
    struct roof_point points[MOST_SHAPES] = {{0}};
    struct ceilings ceilings = {.count = 0};
    json_t *shapes = field_array(details, "shapes");
    bool is_short = strcmp(field_text(record, "problem_class"), "fwd:f32") != 0;
    if (strcmp(field_text(details, "clock"), "simulated") == 0 || make_points(shapes, points) == 0)
        return;
    add_measured(&ceilings, matter, record, is_short);
    bool measured = ceilings.count > 0;
    add_bounds(&ceilings, details, is_short);
    fputs("<h5>Roofline</h5><figure>", out);
    chart_roofline(out, points, MOST_SHAPES, ceilings.list, ceilings.count);
    fputs("<figcaption>Numbered points are measured medians. The short lines are the rates at the floor, below which the gate "
          "believes no time; they and the dashed lines are bounds, not measurements.",
          out);
    if (measured)
        fputs(" The full lines are ceilings: the best that the peer benchmark measured on this processor. The sloping one is "
              "memory; what fits into caches may rise above it.",
              out);
    fputs("</figcaption></figure>", out);
    write_points(out, shapes, points, &ceilings);
}

void html_speed(FILE *out, const struct matter *matter, const json_t *record, json_t *details)
{
    static const char *const known[] = {"shapes", "suite", "clock", "opponent", "samples", "floor", NULL};
    if (json_array_size(field_array(details, "shapes")) > 0)
        write_champion(out, details);
    write_roofline(out, matter, record, details);
    write_peers(out, matter, record);
    html_facts_rest(out, details, known);
}
