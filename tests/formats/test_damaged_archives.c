/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged .keras archives are refused: members that do not match their checksums, that claim too many bytes, and
 * configurations that are not objects. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "leat/model.h"
#include "zip/zip.h"

#define GOLDEN LEAT_SOURCE_DIR "/tests/golden/files/keras3_sequential.keras"

enum { most_members = 3, most_bytes = 1 << 20 };

/* A member of an archive under construction. */
typedef struct member {
    const char *name;
    unsigned char *data; /* as it is in the archive */
    size_t packed, bytes;
    uint32_t crc;
    int method; /* 0: stored; 8: deflated */
} member;

typedef struct archive {
    unsigned char *data;
    size_t bytes;
    size_t starts[most_members]; /* offsets of the members' contents */
} archive;

static const char *const names[most_members] = {"metadata.json", "config.json", "model.weights.h5"};

static member stored(const char *name, const void *data, size_t bytes) {
    member out = {.name = name, .data = malloc(bytes + 1), .packed = bytes, .bytes = bytes};
    assert_non_null(out.data);
    memcpy(out.data, data, bytes);
    out.crc = (uint32_t)crc32_z(0, data, bytes);
    return out;
}

/* Makes the members of a golden archive. */
static void read_golden(member out[most_members]) {
    leati_zip zip;
    leat_error err = {0};
    assert_int_equal(leati_zip_open(&zip, GOLDEN, &err), LEAT_OK);
    for (int i = 0; i < most_members; ++i) {
        const leati_zip_member *found = leati_zip_find(&zip, names[i]);
        assert_non_null(found);
        void *data = malloc((size_t)found->bytes + 1);
        assert_int_equal(leati_zip_read(&zip, found, data, &err), LEAT_OK);
        out[i] = stored(names[i], data, (size_t)found->bytes);
        free(data);
    }
    leati_zip_close(&zip);
}

/* Makes a deflated member of spaces. */
static member spaces(const char *name, size_t bytes) {
    member out = {.name = name, .bytes = bytes, .method = 8};
    unsigned char *text = malloc(bytes);
    size_t room = bytes / 200 + 1000;
    out.data = malloc(room);
    assert_true(text && out.data);
    memset(text, ' ', bytes);
    z_stream stream = {.next_in = text,
                       .avail_in = (uInt)bytes,
                       .next_out = out.data,
                       .avail_out = (uInt)room};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.packed = stream.total_out;
    out.crc = (uint32_t)crc32_z(0, text, bytes);
    deflateEnd(&stream);
    free(text);
    return out;
}

static void replace(member *old, member new) {
    free(old->data);
    *old = new;
}

static void put(archive *out, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out->data[out->bytes++] = (unsigned char)(value >> 8 * i);
}

static void put_header(archive *out, const member *m, bool central, size_t offset) {
    put(out, central ? 0x02014b50 : 0x04034b50, 4);
    put(out, 20, central ? 4 : 2);
    put(out, 0, 2);
    put(out, (uint64_t)m->method, 2);
    put(out, 0, 4);
    put(out, m->crc, 4);
    put(out, m->packed, 4);
    put(out, m->bytes, 4);
    put(out, strlen(m->name), 4);
    if (central) {
        put(out, 0, 8);
        put(out, 0, 2);
        put(out, offset, 4);
    }
    memcpy(out->data + out->bytes, m->name, strlen(m->name));
    out->bytes += strlen(m->name);
}

static archive make_archive(const member members[most_members]) {
    archive out = {.data = malloc(most_bytes)};
    size_t offsets[most_members];
    assert_non_null(out.data);
    for (int i = 0; i < most_members; ++i) {
        offsets[i] = out.bytes;
        put_header(&out, &members[i], false, 0);
        out.starts[i] = out.bytes;
        assert_true(out.bytes + members[i].packed + 4096 < most_bytes);
        memcpy(out.data + out.bytes, members[i].data, members[i].packed);
        out.bytes += members[i].packed;
    }
    size_t directory = out.bytes;
    for (int i = 0; i < most_members; ++i) put_header(&out, &members[i], true, offsets[i]);
    size_t end = out.bytes;
    put(&out, 0x06054b50, 4);
    put(&out, 0, 4);
    put(&out, most_members, 2);
    put(&out, most_members, 2);
    put(&out, end - directory, 4);
    put(&out, directory, 4);
    put(&out, 0, 2);
    return out;
}

/* Loads the archive and expects an error that contains `text`; NULL: expects that it loads. */
static void expect(const archive *a, const char *text) {
    leat_error err = {0};
    leat_model *model = NULL;
    leat_status status = leat_model_load_memory(&model, a->data, a->bytes, NULL, &err);
    leat_model_destroy(&model);
    if (status != (text ? LEAT_EFORMAT : LEAT_OK) || (text && !strstr(err.message, text)))
        fail_msg("expected '%s', received status %d: %s", text ? text : "success", (int)status, err.message);
}

static void free_members(member members[most_members]) {
    for (int i = 0; i < most_members; ++i) free(members[i].data);
}

static void damaged_stored_members_are_refused(void **state) {
    (void)state;
    member members[most_members];
    read_golden(members);
    archive a = make_archive(members);
    expect(&a, NULL);
    for (int i = 0; i < most_members; ++i) {
        unsigned char *byte = &a.data[a.starts[i] + members[i].packed * 9 / 10];
        *byte ^= 1;
        expect(&a, "does not match its checksum");
        *byte ^= 1;
    }
    expect(&a, NULL);
    free(a.data);
    free_members(members);
}

static void members_that_unpack_to_too_much_are_refused(void **state) {
    (void)state;
    for (int i = 0; i < most_members; ++i) {
        member members[most_members];
        read_golden(members);
        replace(&members[i], spaces(names[i], (size_t)72 << 20));
        archive a = make_archive(members);
        expect(&a, "after unpacking, the archive claims 75497472");
        free(a.data);
        free_members(members);
    }
}

/* The data goes on for 4 MiB after the size in the directory. */
static void unpacking_stops_at_the_declared_size(void **state) {
    (void)state;
    member members[most_members];
    read_golden(members);
    replace(&members[1], spaces(names[1], (size_t)4 << 20));
    members[1].bytes = 1000;
    archive a = make_archive(members);
    expect(&a, "longer than its header says");
    free(a.data);
    free_members(members);
}

static void a_configuration_that_is_no_object_is_named(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"[1, 2]", "received a list"}, {"3.5", "received a number"}, {"\"x\"", "received a string"},
        {"null", "received null"},     {"true", "received true"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        member members[most_members];
        read_golden(members);
        replace(&members[1], stored(names[1], texts[i][0], strlen(texts[i][0])));
        archive a = make_archive(members);
        expect(&a, texts[i][1]);
        leat_model *model = NULL;
        leat_error err = {0};
        assert_int_equal(leat_model_from_json(&model, texts[i][0], &err), LEAT_EFORMAT);
        assert_non_null(strstr(err.message, texts[i][1]));
        free(a.data);
        free_members(members);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_stored_members_are_refused),
        cmocka_unit_test(members_that_unpack_to_too_much_are_refused),
        cmocka_unit_test(unpacking_stops_at_the_declared_size),
        cmocka_unit_test(a_configuration_that_is_no_object_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
