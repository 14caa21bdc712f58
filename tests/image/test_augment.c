/* SPDX-License-Identifier: Apache-2.0 */
/* Augmentation: the numbers of Keras for recorded parameters, kernels against the plain one, the text of steps, random
 * numbers. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "image/augment/augment.h"
#include "image/augment/run.h"
#include "image/augment/statistics.h"
#include "image/picture.h"

enum { LINE_BYTES = 1 << 16, MOST = 4096 };

static leat_augment *parsed(const char *steps, int64_t height, int64_t width, int64_t channels) {
    leat_augment *augment = NULL;
    leat_error err = {0};
    if (leat_augment_create(&augment, steps, height, width, channels, &err) != LEAT_OK)
        fail_msg("%s: %s", steps, err.message);
    return augment;
}

static void make_picture(unsigned char *pixels, int64_t count) {
    for (int64_t i = 0; i < count; ++i) pixels[i] = (unsigned char)((i * i * 37 + i * 11) % 256);
}

/* ---- Recorded results ---- */

/* Returns the number of `name=NUMBER` in a line, or `fallback`. */
static double value_of(const char *line, const char *name, double fallback) {
    char key[64];
    snprintf(key, sizeof key, " %s=", name);
    const char *at = strstr(line, key);
    return at ? strtod(at + strlen(key), NULL) : fallback;
}

static void check_values(const char *line, const char *values, const float *result, int64_t count,
                         double margin) {
    char *next = NULL;
    for (int64_t i = 0; i < count; ++i, values = next) {
        const double expected = strtod(values, &next);
        if (!(fabs(result[i] - expected) <= margin + 1e-5 * fabs(expected)))
            fail_msg("%s: value %lld is %g, expected %g", line, (long long)i, result[i], expected);
    }
}

/* Adds a step to a text and its numbers to the table. */
static void add(char *steps, double (*numbers)[LEATI_AUGMENT_MAX_DRAWS], int *count, const char *step,
                double a, double b) {
    sprintf(steps + strlen(steps), "%s%s", *count ? "," : "", step);
    numbers[*count][0] = a;
    numbers[(*count)++][1] = b;
}

/* Repeats one case of ImageDataGenerator, in whose order the steps are applied. */
static void check_case(const char *line, const char *values) {
    const int64_t h = (int64_t)value_of(line, "h", 0), w = (int64_t)value_of(line, "w", 0);
    const int64_t c = (int64_t)value_of(line, "c", 0);
    static const char *const fills[] = {"nearest", "constant", "reflect", "wrap"};
    double numbers[LEATI_AUGMENT_MAX_STEPS][LEATI_AUGMENT_MAX_DRAWS] = {0};
    char steps[2048] = "", one[128];
    int count = 0;
    for (int i = 0; i < 4; ++i) {
        snprintf(one, sizeof one, "fill_mode=%s ", fills[i]);
        if (strstr(line, one)) add(steps, numbers, &count, one, 0, 0);
    }
    snprintf(one, sizeof one, "cval=%g", value_of(line, "cval", 0));
    add(steps, numbers, &count, one, 0, 0);
    snprintf(one, sizeof one, "interpolation_order(%g)", value_of(line, "interpolation_order", 1));
    add(steps, numbers, &count, one, 0, 0);
    add(steps, numbers, &count, "rotation_range=1", value_of(line, "theta", 0), 0);
    add(steps, numbers, &count, "height_shift_range(1)", value_of(line, "tx", 0), 0);
    add(steps, numbers, &count, "width_shift_range(1)", value_of(line, "ty", 0), 0);
    add(steps, numbers, &count, "shear_range=1.0", value_of(line, "shear", 0), 0);
    add(steps, numbers, &count, "zoom_range=(0.5, 1)", value_of(line, "zx", 1), value_of(line, "zy", 1));
    if (strstr(line, "channel_shift"))
        add(steps, numbers, &count, "channel_shift_range=1", value_of(line, "channel_shift_intensity", 0), 0);
    add(steps, numbers, &count, "horizontal_flip", value_of(line, "flip_horizontal", 0), 0);
    add(steps, numbers, &count, "vertical_flip=True", value_of(line, "flip_vertical", 0), 0);
    if (strstr(line, "brightness"))
        add(steps, numbers, &count, "brightness_range=[1, 2]", value_of(line, "brightness", 0), 0);
    snprintf(one, sizeof one, "rescale=%.15g", value_of(line, "rescale", 1));
    if (strstr(line, "rescale="))
        add(steps, numbers, &count, strstr(one, "0.125") ? one : "rescale=1/255", 0, 0);
    if (strstr(line, "samplewise_center")) add(steps, numbers, &count, "samplewise_center", 0, 0);
    if (strstr(line, "samplewise_std")) add(steps, numbers, &count, "samplewise_std_normalization", 0, 0);

    leat_augment *augment = parsed(steps, h, w, c);
    unsigned char pixels[MOST];
    float result[MOST];
    leat_rng rng = leat_rng_for(1, 2, 3);
    leat_error err = {0};
    make_picture(pixels, h * w * c);
    const leati_augment_picture job = {
        .src = pixels, .channels = c, .numbers = numbers[0], .floats = result, .scale = 1};
    assert_int_equal(leati_augment_run(augment, &rng, 0, &job, &err), LEAT_OK);
    check_values(line, values, result, h * w * c, 1e-3);
    leat_augment_destroy(&augment);
}

