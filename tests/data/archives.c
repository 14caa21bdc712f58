/* SPDX-License-Identifier: Apache-2.0 */
/* Makes archives byte by byte. */
#include "data/archives.h"

#include <stdio.h>
#include <string.h>

#include <zlib.h>

static void add_tar(archive *a, const char *name, const void *content, size_t size) {
    static const unsigned char zeros[512];
    unsigned char header[512] = {0};
    unsigned sum = 0;
    memcpy(header, name, strlen(name) < 100 ? strlen(name) : 100);
    snprintf((char *)header + 100, 8, "0000644");
    snprintf((char *)header + 124, 12, "%011zo", size);
    header[156] = name[strlen(name) - 1] == '/' ? '5' : '0';
    memcpy(header + 257,
           "ustar\0"
           "00",
           8);
    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; ++i) sum += header[i];
    snprintf((char *)header + 148, 8, "%06o", sum);
    bytes_add(&a->data, header, 512);
    bytes_add(&a->data, content, size);
    if (size % 512) bytes_add(&a->data, zeros, 512 - size % 512);
}

/* Adds the fields that the local and the central header of a zip file both have. */
static void add_fields(bytes *out, uint64_t method, uint64_t crc, uint64_t packed, uint64_t size,
                       uint64_t name) {
    bytes_add_le(out, 20, 2);
    bytes_add_le(out, 0, 2);
    bytes_add_le(out, method, 2);
    bytes_add_le(out, 0x210000, 4);
    bytes_add_le(out, crc, 4);
    bytes_add_le(out, packed, 4);
    bytes_add_le(out, size, 4);
    bytes_add_le(out, name, 2);
    bytes_add_le(out, 0, 2);
}

static void add_zip(archive *a, const char *name, const void *content, size_t size) {
    static bytes packed;
    const uint64_t start = a->data.size, crc = crc32(0, size ? content : NULL, (uInt)size);
    const uint64_t method = a->deflates && size ? 8 : 0;
    packed.size = 0;
    if (method == 8)
        bytes_add_deflated(&packed, content, size, 0);
    else
        bytes_add(&packed, content, size);
    bytes_add_le(&a->data, 0x04034b50, 4);
    add_fields(&a->data, method, crc, packed.size, size, strlen(name));
    bytes_add_text(&a->data, name);
    bytes_add(&a->data, packed.data, packed.size);
    bytes_add_le(&a->directory, 0x02014b50, 4);
    bytes_add_le(&a->directory, 20, 2);
    add_fields(&a->directory, method, crc, packed.size, size, strlen(name));
    bytes_add_le(&a->directory, 0, 8);
    bytes_add_le(&a->directory, 0, 2);
    bytes_add_le(&a->directory, start, 4);
    bytes_add_text(&a->directory, name);
}

void archive_add(archive *a, const char *name, const void *content, size_t size) {
    ++a->count;
    if (a->is_zip)
        add_zip(a, name, content, size);
    else
        add_tar(a, name, content, size);
}

void archive_write(archive *a, const char *path) {
    static const unsigned char zeros[1024];
    if (a->is_zip) {
        const uint64_t start = a->data.size;
        bytes_add(&a->data, a->directory.data, a->directory.size);
        bytes_add_le(&a->data, 0x06054b50, 4);
        bytes_add_le(&a->data, 0, 4);
        bytes_add_le(&a->data, (uint64_t)a->count, 2);
        bytes_add_le(&a->data, (uint64_t)a->count, 2);
        bytes_add_le(&a->data, a->directory.size, 4);
        bytes_add_le(&a->data, start, 4);
        bytes_add_le(&a->data, 0, 2);
    } else {
        bytes_add(&a->data, zeros, 1024);
    }
    bytes_write(&a->data, path);
}
