/* SPDX-License-Identifier: Apache-2.0 */
/* Room: train. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "train/history/history.h"

leat_status leati_history_save(const leat_history *h, leat_state *state, leat_error *err) {
    char name[40];
    LEATI_TRY(leat_state_put(state, "count", &h->count, sizeof h->count, err));
    for (int i = -1; i < h->count; ++i) {
        const leati_series *s = i < 0 ? &h->epochs : &h->items[i];
        snprintf(name, sizeof name, "n.%d", i);
        LEATI_TRY(leat_state_put(state, name, s->name, sizeof s->name, err));
        snprintf(name, sizeof name, "v.%d", i);
        LEATI_TRY(leat_state_put(state, name, s->values, (size_t)s->count * sizeof(double), err));
    }
    return LEAT_OK;
}
leat_status leati_history_load(leat_history *h, const leat_state *state, leat_error *err) {
    char name[40];
    LEATI_TRY(leat_state_get(state, "count", &h->count, sizeof h->count, err));
    for (int i = -1; i < h->count; ++i) {
        leati_series *s = i < 0 ? &h->epochs : &h->items[i];
        size_t bytes = 0;
        snprintf(name, sizeof name, "n.%d", i);
        LEATI_TRY(leat_state_get(state, name, s->name, sizeof s->name, err));
        snprintf(name, sizeof name, "v.%d", i);
        const void *v = leat_state_find(state, name, &bytes);
        s->values = bytes ? leati_memdup(v, bytes) : NULL;
        s->count = s->capacity = (int)(bytes / 8);
    }
    return LEAT_OK;
}
leat_status leati_history_add_validation(leat_history *h, int64_t epoch, int64_t step, const leat_logs *logs,
                                         leat_error *err) {
    (void)h, (void)epoch, (void)step, (void)logs, (void)err;
    return LEAT_OK;
}
