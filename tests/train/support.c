/* SPDX-License-Identifier: Apache-2.0 */
/* Small models and data for the tests of training. */
#include "train/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"

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

static int64_t clusters_length(void *user) {
    const clusters *data = user;
    return (data->samples + data->batch_size - 1) / data->batch_size;
}

static void write_sample(const clusters *data, int64_t sample, float noise, float *x, float *y) {
    int64_t label = sample % 3;
    leat_rng rng = leat_rng_for(99, 0, (uint64_t)sample);
    for (int i = 0; i < 4; ++i) x[i] = (float)((i == label ? 1.5 : 0) + 0.3 * leat_rng_normal(&rng)) + noise;
    for (int i = 0; i < 3; ++i) y[i] = i == label;
    (void)data;
}

static leat_status clusters_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch,
                                leat_error *err) {
    const clusters *data = user;
    if (index == data->fail_at) return leat_error_set(err, LEAT_EUSER, "no data today");
    int64_t start = index * data->batch_size, left = data->samples - start;
    if (left < batch->size) batch->size = left;
    float *x = batch->tensors[0].data, *y = batch->tensors[1].data;
    for (int64_t i = 0; i < batch->size; ++i) {
        float noise = data->noisy ? (float)(0.1 * leat_rng_normal(rng)) : 0;
        write_sample(data, start + i, noise, x + 4 * i, y + 3 * i);
        if (data->weighted) ((float *)batch->tensors[2].data)[i] = (float)((start + i) % 2);
    }
    if (index == data->nan_at) x[0] = NAN;
    return LEAT_OK;
}

static leat_status clusters_end(void *user, int64_t pass, leat_error *err) {
    (void)pass, (void)err;
    ++((clusters *)user)->hooked;
    return LEAT_OK;
}

clusters clusters_of(int64_t samples, int64_t batch_size) {
    return (clusters){.samples = samples, .batch_size = batch_size, .fail_at = -1, .nan_at = -1};
}

leat_sequence clusters_sequence(clusters *data) {
    leat_sequence sequence = leat_sequence_default();
    leat_error err = {0};
    sequence.user = data;
    sequence.length = clusters_length;
    sequence.get = clusters_get;
    sequence.on_epoch_end = clusters_end;
    sequence.state = &data->hooked;
    sequence.state_bytes = sizeof data->hooked;
    sequence.spec.batch_size = data->batch_size;
    leat_batch_spec *spec = &sequence.spec;
    if (leat_batch_spec_add(spec, LEAT_PART_INPUT, NULL, LEAT_F32, 1, (int64_t[]){4}, &err) != LEAT_OK ||
        leat_batch_spec_add(spec, LEAT_PART_TARGET, NULL, LEAT_F32, 1, (int64_t[]){3}, &err) != LEAT_OK)
        fail_msg("%s", err.message);
    if (data->weighted &&
        leat_batch_spec_add(spec, LEAT_PART_SAMPLE_WEIGHT, NULL, LEAT_F32, 0, NULL, &err) != LEAT_OK)
        fail_msg("%s", err.message);
    return sequence;
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
