/*
 * html_charts.c - the pictures of the page, as inline SVG.
 *
 * Coordinates are percentages and text has the size of the page, so that a picture fits any width without becoming small: there is
 * no viewBox that would scale it. Colours are classes, so that they follow the light or dark style. A picture never stands alone:
 * its numbers are in the table beside it, and its label says what it shows.
 */
#include "html.h"

#include <math.h>
#include <string.h>

/* ---- axes ---------------------------------------------------------------------------------------------------------------- */

/* From coarse to fine: the mantissas of ticks in each decade. */
static const double mantissas[][20] = {
    {1},
    {1, 2, 5},
    {1, 1.5, 2, 3, 5, 7},
    {1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 7, 8, 9},
    {1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2, 2.5, 3, 4, 5, 6, 7, 8, 9},
    {1, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35, 1.4, 1.5, 2, 3, 4, 5, 6, 7, 8, 8.5, 9, 9.5},
    {1, 1.02, 1.04, 1.06, 1.08, 1.1, 1.12, 1.14, 8.6, 8.8, 9, 9.2, 9.4, 9.6, 9.8},
    {1, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 9.4, 9.5, 9.6, 9.7, 9.8, 9.9},
};
enum { TICK_SETS = sizeof mantissas / sizeof mantissas[0], LEAST_DISTANCE = 13 };

void range_add(double *low, double *high, double value)
{
    if (!isfinite(value) || value <= 0)
        return;
    *low = *low > *high || value < *low ? value : *low;
    *high = value > *high ? value : *high;
}

double axis_at(const struct axis *axis, double value)
{
    double at = 100 * (log(value) - log(axis->low)) / (log(axis->high) - log(axis->low));
    return at < 0 ? 0 : at > 100 ? 100 : at;
}

/* Places the ticks of one set that lie on the axis; false if two are so close that their labels would touch. */
static bool place_ticks(struct axis *axis, const double *set)
{
    double last = -2 * LEAST_DISTANCE;
    axis->tick_count = 0;
    for (int decade = (int)floor(log10(axis->low)); decade <= (int)ceil(log10(axis->high)); decade++) {
        for (int i = 0; i < 20 && set[i] > 0; i++) {
            double value = set[i] * pow(10, decade), at = axis_at(axis, value);
            if (value < axis->low || value > axis->high)
                continue;
            if (at - last < LEAST_DISTANCE || axis->tick_count == MOST_TICKS)
                return false;
            last = at;
            axis->ticks[axis->tick_count++] = value;
        }
    }
    return true;
}

struct axis axis_over(double low, double high)
{
    if (low > high)
        low = high = 1;
    double margin = fmax(0.04 * (log(high) - log(low)), 0.01);
    struct axis axis = {.low = low * exp(-margin), .high = high * exp(margin)};
    struct axis best = axis;
    for (int set = 0; set < TICK_SETS; set++)
        if (place_ticks(&axis, mantissas[set]) && axis.tick_count > best.tick_count)
            best = axis;
    return best;
}

static const char *tick_text(figure text, double value)
{
    snprintf(text, FIGURE, value < 1e6 ? "%g" : "%.0e", value);
    return text;
}

/* ---- intervals ----------------------------------------------------------------------------------------------------------- */

void chart_ticks(FILE *out, const struct axis *axis)
{
    figure text;
    fputs("<span class=\"ticks\" aria-hidden=\"true\">", out);
    for (int i = 0; i < axis->tick_count; i++)
        write_markup(out, "<span style=\"left:%.1f%%\">%s</span>", axis_at(axis, axis->ticks[i]), tick_text(text, axis->ticks[i]));
    fputs("</span>", out);
}

static void vertical(FILE *out, const char *class, double at)
{
    write_markup(out, "<line class=\"%s\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"100%%\"/>", class, at, at);
}

