/* SPDX-License-Identifier: Apache-2.0 */
/* leat_callback_from_text: creates a built-in callback from a call in Python's notation or from JSON.  Room: train. */
#include <ctype.h>
#include <string.h>

#include "base/error.h"
#include "json/json.h"
#include "leat/callback.h"
#include "nn/config/call_text.h"
#include "nn/config/field.h"
#include "nn/config/object.h"
#include "nn/optimizers/schedules/schedule.h"
#include "train/callbacks/schedule.h"
#include "train/hooks/callback.h"

/* The arguments of all callbacks.  A callback uses those that its fields name. */
typedef struct arguments {
    json_t *monitor, *filepath, *filename, *separator, *log_dir; /* texts; NULL: the default */
    json_t *update_freq;                                         /* "epoch", "batch" or a number */
    int32_t mode;                                                /* a leat_monitor_mode */
    double min_delta, baseline, factor, min_lr;
    int64_t patience, cooldown, period, verbose, histogram_freq;
    bool restore_best_weights, save_best_only, save_weights_only, append, write_graph, write_steps_per_second;
} arguments;

static const char *const modes[] = {"auto", "min", "max", NULL};

#define ARGUMENT(name, field_kind, ...)                                                                      \
    { .key = #name, .kind = field_kind, .offset = offsetof(arguments, name), __VA_ARGS__ }
#define TEXT_ARGUMENT(name)       ARGUMENT(name, LEATI_FIELD_JSON, .preset = "null")
#define FLAG_ARGUMENT(name)       ARGUMENT(name, LEATI_FIELD_BOOL, .preset = "false")
#define NUMBER_ARGUMENT(name, is) ARGUMENT(name, LEATI_FIELD_FLOAT, .preset = is)
#define COUNT_ARGUMENT(name, is)  ARGUMENT(name, LEATI_FIELD_INT, .preset = is, .minimum = 0, .limited = true)
#define MODE_ARGUMENT             ARGUMENT(mode, LEATI_FIELD_CHOICE, .preset = "\"auto\"", .choices = modes)
#define ARGUMENTS_END                                                                                        \
    { .key = NULL }

/* Returns the text of an argument, `otherwise` if it was not given, and NULL with an error if it is not a text. */
static const char *text_of(const json_t *value, const char *key, const char *otherwise, leat_error *err) {
    if (!value) return otherwise;
    if (!json_is_string(value)) leati_fail(err, LEAT_EINVAL, "%s: expected a text", key);
    return json_string_value(value);
}

static const leati_field early_stopping_fields[] = {TEXT_ARGUMENT(monitor),
                                                    NUMBER_ARGUMENT(min_delta, "0.0"),
                                                    COUNT_ARGUMENT(patience, "0"),
                                                    COUNT_ARGUMENT(verbose, "0"),
                                                    MODE_ARGUMENT,
                                                    ARGUMENT(baseline, LEATI_FIELD_OPTIONAL_FLOAT,
                                                             .preset = "null"),
                                                    FLAG_ARGUMENT(restore_best_weights),
                                                    ARGUMENTS_END};

static leat_status make_early_stopping(leat_callback *out, size_t size, const arguments *a, leat_error *err) {
    leat_early_stopping_options options = leat_early_stopping_options_default();
    options.monitor = text_of(a->monitor, "monitor", options.monitor, err);
    options.min_delta = a->min_delta;
    options.patience = a->patience;
    options.mode = (leat_monitor_mode)a->mode;
    options.baseline = a->baseline;
    options.restore_best_weights = a->restore_best_weights;
    options.verbose = (int)a->verbose;
    return options.monitor ? leat_early_stopping_create(out, size, &options, err) : LEAT_EINVAL;
}

static const leati_field reduce_lr_fields[] = {TEXT_ARGUMENT(monitor),
                                               NUMBER_ARGUMENT(factor, "0.1"),
                                               COUNT_ARGUMENT(patience, "10"),
                                               COUNT_ARGUMENT(verbose, "0"),
                                               MODE_ARGUMENT,
                                               NUMBER_ARGUMENT(min_delta, "0.0001"),
                                               COUNT_ARGUMENT(cooldown, "0"),
                                               NUMBER_ARGUMENT(min_lr, "0.0"),
                                               ARGUMENTS_END};

static leat_status make_reduce_lr(leat_callback *out, size_t size, const arguments *a, leat_error *err) {
    leat_reduce_lr_options options = leat_reduce_lr_options_default();
    options.monitor = text_of(a->monitor, "monitor", options.monitor, err);
    options.factor = a->factor;
    options.patience = a->patience;
    options.mode = (leat_monitor_mode)a->mode;
    options.min_delta = a->min_delta;
    options.cooldown = a->cooldown;
    options.min_lr = a->min_lr;
    options.verbose = (int)a->verbose;
    return options.monitor ? leat_reduce_lr_on_plateau_create(out, size, &options, err) : LEAT_EINVAL;
}

static const leati_field model_checkpoint_fields[] = {TEXT_ARGUMENT(filepath),
                                                      TEXT_ARGUMENT(monitor),
                                                      COUNT_ARGUMENT(verbose, "0"),
                                                      FLAG_ARGUMENT(save_best_only),
                                                      FLAG_ARGUMENT(save_weights_only),
                                                      MODE_ARGUMENT,
                                                      ARGUMENT(period, LEATI_FIELD_INT, .preset = "1",
                                                               .minimum = 1, .limited = true),
                                                      ARGUMENTS_END};

static leat_status make_model_checkpoint(leat_callback *out, size_t size, const arguments *a,
                                         leat_error *err) {
    leat_model_checkpoint_options options = leat_model_checkpoint_options_default();
    options.filepath = text_of(a->filepath, "filepath", "", err);
    options.monitor = options.filepath ? text_of(a->monitor, "monitor", options.monitor, err) : NULL;
    options.save_best_only = a->save_best_only;
    options.save_weights_only = a->save_weights_only;
    options.mode = (leat_monitor_mode)a->mode;
    options.period = a->period;
    options.verbose = (int)a->verbose;
    return options.monitor ? leat_model_checkpoint_create(out, size, &options, err) : LEAT_EINVAL;
}

static const leati_field csv_logger_fields[] = {ARGUMENT(filename, LEATI_FIELD_JSON, .preset = NULL),
                                                TEXT_ARGUMENT(separator), FLAG_ARGUMENT(append),
                                                ARGUMENTS_END};

static leat_status make_csv_logger(leat_callback *out, size_t size, const arguments *a, leat_error *err) {
    const char *filename = text_of(a->filename, "filename", "", err);
    const char *separator = filename ? text_of(a->separator, "separator", ",", err) : NULL;
    if (!separator) return LEAT_EINVAL;
    if (!filename[0]) return leati_fail(err, LEAT_EINVAL, "filename: expected the path of a file");
    return leat_csv_logger_create(out, size, filename, separator, a->append, err);
}

static const leati_field tensorboard_fields[] = {TEXT_ARGUMENT(log_dir),
                                                 COUNT_ARGUMENT(histogram_freq, "0"),
                                                 ARGUMENT(write_graph, LEATI_FIELD_BOOL, .preset = "true"),
                                                 FLAG_ARGUMENT(write_steps_per_second),
                                                 TEXT_ARGUMENT(update_freq),
                                                 ARGUMENTS_END};

static leat_status read_update_freq(const json_t *value, int64_t *out, leat_error *err) {
    const char *word = value ? json_string_value(value) : "epoch";
    *out = word && strcmp(word, "batch") == 0 ? 1 : json_integer_value(value);
    if ((word && strcmp(word, "epoch") == 0) || *out > 0) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL,
                      "update_freq: expected epoch, batch, or a number of batches of at least 1");
}

