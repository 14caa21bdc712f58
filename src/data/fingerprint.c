/* SPDX-License-Identifier: Apache-2.0 */
/* Fingerprints of the files that a SPEC names: path, size, modification time and a checksum of the content, as JSON.
 * Room: data. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/call.h"
#include "data/images.h"
#include "data/kinds.h"
#include "data/paths.h"
#include "data/archive/paths.h"
#include "json/json.h"
#include "leat/source.h"

/* The checksum covers a file of at most WHOLE_BYTES bytes completely, and a longer one in its first and last END_BYTES
 * bytes and in BLOCK_COUNT blocks. */
enum { WHOLE_BYTES = 1 << 20, END_BYTES = 64 << 10, BLOCK_BYTES = 4 << 10, BLOCK_COUNT = 64 };

enum { CHECKSUM_CHARACTERS = 16 };

/* What is recorded about a file, beside its path. */
typedef struct fingerprint {
    int64_t bytes;
    int64_t seconds, nanoseconds; /* modification time */
    char checksum[CHECKSUM_CHARACTERS + 1];
    bool is_folder;
} fingerprint;

/* ---- The fingerprint of a file ---- */

/* A file whose content is being added to a checksum. */
typedef struct reading {
    int fd;
    const char *path;
    XXH3_state_t *hash;
} reading;

/* Adds the `bytes` bytes from `offset` on to the checksum. */
static leat_status add_range(const reading *in, int64_t offset, int64_t bytes, leat_error *err) {
    unsigned char buffer[16 << 10];
    while (bytes > 0) {
        size_t wanted = bytes < (int64_t)sizeof buffer ? (size_t)bytes : sizeof buffer;
        ssize_t count = pread(in->fd, buffer, wanted, offset);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return leati_fail_errno(err, LEAT_EIO, errno, "cannot read '%s'", in->path);
        if (count == 0)
            return leati_fail(err, LEAT_EIO, "'%s' was shortened while it was read: it ends at byte %" PRId64,
                              in->path, offset);
        XXH3_64bits_update(in->hash, buffer, (size_t)count);
        offset += count;
        bytes -= count;
    }
    return LEAT_OK;
}

static leat_status add_content(const reading *in, int64_t bytes, leat_error *err) {
    if (bytes <= WHOLE_BYTES) return add_range(in, 0, bytes, err);
    LEATI_TRY(add_range(in, 0, END_BYTES, err));
    for (int i = 1; i <= BLOCK_COUNT; ++i)
        LEATI_TRY(add_range(in, bytes / (BLOCK_COUNT + 1) * i, BLOCK_BYTES, err));
    return add_range(in, bytes - END_BYTES, END_BYTES, err);
}

/* Adds a file of a folder: its path and its size, not its content. */
static leat_status add_file(fingerprint *out, XXH3_state_t *hash, const char *path, leat_error *err) {
    struct stat info;
    if (stat(path, &info) != 0)
        return leati_fail_errno(err, LEAT_EIO, errno, "cannot read the attributes of '%s'", path);
    const int64_t bytes = (int64_t)info.st_size, seconds = (int64_t)info.st_mtim.tv_sec;
    const int64_t nanoseconds = (int64_t)info.st_mtim.tv_nsec;
    XXH3_64bits_update(hash, path, strlen(path) + 1);
    XXH3_64bits_update(hash, &bytes, sizeof bytes);
    out->bytes += bytes;
    if (seconds < out->seconds || (seconds == out->seconds && nanoseconds <= out->nanoseconds))
        return LEAT_OK;
    out->seconds = seconds;
    out->nanoseconds = nanoseconds;
    return LEAT_OK;
}

/* Describes files together: the sum of the sizes, the newest time, and a checksum of paths and sizes. */
static leat_status describe_pattern(fingerprint *out, const char *pattern, leat_error *err) {
    leati_path_list list;
    XXH3_state_t hash;
    XXH3_INITSTATE(&hash);
    XXH3_64bits_reset(&hash);
    *out = (fingerprint){.is_folder = true};
    LEATI_TRY(leati_path_list_expand(&list, &pattern, 1, err));
    leat_status status = LEAT_OK;
    for (int64_t i = 0; i < list.count && status == LEAT_OK; ++i)
        status = add_file(out, &hash, list.paths[i], err);
    leati_path_list_fini(&list);
    snprintf(out->checksum, sizeof out->checksum, "%016" PRIx64, (uint64_t)XXH3_64bits_digest(&hash));
    return status;
}

