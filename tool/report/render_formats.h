/*
 * render_formats.h - the writers behind render(), one a format. Each is false if memory ran out.
 */
#ifndef ATTEST_RENDER_FORMATS_H
#define ATTEST_RENDER_FORMATS_H

#include "render.h"

bool render_html(FILE *out, const struct matter *matter);
bool render_tap(FILE *out, const struct matter *matter);
bool render_junit(FILE *out, const struct matter *matter);
bool render_sarif(FILE *out, const struct matter *matter);

#endif
