/*
 * writer.c - writes markup (see writer.h).
 */
#include "writer.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Length of the UTF-8 sequence at `text`, and its character; 0 if it is none. */
static int decode(const unsigned char *text, unsigned *character)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    int length = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : text[0] < 0xf5 ? 4 : 0;
    if (length == 0)
        return 0;
    *character = length == 1 ? text[0] : text[0] & (0x7fU >> length);
    for (int i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        *character = *character << 6 | (text[i] & 0x3f);
    }
    return *character >= least[length] ? length : 0;
}

static bool allowed(unsigned c)
{
    if (c < 0x20)
        return c == '\t' || c == '\n' || c == '\r';
    if ((c >= 0x7f && c < 0xa0) || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff || (c & 0xfffe) == 0xfffe)
        return false;
    return !(c >= 0x200e && c <= 0x200f) && !(c >= 0x202a && c <= 0x202e) && !(c >= 0x2066 && c <= 0x2069);
}

static void write_text(FILE *out, const char *text, const char *breaks)
{
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        unsigned character = 0;
        int length = decode(at, &character);
        if (length == 0 || !allowed(character))
            fputs("\xef\xbf\xbd", out);
        else if (character == '&')
            fputs("&amp;", out);
        else if (character == '<')
            fputs("&lt;", out);
        else if (character == '>')
            fputs("&gt;", out);
        else if (character == '"')
            fputs("&quot;", out);
        else if (character == '\'')
            fputs("&#39;", out);
        else
            fwrite(at, 1, (size_t)length, out);
        if (length == 1 && strchr(breaks, *at) && at[1])
            fputs("<wbr>", out);
        at += length ? length : 1;
    }
}

void write_escaped(FILE *out, const char *text)
{
    write_text(out, text, "");
}

void write_breakable(FILE *out, const char *text)
{
    write_text(out, text, "_:/,=");
}

/* One conversion, "%...X", with its argument. The type of the argument follows from its last letters. */
static void write_conversion(FILE *out, const char *conversion, size_t length, va_list *arguments)
{
    char spec[32];
    char text[64];
    char last = conversion[length - 1];
    bool is_long = length > 2 && conversion[length - 2] == 'l';
    bool is_size = length > 2 && conversion[length - 2] == 'z';
    if (last == '%') {
        fputc('%', out);
        return;
    }
    if (last == 's') {
        write_escaped(out, va_arg(*arguments, const char *));
        return;
    }
    snprintf(spec, sizeof spec, "%.*s", (int)length, conversion);
/* The conversions were checked where write_markup was called. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (last == 'd' && is_long)
        snprintf(text, sizeof text, spec, va_arg(*arguments, long long));
    else if (last == 'd')
        snprintf(text, sizeof text, spec, va_arg(*arguments, int));
    else if (is_size)
        snprintf(text, sizeof text, spec, va_arg(*arguments, size_t));
    else
        snprintf(text, sizeof text, spec, va_arg(*arguments, double));
#pragma GCC diagnostic pop
    fputs(text, out);
}

void write_markup(FILE *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    while (*format) {
        size_t literal = strcspn(format, "%");
        fwrite(format, 1, literal, out);
        format += literal;
        if (*format) {
            size_t length = 1 + strcspn(format + 1, "sdugf%") + 1;
            write_conversion(out, format, length, &arguments);
            format += length;
        }
    }
    va_end(arguments);
}
