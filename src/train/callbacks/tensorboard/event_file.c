/* SPDX-License-Identifier: Apache-2.0 */
/* Writes event files.  Source of the framing: tensorflow/core/lib/io/record_writer.cc; of the messages:
 * tensorboard/compat/proto/event.proto.  Room: train. */
#include "train/callbacks/tensorboard/event_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/clock.h"
#include "base/os/file.h"
#include "base/text.h"
#include "base/crc32c.h"

/* Fields of tensorboard.Event. */
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3 };

enum { HEADER_BYTES = 12, BUFFER_BYTES = 256 << 10, KEY_BYTES = 64 };

static const int64_t flush_ns = INT64_C(120) * 1000000000;

static leat_status take_text(char **out, leati_text *text, leat_error *err) {
    if (!text->failed) {
        leati_free(*out);
        *out = text->data;
        return LEAT_OK;
    }
    leati_text_fini(text);
    return leati_fail_memory(err, text->length, "the path of an event file");
}

leat_status leati_event_file_init(leati_event_file *file, const char *log_dir, const char *run,
                                  const char *run_id, leat_error *err) {
    leati_text text = {0}, id = {0};
    *file = (leati_event_file){.fd = -1};
    leati_text_add(&text, "%s/%s", log_dir, run);
    LEATI_TRY(take_text(&file->folder, &text, err));
    if (!run_id) return LEAT_OK;
    leati_text_add(&id, "%s", run_id);
    return take_text(&file->run_id, &id, err);
}

void leati_event_file_fini(leati_event_file *file) {
    if (file->fd >= 0) (void)close(file->fd);
    leati_message_fini(&file->buffer);
    leati_free(file->folder);
    leati_free(file->name);
    leati_free(file->run_id);
    *file = (leati_event_file){.fd = -1};
}

/* Gives the path of the file, for leati_text_fini. */
static leat_status find_path(const leati_event_file *file, leati_text *out, leat_error *err) {
    *out = (leati_text){0};
    leati_text_add(out, "%s/%s", file->folder, file->name);
    if (!out->failed) return LEAT_OK;
    leati_text_fini(out);
    return leati_fail_memory(err, strlen(file->folder), "the path of an event file");
}

static bool is_taken(const leati_event_file *file) {
    leati_text path;
    struct stat info;
    if (find_path(file, &path, NULL) != LEAT_OK) return false;
    bool taken = lstat(path.data, &info) == 0;
    leati_text_fini(&path);
    return taken;
}

/* Names the file by its run_id.  An old file is emptied rather than removed: a TensorBoard that reads it has it
 * open. */
static leat_status name_by_run(leati_event_file *file, leat_error *err) {
    leati_text name = {0}, path;
    leati_text_add(&name, "events.out.tfevents.leat.%s.v2", file->run_id);
    LEATI_TRY(take_text(&file->name, &name, err));
    LEATI_TRY(find_path(file, &path, err));
    leat_status status = LEAT_OK;
    if (truncate(path.data, 0) != 0 && errno != ENOENT && errno != ENOTDIR)
        status = leati_fail_errno(err, LEAT_EIO, errno, "cannot empty '%s'", path.data);
    leati_text_fini(&path);
    return status;
}

leat_status leati_event_file_name(leati_event_file *file, leat_error *err) {
    if (file->run_id) return name_by_run(file, err);
    int64_t seconds = (int64_t)time(NULL);
    for (int number = 0;; ++number) {
        leati_text text = {0};
        leati_text_add(&text, "events.out.tfevents.%010" PRId64 ".leat.%ld.%d.v2", seconds, (long)getpid(),
                       number);
        LEATI_TRY(take_text(&file->name, &text, err));
        if (!is_taken(file)) return LEAT_OK;
    }
}

/* ---- Records ---- */

