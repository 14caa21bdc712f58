/* SPDX-License-Identifier: Apache-2.0 */
/* The source of pictures: Keras's order of classes and files, labels, splits, lists in CSV files, bad pictures.  The
 * pictures are PPM files of one colour, so that a pixel says which file it comes from. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/files.h"
#include "base/memory.h"
#include "leat/source.h"

enum { SIDE = 2, MOST = 64 };

static bytes file;

/* Writes a picture of 3 x 5 pixels whose red is `red`. */
static void make_picture(const char *path, int red) {
    file.size = 0;
    bytes_add_text(&file, "P6 3 5 255\n");
    for (int i = 0; i < 15; ++i) {
        const unsigned char pixel[3] = {(unsigned char)red, 10, 20};
        bytes_add(&file, pixel, 3);
    }
    bytes_write(&file, path);
}

static void make_text(const char *path, const char *text) {
    file.size = 0;
    bytes_add_text(&file, text);
    bytes_write(&file, path);
}

/* Classes b and a, of which a has a folder inside; the reds are the positions in Keras's order. */
static int enter(void **state) {
    if (files_enter(state) != 0) return -1;
    static const char *const folders[] = {"d", "d/b", "d/a", "d/a/z", "d/a/z-1", "d/.hidden"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; ++i)
        if (mkdir(folders[i], 0777) != 0) return -1;
    make_picture("d/a/b.ppm", 1);
    make_picture("d/a/B.PPM", 0);
    make_picture("d/a/z-1/a.ppm", 2);
    make_picture("d/a/z/a.ppm", 3);
    make_picture("d/a/z/c.ppm", 4);
    make_picture("d/b/0.ppm", 5);
    make_picture("d/.hidden/0.ppm", 99);
    make_text("d/b/readme.txt", "no picture");
    return 0;
}

static int leave(void **state) {
    static const char *const paths[] = {"d/.hidden/0.ppm",
                                        "d/.hidden",
                                        "d/b/readme.txt",
                                        "d/b/0.ppm",
                                        "d/b",
                                        "d/a/z/a.ppm",
                                        "d/a/z/c.ppm",
                                        "d/a/z",
                                        "d/a/z-1/a.ppm",
                                        "d/a/z-1",
                                        "d/a/b.ppm",
                                        "d/a/B.PPM",
                                        "d/a",
                                        "d"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; ++i) remove(paths[i]);
    return files_leave(state);
}

typedef struct taken {
    leat_batch batch;
    unsigned char pixels[MOST * SIDE * SIDE * 4];
    float floats[MOST * SIDE * SIDE * 3];
    float labels[MOST * 4];
} taken;

