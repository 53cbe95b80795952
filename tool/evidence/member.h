/*
 * member.h - members of JSON objects that somebody else wrote: what is missing, or is no text, reads as "".
 */
#ifndef ATTEST_MEMBER_H
#define ATTEST_MEMBER_H

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

static inline const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static inline bool text_is(const json_t *object, const char *key, const char *value)
{
    return strcmp(text_at(object, key), value) == 0;
}

/* The first object of a list whose `key` is this text; NULL if there is none, or no list. Borrowed. */
static inline json_t *member_find(const json_t *list, const char *key, const char *value)
{
    json_t *member;
    size_t index;
    json_array_foreach(list, index, member)
    {
        if (text_is(member, key, value))
            return member;
    }
    return NULL;
}

/* What a gate found, in a record. */
static inline json_t *record_gate(const json_t *record, const char *name)
{
    return member_find(json_object_get(record, "gates"), "gate", name);
}

#endif
