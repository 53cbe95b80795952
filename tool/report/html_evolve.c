/*
 * html_evolve.c - searches: the verdict, the candidates over their numbers with the best so far, who descends from whom, and all of it
 * as a table. A search is what ledger_searches() says of one (evolve/search_ledger.h).
 */
#include "html.h"

#include <math.h>
#include <string.h>

enum { MOST_SEARCHES = 12, MOST_LABELS = 60 };

/* The tone of a state of a candidate: tone_of knows the verdicts of proofs. */
static enum tone tone_of_state(const char *state)
{
    if (strcmp(state, "CHAMPION") == 0 || strcmp(state, "PROVEN") == 0 || strcmp(state, "PROMOTED") == 0)
        return TONE_PASS;
    if (strcmp(state, "REJECTED") == 0)
        return TONE_FAIL;
    return strcmp(state, "SCREENED") == 0 || strcmp(state, "NO IMPROVEMENT") == 0 ? TONE_NONE : TONE_OPEN;
}

static void write_state(FILE *out, const char *state)
{
    write_markup(out, "<span class=\"badge %s\">%s</span>", tone_class(tone_of_state(state)), *state ? state : "INTERRUPTED");
}

/* How fast a candidate is beside the start, by screening; NaN if it was not timed. */
static double ratio_of(const json_t *trial)
{
    bool found;
    double score = field_number(trial, "score", &found);
    return found && strcmp(field_text(trial, "state"), "REJECTED") != 0 ? exp(score) : NAN;
}

/* How fast the reigning champion is beside the start once the challenges of candidates up to `last` are over. */
static double reigning_ratio(const json_t *trials, size_t last)
{
    double ratio = 1;
    size_t index, number;
    json_t *trial, *challenge;
    json_array_foreach(trials, index, trial) json_array_foreach(field_array(trial, "challenges"), number, challenge)
    {
        if (index <= last && strcmp(field_text(challenge, "outcome"), "PROMOTED") == 0)
            ratio *= field_number(challenge, "ratio", NULL);
    }
    return ratio;
}

static double place(size_t index, size_t count)
{
    return count > 1 ? 2 + 96 * (double)index / (double)(count - 1) : 50;
}

/* A line of steps: from each candidate to the next, at the level that held then. */
static void write_steps(FILE *out, const char *class, const double *levels, size_t count, const struct axis *y)
{
    for (size_t i = 0; i + 1 < count; i++) {
        double from = place(i, count), to = place(i + 1, count);
        double level = 100 - axis_at(y, levels[i]), next = 100 - axis_at(y, levels[i + 1]);
        write_markup(out, "<line class=\"%s\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%.2f%%\" y2=\"%.2f%%\"/>", class, from, to, level,
                     level);
        if (level != next)
            write_markup(out, "<line class=\"%s\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%.2f%%\" y2=\"%.2f%%\"/>", class, to, to, level,
                         next);
    }
}

