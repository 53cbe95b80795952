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

#endif