static void numbers_are_those_of_image_data_generator(void **state) {
    (void)state;
    static char line[LINE_BYTES], values[LINE_BYTES];
    FILE *file = fopen(LEAT_SOURCE_DIR "/tests/golden/augment/generator.txt", "r");
    int cases = 0;
    assert_non_null(file);
    line[0] = ' ';
    for (; fgets(line + 1, sizeof line - 1, file) && fgets(values, sizeof values, file); ++cases) {
        line[strcspn(line, "\n")] = ' ';
        check_case(line, values);
    }
    fclose(file);
    assert_int_equal(cases, 82);
}

/* Repeats one case of Keras's layers: seed 5, pass 2, and the numbers that leat draws for the sample. */
static void check_layer(const char *line, const char *values) {
    enum { H = 7, W = 6, C = 3 };
    char *steps = NULL, *rest = NULL;
    const int64_t sample = strtol(line, &steps, 10), height = strtol(values, &rest, 10);
    const int64_t width = strtol(rest, &rest, 10);
    leat_augment *augment = parsed(steps, H, W, C);
    uint8_t pixels[H * W * C];
    float result[H * W * C];
    int64_t made[2] = {0};
    const leat_rng rng = leat_rng_for(5, 2, 0);
    leat_error err = {0};
    make_picture(pixels, H * W * C);
    leat_augment_output(augment, &made[0], &made[1], NULL);
    assert_true(made[0] == height && made[1] == width);
    assert_int_equal(leat_augment_apply_floats(augment, &rng, sample, pixels, 1, result, &err), LEAT_OK);
    check_values(line, rest, result, height * width * C, 5e-3);
    leat_augment_destroy(&augment);
}

static void numbers_are_those_of_keras_layers(void **state) {
    (void)state;
    static char line[LINE_BYTES], values[LINE_BYTES];
    FILE *file = fopen(LEAT_SOURCE_DIR "/tests/golden/augment/layers.txt", "r");
    int cases = 0;
    assert_non_null(file);
    for (; fgets(line, sizeof line, file) && fgets(values, sizeof values, file); ++cases) {
        line[strcspn(line, "\n")] = '\0';
        check_layer(line, values);
    }
    fclose(file);
    assert_int_equal(cases, 136);
}

/* ---- Statistics ---- */

/* Fills pictures with the sequence of record_augment_fit.py. */
static void make_sequence(unsigned char *pixels, int64_t count) {
    uint64_t x = 1;
    unsigned last = 0;
    for (int64_t i = 0; i < count; ++i) {
        x = (x * 1103515245 + 12345) % ((uint64_t)1 << 31);
        const unsigned value = (unsigned)(x / 65536 % 256);
        pixels[i] = (unsigned char)(i % 2 ? (value + last) / 2 : value);
        last = value;
    }
}

