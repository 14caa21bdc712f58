/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that change images at random in training: an image that is changed by given numbers is Keras's, the gradient
 * is that of finite differences, and the numbers are drawn from the range of the layer, for each image anew. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "nn/layers/preprocessing/image_changes.h"
#include "nn/layers/types.h"
#include "nn/model/model.h"
#include "nn/run.h"
#include "support/golden.h"

enum { MOST = 600 };

static const char *const cases[] = {"rotation", "translation", "zoom", "shear"};
static const char *const modes[] = {"reflect", "wrap", "constant", "nearest"};
static const char *const interpolations[] = {"bilinear", "nearest"};

/* Opens a case of keras-3/images. */
static void open_case(golden *g, leati_change *change, const char *name) {
    golden_open(g, "keras-3/images", name);
    const json_t *options = json_object_get(g->meta, "options");
    const json_t *range = json_object_get(options, "value_range");
    const char *mode = json_string_value(json_object_get(options, "fill_mode"));
    *change = (leati_change){.kind = (leati_change_kind)json_integer_value(json_object_get(options, "kind")),
                             .bilinear = strcmp(json_string_value(json_object_get(options, "interpolation")),
                                                "bilinear") == 0,
                             .fill_value = (float)json_number_value(json_object_get(options, "fill_value")),
                             .lowest = (float)json_number_value(json_array_get(range, 0)),
                             .highest = (float)json_number_value(json_array_get(range, 1))};
    while (strcmp(mode, modes[change->fill_mode]) != 0) ++change->fill_mode;
    for (size_t i = 0; i < 2; ++i)
        change->taps[i] =
            (int32_t)json_integer_value(json_array_get(json_object_get(options, "kernel_size"), i));
    const json_t *fill = json_object_get(options, "fill_value");
    change->fill_count = json_is_array(fill) ? 3 : 1;
    for (size_t i = 0; i < 3; ++i)
        change->fills[i] = (float)json_number_value(json_is_array(fill) ? json_array_get(fill, i) : fill);
}

/* The derivative of the sum of `weights` times the changed image with respect to pixel i, by a finite difference. */
static double difference(const leati_change *change, const leati_image_size *size, const float *x, int64_t i,
                         const float *weights) {
    const int64_t count = size->height * size->width * size->channels;
    float moved[MOST], y[2][MOST];
    double sum = 0;
    memcpy(moved, x, (size_t)count * sizeof *x);
    for (int side = 0; side < 2; ++side) {
        moved[i] = x[i] + (side ? 0.25f : -0.25f);
        leati_change_image(change, size, moved, y[side]);
    }
    for (int64_t k = 0; k < count; ++k) sum += (double)weights[k] * ((double)y[1][k] - (double)y[0][k]);
    return sum / 0.5;
}

static void check_gradient(const leati_change *change, const leati_image_size *size, const float *x,
                           const char *name) {
    const int64_t count = size->height * size->width * size->channels;
    float weights[MOST], gradient[MOST];
    for (int64_t i = 0; i < count; ++i) weights[i] = (float)(i * 7 % 11 - 5) / 5;
    leati_change_image_back(change, size, x, weights, gradient);
    for (int64_t i = 0; i < count; i += 9) {
        const double want = change->kind == LEATI_POSTERIZE ? 0 : difference(change, size, x, i, weights);
        if (!(fabs((double)gradient[i] - want) < 2e-3))
            fail_msg("%s: gradient %lld is %g, expected %g", name, (long long)i, (double)gradient[i], want);
    }
}

/* Makes the displacements of image i from the numbers that Keras used. */
static void set_field(leati_change *change, const leati_image_size *size, const golden *g, int64_t i,
                      float field[MOST]) {
    const leat_tensor noise = test_npz_get(g->npz, "noise");
    const int64_t pixels = size->height * size->width;
    float numbers[MOST];
    memcpy(numbers, (const float *)noise.data + i * pixels, (size_t)pixels * sizeof(float));
    leati_elastic_field(change, size, numbers, field);
    change->field = field;
}

