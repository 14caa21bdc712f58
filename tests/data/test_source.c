/* SPDX-License-Identifier: Apache-2.0 */
/* Sources give the batches of the data that a SPEC names, converted as documented; errors have a message. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/files.h"
#include "data/idx.h"
#include "data/spec.h"
#include "leat/npz.h"
#include "leat/source.h"
#include "tensor/number.h"

static bytes file;

/* ---- Batches in order, as the feed would request them ---- */

typedef struct taken {
    leat_batch batch;
    void *memory[LEAT_BATCH_MAX_TENSORS];
} taken;

static leat_status take(leat_sequence *s, int64_t index, uint64_t pass, taken *out, leat_error *err) {
    leat_rng rng = leat_rng_for(5, pass, (uint64_t)index);
    *out = (taken){.batch = {.size = s->spec.batch_size, .tensor_count = s->spec.tensor_count}};
    for (int k = 0; k < s->spec.tensor_count; ++k) {
        const leat_tensor_spec *spec = &s->spec.tensors[k];
        leat_tensor *t = &out->batch.tensors[k];
        *t = (leat_tensor){.dtype = spec->dtype, .rank = spec->rank + 1, .shape = {s->spec.batch_size}};
        for (int i = 0; i < spec->rank; ++i) t->shape[i + 1] = spec->shape[i];
        t->data = out->memory[k] = malloc(leat_tensor_bytes(t)); /* exact size, for the sanitizers */
    }
    return s->get(s->user, index, &rng, &out->batch, err);
}

static void give(taken *t) {
    for (int k = 0; k < t->batch.tensor_count; ++k) free(t->memory[k]);
}

static leat_sequence open_spec(const char *spec, int64_t batch_size) {
    leat_sequence s;
    leat_error err = {0};
    leat_source_options options = leat_source_options_default();
    options.batch_size = batch_size;
    if (leat_source_open(&s, sizeof s, spec, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
    return s;
}

static void refused(const char *spec, leat_status status, const char *says) {
    leat_sequence s;
    leat_error err = {0};
    leat_status got = leat_source_open(&s, sizeof s, spec, NULL, &err);
    if (got != status || !strstr(err.message, says))
        fail_msg("%s: %s '%s'", spec, leat_status_name(got), err.message);
    assert_int_equal(s.size, 0);
}

/* ---- Arrays ---- */

static void arrays_come_in_batches_with_a_short_last_one(void **state) {
    (void)state;
    float x[10][2], w[10];
    int64_t y[10];
    for (int i = 0; i < 10; ++i)
        x[i][0] = (float)i, x[i][1] = (float)-i, y[i] = 10 * i, w[i] = 0.5f * (float)i;
    leat_array input = {.name = "a", .tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){10, 2}, x)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_I64, 1, (int64_t[]){10}, y)};
    leat_array weight = {.name = "", .tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){10}, w)};
    leat_arrays arrays = {&input, &target, &weight, 1, 1, 1};
    leat_source_options options = leat_source_options_default();
    options.batch_size = 4;
    leat_sequence s;
    leat_error err = {0};
    assert_int_equal(leat_arrays_open(&s, sizeof s, &arrays, &options, &err), LEAT_OK);
    assert_int_equal(s.length(s.user), 3);
    assert_string_equal(s.spec.tensors[0].name, "a");
    assert_int_equal(s.spec.tensors[1].rank, 1); /* (N,) becomes (N, 1) */
    assert_int_equal(s.spec.tensors[1].dtype, LEAT_I64);
    assert_int_equal(s.spec.tensors[2].rank, 0); /* but weights stay (N,) */
    taken t;
    assert_int_equal(take(&s, 2, 0, &t, &err), LEAT_OK);
    assert_int_equal(t.batch.size, 2);
    assert_memory_equal(t.batch.tensors[0].data, x[8], sizeof x[8] * 2);
    assert_int_equal(((int64_t *)t.batch.tensors[1].data)[1], 90);
    assert_true(((float *)t.batch.tensors[2].data)[1] == 4.5f);
    give(&t);
    leat_sequence_destroy(&s);
}

