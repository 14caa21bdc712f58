/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th allocation fails, for every n: sources and files return LEAT_ENOMEM and leak nothing. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hdf5.h>

#include "base/memory.h"
#include "data/archives.h"
#include "data/files.h"
#include "leat/npz.h"
#include "leat/source.h"
#include "support/memory_failing.h"

static bytes file;

static void make_idx(void) {
    file.size = 0;
    bytes_add_be(&file, 0x0803, 4);
    for (int i = 0; i < 3; ++i) bytes_add_be(&file, 2, 4);
    bytes_add_text(&file, "12345678");
    static bytes packed;
    packed.size = 0;
    bytes_add_deflated(&packed, file.data, file.size, 1);
    bytes_write(&packed, "x.gz");
    file.size = 0;
    bytes_add_be(&file, 0x0801, 4);
    bytes_add_be(&file, 2, 4);
    bytes_add_text(&file, "\1\2");
    bytes_write(&file, "y");
}

static void make_arrays(void) {
    float x[4] = {1, 2, 3, 4}, y[2] = {0, 1};
    leat_tensor tensors[] = {leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 2}, x),
                             leat_tensor_view(LEAT_F32, 1, (int64_t[]){2}, y)};
    assert_int_equal(leat_npz_write("d.npz", (const char *[]){"x", "y"}, tensors, 2, NULL), LEAT_OK);
    int64_t offsets[3] = {0, 1, 4};
    leat_tensor ragged[] = {leat_tensor_view(LEAT_F32, 1, (int64_t[]){4}, x),
                            leat_tensor_view(LEAT_I64, 1, (int64_t[]){3}, offsets), tensors[1]};
    assert_int_equal(leat_npz_write("r.npz", (const char *[]){"values", "offsets", "y"}, ragged, 3, NULL),
                     LEAT_OK);
    static bytes inner;
    inner.size = file.size = 0;
    bytes_add_npy_header(&inner, 1, "{'descr': '>f4', 'fortran_order': True, 'shape': (2, 2), }");
    bytes_add_le(&inner, 0, 16);
    bytes_add_deflated_zip(&file, "x.npy", inner.data, inner.size);
    bytes_write(&file, "deflated.npz");
}

/* Two lists of pictures: one that is split, and one with numbers. */
static void make_pictures(void) {
    file.size = 0;
    bytes_add_text(&file, "P6 2 1 255\nabcdef");
    bytes_write(&file, "a.ppm");
    bytes_write(&file, "b.ppm");
    file.size = 0;
    bytes_add_text(&file, "filename,class,x\na.ppm,q,1\nb.ppm,p,2\n");
    bytes_write(&file, "list.csv");
}

/* Pictures in archives, which are shards of samples, too. */
static void make_archives(void) {
    static archive a;
    static const char *const paths[] = {"p.tar", "p.zip"};
    for (int i = 0; i < 2; ++i) {
        a = (archive){.is_zip = i == 1, .deflates = true};
        for (int k = 0; k < 4; ++k) {
            char name[] = "p/a/0.ppm";
            name[2] = (char)('a' + k % 2);
            name[4] = (char)('0' + k);
            archive_add(&a, name, "P6 2 1 255\nabcdef", 17);
            memcpy(name + 5, ".cls", 4);
            archive_add(&a, name, "1", 1);
        }
        archive_write(&a, paths[i]);
    }
}

