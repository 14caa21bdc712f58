/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the names of layers and models, and cuts names that are too long.  Room: nn. */
#include "nn/config/name.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "base/text.h"
#include "leat/sequence.h"

/* True if a part between slashes is empty or ".". */
static bool has_ignored_part(const char *name) {
    for (const char *part = name;; ++part) {
        size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && part[0] == '.')) return true;
        part += length;
        if (!*part) return false;
    }
}

static leat_status check_utf8(const char *name, leat_error *err) {
    json_t *text = json_string(name);
    if (!text) return leati_fail(err, LEAT_EINVAL, "name: expected UTF-8, received '%s'", name);
    json_decref(text);
    return LEAT_OK;
}

leat_status leati_name_check(const char *name, leat_error *err) {
    if (!name || !name[0])
        return leati_fail(err, LEAT_EINVAL, "name: expected a text of 1 to %d bytes, received %s",
                          LEAT_NAME_BYTES - 1, name ? "''" : "none");
    if (strlen(name) >= LEAT_NAME_BYTES)
        return leati_fail(err, LEAT_EINVAL, "name: expected at most %d bytes, received '%.40s...' (%zu)",
                          LEAT_NAME_BYTES - 1, name, strlen(name));
    if (leati_has_control(name)) return leati_fail(err, LEAT_EINVAL, "name: control character in '%s'", name);
    if (has_ignored_part(name))
        return leati_fail(
            err, LEAT_EINVAL,
            "name: '%s' cannot be a path in an HDF5 file: expected a name that does not begin or "
            "end with '/' and has neither '//' nor a part '.'",
            name);
    return check_utf8(name, err);
}

void leati_name_append(char *out, const char *base, const char *suffix) {
    size_t most = LEAT_NAME_BYTES - 1 - strlen(suffix), length = strlen(base);
    if (length > most)
        for (length = most; length > 0 && ((unsigned char)base[length] & 0xC0) == 0x80;) --length;
    snprintf(out, LEAT_NAME_BYTES, "%.*s%s", (int)length, base, suffix);
}
