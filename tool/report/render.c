/*
 * render.c - the table of formats (see render.h).
 */
#include "render.h"

#include <string.h>

#include "render_formats.h"

static const struct {
    const char *name;
    bool (*write)(FILE *out, const struct matter *matter);
} formats[] = {{"html", render_html}, {"tap", render_tap}, {"junit", render_junit}, {"sarif", render_sarif}};
enum { FORMAT_COUNT = sizeof formats / sizeof formats[0] };

bool render_knows(const char *format)
{
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (strcmp(formats[i].name, format) == 0)
            return true;
    return false;
}

bool render(FILE *out, const char *format, const struct matter *matter)
{
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (strcmp(formats[i].name, format) == 0)
            return formats[i].write(out, matter) && fflush(out) == 0 && !ferror(out);
    return false;
}