/* Candidates over their numbers, the best so far by screening, and the champion by challenges. */
static void write_curve(FILE *out, const json_t *trials)
{
    enum { MOST = 4096 };
    static double best[MOST], reign[MOST];
    size_t count = json_array_size(trials) < MOST ? json_array_size(trials) : MOST, index;
    double low = 2, high = 1;
    json_t *trial;
    figure text;
    for (index = 0; index < count; index++) {
        double ratio = ratio_of(json_array_get(trials, index));
        range_add(&low, &high, ratio);
        best[index] = index == 0 ? 1 : isfinite(ratio) ? fmax(best[index - 1], ratio) : best[index - 1];
        reign[index] = reigning_ratio(trials, index);
        range_add(&low, &high, reign[index]);
    }
    struct axis y = axis_over(low, high);
    fputs("<figure class=\"curve\"><p class=\"axisname\">speed beside the start</p><svg role=\"img\" aria-label=\"Speed of each "
          "candidate "
          "beside the start, the best so far, and the champion\">",
          out);
    for (int i = 0; i < y.tick_count; i++) {
        double at = 100 - axis_at(&y, y.ticks[i]);
        write_markup(out, "<line class=\"grid\" x1=\"0\" x2=\"100%%\" y1=\"%.2f%%\" y2=\"%.2f%%\"/>", at, at);
        write_markup(out, "<text class=\"tick\" x=\"0\" y=\"%.2f%%\" dx=\"-6\" dy=\"4\" text-anchor=\"end\">%s x</text>", at,
                     figure_of(text, y.ticks[i]));
    }
    write_steps(out, "best", best, count, &y);
    write_steps(out, "reign", reign, count, &y);
    json_array_foreach(trials, index, trial)
    {
        double ratio = ratio_of(trial);
        const char *state = field_text(trial, "state");
        if (index >= count)
            break;
        if (isfinite(ratio))
            write_markup(out, "<circle class=\"dot %s\" cx=\"%.2f%%\" cy=\"%.2f%%\" r=\"%d\"/>", tone_class(tone_of_state(state)),
                         place(index, count), 100 - axis_at(&y, ratio), strcmp(state, "CHAMPION") == 0 ? 6 : 4);
        else
            write_markup(out, "<text class=\"cross %s\" x=\"%.2f%%\" y=\"100%%\" dy=\"-3\" text-anchor=\"middle\">%s</text>",
                         tone_class(tone_of_state(state)), place(index, count), tone_symbol(tone_of_state(state)));
    }
    fputs("</svg><p class=\"axisname below\">candidates in their order; dots are screened, and prove nothing. Thin: the best so "
          "far by "
          "screening. Thick: the champion, by challenges on new data.</p></figure>\n",
          out);
}

/* Where a candidate is in the graph: generations from left to right, and within one from top to bottom. */
static void node_of(const json_t *trials, size_t index, size_t generations, double *x, double *y)
{
    const json_t *trial = json_array_get(trials, index);
    double generation = field_number(trial, "generation", NULL);
    size_t size = 0, before = 0, other;
    json_t *each;
    json_array_foreach(trials, other, each)
    {
        bool same = field_number(each, "generation", NULL) == generation;
        size += same;
        before += same && other < index;
    }
    *x = place((size_t)generation, generations);
    *y = 100 * ((double)before + 0.5) / (double)(size ? size : 1);
}

static void write_lineage(FILE *out, const json_t *trials)
{
    size_t index, number, generations = 1, largest = 1;
    bool related = false;
    json_t *trial, *parent;
    json_array_foreach(trials, index, trial)
    {
        size_t generation = (size_t)field_number(trial, "generation", NULL), size = 0, other;
        json_t *each;
        generations = generation + 1 > generations ? generation + 1 : generations;
        json_array_foreach(trials, other, each) size += field_number(each, "generation", NULL) == (double)generation;
        largest = size > largest ? size : largest;
        related = related || json_array_size(field_array(trial, "parents")) > 0;
    }
    if (!related) /* proposers that look at no parent */
        return;
    write_markup(out, "<figure class=\"lineage %s\"><svg role=\"img\" aria-label=\"Who descends from whom, %zu generations\">",
                 largest > 16  ? "tall"
                 : largest > 8 ? "middle"
                               : "low",
                 generations - 1);
    json_array_foreach(trials, index, trial) json_array_foreach(field_array(trial, "parents"), number, parent)
    {
        double x1, y1, x2, y2;
        size_t from = (size_t)json_integer_value(parent);
        if (from >= index)
            continue;
        node_of(trials, from, generations, &x1, &y1);
        node_of(trials, index, generations, &x2, &y2);
        write_markup(out, "<line class=\"descent\" x1=\"%.2f%%\" y1=\"%.2f%%\" x2=\"%.2f%%\" y2=\"%.2f%%\"/>", x1, y1, x2, y2);
    }
    json_array_foreach(trials, index, trial)
    {
        double x, y;
        const char *state = field_text(trial, "state");
        node_of(trials, index, generations, &x, &y);
        write_markup(out, "<circle class=\"dot %s\" cx=\"%.2f%%\" cy=\"%.2f%%\" r=\"%d\"/>", tone_class(tone_of_state(state)), x, y,
                     strcmp(state, "CHAMPION") == 0 ? 7 : 5);
        if (index < MOST_LABELS)
            write_markup(out, "<text class=\"tick\" x=\"%.2f%%\" y=\"%.2f%%\" dx=\"9\" dy=\"4\">%zu</text>", x, y, index);
    }
    fputs("</svg><figcaption class=\"aside\">Lineage: the start on the left, one column a generation; a line leads from a parent "
          "to its "
          "child.</figcaption></figure>\n",
          out);
}

