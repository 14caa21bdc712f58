/* SPDX-License-Identifier: Apache-2.0 */
/* Reading JSON: checks the limits and replaces Python's tokens for NaN and infinities, then calls jansson.  Layer:
 * json. */
#include "json/json.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "json/marks.h"

const leati_json_mark leati_json_marks[LEATI_JSON_MARK_COUNT] = {{"NaN", "\x7fNaN"},
                                                                 {"Infinity", "\x7fInfinity"},
                                                                 {"-Infinity", "\x7f-Infinity"}};

/* A scan of a text. */
typedef struct scan {
    const char *text;
    size_t bytes;
    size_t marks;  /* number of tokens to replace */
    char *out;     /* receives the text with replaced tokens; NULL: only count its bytes */
    size_t length; /* of the text with replaced tokens, so far */
} scan;

static leat_status fail_at(const char *text, size_t at, leat_error *err, const char *reason) {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at; ++i, ++column) {
        if (text[i] != '\n') continue;
        ++line;
        column = 0;
    }
    return leati_fail(err, LEAT_EFORMAT, "JSON, line %zu, column %zu: %s", line, column, reason);
}

static void emit(scan *s, const char *from, size_t bytes) {
    if (s->out) memcpy(s->out + s->length, from, bytes);
    s->length += bytes;
}

/* Returns the mark whose token is at `at`, or NULL. */
static const leati_json_mark *mark_at(const scan *s, size_t at) {
    if (s->text[at] == '-' && (at + 1 == s->bytes || s->text[at + 1] != 'I')) return NULL; /* a number */
    for (int i = 0; i < LEATI_JSON_MARK_COUNT; ++i) {
        size_t length = strlen(leati_json_marks[i].token);
        if (s->bytes - at >= length && memcmp(s->text + at, leati_json_marks[i].token, length) == 0)
            return &leati_json_marks[i];
    }
    return NULL;
}

/* Returns the position after the string that starts at `at`. */
static size_t skip_string(const scan *s, size_t at) {
    for (++at; at < s->bytes && s->text[at] != '"'; ++at)
        if (s->text[at] == '\\') ++at;
    return at < s->bytes ? at + 1 : s->bytes;
}

/* True for a character that may begin a string, a token, or a level of nesting. */
static bool is_special(char c) {
    return c == '"' || c == 'N' || c == 'I' || c == '-' || c == '[' || c == ']' || c == '{' || c == '}';
}

/* Copies the text from `from` to `to` before a mark, and then the mark. */
static void emit_mark(scan *s, size_t from, size_t to, const leati_json_mark *mark) {
    ++s->marks;
    emit(s, s->text + from, to - from);
    emit(s, "\"\\u007f", 7);
    emit(s, mark->token, strlen(mark->token));
    emit(s, "\"", 1);
}

static leat_status scan_text(scan *s, leat_error *err) {
    int depth = 0;
    size_t emitted = 0, at = 0;
    while (at < s->bytes) {
        char c = s->text[at];
        if (!is_special(c)) {
            ++at;
            continue;
        }
        const leati_json_mark *mark = c == 'N' || c == 'I' || c == '-' ? mark_at(s, at) : NULL;
        size_t next = c == '"' ? skip_string(s, at) : mark ? at + strlen(mark->token) : at + 1;
        if (c == '[' || c == '{') {
            if (++depth > LEATI_JSON_MAX_DEPTH)
                return fail_at(s->text, at, err, "nested more deeply than 256 levels");
        } else if (c == ']' || c == '}')
            --depth;
        if (mark) {
            emit_mark(s, emitted, at, mark);
            emitted = next;
        }
        at = next;
    }
    emit(s, s->text + emitted, s->bytes - emitted);
    return LEAT_OK;
}

/* Converts a position in the text with replaced tokens to the position in the original text: each replaced token
 * before it made the text 8 bytes longer. */
static size_t original_position(const char *replaced, size_t bytes, size_t at) {
    size_t marks_before = 0;
    for (size_t i = 0; i + 7 <= bytes && i < at; ++i)
        if (memcmp(replaced + i, "\"\\u007f", 7) == 0) ++marks_before;
    return at >= marks_before * 8 ? at - marks_before * 8 : 0;
}

static leat_status load(json_t **out, const scan *s, const char *text, size_t bytes, leat_error *err) {
    json_error_t failure;
    *out = json_loadb(text, bytes, JSON_DECODE_ANY, &failure);
    if (*out) return LEAT_OK;
    enum json_error_code code = json_error_code(&failure);
    /* After some failed allocations jansson reports no message. */
    if (code == json_error_out_of_memory || failure.text[0] == '\0')
        return leati_fail_memory(err, bytes, "JSON");
    const char *said = code == json_error_null_character ? "expected a text without \\u0000" : failure.text;
    size_t at = failure.position > 0 ? (size_t)failure.position : 0;
    if (s->marks > 0) at = original_position(text, bytes, at);
    if (at > 0 && code != json_error_premature_end_of_input) --at;
    return fail_at(s->text, at < s->bytes ? at : s->bytes, err, said);
}

leat_status leati_json_parse(json_t **out, const char *text, size_t bytes, leat_error *err) {
    *out = NULL;
    if (bytes > LEATI_JSON_MAX_BYTES)
        return leati_fail(err, LEAT_EFORMAT, "JSON: expected at most %zu bytes, received %zu",
                          LEATI_JSON_MAX_BYTES, bytes);
    scan s = {.text = text, .bytes = bytes};
    LEATI_TRY(scan_text(&s, err));
    if (s.marks == 0) return load(out, &s, text, bytes, err);
    scan replace = {.text = text, .bytes = bytes, .out = leati_calloc(s.length + 1, 1)};
    if (!replace.out) return leati_fail_memory(err, s.length + 1, "JSON");
    leat_status status = scan_text(&replace, err);
    if (status == LEAT_OK) status = load(out, &replace, replace.out, replace.length, err);
    leati_free(replace.out);
    return status;
}

bool leati_json_number(const json_t *value, double *out) {
    static const double numbers[LEATI_JSON_MARK_COUNT] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    if (json_is_number(value)) {
        *out = json_number_value(value);
        return true;
    }
    const char *string = json_string_value(value);
    for (int i = 0; string && i < LEATI_JSON_MARK_COUNT; ++i) {
        if (strcmp(string, leati_json_marks[i].string) != 0) continue;
        *out = numbers[i];
        return true;
    }
    return false;
}
