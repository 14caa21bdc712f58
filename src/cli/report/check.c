/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON parser that checks a text and finds values in it, without making objects of them.  Room: cli. */
#include "cli/report/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { depth_max = 64 };

/* The state of the parser.  The text ends with NUL.  `expected`: what was expected at the first error; NULL: no error
 * so far. */
typedef struct reader {
    const char *at;
    const char *expected;
    int depth;
} reader;

static bool require(reader *r, bool ok, const char *what) {
    if (!ok && !r->expected) r->expected = what;
    return ok;
}

static void blanks(reader *r) {
    r->at += strspn(r->at, " \t\r\n");
}

static bool take(reader *r, char c) {
    if (*r->at != c) return false;
    ++r->at;
    return true;
}

static bool digits(reader *r) {
    size_t count = strspn(r->at, "0123456789");
    r->at += count;
    return require(r, count > 0, "a digit");
}

static bool number(reader *r) {
    take(r, '-');
    if (!take(r, '0') && !digits(r)) return false;
    if (take(r, '.') && !digits(r)) return false;
    if (*r->at != 'e' && *r->at != 'E') return true;
    ++r->at;
    if (!take(r, '+')) take(r, '-');
    return digits(r);
}

static bool literal(reader *r, const char *text) {
    bool ok = require(r, strncmp(r->at, text, strlen(text)) == 0, "a value");
    if (ok) r->at += strlen(text);
    return ok;
}

static bool escape(reader *r) {
    if (!require(r, *r->at && strchr("\"\\/bfnrtu", *r->at), "an escape sequence of JSON")) return false;
    if (!take(r, 'u')) {
        ++r->at;
        return true;
    }
    bool ok = strspn(r->at, "0123456789abcdefABCDEF") >= 4;
    if (ok) r->at += 4;
    return require(r, ok, "four hexadecimal digits");
}

/* Reads one UTF-8 character of several bytes. */
static bool multibyte(reader *r) {
    const unsigned char *c = (const unsigned char *)r->at;
    int length = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
    bool ok = c[0] >= 0xc2 && c[0] <= 0xf4;
    for (int i = 1; ok && i < length; ++i) ok = (c[i] & 0xc0) == 0x80;
    if (ok && length == 3) ok = !(c[0] == 0xe0 && c[1] < 0xa0) && !(c[0] == 0xed && c[1] > 0x9f);
    if (ok && length == 4) ok = !(c[0] == 0xf0 && c[1] < 0x90) && !(c[0] == 0xf4 && c[1] > 0x8f);
    if (ok) r->at += length;
    return require(r, ok, "UTF-8");
}

static bool string(reader *r) {
    if (!require(r, take(r, '"'), "a string")) return false;
    while (*r->at != '"') {
        unsigned char c = (unsigned char)*r->at;
        if (!require(r, c >= 0x20, c ? "no control character in a string" : "the end of a string"))
            return false;
        if (c >= 0x80) {
            if (!multibyte(r)) return false;
        } else {
            ++r->at;
            if (c == '\\' && !escape(r)) return false;
        }
    }
    ++r->at;
    return true;
}

static bool value(reader *r); /* a member contains a value */

static bool member(reader *r) {
    blanks(r);
    if (!string(r)) return false;
    blanks(r);
    return require(r, take(r, ':'), "':'") && value(r);
}

/* Reads a list of items in brackets, up to the bracket `close`. */
static bool list(reader *r, bool (*item)(reader *), char close, const char *separator_or_close) {
    if (!require(r, r->depth < depth_max, "fewer levels of brackets")) return false;
    ++r->depth;
    ++r->at;
    blanks(r);
    if (!take(r, close)) {
        do {
            if (!item(r)) return false;
            blanks(r);
        } while (take(r, ','));
        if (!require(r, take(r, close), separator_or_close)) return false;
    }
    --r->depth;
    return true;
}

static bool value(reader *r) { /* recursive, depth_max deep */
    blanks(r);
    switch (*r->at) {
    case '{': return list(r, member, '}', "',' or '}'");
    case '[': return list(r, value, ']', "',' or ']'");
    case '"': return string(r);
    case 't': return literal(r, "true");
    case 'f': return literal(r, "false");
    case 'n': return literal(r, "null");
    case '-': return number(r);
    default: return require(r, *r->at >= '0' && *r->at <= '9', "a value") && number(r);
    }
}

const char *cli_report_check(const char *text, const char **at) {
    reader r = {.at = text};
    blanks(&r);
    if (require(&r, *r.at == '{', "an object") && value(&r)) {
        blanks(&r);
        require(&r, !*r.at, "nothing after the object");
    }
    *at = r.at;
    return r.expected;
}

const char *cli_report_member(const char *json, const char *key) {
    reader r = {.at = json};
    size_t length = strlen(key);
    if (!json || !take(&r, '{')) return NULL;
    do {
        blanks(&r);
        const char *name = r.at;
        if (!string(&r)) return NULL;
        bool found = (size_t)(r.at - name) == length + 2 && strncmp(name + 1, key, length) == 0;
        blanks(&r);
        take(&r, ':');
        blanks(&r);
        if (found) return r.at;
        if (!value(&r)) return NULL;
        blanks(&r);
    } while (take(&r, ','));
    return NULL;
}

int cli_report_elements(const char *json, const char **last) {
    reader r = {.at = json};
    int count = 0;
    *last = NULL;
    if (!json || !take(&r, '[')) return 0;
    do {
        blanks(&r);
        if (*r.at == ']') break;
        *last = r.at;
        ++count;
        if (!value(&r)) break;
        blanks(&r);
    } while (take(&r, ','));
    return count;
}
