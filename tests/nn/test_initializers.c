/* SPDX-License-Identifier: Apache-2.0 */
/* Initializers: the distribution that Keras 2.3.1 asks its random generator for, compared with the numbers that
 * leat draws. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat/model.h"
#include "nn/initializers/types.h"
#include "nn/run.h"
#include "support/golden.h"

#define DRAWS                                                                                                \
    20000 /* numbers per statistic; the bounds below are about five standard deviations of the estimate */

/* The mean, deviation and bounds of many numbers. */
typedef struct moments {
    double mean, deviation, least, most;
} moments;

static moments moments_of(const float *numbers, int64_t count) {
    moments m = {0.0, 0.0, (double)INFINITY, -(double)INFINITY};
    for (int64_t i = 0; i < count; ++i) {
        m.mean += (double)numbers[i] / (double)count;
        m.least = fmin(m.least, (double)numbers[i]);
        m.most = fmax(m.most, (double)numbers[i]);
    }
    for (int64_t i = 0; i < count; ++i) {
        m.deviation += pow((double)numbers[i] - m.mean, 2.0) / (double)count;
    }
    m.deviation = sqrt(m.deviation);
    return m;
}

static int64_t product(int rank, const int64_t *dims) {
    int64_t count = 1;
    for (int i = 0; i < rank; ++i) {
        count *= dims[i];
    }
    return count;
}

/* Draws weights of a shape, each from another stream, until there are DRAWS numbers. */
static float *draw_many(const leati_initializer *initializer, int rank, const int64_t *dims, int64_t *count) {
    leat_error err = {0};
    int64_t each = product(rank, dims), times = DRAWS / each + 1;
    float *numbers = malloc((size_t)(each * times) * sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t i = 0; i < times; ++i) {
        assert_ok(leati_initializer_draw(initializer, rank, dims, 7, (uint64_t)i, numbers + i * each, &err),
                  &err);
    }
    *count = each * times;
    return numbers;
}

static void check_uniform(const moments *m, float low, float high) {
    double width = (double)high - (double)low, slack = 0.02 * width;
    assert_true(m->least >= (double)low - 1e-6 * width && m->most <= (double)high + 1e-6 * width);
    assert_true(fabs(m->mean - ((double)low + (double)high) / 2.0) < slack);
    assert_true(fabs(m->deviation - width / sqrt(12.0)) < slack);
    assert_true(m->least < (double)low + slack && m->most > (double)high - slack);
}

static void check_normal(const moments *m, float mean, float deviation, bool truncated) {
    double sigma = (double)deviation, expected = sigma * (truncated ? 0.87962566103423978 : 1.0);
    assert_true(fabs(m->mean - (double)mean) < 0.04 * sigma);
    assert_true(fabs(m->deviation - expected) < 0.03 * sigma);
    double reach = fmax(m->most - (double)mean, (double)mean - m->least) / sigma;
    assert_true(truncated ? reach <= 2.0 + 1e-6 && reach > 1.98 : reach > 3.0);
}

/* Checks that rows or columns are orthonormal, times the gain. */
static void check_orthogonal(const float *q, int rank, const int64_t *dims, double gain) {
    int64_t columns = dims[rank - 1], rows = product(rank - 1, dims);
    bool tall = rows >= columns;
    int64_t count = tall ? columns : rows, length = tall ? rows : columns;
    for (int64_t i = 0; i < count; ++i) {
        for (int64_t j = 0; j < count; ++j) {
            double dot = 0.0;
            for (int64_t k = 0; k < length; ++k) {
                double a = (double)(tall ? q[k * columns + i] : q[i * columns + k]);
                double b = (double)(tall ? q[k * columns + j] : q[j * columns + k]);
                dot += a * b;
            }
            assert_true(fabs(dot - (i == j ? gain * gain : 0.0)) < 1e-5 * gain * gain);
        }
    }
}