/* Gives the steps the statistics of the pictures. */
static void fit(leat_augment *augment, const unsigned char *pictures, int64_t count) {
    leati_moments moments;
    leati_statistics found;
    leat_error err = {0};
    static float floats[MOST];
    assert_int_equal(leati_moments_init(&moments, augment, &err), LEAT_OK);
    for (int64_t k = 0; k < count; ++k) {
        for (int64_t i = 0; i < moments.values; ++i) floats[i] = (float)pictures[k * moments.values + i];
        const leati_channel_sums sums = leati_channel_sums_of(floats, moments.values, moments.channels);
        for (int64_t c = 0; c < moments.channels; ++c) {
            moments.channel.sum[c] += sums.sum[c];
            moments.channel.square[c] += sums.square[c];
        }
        for (int64_t i = 0; moments.products && i < moments.values; ++i)
            leati_moments_add_row(&moments, i, floats, 1);
    }
    moments.samples = count;
    assert_int_equal(leati_statistics_compute(&found, augment, &moments, NULL, &err), LEAT_OK);
    leati_statistics_set(augment, &found);
    leati_moments_fini(&moments);
}

/* Repeats one case of ImageDataGenerator.fit. */
static void check_fit(const char *line, const char *values) {
    static unsigned char pictures[150 * 36];
    char *rest = NULL;
    const int64_t count = strtol(line, &rest, 10), height = strtol(rest, &rest, 10);
    const int64_t width = strtol(rest, &rest, 10), channels = strtol(rest, &rest, 10);
    const int64_t size = height * width * channels;
    leat_augment *augment = parsed(rest, height, width, channels);
    float result[MOST];
    const leat_rng rng = leat_rng_for(1, 2, 3);
    leat_error err = {0};
    make_sequence(pictures, count * size);
    assert_true(leati_statistics_missing(augment));
    assert_int_equal(leat_augment_apply(augment, &rng, 0, pictures, result, &err), LEAT_EINVAL);
    fit(augment, pictures, count);
    assert_false(leati_statistics_missing(augment));
    assert_int_equal(leat_augment_apply(augment, &rng, 0, pictures + 3 * size, result, &err), LEAT_OK);
    check_values(line, values, result, size, 1e-3);
    leat_augment_destroy(&augment);
}

static void statistics_are_those_of_image_data_generator(void **state) {
    (void)state;
    static char line[LINE_BYTES], values[LINE_BYTES];
    FILE *file = fopen(LEAT_SOURCE_DIR "/tests/golden/augment/fit.txt", "r");
    int cases = 0;
    assert_non_null(file);
    for (; fgets(line, sizeof line, file) && fgets(values, sizeof values, file); ++cases) {
        line[strcspn(line, "\n")] = '\0';
        check_fit(line, values);
    }
    fclose(file);
    assert_int_equal(cases, 8);
}

/* The matrix W of a symmetric matrix M solves W (M + epsilon) W = 1. */
static void whitening_is_an_inverse_square_root(void **state) {
    (void)state;
    enum { N = 61, RANK = 40 };
    static double matrix[N * N], copy[N * N], half[N * N], factor[N * RANK];
    static float root[N * N];
    leat_rng rng = leat_rng_for(3, 0, 0);
    for (int i = 0; i < N * RANK; ++i) factor[i] = leat_rng_normal(&rng);
    for (int i = 0; i < N; ++i)
        for (int j = 0; j < N; ++j)
            for (int k = 0; k < RANK; ++k) matrix[i * N + j] += factor[i * RANK + k] * factor[j * RANK + k];
    memcpy(copy, matrix, sizeof copy);
    for (int i = 0; i < N; ++i) copy[i * N + i] += 0.25;
    assert_int_equal(leati_whitening_compute(matrix, N, 0.25, root, NULL, NULL), LEAT_OK);
    for (int i = 0; i < N; ++i)
        for (int j = 0; j < N; ++j)
            for (int k = 0; k < N; ++k) half[i * N + j] += (double)root[i * N + k] * copy[k * N + j];
    for (int i = 0; i < N; ++i)
        for (int j = 0; j < N; ++j) {
            double product = 0;
            for (int k = 0; k < N; ++k) product += half[i * N + k] * (double)root[k * N + j];
            assert_true(fabs(product - (i == j)) < 1e-4);
        }
}

/* ---- Kernels ---- */