static double wall_time(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return 0;
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A record: the number of bytes of the data (8 bytes), its checksum (4 bytes), the data, and its checksum (4
 * bytes). */
static void begin_record(leati_message *buffer) {
    static const unsigned char header[HEADER_BYTES];
    leati_message_raw(buffer, header, sizeof header);
    leati_message_double(buffer, EVENT_WALL_TIME, wall_time());
}

static void end_record(leati_message *buffer, size_t record) {
    leati_message header = {0};
    size_t bytes = buffer->length - record - HEADER_BYTES;
    leati_message_raw_u64(&header, bytes);
    if (!header.failed) leati_message_raw_u32(&header, leati_crc32c_masked(header.data, 8));
    if (!header.failed && !buffer->failed) {
        memcpy(buffer->data + record, header.data, HEADER_BYTES);
        leati_message_raw_u32(buffer, leati_crc32c_masked(buffer->data + record + HEADER_BYTES, bytes));
    }
    buffer->failed = buffer->failed || header.failed;
    leati_message_fini(&header);
}

leati_message *leati_event_begin(leati_event_file *file, int64_t step) {
    file->record = file->buffer.length;
    begin_record(&file->buffer);
    leati_message_int(&file->buffer, EVENT_STEP, step);
    return &file->buffer;
}

leat_status leati_event_end(leati_event_file *file, leat_error *err) {
    leati_message *buffer = &file->buffer;
    end_record(buffer, file->record);
    if (buffer->failed) {
        size_t bytes = buffer->length;
        buffer->length = file->record;
        buffer->failed = false;
        return leati_fail_memory(err, bytes, "an event of TensorBoard");
    }
    if (file->flushed_ns == 0) file->flushed_ns = leati_now_ns();
    bool is_due = buffer->length >= BUFFER_BYTES || leati_now_ns() - file->flushed_ns >= flush_ns;
    return is_due ? leati_event_file_flush(file, err) : LEAT_OK;
}

/* ---- The file ---- */

/* Creates a folder and its parents. */
static leat_status make_folders(const char *folder, leat_error *err) {
    struct stat info;
    char *path = leati_strdup(folder);
    if (!path) return leati_fail_memory(err, strlen(folder), "the path of an event file");
    for (char *slash = path + 1; (slash = strchr(slash, '/')); ++slash) {
        *slash = '\0';
        (void)mkdir(path, 0777); /* the last folder is checked below */
        *slash = '/';
    }
    int number = mkdir(path, 0777) == 0 ? 0 : errno;
    leati_free(path);
    if (number == EEXIST && stat(folder, &info) == 0) number = S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
    return number == 0 ? LEAT_OK
                       : leati_fail_errno(err, LEAT_EIO, number, "cannot create the folder '%s'", folder);
}

/* Opens the file for appending.  An empty file gets the event that every file begins with. */
static leat_status open_file(leati_event_file *file, const char *path, leat_error *err) {
    leati_message first = {0};
    struct stat info;
    LEATI_TRY(make_folders(file->folder, err));
    LEATI_TRY(leati_stream_open(&file->fd, path, true, err));
    if (fstat(file->fd, &info) != 0)
        return leati_fail_errno(err, LEAT_EIO, errno, "cannot read the size of '%s'", path);
    if (info.st_size > 0) return LEAT_OK;
    begin_record(&first);
    leati_message_text(&first, EVENT_FILE_VERSION, "brain.Event:2");
    end_record(&first, 0);
    leat_status status =
        first.failed ? leati_fail_memory(err, first.length, "an event of TensorBoard") : LEAT_OK;
    int number = status == LEAT_OK ? leati_write_all(file->fd, first.data, first.length, -1) : 0;
    if (number != 0) status = leati_fail_errno(err, LEAT_EIO, number, "cannot write '%s'", path);
    leati_message_fini(&first);
    return status;
}

static leat_status write_buffer(leati_event_file *file, leat_error *err) {
    leati_text path;
    if (!file->name) LEATI_TRY(leati_event_file_name(file, err));
    LEATI_TRY(find_path(file, &path, err));
    leat_status status = file->fd < 0 ? open_file(file, path.data, err) : LEAT_OK;
    int number =
        status == LEAT_OK ? leati_write_all(file->fd, file->buffer.data, file->buffer.length, -1) : 0;
    if (number != 0) status = leati_fail_errno(err, LEAT_EIO, number, "cannot write '%s'", path.data);
    leati_text_fini(&path);
    return status;
}

leat_status leati_event_file_flush(leati_event_file *file, leat_error *err) {
    file->flushed_ns = leati_now_ns();
    if (file->buffer.length == 0) return LEAT_OK;
    leat_status status = write_buffer(file, err);
    file->buffer.length = 0;
    return status;
}

leat_status leati_event_file_close(leati_event_file *file, leat_error *err) {
    leat_status status = leati_event_file_flush(file, err);
    int fd = file->fd;
    file->fd = -1;
    if (fd < 0 || close(fd) == 0 || status != LEAT_OK) return status;
    return leati_fail_errno(err, LEAT_EIO, errno, "cannot close '%s/%s'", file->folder, file->name);
}

/* ---- States ---- */

static void make_keys(char name[KEY_BYTES], char bytes[KEY_BYTES], const char *key) {
    snprintf(name, KEY_BYTES, "%s_file", key);
    snprintf(bytes, KEY_BYTES, "%s_bytes", key);
}

leat_status leati_event_file_save(leati_event_file *file, leat_state *state, const char *key,
                                  leat_error *err) {
    char name[KEY_BYTES], bytes[KEY_BYTES];
    leati_text path;
    make_keys(name, bytes, key);
    LEATI_TRY(leati_event_file_flush(file, err));
    if (!file->name) LEATI_TRY(leati_event_file_name(file, err));
    LEATI_TRY(leat_state_put(state, name, file->name, strlen(file->name) + 1, err));
    LEATI_TRY(find_path(file, &path, err));
    leat_status status = leat_state_put_file(state, bytes, path.data, err);
    leati_text_fini(&path);
    return status;
}

leat_status leati_event_file_load(leati_event_file *file, const leat_state *state, const char *key,
                                  leat_error *err) {
    char name[KEY_BYTES], bytes[KEY_BYTES];
    size_t length = 0;
    leati_text path, text = {0};
    make_keys(name, bytes, key);
    const char *stored = leat_state_find(state, name, &length);
    if (!stored) return leati_fail(err, LEAT_ENOTFOUND, "the checkpoint has no value '%s'", name);
    if (length < 2 || stored[length - 1] != '\0' || strchr(stored, '/'))
        return leati_fail(err, LEAT_EFORMAT, "the value '%s' of the checkpoint is not the name of a file",
                          name);
    leati_text_add(&text, "%s", stored);
    LEATI_TRY(take_text(&file->name, &text, err));
    LEATI_TRY(find_path(file, &path, err));
    leat_status status = leat_state_restore_file(state, bytes, path.data, err);
    leati_text_fini(&path);
    return status;
}
