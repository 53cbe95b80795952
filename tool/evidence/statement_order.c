/*
 * statement_order.c - the order of all statements of a folder. See statement_order.h.
 *
 * The statements are a graph, as the commits of a repository are: each names the digests of those that were last when it was appended
 * ("after": the heads, which no other statement named by then), whichever file they are in. In one folder that is a chain; where two
 * branches were merged there are two heads until the next statement names both. A statement's number is one more than the highest
 * of those it names. So a number cannot be changed: in the last statement it does not follow from the others any more, and in any
 * other the digest changes, which later statements name. A statement that is named and not there was removed.
 *
 * Statements of before "after" was introduced name none. Of them less can be said: numbers rise along a file, and on a device class with
 * the time, and are no more than there are statements; and the first statement that came after them names the last of them.
 */
#include "statement_order.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "member.h"
#include "base/report.h"
#include "statement.h"

static const json_t *predicate_of(const json_t *entry)
{
    return json_object_get(json_object_get(entry, "statement"), "predicate");
}

static json_int_t number_of(const json_t *entry)
{
    return json_integer_value(json_object_get(predicate_of(entry), "sequence"));
}

static bool names_others(const json_t *entry)
{
    return json_object_get(predicate_of(entry), "after") != NULL;
}

/* {digest: true} for every statement that another one names. New reference. */
static json_t *named_of(const json_t *entries)
{
    json_t *named = json_object(), *digest;
    const json_t *entry;
    size_t index, at;
    json_array_foreach(entries, index, entry)
    {
        const char *previous = text_at(predicate_of(entry), "previous");
        if (*previous)
            json_put(named, previous, json_true());
        json_array_foreach(json_object_get(predicate_of(entry), "after"), at, digest)
        {
            if (json_is_string(digest))
                json_put(named, json_string_value(digest), json_true());
        }
    }
    return named;
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

json_t *order_heads(const json_t *entries)
{
    json_t *named = named_of(entries), *heads = json_array();
    const char **list = calloc(json_array_size(entries) + 1, sizeof *list);
    const json_t *entry;
    size_t index, count = 0;
    json_array_foreach(entries, index, entry)
    {
        const char *digest = text_at(entry, "digest");
        if (list && *digest && !json_object_get(named, digest))
            list[count++] = digest;
    }
    if (list)
        qsort(list, count, sizeof *list, by_text);
    for (size_t i = 0; i < count; i++)
        json_add(heads, json_string(list[i]));
    free(list);
    json_decref(named);
    return heads;
}

/* The number must be one more than the highest of the statements that are named, and all of those be there. */
static void check_named(json_t *entry, const json_t *by_digest)
{
    const json_t *after = json_object_get(predicate_of(entry), "after"), *digest;
    const char *previous = text_at(predicate_of(entry), "previous");
    json_int_t highest = *previous ? number_of(json_object_get(by_digest, previous)) : 0;
    size_t index;
    if (!json_is_array(after))
        set_problem(entry, "what it says it comes after is no list of digests");
    json_array_foreach(after, index, digest)
    {
        const json_t *other = json_object_get(by_digest, json_is_string(digest) ? json_string_value(digest) : "");
        if (!other) {
            set_problem(entry, "it comes after a statement that is not there (%.12s): one was removed or edited",
                        json_is_string(digest) ? json_string_value(digest) : "");
            return;
        }
        highest = number_of(other) > highest ? number_of(other) : highest;
    }
    if (number_of(entry) != highest + 1)
        set_problem(entry,
                    "its sequence number is %lld, and by the statements it comes after it must be %lld: a number was changed",
                    (long long)number_of(entry), (long long)highest + 1);
}

/* A statement of before "after". */
static void check_old(json_t *entry, const json_t *entries, const json_t *named, bool others_name)
{
    const json_t *other, *predicate = predicate_of(entry);
    size_t index;
    if (others_name && !json_object_get(named, text_at(entry, "digest")))
        set_problem(entry,
                    "no statement comes after it, and it says not what it comes after: it was edited, or is from an old branch");
    if (number_of(entry) > (json_int_t)json_array_size(entries))
        set_problem(entry,
                    "its sequence number is %lld, and there are %zu statements: a number was changed, or statements were removed",
                    (long long)number_of(entry), json_array_size(entries));
    json_array_foreach(entries, index, other)
    {
        if (!names_others(other) && number_of(other) < number_of(entry) &&
            text_is(json_object_get(predicate_of(other), "device"), "class",
                    text_at(json_object_get(predicate, "device"), "class")) &&
            strcmp(text_at(predicate_of(other), "finished"), text_at(predicate, "finished")) > 0)
            set_problem(
                entry, "its sequence number is %lld, but %s, line %lld, has a lower one and is younger: a number was changed",
                (long long)number_of(entry), text_at(other, "file"), (long long)json_integer_value(json_object_get(other, "line")));
    }
}

void order_check(const json_t *entries)
{
    json_t *named = named_of(entries), *by_digest = json_object(), *entry, *before = NULL;
    bool others_name = false;
    size_t index;
    json_array_foreach(entries, index, entry)
    {
        others_name = others_name || names_others(entry);
        if (*text_at(entry, "digest"))
            json_put(by_digest, text_at(entry, "digest"), json_incref(entry));
    }
    json_array_foreach(entries, index, entry)
    {
        bool same_file = before && text_is(before, "file", text_at(entry, "file"));
        if (predicate_of(entry) && number_of(entry) < 1)
            set_problem(entry, "it has no sequence number");
        else if (predicate_of(entry) && same_file && number_of(entry) <= number_of(before))
            set_problem(entry, "its sequence number is %lld, and that of the line before it %lld: a number was changed",
                        (long long)number_of(entry), (long long)number_of(before));
        else if (predicate_of(entry) && same_file && names_others(before) && !names_others(entry))
            set_problem(entry, "it says not what it comes after, and the line before it does: it was edited");
        else if (predicate_of(entry) && names_others(entry))
            check_named(entry, by_digest);
        else if (predicate_of(entry))
            check_old(entry, entries, named, others_name);
        before = entry;
    }
    json_decref(by_digest);
    json_decref(named);
}