static void check_shape(const golden *g, const leati_initializer *initializer, int index, int rank,
                        const int64_t *dims) {
    leat_error err = {0};
    const char *distribution = golden_text(g, "distribution");
    leat_tensor expected;
    float one[1024];
    assert_true(product(rank, dims) <= 1024);
    assert_ok(leati_initializer_draw(initializer, rank, dims, 7, 0, one, &err), &err);
    if (golden_member(g, "value", index, &expected)) {
        golden_compare(g, "value", one, expected.data, product(rank, dims), GOLDEN_TOLERANCE);
        return;
    }
    const json_t *config = json_object_get(json_object_get(g->meta, "initializer"), "config");
    if (strcmp(distribution, "orthogonal") == 0) {
        check_orthogonal(one, rank, dims, json_number_value(json_object_get(config, "gain")));
        return;
    }
    if (json_is_integer(json_object_get(config, "seed"))) return; /* every draw would be the same */
    int64_t count;
    float *numbers = draw_many(initializer, rank, dims, &count);
    const moments m = moments_of(numbers, count);
    const float *params = (const float *)test_npz_get(g->npz, "params").data + 2 * index;
    if (strcmp(distribution, "uniform") == 0) {
        check_uniform(&m, params[0], params[1]);
    } else {
        check_normal(&m, params[0], params[1], strcmp(distribution, "truncated_normal") == 0);
    }
    free(numbers);
}

static void check(const char *name, void *user) {
    golden g;
    leat_error err = {0};
    leati_initializer *initializer = NULL;
    json_t *written = NULL;
    golden_open(&g, "initializers", name);
    const json_t *given = json_object_get(g.meta, "initializer");
    assert_ok(leati_initializer_read(&initializer, given, &err), &err);
    assert_ok(leati_initializer_write(initializer, &written, &err), &err);
    assert_string_equal(json_string_value(json_object_get(written, "class_name")),
                        json_string_value(json_object_get(given, "class_name")));
    json_decref(written);
    const json_t *shapes = json_object_get(g.meta, "shapes");
    for (size_t i = 0; i < json_array_size(shapes); ++i) {
        int64_t dims[8];
        const json_t *shape = json_array_get(shapes, i);
        int rank = (int)json_array_size(shape);
        for (int j = 0; j < rank; ++j) {
            dims[j] = json_integer_value(json_array_get(shape, (size_t)j));
        }
        check_shape(&g, initializer, (int)i, rank, dims);
    }
    leati_initializer_destroy(&initializer);
    golden_close(&g);
    ++*(int *)user;
}

static void test_distributions(void **state) {
    (void)state;
    int cases = 0;
    golden_each("initializers", check, &cases);
    assert_true(cases >= 25);
}

static leat_status read_text(leati_initializer **out, const char *text, leat_error *err) {
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    leat_status status = leati_initializer_read(out, value, err);
    json_decref(value);
    return status;
}

/* (seed, stream) decides the numbers, unless the configuration has a seed. */
static void test_seeds(void **state) {
    (void)state;
    leat_error err = {0};
    static const char *const texts[] = {"\"glorot_uniform\"",
                                        "{\"class_name\": \"RandomNormal\", \"config\": {\"seed\": 5}}"};
    const int64_t dims[] = {4, 3};
    for (int own = 0; own < 2; ++own) {
        leati_initializer *initializer = NULL;
        float a[12], same[12], stream[12], seed[12];
        assert_ok(read_text(&initializer, texts[own], &err), &err);
        assert_ok(leati_initializer_draw(initializer, 2, dims, 1, 2, a, &err), &err);
        assert_ok(leati_initializer_draw(initializer, 2, dims, 1, 2, same, &err), &err);
        assert_ok(leati_initializer_draw(initializer, 2, dims, 1, 3, stream, &err), &err);
        assert_ok(leati_initializer_draw(initializer, 2, dims, 2, 2, seed, &err), &err);
        assert_memory_equal(a, same, sizeof a);
        assert_int_equal(memcmp(a, stream, sizeof a) == 0, own);
        assert_int_equal(memcmp(a, seed, sizeof a) == 0, own);
        leati_initializer_destroy(&initializer);
    }
}

