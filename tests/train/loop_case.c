/* SPDX-License-Identifier: Apache-2.0 */
#include "train/loop_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"

static void must(const loop_case *c, leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s: %s", c->g.name, err->message);
}

/* Returns a string value unchanged and any other value as JSON; NULL for no value.  The caller frees the result. */
static char *compile_text(const json_t *meta, const char *key) {
    const json_t *value = json_object_get(meta, key);
    if (json_is_string(value)) return strdup(json_string_value(value));
    bool empty = !value || json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0);
    return empty ? NULL : json_dumps(value, 0);
}

static void open_model(loop_case *c) {
    static const char *const keys[] = {"optimizer", "loss", "metrics", "weighted_metrics", "loss_weights"};
    char *texts[5];
    leat_error err = {0};
    json_t *config = golden_json(&c->g, "config");
    char *json = json_dumps(config, 0);
    must(c, leat_model_from_json(&c->model, json, &err), &err);
    free(json);
    json_decref(config);
    for (int i = 0; i < 5; ++i) texts[i] = compile_text(c->g.meta, keys[i]);
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = texts[0], options.loss = texts[1], options.metrics = texts[2];
    options.weighted_metrics = texts[3], options.loss_weights = texts[4];
    must(c, leat_model_compile(c->model, &options, &err), &err);
    for (int i = 0; i < 5; ++i) free(texts[i]);
    for (int i = 0; i < leat_model_weight_count(c->model); ++i) {
        leat_tensor value, weight = leat_model_weight(c->model, i);
        assert_true(golden_member(&c->g, "w", i, &value));
        assert_int_equal(leat_tensor_count(&weight), leat_tensor_count(&value));
        memcpy(weight.data, value.data, leat_tensor_bytes(&value));
    }
}

static void open_data(loop_data *data, const golden *g, const char *prefix) {
    static const char *const parts[] = {"x", "t", "sw"};
    char name[16];
    for (int part = 0; part < 3; ++part) {
        snprintf(name, sizeof name, "%s%s", prefix, parts[part]);
        int32_t *count = &data->counts[part];
        while (*count < LOOP_MAX_ARRAYS && golden_member(g, name, *count, &data->arrays[part][*count].tensor))
            ++*count;
    }
    snprintf(name, sizeof name, "%ssizes", prefix);
    if (!test_npz_has(g->npz, name)) return;
    leat_tensor sizes = test_npz_get(g->npz, name);
    data->batches = leat_tensor_count(&sizes);
    assert_true(data->batches <= LOOP_MAX_BATCHES);
    for (int64_t i = 0; i < data->batches; ++i)
        data->starts[i + 1] = data->starts[i] + ((const int32_t *)sizes.data)[i];
}

static int64_t data_length(void *user) {
    return ((const loop_data *)user)->batches;
}

static leat_status data_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    (void)rng, (void)err;
    const loop_data *data = user;
    int64_t start = data->starts[index];
    batch->size = data->starts[index + 1] - start;
    int at = 0;
    for (int part = 0; part < 3; ++part)
        for (int i = 0; i < data->counts[part]; ++i) {
            const leat_tensor *all = &data->arrays[part][i].tensor;
            size_t row = leat_tensor_bytes(all) / (size_t)all->shape[0];
            memcpy(batch->tensors[at++].data, (const char *)all->data + (size_t)start * row,
                   (size_t)batch->size * row);
        }
    return LEAT_OK;
}

static leat_sequence sequence_of(const loop_case *c, loop_data *data) {
    leat_sequence sequence = leat_sequence_default();
    leat_error err = {0};
    sequence.user = data;
    sequence.length = data_length;
    sequence.get = data_get;
    for (int64_t i = 0; i < data->batches; ++i) {
        int64_t size = data->starts[i + 1] - data->starts[i];
        if (size > sequence.spec.batch_size) sequence.spec.batch_size = size;
    }
    for (int part = 0; part < 3; ++part)
        for (int i = 0; i < data->counts[part]; ++i) {
            const leat_tensor *all = &data->arrays[part][i].tensor;
            must(c,
                 leat_batch_spec_add(&sequence.spec, (leat_batch_part)part, NULL, all->dtype, all->rank - 1,
                                     all->shape + 1, &err),
                 &err);
        }
    return sequence;
}