static void arrays_that_do_not_fit_are_refused(void **state) {
    (void)state;
    float x[6] = {0};
    leat_sequence s;
    leat_error err = {0};
    leat_array input = {.name = "a", .tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){3, 2}, x)};
    leat_array target = {.name = "b", .tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){4}, x)};
    leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    assert_int_equal(leat_arrays_open(&s, sizeof s, &arrays, NULL, &err), LEAT_ESHAPE);
    assert_string_equal(err.message, "target: 'b' has 4 samples, but the arrays before it have 3");
    arrays.input_count = 0;
    assert_int_equal(leat_arrays_open(&s, sizeof s, &arrays, NULL, &err), LEAT_EINVAL);
    arrays = (leat_arrays){.inputs = &input, .input_count = 1};
    input.tensor.rank = 0;
    assert_int_equal(leat_arrays_open(&s, sizeof s, &arrays, NULL, &err), LEAT_ESHAPE);
    input.tensor.rank = 9;
    assert_int_equal(leat_arrays_open(&s, sizeof s, &arrays, NULL, &err), LEAT_ESHAPE);
    input.tensor.rank = 2;
    input.tensor.shape[0] = 0;
    assert_int_equal(leat_arrays_open(&s, sizeof s, &arrays, NULL, &err), LEAT_ESHAPE);
    input.tensor.shape[0] = 3;
    input.tensor.dtype = (leat_dtype)17;
    assert_int_equal(leat_arrays_open(&s, sizeof s, &arrays, NULL, &err), LEAT_EDTYPE);
    input.tensor.dtype = LEAT_F32;
    leat_source_options options = {.size = sizeof options, .batch_size = 0};
    assert_int_equal(leat_arrays_open(&s, sizeof s, &arrays, &options, &err), LEAT_EINVAL);
    assert_int_equal(s.size, 0);
}

/* Inputs and targets of samples that are requested by number. */
static void samples_come_by_their_numbers(void **state) {
    (void)state;
    enum { n = 103, count = 4 };
    int32_t x[n], y[n], got_x[count], got_y[count];
    for (int i = 0; i < n; ++i) x[i] = i, y[i] = -i;
    leat_array input = {.tensor = leat_tensor_view(LEAT_I32, 1, (int64_t[]){n}, x)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_I32, 1, (int64_t[]){n}, y)};
    leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    leat_source_options options = {.size = sizeof options, .batch_size = 10};
    leat_sequence s;
    assert_int_equal(leat_arrays_open(&s, sizeof s, &arrays, &options, NULL), LEAT_OK);
    assert_int_equal(s.samples(s.user), n);
    const int64_t numbers[count] = {102, 0, 57, 0};
    leat_batch batch = {.size = count, .tensor_count = 2};
    batch.tensors[0] = leat_tensor_view(LEAT_I32, 2, (int64_t[]){count, 1}, got_x);
    batch.tensors[1] = leat_tensor_view(LEAT_I32, 2, (int64_t[]){count, 1}, got_y);
    leat_rng rng = leat_rng_for(1, 2, 3);
    assert_int_equal(s.get_samples(s.user, numbers, count, &rng, &batch, NULL), LEAT_OK);
    for (int i = 0; i < count; ++i) {
        assert_int_equal(got_x[i], numbers[i]);
        assert_int_equal(got_y[i], -numbers[i]);
    }
    leat_sequence_destroy(&s);
}

/* ---- idx ---- */

static void make_images(int rank) {
    file.size = 0;
    bytes_add_be(&file, 0x0800u | (uint64_t)rank, 4);
    bytes_add_be(&file, 5, 4);
    for (int i = 1; i < rank; ++i) bytes_add_be(&file, 3, 4);
    size_t count = rank == 1 ? 5 : rank == 2 ? 15 : 45;
    for (size_t i = 0; i < count; ++i) bytes_add_le(&file, rank == 1 ? i : 5 * i, 1);
}

static void pack(void) {
    static bytes plain;
    plain = file;
    file.size = 0;
    bytes_add_deflated(&file, plain.data, plain.size / 2,
                       1); /* two gzip members in a row, as `cat a.gz b.gz` */
    bytes_add_deflated(&file, plain.data + plain.size / 2, plain.size - plain.size / 2, 1);
}

