/* SPDX-License-Identifier: Apache-2.0 */
/* A callback of `leat fit` that writes the history while the fit runs.  Room: cli. */
#include "cli/commands/live_history.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run/files.h"
#include "cli/run/progress.h"
#include "leat/train.h"

/* The shortest times between two writes: at the end of an epoch, and within one.  Writing takes at most one part of
 * cost_parts of the time, but one slow write does not prevent the next for longer than most_ms. */
enum { epoch_ms = 500, step_ms = 5000, most_ms = 15000, cost_parts = 100 };

typedef struct live_history {
    char path[4096];
    int64_t written_ns; /* the time after the last write, or after the first hook */
    int64_t cost_ns;    /* the time that the last write took */
    bool warned;
} live_history;

static void write_now(live_history *self, leat_training *training) {
    leat_error err = {0};
    char *json = NULL;
    int64_t start = cli_now_ns();
    leat_status status = leat_history_json(leat_training_history(training), &json, &err);
    if (status == LEAT_OK) status = cli_replace_text(self->path, json, &err);
    leat_string_free(json);
    if (status != LEAT_OK && !self->warned) {
        leat_training_write(training, "the run cannot be followed: %s", err.message);
        self->warned = true;
    }
    self->written_ns = cli_now_ns();
    self->cost_ns = self->written_ns - start;
}

static void write_if_due(live_history *self, leat_training *training, int64_t least_ms, int64_t now) {
    int64_t wait_ns = self->cost_ns * cost_parts;
    if (wait_ns > most_ms * INT64_C(1000000)) wait_ns = most_ms * INT64_C(1000000);
    if (wait_ns < least_ms * 1000000) wait_ns = least_ms * 1000000;
    if (now - self->written_ns >= wait_ns) write_now(self, training);
}

/* A resumed fit loads its history after this hook, and must not replace it by an empty one. */
static leat_status begin(void *user, leat_training *training, int64_t index, leat_logs *logs,
                         leat_error *err) {
    live_history *self = user;
    (void)index, (void)logs, (void)err;
    self->written_ns = cli_now_ns();
    if (!leat_training_params_get(training)->resumed) write_now(self, training);
    return LEAT_OK;
}

/* When an epoch begins, the history has got the epoch before it. */
static leat_status begin_epoch(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                               leat_error *err) {
    (void)epoch, (void)logs, (void)err;
    write_if_due(user, training, epoch_ms, cli_now_ns());
    return LEAT_OK;
}

static leat_status end_batch(void *user, leat_training *training, int64_t step, leat_logs *logs,
                             leat_error *err) {
    (void)step, (void)logs, (void)err;
    write_if_due(user, training, step_ms, cli_coarse_ns());
    return LEAT_OK;
}

leat_status cli_live_history_create(leat_callback *out, const char *folder, leat_error *err) {
    live_history *self = calloc(1, sizeof *self);
    if (!self) return leat_error_set(err, LEAT_ENOMEM, "no memory for the history of the run");
    if (snprintf(self->path, sizeof self->path, "%s/history.json", folder) >= (int)sizeof self->path) {
        free(self);
        return leat_error_set(err, LEAT_EINVAL, "the folder '%.100s...' is too long for a path", folder);
    }
    leat_callback_init(out, sizeof *out);
    out->user = self;
    out->destroy = free;
    out->on_train_begin = begin;
    out->on_epoch_begin = begin_epoch;
    out->on_train_batch_end = end_batch;
    out->on_test_batch_end = end_batch;
    return LEAT_OK;
}