static void check_case(const char *name) {
    golden g;
    leati_change change;
    open_case(&g, &change, name);
    const leat_tensor x = test_npz_get(g.npz, "x"), y = test_npz_get(g.npz, "y");
    const leat_tensor amounts = test_npz_get(g.npz, "amounts");
    const leati_image_size size = {x.shape[1], x.shape[2], x.shape[3]};
    const int64_t count = size.height * size.width * size.channels;
    const int64_t numbers = amounts.shape[1];
    float changed[MOST], field[MOST];
    assert_true(numbers <= LEATI_CHANGE_AMOUNTS);
    assert_true(x.shape[0] * count <= MOST);
    for (int64_t i = 0; i < x.shape[0]; ++i) {
        const float *image = (const float *)x.data + i * count;
        memcpy(change.amount, (const float *)amounts.data + numbers * i, (size_t)numbers * sizeof(float));
        if (change.kind == LEATI_ELASTIC) set_field(&change, &size, &g, i, field);
        leati_change_image(&change, &size, image, changed + i * count);
        check_gradient(&change, &size, image, name);
    }
    golden_compare(&g, "y", changed, y.data, leat_tensor_count(&y), 1e-5);
    golden_close(&g);
}

static void images_are_moved_as_in_keras(void **state) {
    (void)state;
    for (int i = 0; i < 4; ++i)
        for (int mode = 0; mode < 4; ++mode)
            for (int kind = 0; kind < 2; ++kind) {
                char name[64];
                snprintf(name, sizeof name, "%s_%s_%s", cases[i], modes[mode], interpolations[kind]);
                check_case(name);
            }
}

static void colours_are_changed_as_in_keras(void **state) {
    (void)state;
    check_case("hue");
    check_case("hue_range");
    check_case("saturation");
    check_case("saturation_range");
    check_case("posterization");
    check_case("posterization_range");
}

static void images_are_filtered_as_in_keras(void **state) {
    (void)state;
    check_case("sharpness");
    check_case("blur_3");
    check_case("blur_5");
    check_case("erasing");
    check_case("erasing_colour");
}

static void images_are_distorted_as_in_keras(void **state) {
    (void)state;
    check_case("perspective_bilinear");
    check_case("perspective_nearest");
    check_case("elastic_large");
    for (int mode = 0; mode < 4; ++mode)
        for (int kind = 0; kind < 2; ++kind) {
            char name[64];
            snprintf(name, sizeof name, "elastic_%s_%s", modes[mode], interpolations[kind]);
            check_case(name);
        }
}

static void values_are_changed_as_in_keras(void **state) {
    (void)state;
    check_case("contrast");
    check_case("brightness");
    check_case("invert");
    check_case("degeneration_1");
    check_case("degeneration_3");
    check_case("grayscale");
}

/* ---- Layers ---- */

enum { SAMPLES = 200, SIDE = 4, IMAGE = SIDE * SIDE };

/* Computes the layer in training for images of SIDE x SIDE pixels of one channel. */
static void train_layer(const char *class_name, const char *config, float *x, float *y, int step) {
    const leati_layer_reader reader = leati_layer_reader_for(NULL);
    leat_error err = {0};
    run r;
    leati_layer *layer = NULL;
    json_t *value = NULL;
    leat_tensor tensor = leat_tensor_view(LEAT_F32, 4, (int64_t[]){SAMPLES, SIDE, SIDE, 1}, x);
    leati_value in, out;
    assert_ok(leati_json_parse(&value, config, strlen(config), &err), &err);
    assert_ok(leati_layer_create(&layer, leati_layer_find(class_name), value, &reader, &err), &err);
    run_begin(&r, &run_backends[0]);
    leati_lowering lowering = {.graph = r.graph, .mode = LEATI_TRAIN, .stream = 17};
    in = run_input(&r, &tensor);
    layer->type->lower(layer, &lowering, 1, &in, &out);
    leati_graph_keep(r.graph, out);
    const leati_plan_options options = {.threads = 1, .backends = run_backends[0].list, .arena = r.arena};
    assert_ok(leati_plan_create(&r.plan, &r.graph, &options, &err), &err);
    assert_ok(leati_plan_run(r.plan, r.inputs, 5, (uint64_t)step, &err), &err);
    memcpy(y, leati_plan_output(r.plan, out).data, SAMPLES * IMAGE * sizeof(float));
    run_end(&r);
    leati_layer_destroy(&layer);
    json_decref(value);
}

