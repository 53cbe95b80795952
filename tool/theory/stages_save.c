/*
 * stages_save.c - what the stage oracle leaves behind (see stages_save.h and stages.h).
 */
#include "stages_save.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/npy.h"

enum { HEAT_SIDE = 64 };

/* Errors below this are as good as none. */
#define HEAT_FLOOR 1e-12

void save_probe(struct diagnosis *diagnosis, const char *name, enum stage stage, bool right, double error, double ratio)
{
    json_t *probe = json_pack("{s:s, s:s, s:s}", "probe", name, "stage", stage_name(stage), "verdict", right ? "right" : "wrong");
    json_put(probe, "error", json_number(error));
    json_put(probe, "ratio", json_number(ratio));
    json_add(diagnosis->probes, probe);
}

void save_heat(struct diagnosis *diagnosis, const struct exhibit *exhibit)
{
    int64_t rows = exhibit->rows < HEAT_SIDE ? exhibit->rows : HEAT_SIDE;
    int64_t columns = exhibit->columns < HEAT_SIDE ? exhibit->columns : HEAT_SIDE;
    if (!exhibit->found || rows == 0 || columns == 0)
        return;
    double *worst = calloc((size_t)(rows * columns), sizeof *worst);
    for (int64_t at = 0; worst && at < exhibit->rows * exhibit->columns; at++) {
        int64_t row = at / exhibit->columns * rows / exhibit->rows;
        int64_t column = at % exhibit->columns * columns / exhibit->columns;
        double error = fabs(exhibit->found[at] - exhibit->expected[at]);
        if (exhibit->found[at] == exhibit->expected[at])
            error = 0;
        double *cell = &worst[row * columns + column];
        *cell = isfinite(error) ? fmax(*cell, fmin(error, 1e12)) : 1e12;
    }
    json_t *values = json_array();
    for (int64_t row = 0; worst && row < rows; row++) {
        json_t *line = json_array();
        for (int64_t column = 0; column < columns; column++)
            json_add(line, json_real(log10(fmax(worst[row * columns + column], HEAT_FLOOR))));
        json_add(values, line);
    }
    free(worst);
    diagnosis->heat = json_pack("{s:I, s:I, s:o}", "rows", (json_int_t)rows, "columns", (json_int_t)columns, "values", values);
}

static bool write_array(const char *folder, const char *name, const char *stage, const char *type, int rank, const int64_t *shape,
                        const void *data, char *why, size_t why_size)
{
    char path[4096];
    int length = snprintf(path, sizeof path, stage ? "%s/%s_%s.npy" : "%s/%s.npy", folder, name, stage);
    if (length < 0 || (size_t)length >= sizeof path) {
        snprintf(why, why_size, "the name of the folder for arrays is too long");
        return false;
    }
    return npy_write(path, type, 8, rank, shape, data, NULL, why, why_size);
}

bool save_arrays(const char *folder, const struct lab *lab, const struct diagnosis *diagnosis, const struct exhibit *exhibit,
                 char *why, size_t why_size)
{
    if (!exhibit->found || !exhibit->expected)
        return true;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        snprintf(why, why_size, "the folder %s for arrays cannot be made: %s", folder, strerror(errno));
        return false;
    }
    bool lse = exhibit->columns == 1 && !exhibit->by_key && lab->problem.dim_v > 1;
    const char *stage = lse ? "LSE" : stage_name((enum stage)(diagnosis->stages & -diagnosis->stages));
    int64_t shape[2] = {exhibit->rows, exhibit->columns}, places[2] = {exhibit->rows, 3};
    int64_t *numbers = malloc((size_t)(3 * exhibit->rows + exhibit->columns + 1) * sizeof *numbers);
    if (!numbers) {
        snprintf(why, why_size, "out of memory");
        return false;
    }
    for (int64_t n = 0; n < exhibit->rows; n++) {
        numbers[3 * n] = lab->rows[n].b;
        numbers[3 * n + 1] = lab->rows[n].h;
        numbers[3 * n + 2] = lab->rows[n].i;
    }
    for (int64_t c = 0; c < exhibit->columns; c++)
        numbers[3 * exhibit->rows + c] = exhibit->by_key ? lab->keys[c] : c;
    bool done = write_array(folder, "expected", stage, "<f8", 2, shape, exhibit->expected, why, why_size) &&
                write_array(folder, "found", stage, "<f8", 2, shape, exhibit->found, why, why_size) &&
                write_array(folder, "rows", NULL, "<i8", 2, places, numbers, why, why_size) &&
                write_array(folder, "columns", NULL, "<i8", 1, &exhibit->columns, numbers + 3 * exhibit->rows, why, why_size);
    free(numbers);
    return done;
}

void diagnosis_sentence(const struct diagnosis *diagnosis, char *text, size_t size)
{
    char stages[96], place[128] = "", column[48] = "";
    if (diagnosis->trouble.end != EXECUTION_DONE) {
        snprintf(text, size, "%s", diagnosis->trouble.sentence);
        return;
    }
    if (!diagnosis->wrong) {
        snprintf(text, size, "every stage is right");
        return;
    }
    stages_text(diagnosis->stages, stages, sizeof stages);
    if (diagnosis->column >= 0)
        snprintf(column, sizeof column, ", %s %lld", diagnosis->by_key ? "key" : "column", (long long)diagnosis->column);
    if (diagnosis->row >= 0)
        snprintf(place, sizeof place, " (first at sequence %lld, head %lld, row %lld%s)", (long long)diagnosis->batch,
                 (long long)diagnosis->head, (long long)diagnosis->row, column);
    snprintf(text, size, "the first wrong stage is %s: %s%s; wrong: %s", stages, diagnosis->cause, place, diagnosis->pattern);
}

json_t *diagnosis_json(const struct diagnosis *diagnosis)
{
    json_t *stages = json_array(), *object = json_object();
    for (int n = 0; n < STAGE_COUNT; n++)
        if (diagnosis->stages >> n & 1)
            json_add(stages, json_string(stage_name((enum stage)(1 << n))));
    json_put(object, "stages", stages);
    json_put(object, "tile", json_integer(diagnosis->tile));
    json_put(object, "batch", json_integer(diagnosis->batch));
    json_put(object, "head", json_integer(diagnosis->head));
    json_put(object, "row", json_integer(diagnosis->row));
    json_put(object, "column", json_integer(diagnosis->column));
    json_put(object, "column_is", json_string(diagnosis->by_key ? "key" : "element of O"));
    json_put(object, "pattern", json_string(diagnosis->pattern));
    json_put(object, "cause", json_string(diagnosis->cause));
    json_put(object, "error", json_number(diagnosis->error));
    json_put(object, "heat", diagnosis->heat ? json_incref(diagnosis->heat) : json_null());
    return object;
}

void diagnosis_free(struct diagnosis *diagnosis)
{
    json_decref(diagnosis->probes);
    json_decref(diagnosis->heat);
    *diagnosis = (struct diagnosis){0};
}
