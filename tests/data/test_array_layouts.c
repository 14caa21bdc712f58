/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of arrays of every data type and every layout in memory have the elements that index arithmetic gives,
 * also if the feed's threads and processes make them. */
#include "cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/files.h"
#include "leat/feed.h"
#include "leat/npz.h"
#include "leat/source.h"
#include "tensor/convert.h"
#include "tensor/number.h"

#define DTYPE(name, value, text, bytes) name,
static const leat_dtype dtypes[] = {LEAT_DTYPE_LIST(DTYPE)};
#undef DTYPE
enum { dtype_count = sizeof dtypes / sizeof *dtypes };

enum { samples = 21, rows = 4, columns = 3, width = rows * columns, batch_size = 5 };

/* ---- Layouts: equal samples (N, rows, columns) in different places in memory ---- */

typedef enum layout {
    PLAIN,     /* row-major, contiguous, aligned */
    FORTRAN,   /* column-major */
    REVERSED,  /* samples and columns in reverse order */
    SPREAD,    /* every third sample of a larger array, every second column */
    TURNED,    /* (columns, rows) in memory, viewed as (rows, columns) */
    ODD,       /* a field of a packed record: strides and address are not multiples of the element's size */
    BROADCAST, /* all samples have the same address */
    LAYOUTS
} layout;

typedef struct view {
    leat_tensor tensor;
    int64_t strides[3];
    unsigned char memory[1 << 15];
} view;

static double value_at(int64_t sample, int64_t row, int64_t column) {
    return (double)((sample * 7 + row * 3 + column * 5) % 23);
}

/* Gives the strides in bytes and the address of element 0. */
static int64_t lay_out(layout how, int64_t size, int64_t strides[3]) {
    const int64_t plain[3] = {width * size, columns * size, size};
    const int64_t by_layout[LAYOUTS][3] = {
        [PLAIN] = {plain[0], plain[1], plain[2]},
        [FORTRAN] = {size, samples * size, samples * rows * size},
        [REVERSED] = {-plain[0], plain[1], -plain[2]},
        [SPREAD] = {3 * 2 * width * size, 2 * columns * size, 2 * size},
        [TURNED] = {plain[0], size, rows * size},
        [ODD] = {width * (size + 3) + 1, columns * (size + 3), size + 3},
        [BROADCAST] = {0, plain[1], plain[2]},
    };
    memcpy(strides, by_layout[how], 3 * sizeof *strides);
    return how == REVERSED ? (samples - 1) * plain[0] + (columns - 1) * size : how == ODD ? 1 : 0;
}

static void make_view(view *out, leat_dtype dtype, layout how) {
    const size_t size = leat_dtype_bytes(dtype);
    const int64_t first = lay_out(how, (int64_t)size, out->strides);
    memset(out->memory, 0xff, sizeof out->memory);
    for (int64_t s = 0; s < samples; ++s)
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < columns; ++c) {
                const double value = value_at(how == BROADCAST ? 0 : s, r, c);
                const int64_t at = first + s * out->strides[0] + r * out->strides[1] + c * out->strides[2];
                uint64_t element = 0;
                assert_true(at >= 0 && (size_t)at + size <= sizeof out->memory);
                leati_convert(dtype, &element, LEAT_F64, &value, 1);
                memcpy(out->memory + at, &element, size);
            }
    out->tensor = leat_tensor_view(dtype, 3, (int64_t[]){samples, rows, columns}, out->memory + first);
}

/* Gives the expected elements of a sample in a batch: float64 becomes float32, other types are not converted. */
static void expect_sample(const leat_tensor *tensor, int64_t place, int64_t sample, leat_dtype dtype,
                          layout how) {
    assert_int_equal(tensor->dtype, dtype == LEAT_F64 ? LEAT_F32 : dtype);
    assert_int_equal((uintptr_t)tensor->data % leat_dtype_bytes(tensor->dtype), 0);
    for (int64_t i = 0; i < width; ++i) {
        double value = value_at(how == BROADCAST ? 0 : sample, i / columns, i % columns);
        if (dtype == LEAT_BOOL) value = value != 0;
        const double got = leati_number_at(tensor->dtype, tensor->data, place * width + i);
        if (got != value)
            fail_msg("%s, layout %d, sample %d: %g, expected %g", leat_dtype_name(dtype), how, (int)sample,
                     got, value);
    }
}