/* Runs the kernel for an instruction set; NULL: the highest one that the CPU has. */
static void sample_with(const char *isa, leati_sample_job *job, float *dst) {
    if (isa)
        setenv("LEAT_MAX_ISA", isa, 1);
    else
        unsetenv("LEAT_MAX_ISA");
    job->dst = dst;
    leati_sample_choose()(job);
    unsetenv("LEAT_MAX_ISA");
}

/* Most pictures have sizes that agree with no vector; some have one line or one column. */
static void kernels_give_the_same_bits(void **state) {
    (void)state;
    enum { H = 23, W = 37, DH = 19, DW = 41, CASES = 1200 };
    static const char *const isas[] = {"avx2", NULL};
    static unsigned char bytes[H * W * 4 + LEATI_PICTURE_SLACK];
    static float floats[H * W * 4], plain[DH * DW * 4], fast[DH * DW * 4];
    leat_rng rng = leat_rng_for(7, 0, 0);
    for (int i = 0; i < H * W * 4; ++i) {
        bytes[i] = (unsigned char)leat_rng_u32(&rng);
        floats[i] = (float)(leat_rng_uniform(&rng) * 300 - 20);
    }
    for (int i = 0; i < CASES; ++i) {
        leati_sample_job job = {.height = i % 17 == 3 ? 1 : H,
                                .width = i % 19 == 5 ? 1 : W,
                                .channels = (int64_t[]){1, 3, 4, 2}[i % 16 == 15 ? 3 : i % 3]};
        if (i % 2)
            job.bytes = bytes;
        else
            job.floats = floats;
        job.dst_height = DH;
        job.dst_width = DW - i % 5;
        job.sampling = (leati_sampling){(leati_fill)(i / 6 % 4), i / 24 % 3 != 0, 3.5f, i / 72 % 2 != 0};
        const double shift = i % 23 == 7 ? 1e10 : i % 7 == 1 ? 300 : 30;
        for (int k = 0; k < 3; ++k) {
            job.affine.x[k] = (leat_rng_uniform(&rng) - 0.5) * (k == 2 ? shift : 3);
            job.affine.y[k] = (leat_rng_uniform(&rng) - 0.5) * (k == 2 ? shift : 3);
        }
        if (i < 100) job.affine = (leati_affine){{1 - 2 * (i % 3 == 0), 0, i % 4}, {0, 0.9, 1}};
        sample_with("base", &job, plain);
        for (size_t k = 0; k < sizeof isas / sizeof *isas; ++k) {
            memset(fast, 0, sizeof fast);
            sample_with(isas[k], &job, fast);
            assert_memory_equal(plain, fast,
                                (size_t)(job.dst_height * job.dst_width * job.channels) * sizeof(float));
        }
    }
}

/* The vectorized rounding to bytes is the one of the plain loop, which a short count runs. */
static void rounding_gives_the_same_bytes(void **state) {
    (void)state;
    enum { COUNT = 101 };
    static const float special[] = {-1000.0f, INFINITY, -INFINITY, -0.5f,   -0.6f, 254.5f,
                                    255.4f,   255.6f,   1e20f,     0.4999f, 0.5f};
    float values[COUNT];
    unsigned char fast[COUNT], plain[COUNT];
    leat_rng rng = leat_rng_for(3, 0, 0);
    for (int i = 0; i < COUNT; ++i) values[i] = (float)(leat_rng_uniform(&rng) * 400 - 70);
    for (size_t i = 0; i < sizeof special / sizeof *special; ++i) values[7 * i] = special[i];
    leati_sample_round(fast, values, COUNT);
    for (int i = 0; i < COUNT; ++i) leati_sample_round(plain + i, values + i, 1);
    assert_memory_equal(plain, fast, COUNT);
    assert_int_equal(plain[0], 0);
    assert_int_equal(plain[7], 255);
}

/* ---- Texts ---- */

static void refused(const char *steps, const char *text) {
    leat_augment *augment = NULL;
    leat_error err = {0};
    const leat_status status = leat_augment_create(&augment, steps, 8, 8, 3, &err);
    if (status != LEAT_EINVAL || !strstr(err.message, text))
        fail_msg("%s: expected '%s' in '%s'", steps, text, err.message);
    assert_null(augment);
}