/* Describes a folder of pictures: the sum of the sizes, the newest time, and a checksum of paths and sizes. */
static leat_status describe_folder(fingerprint *out, const char *path, leat_error *err) {
    const leati_image_choices all = {.labels = LEATI_LABELS_NONE};
    leati_image_list list;
    XXH3_state_t hash;
    XXH3_INITSTATE(&hash);
    XXH3_64bits_reset(&hash);
    *out = (fingerprint){.is_folder = true};
    LEATI_TRY(leati_image_list_read(&list, path, &all, err));
    leat_status status = LEAT_OK;
    for (int64_t i = 0; i < list.count && status == LEAT_OK; ++i)
        status = add_file(out, &hash, list.files[i].path, err);
    leati_image_list_fini(&list);
    snprintf(out->checksum, sizeof out->checksum, "%016" PRIx64, (uint64_t)XXH3_64bits_digest(&hash));
    return status;
}

/* Adds the pictures that a CSV list names, by path and size. */
static leat_status add_listed(fingerprint *out, XXH3_state_t *hash, const char *path, const leati_spec *spec,
                              leat_error *err) {
    leati_image_choices choices = {.labels = LEATI_LABELS_NONE};
    leati_image_list list = {0};
    const char *column = leati_spec_value(spec, "x_col");
    choices.x_column = column ? leati_strdup(column) : NULL;
    if (column && !choices.x_column) return leati_fail_memory(err, strlen(column), "the name of a column");
    leat_status status = choices.x_column ? leati_spec_decode(choices.x_column, err) : LEAT_OK;
    if (status == LEAT_OK) status = leati_image_list_read(&list, path, &choices, err);
    for (int64_t i = 0; i < list.count && status == LEAT_OK; ++i)
        if (access(list.files[i].path, F_OK) == 0)
            status = add_file(out, hash, list.files[i].path, err);
        else
            XXH3_64bits_update(hash, "",
                               1); /* the policy for bad pictures decides about a picture without a file */
    leati_image_list_fini(&list);
    leati_free(choices.x_column);
    return status;
}

static leat_status describe_open_file(fingerprint *out, int fd, const char *path, const leati_spec *pictures,
                                      leat_error *err) {
    struct stat info;
    XXH3_state_t hash;
    reading in = {fd, path, &hash};
    if (fstat(fd, &info) != 0)
        return leati_fail_errno(err, LEAT_EIO, errno, "cannot read the attributes of '%s'", path);
    if (pictures && S_ISDIR(info.st_mode)) return describe_folder(out, path, err);
    if (!S_ISREG(info.st_mode))
        return leati_fail(err, LEAT_EINVAL, "expected a regular file, '%s' is something else", path);
    XXH3_INITSTATE(&hash);
    XXH3_64bits_reset(&hash);
    if (pictures && leati_image_is_archive(fd)) pictures = NULL;
    LEATI_TRY(add_content(&in, (int64_t)info.st_size, err));
    *out = (fingerprint){.bytes = (int64_t)info.st_size,
                         .seconds = (int64_t)info.st_mtim.tv_sec,
                         .nanoseconds = (int64_t)info.st_mtim.tv_nsec,
                         .is_folder = pictures != NULL};
    if (pictures) LEATI_TRY(add_listed(out, &hash, path, pictures, err));
    snprintf(out->checksum, sizeof out->checksum, "%016" PRIx64, (uint64_t)XXH3_64bits_digest(&hash));
    return LEAT_OK;
}

/* `pictures`: the SPEC if the path may name a folder or a list of pictures, otherwise NULL. */
static leat_status describe_file(fingerprint *out, const char *path, const leati_spec *pictures,
                                 leat_error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: for a FIFO without a writer */
    if (fd < 0 && errno == ENOENT && strpbrk(path, "{*")) return describe_pattern(out, path, err);
    if (fd < 0)
        return leati_fail_errno(err, errno == ENOENT ? LEAT_ENOTFOUND : LEAT_EIO, errno, "cannot open '%s'",
                                path);
    leat_status status = describe_open_file(out, fd, path, pictures, err);
    close(fd);
    return status;
}

