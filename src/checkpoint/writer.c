/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that writes checkpoints.  Room: checkpoint.
 *
 * The order of the steps makes every instant a valid state: the files that callbacks append to are flushed to the disk,
 * then the checkpoint is written under a temporary name, flushed and renamed; then the oldest checkpoint is removed. */
#define _GNU_SOURCE /* O_DIRECT */
#include "checkpoint/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/file.h"
#include "base/os/signals.h"
#include "checkpoint/folder.h"

struct leati_writer {
    char *folder;
    int keep;
    leati_snapshot snapshot; /* belongs to the thread while `busy`, otherwise to the caller */
    int64_t steps;           /* like snapshot */
    pthread_t thread;
    bool started; /* the thread exists */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Guarded by `lock`. */
    bool busy, closing;
    leat_status status;
    leat_error error;
};

/* ---- The thread ---- */

static leat_status sync_file(const char *path, leat_error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return leati_fail_errno(err, LEAT_EIO, errno, "cannot open '%s'", path);
    leat_status status = LEAT_OK;
    if (fdatasync(fd) != 0 && errno != EINVAL && errno != ENOTSUP)
        status = leati_fail_errno(err, LEAT_EIO, errno, "cannot flush '%s'", path);
    close(fd);
    return status;
}

/* Writes the snapshot without the page cache, so that the core time is left to the fit.  Returns false if the file
 * system cannot do this; nothing is lost then. */
static bool write_directly(const leati_replacement *file, const leati_snapshot *snapshot) {
    const size_t block = LEATI_SNAPSHOT_ALIGNMENT, bytes = (snapshot->bytes + block - 1) / block * block;
    int flags = fcntl(file->fd, F_GETFL);
    if (flags < 0 || fcntl(file->fd, F_SETFL, flags | O_DIRECT) != 0) return false;
    bool written = leati_write_all(file->fd, snapshot->data, bytes, 0) == 0;
    return fcntl(file->fd, F_SETFL, flags) == 0 && written &&
           ftruncate(file->fd, (off_t)snapshot->bytes) == 0;
}

static leat_status replace_file(const char *path, const leati_snapshot *snapshot, leat_error *err) {
    leati_replacement file;
    leat_status status = LEAT_OK;
    LEATI_TRY(leati_replace_begin(&file, path, err));
    if (!write_directly(&file, snapshot)) {
        int number = ftruncate(file.fd, 0) == 0 ? 0 : errno;
        if (number == 0) number = leati_write_all(file.fd, snapshot->data, snapshot->bytes, 0);
        if (number != 0) status = leati_fail_errno(err, LEAT_EIO, number, "cannot write '%s'", path);
    }
    if (status == LEAT_OK) return leati_replace_commit(&file, err);
    leati_replace_abandon(&file);
    return status;
}

static leat_status write_file(leati_writer *writer, leat_error *err) {
    leati_snapshot *snapshot = &writer->snapshot;
    char *path = NULL;
    for (size_t i = 0; i < snapshot->file_count; ++i) LEATI_TRY(sync_file(snapshot->files[i], err));
    leati_snapshot_finish(snapshot);
    LEATI_TRY(leati_checkpoint_path(&path, writer->folder, writer->steps, err));
    leat_status status = replace_file(path, snapshot, err);
    leati_free(path);
    /* An old checkpoint that cannot be removed now is removed after the next one is written. */
    if (status == LEAT_OK) (void)leati_checkpoint_prune(writer->folder, writer->keep, NULL);
    return status;
}

static void *run_writer(void *argument) {
    leati_writer *writer = argument;
    (void)prctl(PR_SET_NAME, "leat-checkpoint");
    pthread_mutex_lock(&writer->lock);
    for (;;) {
        while (!writer->busy && !writer->closing) pthread_cond_wait(&writer->changed, &writer->lock);
        if (!writer->busy) break;
        pthread_mutex_unlock(&writer->lock);
        leat_error why = {0};
        leat_status status = write_file(writer, &why);
        pthread_mutex_lock(&writer->lock);
        writer->status = status;
        writer->error = why;
        writer->busy = false;
        pthread_cond_broadcast(&writer->changed);
    }
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

/* ---- The caller's side ---- */

static leat_status start(leati_writer *writer, leat_error *err) {
    sigset_t before;
    leati_mask_all_but_faults(&before);
    int failed = pthread_create(&writer->thread, NULL, run_writer, writer);
    leati_mask_restore(&before);
    writer->started = failed == 0;
    if (writer->started) return LEAT_OK;
    return leati_fail_errno(err, LEAT_EIO, failed, "cannot create the thread that writes checkpoints");
}

leat_status leati_writer_create(leati_writer **out, const char *folder, int keep, leat_error *err) {
    leati_writer *writer = leati_calloc(1, sizeof *writer);
    *out = NULL;
    if (!writer) return leati_fail_memory(err, sizeof *writer, "the writer of checkpoints");
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->changed, NULL);
    writer->keep = keep;
    writer->folder = leati_strdup(folder);
    leat_status status = writer->folder ? start(writer, err) : leati_fail_memory(err, 0, "a folder's name");
    if (status != LEAT_OK) leati_writer_destroy(&writer);
    *out = writer;
    return status;
}

void leati_writer_destroy(leati_writer **handle) {
    leati_writer *writer = *handle;
    if (!writer) return;
    if (writer->started) {
        pthread_mutex_lock(&writer->lock);
        writer->closing = true;
        pthread_cond_broadcast(&writer->changed);
        pthread_mutex_unlock(&writer->lock);
        pthread_join(writer->thread, NULL);
    }
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->lock);
    leati_snapshot_fini(&writer->snapshot);
    leati_free(writer->folder);
    leati_free(writer);
    *handle = NULL;
}

bool leati_writer_is_idle(leati_writer *writer) {
    pthread_mutex_lock(&writer->lock);
    bool idle = !writer->busy;
    pthread_mutex_unlock(&writer->lock);
    return idle;
}

leati_snapshot *leati_writer_snapshot(leati_writer *writer) {
    return &writer->snapshot;
}

void leati_writer_begin(leati_writer *writer, int64_t steps) {
    pthread_mutex_lock(&writer->lock);
    writer->steps = steps;
    writer->busy = true;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
}

void leati_writer_wait(leati_writer *writer) {
    pthread_mutex_lock(&writer->lock);
    while (writer->busy) pthread_cond_wait(&writer->changed, &writer->lock);
    pthread_mutex_unlock(&writer->lock);
}

leat_status leati_writer_result(leati_writer *writer, leat_error *err) {
    leati_writer_wait(writer);
    pthread_mutex_lock(&writer->lock);
    leat_status status = writer->status;
    if (status != LEAT_OK && err) *err = writer->error;
    writer->status = LEAT_OK;
    pthread_mutex_unlock(&writer->lock);
    return status;
}
