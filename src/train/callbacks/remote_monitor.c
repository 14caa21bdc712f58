/* SPDX-License-Identifier: Apache-2.0 */
/* RemoteMonitor: sends the logs of each epoch to an HTTP server.  Room: train. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "json/json.h"
#include "train/callbacks/http/poster.h"
#include "train/hooks/callback.h"

enum { max_headers = 64 };

typedef struct remote_monitor {
    leati_poster *poster;
    char *root;      /* for messages */
    char *field;     /* "data=", percent-encoded; NULL: the JSON text is sent itself */
    bool is_verbose; /* the fit's option verbose is not 0 */
} remote_monitor;

static const leat_remote_monitor_options defaults = {.root = "http://localhost:9000",
                                                     .path = "/publish/epoch/end/",
                                                     .field = "data"};
static const leati_growing options_type = LEATI_GROWING(leat_remote_monitor_options, root, &defaults);

void leat_remote_monitor_options_init(leat_remote_monitor_options *options, size_t size) {
    leati_growing_init(&options_type, options, size);
}

/* ---- The message ---- */

static leat_status make_json(int64_t epoch, const leat_logs *logs, char **out, leat_error *err) {
    json_t *object = json_object();
    bool failed = !object || json_object_set_new(object, "epoch", json_integer(epoch)) != 0;
    for (int i = 0; i < logs->count && !failed; ++i) {
        double value = logs->items[i].value;
        json_t *number = isfinite(value) ? leati_json_real(value) : json_null();
        failed = number == NULL;
        /* jansson refuses a name that is not UTF-8, so that it is left out. */
        (void)json_object_set_new(object, logs->items[i].name, number);
    }
    leat_status status =
        failed ? leati_fail_memory(err, 0, "the logs in JSON") : leati_json_write(object, out, err);
    json_decref(object);
    return status;
}

/* Appends a text in the encoding of forms, like Python's urllib.parse.quote_plus. */
static void add_encoded(leati_text *to, const char *text) {
    for (const unsigned char *at = (const unsigned char *)text; *at; ++at)
        if (*at < 0x80 && (isalnum(*at) || strchr("_.-~", *at)))
            leati_text_add(to, "%c", *at);
        else if (*at == ' ')
            leati_text_add(to, "+");
        else
            leati_text_add(to, "%%%02X", *at);
}

static leat_status make_body(const remote_monitor *self, int64_t epoch, const leat_logs *logs, char **out,
                             leat_error *err) {
    char *json = NULL;
    leati_text form = {0};
    LEATI_TRY(make_json(epoch, logs, &json, err));
    *out = json;
    if (!self->field) return LEAT_OK;
    leati_text_add(&form, "%s", self->field);
    add_encoded(&form, json);
    leati_free(json);
    *out = form.data;
    if (!form.failed) return LEAT_OK;
    leati_text_fini(&form);
    *out = NULL;
    return leati_fail_memory(err, 0, "a message of RemoteMonitor");
}

/* ---- The hooks ---- */

static void tell_news(remote_monitor *self) {
    char news[LEATI_POSTER_NEWS_BYTES];
    bool is_bad = false;
    if (!leati_poster_news(self->poster, news, &is_bad) || !self->is_verbose) return;
    leati_log(is_bad ? LEAT_LOG_WARNING : LEAT_LOG_INFO, "leat: RemoteMonitor: %s: %s", self->root, news);
}

static leat_status train_begin(void *user, leat_training *training, int64_t index, leat_logs *logs,
                               leat_error *err) {
    (void)index, (void)logs, (void)err;
    ((remote_monitor *)user)->is_verbose = leat_training_params_get(training)->verbose != 0;
    return LEAT_OK;
}

static leat_status epoch_begin(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                               leat_error *err) {
    (void)training, (void)epoch, (void)logs, (void)err;
    tell_news(user);
    return LEAT_OK;
}

static leat_status epoch_end(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                             leat_error *err) {
    (void)training;
    remote_monitor *self = user;
    char *body = NULL;
    LEATI_TRY(leati_prefix(make_body(self, epoch, logs, &body, err), err, "RemoteMonitor"));
    leati_poster_send(self->poster, body);
    tell_news(self);
    return LEAT_OK;
}

static void destroy(void *user) {
    remote_monitor *self = user;
    if (self->poster) {
        leati_poster_finish(self->poster);
        tell_news(self);
    }
    leati_poster_destroy(&self->poster);
    leati_free(self->root);
    leati_free(self->field);
    leati_free(self);
}