/* A deflated dataset in chunks. */
static void make_h5(void) {
    const float numbers[6] = {1, 2, 3, 4, 5, 6};
    const hsize_t shape[] = {3, 2}, chunk[] = {2, 2};
    const hid_t h5 = H5Fcreate("t.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(2, shape, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(how, 2, chunk);
    H5Pset_deflate(how, 6);
    const hid_t set = H5Dcreate2(h5, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    H5Dclose(set);
    H5Pclose(how);
    H5Sclose(space);
    H5Fclose(h5);
}

static void make_table(void) {
    file.size = 0;
    bytes_add_text(&file, "size,city,price\n1,rome,3\n,oslo,4\n2.5,\"rome\",5\n");
    bytes_write(&file, "t.csv");
    static bytes packed;
    packed.size = 0;
    bytes_add_deflated(&packed, file.data, file.size, 1);
    bytes_write(&packed, "t.csv.gz");
}

static int enter(void **state) {
    if (files_enter(state) != 0) return -1;
    make_idx();
    make_arrays();
    make_pictures();
    make_archives();
    make_h5();
    make_table();
    return 0;
}

/* Runs `act` with the n-th allocation failing, for n = 1, 2, ..., until `act` makes fewer than n allocations. */
static void sweep(leat_status (*act)(const void *what, leat_error *err), const void *what) {
    int64_t live = memory_live();
    int files = files_count();
    int64_t n = 1;
    for (;; ++n) {
        leat_error err = {0};
        memory_fail_at(n);
        leat_status status = act(what, &err);
        bool failed = memory_failed();
        memory_fail_at(0);
        assert_int_equal(memory_live(), live);
        assert_int_equal(files_count(), files);
        if (!failed) {
            assert_int_equal(status, LEAT_OK);
            break;
        }
        if (status != LEAT_OK) {
            if (status != LEAT_ENOMEM)
                fail_msg("%s, allocation %d: %s: %s", (const char *)what, (int)n, leat_status_name(status),
                         err.message);
            assert_true(err.message[0] != '\0');
        }
    }
    assert_true(n > 1); /* at least one allocation has failed */
}

static leat_status open_and_get(const void *what, leat_error *err) {
    leat_sequence s;
    leat_status status = leat_source_open(&s, sizeof s, what, NULL, err);
    if (status == LEAT_OK) {
        char memory[4][4096];
        leat_batch batch = {.size = s.spec.batch_size, .tensor_count = s.spec.tensor_count};
        leat_rng rng = leat_rng_for(0, 0, 0);
        for (int i = 0; i < batch.tensor_count; ++i) batch.tensors[i].data = memory[i];
        status = s.get(s.user, 0, &rng, &batch, err);
    }
    leat_sequence_destroy(&s);
    return status;
}

static void opening_survives(void **state) {
    (void)state;
    const char *specs[] = {"idx:x.gz,y?scale=1/255&onehot=3", "npz:d.npz?inputs=x&targets=y&shape=2",
                           "npz:deflated.npz", "npy:d%2Enpz,y"};
    for (int i = 0; i < 3; ++i) sweep(open_and_get, specs[i]);
    leat_error err = {0};
    assert_int_equal(open_and_get(specs[3], &err),
                     LEAT_EFORMAT); /* other failures must free the memory, too */
}

static void pictures_survive(void **state) {
    (void)state;
    sweep(open_and_get, "images:list.csv?size=3x3&color=rgba&scale=1/255&aspect=pad");
    sweep(open_and_get, "images:list.csv?size=3x3&labels=raw&y_col=x");
    sweep(open_and_get, "images:list.csv?size=3x3&labels=multi_output&y_col=x");
    sweep(open_and_get, "images:list.csv?size=3x3&labels=input");
    sweep(open_and_get, "images:list.csv?size=3x3&cache=memory");
    sweep(open_and_get, "images:list.csv?size=3x3&masks=.");
    sweep(open_and_get, "images:list.csv?size=3x3&mask_col=filename");
    sweep(open_and_get, "images:list.csv?size=3x3&augment=flip,rotate(20),RandomContrast(0.5)");
    sweep(open_and_get, "images:.?labels=none&size=2x2&validation=0.5&subset=training&seed=1");
}

static void archives_survive(void **state) {
    (void)state;
    sweep(open_and_get, "images:p.tar?size=3x3");
    sweep(open_and_get, "images:p.zip?size=3x3&scale=1/255&classes=b,a");
    sweep(open_and_get, "images:p.zip?size=3x3&labels=none");
    sweep(open_and_get, "images:p.zip?size=3x3&masks=p.zip");
}

static void shards_survive(void **state) {
    (void)state;
    static const char records[] = LEAT_SOURCE_DIR "/fuzz/corpus/tfrecord/records";
    char spec[512];
    sweep(open_and_get, "tar:p.tar?size=2x2&onehot=3");
    sweep(open_and_get, "tar:p.tar?size=2x2&scale=1/255&inputs=png;ppm&targets=cls:1");
    snprintf(spec, sizeof spec, "tfrecord:%s?inputs=x,image&targets=label&size=2x2", records);
    sweep(open_and_get, spec);
}

static void tables_survive(void **state) {
    (void)state;
    sweep(open_and_get, "csv:t.csv?targets=price&onehot_categories=city&missing=mean");
    sweep(open_and_get, "csv:t.csv.gz?inputs=size|city&targets=price&categories=city&missing=skip");
    sweep(open_and_get, "h5:t.h5?scale=1/2");
    sweep(open_and_get, "h5:t.h5?scale=1/2&memory=64");
}

static leat_status open_and_forget(const void *what, leat_error *err) {
    const leat_status status = open_and_get(what, err);
    remove("cache");
    return status;
}

static void combinations_survive(void **state) {
    (void)state;
    sweep(open_and_get, "concat(npz:d.npz; take(npz:d.npz; count=1))");
    sweep(open_and_get, "zip(npz:d.npz; targets(repeat(npz:d.npz; times=1)))");
    sweep(open_and_get, "mix(npz:d.npz; npz:d.npz; weights=2,1; samples=5)");
    sweep(open_and_get, "cache(timeseries(npz:d.npz; sequence_length=2))");
    sweep(open_and_get, "ragged:r.npz?buckets=1");
    sweep(open_and_get, "ragged:r.npz");
    sweep(open_and_forget, "cache(npz:d.npz; file=cache)");
}

static leat_status read_all(const void *what, leat_error *err) {
    leat_npz *npz;
    leat_status status = leat_npz_open(&npz, what, err);
    for (int i = 0; status == LEAT_OK && i < leat_npz_count(npz); ++i) {
        leat_tensor tensor;
        status = leat_npz_get(npz, leat_npz_name(npz, i), &tensor, err);
    }
    leat_npz_close(&npz);
    return status;
}

static void reading_survives(void **state) {
    (void)state;
    sweep(read_all, "d.npz");
    sweep(read_all, "deflated.npz");
}

static leat_status record_and_check(const void *what, leat_error *err) {
    char *recorded;
    leat_status status = leat_source_fingerprint(what, &recorded, err);
    if (status == LEAT_OK) status = leat_source_check_fingerprint(what, recorded, err);
    leati_free(recorded);
    return status;
}

static void fingerprints_survive(void **state) {
    (void)state;
    sweep(record_and_check, "npy:d.npz,y");
    sweep(record_and_check, "images:p.zip");
    sweep(record_and_check, "tar:p*.tar");
    sweep(record_and_check, "concat(npy:d.npz; idx:x.gz,y)");
}

static leat_status write_npz(const void *what, leat_error *err) {
    float x[2] = {1, 2};
    leat_tensor tensors[20];
    char names[20][4];
    const char *list[20];
    for (int i = 0; i < 20; ++i) { /* more members than the first capacity of the directory */
        tensors[i] = leat_tensor_view(LEAT_F32, 1, (int64_t[]){2}, x);
        names[i][0] = 'a', names[i][1] = (char)('a' + i), names[i][2] = '\0';
        list[i] = names[i];
    }
    return leat_npz_write(what, list, tensors, 20, err);
}

static void writing_survives_and_keeps_the_old_file(void **state) {
    (void)state;
    bytes_write(&file, "w.npz");
    sweep(write_npz, "w.npz");
}

static leat_status open_arrays(const void *what, leat_error *err) {
    (void)what;
    double x[4] = {1, 2, 3, 4};
    uint8_t w[4] = {1, 2, 3, 4};
    leat_array input = {.name = "x", .tensor = leat_tensor_view(LEAT_F64, 1, (int64_t[]){4}, x)};
    leat_array weight = {.tensor = leat_tensor_view(LEAT_U8, 1, (int64_t[]){4}, w)};
    leat_arrays arrays = {.inputs = &input,
                          .input_count = 1,
                          .sample_weights = &weight,
                          .sample_weight_count = 1};
    leat_sequence s;
    leat_status status = leat_arrays_open(&s, sizeof s, &arrays, NULL, err);
    leat_sequence_destroy(&s);
    return status;
}

static void arrays_survive(void **state) {
    (void)state;
    sweep(open_arrays, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_survives),
        cmocka_unit_test(pictures_survive),
        cmocka_unit_test(archives_survive),
        cmocka_unit_test(shards_survive),
        cmocka_unit_test(tables_survive),
        cmocka_unit_test(combinations_survive),
        cmocka_unit_test(reading_survives),
        cmocka_unit_test(fingerprints_survive),
        cmocka_unit_test(writing_survives_and_keeps_the_old_file),
        cmocka_unit_test(arrays_survive),
    };
    return cmocka_run_group_tests(tests, enter, files_leave);
}