static leat_arrays arrays_of(const loop_data *data) {
    return (leat_arrays){.inputs = data->arrays[LEAT_PART_INPUT],
                         .targets = data->arrays[LEAT_PART_TARGET],
                         .sample_weights = data->arrays[LEAT_PART_SAMPLE_WEIGHT],
                         .input_count = data->counts[LEAT_PART_INPUT],
                         .target_count = data->counts[LEAT_PART_TARGET],
                         .sample_weight_count = data->counts[LEAT_PART_SAMPLE_WEIGHT]};
}

static double number(const json_t *config, const char *key, double preset) {
    const json_t *value = json_object_get(config, key);
    return value ? json_number_value(value) : preset;
}

static int64_t whole(const json_t *config, const char *key, int64_t preset) {
    return (int64_t)number(config, key, (double)preset);
}

static leat_status early_stopping(loop_case *c, leat_callback *out, const json_t *config, leat_error *err) {
    (void)c;
    leat_early_stopping_options options = leat_early_stopping_options_default();
    options.monitor = json_string_value(json_object_get(config, "monitor"));
    options.patience = whole(config, "patience", options.patience);
    options.min_delta = number(config, "min_delta", options.min_delta);
    options.restore_best_weights = json_is_true(json_object_get(config, "restore_best_weights"));
    return leat_early_stopping_create(out, sizeof *out, &options, err);
}

static leat_status reduce_lr(loop_case *c, leat_callback *out, const json_t *config, leat_error *err) {
    (void)c;
    leat_reduce_lr_options options = leat_reduce_lr_options_default();
    options.monitor = json_string_value(json_object_get(config, "monitor"));
    options.factor = number(config, "factor", options.factor);
    options.patience = whole(config, "patience", options.patience);
    options.min_delta = number(config, "min_delta", options.min_delta);
    options.cooldown = whole(config, "cooldown", options.cooldown);
    options.min_lr = number(config, "min_lr", options.min_lr);
    return leat_reduce_lr_on_plateau_create(out, sizeof *out, &options, err);
}

static double next_rate(void *user, int64_t epoch, double rate) {
    const loop_schedule *schedule = user;
    return schedule->factor > 0 ? rate * schedule->factor : schedule->rates[epoch];
}

static leat_status scheduler(loop_case *c, leat_callback *out, const json_t *config, leat_error *err) {
    const json_t *rates = json_object_get(config, "rates");
    assert_true(json_array_size(rates) <= LOOP_MAX_LIST);
    for (size_t i = 0; i < json_array_size(rates); ++i)
        c->schedule.rates[i] = json_number_value(json_array_get(rates, i));
    c->schedule.factor = number(config, "factor", 0);
    return leat_learning_rate_scheduler_create(out, sizeof *out, next_rate, &c->schedule, 0, err);
}

static leat_status csv_logger(loop_case *c, leat_callback *out, const json_t *config, leat_error *err) {
    snprintf(c->csv_path, sizeof c->csv_path, "%s/golden_loops_%s.csv", LEAT_BINARY_DIR,
             golden_text(&c->g, "case"));
    return leat_csv_logger_create(out, sizeof *out, c->csv_path,
                                  json_string_value(json_object_get(config, "separator")), false, err);
}

static leat_status terminate_on_nan(loop_case *c, leat_callback *out, const json_t *config, leat_error *err) {
    (void)c, (void)config;
    return leat_terminate_on_nan_create(out, sizeof *out, err);
}

static const struct {
    const char *class_name;
    leat_status (*create)(loop_case *c, leat_callback *out, const json_t *config, leat_error *err);
} makers[] = {
    {"EarlyStopping", early_stopping},    {"ReduceLROnPlateau", reduce_lr},
    {"LearningRateScheduler", scheduler}, {"CSVLogger", csv_logger},
    {"TerminateOnNaN", terminate_on_nan},
};

static void open_callbacks(loop_case *c) {
    const json_t *all = json_object_get(c->g.meta, "callbacks");
    size_t count = json_array_size(all), found = 0;
    leat_error err = {0};
    assert_true(count <= LOOP_MAX_CALLBACKS);
    for (size_t i = 0; i < count; ++i) {
        const json_t *one = json_array_get(all, i);
        const char *class_name = json_string_value(json_array_get(one, 0));
        for (size_t k = 0; k < sizeof makers / sizeof makers[0]; ++k) {
            if (strcmp(makers[k].class_name, class_name) != 0) continue;
            must(c, makers[k].create(c, &c->callbacks[i], json_array_get(one, 1), &err), &err);
            ++found;
        }
        c->hooks[i] = &c->callbacks[i];
    }
    assert_int_equal(found, count);
    c->options.callbacks = c->hooks;
    c->options.callback_count = (int)count;
}