static void write_mnist(void) {
    make_images(3);
    bytes_write(&file, "images");
    pack();
    bytes_write(&file, "images.gz");
    make_images(1);
    bytes_write(&file, "labels");
    pack();
    bytes_write(&file, "labels.gz");
}

static void idx_pictures_are_scaled_and_labels_one_hot(void **state) {
    (void)state;
    const char *specs[] = {"idx:images,labels?scale=1/255&onehot=10",
                           "idx:images.gz,labels.gz?onehot=10&scale=1/255"};
    for (int v = 0; v < 2; ++v) {
        leat_sequence s = open_spec(specs[v], 2);
        assert_int_equal(s.spec.tensors[0].dtype, LEAT_F32);
        assert_int_equal(s.spec.tensors[0].rank, 3);
        assert_int_equal(s.spec.tensors[0].shape[2], 1);
        assert_int_equal(s.spec.tensors[1].shape[0], 10);
        taken t;
        assert_int_equal(take(&s, 2, 0, &t, NULL), LEAT_OK);
        assert_int_equal(t.batch.size, 1);
        for (int i = 0; i < 9; ++i) /* equal to NumPy's float32 division */
            assert_true(((float *)t.batch.tensors[0].data)[i] == (float)(5 * (36 + i)) / 255.0f);
        for (int i = 0; i < 10; ++i) assert_true(((float *)t.batch.tensors[1].data)[i] == (i == 4));
        give(&t);
        leat_sequence_destroy(&s);
    }
}

static void bytes_stay_bytes_without_scale(void **state) {
    (void)state;
    leat_sequence s = open_spec("idx:images.gz?shape=9", 100);
    assert_int_equal(s.spec.batch_size, 5); /* at most the number of samples */
    assert_int_equal(s.spec.tensor_count, 1);
    assert_int_equal(s.spec.tensors[0].dtype, LEAT_U8);
    assert_int_equal(s.spec.tensors[0].rank, 1);
    taken t;
    assert_int_equal(take(&s, 0, 0, &t, NULL), LEAT_OK);
    assert_int_equal(((uint8_t *)t.batch.tensors[0].data)[44], 220);
    give(&t);
    leat_sequence_destroy(&s);
}

static void expect_idx_refused(const char *text) {
    leati_array array;
    void *unpacked = NULL;
    leat_error err = {0};
    assert_int_equal(leati_idx_parse(&array, &unpacked, file.data, file.size, "a.gz", &err), LEAT_EFORMAT);
    assert_null(unpacked);
    if (!strstr(err.message, text)) fail_msg("expected '%s' in: %s", text, err.message);
}

/* The dimensions limit what is unpacked, and the length of the compressed data limits the dimensions. */
static void compressed_idx_files_unpack_to_their_dimensions(void **state) {
    (void)state;
    static unsigned char long_data[4 << 20];
    make_images(1);
    memcpy(long_data, file.data, file.size);
    file.size = 0;
    bytes_add_deflated(&file, long_data, sizeof long_data, 1);
    expect_idx_refused("longer than its header says");
    memset(long_data + 4, 0x7f, 4);
    file.size = 0;
    bytes_add_deflated(&file, long_data, 1000, 1);
    expect_idx_refused("packed bytes can hold");
}