static void texts_of_steps(void **state) {
    (void)state;
    static const char *const good[] = {
        "flip",
        "flip,rotate(15),zoom(0.1)",
        " flip ( both ) , zoom ( 0.8 , 1.2 ) ",
        "zoom_range=[0.8, 1.2],horizontal_flip=True",
        "RandomRotation(factor=(-0.1, 0.2), fill_mode=\"constant\", fill_value=3.5)",
        "RandomZoom(0.2, 0.1, 'wrap')",
        "shift(3),width_shift_range=[1,2,3],height_shift_range=0.25",
        "CenterCrop(4,4),RandomFlip('horizontal')",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; ++i) {
        leat_augment *augment = parsed(good[i], 8, 8, 3);
        leat_augment_destroy(&augment);
    }
    refused("", "expected the name of a step");
    refused("flop", "no step 'flop': did you mean 'flip'?");
    refused("flip,", "expected the name of a step");
    refused("flip rotate(3)", "expected a comma and a step before 'rotate(3)'");
    refused("rotate", "rotate needs the argument degrees");
    refused("rotate(a)", "degrees expects a number, received 'a)'");
    refused("rotate(15", "rotate: expected , or ) before ''");
    refused("rotate(15,2)", "rotate expects at most 1 arguments, received more");
    refused("rotate(400)", "degrees expects numbers from 0 to 360, received 400");
    refused("rotate(degrees=1,degrees=2)", "degrees is given twice");
    refused("rotate(angle=1)", "rotate has no argument 'angle'");
    refused("zoom(1,2,3)", "zoom expects a number or two");
    refused("brightness_range=0.5", "brightness_range expects two numbers");
    refused("fill_mode=mirror", "fill_mode expects one of the words nearest constant reflect wrap");
    refused("RandomCrop(9,4)", "expected a size of at most the picture's, 8 x 8, received 9 x 4");
    refused("flip=3", "mode expects one of the words");
    refused("horizontal_flip=yes", "expects true or false, received 'yes'");
    refused("featurewise_std_normalization", "expects featurewise_center immediately before it");
    refused("featurewise_center,flip,zca_whitening", "expects featurewise_center immediately before it");
    refused("featurewise_center,featurewise_std_normalization,zca_whitening", "takes the place of");
    refused("featurewise_center,featurewise_center", "expected featurewise_center once");
    refused("Resizing(65,64),featurewise_center,zca_whitening", "expects pictures of at most 4096 values");
    refused("featurewise_center=maybe", "mean expects a number or a list of numbers");
    refused("AugMix(num_chains=8,chain_depth=8)", "expects num_chains * chain_depth of at most 16");
    refused("RandAugment(2)", "factor expects numbers from 0 to 1, received 2");
    refused("rescale=1/0", "expects a number");
    refused("width_shift_range=[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]", "a list of numbers");
}

/* ---- Random numbers ---- */

static char *explained(const leat_augment *augment, uint64_t seed, uint64_t pass, int64_t sample) {
    const leat_rng rng = leat_rng_for(seed, pass, 77);
    char *text = NULL;
    assert_int_equal(leat_augment_explain(augment, &rng, sample, &text, NULL), LEAT_OK);
    return text;
}

/* docs/decisions/0603 gives this formula. */
static void numbers_can_be_predicted(void **state) {
    (void)state;
    leat_augment *augment = parsed("flip,rotate(10)", 8, 8, 3);
    leat_rng rng = leat_rng_for(leat_rng_for(5, 2, 0).key, 0x6175676d656e74, 1234);
    char expected[256], *text = explained(augment, 5, 2, 1234);
    rng.counter[0] = (uint64_t)1 << 32;
    snprintf(expected, sizeof expected, "{\"step\": \"rotate\", \"theta\": %.17g}]",
             -10 + 20 * leat_rng_uniform(&rng));
    if (!strstr(text, expected)) fail_msg("expected '%s' in '%s'", expected, text);
    for (int i = 0; i < 3; ++i) {
        char *other = explained(augment, 5 + (i == 0), 2 + (uint64_t)(i == 1), 1234 + (i == 2));
        assert_string_not_equal(other, text);
        leati_free(other);
    }
    leati_free(text);
    leat_augment_destroy(&augment);
}

