/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a checkpoint: named records behind a header with a checksum (docs/formats/checkpoint.md).  A snapshot is
 * an image that is being made in memory; an image is read from a mapped file. */
#ifndef LEATI_CHECKPOINT_IMAGE_H
#define LEATI_CHECKPOINT_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/os/file.h"
#include "leat/error.h"

/* The alignment in bytes of a snapshot's data and of its capacity, for files that are written without the page
 * cache. */
#define LEATI_SNAPSHOT_ALIGNMENT ((size_t)4096)

/* A snapshot.  Zeroed at first. */
typedef struct leati_snapshot {
    void *memory;        /* contains the data */
    unsigned char *data; /* aligned to LEATI_SNAPSHOT_ALIGNMENT */
    size_t bytes, capacity;
    uint32_t count; /* records */
    /* Paths of files that must be on the disk before the checkpoint is valid. */
    char **files;
    size_t file_count;
} leati_snapshot;

/* Empties the snapshot and keeps its memory. */
leat_status leati_snapshot_begin(leati_snapshot *snapshot, leat_error *err);
/* Makes room for `bytes` bytes in all, so that adding records does not move them.  Errors: LEAT_ENOMEM. */
leat_status leati_snapshot_reserve(leati_snapshot *snapshot, size_t bytes, leat_error *err);
/* Adds a record and copies its data.  Errors: LEAT_EINVAL a record has this name already; LEAT_ENOMEM. */
leat_status leati_snapshot_add(leati_snapshot *snapshot, const char *name, const void *data, size_t bytes,
                               leat_error *err);
/* Adds the path of a file that must be on the disk before the checkpoint is valid. */
leat_status leati_snapshot_add_file(leati_snapshot *snapshot, const char *path, leat_error *err);
/* Writes the header with the checksum of all records: the image is complete. */
void leati_snapshot_finish(leati_snapshot *snapshot);
void leati_snapshot_fini(leati_snapshot *snapshot);

/* A mapped checkpoint, every record of which was checked. */
typedef struct leati_image {
    leati_map map;
    uint32_t count;
} leati_image;

/* Maps a file and checks its size, its checksum and its records.  Errors: LEAT_EFORMAT the file is damaged, or of a
 * later version; those of leati_map_open. */
leat_status leati_image_open(leati_image *out, const char *path, leat_error *err);
/* Like leati_image_open(), but copies the bytes of a checkpoint that another process has mapped. */
leat_status leati_image_copy(leati_image *out, const void *data, size_t bytes, leat_error *err);
void leati_image_close(leati_image *image);
/* Returns the data of a record and its size in *bytes; NULL if there is no such record. */
const void *leati_image_find(const leati_image *image, const char *name, size_t *bytes);

#endif