static void idx_numbers_of_all_types_are_big_endian(void **state) {
    (void)state;
    static const struct {
        unsigned type;
        int size;
        uint64_t bits;
        leat_dtype dtype;
        double value;
    } cases[] = {{0x08, 1, 200, LEAT_U8, 200},          {0x09, 1, 0xff, LEAT_I8, -1},
                 {0x0b, 2, 0x0102, LEAT_I16, 258},      {0x0c, 4, 0x01020304, LEAT_I32, 16909060},
                 {0x0d, 4, 0xbfc00000, LEAT_F32, -1.5}, {0x0e, 8, 0x3ff8000000000000, LEAT_F32, 1.5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        file.size = 0;
        bytes_add_be(&file, cases[i].type << 8 | 1u, 4);
        bytes_add_be(&file, 1, 4);
        bytes_add_be(&file, cases[i].bits, cases[i].size);
        bytes_write(&file, "typed");
        leat_sequence s = open_spec("idx:typed", 1);
        assert_int_equal(s.spec.tensors[0].dtype, cases[i].dtype);
        taken t;
        assert_int_equal(take(&s, 0, 0, &t, NULL), LEAT_OK);
        assert_true(leati_number_at(cases[i].dtype, t.batch.tensors[0].data, 0) == cases[i].value);
        give(&t);
        leat_sequence_destroy(&s);
    }
}

static void every_truncated_idx_is_refused(void **state) {
    (void)state;
    static bytes whole;
    for (int packed = 0; packed < 2; ++packed) {
        make_images(3);
        if (packed) pack();
        whole = file;
        for (size_t size = 0; size < whole.size; ++size) {
            file.size = size;
            bytes_write(&file, "cut");
            refused("idx:cut", LEAT_EFORMAT, "'cut'");
        }
        file.size = whole.size;
        bytes_add_text(&file, "x");
        bytes_write(&file, "cut");
        if (!packed) refused("idx:cut", LEAT_EFORMAT, "promises 45 bytes, but 46 follow");
    }
}

static void foreign_idx_files_are_refused(void **state) {
    (void)state;
    file.size = 0;
    bytes_add_text(&file, "hello, world");
    bytes_write(&file, "cut");
    refused("idx:cut", LEAT_EFORMAT, "not an idx file");
    file.size = 0;
    bytes_add_be(&file, 0x0809, 4);
    for (int i = 0; i < 9; ++i) bytes_add_be(&file, 1, 4);
    bytes_write(&file, "cut");
    refused("idx:cut", LEAT_ENOTSUP, "at most 8 dimensions, found 9");
    file.size = 0;
    bytes_add_be(&file, 0x0808, 4);
    for (int i = 0; i < 8; ++i) bytes_add_be(&file, UINT32_MAX, 4);
    bytes_write(&file, "cut");
    refused("idx:cut", LEAT_EFORMAT, "too large");
    static bytes plain;
    plain.size = 0;
    bytes_add_be(&plain, 0x0802, 4);
    bytes_add_be(&plain, 1u << 30, 4);
    bytes_add_be(&plain, 1u << 10, 4);
    file.size = 0;
    bytes_add_deflated(&file, plain.data, plain.size, 1);
    bytes_write(&file, "cut");
    refused("idx:cut", LEAT_EFORMAT, "packed bytes can hold"); /* no terabyte was allocated */
}

static void a_label_beyond_the_classes_is_named(void **state) {
    (void)state;
    leat_sequence s = open_spec("idx:images,labels?onehot=4", 5);
    taken t;
    leat_error err = {0};
    assert_int_equal(take(&s, 0, 0, &t, &err), LEAT_EINVAL);
    assert_string_equal(err.message, "the label of sample 4 is 4, expected 0 to 3 (onehot=4)");
    give(&t);
    leat_sequence_destroy(&s);
}

/* ---- npy, npz ---- */

static void write_arrays(void) {
    double x[6] = {0.1, 1, 2, 3, 4, 5};
    int32_t y[3] = {2, 0, 1};
    uint8_t w[3] = {1, 2, 3};
    leat_tensor tensors[] = {leat_tensor_view(LEAT_F64, 2, (int64_t[]){3, 2}, x),
                             leat_tensor_view(LEAT_I32, 1, (int64_t[]){3}, y),
                             leat_tensor_view(LEAT_U8, 1, (int64_t[]){3}, w)};
    const char *names[] = {"x", "y", "sample_weight"}, *others[] = {"a,b", "t0", "x1"};
    const char *paths[] = {"x.npy", "y.npy", "a,b?c&d%e.npy"};
    for (int i = 0; i < 3; ++i) assert_int_equal(leat_npy_write(paths[i], &tensors[i], NULL), LEAT_OK);
    assert_int_equal(leat_npz_write("d.npz", names, tensors, 3, NULL), LEAT_OK);
    assert_int_equal(leat_npz_write("e.npz", others, tensors, 3, NULL), LEAT_OK);
}

static void npy_and_npz_give_inputs_targets_and_weights(void **state) {
    (void)state;
    const char *specs[] = {"npy:x.npy,y.npy,a%2Cb%3Fc%26d%25e.npy", "npz:d.npz",
                           "npz:e.npz?inputs=a%2Cb&targets=t0&sample_weights=x1"};
    for (int v = 0; v < 3; ++v) {
        leat_sequence s = open_spec(specs[v], 2);
        assert_int_equal(s.spec.tensor_count, 3);
        assert_int_equal(s.spec.tensors[0].dtype, LEAT_F32); /* float64 becomes float32 */
        assert_int_equal(s.spec.tensors[1].dtype, LEAT_I32);
        assert_int_equal(s.spec.tensors[2].dtype, LEAT_F32); /* sample weights are always float32 */
        assert_int_equal(s.spec.tensors[2].part, LEAT_PART_SAMPLE_WEIGHT);
        taken t;
        assert_int_equal(take(&s, 0, 0, &t, NULL), LEAT_OK);
        assert_true(((float *)t.batch.tensors[0].data)[0] == 0.1f);
        assert_int_equal(((int32_t *)t.batch.tensors[1].data)[0], 2);
        assert_true(((float *)t.batch.tensors[2].data)[1] == 2);
        give(&t);
        leat_sequence_destroy(&s);
    }
    leat_sequence s = open_spec("npz:e.npz?inputs=a%2Cb,x1&targets=t0&onehot=3", 2);
    assert_int_equal(leat_batch_spec_count(&s.spec, LEAT_PART_INPUT), 2);
    assert_int_equal(s.spec.tensors[2].dtype, LEAT_F32);
    leat_sequence_destroy(&s);
}

static void wrong_specs_say_what_is_right(void **state) {
    (void)state;
    refused("x.npy", LEAT_EINVAL, "expected KIND:PATH");
    refused("", LEAT_EINVAL, "expected KIND:PATH");
    refused("some/d.npz?inputs=x", LEAT_EINVAL, "such as npz:some/d.npz?inputs=x");
    refused("photos", LEAT_EINVAL, "images:FOLDER");
    refused("npz:x.npy", LEAT_ENOTFOUND, "'x.npy' is an .npy file, one array without a name");
    refused("images:d?target_size=2", LEAT_EINVAL, "no option 'target_size': what Keras calls so is size=");
    refused("images:d?zoom_range=2", LEAT_EINVAL, "a step of augment=");
    refused("pny:x.npy", LEAT_EINVAL, "there are idx npy npz images");
    refused("ndx:x", LEAT_EINVAL, "did you mean 'idx'?");
    refused("npy:x.npy,,y.npy", LEAT_EINVAL, "path 2 is empty");
    refused("npy:", LEAT_EINVAL, "path 1 is empty");
    refused("npy:x.npy,y.npy,x.npy,x.npy", LEAT_EINVAL, "4 paths, expected npy:INPUTS[,TARGETS[,WEIGHTS]]");
    refused("npz:d.npz,e.npz", LEAT_EINVAL, "2 paths");
    refused("npy:x%2.npy", LEAT_EINVAL, "two hexadecimal digits");
    refused("npy:x%00.npy", LEAT_EINVAL, "two hexadecimal digits");
    refused("npy:x.npy?", LEAT_EINVAL, "KEY=VALUE");
    refused("npy:x.npy?=1", LEAT_EINVAL, "KEY=VALUE");
    refused("npy:x.npy?scale", LEAT_EINVAL, "KEY=VALUE");
    refused("npy:x.npy?scael=2", LEAT_EINVAL, "did you mean 'scale'?");
    refused("npy:x.npy?inputs=x", LEAT_EINVAL, "npy has no option 'inputs'");
    refused("npy:x.npy?scale=2&scale=3", LEAT_EINVAL, "twice");
    const char *scales[] = {"",   "1/",    "/255", "1/0",   "0", "x",
                            "1x", "1/2/3", "1e99", "1.2.3", ".", "1234567890123456"};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; ++i) {
        char spec[64];
        snprintf(spec, sizeof spec, "npy:x.npy?scale=%s", scales[i]);
        refused(spec, LEAT_EINVAL, "such as 1/255");
    }
    refused("npy:x.npy,y.npy?onehot=0", LEAT_EINVAL, "number of classes");
    refused("npy:x.npy,y.npy?onehot=3x", LEAT_EINVAL, "number of classes");
    refused("npy:x.npy,y.npy?onehot=99999999999999999999", LEAT_EINVAL, "number of classes");
    refused("npy:x.npy?shape=2x", LEAT_EINVAL, "28x28x1");
    refused("npy:x.npy?shape=1x1x1x1x1x1x1x2", LEAT_EINVAL, "28x28x1");
    refused("npy:x.npy?shape=3", LEAT_ESHAPE, "shape (2,) to (3,)");
    refused("npy:y.npy,x.npy?onehot=3", LEAT_EDTYPE, "needs integers");
    refused("npy:d.npz", LEAT_EFORMAT, "write npz:d.npz");
    refused("npy:absent.npy", LEAT_ENOTFOUND, "data 'npy:absent.npy': cannot open 'absent.npy'");
    refused("npz:e.npz", LEAT_ENOTFOUND, "no array 'x'; it has: a,b, t0, x1; name them, such as ?inputs=x1");
    refused("npz:d.npz?inputs=x,z", LEAT_ENOTFOUND, "no array 'z'");
    refused("idx:.", LEAT_EINVAL, "a directory");
}