/* Checks the ranges and the mean of what a step draws. */
static void ranges_are_those_of_the_arguments(void **state) {
    (void)state;
    static const struct {
        const char *steps;
        double low, high, mean;
    } cases[] = {
        {"rotate(10)", -10, 10, 0},
        {"width_shift_range=0.5", -10, 10, 0},
        {"width_shift_range=5", -4, 4, 0},
        {"width_shift_range=5.0", -5, 5, 0},
        {"width_shift_range=[3,7]", -7, 7, 0},
        {"zoom_range=0.25", 0.75, 1.25, 1},
        {"zoom(0.5,0.7)", 0.5, 0.7, 0.6},
        {"horizontal_flip", 0, 1, 0.5},
        {"RandomRotation(0.1)", -36, 36, 0},
        {"RandomRotation((0.1,0.2))", 36, 72, 54},
        {"RandomTranslation(0.5,0)", -5, 5, 0},
        {"RandomZoom((-0.3,-0.1))", 0.7, 0.9, 0.8},
        {"RandomShear(0.2)", -0.2, 0.2, 0},
        {"RandomFlip", 0, 1, 0.5},
        {"RandomCrop(4,20)", 0, 6, 3},
    };
    enum { SAMPLES = 4000 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        leat_augment *augment = parsed(cases[i].steps, 10, 20, 3);
        double sum = 0, low = 1e9, high = -1e9;
        for (int64_t k = 0; k < SAMPLES; ++k) {
            char *text = explained(augment, 1, 0, k);
            const double value = strtod(strstr(strstr(text, ", ") + 2, ": ") + 2, NULL);
            sum += value / SAMPLES;
            low = fmin(low, value);
            high = fmax(high, value);
            leati_free(text);
        }
        const double width = cases[i].high - cases[i].low;
        if (low < cases[i].low || high > cases[i].high || low > cases[i].low + 0.05 * width ||
            high < cases[i].high - 0.05 * width || fabs(sum - cases[i].mean) > 0.05 * width)
            fail_msg("%s: from %g to %g, mean %g", cases[i].steps, low, high, sum);
        leat_augment_destroy(&augment);
    }
}

/* ---- Public functions ---- */

/* Checks that a mask moves as `geometry` moves a picture whose channels are the mask. */
static void check_mask(const char *steps, const char *geometry) {
    enum { SIDE = 16 };
    unsigned char picture[SIDE * SIDE * 3], mask[SIDE * SIDE], moved[SIDE * SIDE * 3], labels[SIDE * SIDE];
    leat_augment *augment = parsed(steps, SIDE, SIDE, 3), *alone = parsed(geometry, SIDE, SIDE, 3);
    int changed = 0;
    for (int i = 0; i < SIDE * SIDE; ++i) {
        mask[i] = (unsigned char)(i % 7);
        memset(picture + (ptrdiff_t)3 * i, mask[i], 3);
    }
    for (int64_t k = 0; k < 20; ++k) {
        const leat_rng rng = leat_rng_for(1, 1, 0);
        assert_int_equal(leat_augment_apply_mask(augment, &rng, k, mask, labels, NULL), LEAT_OK);
        assert_int_equal(leat_augment_apply(alone, &rng, k, picture, moved, NULL), LEAT_OK);
        for (int i = 0; i < SIDE * SIDE; ++i) assert_int_equal(labels[i], moved[(ptrdiff_t)3 * i]);
        changed += memcmp(mask, labels, sizeof mask) != 0;
    }
    assert_true(changed > 0);
    leat_augment_destroy(&augment);
    leat_augment_destroy(&alone);
}

static void masks_move_with_pictures(void **state) {
    (void)state;
    check_mask("flip(both),width_shift_range=4,brightness_range=(2,3)", "flip(both),width_shift_range=4");
    check_mask("RandomPerspective", "RandomPerspective(interpolation=nearest)");
    check_mask("RandomElasticTransform,RandomContrast(0.5)", "RandomElasticTransform(interpolation=nearest)");
}