/* ---- The fingerprint of a SPEC ---- */

static leat_status parse_spec(leati_spec *out, const char *text, leat_error *err) {
    LEATI_TRY(leati_spec_parse(out, text, err));
    leat_status status = leati_spec_check_kind(out, err);
    if (status != LEAT_OK) leati_spec_fini(out);
    return status;
}

/* Returns the SPEC if its path may name a folder or a list of pictures, otherwise NULL. */
static const leati_spec *reads_pictures(const leati_spec *spec) {
    return strcmp(spec->kind, "images") == 0 ? spec : NULL;
}

static leat_status append_file(json_t *files, const char *path, const leati_spec *pictures, leat_error *err) {
    fingerprint file;
    LEATI_TRY(describe_file(&file, path, pictures, err));
    json_t *object = json_pack("{s:o, s:I, s:I, s:I, s:s}", "path", leati_path_json(path), "bytes",
                               (json_int_t)file.bytes, "modified_s", (json_int_t)file.seconds, "modified_ns",
                               (json_int_t)file.nanoseconds, "xxh3", file.checksum);
    if (json_array_append_new(files, object) == 0) return LEAT_OK;
    return leati_fail_memory(err, strlen(path), "the fingerprint of a file");
}

/* Appends the files of one source to the array `context`. */
static leat_status append_source(void *context, const char *source, leat_error *err) {
    leati_spec spec;
    LEATI_TRY(parse_spec(&spec, source, err));
    leat_status status = LEAT_OK;
    for (int i = 0; i < spec.path_count && status == LEAT_OK; ++i)
        status = append_file(context, spec.paths[i], reads_pictures(&spec), err);
    leati_spec_fini(&spec);
    return status;
}

leat_status leat_source_fingerprint(const char *spec, char **out, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(spec, err);
    json_t *files = json_array();
    leat_status status =
        files ? LEAT_OK : leati_fail_memory(err, sizeof(fingerprint), "the fingerprint of a SPEC");
    if (status == LEAT_OK) status = leati_visit_sources(spec, 0, append_source, files, err);
    if (status == LEAT_OK) status = leati_json_write(files, out, err);
    json_decref(files);
    return leati_prefix(status, err, "data '%.160s'", spec);
}

/* ---- Comparison ---- */

/* Reads an object of the recorded array; *path is borrowed from the object. */
static leat_status read_recorded(fingerprint *out, const char **path, json_t *object, leat_error *err) {
    json_int_t bytes = 0, seconds = 0, nanoseconds = 0;
    const char *checksum = NULL;
    if (json_unpack(object, "{s:s, s:I, s:I, s:I, s:s}", "path", path, "bytes", &bytes, "modified_s",
                    &seconds, "modified_ns", &nanoseconds, "xxh3", &checksum) != 0 ||
        strlen(checksum) != CHECKSUM_CHARACTERS)
        return leati_fail(err, LEAT_EFORMAT,
                          "the recorded fingerprint is damaged: expected an object with the members path, "
                          "bytes, modified_s, modified_ns and xxh3 for each file");
    *out = (fingerprint){.bytes = bytes, .seconds = seconds, .nanoseconds = nanoseconds};
    memcpy(out->checksum, checksum, CHECKSUM_CHARACTERS);
    return LEAT_OK;
}

static leat_status compare_path(const char *path, const char *recorded, leat_error *err) {
    json_t *text = leati_path_json(path);
    if (!text) return leati_fail_memory(err, strlen(path), "a file name");
    bool same = strcmp(json_string_value(text), recorded) == 0;
    json_decref(text);
    if (same) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "the SPEC names '%s' where it named '%s' when it was recorded", path,
                      recorded);
}

