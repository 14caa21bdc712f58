/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures in zip and tar files: the same bytes as from the unpacked folder; damaged archives and members. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/archives.h"
#include "data/files.h"
#include "leat/source.h"

enum { SIDE = 6, PICTURE = SIDE * SIDE * 4 * 4, MOST = 64 };

static archive a;
static bytes file;

/* The members of the folder `d`, in an order that is not Keras's. */
static const char *const members[] = {"b/0.ppm",  "a/z/c.ppm", "a/b.ppm",   "b/readme.txt", "a/z-1/a.ppm",
                                      ".h/0.ppm", "a/B.PPM",   "a-b/1.ppm", "a/z/a.ppm",    "empty/"};
enum { MEMBERS = sizeof members / sizeof *members };

/* Makes the content of a member: a picture whose values depend on `number`. */
static void make_content(int number) {
    file.size = 0;
    if (strstr(members[number], ".txt") || strchr(members[number], '.') == NULL) return;
    bytes_add_text(&file, "P6 5 7 255\n");
    for (int i = 0; i < 35; ++i)
        bytes_add(&file, (const unsigned char[]){(unsigned char)(number * 20), (unsigned char)(i * 7), 3}, 3);
}

static void make_archive(const char *path, bool is_zip, bool deflates, const char *folder) {
    char name[256];
    a = (archive){.is_zip = is_zip, .deflates = deflates};
    for (int i = 0; i < MEMBERS; ++i) {
        make_content(i);
        snprintf(name, sizeof name, "%s%s", folder, members[i]);
        archive_add(&a, name, file.data, file.size);
    }
    archive_write(&a, path);
}

static int enter(void **state) {
    static const char *const folders[] = {"d", "d/a", "d/a/z", "d/a/z-1", "d/a-b", "d/b", "d/.h", "d/empty"};
    if (files_enter(state) != 0) return -1;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; ++i)
        if (mkdir(folders[i], 0777) != 0) return -1;
    for (int i = 0; i < MEMBERS - 1; ++i) {
        char path[256];
        snprintf(path, sizeof path, "d/%s", members[i]);
        make_content(i);
        bytes_write(&file, path);
    }
    return 0;
}

static int leave(void **state) {
    static const char *const folders[] = {"d/empty", "d/.h", "d/b", "d/a-b", "d/a/z-1", "d/a/z", "d/a", "d"};
    for (int i = 0; i < MEMBERS - 1; ++i) {
        char path[256];
        snprintf(path, sizeof path, "d/%s", members[i]);
        remove(path);
    }
    for (size_t i = 0; i < sizeof folders / sizeof *folders; ++i) rmdir(folders[i]);
    return files_leave(state);
}

/* ---- Reading ---- */

/* A batch with all samples of a source. */
typedef struct taken {
    leat_batch batch;
    unsigned char pictures[MOST * PICTURE], labels[MOST * 64];
} taken;

static leat_status take(taken *t, const leat_sequence *s, leat_error *err) {
    leat_rng rng = leat_rng_for(3, 1, 0);
    memset(t, 0, sizeof *t);
    t->batch.size = s->spec.batch_size;
    t->batch.tensor_count = s->spec.tensor_count;
    t->batch.tensors[0].data = t->pictures;
    t->batch.tensors[1].data = t->labels;
    return s->get(s->user, 0, &rng, &t->batch, err);
}

static leat_status read_spec(taken *t, const char *spec, leat_error *err) {
    leat_sequence s;
    leat_status status = leat_source_open(&s, sizeof s, spec, NULL, err);
    if (status == LEAT_OK) status = take(t, &s, err);
    leat_sequence_destroy(&s);
    return status;
}

static void refused(const char *spec, leat_status expected, const char *text) {
    static taken t;
    leat_error err = {0};
    const leat_status status = read_spec(&t, spec, &err);
    if (status != expected || !strstr(err.message, text))
        fail_msg("%s: expected '%s' in '%s', %s", spec, text, err.message, leat_status_name(status));
}

