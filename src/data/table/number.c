/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the numbers of text files that the short way of number.h does not read.  Room: data. */
#include "data/table/number.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

const double leati_number_powers[LEATI_NUMBER_POWERS + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                             1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                             1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23,
                                                             1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31,
                                                             1e32, 1e33, 1e34, 1e35, 1e36, 1e37, 1e38, 1e39,
                                                             1e40, 1e41, 1e42, 1e43, 1e44};

/* The longest number that is read; a longer one is refused. */
enum { MAX_CHARACTERS = 1000 };

/* The parts of a decimal number; all pointers are into its text. */
typedef struct decimal {
    const char *end;
    int64_t digits;   /* digits, without zeros before the first other digit */
    uint64_t leading; /* the first 19 of these digits as a number */
    int64_t exponent; /* of the number that `leading` would be with all digits */
    bool any;         /* the number has a digit */
} decimal;

static void read_digits(decimal *d, const char *end, bool behind_point) {
    for (; d->end < end && *d->end >= '0' && *d->end <= '9'; ++d->end) {
        const uint64_t digit = (uint64_t)(*d->end - '0');
        d->any = true;
        d->exponent -= behind_point;
        if (d->digits == 0 && digit == 0) continue;
        if (d->digits < 19) d->leading = 10 * d->leading + digit;
        ++d->digits;
    }
}

static decimal read_parts(const char *at, const char *end, char point) {
    decimal d = {.end = at};
    read_digits(&d, end, false);
    if (d.end < end && *d.end == point) {
        ++d.end;
        read_digits(&d, end, true);
    }
    if (!d.any || d.end == end || (*d.end != 'e' && *d.end != 'E')) return d;
    const char *p = d.end + 1;
    const bool negative = p < end && *p == '-';
    int64_t exponent = 0;
    p += p < end && (*p == '-' || *p == '+');
    if (p == end || *p < '0' || *p > '9') return d;
    for (; p < end && *p >= '0' && *p <= '9'; ++p)
        if (exponent < 100000) exponent = 10 * exponent + (*p - '0');
    d.exponent += negative ? -exponent : exponent;
    d.end = p;
    return d;
}

/* Returns the text after one of the words for infinity and for no number; NULL if there is none. */
static const char *read_word(const char *at, const char *end, float *out) {
    static const struct {
        const char *word;
        float value;
    } words[] = {{"infinity", INFINITY}, {"inf", INFINITY}, {"nan", NAN}};
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i) {
        const size_t length = strlen(words[i].word);
        if ((size_t)(end - at) < length || strncasecmp(at, words[i].word, length) != 0) continue;
        *out = words[i].value;
        return at + length;
    }
    return NULL;
}

/* Converts a number by strtof, which rounds correctly, in the locale "C".  Returns false without that locale. */
static bool convert(const char *at, const char *end, char point, float *out) {
    char text[MAX_CHARACTERS + 1];
    const size_t length = (size_t)(end - at);
    memcpy(text, at, length);
    text[length] = '\0';
    char *separator = memchr(text, point, length);
    if (separator) *separator = '.';
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0) return false;
    const locale_t before = uselocale(plain);
    *out = strtof(text, NULL);
    (void)uselocale(before);
    freelocale(plain);
    return true;
}

const char *leati_read_float_slowly(const char *at, const char *end, char point, float *out) {
    const char *begin = at;
    const bool negative = at < end && *at == '-';
    at += at < end && (*at == '-' || *at == '+');
    const decimal d = read_parts(at, end, point);
    const char *after = d.end;
    if (!d.any) {
        after = read_word(at, end, out);
        if (!after) return NULL;
    } else if (d.digits > 19 || d.exponent > 1000 || d.exponent < -1000 ||
               !leati_round_to_float(d.leading, (int)d.exponent, out)) {
        if (d.end - begin > MAX_CHARACTERS || !convert(at, d.end, point, out)) return NULL;
    }
    if (negative) *out = -*out;
    return after;
}

const char *leati_read_int32(const char *at, const char *end, char point, int32_t *out) {
    int64_t value = 0;
    const char *p = at;
    const bool negative = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    const char *digits = p;
    for (; p < end && *p >= '0' && *p <= '9'; ++p)
        if (value <= INT32_MAX) value = 10 * value + (*p - '0');
    if (p == digits) return NULL;
    if (negative) value = -value;
    if (value < INT32_MIN || value > INT32_MAX) return NULL;
    if (p < end && *p == point)
        for (++p; p < end && *p == '0'; ++p) {
        }
    *out = (int32_t)value;
    return p;
}