static void scales_are_read_as_numbers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
    } cases[] = {{"2", 2},        {"0.5", 0.5},
                 {"-.25", -0.25}, {"1e-3", 1e-3},
                 {"3/4", 0.75},   {"1.5E+2", 150},
                 {"%31/2", 0.5},  {"0.00392156862745098", 0.00392156862745098}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char spec[64];
        snprintf(spec, sizeof spec, "npy:x.npy?scale=%s", cases[i].text);
        leat_sequence s = open_spec(spec, 3);
        taken t;
        assert_int_equal(take(&s, 0, 0, &t, NULL), LEAT_OK);
        assert_true(((float *)t.batch.tensors[0].data)[3] == (float)(3 * cases[i].value));
        give(&t);
        leat_sequence_destroy(&s);
    }
}

static void the_help_names_every_kind_and_option(void **state) {
    (void)state;
    const char *words[] = {"idx:",   "npy:",    "npz:",     "plugin:",         "scale=", "onehot=",
                           "shape=", "inputs=", "targets=", "sample_weights=", "%2C"};
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        assert_non_null(strstr(leat_source_help(), words[i]));
}

/* ---- plugin ---- */

static void a_plugin_is_a_sequence(void **state) {
    (void)state;
    leat_sequence s = open_spec("plugin:" LEAT_PLUGIN_ROWS "?A=%2C&b", 7);
    assert_int_equal(s.spec.batch_size, 7);
    assert_int_equal(s.length(s.user), 3);
    taken t;
    leat_error err = {0};
    assert_int_equal(take(&s, 1, 0, &t, &err), LEAT_OK);
    assert_true(((float *)t.batch.tensors[0].data)[6] == 100 + 'A'); /* the options' text */
    give(&t);
    assert_int_equal(take(&s, 2, 0, &t, &err), LEAT_EUSER);
    assert_string_equal(err.message, "no third batch");
    give(&t);
    leat_sequence_destroy(&s);
}