static leat_sequence opened(const char *spec, int64_t batch_size) {
    leat_sequence s;
    leat_error err = {0};
    leat_source_options options = leat_source_options_default();
    options.batch_size = batch_size;
    if (leat_source_open(&s, sizeof s, spec, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
    return s;
}

static void set_up(taken *t, const leat_sequence *s) {
    memset(t, 0, sizeof *t);
    t->batch.size = s->spec.batch_size;
    t->batch.tensor_count = s->spec.tensor_count;
    t->batch.tensors[0].data = s->spec.tensors[0].dtype == LEAT_F32 ? (void *)t->floats : t->pixels;
    t->batch.tensors[1].data = t->labels;
}

static leat_status take(const leat_sequence *s, int64_t index, taken *t, leat_error *err) {
    leat_rng rng = {0};
    set_up(t, s);
    return s->get(s->user, index, &rng, &t->batch, err);
}

/* Checks the reds of all pictures of a SPEC, as a text: "0 1 2". */
static void has_reds(const char *spec, const char *expected) {
    leat_sequence s = opened(spec, 32);
    leat_error err = {0};
    taken t;
    char reds[256] = "";
    if (take(&s, 0, &t, &err) != LEAT_OK) fail_msg("%s", err.message);
    for (int64_t i = 0; i < t.batch.size; ++i)
        snprintf(reds + strlen(reds), sizeof reds - strlen(reds), "%s%d", i ? " " : "",
                 t.pixels[i * SIDE * SIDE * 3]);
    assert_string_equal(reds, expected);
    leat_sequence_destroy(&s);
}

static void refused(const char *spec, leat_status status, const char *text) {
    leat_sequence s;
    leat_error err = {0};
    const leat_status received = leat_source_open(&s, sizeof s, spec, NULL, &err);
    if (received != status || !strstr(err.message, text))
        fail_msg("expected '%s' in '%s', %s", text, err.message, leat_status_name(received));
}

static void files_come_in_the_order_of_keras(void **state) {
    (void)state;
    leat_sequence s = opened("images:d?size=2x2", 4);
    leat_error err = {0};
    taken t;
    assert_int_equal(s.samples(s.user), 6);
    assert_int_equal(s.length(s.user), 2);
    assert_int_equal(s.spec.tensors[0].dtype, LEAT_U8);
    assert_int_equal(s.spec.tensors[1].dtype, LEAT_I32);
    assert_int_equal(take(&s, 1, &t, &err), LEAT_OK);
    assert_int_equal(t.batch.size, 2);
    assert_int_equal(((int32_t *)(void *)t.labels)[0], 0);
    assert_int_equal(((int32_t *)(void *)t.labels)[1], 1);
    leat_sequence_destroy(&s);
    has_reds("images:d?size=2x2", "0 1 3 4 2 5");
    has_reds("images:d/?size=2x2&classes=b,a", "5 0 1 3 4 2");
    has_reds("images:d/a?size=2x2&labels=none", "0 1 3 4 2");
}

static void samples_come_by_number(void **state) {
    (void)state;
    leat_sequence s = opened("images:d?size=2x2", 32);
    leat_error err = {0};
    leat_rng rng = {0};
    taken t;
    set_up(&t, &s);
    t.batch.size = 2;
    assert_int_equal(s.get_samples(s.user, (int64_t[]){5, 1}, 2, &rng, &t.batch, &err), LEAT_OK);
    assert_int_equal(t.pixels[0], 5);
    assert_int_equal(t.pixels[SIDE * SIDE * 3], 1);
    leat_sequence_destroy(&s);
}

static void labels_and_scale(void **state) {
    (void)state;
    leat_error err = {0};
    taken t;
    leat_sequence s = opened("images:d?size=2x2&labels=onehot&scale=1/255", 32);
    assert_int_equal(s.spec.tensors[0].dtype, LEAT_F32);
    assert_int_equal(take(&s, 0, &t, &err), LEAT_OK);
    assert_true(t.floats[5 * SIDE * SIDE * 3] == (float)(5 / 255.0));
    assert_true(t.labels[0] == 1 && t.labels[1] == 0 && t.labels[10] == 0 && t.labels[11] == 1);
    leat_sequence_destroy(&s);
    s = opened("images:d?size=2x2&labels=binary&color=grayscale", 32);
    assert_int_equal(s.spec.tensors[0].shape[2], 1);
    assert_int_equal(take(&s, 0, &t, &err), LEAT_OK);
    assert_true(t.labels[0] == 0 && t.labels[5] == 1);
    leat_sequence_destroy(&s);
}

/* numpy.random.RandomState(7).shuffle of the six files gives the order 4 5 0 3 1 2. */
static void splits_are_those_of_keras(void **state) {
    (void)state;
    has_reds("images:d?size=2x2&validation=0.4&subset=validation&seed=7", "1 2");
    has_reds("images:d?size=2x2&validation=0.4&subset=training&seed=7", "0 3 4 5");
    has_reds("images:d?size=2x2&validation=0.4&subset=validation&split=ordered", "2 5");
    has_reds("images:d?size=2x2&validation=0.4&subset=training&split=ordered", "0 1 3 4");
    has_reds("images:d?size=2x2&validation=0.4&subset=validation&split=per_class", "0 1");
    has_reds("images:d?size=2x2&validation=0.4&subset=training&split=per_class", "3 4 2 5");
    refused("images:d?validation=0.1&subset=validation&seed=1", LEAT_EINVAL, "of 6 files, none");
    refused("images:d?validation=0.4&subset=training", LEAT_EINVAL, "validation needs seed=N");
    refused("images:d?validation=0.4&seed=1", LEAT_EINVAL, "expected both validation=SHARE and subset");
    refused("images:d?validation=1.5&subset=training&seed=1", LEAT_EINVAL, "between 0 and 1");
}

static void rows_of_lists_have_several_classes(void **state) {
    static const float expected[] = {1, 0, 1, 0, 0, 0, 0, 1, 0};
    (void)state;
    taken t;
    leat_error err = {0};
    make_text("list.csv", "filename,class\nd/b/0.ppm, sea |beach\nd/a/b.ppm,\nd/a/B.PPM,hill|hill\n");
    leat_sequence s = opened("images:list.csv?size=2x2&labels=multihot", 32);
    assert_int_equal(s.spec.tensors[1].shape[0], 3);
    assert_int_equal(take(&s, 0, &t, &err), LEAT_OK);
    assert_memory_equal(t.labels, expected, sizeof expected);
    leat_sequence_destroy(&s);
    s = opened("images:list.csv?size=2x2&labels=multihot&classes=hill,beach,sea", 32);
    assert_int_equal(take(&s, 0, &t, &err), LEAT_OK);
    assert_true(t.labels[0] == 0 && t.labels[1] == 1 && t.labels[2] == 1 && t.labels[6] == 1);
    leat_sequence_destroy(&s);
    refused("images:list.csv?labels=multihot&classes=hill,sea", LEAT_EINVAL, "'beach' is none of the names");
    refused("images:d?labels=multihot", LEAT_EINVAL, "labels=multihot needs a CSV list");
    make_text("list.csv", "filename,class\nd/b/0.ppm,a b\n");
    s = opened("images:list.csv?size=2x2&labels=multihot&label_separator= ", 32);
    assert_int_equal(s.spec.tensors[1].shape[0], 2);
    leat_sequence_destroy(&s);
    remove("list.csv");
}

static void a_list_has_a_fingerprint_with_its_pictures(void **state) {
    (void)state;
    char *recorded = NULL;
    leat_error err = {0};
    make_text("list.csv", "path,class\nd/b/0.ppm,1\nd/none.ppm,2\n");
    assert_int_equal(leat_source_fingerprint("images:list.csv?x_col=path", &recorded, &err), LEAT_OK);
    assert_int_equal(leat_source_check_fingerprint("images:list.csv?x_col=path", recorded, &err), LEAT_OK);
    make_text("d/b/0.ppm", "P6");
    assert_int_equal(leat_source_check_fingerprint("images:list.csv?x_col=path", recorded, &err),
                     LEAT_EINVAL);
    make_picture("d/b/0.ppm", 5);
    leati_free(recorded);
    remove("list.csv");
}

static void lists_in_csv(void **state) {
    (void)state;
    taken t;
    leat_error err = {0};
    make_text("list.csv", "\xef\xbb\xbf"
                          "class,filename,x,\"y,\"\"z\"\r\nb,d/b/0.ppm,1,2\r\n\"a\",\"d/a/b.ppm\",-3.5,4\n");
    has_reds("images:list.csv?size=2x2", "5 1");
    leat_sequence s = opened("images:./list.csv?size=2x2", 32);
    assert_int_equal(take(&s, 0, &t, &err), LEAT_OK);
    assert_int_equal(((int32_t *)(void *)t.labels)[0], 1); /* the classes are sorted */
    leat_sequence_destroy(&s);
    s = opened("images:list.csv?size=2x2&labels=raw&y_col=x,y%2C\"z", 32);
    assert_int_equal(s.spec.tensors[1].shape[0], 2);
    assert_int_equal(take(&s, 0, &t, &err), LEAT_OK);
    assert_true(t.labels[0] == 1 && t.labels[1] == 2 && t.labels[2] == -3.5f && t.labels[3] == 4);
    leat_sequence_destroy(&s);
    refused("images:list.csv?y_col=clas", LEAT_EINVAL, "no column 'clas': did you mean 'class'?");
    refused("images:list.csv?y_col=clas", LEAT_EINVAL, "it has: class, filename, x, ");
    refused("images:list.csv?labels=raw", LEAT_EFORMAT, "line 2: labels=raw expects numbers, found 'b'");
    refused("images:list.csv?classes=a", LEAT_EINVAL, "'b' is none of the names in classes");
    make_text("list.csv", "filename,class\nb/0.ppm,b\na/b.ppm,a\n");
    has_reds("images:list.csv?size=2x2&directory=d", "5 1");
    has_reds("images:./list.csv?size=2x2&directory=d//", "5 1");
    s = opened("images:list.csv?size=2x2&directory=d&masks=d", 32);
    assert_int_equal(s.spec.tensors[1].dtype, LEAT_U8);
    leat_sequence_destroy(&s);
    make_text("list.csv", "filename,class\nd/b/0.ppm\n");
    refused("images:list.csv", LEAT_EFORMAT, "has 1 columns, the header has 2");
    make_text("list.csv", "filename,class\n\"d/b/0.ppm,1\n");
    refused("images:list.csv", LEAT_EFORMAT, "line 2: a quote is not closed");
    remove("list.csv");
}

/* class_mode="input" of flow_from_directory: the target is the picture as the model receives it. */
static void pictures_are_their_own_targets(void **state) {
    static const char *const specs[] = {"images:d?size=2x2&labels=input",
                                        "images:d?size=2x2&labels=input&scale=1/255",
                                        "images:d?size=2x2&labels=input&augment=flip(both),brightness(0.5)",
                                        "images:list.csv?size=2x2&labels=input"};
    (void)state;
    static unsigned char pictures[4096], targets[4096];
    leat_error err = {0};
    make_text("list.csv", "filename,class\nd/b/0.ppm,1\nd/a/b.ppm,2\n");
    for (size_t i = 0; i < sizeof specs / sizeof *specs; ++i) {
        leat_sequence s = opened(specs[i], 32);
        leat_rng rng = leat_rng_for(4, 0, 0);
        leat_batch batch = {.size = s.spec.batch_size, .tensor_count = 2};
        batch.tensors[0].data = pictures;
        batch.tensors[1].data = targets;
        assert_int_equal(s.spec.tensor_count, 2);
        assert_int_equal(s.spec.tensors[1].dtype, s.spec.tensors[0].dtype);
        assert_int_equal(s.spec.tensors[1].rank, 3);
        memset(pictures, 1, sizeof pictures);
        memset(targets, 2, sizeof targets);
        assert_int_equal(s.get(s.user, 0, &rng, &batch, &err), LEAT_OK);
        assert_memory_equal(pictures, targets,
                            (size_t)batch.size * 12 * leat_dtype_bytes(s.spec.tensors[0].dtype));
        leat_sequence_destroy(&s);
    }
    refused("images:d?labels=input&classes=a", LEAT_EINVAL, "classes needs labels that are classes");
    refused("images:d?labels=input&masks=d", LEAT_EINVAL, "leave labels=input out");
    remove("list.csv");
}

/* class_mode="multi_output" of flow_from_dataframe: each column is a target. */
static void columns_are_targets(void **state) {
    (void)state;
    leat_error err = {0};
    static unsigned char pictures[4096];
    static float targets[2][64];
    make_text("list.csv", "filename,age,kind\nd/b/0.ppm,1.5,2\nd/a/b.ppm,-3,4\n");
    leat_sequence s = opened("images:list.csv?size=2x2&labels=multi_output&y_col=kind,age", 32);
    assert_int_equal(s.spec.tensor_count, 3);
    assert_string_equal(s.spec.tensors[1].name, "kind");
    assert_true(s.spec.tensors[2].rank == 1 && s.spec.tensors[2].shape[0] == 1);
    leat_batch batch = {.size = 2, .tensor_count = 3};
    batch.tensors[0].data = pictures;
    batch.tensors[1].data = targets[0];
    batch.tensors[2].data = targets[1];
    assert_int_equal(s.get(s.user, 0, NULL, &batch, &err), LEAT_OK);
    assert_true(targets[0][0] == 2 && targets[0][1] == 4 && targets[1][0] == 1.5f && targets[1][1] == -3);
    leat_sequence_destroy(&s);
    refused("images:list.csv?y_col=kind,age", LEAT_EINVAL, "or labels=multi_output");
    refused("images:d?labels=multi_output", LEAT_EINVAL, "labels=multi_output needs a CSV list");
    refused("images:list.csv?labels=multi_output&y_col=age,filename", LEAT_EFORMAT,
            "line 2: labels=multi_output expects numbers, found 'd/b/0.ppm'");
    remove("list.csv");
}

static void bad_pictures_fail_or_are_left_out(void **state) {
    (void)state;
    taken t;
    leat_error err = {0};
    make_text("d/a/bad.ppm", "P6 3 5 255\ncut off");
    leat_sequence s = opened("images:d?size=2x2", 32);
    assert_int_equal(take(&s, 0, &t, &err), LEAT_EFORMAT);
    assert_string_equal(err.message, "picture 'd/a/bad.ppm': PPM: the file is truncated");
    remove("d/a/bad.ppm"); /* and now the file has vanished */
    assert_int_equal(take(&s, 0, &t, &err), LEAT_ENOTFOUND);
    leat_sequence_destroy(&s);
    make_text("d/a/bad.ppm", "no picture");
    has_reds("images:d?size=2x2&bad=skip", "0 1 3 4 2 5");
    s = opened("images:d?size=2x2&max_pixels=14&bad=skip", 32);
    assert_int_equal(take(&s, 0, &t, &err), LEAT_ESKIPPED);
    leat_sequence_destroy(&s);
    remove("d/a/bad.ppm");
}

static void what_is_refused(void **state) {
    (void)state;
    refused("images:nowhere", LEAT_ENOTFOUND, "cannot open 'nowhere'");
    refused("images:d/b", LEAT_EINVAL, "'d/b' has no subfolders, expected one for each class");
    refused("images:d?size=224", LEAT_EINVAL, "size=224: expected HEIGHTxWIDTH");
    refused("images:d?interpolation=cubic", LEAT_EINVAL,
            "nearest, bilinear, bicubic, lanczos, box or hamming");
    refused("images:d?classes=a,c", LEAT_ENOTFOUND, "class 'c': cannot read the folder 'd/c'");
    refused("images:d?classes=a,a", LEAT_EINVAL, "'a' is named twice");
    refused("images:d?classes=a&labels=binary", LEAT_EINVAL, "labels=binary needs two classes");
    refused("images:d?labels=raw", LEAT_EINVAL, "labels=raw needs a CSV list");
    refused("images:d?siz=1x1", LEAT_EINVAL, "did you mean 'size'?");
}

static void a_folder_has_a_fingerprint(void **state) {
    (void)state;
    char *recorded = NULL;
    leat_error err = {0};
    assert_int_equal(leat_source_fingerprint("images:d?size=2x2", &recorded, &err), LEAT_OK);
    assert_int_equal(leat_source_check_fingerprint("images:d?size=2x2", recorded, &err), LEAT_OK);
    make_picture("d/b/1.ppm", 6);
    assert_int_equal(leat_source_check_fingerprint("images:d?size=2x2", recorded, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "'d' has changed"));
    remove("d/b/1.ppm");
    assert_int_equal(rename("d/b/0.ppm", "d/b/2.ppm"), 0);
    assert_int_equal(leat_source_check_fingerprint("images:d?size=2x2", recorded, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "the checksum of the names and sizes of its files differs"));
    assert_int_equal(rename("d/b/2.ppm", "d/b/0.ppm"), 0);
    leati_free(recorded);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_come_in_the_order_of_keras),
        cmocka_unit_test(samples_come_by_number),
        cmocka_unit_test(labels_and_scale),
        cmocka_unit_test(splits_are_those_of_keras),
        cmocka_unit_test(lists_in_csv),
        cmocka_unit_test(rows_of_lists_have_several_classes),
        cmocka_unit_test(a_list_has_a_fingerprint_with_its_pictures),
        cmocka_unit_test(pictures_are_their_own_targets),
        cmocka_unit_test(columns_are_targets),
        cmocka_unit_test(bad_pictures_fail_or_are_left_out),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(a_folder_has_a_fingerprint),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
