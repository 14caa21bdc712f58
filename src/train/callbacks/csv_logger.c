/* SPDX-License-Identifier: Apache-2.0 */
/* CSVLogger: writes one line per epoch in the format of Python's csv module.  Room: train. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/os/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "train/hooks/callback.h"

typedef struct csv_logger {
    char *path;
    char separator[8];
    bool append;
    int fd;          /* -1 if no file is open */
    bool has_header; /* true if the header was written, or the file was not empty when opened for appending */
    int column_count;
    char columns[LEAT_MAX_LOGS][LEAT_LOG_NAME_BYTES];
} csv_logger;

static leat_status add_to_file(csv_logger *self, leati_text *text, leat_error *err) {
    leat_status status = LEAT_OK;
    int number = text->failed || self->fd < 0 ? 0 : leati_write_all(self->fd, text->data, text->length, -1);
    if (text->failed) status = leati_fail_memory(err, text->length, "a line of CSVLogger");
    if (number != 0)
        status = leati_fail_errno(err, LEAT_EIO, number, "CSVLogger: cannot write '%s'", self->path);
    leati_text_fini(text);
    return status;
}

static leat_status close_file(csv_logger *self, leat_error *err) {
    int fd = self->fd;
    self->fd = -1;
    if (fd < 0 || close(fd) == 0) return LEAT_OK;
    return leati_fail_errno(err, LEAT_EIO, errno, "CSVLogger: cannot close '%s'", self->path);
}

static leat_status train_begin(void *user, leat_training *training, int64_t index, leat_logs *logs,
                               leat_error *err) {
    (void)training, (void)index, (void)logs;
    csv_logger *self = user;
    struct stat about;
    (void)close_file(self, NULL); /* a fit that failed calls no on_train_end */
    leat_status status = leati_stream_open(&self->fd, self->path, self->append, err);
    if (status != LEAT_OK) return leati_prefix(status, err, "CSVLogger");
    self->has_header = self->append && fstat(self->fd, &about) == 0 && about.st_size > 0;
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

/* Takes the columns from the metrics that training declares, so that val_* has a column even if the first epoch
 * has no validation. */
static void choose_columns(csv_logger *self, const leat_training_params *params, const leat_logs *logs) {
    for (int i = 0; i < params->metric_count; ++i) add_column(self, params->metrics[i]);
    for (int i = 0; i < logs->count; ++i) add_column(self, logs->items[i].name);
    qsort(self->columns, (size_t)self->column_count, sizeof self->columns[0], by_name);
}

static void add_header(csv_logger *self, leati_text *text) {
    leati_text_add(text, "epoch");
    for (int i = 0; i < self->column_count; ++i)
        leati_text_add(text, "%s%s", self->separator, self->columns[i]);
    leati_text_add(text, "\r\n");
    self->has_header = true;
}

static void add_value(csv_logger *self, const leat_logs *logs, const char *name, leati_text *text) {
    char number[40] = "NA";
    double value = 0;
    if (leat_logs_get(logs, name, &value)) snprintf(number, sizeof number, "%.9g", value);
    leati_decimal_point(number);
    leati_text_add(text, "%s%s", self->separator, number);
}

static leat_status epoch_end(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                             leat_error *err) {
    csv_logger *self = user;
    leati_text text = {0};
    if (self->column_count == 0) choose_columns(self, leat_training_params_get(training), logs);
    if (!self->has_header) add_header(self, &text);
    leati_text_add(&text, "%" PRId64, epoch);
    for (int i = 0; i < self->column_count; ++i) add_value(self, logs, self->columns[i], &text);
    leati_text_add(&text, "\r\n");
    return add_to_file(self, &text, err);
}

static leat_status train_end(void *user, leat_training *training, int64_t index, leat_logs *logs,
                             leat_error *err) {
    (void)training, (void)index, (void)logs;
    return close_file(user, err);
}

static void destroy(void *user) {
    csv_logger *self = user;
    (void)close_file(self, NULL);
    leati_free(self->path);
    leati_free(self);
}

leat_status leat_csv_logger_create(leat_callback *out, size_t size, const char *path, const char *separator,
                                   bool append, leat_error *err) {
    LEATI_GIVEN(out, err);
    LEATI_TRY(leati_callback_begin(out, size, err));
    LEATI_GIVEN(path, err);
    csv_logger *self = leati_calloc(1, sizeof *self);
    if (!self) return leati_fail_memory(err, sizeof *self, "CSVLogger");
    self->path = leati_strdup(path);
    if (!self->path) {
        leati_free(self);
        return leati_fail_memory(err, strlen(path), "CSVLogger");
    }
    snprintf(self->separator, sizeof self->separator, "%s", separator ? separator : ",");
    self->append = append;
    self->fd = -1;
    const leat_callback made = {.user = self,
                                .destroy = destroy,
                                .on_train_begin = train_begin,
                                .on_epoch_end = epoch_end,
                                .on_train_end = train_end};
    leati_callback_write(&made, out, size);
    return LEAT_OK;
}
