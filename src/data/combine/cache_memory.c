/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a cache, in memory that processes share or in a file.  Room: data. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "data/combine/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "base/log.h"

/* The beginning of a file.  It is followed, at TABLE_OFFSET, by the checksums of the records, and then, at `offset`, by
 * the records. */
typedef struct header {
    char magic[16];
    uint64_t endian; /* 1 in the byte order of the machine */
    uint64_t key[2];
    int64_t records;
    uint64_t record_bytes, offset;
    uint64_t table_checksum;
    uint64_t checksum; /* of the members above */
} header;

static const char magic[16] = "leat cache 1\n";

enum { TABLE_OFFSET = 4096 };

static void *map_shared(size_t bytes) {
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static leat_status create_table(leati_cache *c, leat_error *err) {
    c->table_bytes = sizeof *c->table + (size_t)c->records * (sizeof *c->checksums + sizeof *c->states);
    c->table = map_shared(c->table_bytes);
    if (!c->table) return leati_fail_memory(err, c->table_bytes, "the table of a cache");
    c->checksums = (uint64_t *)(void *)(c->table + 1);
    c->states = (_Atomic unsigned char *)(void *)(c->checksums + c->records);
    return LEAT_OK;
}

static size_t half_of_memory(void) {
    const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (size_t)pages / 2 * (size_t)bytes : (size_t)1 << 30;
}

leat_status leati_cache_open_memory(leati_cache *out, int64_t samples, size_t record_bytes,
                                    size_t memory_bytes, leat_error *err) {
    *out = (leati_cache){.building = {.fd = -1}, .record_bytes = record_bytes, .owner = getpid()};
    const size_t fitting = (memory_bytes > 0 ? memory_bytes : half_of_memory()) / record_bytes;
    out->records = (uint64_t)samples <= fitting ? samples : (int64_t)fitting;
    if (out->records < samples)
        leati_log(LEAT_LOG_WARNING,
                  "the cache has memory for %lld of %lld samples; the others are made in each pass",
                  (long long)out->records, (long long)samples);
    LEATI_TRY(create_table(out, err));
    out->mapped_bytes = (size_t)out->records * record_bytes;
    if (out->mapped_bytes == 0) return LEAT_OK;
    out->data = map_shared(out->mapped_bytes);
    if (out->data) return LEAT_OK;
    leati_fail_memory(err, out->mapped_bytes, "a cache");
    leati_cache_close(out);
    return LEAT_ENOMEM;
}

/* ---- Files ---- */

static uint64_t checksum_of(const header *h) {
    return XXH3_64bits(h, offsetof(header, checksum));
}

static size_t file_bytes(const leati_cache *c) {
    return c->offset + (size_t)c->records * c->record_bytes;
}

/* Says why a finished file cannot be used; NULL if it can. */
static const char *find_fault(const leati_cache *c) {
    header h;
    memcpy(&h, c->map.data, sizeof h);
    if (h.endian != 1 || h.checksum != checksum_of(&h)) return "its beginning is damaged";
    if (memcmp(h.key, c->key, sizeof h.key) != 0 || h.records != c->records ||
        h.record_bytes != c->record_bytes || h.offset != c->offset)
        return "it was made of other data or with other options";
    if (c->map.size != file_bytes(c)) return "its size is wrong";
    const size_t table_bytes = (size_t)c->records * sizeof *c->checksums;
    if (h.table_checksum != XXH3_64bits(c->map.data + TABLE_OFFSET, table_bytes))
        return "its table is damaged";
    return leati_map_check(&c->map, c->map.data, c->offset, NULL) == LEAT_OK ? NULL : "it was shortened";
}

/* Maps a finished file.  Sets *usable to false if there is none with these records. */
static leat_status map_finished(leati_cache *c, const char *path, bool *usable, leat_error *err) {
    leat_error problem = {0};
    *usable = false;
    const leat_status status = leati_map_open_guarded(&c->map, path, &problem);
    if (status == LEAT_ENOTFOUND) return LEAT_OK;
    if (status != LEAT_OK) {
        if (err) *err = problem;
        return status;
    }
    if (c->map.size < sizeof(header) || memcmp(c->map.data, magic, sizeof magic) != 0) {
        leati_map_close(&c->map);
        return leati_fail(err, LEAT_EINVAL,
                          "'%s' exists and is not a cache of leat: give the path of a new file", path);
    }
    const char *fault = find_fault(c);
    if (fault) {
        leati_log(LEAT_LOG_INFO, "the cache '%s' is made anew: %s", path, fault);
        leati_map_close(&c->map);
        return LEAT_OK;
    }
    memcpy(c->checksums, c->map.data + TABLE_OFFSET, (size_t)c->records * sizeof *c->checksums);
    for (int64_t i = 0; i < c->records; ++i) atomic_init(&c->states[i], LEATI_RECORD_UNCHECKED);
    c->data = (unsigned char *)(uintptr_t)c->map.data + c->offset;
    *usable = true;
    return LEAT_OK;
}

static void warn_unusable(const char *path, size_t bytes, const char *reason) {
    leati_log(LEAT_LOG_WARNING,
              "no cache is kept in '%s', which would need %.1f MB: %s; the samples are made in each pass",
              path, (double)bytes / 1e6, reason);
}

/* Reserves the disk's space for the unfinished file, so that the mapping cannot fail later, and maps the file. */
static int reserve(leati_cache *c) {
    const size_t bytes = file_bytes(c);
    int error =
        leati_write_all(c->building.fd, "", 1, (int64_t)bytes - 1); /* reports a limit without a signal */
    if (error == 0) error = posix_fallocate(c->building.fd, 0, (off_t)bytes);
    if (error != 0) return error;
    void *memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, c->building.fd, 0);
    if (memory == MAP_FAILED) return errno;
    c->data = (unsigned char *)memory + c->offset;
    c->mapped_bytes = bytes;
    return 0;
}