/* Checks that the archive gives the bytes that the folder `d` gives, with several options. */
static void equals_the_folder(const char *path) {
    static const char *const options[] = {"",
                                          "&labels=onehot&scale=1/255",
                                          "&classes=b,a",
                                          "&labels=none&color=grayscale",
                                          "&validation=0.4&subset=validation&seed=7",
                                          "&augment=flip,rotate(30)"};
    static taken expected, t;
    for (size_t i = 0; i < sizeof options / sizeof *options; ++i) {
        char spec[512];
        leat_error err = {0};
        snprintf(spec, sizeof spec, "images:d?size=6x6%s", options[i]);
        if (read_spec(&expected, spec, &err) != LEAT_OK) fail_msg("%s: %s", spec, err.message);
        snprintf(spec, sizeof spec, "images:%s?size=6x6%s", path, options[i]);
        if (read_spec(&t, spec, &err) != LEAT_OK) fail_msg("%s: %s", spec, err.message);
        assert_int_equal(t.batch.size, expected.batch.size);
        assert_memory_equal(t.pictures, expected.pictures, sizeof t.pictures);
        assert_memory_equal(t.labels, expected.labels, sizeof t.labels);
    }
}

static void archives_have_the_bytes_of_the_folder(void **state) {
    (void)state;
    make_archive("d.zip", true, true, "");
    equals_the_folder("d.zip");
    make_archive("d.zip", true, false, "./");
    equals_the_folder("d.zip");
    make_archive("d.tar", false, false, "./");
    equals_the_folder("d.tar");
    make_archive("data", false, false, "all/photos/"); /* found by its content, and inside of folders */
    equals_the_folder("data");
}

static void names_are_those_of_the_members(void **state) {
    leat_error err = {0};
    char *text = NULL;
    (void)state;
    make_archive("d.zip", true, true, "photos/");
    assert_int_equal(leat_source_files("images:d.zip", &text, &err), LEAT_OK);
    assert_non_null(strstr(text, "\"d.zip/photos/a/B.PPM\""));
    assert_non_null(strstr(text, "[\"a\", \"a-b\", \"b\", \"empty\"]"));
    leati_free(text);
}

static void the_last_of_equal_names_counts(void **state) {
    static taken t;
    leat_error err = {0};
    (void)state;
    a = (archive){.is_zip = false};
    make_content(0);
    archive_add(&a, "x/1.ppm", file.data, file.size);
    make_content(4);
    archive_add(&a, "__MACOSX/x/1.ppm", "no picture", 10);
    archive_add(&a, "./x//1.ppm", file.data, file.size);
    archive_write(&a, "d.tar");
    assert_int_equal(read_spec(&t, "images:d.tar?size=6x6", &err), LEAT_OK);
    assert_int_equal(t.batch.size, 1);
    assert_int_equal(t.pictures[0], 80);
}

/* ---- Masks ---- */

/* Pictures and masks come from folders, archives and lists in all combinations, with the same bytes.  Here the pictures
 * are their own masks. */
static void masks_come_from_everywhere(void **state) {
    static const char *const specs[] = {"images:d?masks=d.zip",
                                        "images:d?masks=d.tar",
                                        "images:d.zip?masks=d",
                                        "images:d.zip?masks=d.zip",
                                        "images:d.tar?masks=d",
                                        "images:d.tar?masks=d.zip",
                                        "images:d.tar?masks=d.tar",
                                        "images:list.csv?masks=.",
                                        "images:list.csv?masks=e.zip",
                                        "images:list.csv?mask_col=mask",
                                        "images:./list.csv?mask_col=mask",
                                        "images:list.csv?mask_col=inner&masks=d",
                                        "images:list.csv?mask_col=inner&masks=d.tar"};
    static taken expected, t;
    leat_error err = {0};
    char *names = NULL;
    (void)state;
    make_archive("d.zip", true, true, "");
    make_archive("e.zip", true, true, "d/");
    make_archive("d.tar", false, false, "all/photos/");
    assert_int_equal(leat_source_files("images:d?labels=none", &names, &err), LEAT_OK);
    file.size = 0;
    bytes_add_text(&file, "filename,mask,inner\n");
    for (const char *at = names; (at = strstr(at, "\"d/")); ++at) {
        const int length = (int)strcspn(at + 1, "\"");
        char row[256];
        snprintf(row, sizeof row, "%.*s,%.*s,%.*s\n", length, at + 1, length, at + 1, length - 2, at + 3);
        bytes_add_text(&file, row);
    }
    leati_free(names);
    bytes_write(&file, "list.csv");
    assert_int_equal(read_spec(&expected, "images:d?size=6x6&masks=d&augment=flip(both)", &err), LEAT_OK);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; ++i) {
        char spec[256];
        snprintf(spec, sizeof spec, "%s&size=6x6&augment=flip(both)", specs[i]);
        if (read_spec(&t, spec, &err) != LEAT_OK) fail_msg("%s: %s", spec, err.message);
        assert_int_equal(t.batch.size, expected.batch.size);
        assert_memory_equal(t.pictures, expected.pictures, sizeof t.pictures);
        assert_memory_equal(t.labels, expected.labels, sizeof t.labels);
    }
    remove("list.csv");
}