/* The targets are the numbers of the samples, so that a shuffled pass can be checked. */
static leat_sequence open_view(const view *v, int64_t *numbers, bool strided) {
    leat_sequence s;
    leat_error err = {0};
    leat_source_options options = {.size = sizeof options, .batch_size = batch_size};
    int64_t backwards = -(int64_t)sizeof *numbers; /* the targets are in reverse order */
    for (int64_t i = 0; i < samples; ++i) numbers[samples - 1 - i] = i;
    leat_array input = {.tensor = v->tensor, .strides = strided ? v->strides : NULL};
    leat_array target = {.tensor = leat_tensor_view(LEAT_I64, 1, (int64_t[]){samples}, &numbers[samples - 1]),
                         .strides = &backwards};
    leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    if (leat_arrays_open(&s, sizeof s, &arrays, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
    return s;
}

static void expect_passes(leat_sequence *s, leat_dtype dtype, layout how, int workers, bool processes) {
    leat_feed *feed;
    leat_error err = {0};
    leat_feed_options options = leat_feed_options_default();
    options.workers = workers;
    options.use_multiprocessing = processes;
    options.shuffle = LEAT_SHUFFLE_SAMPLES;
    options.seed = 3;
    if (leat_feed_open(&feed, s, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
    for (int pass = 0; pass < 2; ++pass) {
        bool seen[samples] = {false};
        for (int b = 0; b < (samples + batch_size - 1) / batch_size; ++b) {
            const leat_batch *batch;
            if (leat_feed_get(feed, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
            for (int64_t i = 0; i < batch->size; ++i) {
                int64_t sample = ((const int64_t *)batch->tensors[1].data)[i];
                assert_in_range(sample, 0, samples - 1);
                assert_false(seen[sample]);
                seen[sample] = true;
                expect_sample(&batch->tensors[0], i, sample, dtype, how);
            }
            leat_feed_release(feed);
        }
    }
    leat_feed_close(&feed);
}

static view current;

/* Takes all batches from the sequence, without a feed. */
static void every_type_and_layout_arrives(void **state) {
    (void)state;
    int64_t numbers[samples];
    for (int d = 0; d < dtype_count; ++d)
        for (int how = 0; how < LAYOUTS; ++how) {
            make_view(&current, dtypes[d], (layout)how);
            for (int strided = how == PLAIN ? 0 : 1; strided < 2; ++strided) {
                leat_sequence s = open_view(&current, numbers, strided);
                for (int64_t index = 0; index < s.length(s.user); ++index) {
                    leat_rng rng = leat_rng_for(1, 0, (uint64_t)index);
                    leat_batch batch = {.size = batch_size, .tensor_count = 2};
                    const size_t size = batch_size * width * leat_dtype_bytes(s.spec.tensors[0].dtype);
                    void *data = malloc(size); /* exact size, for the sanitizers */
                    int64_t targets[batch_size];
                    batch.tensors[0] = leat_tensor_view(s.spec.tensors[0].dtype, 3,
                                                        (int64_t[]){batch_size, rows, columns}, data);
                    batch.tensors[1] = leat_tensor_view(LEAT_I64, 2, (int64_t[]){batch_size, 1}, targets);
                    assert_int_equal(s.get(s.user, index, &rng, &batch, NULL), LEAT_OK);
                    for (int64_t i = 0; i < batch.size; ++i) {
                        assert_int_equal(targets[i], index * batch_size + i);
                        expect_sample(&batch.tensors[0], i, targets[i], dtypes[d], (layout)how);
                    }
                    free(data);
                }
                leat_sequence_destroy(&s);
            }
        }
}

/* Slots have the data type of the source; the worker gathers the samples from strided memory. */
static void shuffled_samples_arrive_from_workers(void **state) {
    (void)state;
    int64_t numbers[samples];
    for (int d = 0; d < dtype_count; ++d)
        for (int how = 0; how < LAYOUTS; ++how) {
            make_view(&current, dtypes[d], (layout)how);
            leat_sequence s = open_view(&current, numbers, true);
            expect_passes(&s, dtypes[d], (layout)how, 0, false);
            if (dtypes[d] == LEAT_F16 || dtypes[d] == LEAT_U8 || dtypes[d] == LEAT_F64) {
                expect_passes(&s, dtypes[d], (layout)how, 2, false);
                expect_passes(&s, dtypes[d], (layout)how, 2, true);
            }
            leat_sequence_destroy(&s);
        }
}

/* Sample weights of any type become float32. */
static void sample_weights_become_float32(void **state) {
    (void)state;
    for (int d = 0; d < dtype_count; ++d)
        for (int how = 0; how < 2; ++how) {
            make_view(&current, dtypes[d], how ? ODD : PLAIN);
            leat_array input = {.tensor = current.tensor, .strides = current.strides};
            leat_array weight = input;
            weight.tensor.rank = 1; /* one weight for each sample */
            leat_arrays arrays = {.inputs = &input,
                                  .input_count = 1,
                                  .sample_weights = &weight,
                                  .sample_weight_count = 1};
            leat_sequence s;
            leat_error err = {0};
            if (leat_arrays_open(&s, sizeof s, &arrays, NULL, &err) != LEAT_OK) fail_msg("%s", err.message);
            assert_int_equal(s.spec.tensors[1].dtype, LEAT_F32);
            assert_int_equal(s.spec.batch_size, samples);
            static uint64_t data[samples * width];
            float weights[samples];
            leat_rng rng = leat_rng_for(1, 0, 0);
            leat_batch batch = {.size = samples, .tensor_count = 2};
            batch.tensors[0] =
                leat_tensor_view(s.spec.tensors[0].dtype, 3, (int64_t[]){samples, rows, columns}, data);
            batch.tensors[1] = leat_tensor_view(LEAT_F32, 1, (int64_t[]){samples}, weights);
            assert_int_equal(s.get(s.user, 0, &rng, &batch, NULL), LEAT_OK);
            for (int i = 0; i < samples; ++i) {
                double value = value_at(i, 0, 0);
                assert_true(weights[i] == (float)(dtypes[d] == LEAT_BOOL ? value != 0 : value));
            }
            leat_sequence_destroy(&s);
        }
}

/* ---- Files ---- */

static void take_first(const char *spec, leat_dtype dtype, void *data, leat_dtype target_dtype,
                       void *targets) {
    leat_sequence s;
    leat_error err = {0};
    leat_source_options options = {.size = sizeof options, .batch_size = samples};
    if (leat_source_open(&s, sizeof s, spec, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
    assert_int_equal(s.spec.tensors[0].dtype, dtype);
    assert_int_equal(s.spec.tensors[1].dtype, target_dtype);
    leat_batch batch = {.size = samples, .tensor_count = 2};
    for (int i = 0; i < 2; ++i) batch.tensors[i].data = i ? targets : data;
    leat_rng rng = leat_rng_for(1, 0, 0);
    if (s.get(s.user, 0, &rng, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
    leat_sequence_destroy(&s);
}

static void files_of_every_type_are_scaled_and_one_hot(void **state) {
    (void)state;
    static uint64_t raw[samples * width], targets[samples * 23];
    static float scaled[samples * width];
    for (int d = 0; d < dtype_count; ++d) {
        const leat_dtype dtype = dtypes[d];
        make_view(&current, dtype, PLAIN);
        leat_tensor labels = current.tensor;
        unsigned char first[samples * 8];
        for (int i = 0; i < samples; ++i)
            memcpy(first + (size_t)i * leat_dtype_bytes(dtype),
                   current.memory + (size_t)(i * width) * leat_dtype_bytes(dtype), leat_dtype_bytes(dtype));
        labels = leat_tensor_view(dtype, 1, (int64_t[]){samples}, first);
        const leat_tensor tensors[] = {current.tensor, labels};
        assert_int_equal(leat_npz_write("t.npz", (const char *[]){"x", "y"}, tensors, 2, NULL), LEAT_OK);
        const leat_dtype made = dtype == LEAT_F64 ? LEAT_F32 : dtype;
        take_first("npz:t.npz", made, raw, made, targets);
        leat_tensor batch = leat_tensor_view(made, 3, (int64_t[]){samples, rows, columns}, raw);
        for (int i = 0; i < samples; ++i) expect_sample(&batch, i, i, dtype, PLAIN);
        const bool whole = leati_dtype_is_integer(dtype);
        take_first(whole ? "npz:t.npz?scale=2/7&onehot=23" : "npz:t.npz?scale=2/7", LEAT_F32, scaled,
                   whole ? LEAT_F32 : made, targets);
        for (int i = 0; i < samples; ++i) {
            const double label = leati_number_at(dtype, first, i);
            for (int k = 0; k < 23 && whole; ++k)
                assert_true(((float *)(void *)targets)[i * 23 + k] == (k == (int)label));
            for (int k = 0; k < width; ++k) {
                double value = value_at(i, k / columns, k % columns);
                if (dtype == LEAT_BOOL) value = value != 0;
                assert_true(scaled[i * width + k] == (float)(value * 2 / 7));
            }
        }
    }
}

/* Writes a big-endian float16 file and a file in Fortran order. */
static void foreign_files_arrive(void **state) {
    (void)state;
    static bytes file;
    static const char *const headers[] = {"{'descr': '>f2', 'fortran_order': False, 'shape': (3, 2), }",
                                          "{'descr': '>f2', 'fortran_order': True, 'shape': (3, 2), }"};
    const uint16_t values[6] = {0x3c00, 0xc000, 0x7c00, 0x0001, 0x7bff, 0x8000};
    for (int fortran = 0; fortran < 2; ++fortran) {
        file.size = 0;
        bytes_add_npy_header(&file, 1, headers[fortran]);
        for (int i = 0; i < 6; ++i) bytes_add_be(&file, values[i], 2);
        bytes_write(&file, "h.npy");
        leat_sequence s;
        leat_error err = {0};
        if (leat_source_open(&s, sizeof s, "npy:h.npy", NULL, &err) != LEAT_OK) fail_msg("%s", err.message);
        assert_int_equal(s.spec.tensors[0].dtype, LEAT_F16);
        uint16_t got[6];
        leat_rng rng = leat_rng_for(1, 0, 0);
        leat_batch batch = {.size = 3, .tensor_count = 1};
        batch.tensors[0].data = got;
        assert_int_equal(s.get(s.user, 0, &rng, &batch, &err), LEAT_OK);
        for (int i = 0; i < 6; ++i) assert_int_equal(got[i], fortran ? values[i % 2 * 3 + i / 2] : values[i]);
        leat_sequence_destroy(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_layout_arrives),
        cmocka_unit_test(shuffled_samples_arrive_from_workers),
        cmocka_unit_test(sample_weights_become_float32),
        cmocka_unit_test(files_of_every_type_are_scaled_and_one_hot),
        cmocka_unit_test(foreign_files_arrive),
    };
    return cmocka_run_group_tests(tests, files_enter, files_leave);
}