/* Returns the letter that the plugin has now; get adds it to each value. */
static char letter_of(leat_sequence *s) {
    leat_rng rng = leat_rng_for(0, 0, 0);
    leat_batch batch = {.size = 1, .tensor_count = 1};
    float x = 0;
    batch.tensors[0] = leat_tensor_view(LEAT_F32, 2, (const int64_t[]){1, 1}, &x);
    assert_int_equal(s->get(s->user, 0, &rng, &batch, NULL), LEAT_OK);
    return (char)x;
}

static void hooks_of_a_plugin_are_called(void **state) {
    (void)state;
    leat_error err = {0};
    leat_sequence s = open_spec("plugin:" LEAT_PLUGIN_ROWS "?hooks", 1);
    assert_int_equal(letter_of(&s), 'h');
    assert_int_equal(s.worker_init(s.user, 3, &err), LEAT_OK);
    assert_int_equal(letter_of(&s), 'd');
    assert_int_equal(s.on_epoch_end(s.user, 2, &err), LEAT_OK);
    assert_int_equal(letter_of(&s), 'r');
    s.worker_fini(s.user, 4);
    assert_int_equal(letter_of(&s), 'E');
    assert_int_equal(s.worker_init(s.user, -1, &err), LEAT_EUSER);
    assert_string_equal(err.message, "no such worker");
    assert_int_equal(s.on_epoch_end(s.user, -1, &err), LEAT_EUSER);
    assert_string_equal(err.message, "no such pass");
    leat_sequence_destroy(&s);
}

