/* SPDX-License-Identifier: Apache-2.0 */
/* Parses SPECs that combine others.  Room: data. */
#include "data/call.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/spec.h"

static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";

typedef struct call_type {
    const char *name, *usage, *options;
    int least, most;
} call_type;

static const call_type types[] = {
#define CALL_ROW(name, parts, options, least, most, text)                                                    \
    {#name, #name "(" parts ")", " " options " ", least, most},
    LEATI_CALL_LIST(CALL_ROW)
#undef CALL_ROW
};

enum { type_count = sizeof types / sizeof *types };

bool leati_is_call(const char *text) {
    const size_t length = strspn(text, letters);
    return length > 0 && text[length] == '(';
}

static leat_status find_type(const call_type **out, const char *name, leat_error *err) {
    const char *names[type_count];
    for (size_t i = 0; i < type_count; ++i) {
        names[i] = types[i].name;
        if (strcmp(types[i].name, name) != 0) continue;
        *out = &types[i];
        return LEAT_OK;
    }
    const char *near = leati_nearest(name, names, type_count);
#define CALL_NAME(name, parts, options, least, most, text) " " #name
    return leati_fail(err, LEAT_EINVAL, "no combination '%s'%s%s%s; there are" LEATI_CALL_LIST(CALL_NAME),
                      name, near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
#undef CALL_NAME
}

/* Returns true if the list, in which each word stands between blanks, has the word. */
static bool has_word(const char *list, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if (at[-1] == ' ' && at[length] == ' ') return true;
    return false;
}

static char *trim(char *text) {
    while (*text == ' ') ++text;
    for (size_t length = strlen(text); length > 0 && text[length - 1] == ' '; --length)
        text[length - 1] = '\0';
    return text;
}

static leat_status add_option(leati_call *call, const call_type *t, char *text, leat_error *err) {
    char *value = strchr(text, '=');
    *value++ = '\0';
    if (!has_word(t->options, text))
        return leati_fail(err, LEAT_EINVAL, "%s has no option '%s'; expected %s", t->name, text, t->usage);
    if (leati_call_option(call, text))
        return leati_fail(err, LEAT_EINVAL, "the option '%s' is given twice", text);
    if (call->option_count == LEATI_CALL_MAX_OPTIONS)
        return leati_fail(err, LEAT_EINVAL, "expected at most %d options", LEATI_CALL_MAX_OPTIONS);
    LEATI_TRY(leati_spec_decode(value, err));
    call->keys[call->option_count] = text;
    call->values[call->option_count++] = value;
    return LEAT_OK;
}

static leat_status add_argument(leati_call *call, const call_type *t, char *text, leat_error *err) {
    text = trim(text);
    if (text[strspn(text, letters)] == '=') return add_option(call, t, text, err);
    if (*text == '\0')
        return leati_fail(err, LEAT_EINVAL, "an argument of %s is empty; expected %s", t->name, t->usage);
    if (call->part_count == t->most)
        return leati_fail(err, LEAT_EINVAL, "%s takes at most %d SPECs; expected %s", t->name, t->most,
                          t->usage);
    call->parts[call->part_count++] = text;
    return LEAT_OK;
}

/* Splits the arguments at the semicolons that are in no inner brackets. */
static leat_status parse_arguments(leati_call *call, const call_type *t, char *text, leat_error *err) {
    char *start = text;
    int depth = 0;
    for (char *at = text;; ++at) {
        if (*at == '\0')
            return leati_fail(
                err, LEAT_EINVAL,
                "a bracket is missing at the end of %s (a bracket in a path is written %%28 or %%29)",
                t->usage);
        depth += (*at == '(') - (*at == ')');
        const bool ends = depth < 0;
        if (!ends && (*at != ';' || depth > 0)) continue;
        *at = '\0';
        LEATI_TRY(add_argument(call, t, start, err));
        start = at + 1;
        if (ends) break;
    }
    if (*trim(start) != '\0')
        return leati_fail(err, LEAT_EINVAL, "unexpected text after %s(...): '%s'", t->name, trim(start));
    if (call->part_count >= t->least) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "%s received %d SPECs; expected %s", t->name, call->part_count,
                      t->usage);
}

leat_status leati_call_parse(leati_call *out, const char *text, leat_error *err) {
    const call_type *t = NULL;
    const size_t length = strspn(text, letters);
    *out = (leati_call){.text = leati_strdup(text)};
    if (!out->text) return leati_fail_memory(err, strlen(text), "a SPEC");
    out->text[length] = '\0';
    out->name = out->text;
    leat_status status = find_type(&t, out->name, err);
    if (status == LEAT_OK) status = parse_arguments(out, t, out->text + length + 1, err);
    if (status != LEAT_OK) leati_call_fini(out);
    return status;
}

void leati_call_fini(leati_call *call) {
    leati_free(call->text);
    *call = (leati_call){0};
}

/* ---- Options ---- */

const char *leati_call_option(const leati_call *call, const char *key) {
    for (int i = 0; i < call->option_count; ++i)
        if (strcmp(call->keys[i], key) == 0) return call->values[i];
    return NULL;
}

leat_status leati_call_integer(const leati_call *call, const char *key, int64_t least, int64_t *out,
                               leat_error *err) {
    const char *text = leati_call_option(call, key);
    if (!text) return LEAT_OK;
    int64_t value = 0;
    const size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; i < digits && digits <= 18; ++i) value = 10 * value + (text[i] - '0');
    if (digits == 0 || digits > 18 || text[digits] || value < least)
        return leati_fail(err, LEAT_EINVAL, "%s=%s: expected an integer of at least %lld", key, text,
                          (long long)least);
    *out = value;
    return LEAT_OK;
}

leat_status leati_read_bytes(size_t *out, const char *key, const char *text, leat_error *err) {
    const size_t digits = strspn(text, "0123456789");
    const char *units = "KMG", *unit = text[digits] ? strchr(units, text[digits]) : NULL;
    uint64_t value = 0;
    for (size_t i = 0; i < digits && digits <= 9; ++i) value = 10 * value + (uint64_t)(text[i] - '0');
    if (digits > 9 || value == 0 || (text[digits] && (!unit || text[digits + 1])))
        return leati_fail(err, LEAT_EINVAL, "%s%s: expected bytes, or a number with K, M or G, such as 4G",
                          key, text);
    for (const char *at = units; unit && at <= unit; ++at) value *= 1024;
    *out = (size_t)value;
    return LEAT_OK;
}

/* ---- Sources ---- */

leat_status leati_visit_sources(const char *text, int depth,
                                leat_status (*visit)(void *context, const char *source, leat_error *err),
                                void *context, leat_error *err) {
    leati_call call;
    if (!leati_is_call(text)) return visit(context, text, err);
    if (depth == LEATI_CALL_MAX_DEPTH)
        return leati_fail(err, LEAT_EINVAL, "expected at most %d combinations inside of each other",
                          LEATI_CALL_MAX_DEPTH);
    LEATI_TRY(leati_call_parse(&call, text, err));
    leat_status status = LEAT_OK;
    for (int i = 0; i < call.part_count && status == LEAT_OK; ++i)
        status = leati_visit_sources(call.parts[i], depth + 1, visit, context, err);
    leati_call_fini(&call);
    return status;
}
