/*
 * The documents that are made of records: escaping, figures, axes, and every format on every record of tests/data/records, whole
 * and mangled. Whether the documents are right is looked at by tests/report.t, which has parsers for them. For that it fills a run
 * database and an evidence folder with
 *     test_render --fill STATE EVIDENCE RECORD.json ...
 * where a record that says it was promoted goes to the evidence too.
 */
#include <glob.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/statement.h"
#include "evidence/store.h"
#include "base/random.h"
#include "report/fields.h"
#include "report/html.h"
#include "report/render.h"
#include "report/writer.h"
#include "tap.h"

static const char *const formats[] = {"html", "tap", "junit", "sarif"};
enum { FORMATS = sizeof formats / sizeof *formats };

static json_t *load_records(void)
{
    json_t *records = json_array();
    glob_t found = {0};
    if (glob("tests/data/records/*.json", 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            json_error_t error;
            json_t *record = json_load_file(found.gl_pathv[i], 0, &error);
            tap_check(record != NULL, "%s: line %d: %s", found.gl_pathv[i], error.line, error.text);
            if (record)
                json_array_append_new(records, record);
        }
    }
    globfree(&found);
    tap_check(json_array_size(records) >= 7, "there are records to render");
    return records;
}

/* The document; to be freed. NULL if render() failed. */
static char *render_text(const char *format, const struct matter *matter)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    bool done = stream && render(stream, format, matter);
    if (stream)
        fclose(stream);
    if (!done) {
        free(text);
        text = NULL;
    }
    return text;
}

static void check_markup(const char *want, const char *given)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    write_markup(stream, "<a b=\"%s\">%d %.2f%% %s</a>", given, -7, 1.5, given);
    fclose(stream);
    char expected[256];
    snprintf(expected, sizeof expected, "<a b=\"%s\">-7 1.50%% %s</a>", want, want);
    tap_check(strcmp(text, expected) == 0, "got %s, not %s", text, expected);
    free(text);
}