/* Writes a modification time as "2026-11-23 06:00:49.123456789 UTC".  Returns `out`. */
static const char *time_text(char *out, size_t bytes, const fingerprint *file) {
    time_t seconds = (time_t)file->seconds;
    struct tm parts;
    char date[64];
    if (!gmtime_r(&seconds, &parts) || strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &parts) == 0)
        snprintf(date, sizeof date, "%" PRId64 " s after 1970", file->seconds);
    snprintf(out, bytes, "%s.%09" PRId64 " UTC", date, file->nanoseconds);
    return out;
}

/* Says what the checksum covers. */
static const char *checksum_text(const fingerprint *file) {
    return file->is_folder              ? "the names and sizes of its files"
           : file->bytes <= WHOLE_BYTES ? "its content"
                                        : "a sample of its content";
}

static leat_status compare(const fingerprint *then, const fingerprint *now, const char *path,
                           leat_error *err) {
    char before[128], after[128];
    if (now->bytes != then->bytes)
        return leati_fail(err, LEAT_EINVAL,
                          "'%s' has changed: it had %" PRId64 " bytes when it was recorded and has %" PRId64
                          " now",
                          path, then->bytes, now->bytes);
    if (strcmp(now->checksum, then->checksum) != 0)
        return leati_fail(err, LEAT_EINVAL,
                          "'%s' has changed: its size is the same, but the checksum of %s differs", path,
                          checksum_text(now));
    if (now->seconds == then->seconds && now->nanoseconds == then->nanoseconds) return LEAT_OK;
    return leati_fail(
        err, LEAT_EINVAL,
        "'%s' may have changed: it was modified at %s when it was recorded and at %s now; its size "
        "and the checksum of %s are the same",
        path, time_text(before, sizeof before, then), time_text(after, sizeof after, now),
        checksum_text(now));
}

static leat_status check_file(const char *path, const leati_spec *pictures, json_t *object, leat_error *err) {
    fingerprint then, now;
    const char *recorded_path = NULL;
    LEATI_TRY(read_recorded(&then, &recorded_path, object, err));
    LEATI_TRY(compare_path(path, recorded_path, err));
    LEATI_TRY(describe_file(&now, path, pictures, err));
    return compare(&then, &now, path, err);
}

/* The recorded files, and how many of them have been compared. */
typedef struct comparison {
    json_t *files;
    size_t count;
} comparison;

/* Compares the files of one source with the recorded ones that come next. */
static leat_status check_source(void *context, const char *source, leat_error *err) {
    comparison *c = context;
    leati_spec spec;
    LEATI_TRY(parse_spec(&spec, source, err));
    leat_status status = LEAT_OK;
    for (int i = 0; i < spec.path_count && status == LEAT_OK; ++i, ++c->count)
        status = check_file(spec.paths[i], reads_pictures(&spec), json_array_get(c->files, c->count), err);
    leati_spec_fini(&spec);
    return status;
}

static leat_status count_source(void *context, const char *source, leat_error *err) {
    leati_spec spec;
    LEATI_TRY(parse_spec(&spec, source, err));
    *(size_t *)context += (size_t)spec.path_count;
    leati_spec_fini(&spec);
    return LEAT_OK;
}

static leat_status check_files(const char *spec, json_t *files, leat_error *err) {
    comparison c = {.files = files};
    size_t count = 0;
    if (!json_is_array(files))
        return leati_fail(err, LEAT_EFORMAT, "the recorded fingerprint is damaged: expected a JSON array");
    LEATI_TRY(leati_visit_sources(spec, 0, count_source, &count, err));
    if (json_array_size(files) != count)
        return leati_fail(err, LEAT_EINVAL,
                          "the number of files has changed: %zu when they were recorded, %zu now",
                          json_array_size(files), count);
    return leati_visit_sources(spec, 0, check_source, &c, err);
}

leat_status leat_source_check_fingerprint(const char *spec, const char *recorded, leat_error *err) {
    json_t *files = NULL;
    LEATI_GIVEN(spec, err);
    LEATI_GIVEN(recorded, err);
    leat_status status = leati_prefix(leati_json_parse(&files, recorded, strlen(recorded), err), err,
                                      "the recorded fingerprint");
    if (status == LEAT_OK) status = check_files(spec, files, err);
    json_decref(files);
    return leati_prefix(status, err, "data '%.160s'", spec);
}
