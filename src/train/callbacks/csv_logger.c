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
#include "checkpoint/state.h"
#include "train/callbacks/csv_text.h"
#include "train/hooks/callback.h"
#include "train/hooks/training.h"

typedef struct csv_logger {
    char *path;
    char separator[8];
    bool append;
    int fd;          /* -1 if no file is open */
    bool has_header; /* true if the header was written, or the file was not empty when opened for appending */
    bool adopted; /* true if the columns are those of the file's header, and no epoch has been written yet */
    bool torn;    /* true if the last line of the file lacks its line break */
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

static int by_name(const void *a, const void *b) {
    return strcmp(a, b);
}

static bool has_column(const csv_logger *self, const char *name) {
    for (int i = 0; i < self->column_count; ++i)
        if (strcmp(self->columns[i], name) == 0) return true;
    return false;
}

static void add_column(csv_logger *self, const char *name) {
    if (!has_column(self, name) && self->column_count < LEAT_MAX_LOGS)
        snprintf(self->columns[self->column_count++], LEAT_LOG_NAME_BYTES, "%s", name);
}

/* Takes the columns from the metrics that training declares, so that val_* has a column even if the first epoch
 * has no validation. */
static void choose_columns(csv_logger *self, const leat_training_params *params, const leat_logs *logs) {
    for (int i = 0; i < params->metric_count; ++i) add_column(self, params->metrics[i]);
    for (int i = 0; i < logs->count; ++i) add_column(self, logs->items[i].name);
    qsort(self->columns, (size_t)self->column_count, sizeof self->columns[0], by_name);
}

/* ---- Appending to a file that has a header ---- */

/* Takes the columns from the header, the first record of the `size` bytes at `data`. */
static leat_status adopt_header(csv_logger *self, const char *data, size_t size, leat_error *err) {
    leati_text name = {0};
    const char *at = data, *end = data + size;
    bool more = leati_csv_next(&at, end, self->separator, &name);
    bool valid = name.failed || strcmp(name.data, "epoch") == 0;
    while (valid && more && !name.failed) {
        more = leati_csv_next(&at, end, self->separator, &name);
        valid = name.length < LEAT_LOG_NAME_BYTES && self->column_count < LEAT_MAX_LOGS;
        if (valid && !name.failed) add_column(self, name.data);
    }
    leat_status status = LEAT_OK;
    if (name.failed)
        status = leati_fail_memory(err, size, "the header of a file");
    else if (!valid)
        status = leati_fail(err, LEAT_EFORMAT,
                            "'%s': expected a file that begins with the column 'epoch' and the separator "
                            "'%s', received '%.40s': write to another file, or do not append",
                            self->path, self->separator, name.data);
    leati_text_fini(&name);
    self->adopted = true;
    self->torn = data[size - 1] != '\n';
    return status;
}

/* Fails if the header lacks a metric of the training. */
static leat_status check_header(const csv_logger *self, const leat_training_params *params, leat_error *err) {
    leati_text columns = {0};
    leat_status status = LEAT_OK;
    for (int i = 0; i < self->column_count; ++i) leati_text_add(&columns, ", %s", self->columns[i]);
    for (int i = 0; i < params->metric_count && status == LEAT_OK; ++i)
        if (!has_column(self, params->metrics[i]))
            status = leati_fail(
                err, LEAT_EINVAL,
                "'%s' has no column '%s', which this training logs; its columns are epoch%s: write "
                "to another file, remove this file, or train with the same metrics",
                self->path, params->metrics[i], columns.failed || !columns.data ? "" : columns.data);
    leati_text_fini(&columns);
    return status;
}

static leat_status read_header(csv_logger *self, const leat_training_params *params, leat_error *err) {
    leati_map map;
    LEATI_TRY(leati_map_open(&map, self->path, err));
    leat_status status = map.size > 0 ? adopt_header(self, (const char *)map.data, map.size, err) : LEAT_OK;
    leati_map_close(&map);
    return status == LEAT_OK && self->adopted ? check_header(self, params, err) : status;
}

/* Warns of values that have no column, and of columns that have no value, when the first epoch is written. */
static void warn_of_differences(const csv_logger *self, const leat_training *training,
                                const leat_logs *logs) {
    csv_logger now = {0};
    choose_columns(&now, leat_training_params_get(training), logs);
    for (int i = 0; i < now.column_count; ++i)
        if (!has_column(self, now.columns[i]))
            leati_training_log(training, LEAT_LOG_WARNING,
                               "CSVLogger: '%s' has no column '%s': its values are not written there",
                               self->path, now.columns[i]);
    for (int i = 0; i < self->column_count; ++i)
        if (!has_column(&now, self->columns[i]))
            leati_training_log(
                training, LEAT_LOG_WARNING,
                "CSVLogger: '%s' has the column '%s', which this training does not log: it gets NA",
                self->path, self->columns[i]);
}

static leat_status train_begin(void *user, leat_training *training, int64_t index, leat_logs *logs,
                               leat_error *err) {
    (void)index, (void)logs;
    csv_logger *self = user;
    const leat_training_params *params = leat_training_params_get(training);
    struct stat about;
    (void)close_file(self, NULL); /* a fit that failed calls no on_train_end */
    bool append = self->append || params->resumed;
    leat_status status = leati_stream_open(&self->fd, self->path, append, err);
    if (status != LEAT_OK) return leati_prefix(status, err, "CSVLogger");
    self->has_header = append && fstat(self->fd, &about) == 0 && about.st_size > 0;
    self->append = true; /* a second fit with this callback adds to the file */
    self->column_count = 0;
    self->adopted = self->torn = false;
    if (self->has_header && !params->resumed) status = read_header(self, params, err);
    return leati_prefix(status, err, "CSVLogger");
}

/* ---- Lines ---- */

static void add_header(csv_logger *self, leati_text *text) {
    leati_text_add(text, "epoch");
    for (int i = 0; i < self->column_count; ++i) {
        leati_text_add(text, "%s", self->separator);
        leati_csv_add(text, self->columns[i], self->separator);
    }
    leati_text_add(text, "\r\n");
    self->has_header = true;
}

static void add_value(csv_logger *self, const leat_logs *logs, const char *name, leati_text *text) {
    char number[40] = "NA";
    double value = 0;
    if (leat_logs_get(logs, name, &value)) snprintf(number, sizeof number, "%.9g", value);
    leati_decimal_point(number);
    leati_text_add(text, "%s", self->separator);
    leati_csv_add(text, number, self->separator);
}

static leat_status epoch_end(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                             leat_error *err) {
    csv_logger *self = user;
    leati_text text = {0};
    if (self->adopted) warn_of_differences(self, training, logs);
    if (self->column_count == 0) choose_columns(self, leat_training_params_get(training), logs);
    if (self->torn) leati_text_add(&text, "\r\n");
    self->adopted = self->torn = false;
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

/* ---- Checkpoints ---- */

static leat_status save_state(void *user, leat_training *training, leat_state *state, leat_error *err) {
    (void)training;
    const csv_logger *self = user;
    LEATI_TRY(leati_state_put_i64(state, "has_header", self->has_header, err));
    LEATI_TRY(leati_state_put_i64(state, "adopted", self->adopted, err));
    LEATI_TRY(leati_state_put_i64(state, "torn", self->torn, err));
    LEATI_TRY(leat_state_put(state, "columns", self->columns,
                             (size_t)self->column_count * sizeof self->columns[0], err));
    return leat_state_put_file(state, "file", self->path, err);
}

static leat_status load_flag(const leat_state *state, const char *name, bool *flag, leat_error *err) {
    int64_t value = 0;
    LEATI_TRY(leati_state_get_i64(state, name, &value, err));
    *flag = value != 0;
    return LEAT_OK;
}

/* The file is open for appending, so that the next line follows the bytes that leat_state_restore_file keeps. */
static leat_status load_state(void *user, leat_training *training, leat_state *state, leat_error *err) {
    (void)training;
    csv_logger *self = user;
    size_t bytes = 0;
    LEATI_TRY(load_flag(state, "has_header", &self->has_header, err));
    LEATI_TRY(load_flag(state, "adopted", &self->adopted, err));
    LEATI_TRY(load_flag(state, "torn", &self->torn, err));
    const char *columns = leat_state_find(state, "columns", &bytes);
    if (bytes > sizeof self->columns || bytes % sizeof self->columns[0] != 0)
        return leati_fail(err, LEAT_EFORMAT, "CSVLogger: the columns have %zu bytes, expected at most %zu",
                          bytes, sizeof self->columns);
    if (columns) memcpy(self->columns, columns, bytes);
    self->column_count = (int)(bytes / sizeof self->columns[0]);
    for (int i = 0; i < self->column_count; ++i) self->columns[i][LEAT_LOG_NAME_BYTES - 1] = '\0';
    return leat_state_restore_file(state, "file", self->path, err);
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
    if (separator && !separator[0])
        return leati_fail(err, LEAT_EINVAL,
                          "CSVLogger: separator: expected a text such as \",\", received \"\"");
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
                                .save_state = save_state,
                                .load_state = load_state,
                                .on_train_begin = train_begin,
                                .on_epoch_end = epoch_end,
                                .on_train_end = train_end};
    leati_callback_write(&made, out, size);
    return LEAT_OK;
}