void chart_interval(FILE *out, const struct axis *axis, double low, double estimate, double high, double effect, enum tone tone)
{
    figure texts[3];
    bool drawn = isfinite(estimate) && estimate > 0;
    bool ranged = drawn && isfinite(low) && isfinite(high) && low > 0 && low <= high;
    write_markup(out, "<svg class=\"interval %s\" role=\"img\" aria-label=\"ratio %s", tone_class(tone),
                 figure_of(texts[0], estimate));
    if (ranged)
        write_markup(out, ", interval %s to %s", figure_of(texts[1], low), figure_of(texts[2], high));
    fputs("\">", out);
    if (isfinite(effect) && effect > 0 && effect < 1) {
        double left = axis_at(axis, 1 / (1 + effect)), right = axis_at(axis, 1 + effect);
        write_markup(out, "<rect class=\"same\" x=\"%.2f%%\" width=\"%.2f%%\" y=\"0\" height=\"100%%\"/>", left, right - left);
    }
    for (int i = 0; i < axis->tick_count; i++)
        vertical(out, "grid", axis_at(axis, axis->ticks[i]));
    if (axis->low <= 1 && axis->high >= 1)
        vertical(out, "one", axis_at(axis, 1));
    if (ranged)
        write_markup(out, "<line class=\"bar\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"50%%\" y2=\"50%%\"/>", axis_at(axis, low),
                     axis_at(axis, high));
    if (drawn)
        write_markup(out, "<circle class=\"mark\" cx=\"%.2f%%\" cy=\"50%%\" r=\"4\"/>", axis_at(axis, estimate));
    fputs("</svg>", out);
}

/* ---- the map of the error ------------------------------------------------------------------------------------------------ */

/* The oracle writes the logarithm of an error as at least -12, which is as good as none, and at most 12, which is NaN or infinite too
 * (stages_save.c). */
#define HEAT_NONE    (-12.0)
#define HEAT_ENDLESS 12.0
enum { HEAT_LEVELS = 8, HEAT_RIGHT = -1, HEAT_NOTHING = -2, MOST_CELLS = 256, LEAST_SIDE = 140, CELL_SIDE = 7 };

struct heat {
    const json_t *values;
    size_t rows, columns;
    double low, high; /* log10 of the smallest and the largest error */
    bool any_right, any_special;
};

static double heat_value(const struct heat *heat, size_t row, size_t column, bool *found)
{
    return value_number(json_array_get(json_array_get(heat->values, row), column), found);
}

/* 0 to HEAT_LEVELS - 1; HEAT_LEVELS for NaN and infinity, HEAT_RIGHT for no error, HEAT_NOTHING where there is nothing to see. */
static int heat_level(const struct heat *heat, size_t row, size_t column)
{
    bool found;
    double value = heat_value(heat, row, column, &found);
    if (!found)
        return HEAT_NOTHING;
    if (value <= HEAT_NONE)
        return HEAT_RIGHT;
    if (!(value < HEAT_ENDLESS))
        return HEAT_LEVELS;
    int level = (int)floor((value - heat->low) / (heat->high - heat->low) * HEAT_LEVELS);
    return level < 0 ? 0 : level >= HEAT_LEVELS ? HEAT_LEVELS - 1 : level;
}

static struct heat heat_of(const json_t *values)
{
    struct heat heat = {.values = values, .low = HEAT_ENDLESS, .high = HEAT_NONE};
    heat.rows = json_array_size(values) < MOST_CELLS ? json_array_size(values) : MOST_CELLS;
    for (size_t row = 0; row < heat.rows; row++) {
        size_t width = json_array_size(json_array_get(values, row));
        width = width < MOST_CELLS ? width : MOST_CELLS;
        heat.columns = width > heat.columns ? width : heat.columns;
        for (size_t column = 0; column < width; column++) {
            bool found;
            double value = heat_value(&heat, row, column, &found);
            heat.any_right = heat.any_right || (found && value <= HEAT_NONE);
            heat.any_special = heat.any_special || (found && !(value < HEAT_ENDLESS));
            if (value > HEAT_NONE && value < HEAT_ENDLESS) {
                heat.low = fmin(heat.low, value);
                heat.high = fmax(heat.high, value);
            }
        }
    }
    if (heat.low > heat.high)
        heat.low = heat.high = 0;
    if (heat.high - heat.low < 1)
        heat.low = heat.high - 1; /* nearly one value everywhere: that value is the top of the scale */
    return heat;
}

static size_t side_of(size_t cells)
{
    return CELL_SIDE * cells > LEAST_SIDE ? CELL_SIDE * cells : LEAST_SIDE;
}