/* A subset of an archive finds its masks by the folders that all pictures of the archive are in. */
static void subsets_find_their_masks(void **state) {
    static taken expected, t;
    leat_error err = {0};
    (void)state;
    make_archive("d.zip", true, true, "photos/");
    make_archive("d.tar", false, false, "masks/");
    const char *subset = "size=6x6&validation=0.2&subset=validation&split=ordered";
    char spec[256];
    snprintf(spec, sizeof spec, "images:d?masks=d&%s", subset);
    assert_int_equal(read_spec(&expected, spec, &err), LEAT_OK);
    snprintf(spec, sizeof spec, "images:d.zip?masks=d.tar&%s", subset);
    assert_int_equal(read_spec(&t, spec, &err), LEAT_OK);
    assert_int_equal(t.batch.size, 1);
    assert_memory_equal(t.labels, expected.labels, sizeof t.labels);
}

static void masks_that_are_missing_are_named(void **state) {
    (void)state;
    make_archive("d.zip", true, true, "");
    a = (archive){.is_zip = false};
    make_content(0);
    archive_add(&a, "b/0.ppm", file.data, file.size);
    archive_write(&a, "d.tar");
    refused("images:d?masks=d.tar", LEAT_ENOTFOUND, "has no mask: expected 'd.tar/");
    refused("images:d.zip?masks=nowhere", LEAT_ENOTFOUND, "has no mask: expected 'nowhere/");
    refused("images:d?mask_col=m", LEAT_EINVAL, "mask_col needs a CSV list, 'd' is a folder");
    file.size = 0;
    bytes_add_text(&file, "filename,mask\nd/b/0.ppm,none.png\n");
    bytes_write(&file, "list.csv");
    refused("images:d?masks=list.csv", LEAT_EINVAL, "masks=list.csv: expected a folder, a zip or a tar file");
    refused("images:list.csv?mask_col=mask", LEAT_ENOTFOUND,
            "picture 'd/b/0.ppm' has no mask: expected 'none.png'");
    refused("images:list.csv?mask_col=mas", LEAT_EINVAL, "no column 'mas': did you mean 'mask'?");
    refused("images:list.csv?mask_col=mask&labels=int", LEAT_EINVAL, "are the targets: leave labels=int out");
    remove("list.csv");
}

/* ---- Damage ---- */

static void members_that_are_damaged_fail_or_are_left_out(void **state) {
    static taken t;
    leat_error err = {0};
    (void)state;
    make_archive("d.zip", true, false, "");
    unsigned char *pixels = memchr(a.data.data, 'P', a.data.size); /* the first local header: PK */
    pixels = (unsigned char *)strstr((char *)pixels + 30, "P6") + 20;
    *pixels ^= 1;
    bytes_write(&a.data, "d.zip");
    refused("images:d.zip?size=6x6", LEAT_EFORMAT,
            "picture 'd.zip/b/0.ppm': 'd.zip': member 'b/0.ppm' does not match its checksum");
    assert_int_equal(read_spec(&t, "images:d.zip?size=6x6&bad=skip", &err), LEAT_OK);
    assert_int_equal(t.batch.size, 6);
}

static void archives_that_are_cut_off_are_refused(void **state) {
    static taken t;
    static bytes whole;
    (void)state;
    for (int is_zip = 1; is_zip >= 0; --is_zip) {
        make_archive("whole", is_zip, true, "");
        whole = a.data;
        for (size_t size = 1; size + 1024 < whole.size; size += 97) {
            leat_error err = {0};
            file = whole;
            file.size = size;
            bytes_write(&file, "cut");
            assert_int_not_equal(read_spec(&t, "images:cut?size=6x6&bad=skip", &err), LEAT_OK);
            assert_true(err.message[0] != '\0');
        }
    }
    file.size = 600;
    bytes_write(&file, "cut");
    refused("images:cut", LEAT_EFORMAT, "'cut', offset 0: the file ends inside of 'b/0.ppm'");
}