static void set_class_weights(loop_case *c, json_t *weights) {
    const char *key;
    json_t *value;
    json_object_foreach(weights, key, value) {
        assert_true(c->options.class_weight_count < LOOP_MAX_LIST);
        c->class_weights[c->options.class_weight_count++] =
            (leat_class_weight){strtoll(key, NULL, 10), json_number_value(value)};
    }
    if (c->options.class_weight_count > 0) c->options.class_weight = c->class_weights;
}

static void set_validation_epochs(loop_case *c, const json_t *epochs) {
    assert_true(json_array_size(epochs) <= LOOP_MAX_LIST);
    c->options.validation_epoch_count = (int)json_array_size(epochs);
    for (size_t i = 0; i < json_array_size(epochs); ++i)
        c->validation_epochs[i] = json_integer_value(json_array_get(epochs, i));
    c->options.validation_epochs = c->validation_epochs;
}

static void set_options(loop_case *c, int workers) {
    const json_t *arguments = json_object_get(c->g.meta, "arguments");
    leat_fit_options *options = &c->options;
    *options = leat_fit_options_default();
    options->verbose = 0;
    options->threads = 1;
    options->shuffle = false;
    options->workers = workers;
    options->epochs = whole(arguments, "epochs", 1);
    options->initial_epoch = whole(arguments, "initial_epoch", 0);
    options->steps_per_epoch = whole(arguments, "steps_per_epoch", 0);
    options->validation_steps = whole(arguments, "validation_steps", 0);
    const json_t *freq = json_object_get(arguments, "validation_freq");
    if (json_is_array(freq))
        set_validation_epochs(c, freq);
    else
        options->validation_freq = whole(arguments, "validation_freq", 1);
    set_class_weights(c, json_object_get(arguments, "class_weight"));
    open_callbacks(c);
    if (!loop_case_validates(c)) return;
    c->validation = sequence_of(c, &c->held_out);
    options->validation = &c->validation;
}

bool loop_case_validates(const loop_case *c) {
    return c->held_out.batches > 0;
}

bool loop_case_generates(const loop_case *c) {
    return strcmp(golden_text(&c->g, "call"), "fit_generator") == 0;
}

static int64_t batch_size_of(const loop_case *c) {
    return whole(json_object_get(c->g.meta, "arguments"), "batch_size", 0);
}

void loop_case_run(loop_case *c, const char *name, int workers) {
    leat_error err = {0};
    *c = (loop_case){0};
    golden_open(&c->g, "loops", name);
    snprintf(c->g.name, sizeof c->g.name, "loops/%s, %d workers", name, workers);
    open_model(c);
    open_data(&c->train, &c->g, "");
    open_data(&c->held_out, &c->g, "v");
    set_options(c, workers);
    leat_sequence sequence = sequence_of(c, &c->train);
    leat_arrays arrays = arrays_of(&c->train);
    leat_status status =
        loop_case_generates(c)
            ? leat_model_fit_generator(c->model, &sequence, &c->options, &c->history, &err)
            : leat_model_fit(c->model, &arrays, batch_size_of(c), &c->options, &c->history, &err);
    must(c, status, &err);
}

void loop_case_evaluate(loop_case *c, leat_logs *logs) {
    leat_error err = {0};
    leat_evaluate_options options = leat_evaluate_options_default();
    options.workers = c->options.workers;
    options.threads = 1;
    leat_arrays arrays = arrays_of(&c->held_out);
    leat_status status = loop_case_generates(c)
                             ? leat_model_evaluate_generator(c->model, &c->validation, &options, logs, &err)
                             : leat_model_evaluate(c->model, &arrays, batch_size_of(c), &options, logs, &err);
    must(c, status, &err);
}

void loop_case_close(loop_case *c) {
    for (int i = 0; i < c->options.callback_count; ++i) leat_callback_destroy(&c->callbacks[i]);
    leat_history_destroy(&c->history);
    leat_model_destroy(&c->model);
    golden_close(&c->g);
}
