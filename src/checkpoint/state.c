/* SPDX-License-Identifier: Apache-2.0 */
/* Puts values into the state of a part of a fit, and gets them.  Room: checkpoint. */
#include "checkpoint/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

enum { name_bytes = 256 };

static bool full_name(const leat_state *state, const char *name, char out[name_bytes]) {
    int length = snprintf(out, name_bytes, "%s%s", state->prefix, name);
    return *name && !strchr(name, '/') && length > 0 && length < name_bytes;
}

leat_status leat_state_put(leat_state *state, const char *name, const void *data, size_t bytes,
                           leat_error *err) {
    char full[name_bytes];
    LEATI_GIVEN(state, err);
    LEATI_GIVEN(name, err);
    if (bytes > 0) LEATI_GIVEN(data, err);
    if (!full_name(state, name, full))
        return leati_fail(err, LEAT_EINVAL,
                          "a value's name: expected 1 to 200 bytes without '/', received '%.100s'", name);
    if (!state->snapshot)
        return leati_fail(err, LEAT_EINVAL, "leat_state_put was called in load_state: expected save_state");
    return leati_snapshot_add(state->snapshot, full, data, bytes, err);
}

const void *leat_state_find(const leat_state *state, const char *name, size_t *bytes) {
    char full[name_bytes];
    size_t found = 0;
    if (bytes) *bytes = 0;
    if (!state || !name || !bytes || !state->image || !full_name(state, name, full)) return NULL;
    const void *data = leati_image_find(state->image, full, &found);
    *bytes = found;
    return data;
}

leat_status leat_state_get(const leat_state *state, const char *name, void *data, size_t bytes,
                           leat_error *err) {
    size_t found = 0;
    LEATI_GIVEN(state, err);
    LEATI_GIVEN(name, err);
    if (bytes > 0) LEATI_GIVEN(data, err);
    const void *value = leat_state_find(state, name, &found);
    if (!value)
        return leati_fail(err, LEAT_ENOTFOUND, "the checkpoint has no value '%s%s'", state->prefix, name);
    if (found != bytes)
        return leati_fail(err, LEAT_EFORMAT, "the value '%s%s' of the checkpoint has %zu bytes, expected %zu",
                          state->prefix, name, found, bytes);
    if (bytes > 0) memcpy(data, value, bytes);
    return LEAT_OK;
}

leat_status leati_state_put_i64(leat_state *state, const char *name, int64_t value, leat_error *err) {
    return leat_state_put(state, name, &value, sizeof value, err);
}

leat_status leati_state_get_i64(const leat_state *state, const char *name, int64_t *value, leat_error *err) {
    return leat_state_get(state, name, value, sizeof *value, err);
}

leat_status leati_state_put_text(leat_state *state, const char *name, const char *text, leat_error *err) {
    return leat_state_put(state, name, text, strlen(text) + 1, err);
}

const char *leati_state_find_text(const leat_state *state, const char *name) {
    size_t bytes = 0;
    const char *text = leat_state_find(state, name, &bytes);
    return text && bytes > 0 && text[bytes - 1] == '\0' ? text : NULL;
}

/* ---- Files that a callback appends to ---- */

leat_status leat_state_put_file(leat_state *state, const char *name, const char *path, leat_error *err) {
    struct stat info = {0};
    LEATI_GIVEN(state, err);
    LEATI_GIVEN(name, err);
    LEATI_GIVEN(path, err);
    if (stat(path, &info) != 0 && errno != ENOENT)
        return leati_fail_errno(err, LEAT_EIO, errno, "cannot read the size of '%s'", path);
    bool is_file = S_ISREG(info.st_mode);
    LEATI_TRY(leati_state_put_i64(state, name, is_file ? (int64_t)info.st_size : 0, err));
    return is_file ? leati_snapshot_add_file(state->snapshot, path, err) : LEAT_OK;
}

leat_status leat_state_restore_file(const leat_state *state, const char *name, const char *path,
                                    leat_error *err) {
    int64_t bytes = 0;
    struct stat info = {0};
    LEATI_GIVEN(path, err);
    LEATI_TRY(leati_state_get_i64(state, name, &bytes, err));
    bool exists = stat(path, &info) == 0;
    if (!exists && errno == ENOENT && bytes == 0) return LEAT_OK;
    if (!exists)
        return leati_fail_errno(err, errno == ENOENT ? LEAT_ENOTFOUND : LEAT_EIO, errno,
                                "cannot shorten '%s' to the %lld bytes that it had at the checkpoint", path,
                                (long long)bytes);
    if (!S_ISREG(info.st_mode) || info.st_size == bytes) return LEAT_OK;
    if (info.st_size < bytes)
        return leati_fail(err, LEAT_EIO, "'%s' has %lld bytes, fewer than the %lld at the checkpoint", path,
                          (long long)info.st_size, (long long)bytes);
    if (truncate(path, bytes) == 0) return LEAT_OK;
    return leati_fail_errno(err, LEAT_EIO, errno, "cannot shorten '%s'", path);
}
