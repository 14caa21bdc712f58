/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the text of an augmentation: steps with commas between them, each with arguments as Python has them,
 * `rotation_range=15, RandomZoom(0.2, fill_mode="constant")`.  Room: image. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "image/augment/augment.h"

/* The longest name or word, with its zero byte. */
enum { WORD_BYTES = 40 };

typedef struct reader {
    const char *at;
    leat_error *err;
} reader;

static void skip_blanks(reader *r) {
    while (*r->at == ' ' || *r->at == '\n' || *r->at == '\t') ++r->at;
}

/* Moves behind the character if it is next. */
static bool take(reader *r, char c) {
    skip_blanks(r);
    if (*r->at != c) return false;
    ++r->at;
    skip_blanks(r);
    return true;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

/* Reads a name; returns false, without moving, if there is none. */
static bool read_name(reader *r, char out[WORD_BYTES]) {
    size_t length = 0;
    skip_blanks(r);
    while (is_letter(r->at[length])) ++length;
    if (length == 0 || length >= WORD_BYTES || (*r->at >= '0' && *r->at <= '9')) return false;
    memcpy(out, r->at, length);
    out[length] = '\0';
    r->at += length;
    skip_blanks(r);
    return true;
}

/* ---- Values ---- */

/* Reads a number or a fraction of two numbers. */
static bool read_number(reader *r, leati_argument *out) {
    double value = 0, divisor = 1;
    const char *begin = r->at, *end = leati_read_decimal(begin, &value);
    if (end && *end == '/') end = leati_read_decimal(end + 1, &divisor);
    if (!end || divisor == 0 || out->count == LEATI_AUGMENT_MAX_NUMBERS) return false;
    for (const char *p = begin; p < end; ++p) out->is_integer = out->is_integer && strchr("-0123456789", *p);
    out->number[out->count++] = value / divisor;
    r->at = end;
    skip_blanks(r);
    return true;
}

static bool read_numbers(reader *r, leati_argument *out) {
    const char close = *r->at == '(' ? ')' : *r->at == '[' ? ']' : '\0';
    out->is_integer = true;
    if (!close) return read_number(r, out);
    out->is_list = true;
    ++r->at;
    skip_blanks(r);
    do {
        if (out->count > 0 && take(r, close)) return true; /* a comma behind the last number */
        if (!read_number(r, out)) return false;
    } while (take(r, ','));
    return take(r, close);
}

/* Finds a word in a text of words with blanks between them; returns its index or -1. */
static int find_word(const char *words, const char *word) {
    const size_t length = strlen(word);
    int index = 0;
    for (const char *p = words; *p; ++index) {
        const size_t next = strcspn(p, " ");
        if (next == length && memcmp(p, word, length) == 0) return index;
        p += next + (p[next] == ' ');
    }
    return -1;
}

/* Reads a word, with quotation marks or without. */
static bool read_word(reader *r, char out[WORD_BYTES]) {
    const char quote = *r->at == '"' || *r->at == '\'' ? *r->at++ : '\0';
    return read_name(r, out) && (!quote || take(r, quote));
}

static leat_status fail_value(reader *r, const char *step, const leati_parameter *p, const char *at) {
    static const char *const kinds[] = {"a number", "a number or a list of numbers such as (0.8, 1.2)",
                                        "one of the words", "true or false"};
    return leati_fail(r->err, LEAT_EINVAL, "%s: %s expects %s%s%s, received '%.24s'", step, p->name,
                      kinds[p->kind], p->kind == LEATI_ARGUMENT_WORD ? " " : "",
                      p->kind == LEATI_ARGUMENT_WORD ? p->words : "", at);
}

static leat_status check_limits(reader *r, const char *step, const leati_parameter *p,
                                const leati_argument *value) {
    if (p->least == 0 && p->most == 0) return LEAT_OK;
    for (int i = 0; i < value->count; ++i)
        if (!(value->number[i] >= p->least && value->number[i] <= p->most))
            return leati_fail(r->err, LEAT_EINVAL, "%s: %s expects numbers from %g to %g, received %g", step,
                              p->name, p->least, p->most, value->number[i]);
    return LEAT_OK;
}

static leat_status read_value(reader *r, const char *step, const leati_parameter *p, leati_argument *out) {
    const char *begin = r->at;
    char word[WORD_BYTES];
    bool valid = false;
    *out = (leati_argument){0};
    if (p->kind == LEATI_ARGUMENT_WORD) {
        valid = read_word(r, word) && (out->word = find_word(p->words, word)) >= 0;
        out->count = 1;
    } else if (p->kind == LEATI_ARGUMENT_BOOL) {
        const int index = read_word(r, word) ? find_word("false true False True", word) : -1;
        out->number[0] = index % 2;
        out->count = 1;
        valid = index >= 0;
    } else if (p->words && read_word(r, word)) {
        valid = find_word(p->words, word) >= 0;
    } else {
        valid = read_numbers(r, out) && (p->kind == LEATI_ARGUMENT_LIST || !out->is_list);
    }
    return valid ? check_limits(r, step, p, out) : fail_value(r, step, p, begin);
}

/* ---- Arguments ---- */

static int find_parameter(const leati_step_type *type, const char *name) {
    for (int i = 0; i < LEATI_AUGMENT_MAX_ARGUMENTS && type->parameters[i].name; ++i)
        if (strcmp(type->parameters[i].name, name) == 0) return i;
    return -1;
}

/* If a name and `=` are next, moves behind them and returns the name's parameter; returns `position` otherwise. */
static leat_status choose_parameter(reader *r, const leati_step_type *type, int position, int *out) {
    const reader before = *r;
    char name[WORD_BYTES];
    *out = position;
    if (read_name(r, name) && take(r, '=')) {
        *out = find_parameter(type, name);
        if (*out < 0) return leati_fail(r->err, LEAT_EINVAL, "%s has no argument '%s'", type->name, name);
        return LEAT_OK;
    }
    *r = before;
    if (position < LEATI_AUGMENT_MAX_ARGUMENTS && type->parameters[position].name) return LEAT_OK;
    return leati_fail(r->err, LEAT_EINVAL, "%s expects at most %d arguments, received more", type->name,
                      position);
}

static leat_status read_argument(reader *r, leati_step *step, int position) {
    int index = 0;
    LEATI_TRY(choose_parameter(r, step->type, position, &index));
    if (step->arguments[index].count > 0)
        return leati_fail(r->err, LEAT_EINVAL, "%s: %s is given twice", step->type->name,
                          step->type->parameters[index].name);
    return read_value(r, step->type->name, &step->type->parameters[index], &step->arguments[index]);
}

/* Returns true at the parenthesis of zoom(0.8,1.2): the only parameter is a list, which then needs no brackets of its
 * own. */
static bool is_bare_list(const reader *r, const leati_step_type *type) {
    const leati_parameter *p = type->parameters;
    const char *at = r->at + 1 + strspn(r->at + 1, " \n\t");
    return p->name && p->kind == LEATI_ARGUMENT_LIST && !p[1].name && strchr("-.0123456789", *at) && *at;
}

static leat_status read_arguments(reader *r, leati_step *step) {
    int position = 0;
    if (take(r, '=')) return read_argument(r, step, 0);
    if (*r->at != '(') return LEAT_OK;
    if (is_bare_list(r, step->type)) {
        LEATI_TRY(read_argument(r, step, 0));
        step->arguments[0].is_list = step->arguments[0].count > 1;
        return LEAT_OK;
    }
    ++r->at;
    skip_blanks(r);
    if (take(r, ')')) return LEAT_OK;
    do LEATI_TRY(read_argument(r, step, position++));
    while (take(r, ','));
    if (take(r, ')')) return LEAT_OK;
    return leati_fail(r->err, LEAT_EINVAL, "%s: expected , or ) before '%.24s'", step->type->name, r->at);
}

static leat_status fill_defaults(reader *r, leati_step *step) {
    for (int i = 0; i < LEATI_AUGMENT_MAX_ARGUMENTS && step->type->parameters[i].name; ++i) {
        const leati_parameter *p = &step->type->parameters[i];
        if (step->arguments[i].count > 0 || !p->fallback) continue;
        if (*p->fallback == '\0')
            return leati_fail(r->err, LEAT_EINVAL, "%s needs the argument %s", step->type->name, p->name);
        reader fallback = {p->fallback, r->err};
        LEATI_TRY(read_value(&fallback, step->type->name, p, &step->arguments[i]));
    }
    return LEAT_OK;
}

/* ---- Steps ---- */

static const leati_step_type *const tables[] = {leati_generator_steps, leati_geometry_steps,
                                                leati_color_steps, leati_warp_steps, leati_policy_steps};
enum { TABLE_COUNT = sizeof tables / sizeof *tables, MOST_TYPES = 96 };

static leat_status find_type(const leati_step_type **out, const char *name, leat_error *err) {
    const char *names[MOST_TYPES];
    size_t count = 0;
    for (int i = 0; i < TABLE_COUNT; ++i)
        for (const leati_step_type *type = tables[i]; type->name; ++type) {
            if (strcmp(type->name, name) == 0) {
                *out = type;
                return LEAT_OK;
            }
            if (count < MOST_TYPES) names[count++] = type->name;
        }
    if (strcmp(name, "MixUp") == 0 || strcmp(name, "CutMix") == 0)
        return leati_fail(err, LEAT_EINVAL,
                          "%s changes batches, not single pictures: it is an option of images, "
                          "mix=mixup(0.2) or mix=cutmix(1)",
                          name);
    const char *near = leati_nearest(name, names, count);
    return leati_fail(
        err, LEAT_EINVAL,
        "no step '%s'%s%s%s; docs/pictures.md lists the steps, such as flip, rotate(15), zoom(0.1)", name,
        near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static leat_status read_step(reader *r, leat_augment *augment) {
    char name[WORD_BYTES];
    if (!read_name(r, name))
        return leati_fail(r->err, LEAT_EINVAL, "expected the name of a step, such as flip, before '%.24s'",
                          r->at);
    if (augment->step_count == LEATI_AUGMENT_MAX_STEPS)
        return leati_fail(r->err, LEAT_EINVAL, "expected at most %d steps, received more",
                          LEATI_AUGMENT_MAX_STEPS);
    leati_step *step = &augment->steps[augment->step_count++];
    *step = (leati_step){0};
    LEATI_TRY(find_type(&step->type, name, r->err));
    LEATI_TRY(read_arguments(r, step));
    return fill_defaults(r, step);
}

leat_status leati_augment_parse(leat_augment *augment, const char *text, leat_error *err) {
    reader r = {text, err};
    do LEATI_TRY(read_step(&r, augment));
    while (take(&r, ','));
    if (*r.at == '\0') return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "expected a comma and a step before '%.24s'", r.at);
}
