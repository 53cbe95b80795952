/*
 * stages_pattern.c - describes a set of wrong places (see stages_pattern.h).
 *
 * A set of numbers is described as all, one, a range, or a range that repeats with a period, whichever fits and is simplest.
 * A table is described by its sequences, heads, rows and columns if the wrong places are exactly all combinations of them; else by
 * the distance of row and column (a diagonal), if that decides; else it is a count.
 */
#include "stages_pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PERIOD = 1024 };

/* A line of places: state of each number 0 <= n < count. */
struct line {
    unsigned char *state;
    int64_t count;
    int64_t begin, end, period; /* wrong are begin <= n % period < end; period 0: of n itself */
    bool all, fits;
};

static bool line_make(struct line *line, int64_t count)
{
    *line = (struct line){.count = count, .state = malloc((size_t)count + 1)};
    if (line->state)
        memset(line->state, CELL_UNKNOWN, (size_t)count + 1);
    return line->state != NULL;
}

/* A place is wrong if any cell of it is, right if some are right and none is wrong. */
static void line_add(struct line *line, int64_t n, unsigned char state)
{
    if (state == CELL_WRONG || (state == CELL_RIGHT && line->state[n] == CELL_UNKNOWN))
        line->state[n] = state;
}

static bool line_holds(const struct line *line, int64_t n)
{
    int64_t place = line->period ? n % line->period : n;
    return place >= line->begin && place < line->end;
}

/* Takes the residues of a period that hold a wrong place for a range, and sees whether it tells right from wrong everywhere. */
static bool line_try(struct line *line, int64_t period)
{
    line->period = period;
    line->begin = INT64_MAX;
    line->end = 0;
    int64_t repeats = 0;
    for (int64_t n = 0; n < line->count; n++) {
        int64_t place = period ? n % period : n;
        if (line->state[n] != CELL_WRONG)
            continue;
        repeats += period && n >= period;
        line->begin = place < line->begin ? place : line->begin;
        line->end = place + 1 > line->end ? place + 1 : line->end;
    }
    if (period && (repeats == 0 || line->end - line->begin == period))
        return false;
    bool outside = false;
    for (int64_t n = 0; n < line->count; n++) {
        bool held = line_holds(line, n);
        if ((held && line->state[n] == CELL_RIGHT) || (!held && line->state[n] == CELL_WRONG))
            return false;
        outside = outside || (!held && line->state[n] == CELL_RIGHT);
    }
    line->all = !outside;
    return true;
}

static void line_fit(struct line *line)
{
    line->fits = line_try(line, 0);
    for (int64_t period = 2; period <= MOST_PERIOD && 2 * period <= line->count && !line->fits; period++)
        line->fits = line_try(line, period);
}

/* Text such as "rows 8 to 15 of every 16"; "" for all. */
static void line_text(const struct line *line, const char *word, char *text, size_t size)
{
    long long begin = (long long)line->begin, last = (long long)line->end - 1;
    text[0] = '\0';
    if (line->all)
        return;
    if (!line->fits) {
        long long count = 0;
        for (int64_t n = 0; n < line->count; n++)
            count += line->state[n] == CELL_WRONG;
        snprintf(text, size, "%lld %ss", count, word);
    } else if (line->period) {
        char range[64];
        snprintf(range, sizeof range, begin == last ? "%lld" : "%lld to %lld", begin, last);
        snprintf(text, size, "%ss %s of every %lld", word, range, (long long)line->period);
    } else if (begin == last) {
        snprintf(text, size, "%s %lld", word, begin);
    } else if (line->end == line->count) {
        snprintf(text, size, "%ss from %lld on", word, begin);
    } else {
        snprintf(text, size, "%ss %lld to %lld", word, begin, last);
    }
}

static void append(char *text, size_t size, const char *part)
{
    size_t length = strlen(text);
    if (part[0])
        snprintf(text + length, size - length, "%s%s", length ? ", " : "", part);
}

static int64_t number_of(const struct cells *cells, int64_t column)
{
    return cells->columns ? cells->columns[column] : column;
}

enum { LINE_BATCH, LINE_HEAD, LINE_ROW, LINE_COLUMN, LINE_COUNT };