/* All cells of a level as one path: runs of cells, row by row. */
static void write_level(FILE *out, const struct heat *heat, int level, const char *class)
{
    bool any = false;
    for (size_t row = 0; row < heat->rows; row++) {
        for (size_t column = 0; column < heat->columns;) {
            size_t end = column;
            while (end < heat->columns && heat_level(heat, row, end) == level)
                end++;
            if (end > column) {
                if (!any)
                    write_markup(out, "<path class=\"%s\" d=\"", class);
                any = true;
                write_markup(out, "M%zu %zuh%zuv1h-%zuz", column, row, end - column, end - column);
            }
            column = end > column ? end : column + 1;
        }
    }
    if (any)
        fputs("\"/>", out);
}

static const char *const heat_classes[HEAT_LEVELS + 1] = {"heat0", "heat1", "heat2", "heat3", "heat4",
                                                          "heat5", "heat6", "heat7", "heat8"};

void chart_heat(FILE *out, json_t *diagnosis)
{
    struct heat heat = heat_of(field_array(field_object(diagnosis, "heat"), "values"));
    figure texts[2];
    if (heat.columns == 0)
        return;
    write_markup(out, "<figure class=\"heat\"><svg viewBox=\"0 0 %zu %zu\" width=\"%zu\" height=\"%zu\" ", heat.columns, heat.rows,
                 side_of(heat.columns), side_of(heat.rows));
    write_markup(out, "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Map of the error, %zu rows and %zu columns\">",
                 heat.rows, heat.columns);
    write_level(out, &heat, HEAT_RIGHT, "right");
    for (int level = 0; level <= HEAT_LEVELS; level++)
        write_level(out, &heat, level, heat_classes[level]);
    fputs("</svg><figcaption>Error by row (down) and column (across), on a logarithmic scale.<ul class=\"scale\">", out);
    if (heat.any_right)
        fputs("<li><span class=\"swatch right\"></span> no error</li>", out);
    write_markup(out, "<li>%s <span class=\"ramp\">", figure_of(texts[0], pow(10, heat.low)));
    for (int level = 0; level < HEAT_LEVELS; level++)
        write_markup(out, "<span class=\"swatch %s\"></span>", heat_classes[level]);
    write_markup(out, "</span> %s</li>", figure_of(texts[1], pow(10, heat.high)));
    if (heat.any_special)
        write_markup(out, "<li><span class=\"swatch %s\"></span> NaN or infinite</li>", heat_classes[HEAT_LEVELS]);
    fputs("</ul></figcaption></figure>\n", out);
}

/* ---- roofline ------------------------------------------------------------------------------------------------------------ */

static const char *roof_class(const struct roof_ceiling *ceiling)
{
    return ceiling->measured ? "roof" : "roof assumed";
}

/* Where the slope of the bytes meets the highest rate of the same kind; the left end if there is no slope. */
static double ridge_of(const struct roof_ceiling *ceilings, int count, const struct roof_ceiling *of, double *highest)
{
    double bytes = 0;
    *highest = 0;
    for (int i = 0; i < count; i++) {
        if (ceilings[i].measured != of->measured)
            continue;
        *highest = fmax(*highest, ceilings[i].flops);
        bytes = fmax(bytes, ceilings[i].bytes);
    }
    return bytes > 0 ? *highest / bytes : 0;
}