static leat_status make_tensorboard(leat_callback *out, size_t size, const arguments *a, leat_error *err) {
    leat_tensorboard_options options = leat_tensorboard_options_default();
    options.log_dir = text_of(a->log_dir, "log_dir", "logs", err);
    options.histogram_freq = a->histogram_freq;
    options.write_graph = a->write_graph;
    options.write_steps_per_second = a->write_steps_per_second;
    LEATI_TRY(read_update_freq(a->update_freq, &options.update_freq, err));
    return options.log_dir ? leat_tensorboard_create(out, size, &options, err) : LEAT_EINVAL;
}

static const leati_field no_fields[] = {ARGUMENTS_END};

static leat_status make_terminate_on_nan(leat_callback *out, size_t size, const arguments *a,
                                         leat_error *err) {
    (void)a;
    return leat_terminate_on_nan_create(out, size, err);
}

/* ---- All callbacks ---- */

typedef struct callback_type {
    const char *name;
    const leati_field *fields;
    leat_status (*make)(leat_callback *out, size_t size, const arguments *a, leat_error *err);
} callback_type;

static const callback_type types[] = {
    {"CSVLogger", csv_logger_fields, make_csv_logger},
    {"EarlyStopping", early_stopping_fields, make_early_stopping},
    {"ModelCheckpoint", model_checkpoint_fields, make_model_checkpoint},
    {"ReduceLROnPlateau", reduce_lr_fields, make_reduce_lr},
    {"TensorBoard", tensorboard_fields, make_tensorboard},
    {"TerminateOnNaN", no_fields, make_terminate_on_nan},
};

