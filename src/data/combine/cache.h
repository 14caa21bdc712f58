/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a cache: records of one size, in memory that processes share, or in a file. */
#ifndef LEATI_DATA_COMBINE_CACHE_H
#define LEATI_DATA_COMBINE_CACHE_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/os/file.h"
#include "leat/combine.h"

/* What is known about a record. */
enum {
    LEATI_RECORD_EMPTY,
    LEATI_RECORD_BUSY,      /* a worker writes the record; if it dies, the record stays so and is not used */
    LEATI_RECORD_UNCHECKED, /* the record is in the file, and its checksum was not compared yet */
    LEATI_RECORD_READY
};

/* Memory that worker processes share. */
typedef struct leati_cache_table {
    _Atomic int64_t ready;   /* the number of records that were written */
    _Atomic int write_error; /* errno of the first write that failed; then nothing more is written */
    /* Followed by `records` checksums and `records` states. */
} leati_cache_table;

typedef struct leati_cache {
    int64_t records; /* that fit; those with higher numbers are not kept */
    size_t record_bytes;
    uint64_t key[2];
    leati_cache_table *table;
    uint64_t *checksums;
    _Atomic unsigned char *states;
    size_t table_bytes;
    unsigned char *data; /* the records */
    size_t
        mapped_bytes; /* of the mapping that `data` lies in, which begins `offset` bytes before; 0: in `map` */
    size_t offset;    /* of the first record in the file */
    leati_map map;    /* the finished file */
    leati_replacement building; /* the unfinished file; fd -1: none */
    pid_t owner;                /* the process that finishes the file */
} leati_cache;

/* Gets memory for `samples` records, or for as many as fit into memory_bytes.  memory_bytes 0: half of the machine's.
 * Errors: LEAT_ENOMEM. */
leat_status leati_cache_open_memory(leati_cache *out, int64_t samples, size_t record_bytes,
                                    size_t memory_bytes, leat_error *err);

/* Maps the file if it has these records, otherwise begins a new one.  If that fails, logs a warning and makes a cache
 * without records.  Errors: LEAT_EINVAL the file is not a cache; LEAT_ENOMEM. */
leat_status leati_cache_open_file(leati_cache *out, const char *path, int64_t samples, size_t record_bytes,
                                  const uint64_t key[2], leat_error *err);

/* Returns the record, or NULL if it is not kept yet.  Threads: any. */
const unsigned char *leati_cache_find(leati_cache *cache, int64_t number);

/* Checks that a record came from its file.  Errors: LEAT_EIO the file was shortened.  Threads: any. */
leat_status leati_cache_check(const leati_cache *cache, const unsigned char *record, leat_error *err);

/* Keeps a record, unless another worker does or writing fails.  Threads: any. */
void leati_cache_keep(leati_cache *cache, int64_t number, const unsigned char *record);

/* Gives an unfinished file that has all records its name.  To be called by the process that opened the cache. */
void leati_cache_finish(leati_cache *cache);

/* Finishes the file or removes the unfinished one, and frees all memory. */
void leati_cache_close(leati_cache *cache);

#endif
