/* SPDX-License-Identifier: Apache-2.0 */
/* The sources of shards, tar and tfrecord: samples and their parts, types and shapes, damaged files and
 * samples by policy,
 * headers of all kinds of tar. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "data/files.h"
#include "data/archive/tar.h"
#include "leat/source.h"

enum { MOST = 8192, SIDE = 2 };

static bytes file;

/* ---- Making files ---- */

/* Adds a header of tar. */
static void add_header(const char *name, char type, size_t size, const char *magic) {
    unsigned char header[512] = {0};
    unsigned sum = 0;
    memcpy(header, name, strlen(name) < 100 ? strlen(name) : 100);
    snprintf((char *)header + 100, 8, "0000644");
    snprintf((char *)header + 124, 12, "%011zo", size);
    header[156] = (unsigned char)type;
    memcpy(header + 257, magic, 8);
    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; ++i) sum += header[i];
    snprintf((char *)header + 148, 8, "%06o", sum);
    bytes_add(&file, header, 512);
}

static void add_padded(const void *data, size_t size) {
    static const unsigned char zeros[512];
    bytes_add(&file, data, size);
    if (size % 512) bytes_add(&file, zeros, 512 - size % 512);
}

static void add_member(const char *name, const void *data, size_t size) {
    add_header(name, '0', size,
               "ustar\0"
               "00");
    add_padded(data, size);
}

static void add_text(const char *name, const char *text) {
    add_member(name, text, strlen(text));
}

/* Adds a picture of one colour. */
static void add_picture(const char *name, int red) {
    char picture[64];
    int size = snprintf(picture, sizeof picture, "P6 %d %d 255\n", SIDE, SIDE);
    for (int i = 0; i < SIDE * SIDE; ++i, size += 3) {
        picture[size] = (char)red;
        picture[size + 1] = 10;
        picture[size + 2] = 20;
    }
    add_member(name, picture, (size_t)size);
}

static void add_array(const char *name, const float *numbers, size_t count) {
    bytes npy = {.size = 0};
    char dict[100];
    snprintf(dict, sizeof dict, "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu,), }", count);
    bytes_add_npy_header(&npy, 1, dict);
    bytes_add(&npy, numbers, count * sizeof *numbers);
    add_member(name, npy.data, npy.size);
}

static void finish_tar(const char *path) {
    static const unsigned char zeros[1024];
    bytes_add(&file, zeros, sizeof zeros);
    bytes_write(&file, path);
}

/* Two shards with two and one samples; the second has another order of parts. */
static void make_shards(void) {
    const float numbers[2] = {1.5f, -2};
    file.size = 0;
    add_header("d", '5', 0,
               "ustar\0"
               "00");
    add_picture("d/0001.ppm", 1);
    add_text("d/0001.cls", "3");
    add_array("d/0001.x.npy", numbers, 2);
    add_picture("d/0002.PPM", 2);
    add_text("d/0002.cls", "0\n");
    add_array("d/0002.x.npy", numbers, 2);
    finish_tar("t-08.tar");
    file.size = 0;
    add_array("0001.x.npy", numbers, 2);
    add_text("0001.txt", "a text");
    add_text("0001.cls", "1");
    add_picture("0001.ppm", 3);
    add_text(".hidden", "nothing");
    finish_tar("t-09.tar");
}

/* ---- Reading ---- */

static leat_status open_spec(leat_sequence *s, const char *spec, leat_error *err) {
    return leat_source_open(s, sizeof *s, spec, NULL, err);
}

