/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the cache of decoded pictures.  Room: data. */
#include "data/images_cache.h"

#include <string.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/call.h"

static void hash_number(XXH3_state_t *hash, int64_t number) {
    XXH3_128bits_update(hash, &number, sizeof number);
}

/* Hashes what says that a file is the same; a file that cannot be looked at will fail when it is read. */
static void hash_file(XXH3_state_t *hash, const char *path) {
    struct stat info = {0};
    if (stat(path, &info) != 0) info = (struct stat){0};
    hash_number(hash, (int64_t)info.st_size);
    hash_number(hash, (int64_t)info.st_mtim.tv_sec);
    hash_number(hash, (int64_t)info.st_mtim.tv_nsec);
}

/* Hashes the files of a list.  The members of an archive are the same if the archive is. */
static void hash_list(XXH3_state_t *hash, const leati_image_list *list) {
    hash_number(hash, list->count);
    if (list->archive) hash_file(hash, leati_archive_path(list->archive));
    for (int64_t i = 0; i < list->count; ++i) {
        const leati_image_file *file = &list->files[i];
        XXH3_128bits_update(hash, file->path, strlen(file->path) + 1);
        hash_number(hash, file->member);
        if (file->member < 0) hash_file(hash, file->path);
    }
}

static void make_key(uint64_t out[2], const leati_image_choices *c, const leati_image_list *list,
                     const leati_image_list *masks) {
    XXH3_state_t hash;
    XXH3_INITSTATE(&hash);
    XXH3_128bits_reset(&hash);
    const int64_t numbers[] = {c->height,       c->width,           (int64_t)c->color, (int64_t)c->filter,
                               (int64_t)c->fit, c->scaled_decoding, c->max_pixels};
    XXH3_128bits_update(&hash, numbers, sizeof numbers);
    hash_list(&hash, list);
    hash_list(&hash, masks);
    const XXH128_hash_t digest = XXH3_128bits_digest(&hash);
    out[0] = digest.low64;
    out[1] = digest.high64;
}

static leat_status open_cache(leati_cache *cache, const leati_image_choices *choices,
                              const leati_image_list *list, const leati_image_list *masks,
                              size_t record_bytes, leat_error *err) {
    static const char in_memory[] = "memory";
    const size_t length = sizeof in_memory - 1;
    const char *text = choices->cache;
    size_t memory = 0;
    uint64_t key[2];
    if (strncmp(text, in_memory, length) == 0 && (text[length] == '\0' || text[length] == ':')) {
        if (text[length]) LEATI_TRY(leati_read_bytes(&memory, "cache=memory:", text + length + 1, err));
        return leati_cache_open_memory(cache, list->count, record_bytes, memory, err);
    }
    make_key(key, choices, list, masks);
    return leati_cache_open_file(cache, text, list->count, record_bytes, key, err);
}

leat_status leati_images_cache_open(leati_cache **out, const leati_image_choices *choices,
                                    const leati_image_list *list, const leati_image_list *masks,
                                    size_t record_bytes, leat_error *err) {
    *out = NULL;
    leati_cache *cache = leati_calloc(1, sizeof *cache);
    if (!cache) return leati_fail_memory(err, sizeof *cache, "a cache");
    const leat_status status = open_cache(cache, choices, list, masks, record_bytes, err);
    if (status == LEAT_OK)
        *out = cache;
    else
        leati_free(cache);
    return status;
}
