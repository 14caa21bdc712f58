/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes .npy headers.  Room: data. */
#include "data/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum { preamble_bytes = 10, key_bytes = 16, descr_bytes = 16 };

/* The part of the header's text that is still to be read. */
typedef struct reader {
    const char *next, *end;
    const char *label;
} reader;

static leat_status damaged(const reader *in, const char *expected, leat_error *err) {
    int shown = in->end - in->next < 24 ? (int)(in->end - in->next) : 24;
    return leati_fail(err, LEAT_EFORMAT, "'%s': damaged .npy header: expected %s before '%.*s'", in->label,
                      expected, shown, in->next);
}

static void skip_space(reader *in) {
    while (in->next < in->end && (*in->next == ' ' || *in->next == '\n' || *in->next == '\t')) ++in->next;
}

static bool accept(reader *in, const char *word) {
    skip_space(in);
    size_t length = strlen(word);
    if ((size_t)(in->end - in->next) < length || memcmp(in->next, word, length) != 0) return false;
    in->next += length;
    return true;
}

/* Reads a Python string without escapes that is shorter than `bytes`. */
static leat_status read_string(reader *in, char *out, size_t bytes, leat_error *err) {
    skip_space(in);
    if (in->next == in->end || (*in->next != '\'' && *in->next != '"')) return damaged(in, "a string", err);
    char quote = *in->next++;
    size_t length = 0;
    while (in->next < in->end && *in->next != quote && length + 1 < bytes) out[length++] = *in->next++;
    out[length] = '\0';
    if (in->next == in->end || *in->next != quote) return damaged(in, "the end of a short string", err);
    ++in->next;
    return LEAT_OK;
}

/* Reads an integer that is not negative; Python 2 wrote 5 as 5L. */
static leat_status read_number(reader *in, int64_t *out, leat_error *err) {
    skip_space(in);
    if (in->next == in->end || *in->next < '0' || *in->next > '9') return damaged(in, "a dimension", err);
    *out = 0;
    for (; in->next < in->end && *in->next >= '0' && *in->next <= '9'; ++in->next)
        if (!leati_mul_i64(*out, 10, out) || *out > INT64_MAX - 9)
            return damaged(in, "a smaller dimension", err);
        else
            *out += *in->next - '0';
    (void)accept(in, "L");
    return LEAT_OK;
}

static leat_status read_shape(reader *in, leati_array *array, leat_error *err) {
    if (!accept(in, "(")) return damaged(in, "a tuple", err);
    array->rank = 0;
    while (!accept(in, ")")) {
        if (array->rank == LEAT_MAX_RANK)
            return leati_fail(err, LEAT_ENOTSUP, "'%s': the array has more than %d dimensions", in->label,
                              LEAT_MAX_RANK);
        LEATI_TRY(read_number(in, &array->shape[array->rank++], err));
        if (accept(in, ",")) continue;
        if (!accept(in, ")")) return damaged(in, "',' or ')'", err);
        break;
    }
    return LEAT_OK;
}

static leat_status read_type(reader *in, leati_array *array, leat_error *err) {
    char text[descr_bytes];
    skip_space(in);
    if (in->next < in->end && *in->next == '[')
        return leati_fail(err, LEAT_ENOTSUP,
                          "'%s': structured arrays are not supported; save each field as a separate array",
                          in->label);
    LEATI_TRY(read_string(in, text, sizeof text, err));
    const char *code = text + (text[0] != '\0' && strchr("<>|=", text[0]) != NULL);
    array->swapped = text[0] == (leati_little_endian() ? '>' : '<');
    if (leati_dtype_of_code(&array->dtype, code)) return LEAT_OK;
    if (strcmp(code, "O") == 0)
        return leati_fail(err, LEAT_ENOTSUP,
                          "'%s' has Python objects, which are pickled: leat reads numbers; in Python, "
                          "leat.save_ragged writes lists of numbers in a form that it reads",
                          in->label);
    return leati_fail(
        err, LEAT_ENOTSUP,
        "'%s': expected elements of type float16/32/64, bool, int8/16/32/64 or uint8/16/32/64, found '%s'",
        in->label, text);
}

static leat_status read_order(reader *in, leati_array *array, leat_error *err) {
    array->fortran = accept(in, "True");
    if (!array->fortran && !accept(in, "False")) return damaged(in, "True or False", err);
    return LEAT_OK;
}