/* Writes the first number of each sample of each tensor: "1 2 3;3 0 1". */
static leat_status read_firsts(char *out, size_t room, const leat_sequence *s, leat_error *err) {
    static double data[LEAT_BATCH_MAX_TENSORS][MOST];
    leat_batch batch = {.size = s->spec.batch_size, .tensor_count = s->spec.tensor_count};
    leat_rng rng = {0};
    out[0] = '\0';
    for (int k = 0; k < batch.tensor_count; ++k) batch.tensors[k].data = data[k];
    const leat_status status = s->get(s->user, 0, &rng, &batch, err);
    if (status != LEAT_OK) return status;
    for (int k = 0; k < batch.tensor_count; ++k) {
        const leat_tensor_spec *t = &s->spec.tensors[k];
        const int64_t width = leati_shape_count(t->rank, t->shape);
        for (int64_t i = 0; i < batch.size; ++i) {
            const void *row = (const char *)data[k] + (size_t)(i * width) * leat_dtype_bytes(t->dtype);
            const double value = t->dtype == LEAT_F32   ? (double)*(const float *)row
                                 : t->dtype == LEAT_I32 ? *(const int32_t *)row
                                 : t->dtype == LEAT_I64 ? (double)*(const int64_t *)row
                                                        : *(const unsigned char *)row;
            snprintf(out + strlen(out), room - strlen(out), "%s%g", i ? " " : k ? ";" : "", value);
        }
        snprintf(out + strlen(out), room - strlen(out), "(%d", (int)width);
        snprintf(out + strlen(out), room - strlen(out), " %s)", leat_dtype_name(t->dtype));
    }
    return LEAT_OK;
}

static void gives(const char *spec, const char *expected) {
    leat_sequence s;
    leat_error err = {0};
    char text[1024];
    if (open_spec(&s, spec, &err) != LEAT_OK) fail_msg("%s: %s", spec, err.message);
    if (read_firsts(text, sizeof text, &s, &err) != LEAT_OK) fail_msg("%s: %s", spec, err.message);
    assert_string_equal(text, expected);
    leat_sequence_destroy(&s);
}

/* Checks that opening or reading fails. */
static void refused(const char *spec, leat_status status, const char *text) {
    leat_sequence s = {0};
    leat_error err = {0};
    char numbers[1024];
    leat_status received = open_spec(&s, spec, &err);
    if (received == LEAT_OK) received = read_firsts(numbers, sizeof numbers, &s, &err);
    if (received != status) fail_msg("%s: status %d: %s", spec, (int)received, err.message);
    if (!strstr(err.message, text)) fail_msg("%s: expected '%s' in: %s", spec, text, err.message);
    leat_sequence_destroy(&s);
}

/* ---- tar ---- */

static void members_with_one_key_are_a_sample(void **state) {
    (void)state;
    make_shards();
    gives("tar:t-{08..09}.tar?size=2x2", "1 2 3(12 uint8);3 0 1(1 int32)");
    gives("tar:t-08.tar?size=1x3&color=grayscale&scale=1/5", "1.6 1.8(3 float32);3 0(1 int32)");
    gives("tar:t-*.tar?size=2x2&onehot=4", "1 2 3(12 uint8);0 1 0(4 float32)");
    gives("tar:t-*.tar?inputs=x.npy,png;ppm&targets=cls&size=2x2",
          "1.5 1.5 1.5(2 float32);1 2 3(12 uint8);3 0 1(1 int32)");
    gives("tar:t-*.tar?inputs=x.npy&targets=cls:1", "1.5 1.5 1.5(2 float32);3 0 1(1 int32)");
    gives("tar:t-09.tar?inputs=txt:uint8:2x3&targets=x.npy", "97(6 uint8);1.5(2 float32)");
    refused("tar:t-*.tar?inputs=seg.png", LEAT_EINVAL,
            "the first sample, 'd/0001', has no part 'seg.png'; it has: ");
    refused("tar:t-09.tar?inputs=txt", LEAT_ENOTSUP, "parts with the extension 'txt' are not supported");
    refused("tar:t-09.tar?inputs=txt:float16:2x2", LEAT_ESHAPE, "the first sample has 3 elements");
    refused("tar:t-09.tar?size=2x2&onehot=1", LEAT_EINVAL, "the label is 1, expected 0 to 0");
    refused("tar:t-07.tar", LEAT_ENOTFOUND, "t-07.tar");
}