static void results_are_bytes_or_floats(void **state) {
    (void)state;
    enum { SIDE = 8, COUNT = SIDE * SIDE * 3 };
    unsigned char picture[COUNT], bytes[COUNT];
    float floats[COUNT];
    const leat_rng rng = leat_rng_for(1, 1, 0);
    int64_t height = 0, width = 0;
    bool is_float = false;
    make_picture(picture, COUNT);
    leat_augment *augment = parsed("rotate(30),zoom(0.3)", SIDE, SIDE, 3);
    assert_int_equal(leat_augment_apply(augment, &rng, 3, picture, bytes, NULL), LEAT_OK);
    assert_int_equal(leat_augment_apply_floats(augment, &rng, 3, picture, 0.5, floats, NULL), LEAT_OK);
    for (int i = 0; i < COUNT; ++i) assert_true(fabs(2 * floats[i] - bytes[i]) <= 0.5);
    leat_augment_destroy(&augment);
    augment = parsed("RandomCrop(4,5),rescale=1/255", SIDE, SIDE, 3);
    leat_augment_output(augment, &height, &width, &is_float);
    assert_true(height == 4 && width == 5 && is_float);
    assert_int_equal(leat_augment_apply(augment, &rng, 3, picture, floats, NULL), LEAT_OK);
    for (int i = 0; i < 4 * 5 * 3; ++i) assert_true(floats[i] >= 0 && floats[i] <= 1);
    leat_augment_destroy(&augment);
}

static void channels_are_centered_and_scaled(void **state) {
    (void)state;
    enum { COUNT = 2 * 2 * 3 };
    uint8_t picture[COUNT];
    float floats[COUNT];
    const leat_rng rng = leat_rng_for(1, 1, 0);
    make_picture(picture, COUNT);
    leat_augment *augment =
        parsed("featurewise_center(10.5,20,30),featurewise_std_normalization(4)", 2, 2, 3);
    assert_int_equal(leat_augment_apply(augment, &rng, 0, picture, floats, NULL), LEAT_OK);
    for (int i = 0; i < COUNT; ++i) {
        const double mean = (double[]){10.5, 20, 30}[i % 3];
        assert_true(fabs(floats[i] - (picture[i] - mean) / (4 + 1e-6)) < 1e-4);
    }
    leat_augment_destroy(&augment);
    refused("featurewise_center(1,2)", "expects a number, or one for each of 3 channels, received 2");
}

static void pictures_are_decoded_and_resized(void **state) {
    (void)state;
    static const char file[] = "P6 2 1 255\n\x01\x02\x03\x0b\x0c\x0d";
    leat_picture picture, small;
    leat_error err = {0};
    leat_picture_options options = leat_picture_options_default();
    assert_int_equal(leat_picture_decode(&picture, file, sizeof file - 1, NULL, &err), LEAT_OK);
    assert_true(picture.width == 2 && picture.height == 1 && picture.channels == 3 &&
                picture.pixels[3] == 11);
    assert_int_equal(leat_picture_resize(&small, &picture, 3, 4, "nearest", NULL, &err), LEAT_OK);
    assert_true(small.width == 4 && small.height == 3 && small.pixels[6] == 11);
    leat_picture_destroy(&small);
    assert_int_equal(leat_picture_resize(&small, &picture, 3, 4, "cubic", NULL, &err), LEAT_EINVAL);
    assert_null(small.pixels);
    leat_picture_destroy(&picture);
    options.channels = 2;
    assert_int_equal(leat_picture_decode(&picture, file, sizeof file - 1, &options, &err), LEAT_EINVAL);
    options.channels = 1;
    options.max_pixels = 1;
    assert_int_equal(leat_picture_decode(&picture, file, sizeof file - 1, &options, &err), LEAT_ESHAPE);
    assert_null(picture.pixels);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_image_data_generator),
        cmocka_unit_test(numbers_are_those_of_keras_layers),
        cmocka_unit_test(statistics_are_those_of_image_data_generator),
        cmocka_unit_test(whitening_is_an_inverse_square_root),
        cmocka_unit_test(kernels_give_the_same_bits),
        cmocka_unit_test(rounding_gives_the_same_bytes),
        cmocka_unit_test(texts_of_steps),
        cmocka_unit_test(numbers_can_be_predicted),
        cmocka_unit_test(ranges_are_those_of_the_arguments),
        cmocka_unit_test(masks_move_with_pictures),
        cmocka_unit_test(results_are_bytes_or_floats),
        cmocka_unit_test(channels_are_centered_and_scaled),
        cmocka_unit_test(pictures_are_decoded_and_resized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