static void a_file_that_is_shortened_later_is_an_error(void **state) {
    static taken t;
    leat_sequence s;
    leat_error err = {0};
    (void)state;
    static unsigned char zeros[60000];
    a = (archive){.is_zip = false};
    archive_add(&a, "x/large.txt", zeros, sizeof zeros);
    make_content(0);
    archive_add(&a, "x/1.ppm", file.data, file.size);
    archive_write(&a, "d.tar");
    assert_int_equal(leat_source_open(&s, sizeof s, "images:d.tar?size=6x6", NULL, &err), LEAT_OK);
    assert_int_equal(truncate("d.tar", 100), 0);
    assert_int_equal(take(&t, &s, &err), LEAT_EIO);
    assert_non_null(strstr(err.message, "was shortened"));
    leat_sequence_destroy(&s);
}

/* A member of 300 KB claims to unpack to 300 MiB, which deflate allows. */
static void a_bomb_takes_no_memory(void **state) {
    static taken t;
    leat_error err = {0};
    static bytes empty;
    (void)state;
    a = (archive){.is_zip = true};
    archive_add(&a, "x/1.ppm", "", 0);
    const size_t packed = 305000, size = (size_t)300 << 20;
    for (int i = 0; i < 4; ++i) {
        a.directory.data[20 + i] = (unsigned char)(packed >> 8 * i);
        a.directory.data[24 + i] = (unsigned char)(size >> 8 * i);
    }
    a.directory.data[10] = 8;
    FILE *out = fopen("bomb.zip", "wb");
    assert_non_null(out);
    fwrite(a.data.data, 1, a.data.size, out);
    for (size_t i = 0; i < packed; ++i) fputc(0, out);
    empty.size = 0;
    bytes_add(&empty, a.directory.data, a.directory.size);
    bytes_add_le(&empty, 0x06054b50, 4);
    bytes_add_le(&empty, 0, 4);
    bytes_add_le(&empty, 1 | 1 << 16, 4);
    bytes_add_le(&empty, a.directory.size, 4);
    bytes_add_le(&empty, a.data.size + packed, 4);
    bytes_add_le(&empty, 0, 2);
    fwrite(empty.data, 1, empty.size, out);
    fclose(out);
    assert_int_equal(read_spec(&t, "images:bomb.zip", &err), LEAT_ESHAPE);
    assert_non_null(strstr(err.message, "unpacks to 314572800 bytes, expected at most 268435456"));
}

static void other_files_are_refused(void **state) {
    (void)state;
    file.size = 0;
    bytes_add_deflated(&file, "text", 4, 1);
    bytes_write(&file, "d.tar.gz");
    refused("images:d.tar.gz", LEAT_ENOTSUP, "'d.tar.gz' is compressed as a whole");
    a = (archive){.is_zip = true};
    archive_add(&a, "readme.txt", "x", 1);
    archive_write(&a, "d.zip");
    refused("images:d.zip", LEAT_EINVAL, "'d.zip' has no folders, expected one for each class");
    refused("images:d.zip?labels=none", LEAT_EINVAL, "'d.zip' has no pictures");
    make_archive("d.zip", true, true, "");
    refused("images:d.zip?labels=raw", LEAT_EINVAL, "labels=raw needs a CSV list, 'd.zip' is an archive");
    refused("images:d.zip?classes=a,c", LEAT_ENOTFOUND, "class 'c': 'd.zip' has no folder 'c/'");
}

static void an_archive_has_a_fingerprint(void **state) {
    char *recorded = NULL;
    leat_error err = {0};
    (void)state;
    make_archive("d.zip", true, false, "");
    assert_int_equal(leat_source_fingerprint("images:d.zip", &recorded, &err), LEAT_OK);
    assert_int_equal(leat_source_check_fingerprint("images:d.zip", recorded, &err), LEAT_OK);
    a.data.data[40] ^= 1;
    bytes_write(&a.data, "d.zip");
    assert_int_equal(leat_source_check_fingerprint("images:d.zip", recorded, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "the checksum of its content differs"));
    leati_free(recorded);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        /* First: cmocka installs a handler of SIGBUS for each test, leat once. */
        cmocka_unit_test(a_file_that_is_shortened_later_is_an_error),
        cmocka_unit_test(archives_have_the_bytes_of_the_folder),
        cmocka_unit_test(names_are_those_of_the_members),
        cmocka_unit_test(the_last_of_equal_names_counts),
        cmocka_unit_test(masks_come_from_everywhere),
        cmocka_unit_test(subsets_find_their_masks),
        cmocka_unit_test(masks_that_are_missing_are_named),
        cmocka_unit_test(members_that_are_damaged_fail_or_are_left_out),
        cmocka_unit_test(archives_that_are_cut_off_are_refused),
        cmocka_unit_test(a_bomb_takes_no_memory),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(an_archive_has_a_fingerprint),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
