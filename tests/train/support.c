/* SPDX-License-Identifier: Apache-2.0 */
/* Small models and data for the tests of training. */
#include "train/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"

void expect_ok(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

static leat_model *build(const char *json, const leat_compile_options *options) {
    leat_error err = {0};
    leat_model *model = NULL;
    if (leat_model_from_json(&model, json, &err) != LEAT_OK) fail_msg("%s", err.message);
    if (leat_model_compile(model, options, &err) != LEAT_OK) fail_msg("%s", err.message);
    return model;
}

leat_model *make_classifier(uint64_t seed) {
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = "{\"class_name\": \"Adam\", \"config\": {\"learning_rate\": 0.01}}";
    options.loss = "categorical_crossentropy";
    options.metrics = "accuracy";
    leat_model *model =
        build("{\"class_name\": \"Sequential\", \"config\": {\"name\": \"classifier\", \"layers\": ["
              "{\"class_name\": \"Dense\", \"config\": {\"name\": \"hidden\", \"units\": 8, \"activation\": "
              "\"tanh\","
              " \"batch_input_shape\": [null, 4]}},"
              "{\"class_name\": \"Dense\", \"config\": {\"name\": \"out\", \"units\": 3,"
              " \"activation\": \"softmax\"}}]}}",
              &options);
    assert_int_equal(leat_model_initialize(model, seed, NULL), LEAT_OK);
    return model;
}

leat_model *make_dropout_classifier(uint64_t seed) {
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = "{\"class_name\": \"Adam\", \"config\": {\"learning_rate\": 0.01}}";
    options.loss = "categorical_crossentropy";
    leat_model *model =
        build("{\"class_name\": \"Sequential\", \"config\": {\"name\": \"dropping\", \"layers\": ["
              "{\"class_name\": \"Dense\", \"config\": {\"name\": \"hidden\", \"units\": 8, \"activation\": "
              "\"tanh\","
              " \"batch_input_shape\": [null, 4]}},"
              "{\"class_name\": \"Dropout\", \"config\": {\"name\": \"drop\", \"rate\": 0.5}},"
              "{\"class_name\": \"Dense\", \"config\": {\"name\": \"out\", \"units\": 3,"
              " \"activation\": \"softmax\"}}]}}",
              &options);
    assert_int_equal(leat_model_initialize(model, seed, NULL), LEAT_OK);
    return model;
}

leat_model *make_line(double lr) {
    char optimizer[128];
    snprintf(optimizer, sizeof optimizer, "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": %.17g}}",
             lr);
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = optimizer;
    options.loss = "mse";
    return build(
        "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"line\", \"layers\": ["
        "{\"class_name\": \"Dense\", \"config\": {\"name\": \"slope\", \"units\": 1, \"use_bias\": false,"
        " \"kernel_initializer\": \"zeros\", \"batch_input_shape\": [null, 1]}}]}}",
        &options);
}

static int64_t batches_of(const clusters *data) {
    return (data->samples + data->batch_size - 1) / data->batch_size;
}

static int64_t clusters_length(void *user) {
    const clusters *data = user;
    return data->infinite ? LEAT_LENGTH_INFINITE : batches_of(data);
}

static int64_t clusters_samples(void *user) {
    return ((const clusters *)user)->samples;
}

static void write_sample(const clusters *data, int64_t sample, float noise, float *x, float *y) {
    int64_t label = sample % 3;
    leat_rng rng = leat_rng_for(99, 0, (uint64_t)sample);
    for (int i = 0; i < 4; ++i) x[i] = (float)((i == label ? 1.5 : 0) + 0.3 * leat_rng_normal(&rng)) + noise;
    for (int i = 0; i < 3; ++i) y[i] = i == label;
    (void)data;
}

static void write_batch(const clusters *data, const int64_t *numbers, int64_t first, leat_rng *rng,
                        leat_batch *batch) {
    float *x = batch->tensors[0].data, *y = batch->tensors[1].data;
    for (int64_t i = 0; i < batch->size; ++i) {
        int64_t sample = numbers ? numbers[i] : first + i;
        float noise = data->noisy ? (float)(0.1 * leat_rng_normal(rng)) : 0;
        write_sample(data, sample, noise, x + 4 * i, y + 3 * i);
        if (data->weighted) ((float *)batch->tensors[2].data)[i] = (float)(sample % 2);
    }
}

static leat_status clusters_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch,
                                leat_error *err) {
    const clusters *data = user;
    if (index == data->fail_at) return leat_error_set(err, LEAT_EUSER, "no data today");
    if (index == data->skip_at) return LEAT_ESKIPPED;
    if (index == data->empty_at) {
        batch->size = 0;
        return LEAT_OK;
    }
    if (data->infinite) index %= batches_of(data);
    int64_t start = index * data->batch_size, left = data->samples - start;
    if (left < batch->size) batch->size = left;
    write_batch(data, NULL, start, rng, batch);
    if (index == data->nan_at) ((float *)batch->tensors[0].data)[0] = NAN;
    return LEAT_OK;
}

static leat_status clusters_get_samples(void *user, const int64_t *numbers, int64_t count, leat_rng *rng,
                                        leat_batch *batch, leat_error *err) {
    (void)count, (void)err;
    write_batch(user, numbers, 0, rng, batch);
    return LEAT_OK;
}