static void write_changed(FILE *out, const json_t *trial)
{
    const char *name;
    json_t *value;
    bool any = false;
    json_object_foreach(field_object(trial, "changed"), name, value)
    {
        write_markup(out, "%s%s=%s", any ? " " : "", name, json_is_string(value) ? json_string_value(value) : "?");
        any = true;
    }
}

static void write_table(FILE *out, const json_t *trials)
{
    static const char *const titles[] = {">no", ">gen", "origin", "parents", "state", ">screened", "changed", "why", NULL};
    size_t index, number;
    json_t *trial, *parent;
    figure text;
    write_markup(out, "<details><summary>%zu candidates</summary>\n", json_array_size(trials) ? json_array_size(trials) - 1 : 0);
    html_table_begin(out, NULL, titles);
    json_array_foreach(trials, index, trial)
    {
        double ratio = ratio_of(trial);
        write_markup(out, "<tr><td class=\"figure\">%zu</td><td class=\"figure\">%.0f</td><td>%s</td><td>", index,
                     field_number(trial, "generation", NULL), field_text(trial, "origin"));
        json_array_foreach(field_array(trial, "parents"), number, parent)
            write_markup(out, "%s%lld", number ? ", " : "", (long long)json_integer_value(parent));
        fputs("</td><td>", out);
        write_state(out, field_text(trial, "state"));
        write_markup(out, "</td><td class=\"figure\">%s</td><td>", isfinite(ratio) ? figure_of(text, ratio) : "");
        write_changed(out, trial);
        write_markup(out, "</td><td>%s</td></tr>\n", field_text(trial, "sentence"));
    }
    html_table_end(out);
    fputs("</details>\n", out);
}

static void write_search(FILE *out, const json_t *search)
{
    const json_t *about = field_object(search, "start"), *result = field_object(search, "result"),
                 *trials = field_array(search, "trials");
    json_t *failure;
    size_t index;
    figure text;
    write_markup(out, "<article class=\"search\"><h3>Search %.0f: %s <small>proposer %s, %s</small> ",
                 field_number(search, "search", NULL), field_text(about, "kernel"), field_text(about, "proposer"),
                 figure_time(text, field_text(about, "started")));
    write_state(out, field_text(result, "verdict"));
    write_markup(out, "</h3>\n<p class=\"decision\">%s</p>\n",
                 *field_text(result, "sentence") ? field_text(result, "sentence")
                                                 : "No verdict yet: it goes on, or was interrupted.");
    html_facts_begin(out);
    html_fact(out, "problems", field_array(about, "problems"));
    html_fact(out, "candidates", json_object_get(result, "candidates"));
    html_fact(out, "challenges", json_object_get(result, "challenges"));
    html_fact_text(out, "time", figure_seconds(text, field_number(search, "used", NULL)));
    html_fact_text(out, "ended because", field_text(result, "stopped"));
    html_fact_text(out, "the champion", field_text(result, "source"));
    html_facts_end(out);
    json_array_foreach(field_array(result, "failures"), index, failure)
        write_markup(out, "<p class=\"aside\">%.0f failed at %s, such as: %s</p>\n", field_number(failure, "count", NULL),
                     field_text(failure, "stage"), field_text(failure, "example"));
    if (json_array_size(trials) > 1) {
        write_curve(out, trials);
        write_lineage(out, trials);
        write_table(out, trials);
    }
    fputs("</article>\n", out);
}

void html_searches(FILE *out, const struct matter *matter)
{
    size_t index;
    json_t *search;
    if (json_array_size(matter->searches) == 0)
        return;
    fputs("<section id=\"searches\"><h2>Searches</h2>\n", out);
    json_array_foreach(matter->searches, index, search)
    {
        if (index < MOST_SEARCHES)
            write_search(out, search);
    }
    if (index > MOST_SEARCHES)
        write_markup(out,
                     "<p class=\"aside\">%zu older searches are not shown; <code>attest evolve --status</code> lists them.</p>\n",
                     index - MOST_SEARCHES);
    fputs("</section>\n", out);
}