static void bad_samples_fail_or_are_skipped(void **state) {
    (void)state;
    file.size = 0;
    add_picture("1.ppm", 1);
    add_text("1.cls", "1");
    add_picture("2.ppm", 2); /* without a label */
    add_text("3.ppm", "P6 2 2 255\n...");
    add_text("3.cls", "3");
    add_picture("4.ppm", 4);
    add_text("4.cls", "four");
    add_picture("5.ppm", 5);
    add_text("5.cls", "5");
    finish_tar("t-08.tar");
    refused("tar:t-08.tar?size=2x2", LEAT_EFORMAT, "'t-08.tar': sample '2' has no part 'cls'");
    gives("tar:t-08.tar?size=2x2&bad=skip", "1 5(12 uint8);1 5(1 int32)");
    refused("tar:t-08.tar?size=2x2&inputs=ppm&targets=ppm", LEAT_EFORMAT, "offset 3584, 'ppm'");
    file.size -= 1024 + 512 + 100; /* the file ends inside of the last label */
    bytes_write(&file, "t-08.tar");
    refused("tar:t-08.tar?size=2x2", LEAT_EFORMAT, "t-08.tar");
    gives("tar:t-08.tar?size=2x2&bad=skip", "1(12 uint8);1(1 int32)");
    file.size = 700;
    bytes_write(&file, "t-08.tar");
    refused("tar:t-08.tar?size=2x2", LEAT_EFORMAT, "'t-08.tar', offset 1024: the file is cut off");
    file.size = 0;
    bytes_add_text(&file, "This is a text.");
    bytes_write(&file, "t-08.tar");
    refused("tar:t-08.tar", LEAT_EFORMAT, "'t-08.tar', offset 0: the file is cut off");
    file.size = 600;
    memset(file.data, 'a', 600);
    bytes_write(&file, "t-08.tar");
    refused("tar:t-08.tar", LEAT_EFORMAT, "this is no tar file");
}

typedef struct seen {
    char names[4096];
} seen;

static leat_status note(void *user, const leati_tar_member *member, leat_error *err) {
    static const char *const suffixes[] = {"", "/", ">"};
    seen *s = user;
    (void)err;
    snprintf(s->names + strlen(s->names), sizeof s->names - strlen(s->names), "%.300s%s@%d+%d ", member->name,
             suffixes[member->kind], (int)member->offset, (int)member->bytes);
    return LEAT_OK;
}

