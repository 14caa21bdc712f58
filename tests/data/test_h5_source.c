/* SPDX-License-Identifier: Apache-2.0 */
/* The source of HDF5 files: datasets in groups, of several types, mapped or in chunks, and files that change. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hdf5.h>

#include "base/memory.h"
#include "data/files.h"
#include "h5/h5.h"
#include "leat/source.h"

enum { ROWS = 5 };

static void make_file(void) {
    leati_h5 *file = NULL;
    leat_error err = {0};
    static float x[ROWS * 2];
    static int32_t y[ROWS];
    for (int i = 0; i < ROWS; ++i) {
        x[2 * i] = (float)i;
        x[2 * i + 1] = 0.5f;
        y[i] = i % 3;
    }
    const leat_tensor inputs = leat_tensor_view(LEAT_F32, 2, (const int64_t[]){ROWS, 2}, x);
    const leat_tensor targets = leat_tensor_view(LEAT_I32, 1, (const int64_t[]){ROWS}, y);
    FILE *stream = fopen("t.h5", "w+b");
    assert_non_null(stream);
    assert_int_equal(leati_h5_create(&file, "t.h5", fileno(stream), &err), LEAT_OK);
    assert_int_equal(leati_h5_write(file, "train/x", &inputs, &err), LEAT_OK);
    assert_int_equal(leati_h5_write(file, "y", &targets, &err), LEAT_OK);
    if (leati_h5_close(&file, &err) != LEAT_OK) fail_msg("%s", err.message);
    fclose(stream);
}

/* Adds a deflated dataset in chunks of two rows, of big-endian int16. */
static void add_chunked(void) {
    static short numbers[ROWS * 3];
    const hsize_t shape[] = {ROWS, 3}, chunk[] = {2, 2};
    for (int i = 0; i < ROWS * 3; ++i) numbers[i] = (short)(i - 7);
    const hid_t file = H5Fopen("t.h5", H5F_ACC_RDWR, H5P_DEFAULT), space = H5Screate_simple(2, shape, NULL);
    const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(how, 2, chunk);
    H5Pset_shuffle(how);
    H5Pset_deflate(how, 6);
    const hid_t set = H5Dcreate2(file, "packed", H5T_STD_I16BE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_SHORT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    const hid_t plain = H5Dcreate2(file, "big", H5T_IEEE_F64BE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(plain, H5T_NATIVE_SHORT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    const hid_t truth = H5Tenum_create(H5T_NATIVE_INT8); /* as h5py writes NumPy's bool */
    H5Tenum_insert(truth, "FALSE", &(signed char){0});
    H5Tenum_insert(truth, "TRUE", &(signed char){1});
    signed char bits[ROWS * 3];
    for (int i = 0; i < ROWS * 3; ++i) bits[i] = (signed char)(i % 2);
    const hid_t flags = H5Dcreate2(file, "flags", truth, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(flags, truth, H5S_ALL, H5S_ALL, H5P_DEFAULT, bits) >= 0);
    H5Dclose(flags);
    H5Tclose(truth);
    H5Dclose(plain);
    H5Dclose(set);
    H5Pclose(how);
    H5Sclose(space);
    H5Fclose(file);
}

static leat_status take(char *text, size_t room, const leat_sequence *s, leat_error *err) {
    static double data[2][64];
    static const int64_t numbers[] = {3, 1};
    leat_batch batch = {.size = 2, .tensor_count = s->spec.tensor_count};
    leat_rng rng = {0};
    text[0] = '\0';
    for (int k = 0; k < batch.tensor_count; ++k) batch.tensors[k].data = data[k];
    const leat_status status = s->get_samples(s->user, numbers, 2, &rng, &batch, err);
    for (int k = 0; k < batch.tensor_count; ++k)
        for (int64_t i = 0; i < 2 * s->spec.tensors[k].shape[0]; ++i)
            snprintf(text + strlen(text), room - strlen(text), "%s%g",
                     i   ? " "
                     : k ? ";"
                         : "",
                     s->spec.tensors[k].dtype == LEAT_F32 ? (double)((const float *)data[k])[i]
                                                          : ((const int32_t *)data[k])[i]);
    return status;
}

/* Checks the samples 3 and 1. */
static void gives(const char *spec, const char *expected) {
    leat_sequence s;
    leat_error err = {0};
    char text[512];
    if (leat_source_open(&s, sizeof s, spec, NULL, &err) != LEAT_OK) fail_msg("%s: %s", spec, err.message);
    if (take(text, sizeof text, &s, &err) != LEAT_OK) fail_msg("%s: %s", spec, err.message);
    assert_string_equal(text, expected);
    leat_sequence_destroy(&s);
}

static void refused(const char *spec, leat_status status, const char *says) {
    leat_sequence s;
    leat_error err = {0};
    const leat_status received = leat_source_open(&s, sizeof s, spec, NULL, &err);
    if (received != status || !strstr(err.message, says))
        fail_msg("%s: %d: %s", spec, (int)received, err.message);
}

static void datasets_become_tensors(void **state) {
    (void)state;
    make_file();
    add_chunked();
    gives("h5:t.h5?inputs=train/x", "3 0.5 1 0.5;0 1");
    gives("h5:t.h5?inputs=packed&targets=y&onehot=3", "2 3 4 -4 -3 -2;1 0 0 0 1 0");
    gives("h5:t.h5?inputs=big&targets=packed&scale=1/2", "1 1.5 2 -2 -1.5 -1;2 3 4 -4 -3 -2");
    gives("h5:t.h5?inputs=flags&scale=1&targets=y&onehot=3", "1 0 1 1 0 1;1 0 0 0 1 0");
    refused("h5:t.h5", LEAT_ENOTFOUND, "'x': the object does not exist");
    refused("h5:t.h5", LEAT_ENOTFOUND, "inputs= and targets= name datasets");
    refused("h5:t.h5?inputs=train", LEAT_EFORMAT, "expected a dataset");
    refused("h5:none.h5", LEAT_ENOTFOUND, "none.h5");
    refused("h5:t.h5?inputs=train/x,y&targets=y&onehot=2&shape=3", LEAT_ESHAPE, "cannot reshape");
}

static void samples_are_named_by_file_and_row(void **state) {
    leat_sequence s;
    leat_error err = {0};
    char *name = NULL;
    (void)state;
    make_file();
    assert_int_equal(leat_source_open(&s, sizeof s, "h5:t.h5?inputs=train/x", NULL, &err), LEAT_OK);
    assert_int_equal(leat_source_sample_name(&s, ROWS - 1, NULL, &name, &err), LEAT_OK);
    assert_string_equal(name, "t.h5, row 4");
    leati_free(name);
    assert_int_equal(leat_source_sample_name(&s, ROWS, NULL, &name, &err), LEAT_EINVAL);
    leat_sequence_destroy(&s);
}

static void a_file_may_be_shortened(void **state) {
    leat_sequence s;
    leat_error err = {0};
    char text[512];
    (void)state;
    make_file();
    assert_int_equal(leat_source_open(&s, sizeof s, "h5:t.h5?inputs=train/x", NULL, &err), LEAT_OK);
    assert_int_equal(truncate("t.h5", 0), 0);
    assert_int_equal(take(text, sizeof text, &s, &err), LEAT_EIO);
    assert_non_null(strstr(err.message, "t.h5"));
    leat_sequence_destroy(&s);
    refused("h5:t.h5?inputs=train/x", LEAT_EFORMAT, "t.h5");
}

static int leave(void **state) {
    remove("t.h5");
    return files_leave(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        /* First: cmocka installs a handler of SIGBUS for each test, leat once. */
        cmocka_unit_test(a_file_may_be_shortened),
        cmocka_unit_test(datasets_become_tensors),
        cmocka_unit_test(samples_are_named_by_file_and_row),
    };
    return cmocka_run_group_tests(tests, files_enter, leave);
}