static void begin_file(leati_cache *c, const char *path) {
    leat_error problem = {0};
    if (leati_replace_begin(&c->building, path, &problem) != LEAT_OK) {
        warn_unusable(path, file_bytes(c), problem.message);
        c->records = 0;
        return;
    }
    const int error = reserve(c);
    if (error == 0) return;
    warn_unusable(path, file_bytes(c), strerror(error));
    leati_replace_abandon(&c->building);
    c->records = 0;
}

leat_status leati_cache_open_file(leati_cache *out, const char *path, int64_t samples, size_t record_bytes,
                                  const uint64_t key[2], leat_error *err) {
    bool usable = false;
    *out = (leati_cache){.building = {.fd = -1},
                         .records = samples,
                         .record_bytes = record_bytes,
                         .key = {key[0], key[1]},
                         .owner = getpid()};
    const size_t table_end = TABLE_OFFSET + (size_t)samples * sizeof *out->checksums;
    out->offset = (table_end + TABLE_OFFSET - 1) / TABLE_OFFSET * TABLE_OFFSET;
    LEATI_TRY(create_table(out, err));
    const leat_status status = map_finished(out, path, &usable, err);
    if (status == LEAT_OK && !usable) begin_file(out, path);
    if (status != LEAT_OK) leati_cache_close(out);
    return status;
}

/* ---- Records ---- */

/* Compares the checksum of a record of a file.  A damaged record is not used again. */
static bool check_record(leati_cache *c, int64_t number) {
    const unsigned char *record = c->data + (size_t)number * c->record_bytes;
    if (XXH3_64bits(record, c->record_bytes) == c->checksums[number] &&
        leati_map_check(&c->map, record, c->record_bytes, NULL) == LEAT_OK) {
        atomic_store_explicit(&c->states[number], LEATI_RECORD_READY, memory_order_release);
        return true;
    }
    atomic_store(&c->states[number], LEATI_RECORD_BUSY);
    leati_log(LEAT_LOG_WARNING, "sample %lld of the cache '%s' is damaged and made anew: remove the file",
              (long long)number, c->map.path ? c->map.path : "");
    return false;
}