static void test_escaping(void)
{
    static const struct {
        const char *given, *want;
    } cases[] = {
        {"plain", "plain"},
        {"<script>&\"'", "&lt;script&gt;&amp;&quot;&#39;"},
        {"]]>", "]]&gt;"},
        {"%s %d %n", "%s %d %n"},
        {"a\tb\nc\rd", "a\tb\nc\rd"},
        {"\x01\x1b[31m\x7f", "�\xef\xbf\xbd[31m�"},
        {"é ∞ 𝄞", "é ∞ 𝄞"},
        {"\xc2\x85|\xed\xa0\x80|", "�|�|"},     /* a C1 control; a surrogate in three bytes */
        {"\xef\xbf\xbe\xef\xbf\xbf", "��"},     /* U+FFFE, U+FFFF */
        {"\xe2\x80\xae|\xe2\x81\xa6|", "�|�|"}, /* right-to-left override, isolate */
        {"\xff\xfe", "��"},
        {"\xc0\xbc|\xe0\x80\xbc|", "��|���|"}, /* < written too long */
        {"\xe2\x82", "��"},                    /* cut short */
        {"\xf4\x90\x80\x80", "�"},             /* beyond U+10FFFF */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (tap_case("%zu", i))
            check_markup(cases[i].want, cases[i].given);
}

static void check_figure(const char *got, const char *want)
{
    tap_check(strcmp(got, want) == 0, "got %s, not %s", got, want);
}

static void test_figures(void)
{
    figure text;
    check_figure(figure_of(text, 1.314), "1.31");
    check_figure(figure_of(text, 0), "0");
    check_figure(figure_of(text, 42), "42");
    check_figure(figure_of(text, 4.2e-7), "4.20e-07");
    check_figure(figure_of(text, NAN), "NaN");
    check_figure(figure_of(text, INFINITY), "∞");
    check_figure(figure_of(text, -INFINITY), "−∞");
    check_figure(figure_of(text, -12.34), "-12.3");
    check_figure(figure_seconds(text, 0.0123), "12.3 ms");
    check_figure(figure_seconds(text, 1.5e-6), "1.50 µs");
    check_figure(figure_seconds(text, 72), "72 s");
    check_figure(figure_seconds(text, NAN), "NaN");
    check_figure(figure_bytes(text, 1536), "1.50 KiB");
    check_figure(figure_bytes(text, 0), "0 bytes");
    check_figure(figure_bytes(text, 7), "7 bytes");
    check_figure(figure_percent(text, 0.81), "81 %");
    check_figure(figure_percent(text, 0.05), "5.0 %");
    check_figure(figure_time(text, "2026-11-15T07:00:59Z"), "2026-11-15 07:00 UTC");
    check_figure(figure_time(text, "yesterday"), "yesterday");
}

static void test_numbers(void)
{
    json_t *record = json_loads("{\"a\": \"nan\", \"b\": \"-inf\", \"c\": 3, \"d\": \"three\", \"e\": null}", 0, NULL);
    bool found;
    tap_check(isnan(field_number(record, "a", &found)) && found, "nan is a number");
    tap_check(field_number(record, "b", &found) < 0 && found, "-inf is a number");
    tap_check(field_number(record, "c", &found) == 3 && found, "3 is a number");
    tap_check(isnan(field_number(record, "d", &found)) && !found, "three is none");
    tap_check(isnan(field_number(record, "e", &found)) && !found, "null is none");
    tap_check(isnan(field_number(record, "f", &found)) && !found, "nothing is none");
    json_decref(record);
}

/* Ticks lie on the axis, in order, apart, and 1 is one of them where it can be. */
static void test_axes(void)
{
    static const double ranges[][2] = {{1, 1},      {0.99, 1.02}, {0.5, 1.7},  {1, 1.85},      {0.9, 40},
                                       {1e-3, 1e3}, {48, 310},    {2e9, 3e13}, {1e-200, 1e200}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (!tap_case("%g to %g", ranges[i][0], ranges[i][1]))
            continue;
        struct axis axis = axis_over(ranges[i][0], ranges[i][1]);
        tap_check(axis.low < ranges[i][0] && axis.high > ranges[i][1], "the axis covers the range");
        tap_check(axis.tick_count >= (ranges[i][1] / ranges[i][0] > 1e100 ? 0 : 1), "there are ticks");
        for (int t = 1; t < axis.tick_count; t++)
            tap_check(axis_at(&axis, axis.ticks[t]) - axis_at(&axis, axis.ticks[t - 1]) > 10,
                      "tick %g is apart from the one before", axis.ticks[t]);
        tap_check(axis_at(&axis, axis.low) == 0 && axis_at(&axis, axis.high) == 100, "the ends are at 0 and 100");
    }
    double low = 1, high = 0;
    range_add(&low, &high, NAN);
    range_add(&low, &high, -3);
    range_add(&low, &high, INFINITY);
    tap_check(low > high, "what is no positive number does not count");
    range_add(&low, &high, 5);
    range_add(&low, &high, 2);
    tap_check(low == 2 && high == 5, "a range is what was added");
}

static void test_formats(void)
{
    json_t *records = load_records();
    for (int i = 0; i < FORMATS; i++) {
        if (!tap_case("%s", formats[i]))
            continue;
        struct matter matter = {.records = records};
        char *text = render_text(formats[i], &matter);
        tap_check(text && strstr(text, "cpu_fwd_f32_avx512"), "a document that names the kernel");
        free(text);
        matter.records = NULL;
        text = render_text(formats[i], &matter);
        tap_check(text != NULL, "a document of no records");
        free(text);
        matter.records = records;
        FILE *full = fopen("/dev/full", "w");
        tap_check(full && !render(full, formats[i], &matter), "a full disk is noticed");
        if (full)
            fclose(full);
        tap_check(render_knows(formats[i]), "the format is known");
    }
    tap_check(!render_knows("pdf") && !render(stdout, "pdf", &(struct matter){.records = records}), "pdf is no format");
    json_decref(records);
}

/* ---- records that are not as they should be -------------------------------------------------------------------------------- */

struct dice {
    uint64_t stream, index;
};

static uint64_t throw_dice(struct dice *dice, uint64_t sides)
{
    return random_bits(tap.seed, dice->stream, dice->index++) % sides;
}

static json_t *strange_value(struct dice *dice)
{
    switch (throw_dice(dice, 10)) {
    case 0:
        return json_null();
    case 1:
        return json_string("");
    case 2:
        return json_string("<b>&\"");
    case 3:
        return json_integer(-1);
    case 4:
        return json_real(1e308);
    case 5:
        return json_array();
    case 6:
        return json_object();
    case 7:
        return json_string("nan");
    case 8:
        return json_pack("[n, {s:s}, [i]]", "a", "b", 3);
    default:
        return json_true();
    }
}

/* Replaces about one of `odds` values by something else, or takes it away. */
static json_t *mangle(json_t *value, struct dice *dice, uint64_t odds)
{
    const char *key;
    size_t index;
    json_t *item, *result;
    if (throw_dice(dice, odds) == 0)
        return strange_value(dice);
    if (json_is_object(value)) {
        result = json_object();
        json_object_foreach(value, key, item)
        {
            if (throw_dice(dice, odds) != 0)
                json_object_set_new(result, key, mangle(item, dice, odds));
        }
        return result;
    }
    if (json_is_array(value)) {
        result = json_array();
        json_array_foreach(value, index, item) json_array_append_new(result, mangle(item, dice, odds));
        return result;
    }
    return json_incref(value);
}

static void test_mangled(void)
{
    json_t *records = load_records();
    for (int i = 0; i < tap_amount(20, 150, 2000); i++) {
        struct dice dice = {.stream = (uint64_t)i};
        if (!tap_case("%d", i))
            continue;
        json_t *mangled = mangle(records, &dice, 3 + throw_dice(&dice, 60));
        struct matter matter = {.records = mangled, .champions = mangled, .peers = mangled, .notices = mangled};
        for (int f = 0; f < FORMATS; f++) {
            char *text = render_text(formats[f], &matter);
            tap_check(text != NULL, "%s", formats[f]);
            free(text);
        }
        json_decref(mangled);
    }
    json_decref(records);
}

/* ---- for tests/report.t ---------------------------------------------------------------------------------------------------- */

static int fill(int argc, char **argv)
{
    char why[1024] = "";
    struct store *store = argc > 3 ? store_open(argv[2], why, sizeof why) : NULL;
    bool good = store != NULL;
    for (int i = 4; good && i < argc; i++) {
        json_t *record = json_load_file(argv[i], 0, NULL), *statement = record ? statement_make(record) : NULL;
        int64_t run = record ? store_begin(store, record) : -1;
        good = run >= 0;
        if (good && strcmp(field_text(record, "verdict"), "INTERRUPTED") != 0)
            good = store_finish(store, run, record);
        if (good && json_array_size(json_object_get(record, "promoted")) > 0)
            good = statement_append(argv[3], statement, NULL, NULL, why, sizeof why);
        if (!good)
            fprintf(stderr, "%s: %s %s\n", argv[i], why, store_error(store));
        json_decref(statement);
        json_decref(record);
    }
    store_close(store);
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"escaping", test_escaping}, {"figures", test_figures}, {"numbers", test_numbers},
        {"axes", test_axes},         {"formats", test_formats}, {"mangled", test_mangled},
    };
    if (argc > 1 && strcmp(argv[1], "--fill") == 0)
        return fill(argc, argv);
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
