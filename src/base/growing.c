/* SPDX-License-Identifier: Apache-2.0 */
/* Structs that grow from version to version.  Room: base. */
#include "base/growing.h"

#include <string.h>

#include "base/error.h"
#include "leat/version.h"

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static bool is_zero(const unsigned char *bytes, size_t count) {
    while (count > 0 && *bytes == 0) ++bytes, --count;
    return count == 0;
}

static size_t size_of(const void *caller) {
    size_t size;
    memcpy(&size, caller, sizeof size);
    return size;
}

static bool is_possible(size_t known, size_t size) {
    return size >= sizeof size && size <= known + LEATI_GROWING_MARGIN;
}

void leati_growing_init(const leati_growing *type, void *out, size_t size) {
    if (!out || !is_possible(type->size, size)) return;
    memset(out, 0, size);
    if (type->defaults) memcpy(out, type->defaults, smaller(size, type->size));
    memcpy(out, &size, sizeof size);
}

leat_status leati_growing_fits(const leati_growing *type, size_t size, leat_error *err) {
    if (size >= type->least && size <= type->size + LEATI_GROWING_MARGIN) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "%s: its size is %zu, expected %zu: start from %s_init()", type->name,
                      size, type->size, type->name);
}

leat_status leati_growing_check(const leati_growing *type, const void *in, leat_error *err) {
    const size_t size = size_of(in);
    LEATI_TRY(leati_growing_fits(type, size, err));
    if (size <= type->size || is_zero((const unsigned char *)in + type->size, size - type->size))
        return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL,
                      "%s: the program was compiled against a newer leat and uses a member that leat %s does "
                      "not have: expected %zu bytes, received %zu",
                      type->name, LEAT_VERSION_STRING, type->size, size);
}

leat_status leati_growing_read(const leati_growing *type, const void *in, void *out, leat_error *err) {
    leati_growing_init(type, out, type->size);
    if (!in) return LEAT_OK;
    LEATI_TRY(leati_growing_check(type, in, err));
    memcpy(out, in, smaller(size_of(in), type->size));
    memcpy(out, &type->size, sizeof type->size);
    return LEAT_OK;
}

void leati_growing_write(const leati_growing *type, const void *in, void *out, size_t size) {
    if (!out || leati_growing_fits(type, size, NULL) != LEAT_OK) return;
    leati_growing_report(in, type->size, out, size);
    memcpy(out, &size, sizeof size);
}

void leati_growing_report(const void *in, size_t bytes, void *out, size_t size) {
    if (!out || size > bytes + LEATI_GROWING_MARGIN) return;
    memset(out, 0, size);
    if (in) memcpy(out, in, smaller(size, bytes));
}

void leati_growing_clear(const leati_growing *type, void *out) {
    const size_t size = size_of(out);
    if (is_possible(type->size, size)) memset(out, 0, size);
}