/* RandomBrightness adds one number to all pixels of an image, so that its draws can be read from the images. */
static void every_image_has_its_own_number(void **state) {
    (void)state;
    static float x[SAMPLES * IMAGE], y[SAMPLES * IMAGE], again[SAMPLES * IMAGE];
    static const char config[] = "{\"name\": \"b\", \"factor\": [-0.25, 0.5], \"value_range\": [-100, 100]}";
    double sum = 0, low = 1e9, high = -1e9;
    train_layer("RandomBrightness", config, x, y, 3);
    train_layer("RandomBrightness", config, x, again, 3);
    assert_memory_equal(y, again, sizeof y);
    train_layer("RandomBrightness", config, x, again, 4);
    assert_memory_not_equal(y, again, sizeof y);
    for (int i = 0; i < SAMPLES; ++i) {
        const double number = (double)y[i * IMAGE];
        for (int k = 0; k < IMAGE; ++k) assert_true((double)y[i * IMAGE + k] == number);
        sum += number;
        low = fmin(low, number);
        high = fmax(high, number);
    }
    assert_true(low >= -50 && low < -47 && high <= 100 && high > 97); /* -0.25 to 0.5, times 200 */
    assert_true(fabs(sum / SAMPLES - 25) < 8);                        /* 2.6 standard deviations */
}

/* Two numbers of RandomTranslation: of whole images, all pixels of which are one number, nothing moves. */
static void constant_images_stay(void **state) {
    (void)state;
    static const char *const layers[][2] = {
        {"RandomTranslation", "{\"name\": \"t\", \"height_factor\": 0.5, \"width_factor\": [0.1, 0.4]}"},
        {"RandomZoom", "{\"name\": \"z\", \"height_factor\": 0.5}"},
        {"RandomRotation", "{\"name\": \"r\", \"factor\": 0.5, \"fill_mode\": \"nearest\"}"},
        {"RandomContrast", "{\"name\": \"c\", \"factor\": 0.5}"}};
    static float x[SAMPLES * IMAGE], y[SAMPLES * IMAGE];
    for (int i = 0; i < SAMPLES * IMAGE; ++i) x[i] = (float)(i / IMAGE);
    for (size_t layer = 0; layer < sizeof layers / sizeof layers[0]; ++layer) {
        train_layer(layers[layer][0], layers[layer][1], x, y, 1);
        for (int i = 0; i < SAMPLES * IMAGE; ++i)
            if (!(fabs((double)y[i] - (double)x[i]) < 1e-3))
                fail_msg("%s: %g, expected %g", layers[layer][0], (double)y[i], (double)x[i]);
    }
}

/* A box of 2 x 2 pixels is erased in each image, at different positions. */
static void boxes_are_erased(void **state) {
    (void)state;
    static const char config[] = "{\"name\": \"e\", \"factor\": [1, 1], \"scale\": [0.25, 0.25], "
                                 "\"fill_value\": 5}";
    static const char half[] = "{\"name\": \"e\", \"factor\": [0.5, 0.5], \"value_range\": [2, 3]}";
    static float x[SAMPLES * IMAGE], y[SAMPLES * IMAGE];
    int first = 0, noise = 0;
    train_layer("RandomErasing", config, x, y, 1);
    for (int i = 0; i < SAMPLES; ++i) {
        int erased = 0;
        for (int k = 0; k < IMAGE; ++k) erased += y[i * IMAGE + k] == 5.0f;
        assert_int_equal(erased, 4);
        first += y[i * IMAGE + SIDE + 1] == 5.0f;
    }
    assert_in_range(first, SAMPLES * 15 / 100, SAMPLES * 35 / 100);
    train_layer("RandomErasing", half, x, y, 1);
    for (int i = 0; i < SAMPLES; ++i) {
        bool erased = false;
        for (int k = 0; k < IMAGE; ++k) {
            const float value = y[i * IMAGE + k];
            assert_true(value == 0 || (value >= 2 && value <= 3));
            erased = erased || value != 0;
        }
        noise += erased;
    }
    assert_in_range(noise, SAMPLES / 4, SAMPLES * 6 / 10); /* a small box may lie between pixels */
}