static void test_names(void **state) {
    (void)state;
    leat_error err = {0};
    for (int i = 0; leati_initializer_name_at(i); ++i) {
        leati_initializer *initializer = NULL;
        json_t *name = json_string(leati_initializer_name_at(i));
        assert_ok(leati_initializer_read(&initializer, name, &err), &err);
        leati_initializer_destroy(&initializer);
        json_decref(name);
    }
    leati_initializer *initializer = &(leati_initializer){0};
    assert_ok(read_text(&initializer, "null", &err), &err);
    assert_null(initializer);
}

static void test_errors(void **state) {
    (void)state;
    static const struct {
        const char *text;
        leat_status status;
        const char *says;
    } rows[] = {
        {"\"glorot_unifrom\"", LEAT_ENOTFOUND, "did you mean 'glorot_uniform'?"},
        {"{\"class_name\": \"VarianceScaling\", \"config\": {\"scale\": 0}}", LEAT_EINVAL, "scale > 0"},
        {"{\"class_name\": \"VarianceScaling\", \"config\": {\"mode\": \"fan\"}}", LEAT_EINVAL, "mode"},
        {"{\"class_name\": \"RandomNormal\", \"config\": {\"stddev\": -1}}", LEAT_EINVAL, "stddev"},
        {"{\"class_name\": \"Zeros\", \"config\": {\"value\": 1}}", LEAT_ENOTSUP, "value"},
        {"[]", LEAT_EINVAL, "expected a name"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        leat_error err = {0};
        leati_initializer *initializer = NULL;
        assert_int_equal(read_text(&initializer, rows[i].text, &err), rows[i].status);
        assert_non_null(strstr(err.message, rows[i].says));
        assert_null(initializer);
    }
    const int64_t dims[] = {2, 2, 2};
    static const char *const picky[] = {"\"identity\"", "\"orthogonal\""};
    for (int i = 0; i < 2; ++i) {
        leat_error err = {0};
        leati_initializer *initializer = NULL;
        float out[8];
        assert_ok(read_text(&initializer, picky[i], &err), &err);
        assert_int_equal(leati_initializer_draw(initializer, i == 0 ? 3 : 1, dims, 0, 0, out, &err),
                         LEAT_ESHAPE);
        leati_initializer_destroy(&initializer);
    }
}

/* Checks elements 4, 5 and 7 of the kernels of an STFTSpectrogram against Keras 3.15. */
static void check_kernels(const char *options, const float want[2][3]) {
    static const int places[] = {4, 5, 7};
    char json[1024];
    leat_error err = {0};
    leat_model *model = NULL;
    snprintf(
        json, sizeof json,
        "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": [{\"class_name\": "
        "\"STFTSpectrogram\", \"config\": {\"name\": \"it\", \"batch_input_shape\": [null, 20, 1], %s}}]}}",
        options);
    assert_ok(leat_model_from_json(&model, json, &err), &err);
    assert_int_equal(leat_model_weight_count(model), 2);
    for (int side = 0; side < 2; ++side) {
        const leat_tensor kernel = leat_model_weight(model, side);
        for (int i = 0; i < 3; ++i) {
            const double got = (double)((const float *)kernel.data)[places[i]];
            if (!(fabs(got - (double)want[side][i]) < 1e-6))
                fail_msg("%s: kernel %d has %.8g at %d, expected %.8g", options, side, got, places[i],
                         (double)want[side][i]);
        }
    }
    leat_model_destroy(&model);
}

static void test_fourier_kernels(void **state) {
    (void)state;
    check_kernels("\"frame_length\": 5", (const float[2][3]){{0, 0.4082483f, 0}, {0, 0, -0.4082483f}});
    check_kernels(
        "\"frame_length\": 4, \"periodic\": true, \"scaling\": \"spectrum\", \"window\": \"hamming\", "
        "\"fft_length\": 6",
        (const float[2][3]){{0.25f, 0.125f, -0.25f}, {0, -0.21650641f, 0}});
    check_kernels("\"frame_length\": 3, \"window\": \"blackman\", \"fft_length\": 4",
                  (const float[2][3]){{0, -1, 0}, {-1, 0, 0}});
    check_kernels("\"frame_length\": 3, \"window\": null", (const float[2][3]){{0, -1, -1}, {-1, 0, 0}});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distributions),   cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_names),           cmocka_unit_test(test_errors),
        cmocka_unit_test(test_fourier_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