static void headers_of_all_kinds_are_read(void **state) {
    seen s = {""};
    leat_error err = {0};
    char pax[] = "17 path=long.ppm\n16 comment=ab=c\n10 size=3\n";
    char expected[1024], long_name[300];
    (void)state;
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    file.size = 0;
    add_header("pax_global", 'g', 3,
               "ustar\0"
               "00");
    add_padded("abc", 3);
    add_header("x", 'x', strlen(pax),
               "ustar\0"
               "00");
    add_padded(pax, strlen(pax));
    add_header("short", '0', 0,
               "ustar\0"
               "00");
    add_padded("abc", 3);
    add_header("././@LongLink", 'L', strlen(long_name) + 1, "ustar  ");
    add_padded(long_name, strlen(long_name) + 1);
    add_header("short", '0', 1, "ustar  ");
    add_padded("a", 1);
    add_header("link", '2', 7,
               "ustar\0"
               "00");
    add_header("old", '\0', 2, "\0\0\0\0\0\0\0");
    add_padded("ab", 2);
    add_header("prefixed", '0', 2,
               "ustar\0"
               "00");
    unsigned char *header = file.data + file.size - 512;
    memcpy(header + 345, "folder", 6);
    unsigned sum = 8 * ' ';
    for (int i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? 0 : header[i];
    snprintf((char *)header + 148, 8, "%06o", sum);
    add_padded("ab", 2);
    finish_tar("t-08.tar");
    if (leati_tar_scan("t-08.tar", note, &s, &err) != LEAT_OK) fail_msg("%s", err.message);
    snprintf(expected, sizeof expected,
             "long.ppm@2560+3 %s@4608+1 link>@5632+0 old@6144+2 folder/prefixed@7168+2 ", long_name);
    assert_string_equal(s.names, expected);
    for (size_t size = 0; size < file.size - 1023; ++size) { /* every beginning is cut off */
        s.names[0] = '\0';
        assert_int_not_equal(leati_tar_scan_bytes(file.data, size, "cut", note, &s, &err), LEAT_OK);
    }
}

/* ---- tfrecord ---- */

static void add_varint(bytes *out, uint64_t value) {
    for (; value > 127; value >>= 7) bytes_add(out, &(unsigned char){(unsigned char)(value & 127) | 128}, 1);
    bytes_add(out, &(unsigned char){(unsigned char)value}, 1);
}

/* Adds a field with a length. */
static void add_field(bytes *out, int number, const void *data, size_t size) {
    add_varint(out, (uint64_t)number << 3 | 2);
    add_varint(out, size);
    bytes_add(out, data, size);
}

/* Adds a feature whose list has the encoded content. */
static void add_feature(bytes *features, const char *name, int kind, const bytes *list) {
    static bytes feature, pair;
    feature.size = pair.size = 0;
    add_field(&feature, kind, list->data, list->size);
    add_field(&pair, 1, name, strlen(name));
    add_field(&pair, 2, feature.data, feature.size);
    add_field(features, 1, pair.data, pair.size);
}

static void add_record(const bytes *data) {
    bytes header = {.size = 0};
    bytes_add_le(&header, data->size, 8);
    bytes_add(&file, header.data, 8);
    bytes_add_le(&file, leati_crc32c_masked(header.data, 8), 4);
    bytes_add(&file, data->data, data->size);
    bytes_add_le(&file, leati_crc32c_masked(data->data, data->size), 4);
}

/* Adds an Example with a label, two floats, a picture and raw bytes; odd labels are encoded without
 * packing. */
static void add_example(int label) {
    static bytes features, list, example, numbers;
    features.size = list.size = example.size = numbers.size = 0;
    if (label % 2) {
        add_varint(&list, 1 << 3);
        add_varint(&list, (uint64_t)label);
    } else {
        add_varint(&numbers, (uint64_t)label);
        add_field(&list, 1, numbers.data, numbers.size);
    }
    add_feature(&features, "label", 3, &list);
    list.size = numbers.size = 0;
    const float floats[2] = {(float)label / 2, 7};
    if (label % 2)
        for (int i = 0; i < 2; ++i) {
            add_varint(&list, 1 << 3 | 5);
            bytes_add(&list, &floats[i], 4);
        }
    else
        add_field(&list, 1, floats, sizeof floats);
    add_feature(&features, "x", 2, &list);
    list.size = 0;
    char picture[64];
    int size = snprintf(picture, sizeof picture, "P6 1 1 255\n%c%c%c", label, 1, 2);
    add_field(&list, 1, picture, (size_t)size);
    add_feature(&features, "image", 1, &list);
    list.size = 0;
    add_field(&list, 1, "\x05\0\xff\xff", 4);
    add_feature(&features, "raw", 1, &list);
    add_field(&example, 1, features.data, features.size);
    add_record(&example);
}

static void make_records(const char *path, int first, int last) {
    file.size = 0;
    for (int i = first; i <= last; ++i) add_example(i);
    bytes_write(&file, path);
}

static void features_become_tensors(void **state) {
    (void)state;
    make_records("t-08.tar", 3, 4);
    make_records("t-09.tar", 5, 6);
    gives("tfrecord:t-{08..09}.tar?inputs=x&targets=label", "1.5 2 2.5 3(2 float32);3 4 5 6(1 int64)");
    gives("tfrecord:t-*.tar?inputs=image,x:2x1&targets=label&size=1x1&scale=1/2&onehot=7",
          "1.5 2 2.5 3(3 float32);1.5 2 2.5 3(2 float32);0 0 0 0(7 float32)");
    gives("tfrecord:t-*.tar?inputs=raw:int32", "-65531 -65531 -65531 -65531(1 int32)");
    gives("tfrecord:t-*.tar?inputs=raw:2x2", "5 5 5 5(4 uint8)");
    refused("tfrecord:t-*.tar?inputs=y", LEAT_EFORMAT, "no feature 'y'; it has label, x, image, raw");
    refused("tfrecord:t-*.tar?inputs=x:3", LEAT_ESHAPE, "the first sample has 2 elements");
    refused("tfrecord:t-*.tar?inputs=x:int64", LEAT_EDTYPE, "feature 'x' has the type float32");
    refused("tfrecord:t-*.tar?targets=x", LEAT_EINVAL,
            "offset 12: expected inputs=FEATURE; the features are label, x, image, raw");
}

static void damaged_records_fail_or_are_skipped(void **state) {
    (void)state;
    file.size = 0;
    for (int i = 3; i <= 7; i += 2) add_example(i);
    const size_t record = file.size / 3;
    file.data[record + 30] ^= 1;
    bytes_write(&file, "t-08.tar");
    refused("tfrecord:t-08.tar?inputs=x", LEAT_EFORMAT, "the checksum of the record is wrong");
    gives("tfrecord:t-08.tar?inputs=x&bad=skip", "1.5 3.5(2 float32)");
    file.data[record + 30] ^= 1;
    file.data[30] ^= 1; /* of the first record, which says what types there are */
    bytes_write(&file, "t-08.tar");
    refused("tfrecord:t-08.tar?inputs=x", LEAT_EFORMAT, "the checksum of the record is wrong");
    gives("tfrecord:t-08.tar?inputs=x&bad=skip", "2.5 3.5(2 float32)");
    file.data[30] ^= 1;
    file.data[2 * record] ^= 1;
    bytes_write(&file, "t-08.tar");
    refused("tfrecord:t-08.tar?inputs=x", LEAT_EFORMAT, "the checksum of a record's length is wrong");
    gives("tfrecord:t-08.tar?inputs=x&bad=skip", "1.5 2.5(2 float32)");
    file.data[2 * record] ^= 1;
    file.size -= 2;
    bytes_write(&file, "t-08.tar");
    refused("tfrecord:t-08.tar?inputs=x", LEAT_EFORMAT, "the file ends inside of a record");
    file.size = 5;
    bytes_write(&file, "t-08.tar");
    refused("tfrecord:t-08.tar?inputs=x", LEAT_EFORMAT,
            "offset 0: the file ends inside of a record's header");
    memset(file.data, 1, 600);
    file.size = 600;
    bytes_write(&file, "t-08.tar");
    refused("tfrecord:t-08.tar?inputs=x", LEAT_EFORMAT, "this is no TFRecord file");
}

static void compressed_records_are_unpacked(void **state) {
    static bytes packed;
    (void)state;
    make_records("t-08.tar", 3, 4);
    packed.size = 0;
    bytes_add_deflated(&packed, file.data, file.size, 1);
    bytes_write(&packed, "t-09.tar");
    gives("tfrecord:t-09.tar,t-08.tar?inputs=x&targets=label", "1.5 2 1.5 2(2 float32);3 4 3 4(1 int64)");
}

static void a_shard_may_vanish(void **state) {
    leat_sequence s;
    leat_error err = {0};
    char numbers[256];
    (void)state;
    make_shards();
    assert_int_equal(open_spec(&s, "tar:t-08.tar?size=2x2", &err), LEAT_OK);
    assert_int_equal(truncate("t-08.tar", 3000), 0);
    assert_int_equal(read_firsts(numbers, sizeof numbers, &s, &err), LEAT_EIO);
    assert_non_null(strstr(err.message, "'t-08.tar' was shortened"));
    remove("t-08.tar");
    assert_int_equal(read_firsts(numbers, sizeof numbers, &s, &err), LEAT_ENOTFOUND);
    leat_sequence_destroy(&s);
}

static void checksums_are_those_of_rfc_3720(void **state) {
    static unsigned char data[40000];
    (void)state;
    assert_int_equal(leati_crc32c(data, 32), 0x8a9136aau);
    for (size_t i = 0; i < sizeof data; ++i) data[i] = (unsigned char)(i * 7 + (i >> 8));
    /* The checksum of data and its checksum is a constant, for either way to compute. */
    for (size_t size = 16000; size < 40000 - 4; size += 2999) {
        unsigned char save[4];
        memcpy(save, data + size, 4);
        const uint32_t crc = leati_crc32c(data, size);
        for (int i = 0; i < 4; ++i) data[size + (size_t)i] = (unsigned char)(crc >> (8 * i));
        assert_int_equal(leati_crc32c(data, size + 4), 0x48674bc7u);
        memcpy(data + size, save, 4);
    }
}

static int enter(void **state) {
    return files_enter(state);
}

static int leave(void **state) {
    remove("t-08.tar");
    remove("t-09.tar");
    return files_leave(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_with_one_key_are_a_sample),
        cmocka_unit_test(bad_samples_fail_or_are_skipped),
        cmocka_unit_test(headers_of_all_kinds_are_read),
        cmocka_unit_test(features_become_tensors),
        cmocka_unit_test(damaged_records_fail_or_are_skipped),
        cmocka_unit_test(compressed_records_are_unpacked),
        cmocka_unit_test(a_shard_may_vanish),
        cmocka_unit_test(checksums_are_those_of_rfc_3720),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
