/* SPDX-License-Identifier: Apache-2.0 */
/* Makes files byte by byte. */
#include "data/files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "cmocka_all.h"

void bytes_add(bytes *out, const void *data, size_t size) {
    assert_true(size <= sizeof out->data - out->size);
    if (size) memcpy(out->data + out->size, data, size);
    out->size += size;
}

void bytes_add_le(bytes *out, uint64_t value, int size) {
    for (int i = 0; i < size; ++i)
        bytes_add(out, &(unsigned char){(unsigned char)(i < 8 ? value >> 8 * i : 0)}, 1);
}

void bytes_add_be(bytes *out, uint64_t value, int size) {
    for (int i = size; i-- > 0;)
        bytes_add(out, &(unsigned char){(unsigned char)(i < 8 ? value >> 8 * i : 0)}, 1);
}

void bytes_add_text(bytes *out, const char *text) {
    bytes_add(out, text, strlen(text));
}

void bytes_add_npy_header(bytes *out, int version, const char *dict) {
    bytes_add_text(out, "\x93NUMPY");
    bytes_add_le(out, (uint64_t)version, 2);
    bytes_add_le(out, strlen(dict), version == 1 ? 2 : 4);
    bytes_add_text(out, dict);
}

void bytes_add_deflated(bytes *out, const void *data, size_t size, int gzip) {
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, gzip ? MAX_WBITS + 16 : -MAX_WBITS, 9,
                                  Z_DEFAULT_STRATEGY),
                     Z_OK);
    stream.next_in = (unsigned char *)(uintptr_t)data;
    stream.avail_in = (uInt)size;
    stream.next_out = out->data + out->size;
    stream.avail_out = (uInt)(sizeof out->data - out->size);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    out->size = sizeof out->data - stream.avail_out;
    deflateEnd(&stream);
}

void bytes_add_deflated_zip(bytes *out, const char *name, const void *data, size_t size) {
    static bytes packed;
    packed.size = 0;
    bytes_add_deflated(&packed, data, size, 0);
    uint64_t start = out->size, crc = crc32(0, data, (uInt)size);
    uint64_t fields[] = {crc, packed.size, size, strlen(name)};
    bytes_add_le(out, 0x04034b50, 4);
    bytes_add_le(out, 20 | (uint64_t)8 << 32, 8); /* version, no flags, method 8, no time */
    bytes_add_le(out, 0x21, 2);
    for (int i = 0; i < 3; ++i) bytes_add_le(out, fields[i], 4);
    bytes_add_le(out, fields[3], 4); /* no extra field */
    bytes_add_text(out, name);
    bytes_add(out, packed.data, packed.size);
    uint64_t directory = out->size;
    bytes_add_le(out, 0x02014b50, 4);
    bytes_add_le(out, 20 | 20 << 16, 4);
    bytes_add_le(out, (uint64_t)8 << 16, 6);
    bytes_add_le(out, 0x21, 2);
    for (int i = 0; i < 3; ++i) bytes_add_le(out, fields[i], 4);
    bytes_add_le(out, fields[3], 2);
    bytes_add_le(out, 0, 8);
    bytes_add_le(out, 0, 4);
    bytes_add_le(out, start, 4);
    bytes_add_text(out, name);
    uint64_t end = out->size;
    bytes_add_le(out, 0x06054b50, 4);
    bytes_add_le(out, 0, 4);
    bytes_add_le(out, 1 | 1 << 16, 4);
    bytes_add_le(out, end - directory, 4);
    bytes_add_le(out, directory, 4);
    bytes_add_le(out, 0, 2);
}

void bytes_write(const bytes *in, const char *path) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(in->data, 1, in->size, file), in->size);
    assert_int_equal(fclose(file), 0);
}

static char folder[] = "/tmp/leat-data-XXXXXX";

int files_enter(void **state) {
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int for_each(int (*act)(const char *name)) {
    int count = 0;
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (entry->d_name[0] != '.') count += act(entry->d_name);
    if (directory) closedir(directory);
    return count;
}

static int one(const char *name) {
    (void)name;
    return 1;
}

static int removed(const char *name) {
    return unlink(name) == 0;
}

int files_count(void) {
    return for_each(one);
}

int files_leave(void **state) {
    (void)state;
    for_each(removed);
    return chdir("/") == 0 ? rmdir(folder) : -1;
}
