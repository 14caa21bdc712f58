/* SPDX-License-Identifier: Apache-2.0 */
/* A state: the records of a checkpoint whose names begin with one prefix.  The parts of a fit save themselves to a
 * state and load themselves from it. */
#ifndef LEATI_CHECKPOINT_STATE_H
#define LEATI_CHECKPOINT_STATE_H

#include "checkpoint/image.h"
#include "leat/checkpoint.h"

struct leat_state {
    leati_snapshot *snapshot; /* to save to; NULL while a state is loaded */
    const leati_image *image; /* to load from */
    char prefix[32];          /* "callback.0/" */
};

/* Put and get numbers.  Errors: as leat_state_put and leat_state_get. */
leat_status leati_state_put_i64(leat_state *state, const char *name, int64_t value, leat_error *err);
leat_status leati_state_get_i64(const leat_state *state, const char *name, int64_t *value, leat_error *err);

/* Gets a text, which ends with a zero byte; NULL if there is none, or if the value is no text. */
const char *leati_state_find_text(const leat_state *state, const char *name);
leat_status leati_state_put_text(leat_state *state, const char *name, const char *text, leat_error *err);

#endif
