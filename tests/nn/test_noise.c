/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that are random in training: their numbers have the mean, variance and shape of Keras's, are equal on
 * every list of backends, and differ from step to step. */
#include "cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "nn/model/model.h"
#include "nn/layers/types.h"
#include "nn/run.h"

enum { SAMPLES = 64, ROWS = 10, COLUMNS = 12, CHANNELS = 13, COUNT = SAMPLES * ROWS * COLUMNS * CHANNELS };
enum { PER_SAMPLE = ROWS * COLUMNS * CHANNELS };

typedef struct draws {
    float *x, *y;
    double mean, variance, zeros; /* of y; zeros: share of the elements that are 0 */
} draws;

/* Computes y, the output of the layer for x in training, in step `step`. */
static void draw(draws *d, const char *class_name, const char *config, const run_backend *backend, int step) {
    const leati_layer_reader reader = leati_layer_reader_for(NULL);
    leat_error err = {0};
    run r;
    leati_layer *layer = NULL;
    json_t *value = NULL;
    leat_tensor x = leat_tensor_view(LEAT_F32, 4, (int64_t[]){SAMPLES, ROWS, COLUMNS, CHANNELS}, d->x);
    leati_value in, out;
    assert_ok(leati_json_parse(&value, config, strlen(config), &err), &err);
    assert_ok(leati_layer_create(&layer, leati_layer_find(class_name), value, &reader, &err), &err);
    run_begin(&r, backend);
    leati_lowering lowering = {.graph = r.graph, .mode = LEATI_TRAIN, .stream = 17};
    in = run_input(&r, &x);
    layer->type->lower(layer, &lowering, 1, &in, &out);
    leati_graph_keep(r.graph, out);
    const leati_plan_options options = {.threads = 1, .backends = backend->list, .arena = r.arena};
    assert_ok(leati_plan_create(&r.plan, &r.graph, &options, &err), &err);
    assert_ok(leati_plan_run(r.plan, r.inputs, 5, (uint64_t)step, &err), &err);
    memcpy(d->y, leati_plan_output(r.plan, out).data, COUNT * sizeof(float));
    run_end(&r);
    leati_layer_destroy(&layer);
    json_decref(value);
}

static void measure(draws *d) {
    double sum = 0, squares = 0, zeros = 0;
    for (int i = 0; i < COUNT; ++i) {
        sum += (double)d->y[i];
        squares += (double)d->y[i] * (double)d->y[i];
        zeros += d->y[i] == 0;
    }
    d->mean = sum / COUNT;
    d->variance = squares / COUNT - d->mean * d->mean;
    d->zeros = zeros / COUNT;
}

static void open_draws(draws *d, float constant) {
    *d = (draws){.x = calloc(COUNT, sizeof(float)), .y = calloc(COUNT, sizeof(float))};
    for (int i = 0; i < COUNT; ++i) d->x[i] = constant;
}

static void close_draws(draws *d) {
    free(d->x);
    free(d->y);
}

#define assert_near(value, expected, tolerance) assert_true(fabs((value) - (expected)) < (tolerance))

/* Draws on each backend and compares with ref; then checks that another step differs. */
static void check_backends(draws *d, const char *class_name, const char *config) {
    float *first = calloc(COUNT, sizeof *first);
    for (int i = 0; run_backends[i].name; ++i) {
        draw(d, class_name, config, &run_backends[i], 3);
        if (i == 0) memcpy(first, d->y, COUNT * sizeof *first);
        for (int j = 0; j < COUNT; ++j)
            assert_true(fabsf(d->y[j] - first[j]) <= 1e-5f * (1 + fabsf(first[j])));
    }
    int same = 0;
    draw(d, class_name, config, &run_backends[0], 4);
    for (int j = 0; j < COUNT; ++j) same += d->y[j] == first[j] && first[j] != 0;
    assert_true(same < COUNT * 3 / 4);
    memcpy(d->y, first, COUNT * sizeof *first);
    free(first);
    measure(d);
}

static void test_gaussian_noise(void **state) {
    (void)state;
    draws d;
    double fourth = 0;
    int beyond = 0;
    open_draws(&d, 3);
    check_backends(&d, "GaussianNoise", "{\"stddev\": 0.5}");
    assert_near(d.mean, 3, 0.01);
    assert_near(d.variance, 0.25, 0.005);
    for (int i = 0; i < COUNT; ++i) {
        double z = ((double)d.y[i] - 3) / 0.5;
        fourth += z * z * z * z / COUNT;
        beyond += fabs(z) > 1.959964;
    }
    assert_near(fourth, 3, 0.15);
    assert_near((double)beyond / COUNT, 0.05, 0.003);
    close_draws(&d);
}

static void test_gaussian_dropout(void **state) {
    (void)state;
    draws d;
    open_draws(&d, 2);
    check_backends(&d, "GaussianDropout", "{\"rate\": 0.2}");
    assert_near(d.mean, 2, 0.02);
    assert_near(d.variance, 4 * 0.25, 0.03);
    close_draws(&d);
}

