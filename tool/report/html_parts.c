/*
 * html_parts.c - the small parts of the page: badges, facts, values of any type (see html.h).
 */
#include "html.h"

#include <string.h>

enum { MOST_ROWS = 40, MOST_COLUMNS = 12, MOST_DEPTH = 4 };

const char *tone_class(enum tone tone)
{
    static const char *const classes[] = {"pass", "fail", "open", "none"};
    return classes[tone];
}

const char *tone_symbol(enum tone tone)
{
    static const char *const symbols[] = {"✓", "✕", "?", "–"};
    return symbols[tone];
}

void html_badge(FILE *out, const char *verdict)
{
    enum tone tone = tone_of(verdict);
    bool reigns = strcmp(verdict, "CHAMPION") == 0 || strcmp(verdict, "FIRST") == 0 || strcmp(verdict, "REIGNS") == 0;
    write_markup(out, "<span class=\"badge %s\"><span class=\"symbol\" aria-hidden=\"true\">%s</span> %s</span>",
                 reigns ? "crown" : tone_class(tone), reigns ? "★" : tone_symbol(tone), *verdict ? verdict : "NO VERDICT");
}

void html_code(FILE *out, const char *text)
{
    fputs("<code>", out);
    write_breakable(out, text);
    fputs("</code>", out);
}

/* A key as people read it. */
static void write_title(FILE *out, const char *key)
{
    char title[96];
    snprintf(title, sizeof title, "%s", key);
    for (char *letter = title; *letter; letter++)
        if (*letter == '_')
            *letter = ' ';
    write_escaped(out, title);
}

void html_table_begin(FILE *out, const char *caption, const char *const *titles)
{
    fputs("<div class=\"scroll\"><table class=\"small\">", out);
    if (caption)
        write_markup(out, "<caption>%s</caption>", caption);
    fputs("<thead><tr>", out);
    for (; *titles; titles++) {
        bool figures = **titles == '>';
        fputs(figures ? "<th scope=\"col\" class=\"figure\">" : "<th scope=\"col\">", out);
        write_title(out, *titles + figures);
        fputs("</th>", out);
    }
    fputs("</tr></thead><tbody>\n", out);
}

void html_table_end(FILE *out)
{
    fputs("</tbody></table></div>\n", out);
}

/* Nothing to show: null, "", or a list or an object with nothing else in it. */
static bool is_empty(const json_t *value)
{
    const char *key;
    size_t index;
    json_t *item;
    if (json_is_array(value)) {
        json_array_foreach(value, index, item)
        {
            if (!is_empty(item))
                return false;
        }
        return true;
    }
    if (json_is_object(value)) {
        json_object_foreach((json_t *)value, key, item)
        {
            if (!is_empty(item))
                return false;
        }
        return true;
    }
    return !value || json_is_null(value) || (json_is_string(value) && json_string_length(value) == 0);
}

static void write_any(FILE *out, json_t *value, int depth);

/* The columns of a table of objects: the members of the first, those that name and judge a row before the others. The list is
 * ended by NULL. */
static void choose_columns(json_t *first, const char *columns[MOST_COLUMNS + 1])
{
    static const char *const leading[] = {"probe", "problem", "name", "stage", "verdict"};
    const char *key;
    json_t *value;
    int count = 0;
    for (size_t i = 0; i < sizeof leading / sizeof leading[0]; i++)
        if (json_object_get(first, leading[i]))
            columns[count++] = leading[i];
    json_object_foreach(first, key, value)
    {
        bool leads = false;
        for (size_t i = 0; i < sizeof leading / sizeof leading[0]; i++)
            leads = leads || strcmp(key, leading[i]) == 0;
        if (!leads && count < MOST_COLUMNS)
            columns[count++] = key;
    }
    columns[count] = NULL;
}

static void write_cell(FILE *out, const char *column, json_t *cell, int depth)
{
    fputs(json_is_number(cell) ? "<td class=\"figure\">" : "<td>", out);
    if (strcmp(column, "verdict") == 0 && json_is_string(cell))
        html_badge(out, json_string_value(cell));
    else
        write_any(out, cell, depth + 1);
    fputs("</td>", out);
}