static leat_status clusters_next(void *user, leat_rng *rng, leat_batch *batch, leat_error *err) {
    clusters *data = user;
    if (data->given == data->ends_at) {
        batch->size = 0;
        return LEAT_OK;
    }
    int64_t number = data->given++;
    if (number == data->fail_at) return leat_error_set(err, LEAT_EUSER, "no data today");
    if (number == data->skip_at) return LEAT_ESKIPPED;
    int64_t start = number % batches_of(data) * data->batch_size, left = data->samples - start;
    if (left < batch->size) batch->size = left;
    write_batch(data, NULL, start, rng, batch);
    return LEAT_OK;
}

static leat_status clusters_end(void *user, int64_t pass, leat_error *err) {
    clusters *data = user;
    if (pass == data->fail_pass) return leat_error_set(err, LEAT_EUSER, "the hook broke");
    ++data->hooked;
    data->samples += data->grow;
    return LEAT_OK;
}

clusters clusters_of(int64_t samples, int64_t batch_size) {
    return (clusters){.samples = samples,
                      .batch_size = batch_size,
                      .fail_at = -1,
                      .skip_at = -1,
                      .empty_at = -1,
                      .nan_at = -1,
                      .fail_pass = -1,
                      .ends_at = -1};
}

static void add_tensors(leat_sequence *sequence, const clusters *data) {
    leat_error err = {0};
    leat_batch_spec *spec = &sequence->spec;
    spec->batch_size = data->batch_size;
    expect_ok(leat_batch_spec_add(spec, LEAT_PART_INPUT, NULL, LEAT_F32, 1, (int64_t[]){4}, &err), &err);
    expect_ok(leat_batch_spec_add(spec, LEAT_PART_TARGET, NULL, LEAT_F32, 1, (int64_t[]){3}, &err), &err);
    if (data->weighted)
        expect_ok(leat_batch_spec_add(spec, LEAT_PART_SAMPLE_WEIGHT, NULL, LEAT_F32, 0, NULL, &err), &err);
}

leat_sequence clusters_sequence(clusters *data) {
    leat_sequence sequence = leat_sequence_default();
    sequence.user = data;
    sequence.length = clusters_length;
    sequence.get = clusters_get;
    if (data->sampled) {
        sequence.samples = clusters_samples;
        sequence.get_samples = clusters_get_samples;
    }
    sequence.on_epoch_end = clusters_end;
    sequence.state = data;
    sequence.state_bytes = sizeof *data;
    add_tensors(&sequence, data);
    return sequence;
}

leat_sequence clusters_generator(clusters *data) {
    leat_sequence sequence = leat_sequence_default();
    sequence.user = data;
    sequence.next = clusters_next;
    add_tensors(&sequence, data);
    return sequence;
}

static leat_status note_epoch(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                              leat_error *err) {
    (void)logs, (void)err;
    journal *all = user;
    all->epochs[all->epoch_count] = epoch;
    all->steps[all->epoch_count++] = leat_training_params_get(training)->steps;
    return LEAT_OK;
}

static leat_status note_batch(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                              leat_error *err) {
    (void)training, (void)logs, (void)err;
    journal *all = user;
    if (all->batch_count < 512) all->batches[all->batch_count] = batch;
    ++all->batch_count;
    return LEAT_OK;
}

static leat_status note_test(void *user, leat_training *training, int64_t index, leat_logs *logs,
                             leat_error *err) {
    (void)training, (void)index, (void)logs, (void)err;
    ++((journal *)user)->test_count;
    return LEAT_OK;
}

static leat_status note_end(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                            leat_error *err) {
    (void)training, (void)epoch, (void)err;
    journal *all = user;
    double value = 0;
    all->has_val[all->epoch_count - 1] = leat_logs_get(logs, "val_loss", &value);
    return LEAT_OK;
}

static leat_status note_reason(void *user, leat_training *training, int64_t index, leat_logs *logs,
                               leat_error *err) {
    (void)index, (void)logs, (void)err;
    const char *reason = leat_training_stop_reason(training);
    snprintf(((journal *)user)->stop_reason, sizeof((journal *)user)->stop_reason, "%s",
             reason ? reason : "");
    return LEAT_OK;
}

leat_callback journal_callback(journal *all) {
    *all = (journal){0};
    return (leat_callback){.size = sizeof(leat_callback),
                           .user = all,
                           .on_epoch_begin = note_epoch,
                           .on_train_batch_end = note_batch,
                           .on_test_end = note_test,
                           .on_epoch_end = note_end,
                           .on_train_end = note_reason};
}

leat_fit_options quiet_fit(int64_t epochs) {
    leat_fit_options options = leat_fit_options_default();
    options.epochs = epochs;
    options.verbose = 0;
    options.threads = 1;
    return options;
}

leat_fit_options quiet_fit_with(int64_t epochs, leat_callback *const *callbacks, int count) {
    leat_fit_options options = quiet_fit(epochs);
    options.callbacks = callbacks;
    options.callback_count = count;
    return options;
}

int series_count(const leat_history *history, const char *name) {
    int count = 0;
    leat_history_values(history, name, &count);
    return count;
}

double series_at(const leat_history *history, const char *name, int index) {
    int count = 0;
    const double *values = leat_history_values(history, name, &count);
    if (index >= count) fail_msg("%s has %d values, not one at %d", name, count, index);
    return values ? values[index] : NAN;
}

uint64_t weights_hash(const leat_model *model) {
    uint64_t hash = 1469598103934665603u; /* FNV-1a */
    for (int i = 0; i < leat_model_weight_count(model); ++i) {
        leat_tensor weight = leat_model_weight(model, i);
        const unsigned char *bytes = weight.data;
        for (size_t j = 0; j < leat_tensor_bytes(&weight); ++j) hash = (hash ^ bytes[j]) * 1099511628211u;
    }
    return hash;
}