/* A rate is a level line, from the slope on; bytes are a slope, up to the highest rate. */
static void draw_ceiling(FILE *out, const struct roof_ceiling *ceilings, int count, const struct roof_ceiling *ceiling,
                         const struct axis *x, const struct axis *y)
{
    double highest, ridge = ridge_of(ceilings, count, ceiling, &highest);
    if (ceiling->flops > 0) {
        double at = 100 - axis_at(y, ceiling->flops), from = axis_at(x, fmax(x->low, ridge));
        write_markup(out, "<line class=\"%s\" x1=\"%.2f%%\" x2=\"100%%\" y1=\"%.2f%%\" y2=\"%.2f%%\"/>", roof_class(ceiling), from,
                     at, at);
        write_markup(out, "<text class=\"roofname\" x=\"%.2f%%\" y=\"%.2f%%\" dx=\"8\" dy=\"-6\">%s</text>", from, at,
                     ceiling->name);
        return;
    }
    double begin = fmax(x->low, y->low / ceiling->bytes), end = fmin(x->high, (highest > 0 ? highest : y->high) / ceiling->bytes);
    if (begin >= end)
        return;
    double x1 = axis_at(x, begin), x2 = axis_at(x, end);
    double y1 = 100 - axis_at(y, ceiling->bytes * begin), y2 = 100 - axis_at(y, ceiling->bytes * end);
    write_markup(out, "<line class=\"%s\" x1=\"%.2f%%\" y1=\"%.2f%%\" x2=\"%.2f%%\" y2=\"%.2f%%\"/>", roof_class(ceiling), x1, y1,
                 x2, y2);
    write_markup(out, "<text class=\"roofname\" x=\"%.2f%%\" y=\"%.2f%%\" dx=\"10\" dy=\"10\">%s</text>", (x1 + x2) / 2,
                 (y1 + y2) / 2, ceiling->name);
}

static void draw_axes(FILE *out, const struct axis *x, const struct axis *y)
{
    figure text;
    for (int i = 0; i < x->tick_count; i++) {
        double at = axis_at(x, x->ticks[i]);
        vertical(out, "grid", at);
        write_markup(out, "<text class=\"tick\" x=\"%.2f%%\" y=\"100%%\" dy=\"16\" text-anchor=\"middle\">%s</text>", at,
                     tick_text(text, x->ticks[i]));
    }
    for (int i = 0; i < y->tick_count; i++) {
        double at = 100 - axis_at(y, y->ticks[i]);
        write_markup(out, "<line class=\"grid\" x1=\"0\" x2=\"100%%\" y1=\"%.2f%%\" y2=\"%.2f%%\"/>", at, at);
        write_markup(out, "<text class=\"tick\" x=\"-8\" y=\"%.2f%%\" dy=\"4\" text-anchor=\"end\">%s</text>", at,
                     tick_text(text, y->ticks[i] / 1e9));
    }
}

void chart_roofline(FILE *out, const struct roof_point *points, int count, const struct roof_ceiling *ceilings, int ceiling_count)
{
    double x_low = 1, x_high = 0, y_low = 1, y_high = 0;
    for (int i = 0; i < count; i++) {
        range_add(&x_low, &x_high, points[i].intensity);
        range_add(&y_low, &y_high, points[i].rate);
        range_add(&y_low, &y_high, points[i].bound);
    }
    for (int i = 0; i < ceiling_count; i++)
        range_add(&y_low, &y_high, ceilings[i].flops);
    struct axis x = axis_over(x_low / 2, x_high * 2), y = axis_over(y_low / 1.5, y_high * 1.3);
    fputs("<div class=\"roofline\"><p class=\"axisname\">Gflop/s</p><svg role=\"img\" aria-label=\"Roofline: rate over "
          "arithmetic intensity of the timed shapes; the numbers are in the table below\">",
          out);
    draw_axes(out, &x, &y);
    for (int i = 0; i < ceiling_count; i++)
        draw_ceiling(out, ceilings, ceiling_count, &ceilings[i], &x, &y);
    for (int i = 0; i < count; i++) {
        if (points[i].rate <= 0)
            continue;
        double at = axis_at(&x, points[i].intensity), rate = 100 - axis_at(&y, points[i].rate),
               bound = 100 - axis_at(&y, points[i].bound);
        if (points[i].bound > 0) {
            write_markup(out, "<line class=\"gap\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%.2f%%\" y2=\"%.2f%%\"/>", at, at, rate, bound);
            write_markup(out, "<svg x=\"%.2f%%\" y=\"%.2f%%\" class=\"at\"><line class=\"bound\" x1=\"-9\" x2=\"9\"/></svg>", at,
                         bound);
        }
        write_markup(out,
                     "<circle class=\"point\" cx=\"%.2f%%\" cy=\"%.2f%%\" r=\"9\"/><text class=\"number\" x=\"%.2f%%\" "
                     "y=\"%.2f%%\" dy=\"4\" text-anchor=\"middle\">%d</text>",
                     at, rate, at, rate, i + 1);
    }
    fputs("</svg><p class=\"axisname below\">arithmetic intensity, flop per compulsory byte</p></div>\n", out);
}