static void write_rows(FILE *out, json_t *rows, int depth)
{
    const char *columns[MOST_COLUMNS + 1];
    size_t index;
    json_t *row;
    choose_columns(json_array_get(rows, 0), columns);
    html_table_begin(out, NULL, columns);
    json_array_foreach(rows, index, row)
    {
        if (index == MOST_ROWS)
            break;
        fputs("<tr>", out);
        for (int i = 0; columns[i]; i++)
            write_cell(out, columns[i], json_object_get(row, columns[i]), depth);
        fputs("</tr>\n", out);
    }
    html_table_end(out);
    if (json_array_size(rows) > MOST_ROWS)
        write_markup(out, "<p class=\"aside\">and %zu more, in the record</p>", json_array_size(rows) - MOST_ROWS);
}

/* Many problems are folded away. */
static bool is_problems(json_t *list)
{
    const char *first = json_string_value(json_array_get(list, 0));
    return json_array_size(list) > 3 && first && strncmp(first, "fwd:", 4) == 0;
}

static void write_problems(FILE *out, json_t *list)
{
    size_t index;
    json_t *item;
    write_markup(out, "<details><summary>%zu problems</summary><ul>", json_array_size(list));
    json_array_foreach(list, index, item)
    {
        fputs("<li>", out);
        html_code(out, json_is_string(item) ? json_string_value(item) : "");
        fputs("</li>", out);
    }
    fputs("</ul></details>", out);
}

static void write_list(FILE *out, json_t *list, int depth)
{
    size_t index;
    json_t *item;
    if (is_problems(list) && depth == 0) {
        write_problems(out, list);
        return;
    }
    if (json_is_object(json_array_get(list, 0)) && depth < 2) {
        write_rows(out, list, depth);
        return;
    }
    json_array_foreach(list, index, item)
    {
        if (index == MOST_ROWS) {
            write_markup(out, ", and %zu more", json_array_size(list) - index);
            break;
        }
        fputs(index ? ", " : "", out);
        write_any(out, item, depth + 1);
    }
}

static void write_any(FILE *out, json_t *value, int depth)
{
    figure text;
    const char *key, *separator = "";
    json_t *member;
    if (is_empty(value) || depth > MOST_DEPTH) {
        fputs(is_empty(value) ? "–" : "…", out);
    } else if (json_is_string(value) && strncmp(json_string_value(value), "fwd:", 4) == 0) {
        html_code(out, json_string_value(value));
    } else if (json_is_string(value)) {
        write_breakable(out, json_string_value(value));
    } else if (json_is_integer(value)) {
        write_markup(out, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        write_markup(out, "%s", figure_of(text, json_real_value(value)));
    } else if (json_is_boolean(value)) {
        fputs(json_is_true(value) ? "yes" : "no", out);
    } else if (json_is_array(value)) {
        write_list(out, value, depth);
    } else {
        json_object_foreach(value, key, member)
        {
            if (is_empty(member))
                continue;
            fputs(separator, out);
            write_title(out, key);
            fputs("&nbsp;", out);
            write_any(out, member, depth + 1);
            separator = ", ";
        }
    }
}

void html_value(FILE *out, json_t *value)
{
    write_any(out, value, 0);
}

void html_facts_begin(FILE *out)
{
    fputs("<dl class=\"facts\">\n", out);
}

void html_facts_end(FILE *out)
{
    fputs("</dl>\n", out);
}

void html_fact(FILE *out, const char *name, json_t *value)
{
    if (is_empty(value))
        return;
    bool is_long =
        (json_array_size(value) > 3 && !is_problems(value)) || json_object_size(value) > 5 || json_string_length(value) > 60;
    fputs(is_long ? "<div class=\"long\"><dt>" : "<div><dt>", out);
    write_title(out, name);
    fputs("</dt><dd>", out);
    html_value(out, value);
    fputs("</dd></div>\n", out);
}

void html_fact_text(FILE *out, const char *name, const char *text)
{
    if (*text)
        write_markup(out, "<div><dt>%s</dt><dd>%s</dd></div>\n", name, text);
}

void html_fact_digest(FILE *out, const char *name, const char *digest)
{
    if (!*digest)
        return;
    write_markup(out, "<div><dt>%s</dt><dd><code class=\"digest\">%s</code></dd></div>\n", name, digest);
}

void html_facts_rest(FILE *out, json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;
    bool begun = false;
    json_object_foreach(object, key, value)
    {
        const char *const *name = known;
        while (*name && strcmp(*name, key) != 0)
            name++;
        if (*name || is_empty(value))
            continue;
        if (!begun)
            html_facts_begin(out);
        begun = true;
        html_fact(out, key, value);
    }
    if (begun)
        html_facts_end(out);
}
