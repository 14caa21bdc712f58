/* SPDX-License-Identifier: Apache-2.0 */
/* Converts leat_callback structs between the caller's version and this version.  Room: train. */
#include "train/hooks/callback.h"

#include "base/error.h"
#include "base/growing.h"

static const leati_growing type = LEATI_GROWING(leat_callback, destroy, NULL);

void leat_callback_init(leat_callback *callback, size_t size) {
    leati_growing_init(&type, callback, size);
}

leat_status leati_callback_read(const leat_callback *in, leat_callback *out, leat_error *err) {
    return leati_growing_read(&type, in, out, err);
}

leat_status leati_callback_begin(leat_callback *out, size_t size, leat_error *err) {
    LEATI_TRY(leati_growing_fits(&type, size, err));
    leati_growing_report(NULL, sizeof *out, out, size);
    return LEAT_OK;
}

void leati_callback_write(const leat_callback *in, leat_callback *out, size_t size) {
    leati_growing_write(&type, in, out, size);
}

void leat_callback_destroy(leat_callback *callback) {
    if (!callback) return;
    if (callback->size >= type.least && callback->destroy) callback->destroy(callback->user);
    leati_growing_clear(&type, callback);
}