static void a_plugin_may_be_read_by_samples(void **state) {
    (void)state;
    leat_sequence s = open_spec("plugin:" LEAT_PLUGIN_ROWS "?samples", 2);
    leat_rng rng = leat_rng_for(0, 0, 0);
    leat_batch batch = {.size = 2, .tensor_count = 1};
    float x[2] = {0};
    batch.tensors[0] = leat_tensor_view(LEAT_F32, 2, (const int64_t[]){2, 1}, x);
    assert_int_equal(s.samples(s.user), 6 + 's'); /* both functions receive the plugin's `user` */
    assert_int_equal(s.get_samples(s.user, (const int64_t[]){5, 1}, 2, &rng, &batch, NULL), LEAT_OK);
    assert_true(x[0] == 5 + 's' && x[1] == 1 + 's');
    leat_sequence_destroy(&s);
}

static void what_is_no_plugin_is_refused(void **state) {
    (void)state;
    refused("plugin:" LEAT_PLUGIN_NONE, LEAT_ENOTFOUND, "does not define leat_plugin_open");
    refused("plugin:./absent.so", LEAT_EIO, "cannot load './absent.so'");
    refused("plugin:absent.so", LEAT_EIO, "./absent.so");
    refused("plugin:" LEAT_PLUGIN_ROWS "?fail", LEAT_EUSER, "asked to fail");
    refused("plugin:" LEAT_PLUGIN_ROWS "?old", LEAT_EINVAL, "leat_sequence: its size is 8, expected");
    refused("plugin:" LEAT_PLUGIN_ROWS "?empty", LEAT_EINVAL, "did not set");
}

static int enter(void **state) {
    if (files_enter(state) != 0) return -1;
    write_mnist();
    write_arrays();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_come_in_batches_with_a_short_last_one),
        cmocka_unit_test(arrays_that_do_not_fit_are_refused),
        cmocka_unit_test(samples_come_by_their_numbers),
        cmocka_unit_test(idx_pictures_are_scaled_and_labels_one_hot),
        cmocka_unit_test(bytes_stay_bytes_without_scale),
        cmocka_unit_test(compressed_idx_files_unpack_to_their_dimensions),
        cmocka_unit_test(idx_numbers_of_all_types_are_big_endian),
        cmocka_unit_test(every_truncated_idx_is_refused),
        cmocka_unit_test(foreign_idx_files_are_refused),
        cmocka_unit_test(a_label_beyond_the_classes_is_named),
        cmocka_unit_test(npy_and_npz_give_inputs_targets_and_weights),
        cmocka_unit_test(wrong_specs_say_what_is_right),
        cmocka_unit_test(scales_are_read_as_numbers),
        cmocka_unit_test(the_help_names_every_kind_and_option),
        cmocka_unit_test(a_plugin_is_a_sequence),
        cmocka_unit_test(hooks_of_a_plugin_are_called),
        cmocka_unit_test(a_plugin_may_be_read_by_samples),
        cmocka_unit_test(what_is_no_plugin_is_refused),
    };
    return cmocka_run_group_tests(tests, enter, files_leave);
}