/* The highest number of bits is excluded; half of the images is distorted. */
static void numbers_are_drawn_from_the_range(void **state) {
    (void)state;
    static float x[SAMPLES * IMAGE], y[SAMPLES * IMAGE];
    int two = 0, moved = 0;
    for (int i = 0; i < SAMPLES * IMAGE; ++i) x[i] = 255;
    train_layer("RandomPosterization", "{\"name\": \"p\", \"factor\": [2, 4]}", x, y, 1);
    for (int i = 0; i < SAMPLES; ++i) {
        assert_true(y[i * IMAGE] == 192.0f || y[i * IMAGE] == 224.0f);
        two += y[i * IMAGE] == 192.0f;
    }
    assert_in_range(two, SAMPLES * 4 / 10, SAMPLES * 6 / 10);
    for (int i = 0; i < SAMPLES * IMAGE; ++i) x[i] = (float)(i * 37 % 256);
    train_layer("RandomSharpness", "{\"name\": \"s\", \"factor\": [0.5, 0.5]}", x, y, 1);
    for (int i = 0; i < SAMPLES * IMAGE; ++i) assert_true(fabs((double)y[i] - (double)x[i]) < 1e-3);
    train_layer("RandomPerspective", "{\"name\": \"p\", \"factor\": [0.5, 0.5]}", x, y, 1);
    for (int i = 0; i < SAMPLES; ++i) moved += memcmp(x + i * IMAGE, y + i * IMAGE, IMAGE * sizeof *x) != 0;
    assert_in_range(moved, SAMPLES * 4 / 10, SAMPLES * 6 / 10);
}

static void check_refused(const char *class_name, const char *config, const char *message) {
    const leati_layer_reader reader = leati_layer_reader_for(NULL);
    leat_error err = {0};
    leati_layer *layer = NULL;
    json_t *value = NULL;
    assert_ok(leati_json_parse(&value, config, strlen(config), &err), &err);
    assert_int_equal(leati_layer_create(&layer, leati_layer_find(class_name), value, &reader, &err),
                     LEAT_EINVAL);
    if (!strstr(err.message, message)) fail_msg("expected \"%s\" in: %s", message, err.message);
    json_decref(value);
}

static void wrong_options_are_refused(void **state) {
    (void)state;
    check_refused("RandomRotation", "{\"name\": \"r\", \"factor\": 2}",
                  "factor: expected a number from -1 to 1");
    check_refused("RandomContrast", "{\"name\": \"r\", \"factor\": -0.1}",
                  "factor: expected a number from 0 to 1");
    check_refused("RandomZoom", "{\"name\": \"r\", \"height_factor\": [0.1]}", "height_factor: expected");
    check_refused("RandomZoom", "{\"name\": \"r\", \"height_factor\": 0.1, \"fill_mode\": \"mirror\"}",
                  "fill_mode: expected one of Keras's names");
    check_refused("RandomPosterization", "{\"name\": \"r\", \"factor\": 9}",
                  "factor: expected a number from 1");
    check_refused("RandomPosterization", "{\"name\": \"r\", \"factor\": [0, 0.5]}", "numbers of bits from 1");
    check_refused("RandomGaussianBlur", "{\"name\": \"r\", \"kernel_size\": 4}",
                  "kernel_size: expected an odd");
    check_refused("RandomErasing", "{\"name\": \"r\", \"fill_value\": [1, 2]}", "fill_value: expected null");
    check_refused("RandomPerspective", "{\"name\": \"r\", \"scale\": 2}", "scale: expected a number");
    check_refused("RandomColorJitter", "{\"name\": \"r\", \"hue_factor\": 2}", "hue_factor: expected");
    check_refused("RandomBrightness", "{\"name\": \"r\", \"factor\": 0.1, \"value_range\": [1]}",
                  "value_range: expected a list of two numbers");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_moved_as_in_keras),
        cmocka_unit_test(colours_are_changed_as_in_keras),
        cmocka_unit_test(images_are_filtered_as_in_keras),
        cmocka_unit_test(images_are_distorted_as_in_keras),
        cmocka_unit_test(values_are_changed_as_in_keras),
        cmocka_unit_test(boxes_are_erased),
        cmocka_unit_test(numbers_are_drawn_from_the_range),
        cmocka_unit_test(every_image_has_its_own_number),
        cmocka_unit_test(constant_images_stay),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
