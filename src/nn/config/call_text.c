/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the text of a call: a class name and its arguments in one line.  Room: nn. */
#include "nn/config/call_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "json/json.h"
#include "nn/config/object.h"

/* The most calls inside each other: each is a level of recursion. */
#define MAX_DEPTH 8

/* A part of the text; not terminated by a zero byte. */
typedef struct span {
    const char *at;
    size_t length;
} span;

static span trimmed(span s) {
    while (s.length > 0 && isspace((unsigned char)s.at[0])) {
        s.at += 1;
        s.length -= 1;
    }
    while (s.length > 0 && isspace((unsigned char)s.at[s.length - 1])) s.length -= 1;
    return s;
}

/* The length up to the first comma outside of brackets and quotes, or to the end. */
static size_t item_length(span s) {
    int depth = 0;
    char quote = '\0';
    for (size_t i = 0; i < s.length; ++i) {
        char c = s.at[i];
        if (quote) {
            if (c == '\\' && i + 1 < s.length) ++i;
            if (c == quote) quote = '\0';
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (strchr("([{", c)) {
            ++depth;
        } else if (strchr(")]}", c)) {
            --depth;
        } else if (c == ',' && depth <= 0) {
            return i;
        }
    }
    return s.length;
}

size_t leati_call_item(const char *text) {
    return item_length((span){text, strlen(text)});
}

static bool is_word(span s) {
    for (size_t i = 0; i < s.length; ++i)
        if (!isalnum((unsigned char)s.at[i]) && s.at[i] != '_') return false;
    return s.length > 0 && !isdigit((unsigned char)s.at[0]);
}

static bool equals(span s, const char *text) {
    return strlen(text) == s.length && memcmp(s.at, text, s.length) == 0;
}

/* True, False, None, and their JSON forms are constants; any other word is a text. */
static json_t *word_value(span s) {
    if (equals(s, "True") || equals(s, "true")) return json_true();
    if (equals(s, "False") || equals(s, "false")) return json_false();
    if (equals(s, "None") || equals(s, "null")) return json_null();
    return json_stringn(s.at, s.length);
}

/* True for a word that a bracket follows, the text of a call. */
static bool is_call(span s) {
    const char *open = memchr(s.at, '(', s.length);
    return open && is_word(trimmed((span){s.at, (size_t)(open - s.at)}));
}

/* Returns NULL if the text is not a value, or if memory is missing: then *lacks_memory is true. */
static json_t *value_of(span s, bool *lacks_memory) {
    json_t *value = NULL;
    *lacks_memory = true;
    if (is_word(s)) return word_value(s);
    *lacks_memory = leati_json_parse_argument(&value, s.at, s.length, NULL) == LEAT_ENOMEM;
    return value;
}

static leat_status read_call(span s, const char *what, int depth, json_t **out, leat_error *err);

static leat_status add_argument(json_t *config, span s, span name, const char *what, int depth,
                                leat_error *err) {
    const char *equals_sign = memchr(s.at, '=', s.length);
    span key = trimmed((span){s.at, equals_sign ? (size_t)(equals_sign - s.at) : 0});
    if (!is_word(key))
        return leati_fail(err, LEAT_EINVAL, "%s: %.*s(...): expected key=value, received '%.*s'", what,
                          (int)name.length, name.at, (int)s.length, s.at);
    span text = trimmed((span){equals_sign + 1, s.length - (size_t)(equals_sign - s.at) - 1});
    bool lacks_memory = false;
    json_t *value = NULL;
    if (is_call(text))
        LEATI_TRY(read_call(text, what, depth + 1, &value, err));
    else if (text.length > 0)
        value = value_of(text, &lacks_memory);
    if (!value && lacks_memory)
        return leati_fail(err, LEAT_ENOMEM, "no memory for %s, or the text is not UTF-8", what);
    if (!value)
        return leati_fail(err, LEAT_EINVAL,
                          "%s: %.*s(%.*s=...): expected a number, a list or a name, received '%.*s'", what,
                          (int)name.length, name.at, (int)key.length, key.at, (int)text.length, text.at);
    char buffer[64];
    if (key.length >= sizeof buffer) {
        json_decref(value);
        return leati_fail(err, LEAT_EINVAL, "%s: the key '%.40s...' is too long", what, key.at);
    }
    memcpy(buffer, key.at, key.length);
    buffer[key.length] = '\0';
    if (json_object_set_new(config, buffer, value) == 0) return LEAT_OK;
    return leati_fail(err, LEAT_ENOMEM, "no memory for %s", what);
}

static leat_status add_arguments(json_t *config, span s, span name, const char *what, int depth,
                                 leat_error *err) {
    while (s.length > 0) {
        size_t length = item_length(s);
        LEATI_TRY(add_argument(config, trimmed((span){s.at, length}), name, what, depth, err));
        size_t consumed = length < s.length ? length + 1 : length;
        s = trimmed((span){s.at + consumed, s.length - consumed});
    }
    return LEAT_OK;
}

/* Writes the object; copies the name, because leati_object_write needs a terminated string. */
static leat_status write_call(span name, json_t *config, const char *what, json_t **out, leat_error *err) {
    json_t *text = json_stringn(name.at, name.length);
    leat_status status = LEAT_ENOMEM;
    if (text)
        status = leati_object_write(json_string_value(text), config, out, err);
    else
        json_decref(config);
    json_decref(text);
    return status == LEAT_ENOMEM ? leati_fail(err, LEAT_ENOMEM, "no memory for %s", what) : status;
}

static leat_status read_call(span s, const char *what, int depth, json_t **out, leat_error *err) {
    const char *open = memchr(s.at, '(', s.length);
    span name = trimmed((span){s.at, (size_t)(open - s.at)});
    *out = NULL;
    if (!is_word(name) || s.at[s.length - 1] != ')')
        return leati_fail(err, LEAT_EINVAL, "%s: expected Name(key=value, ...), received '%.*s'", what,
                          (int)s.length, s.at);
    if (depth > MAX_DEPTH)
        return leati_fail(err, LEAT_EINVAL, "%s: expected at most %d calls inside each other", what,
                          MAX_DEPTH);
    json_t *config = json_object();
    if (!config) return leati_fail(err, LEAT_ENOMEM, "no memory for %s", what);
    size_t inner = s.length - (size_t)(open - s.at) - 2;
    leat_status status = add_arguments(config, trimmed((span){open + 1, inner}), name, what, depth, err);
    if (status == LEAT_OK) return write_call(name, config, what, out, err);
    json_decref(config);
    return status;
}

leat_status leati_call_read(const char *text, size_t length, const char *what, json_t **out,
                            leat_error *err) {
    span s = trimmed((span){text, length});
    *out = NULL;
    if (s.length == 0) return leati_fail(err, LEAT_EINVAL, "%s: expected a name between commas", what);
    if (memchr(s.at, '(', s.length)) return read_call(s, what, 1, out, err);
    *out = json_stringn(s.at, s.length);
    return *out ? LEAT_OK : leati_fail(err, LEAT_ENOMEM, "no memory for %s, or the text is not UTF-8", what);
}