const unsigned char *leati_cache_find(leati_cache *cache, int64_t number) {
    if (number >= cache->records) return NULL;
    switch (atomic_load_explicit(&cache->states[number], memory_order_acquire)) {
    case LEATI_RECORD_READY: break;
    case LEATI_RECORD_UNCHECKED:
        if (check_record(cache, number)) break;
        return NULL;
    default: return NULL;
    }
    return cache->data + (size_t)number * cache->record_bytes;
}

leat_status leati_cache_check(const leati_cache *cache, const unsigned char *record, leat_error *err) {
    return leati_map_check(cache->map.guard ? &cache->map : NULL, record, cache->record_bytes, err);
}

static void note_write_error(leati_cache *c, int error) {
    int none = 0;
    if (atomic_compare_exchange_strong(&c->table->write_error, &none, error))
        warn_unusable(c->building.path, file_bytes(c), strerror(error));
}

void leati_cache_keep(leati_cache *cache, int64_t number, const unsigned char *record) {
    unsigned char empty = LEATI_RECORD_EMPTY;
    if (number >= cache->records ||
        atomic_load_explicit(&cache->table->write_error, memory_order_relaxed) != 0 ||
        !atomic_compare_exchange_strong(&cache->states[number], &empty, LEATI_RECORD_BUSY))
        return;
    const size_t at = (size_t)number * cache->record_bytes;
    if (cache->building.fd < 0) {
        memcpy(cache->data + at, record, cache->record_bytes);
    } else {
        const int error =
            leati_write_all(cache->building.fd, record, cache->record_bytes, (int64_t)(cache->offset + at));
        if (error != 0) {
            note_write_error(cache, error);
            return;
        }
        cache->checksums[number] = XXH3_64bits(record, cache->record_bytes);
    }
    atomic_store_explicit(&cache->states[number], LEATI_RECORD_READY, memory_order_release);
    atomic_fetch_add(&cache->table->ready, 1);
}

/* ---- The end ---- */

static int write_beginning(leati_cache *c) {
    const size_t table_bytes = (size_t)c->records * sizeof *c->checksums;
    header h = {.endian = 1,
                .key = {c->key[0], c->key[1]},
                .records = c->records,
                .record_bytes = c->record_bytes,
                .offset = c->offset,
                .table_checksum = XXH3_64bits(c->checksums, table_bytes)};
    memcpy(h.magic, magic, sizeof magic);
    h.checksum = checksum_of(&h);
    const int error = leati_write_all(c->building.fd, c->checksums, table_bytes, TABLE_OFFSET);
    return error != 0 ? error : leati_write_all(c->building.fd, &h, sizeof h, 0);
}

void leati_cache_finish(leati_cache *cache) {
    leat_error problem = {0};
    if (cache->building.fd < 0 || getpid() != cache->owner ||
        atomic_load(&cache->table->ready) < cache->records || atomic_load(&cache->table->write_error) != 0)
        return;
    const int error = write_beginning(cache);
    if (error != 0) {
        note_write_error(cache, error);
        return;
    }
    if (leati_replace_commit(&cache->building, &problem) != LEAT_OK)
        leati_log(LEAT_LOG_WARNING, "the cache is not kept: %s", problem.message);
}

void leati_cache_close(leati_cache *cache) {
    if (cache->table) leati_cache_finish(cache);
    if (cache->building.fd >= 0 && getpid() == cache->owner) leati_replace_abandon(&cache->building);
    if (cache->mapped_bytes > 0 && cache->data) munmap(cache->data - cache->offset, cache->mapped_bytes);
    if (cache->table) munmap(cache->table, cache->table_bytes);
    leati_map_close(&cache->map);
    *cache = (leati_cache){.building = {.fd = -1}};
}