enum { type_count = sizeof types / sizeof *types };

/* The names of all callbacks and schedules; NULL at the end. */
static const char *name_at(int index) {
    return index < type_count ? types[index].name : leati_schedule_name_at(index - type_count);
}

static bool is_schedule(const char *name) {
    const char *known = NULL;
    for (int i = 0; (known = leati_schedule_name_at(i)); ++i)
        if (strcmp(known, name) == 0) return true;
    return false;
}

static leat_status make(leat_callback *out, size_t size, const callback_type *type, const json_t *config,
                        leat_error *err) {
    arguments a = {0};
    LEATI_TRY(leati_fields_read(type->fields, NULL, config, &a, err));
    leat_status status = type->make(out, size, &a, err);
    leati_fields_fini(type->fields, &a);
    return status;
}

static leat_status make_object(leat_callback *out, size_t size, const json_t *value, leat_error *err) {
    leati_object object;
    LEATI_TRY(leati_object_read(&object, value, "callback", err));
    json_t *none = json_object();
    if (!none) return leati_fail(err, LEAT_ENOMEM, "no memory for a callback");
    const json_t *config = object.config ? object.config : none;
    const callback_type *type = NULL;
    leat_status status = LEAT_OK;
    for (int i = 0; i < type_count; ++i)
        if (strcmp(types[i].name, object.name) == 0) type = &types[i];
    if (type)
        status = make(out, size, type, config, err);
    else if (is_schedule(object.name))
        status = leati_schedule_callback(out, size, object.name, config, err);
    else
        status = leati_unknown_name(err, "callback", object.name, name_at);
    json_decref(none);
    if (type || is_schedule(object.name)) leati_prefix(status, err, "%s", object.name);
    return status;
}

leat_status leat_callback_from_text(leat_callback *out, size_t size, const char *text, leat_error *err) {
    LEATI_GIVEN(out, err);
    LEATI_TRY(leati_callback_begin(out, size, err));
    LEATI_GIVEN(text, err);
    json_t *value = NULL;
    while (isspace((unsigned char)*text)) ++text;
    LEATI_TRY(*text == '{'
                  ? leati_prefix(leati_json_parse_argument(&value, text, strlen(text), err), err, "callback")
                  : leati_call_read(text, strlen(text), "callback", &value, err));
    leat_status status = make_object(out, size, value, err);
    json_decref(value);
    return status;
}