/* ---- Creation ---- */

static bool is_http(const char *root) {
    return strncasecmp(root, "http://", 7) == 0 || strncasecmp(root, "https://", 8) == 0;
}

static leat_status check_headers(const leat_remote_monitor_options *options, leat_error *err) {
    if (options->header_count < 0 || options->header_count > max_headers)
        return leati_fail(err, LEAT_EINVAL, "header_count: expected 0 to %d, received %d", max_headers,
                          options->header_count);
    if (options->header_count > 0) LEATI_GIVEN(options->headers, err);
    for (int i = 0; i < options->header_count; ++i) {
        const char *line = options->headers[i];
        if (!line || leati_has_control(line) || line[0] == ':' || line[strcspn(line, ": ")] != ':')
            return leati_fail(err, LEAT_EINVAL,
                              "header %d: expected 'Name: value' on one line, received '%s'", i,
                              line ? line : "NULL");
    }
    return LEAT_OK;
}

static leat_status check(const leat_remote_monitor_options *options, leat_error *err) {
    LEATI_GIVEN(options->root, err);
    LEATI_GIVEN(options->path, err);
    LEATI_GIVEN(options->field, err);
    if (!is_http(options->root))
        return leati_fail(err, LEAT_EINVAL,
                          "root: expected a URL that begins with http:// or https://, received '%s'",
                          options->root);
    for (const char *text = options->root; text; text = text == options->root ? options->path : NULL)
        if (leati_has_control(text) || strchr(text, ' '))
            return leati_fail(err, LEAT_EINVAL, "a URL has no blanks and control characters, received '%s%s'",
                              options->root, options->path);
    if (!options->send_as_json && !*options->field)
        return leati_fail(err, LEAT_EINVAL, "field: expected the name of a form's field, received ''");
    return check_headers(options, err);
}

/* Starts the poster.  A Content-Type among the caller's headers replaces that of JSON. */
static leat_status start(remote_monitor *self, const leat_remote_monitor_options *options, leat_error *err) {
    const char *lines[max_headers + 1];
    int count = options->header_count;
    bool typed = !options->send_as_json;
    leati_text url = {0};
    for (int i = 0; i < count; ++i) {
        lines[i] = options->headers[i];
        if (strncasecmp(lines[i], "Content-Type:", 13) == 0) typed = true;
    }
    if (!typed) lines[count++] = "Content-Type: application/json";
    leati_text_add(&url, "%s%s", options->root, options->path);
    leat_status status = url.failed ? leati_fail_memory(err, strlen(options->root), "a URL")
                                    : leati_poster_create(&self->poster, url.data, lines, count, err);
    leati_text_fini(&url);
    return status;
}

static leat_status fill(remote_monitor *self, const leat_remote_monitor_options *options, leat_error *err) {
    leati_text field = {0};
    self->is_verbose = true;
    self->root = leati_strdup(options->root);
    if (!self->root) return leati_fail_memory(err, strlen(options->root), "a URL");
    if (!options->send_as_json) {
        add_encoded(&field, options->field);
        leati_text_add(&field, "=");
        self->field = field.data;
        if (field.failed) return leati_fail_memory(err, strlen(options->field), "the name of a field");
    }
    return start(self, options, err);
}

leat_status leat_remote_monitor_create(leat_callback *out, size_t size,
                                       const leat_remote_monitor_options *options, leat_error *err) {
    LEATI_GIVEN(out, err);
    LEATI_TRY(leati_callback_begin(out, size, err));
    LEATI_GIVEN(options, err);
    leat_remote_monitor_options all;
    LEATI_TRY(leati_growing_read(&options_type, options, &all, err));
    LEATI_TRY(leati_prefix(check(&all, err), err, "RemoteMonitor"));
    remote_monitor *self = leati_calloc(1, sizeof *self);
    if (!self) return leati_fail_memory(err, sizeof *self, "RemoteMonitor");
    leat_status status = fill(self, &all, err);
    if (status != LEAT_OK) {
        destroy(self);
        return leati_prefix(status, err, "RemoteMonitor");
    }
    const leat_callback made = {.user = self,
                                .destroy = destroy,
                                .on_train_begin = train_begin,
                                .on_epoch_begin = epoch_begin,
                                .on_epoch_end = epoch_end};
    leati_callback_write(&made, out, size);
    return LEAT_OK;
}
