/* SPDX-License-Identifier: Apache-2.0 */
/* Growing strings, control characters, shapes in words.  Room: base. */
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

static bool reserve(leati_text *text, size_t more) {
    size_t needed = text->length + more + 1;
    if (needed <= text->capacity) return true;
    size_t capacity = text->capacity ? text->capacity : 64;
    while (capacity < needed) capacity *= 2;
    char *data = leati_realloc(text->data, capacity, 1);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

size_t leati_control_bytes(const char *at) {
    const unsigned char *byte = (const unsigned char *)at;
    if (byte[0] == '\0') return 0;
    if (byte[0] < 0x20 || byte[0] == 0x7F) return 1;
    return byte[0] == 0xC2 && byte[1] >= 0x80 && byte[1] <= 0x9F ? 2 : 0;
}

bool leati_has_control(const char *text) {
    for (; *text; ++text)
        if (leati_control_bytes(text)) return true;
    return false;
}

void leati_text_add(leati_text *text, const char *format, ...) {
    if (text->failed) return;
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        text->failed = true;
    else if (reserve(text, (size_t)length)) {
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void leati_text_add_names(leati_text *text, const char *const *names, size_t count, size_t most) {
    for (size_t i = 0; i < count && i < most; ++i) leati_text_add(text, "%s%s", i > 0 ? ", " : "", names[i]);
    if (count > most) leati_text_add(text, ", ...");
}

void leati_text_fini(leati_text *text) {
    leati_free(text->data);
    *text = (leati_text){0};
}

void leati_decimal_point(char *number) {
    char *separator = number + strspn(number, " +-0123456789");
    bool other = *separator == ',' || (unsigned char)*separator >= 0x80;
    if (!other) return;
    char *rest = separator + 1;
    while ((unsigned char)*rest >= 0x80) ++rest;
    *separator = '.';
    memmove(separator + 1, rest, strlen(rest) + 1);
}

const char *leati_shape_text(char *out, size_t bytes, int rank, const int64_t *shape) {
    size_t used = (size_t)snprintf(out, bytes, "(");
    for (int i = 0; i < rank && used < bytes; ++i) {
        const char *comma = i + 1 < rank ? ", " : rank == 1 ? "," : "";
        int n = shape[i] < 0 ? snprintf(out + used, bytes - used, "None%s", comma)
                             : snprintf(out + used, bytes - used, "%" PRId64 "%s", shape[i], comma);
        used += (size_t)n;
    }
    if (used < bytes) snprintf(out + used, bytes - used, ")");
    return out;
}

const char *leati_read_decimal(const char *text, double *out) {
    double value = 0, power = 1;
    int significant = 0, exponent = 0, digit_count = 0, exponent_digits = 0, sign = 1;
    bool negative = *text == '-', point = false;
    const char *p = text + negative;
    for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); ++p) {
        if (*p == '.') {
            point = true;
            continue;
        }
        ++digit_count;
        significant += significant > 0 || *p != '0';
        value = 10 * value + (*p - '0');
        exponent -= point;
    }
    if (digit_count > 0 && (*p == 'e' || *p == 'E') && (p[1 + (p[1] == '-' || p[1] == '+')] >= '0') &&
        (p[1 + (p[1] == '-' || p[1] == '+')] <= '9')) {
        ++p;
        sign = *p == '-' ? -1 : 1;
        for (p += *p == '-' || *p == '+'; *p >= '0' && *p <= '9' && exponent_digits < 1000; ++p)
            exponent_digits = 10 * exponent_digits + (*p - '0');
    }
    exponent += sign * exponent_digits;
    if (digit_count == 0 || significant > 15 || exponent > 22 || exponent < -22) return NULL;
    for (int i = exponent < 0 ? -exponent : exponent; i > 0; --i) power *= 10;
    *out = (negative ? -1 : 1) * (exponent < 0 ? value / power : value * power);
    return p;
}
