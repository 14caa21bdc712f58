/* SPDX-License-Identifier: Apache-2.0 */
/* JSON strings and numbers.  Room: cli. */
#include "cli/run/json.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns the number of bytes of the UTF-8 character at `p`; 0: not a valid one (RFC 3629, table 3-7 of Unicode). */
static int utf8_bytes(const unsigned char *p) {
    if (p[0] < 0x80) return 1;
    int bytes = p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
    for (int i = 1; i < bytes; ++i)
        if ((p[i] & 0xC0) != 0x80) return 0;
    bool overlong = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xF0 && p[1] < 0x90);
    bool out_of_range = (p[0] == 0xED && p[1] > 0x9F) || (p[0] == 0xF4 && p[1] > 0x8F);
    return overlong || out_of_range ? 0 : bytes;
}

void cli_json_string(FILE *out, const char *text) {
    fputc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        int bytes = utf8_bytes(p);
        if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7F)
            fprintf(out, "\\u%04x", *p);
        else if (*p == 0xC2 && bytes == 2 && p[1] < 0xA0) /* C1, which terminals obey */
            fprintf(out, "\\u%04x", p[1]);
        else if (bytes == 0)
            fputs("\\ufffd", out);
        else
            fwrite(p, 1, (size_t)bytes, out);
        p += bytes ? bytes : 1;
    }
    fputc('"', out);
}

void cli_json_text(FILE *out, const char *json) {
    for (const unsigned char *p = (const unsigned char *)json; *p; ++p)
        if (*p == 0x7F)
            fputs("\\u007f", out);
        else if (*p == 0xC2 && p[1] >= 0x80 && p[1] < 0xA0)
            fprintf(out, "\\u%04x", *++p);
        else
            fputc(*p, out);
    fputc('\n', out);
}

void cli_json_number(FILE *out, double value) {
    char text[40];
    if (!isfinite(value)) {
        fputs("null", out);
        return;
    }
    for (int digits = 6; digits <= 17; ++digits) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    fputs(text, out);
}
