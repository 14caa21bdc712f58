/* SPDX-License-Identifier: Apache-2.0 */
/* ModelCheckpoint: writes the model after epochs, to a path that is made from the epoch and the logs.
 * Room: train. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"
#include "base/text.h"
#include "train/callbacks/monitor.h"
#include "train/hooks/callback.h"
#include "train/hooks/training.h"

typedef struct checkpoint {
    leat_model_checkpoint_options options;
    char *filepath;
    leati_monitor monitor;
    int64_t since; /* epochs since the last file */
} checkpoint;

static const leat_model_checkpoint_options defaults = {.monitor = "val_loss", .period = 1};
static const leati_growing options_type = LEATI_GROWING(leat_model_checkpoint_options, filepath, &defaults);

void leat_model_checkpoint_options_init(leat_model_checkpoint_options *options, size_t size) {
    leati_growing_init(&options_type, options, size);
}

/* Returns true if a field's format, such as "02d" or ".2f", is safe for printf.  Conversions other than d, f, e and g
 * are not safe, since they would read an argument of another type. */
static bool format_is_safe(const char *format, size_t length) {
    if (length == 0) return true;
    if (length > 6 || !strchr("dfeg", format[length - 1])) return false;
    return strspn(format, "0123456789.") >= length - 1;
}

static leat_status add_number(leati_text *path, const char *format, size_t length, double value,
                              bool is_integer, leat_error *err) {
    if (!format_is_safe(format, length))
        return leati_fail(err, LEAT_EINVAL, "filepath: expected a format like 02d or .4f, received '%.*s'",
                          (int)length, format);
    char conversion[24], number[512], type = length ? format[length - 1] : is_integer ? 'd' : 'g';
    size_t flags = length ? length - 1 : 0;
    if (type == 'd' && !is_integer)
        return leati_fail(err, LEAT_EINVAL, "filepath: format '%.*s' is for integers; use a format like .4f",
                          (int)length, format);
    snprintf(conversion, sizeof conversion, "%%%.*s%s", (int)flags, format,
             type == 'd' ? PRId64 : (const char[2]){type});
    int used = type == 'd' ? snprintf(number, sizeof number, conversion, (int64_t)value)
                           : snprintf(number, sizeof number, conversion, value);
    if (used < 0 || used >= (int)sizeof number)
        return leati_fail(err, LEAT_EINVAL,
                          "filepath: format '%.*s' makes a number that is too long for a file name",
                          (int)length, format);
    leati_decimal_point(number);
    leati_text_add(path, "%s", number);
    return LEAT_OK;
}

static leat_status add_field(leati_text *path, const char *field, size_t length, int64_t epoch,
                             const leat_logs *logs, leat_error *err) {
    const char *colon = memchr(field, ':', length);
    size_t name_length = colon ? (size_t)(colon - field) : length;
    const char *format = colon ? colon + 1 : "";
    size_t format_length = colon ? length - name_length - 1 : 0;
    char name[LEAT_LOG_NAME_BYTES];
    snprintf(name, sizeof name, "%.*s", (int)name_length, field);
    double value = 0;
    if (strcmp(name, "epoch") == 0)
        return add_number(path, format, format_length, (double)(epoch + 1), true, err);
    if (!leat_logs_get(logs, name, &value))
        return leati_fail(err, LEAT_ENOTFOUND,
                          "filepath: expected epoch or the name of a log in braces, received '{%s}'", name);
    return add_number(path, format, format_length, value, false, err);
}

/* Checks that every brace of the path is part of a field or is doubled. */
static leat_status check_braces(const char *path, leat_error *err) {
    for (const char *at = path; *at; ++at) {
        if (*at != '{' && *at != '}') continue;
        const char *end = at[1] == *at ? at + 1 : *at == '{' ? strpbrk(at + 1, "{}") : NULL;
        if (!end || (end > at + 1 && *end == '{'))
            return leati_fail(err, LEAT_EINVAL,
                              "filepath '%s': '%c' at position %d is not part of a field like {epoch}: write "
                              "'%c%c' for a brace",
                              path, *at, (int)(at - path), *at, *at);
        at = end;
    }
    return LEAT_OK;
}

/* Formats the path like Python's str.format, with the fields that Keras provides: epoch and the logs.  {{ and }} are
 * braces. */