/* Each feature map is kept, times 1 / (1 - rate), or dropped as a whole. */
static void check_maps(const draws *d, bool channels_first) {
    const int maps = channels_first ? ROWS : CHANNELS, size = PER_SAMPLE / maps;
    int dropped = 0;
    for (int n = 0; n < SAMPLES; ++n)
        for (int m = 0; m < maps; ++m) {
            const float *map = d->y + n * PER_SAMPLE + (channels_first ? m * size : m);
            for (int i = 0; i < size; ++i) {
                float value = map[channels_first ? i : i * maps];
                assert_true(value == map[0] && (value == 0 || fabsf(value - 4) < 1e-5f));
            }
            dropped += map[0] == 0;
        }
    assert_near((double)dropped / (SAMPLES * maps), 0.25, 0.06);
}

static void test_spatial_dropout(void **state) {
    (void)state;
    draws d;
    open_draws(&d, 3);
    check_backends(&d, "SpatialDropout2D", "{\"rate\": 0.25}");
    check_maps(&d, false);
    check_backends(&d, "SpatialDropout2D", "{\"rate\": 0.25, \"data_format\": \"channels_first\"}");
    check_maps(&d, true);
    close_draws(&d);
}

/* For a standard normal input, mean and variance are kept, and all dropped elements have the same value. */
static void test_alpha_dropout(void **state) {
    (void)state;
    draws d;
    open_draws(&d, 0);
    check_backends(&d, "GaussianNoise",
                   "{\"stddev\": 1.0, \"seed\": 8}"); /* seed 8, other than the dropout's */
    memcpy(d.x, d.y, COUNT * sizeof(float));
    check_backends(&d, "AlphaDropout", "{\"rate\": 0.3}");
    assert_near(d.mean, 0, 0.02);
    assert_near(d.variance, 1, 0.02);
    const double p = -1.7580993408473766, a = 1 / sqrt(0.7 * (1 + 0.3 * p * p)), low = a * p - a * p * 0.3;
    int lowest = 0;
    for (int i = 0; i < COUNT; ++i) lowest += fabs((double)d.y[i] - low) < 1e-5;
    assert_near((double)lowest / COUNT, 0.3, 0.01);
    close_draws(&d);
}

/* Two layers with the same seed draw the same numbers; without a seed each call draws its own. */
static void test_seeds(void **state) {
    (void)state;
    draws a, b;
    open_draws(&a, 1);
    open_draws(&b, 1);
    draw(&a, "AlphaDropout", "{\"rate\": 0.5, \"seed\": 9}", &run_backends[0], 1);
    draw(&b, "AlphaDropout", "{\"rate\": 0.5, \"seed\": 9}", &run_backends[0], 1);
    assert_memory_equal(a.y, b.y, COUNT * sizeof(float));
    draw(&b, "AlphaDropout", "{\"rate\": 0.5, \"seed\": 10}", &run_backends[0], 1);
    assert_memory_not_equal(a.y, b.y, COUNT * sizeof(float));
    close_draws(&a);
    close_draws(&b);
}

/* In files of current Keras, recurrent dropout makes a mask for each gate (implementation 1), otherwise all gates have
 * the same mask. */
static void test_masks_of_current_keras(void **state) {
    (void)state;
#define GRU(version, more)                                                                                   \
    "{\"class_name\": \"Sequential\", \"keras_version\": \"" version                                         \
    "\", \"config\": {\"name\": \"s\", \"layers\": [{\"class_name\": \"GRU\", \"config\": {\"units\": 3, "   \
    "\"batch_input_shape\": [null, 5, 2]" more "}}]}}"
    static const struct {
        const char *json, *written;
    } rows[] = {
        {GRU("3.15.1", ", \"dropout\": 0.5, \"recurrent_dropout\": 0.25"), "\"implementation\": 1"},
        {GRU("3.15.1", ", \"dropout\": 0.5, \"recurrent_dropout\": 0.0"), "\"implementation\": 2"},
        {GRU("2.3.1", ", \"dropout\": 0.5, \"recurrent_dropout\": 0.25"), "\"implementation\": 2"},
    };
#undef GRU
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        leat_error err = {0};
        leat_model *model = NULL;
        json_t *config = NULL;
        assert_ok(leat_model_from_json(&model, rows[i].json, &err), &err);
        assert_ok(leati_model_config(model, &config, &err), &err); /* in the form of 2.3.1 */
        char *text = json_dumps(config, 0);
        assert_non_null(text);
        if (!strstr(text, rows[i].written)) fail_msg("%s: not in %s", rows[i].written, text);
        free(text);
        json_decref(config);
        leat_model_destroy(&model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gaussian_noise),  cmocka_unit_test(test_gaussian_dropout),
        cmocka_unit_test(test_spatial_dropout), cmocka_unit_test(test_alpha_dropout),
        cmocka_unit_test(test_seeds),           cmocka_unit_test(test_masks_of_current_keras),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