static bool lines_make(const struct cells *cells, struct line lines[LINE_COUNT])
{
    int64_t most[LINE_COUNT] = {0};
    for (int64_t n = 0; n < cells->row_count; n++) {
        const struct place *place = &cells->rows[n];
        most[LINE_BATCH] = place->b >= most[LINE_BATCH] ? place->b + 1 : most[LINE_BATCH];
        most[LINE_HEAD] = place->h >= most[LINE_HEAD] ? place->h + 1 : most[LINE_HEAD];
        most[LINE_ROW] = place->i >= most[LINE_ROW] ? place->i + 1 : most[LINE_ROW];
    }
    most[LINE_COLUMN] = cells->column_count > 0 ? number_of(cells, cells->column_count - 1) + 1 : 0;
    bool made = true;
    for (int n = 0; n < LINE_COUNT; n++)
        made = line_make(&lines[n], most[n]) && made;
    for (int64_t n = 0; n < cells->row_count && made; n++)
        for (int64_t c = 0; c < cells->column_count; c++) {
            unsigned char state = cells->cell[n * cells->column_count + c];
            line_add(&lines[LINE_BATCH], cells->rows[n].b, state);
            line_add(&lines[LINE_HEAD], cells->rows[n].h, state);
            line_add(&lines[LINE_ROW], cells->rows[n].i, state);
            line_add(&lines[LINE_COLUMN], number_of(cells, c), state);
        }
    return made;
}

/* True if a cell is wrong exactly where its sequence, head, row and column are. */
static bool is_product(const struct cells *cells, const struct line lines[LINE_COUNT])
{
    for (int64_t n = 0; n < cells->row_count; n++)
        for (int64_t c = 0; c < cells->column_count; c++) {
            const struct place *place = &cells->rows[n];
            bool wrong = lines[LINE_BATCH].state[place->b] == CELL_WRONG && lines[LINE_HEAD].state[place->h] == CELL_WRONG &&
                         lines[LINE_ROW].state[place->i] == CELL_WRONG &&
                         lines[LINE_COLUMN].state[number_of(cells, c)] == CELL_WRONG;
            unsigned char state = cells->cell[n * cells->column_count + c];
            if (state != CELL_UNKNOWN && (state == CELL_WRONG) != wrong)
                return false;
        }
    return true;
}

/* The range of column - row that holds every wrong cell and no right one; false if there is none. */
static bool is_diagonal(const struct cells *cells, int64_t *low, int64_t *high)
{
    *low = INT64_MAX;
    *high = INT64_MIN;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t n = 0; n < cells->row_count; n++)
            for (int64_t c = 0; c < cells->column_count; c++) {
                int64_t distance = number_of(cells, c) - cells->rows[n].i;
                unsigned char state = cells->cell[n * cells->column_count + c];
                if (pass == 0 && state == CELL_WRONG) {
                    *low = distance < *low ? distance : *low;
                    *high = distance > *high ? distance : *high;
                }
                if (pass == 1 && state == CELL_RIGHT && distance >= *low && distance <= *high)
                    return false;
            }
    return true;
}

static void describe(const struct cells *cells, struct line lines[LINE_COUNT], struct pattern *pattern)
{
    const char *words[LINE_COUNT] = {"sequence", "head", cells->row_word, cells->column_word};
    int64_t low, high;
    bool product = is_product(cells, lines);
    bool diagonal = !product && is_diagonal(cells, &low, &high);
    for (int n = 0; n < LINE_COUNT; n++) {
        char part[96];
        line_fit(&lines[n]);
        if (diagonal && n >= LINE_ROW)
            break;
        line_text(&lines[n], words[n], part, sizeof part);
        append(pattern->text, sizeof pattern->text, part);
    }
    const struct line *column = &lines[LINE_COLUMN];
    if (cells->columns && column->fits && !column->period && !column->all && column->end - column->begin > 1)
        pattern->boundary = column->begin;
    if (diagonal) {
        char part[96];
        snprintf(part, sizeof part, low == high ? "%s = %s %+lld" : "%s - %s = %lld to %lld", cells->column_word, cells->row_word,
                 (long long)low, (long long)high);
        append(pattern->text, sizeof pattern->text, part);
    } else if (!product) {
        char part[96];
        snprintf(part, sizeof part, "%lld of %lld places", (long long)pattern->wrong, (long long)pattern->known);
        append(pattern->text, sizeof pattern->text, part);
    } else if (!pattern->text[0]) {
        snprintf(pattern->text, sizeof pattern->text, "everywhere");
    }
}

struct pattern pattern_find(const struct cells *cells)
{
    struct pattern pattern = {.first = -1, .column = -1};
    struct line lines[LINE_COUNT] = {0};
    for (int64_t at = 0; at < cells->row_count * cells->column_count; at++) {
        pattern.known += cells->cell[at] != CELL_UNKNOWN;
        pattern.wrong += cells->cell[at] == CELL_WRONG;
        if (cells->cell[at] == CELL_WRONG && pattern.first < 0) {
            pattern.first = at / cells->column_count;
            pattern.column = number_of(cells, at % cells->column_count);
        }
    }
    if (pattern.wrong > 0 && lines_make(cells, lines))
        describe(cells, lines, &pattern);
    for (int n = 0; n < LINE_COUNT; n++)
        free(lines[n].state);
    return pattern;
}