static leat_status make_path(const checkpoint *self, int64_t epoch, const leat_logs *logs, leati_text *path,
                             leat_error *err) {
    for (const char *at = self->filepath; *at;) {
        bool brace = *at == '{' || *at == '}';
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        if (brace && at[1] == *at) {
            leati_text_add(path, "%c", *at);
            at += 2;
        } else if (end) {
            LEATI_TRY(add_field(path, at + 1, (size_t)(end - at - 1), epoch, logs, err));
            at = end + 1;
        } else
            leati_text_add(path, "%c", *at++);
    }
    return path->failed ? leati_fail_memory(err, strlen(self->filepath), "a file's name") : LEAT_OK;
}

static leat_status save(checkpoint *self, leat_training *training, int64_t epoch, const leat_logs *logs,
                        leat_error *err) {
    leati_text path = {0};
    leat_status status = make_path(self, epoch, logs, &path, err);
    const leat_model *model = leat_training_model(training);
    if (status == LEAT_OK)
        status = self->options.save_weights_only ? leat_model_save_weights(model, path.data, err)
                                                 : leat_model_save(model, path.data, true, err);
    if (status == LEAT_OK && self->options.verbose)
        leat_training_write(training, "Epoch %05" PRId64 ": saving model to %s", epoch + 1, path.data);
    leati_text_fini(&path);
    return leati_prefix(status, err, "ModelCheckpoint");
}

static leat_status save_if_better(checkpoint *self, leat_training *training, int64_t epoch,
                                  const leat_logs *logs, leat_error *err) {
    double value = 0;
    if (!leati_monitor_get(&self->monitor, training, "ModelCheckpoint", logs, &value)) return LEAT_OK;
    if (!leati_monitor_better(&self->monitor, value)) {
        if (self->options.verbose)
            leat_training_write(training, "Epoch %05" PRId64 ": %s did not improve from %0.5f", epoch + 1,
                                self->monitor.name, self->monitor.best);
        return LEAT_OK;
    }
    if (self->options.verbose)
        leat_training_write(training, "Epoch %05" PRId64 ": %s improved from %0.5f to %0.5f", epoch + 1,
                            self->monitor.name, self->monitor.best, value);
    self->monitor.best = value;
    training->improved = true;
    return save(self, training, epoch, logs, err);
}

static leat_status epoch_end(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                             leat_error *err) {
    checkpoint *self = user;
    if (++self->since < self->options.period) return LEAT_OK;
    self->since = 0;
    return self->options.save_best_only ? save_if_better(self, training, epoch, logs, err)
                                        : save(self, training, epoch, logs, err);
}

static leat_status save_state(void *user, leat_training *training, leat_state *state, leat_error *err) {
    (void)training;
    const checkpoint *self = user;
    LEATI_TRY(leati_monitor_save(&self->monitor, state, err));
    return leati_state_put_i64(state, "epochs_since_last_save", self->since, err);
}

static leat_status load_state(void *user, leat_training *training, leat_state *state, leat_error *err) {
    (void)training;
    checkpoint *self = user;
    LEATI_TRY(leati_monitor_load(&self->monitor, state, err));
    return leati_state_get_i64(state, "epochs_since_last_save", &self->since, err);
}

static void destroy(void *user) {
    checkpoint *self = user;
    leati_free(self->filepath);
    leati_free(self);
}

leat_status leat_model_checkpoint_create(leat_callback *out, size_t size,
                                         const leat_model_checkpoint_options *options, leat_error *err) {
    LEATI_GIVEN(out, err);
    LEATI_TRY(leati_callback_begin(out, size, err));
    LEATI_GIVEN(options, err);
    leat_model_checkpoint_options all;
    LEATI_TRY(leati_growing_read(&options_type, options, &all, err));
    if (!all.filepath || !all.filepath[0])
        return leati_fail(err, LEAT_EINVAL, "ModelCheckpoint: filepath is required");
    LEATI_TRY(leati_prefix(check_braces(all.filepath, err), err, "ModelCheckpoint"));
    checkpoint *self = leati_calloc(1, sizeof *self);
    if (!self) return leati_fail_memory(err, sizeof *self, "ModelCheckpoint");
    self->options = all;
    self->filepath = leati_strdup(all.filepath);
    leat_status status = self->filepath ? leati_monitor_init(&self->monitor, all.monitor, all.mode, 0, err)
                                        : leati_fail_memory(err, strlen(all.filepath), "a file's name");
    if (status != LEAT_OK) {
        destroy(self);
        return leati_prefix(status, err, "ModelCheckpoint");
    }
    const leat_callback made = {.user = self,
                                .destroy = destroy,
                                .save_state = save_state,
                                .load_state = load_state,
                                .on_epoch_end = epoch_end};
    leati_callback_write(&made, out, size);
    return LEAT_OK;
}
