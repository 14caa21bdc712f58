/* SPDX-License-Identifier: Apache-2.0 */
/* CSVLogger: a line per epoch, as Python's csv module writes it.  Layer: train. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "leat/callback.h"

typedef struct csv_logger {
    char *path;
    char separator[8];
    bool append;
    FILE *file;
    bool has_header; /* it was written, or the file to append to had one */
    int column_count;
    char columns[LEAT_MAX_LOGS][LEAT_LOG_NAME_BYTES];
} csv_logger;

static leat_status failed(csv_logger *self, leat_error *err) {
    return leati_fail_errno(err, LEAT_EIO, errno, "CSVLogger: cannot write '%s'", self->path);
}

static leat_status train_begin(void *user, leat_training *training, int64_t index, leat_logs *logs,
                               leat_error *err) {
    (void)training, (void)index, (void)logs;
    csv_logger *self = user;
    if (self->file) fclose(self->file); /* a fit that failed calls no on_train_end */
    self->file = NULL;
    int fd;
    leat_status status = leati_stream_open(&fd, self->path, self->append, err);
    if (status != LEAT_OK) return leati_prefix(status, err, "CSVLogger");
    self->file = fdopen(fd, self->append ? "a" : "w");
    if (!self->file) {
        status = failed(self, err);
        close(fd);
        return status;
    }
    self->has_header = self->append && fseek(self->file, 0, SEEK_END) == 0 && ftell(self->file) > 0;
    self->append = true; /* a second fit with this callback adds to the file */
    self->column_count = 0;
    return LEAT_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(a, b);
}

static void add_column(csv_logger *self, const char *name) {
    for (int i = 0; i < self->column_count; ++i)
        if (strcmp(self->columns[i], name) == 0) return;
    if (self->column_count < LEAT_MAX_LOGS)
        snprintf(self->columns[self->column_count++], LEAT_LOG_NAME_BYTES, "%s", name);
}

/* Columns come from what training declares, so that val_* has its column even if the first epoch has no validation. */
static void choose_columns(csv_logger *self, const leat_training_params *params, const leat_logs *logs) {
    for (int i = 0; i < params->metric_count; ++i) add_column(self, params->metrics[i]);
    for (int i = 0; i < logs->count; ++i) add_column(self, logs->items[i].name);
    qsort(self->columns, (size_t)self->column_count, sizeof self->columns[0], by_name);
}

static void write_header(csv_logger *self) {
    fputs("epoch", self->file);
    for (int i = 0; i < self->column_count; ++i)
        fprintf(self->file, "%s%s", self->separator, self->columns[i]);
    fputs("\r\n", self->file);
    self->has_header = true;
}

static leat_status epoch_end(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                             leat_error *err) {
    csv_logger *self = user;
    if (self->column_count == 0) choose_columns(self, leat_training_params_get(training), logs);
    if (!self->has_header) write_header(self);
    fprintf(self->file, "%" PRId64, epoch);
    for (int i = 0; i < self->column_count; ++i) {
        double value = 0;
        if (leat_logs_get(logs, self->columns[i], &value))
            fprintf(self->file, "%s%.9g", self->separator, value);
        else
            fprintf(self->file, "%sNA", self->separator);
    }
    fputs("\r\n", self->file);
    return fflush(self->file) == 0 && !ferror(self->file) ? LEAT_OK : failed(self, err);
}

static leat_status train_end(void *user, leat_training *training, int64_t index, leat_logs *logs,
                             leat_error *err) {
    (void)training, (void)index, (void)logs;
    csv_logger *self = user;
    FILE *file = self->file;
    self->file = NULL;
    return !file || fclose(file) == 0 ? LEAT_OK : failed(self, err);
}

static void destroy(void *user) {
    csv_logger *self = user;
    if (self->file) fclose(self->file);
    leati_free(self->path);
    leati_free(self);
}

leat_status leat_csv_logger_create(leat_callback *out, const char *path, const char *separator, bool append,
                                   leat_error *err) {
    LEATI_GIVEN(out, err);
    LEATI_GIVEN(path, err);
    *out = (leat_callback){0};
    csv_logger *self = leati_calloc(1, sizeof *self);
    if (!self) return leati_fail_memory(err, sizeof *self, "CSVLogger");
    self->path = leati_strdup(path);
    if (!self->path) {
        leati_free(self);
        return leati_fail_memory(err, strlen(path), "CSVLogger");
    }
    snprintf(self->separator, sizeof self->separator, "%s", separator ? separator : ",");
    self->append = append;
    *out = (leat_callback){.user = self,
                           .on_train_begin = train_begin,
                           .on_epoch_end = epoch_end,
                           .on_train_end = train_end,
                           .destroy = destroy};
    return LEAT_OK;
}