/* Reads {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }: the three keys in any order, each once. */
static leat_status read_dict(reader *in, leati_array *array, leat_error *err) {
    static const struct {
        const char *key;
        leat_status (*read)(reader *in, leati_array *array, leat_error *err);
    } keys[] = {{"descr", read_type}, {"fortran_order", read_order}, {"shape", read_shape}};
    enum { key_count = sizeof keys / sizeof *keys };
    unsigned seen = 0;
    if (!accept(in, "{")) return damaged(in, "'{'", err);
    while (!accept(in, "}")) {
        char key[key_bytes];
        size_t k = 0;
        LEATI_TRY(read_string(in, key, sizeof key, err));
        while (k < key_count && strcmp(keys[k].key, key) != 0) ++k;
        if (k == key_count || seen >> k & 1)
            return damaged(in, "descr, fortran_order and shape, each once,", err);
        seen |= 1u << k;
        if (!accept(in, ":")) return damaged(in, "':'", err);
        LEATI_TRY(keys[k].read(in, array, err));
        if (accept(in, ",")) continue;
        if (!accept(in, "}")) return damaged(in, "',' or '}'", err);
        break;
    }
    skip_space(in);
    if (seen != (1u << key_count) - 1) return damaged(in, "descr, fortran_order and shape", err);
    return in->next == in->end ? LEAT_OK : damaged(in, "the end of the header", err);
}

/* Checks that the shape agrees with the number of bytes after the header. */
static leat_status check_size(leati_array *array, size_t available, const char *label, leat_error *err) {
    int64_t count = 1;
    int wide = 0; /* number of dimensions above 1: with fewer than two, C and Fortran order are equal */
    size_t bytes = 0;
    bool fits = true, empty = false;
    for (int i = 0; i < array->rank; ++i) {
        empty = empty || array->shape[i] == 0;
        wide += array->shape[i] > 1;
        fits = fits && leati_mul_i64(count, array->shape[i] ? array->shape[i] : 1, &count);
    }
    if (empty) count = 0;
    fits = fits && leati_mul_size((size_t)count, leat_dtype_bytes(array->dtype), &bytes);
    if (!fits || bytes > available)
        return leati_fail(
            err, LEAT_EFORMAT,
            "'%s': the file is truncated: the header promises more than the %zu bytes that follow", label,
            available);
    if (bytes < available)
        return leati_fail(err, LEAT_EFORMAT, "'%s': the header promises %zu bytes, but %zu follow", label,
                          bytes, available);
    array->fortran = array->fortran && wide > 1;
    array->bytes = bytes;
    return LEAT_OK;
}

leat_status leati_npy_parse_start(leati_array *out, const void *data, size_t present, size_t size,
                                  const char *label, leat_error *err) {
    const unsigned char *p = data;
    *out = (leati_array){0};
    if (present < preamble_bytes || memcmp(p, "\x93NUMPY", 6) != 0)
        return leati_fail(err, LEAT_EFORMAT, "'%s' is not a .npy file: expected it to begin with \\x93NUMPY",
                          label);
    int version = p[6];
    if (version < 1 || version > 3)
        return leati_fail(err, LEAT_ENOTSUP, "'%s': .npy version %d.%d, expected 1 to 3", label, version,
                          p[7]);
    size_t start = version == 1 ? preamble_bytes : preamble_bytes + 2;
    if (present < start) return leati_fail(err, LEAT_EFORMAT, "'%s': cut off inside the .npy header", label);
    size_t length = p[8] | (size_t)p[9] << 8;
    if (version > 1) length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (length > present - start)
        return leati_fail(err, LEAT_EFORMAT, "'%s': cut off inside the .npy header", label);
    reader in = {.next = (const char *)p + start, .end = (const char *)p + start + length, .label = label};
    LEATI_TRY(read_dict(&in, out, err));
    out->data = p + start + length;
    return check_size(out, size - start - length, label, err);
}

leat_status leati_npy_parse(leati_array *out, const void *data, size_t size, const char *label,
                            leat_error *err) {
    return leati_npy_parse_start(out, data, size, size, label, err);
}

size_t leati_npy_header(char out[LEATI_NPY_HEADER_BYTES], const leat_tensor *tensor) {
    const char *code = leati_dtype_code(tensor->dtype);
    char order = leat_dtype_bytes(tensor->dtype) == 1 ? '|' : leati_little_endian() ? '<' : '>';
    size_t used = preamble_bytes, room = LEATI_NPY_HEADER_BYTES;
    used += (size_t)snprintf(out + used, room - used, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                             order, code);
    for (int i = 0; i < tensor->rank; ++i)
        used += (size_t)snprintf(out + used, room - used, "%s%" PRId64, i ? ", " : "", tensor->shape[i]);
    used += (size_t)snprintf(out + used, room - used, "%s), }", tensor->rank == 1 ? "," : "");
    size_t all = (used + 1 + 63) / 64 * 64;
    memset(out + used, ' ', all - used);
    out[all - 1] = '\n';
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)((all - preamble_bytes) & 0xff);
    out[9] = (char)((all - preamble_bytes) >> 8);
    return all;
}
