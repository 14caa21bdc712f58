/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON as Python's json.dumps does: ", " and ": ", ASCII only, repr of floats.  Room: json. */
#include "json/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "json/marks.h"

static bool reads_back(char *out, size_t bytes, double value, int digits) {
    snprintf(out, bytes, "%.*e", digits - 1, value);
    return strtod(out, NULL) == value;
}

/* Writes "d.ddde+XX" with the fewest digits that read back as the same number; returns the number of digits.  More
 * digits than the fewest read back, too, so that the number of digits is found by bisection.  Only for powers of two,
 * which have a nearer neighbour below than above, this is not so, and all numbers of digits are tried. */
static int shortest(char *out, size_t bytes, double value) {
    int exponent, low = 1, high = 17; /* 17 digits are always enough */
    const bool is_power = fabs(frexp(value, &exponent)) == 0.5;
    while (low < high) {
        int middle = is_power ? low : (low + high) / 2;
        if (reads_back(out, bytes, value, middle))
            high = middle;
        else
            low = middle + 1;
    }
    snprintf(out, bytes, "%.*e", low - 1, value);
    return low;
}

const char *leati_json_real_text(char out[LEATI_JSON_REAL_BYTES], double value) {
    if (!isfinite(value)) {
        int mark = isnan(value) ? LEATI_JSON_MARK_NAN
                   : value > 0  ? LEATI_JSON_MARK_INFINITY
                                : LEATI_JSON_MARK_MINUS_INFINITY;
        snprintf(out, LEATI_JSON_REAL_BYTES, "%s", leati_json_marks[mark].token);
        return out;
    }
    int digits = shortest(out, LEATI_JSON_REAL_BYTES, value);
    int exponent = (int)strtol(strchr(out, 'e') + 1, NULL, 10);
    int decimals = digits - 1 - exponent;
    if (exponent >= -4 && exponent < 16) /* other exponents: Python writes two digits, as C does */
        snprintf(out, LEATI_JSON_REAL_BYTES, "%.*f", decimals > 1 ? decimals : 1, value);
    leati_decimal_point(out);
    return out;
}

static int32_t code_point(const unsigned char **at) {
    const unsigned char *p = *at;
    int continuation_bytes = *p < 0x80 ? 0 : *p < 0xe0 ? 1 : *p < 0xf0 ? 2 : 3;
    int32_t code = continuation_bytes == 0 ? *p : *p & (0x3f >> continuation_bytes);
    for (int i = 1; i <= continuation_bytes; ++i) code = code << 6 | (p[i] & 0x3f);
    *at = p + continuation_bytes + 1;
    return code;
}

static void write_escaped(leati_text *text, int32_t code) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *found = code > 0 && code < 0x80 ? strchr(from, (int)code) : NULL;
    if (found)
        leati_text_add(text, "\\%c", to[found - from]);
    else if (code >= 0x20 && code < 0x7f)
        leati_text_add(text, "%c", (char)code);
    else if (code < 0x10000)
        leati_text_add(text, code == 0x7f ? "\x7f" : "\\u%04x", (unsigned)code);
    else
        leati_text_add(text, "\\u%04x\\u%04x", 0xd800u + (unsigned)((code - 0x10000) >> 10),
                       0xdc00u + (unsigned)((code - 0x10000) & 0x3ff));
}

/* Writes a string, which is valid UTF-8, since jansson accepts no other. */
static void write_string(leati_text *text, const char *string) {
    leati_text_add(text, "\"");
    size_t plain = strcspn(string, "\"\\");
    bool simple = string[plain] == '\0';
    for (const char *p = string; simple && *p; ++p) simple = *p >= 0x20 && *p < 0x7f;
    if (simple) leati_text_add(text, "%s", string);
    for (const unsigned char *p = (const unsigned char *)string; !simple && *p;)
        write_escaped(text, code_point(&p));
    leati_text_add(text, "\"");
}

/* A text that is written up to about `limit` bytes. */
typedef struct writer {
    leati_text text;
    size_t limit;
} writer;

static void write_value(writer *out, const json_t *value);

static void write_object(writer *out, const json_t *value) {
    leati_text *text = &out->text;
    const char *separator = "{", *key;
    json_t *member;
    json_object_foreach((json_t *)(uintptr_t)value, key, member) {
        if (text->length > out->limit) return;
        leati_text_add(text, "%s", separator);
        write_string(text, key);
        leati_text_add(text, ": ");
        write_value(out, member);
        separator = ", ";
    }
    leati_text_add(text, json_object_size(value) ? "}" : "{}");
}

static void write_array(writer *out, const json_t *value) {
    leati_text *text = &out->text;
    leati_text_add(text, "[");
    for (size_t i = 0; i < json_array_size(value); ++i) {
        if (text->length > out->limit) return;
        if (i > 0) leati_text_add(text, ", ");
        write_value(out, json_array_get(value, i));
    }
    leati_text_add(text, "]");
}

static void write_value(writer *out, const json_t *value) {
    leati_text *text = &out->text;
    char number[LEATI_JSON_REAL_BYTES];
    double real;
    switch (json_typeof(value)) {
    case JSON_OBJECT: write_object(out, value); break;
    case JSON_ARRAY: write_array(out, value); break;
    case JSON_STRING:
        if (leati_json_number(value, &real))
            leati_text_add(text, "%s", leati_json_real_text(number, real));
        else
            write_string(text, json_string_value(value));
        break;
    case JSON_INTEGER: leati_text_add(text, "%" PRId64, (int64_t)json_integer_value(value)); break;
    case JSON_REAL: leati_text_add(text, "%s", leati_json_real_text(number, json_real_value(value))); break;
    case JSON_TRUE: leati_text_add(text, "true"); break;
    case JSON_FALSE: leati_text_add(text, "false"); break;
    case JSON_NULL: leati_text_add(text, "null"); break;
    }
}

leat_status leati_json_write_start(const json_t *value, size_t bytes, char **out, leat_error *err) {
    writer w = {.limit = bytes};
    *out = NULL;
    write_value(&w, value);
    if (w.text.failed) {
        size_t length = w.text.length;
        leati_text_fini(&w.text);
        return leati_fail_memory(err, length, "JSON");
    }
    *out = w.text.data;
    return LEAT_OK;
}

leat_status leati_json_write(const json_t *value, char **out, leat_error *err) {
    return leati_json_write_start(value, SIZE_MAX, out, err);
}

json_t *leati_json_real(double value) {
    if (isfinite(value)) return json_real(value);
    int mark = isnan(value) ? LEATI_JSON_MARK_NAN
               : value > 0  ? LEATI_JSON_MARK_INFINITY
                            : LEATI_JSON_MARK_MINUS_INFINITY;
    return json_string(leati_json_marks[mark].string);
}
