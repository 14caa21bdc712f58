/* SPDX-License-Identifier: Apache-2.0 */
/* RemoteMonitor: what a server receives, and what happens without a server. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/os/library.h"
#include "leat/log.h"
#include "support/http_server.h"
#include "train/callbacks/http/curl.h"
#include "train/callbacks/http/poster.h"
#include "train/hooks/training.h"
#include "train/support.h"

#if defined(__has_include)
#if __has_include(<curl/curl.h>)
#include <curl/curl.h>
_Static_assert((int)CURLE_OK == (int)LEATI_CURLE_OK &&
                   (int)CURL_GLOBAL_DEFAULT == (int)LEATI_CURL_GLOBAL_DEFAULT,
               "");
_Static_assert((int)CURLOPT_POSTFIELDSIZE == (int)LEATI_CURLOPT_POSTFIELDSIZE, "");
_Static_assert((int)CURLOPT_NOSIGNAL == (int)LEATI_CURLOPT_NOSIGNAL, "");
_Static_assert((int)CURLOPT_TIMEOUT_MS == (int)LEATI_CURLOPT_TIMEOUT_MS, "");
_Static_assert((int)CURLOPT_CONNECTTIMEOUT_MS == (int)LEATI_CURLOPT_CONNECTTIMEOUT_MS, "");
_Static_assert((int)CURLOPT_URL == (int)LEATI_CURLOPT_URL, "");
_Static_assert((int)CURLOPT_ERRORBUFFER == (int)LEATI_CURLOPT_ERRORBUFFER, "");
_Static_assert((int)CURLOPT_POSTFIELDS == (int)LEATI_CURLOPT_POSTFIELDS, "");
_Static_assert((int)CURLOPT_USERAGENT == (int)LEATI_CURLOPT_USERAGENT, "");
_Static_assert((int)CURLOPT_HTTPHEADER == (int)LEATI_CURLOPT_HTTPHEADER, "");
_Static_assert((int)CURLOPT_WRITEFUNCTION == (int)LEATI_CURLOPT_WRITEFUNCTION, "");
_Static_assert((int)CURLINFO_RESPONSE_CODE == (int)LEATI_CURLINFO_RESPONSE_CODE, "");
_Static_assert((int)CURL_ERROR_SIZE == (int)LEATI_CURL_ERROR_SIZE, "");
_Static_assert((CURLPROTO_HTTP | CURLPROTO_HTTPS) == LEATI_CURLPROTO_HTTP_AND_HTTPS, "");
#endif
#endif

static http_server server;

/* ---- the log ---- */

typedef struct heard {
    int warnings, infos;
    char text[8192];
} heard;

static heard words;

static void hear(void *user, leat_log_level level, const char *message) {
    heard *h = user;
    if (!strstr(message, "RemoteMonitor")) return;
    h->warnings += level == LEAT_LOG_WARNING;
    h->infos += level == LEAT_LOG_INFO;
    size_t used = strlen(h->text);
    snprintf(h->text + used, sizeof h->text - used, "%s\n", message);
}

static int set_up(void **state) {
    (void)state;
    words = (heard){0};
    leat_set_log(hear, &words);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    leat_set_log(NULL, NULL);
    return 0;
}

/* ---- a fit of which only the callback is real ---- */

typedef struct fake_fit {
    leat_training training;
    leat_callback monitor;
    leat_logs logs;
} fake_fit;

static void create(leat_callback *out, const leat_remote_monitor_options *options) {
    leat_error err = {0};
    leat_status status = leat_remote_monitor_create(out, sizeof *out, options, &err);
    if (status == LEAT_ENOTSUP) LEAT_SKIP("libcurl.so.4 is not installed (apt-get install libcurl4)");
    expect_ok(status, &err);
}

static void begin(fake_fit *fit, const leat_remote_monitor_options *options) {
    leat_error err = {0};
    memset(fit, 0, sizeof *fit);
    fit->training.params.verbose = 1;
    leat_logs_set(&fit->logs, "loss", 0.5);
    create(&fit->monitor, options);
    expect_ok(fit->monitor.on_train_begin(fit->monitor.user, &fit->training, 0, &fit->logs, &err), &err);
}

static void end_epoch(fake_fit *fit, int64_t epoch) {
    leat_error err = {0};
    expect_ok(fit->monitor.on_epoch_end(fit->monitor.user, &fit->training, epoch, &fit->logs, &err), &err);
}

/* The thread of the monitor notes a result after the server has answered. */
static void wait_for_words(fake_fit *fit, int warnings, int infos) {
    leat_error err = {0};
    for (int i = 0; i < 20000 && (words.warnings < warnings || words.infos < infos); ++i) {
        expect_ok(fit->monitor.on_epoch_begin(fit->monitor.user, &fit->training, 0, &fit->logs, &err), &err);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_int_equal(words.warnings, warnings);
    assert_int_equal(words.infos, infos);
}

static void has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("no '%s' in: %s", part, text);
}

/* ---- tests ---- */

static void decode_form(const char *body, char *out) {
    for (; *body; ++body) {
        char hex[3] = {0};
        if (*body == '%') {
            memcpy(hex, body + 1, 2);
            *out++ = (char)strtol(hex, NULL, 16);
            body += 2;
        } else
            *out++ = *body == '+' ? ' ' : *body;
    }
    *out = '\0';
}

static void fit_with(const leat_remote_monitor_options *options, int64_t epochs, leat_history **history) {
    leat_error err = {0};
    leat_callback monitor;
    create(&monitor, options);
    leat_callback *callbacks[] = {&monitor};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(40, 8), held_out = clusters_of(16, 8);
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
    leat_fit_options fit = quiet_fit_with(epochs, callbacks, 1);
    fit.validation = &validation;
    expect_ok(leat_model_fit_generator(model, &sequence, &fit, history, &err), &err);
    leat_callback_destroy(&monitor);
    leat_model_destroy(&model);
}

/* Checks that the JSON object in `text` has the epoch and the values of the history. */
static void expect_epoch(const char *text, int epoch, const leat_history *history) {
    static const char *const names[] = {"loss", "accuracy", "val_loss", "val_accuracy"};
    json_error_t error;
    json_t *object = json_loads(text, 0, &error);
    if (!object) fail_msg("%s: %s", error.text, text);
    assert_int_equal(json_integer_value(json_object_get(object, "epoch")), epoch);
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        assert_true(json_number_value(json_object_get(object, names[i])) ==
                    series_at(history, names[i], epoch));
    assert_int_equal(json_object_size(object), 5);
    json_decref(object);
}

static void a_form_has_the_logs_of_each_epoch(void **state) {
    (void)state;
    leat_history *history = NULL;
    char form[http_request_bytes];
    http_server_start(&server, 200);
    leat_remote_monitor_options options = leat_remote_monitor_options_default();
    options.root = server.root;
    fit_with(&options, 3, &history);
    http_server_stop(&server);
    assert_int_equal(server.count, 3);
    for (int i = 0; i < 3; ++i) {
        has(server.requests[i], "POST /publish/epoch/end/ HTTP/1.1\r\n");
        has(server.requests[i], "\r\nContent-Type: application/x-www-form-urlencoded\r\n");
        has(server.requests[i], "\r\nUser-Agent: leat/" LEAT_VERSION_STRING "\r\n");
        decode_form(http_server_body(&server, i), form);
        assert_memory_equal(form, "data={\"epoch\": ", 15);
        expect_epoch(form + 5, i, history);
    }
    assert_string_equal(words.text, "");
    leat_history_destroy(&history);
}

static void json_is_sent_with_headers_and_another_path(void **state) {
    (void)state;
    leat_history *history = NULL;
    http_server_start(&server, 201);
    leat_remote_monitor_options options = leat_remote_monitor_options_default();
    options.root = server.root;
    options.path = "/runs/7?a=b";
    options.send_as_json = true;
    options.headers = (const char *const[]){"Authorization: Bearer 1234", "X-Run: seven"};
    options.header_count = 2;
    fit_with(&options, 2, &history);
    http_server_stop(&server);
    assert_int_equal(server.count, 2);
    has(server.requests[0], "POST /runs/7?a=b HTTP/1.1\r\n");
    has(server.requests[0], "\r\nContent-Type: application/json\r\n");
    has(server.requests[0], "\r\nAuthorization: Bearer 1234\r\n");
    has(server.requests[0], "\r\nX-Run: seven\r\n");
    expect_epoch(http_server_body(&server, 1), 1, history);
    leat_history_destroy(&history);
}

static void names_and_values_of_all_kinds_are_encoded(void **state) {
    (void)state;
    fake_fit fit;
    char form[http_request_bytes];
    http_server_start(&server, 200);
    leat_remote_monitor_options options = leat_remote_monitor_options_default();
    options.root = server.root;
    options.field = "my data&more";
    begin(&fit, &options);
    fit.logs.count = 0;
    leat_logs_set(&fit.logs, "a\"b\\c=d&e+f%", 1e-300);
    leat_logs_set(&fit.logs, "Größe", -3);
    leat_logs_set(&fit.logs, "nan", NAN);
    leat_logs_set(&fit.logs, "infinite", INFINITY);
    end_epoch(&fit, 11);
    leat_callback_destroy(&fit.monitor);
    http_server_stop(&server);
    assert_int_equal(server.count, 1);
    const char *body = http_server_body(&server, 0);
    assert_memory_equal(body, "my+data%26more=", 15);
    assert_null(strpbrk(body + 15, "&=\" \\"));
    decode_form(body, form);
    json_t *object = json_loads(strchr(form, '=') + 1, 0, NULL);
    assert_non_null(object);
    assert_int_equal(json_integer_value(json_object_get(object, "epoch")), 11);
    assert_true(json_real_value(json_object_get(object, "a\"b\\c=d&e+f%")) == 1e-300);
    assert_true(json_number_value(json_object_get(object, "Größe")) == -3);
    assert_true(json_is_null(json_object_get(object, "nan")));
    assert_true(json_is_null(json_object_get(object, "infinite")));
    json_decref(object);
}

/* Nobody listens on the port of a server that has stopped. */
static void a_server_that_is_down_is_one_warning(void **state) {
    (void)state;
    http_server_start(&server, 200);
    http_server_stop(&server);
    leat_remote_monitor_options options = leat_remote_monitor_options_default();
    options.root = server.root;
    leat_history *history = NULL;
    fake_fit fit;
    fit_with(&options, 5, &history); /* succeeds; silent, since its option verbose is 0 */
    assert_string_equal(words.text, "");
    assert_int_equal(series_count(history, "loss"), 5);
    leat_history_destroy(&history);
    begin(&fit, &options);
    for (int epoch = 0; epoch < 30; ++epoch) end_epoch(&fit, epoch);
    leat_callback_destroy(&fit.monitor);
    assert_int_equal(words.warnings, 1);
    assert_int_equal(words.infos, 0);
    has(words.text, "leat: RemoteMonitor: http://127.0.0.1:");
    has(words.text, "; training continues");
}

static void an_outage_is_told_at_its_beginning_and_its_end(void **state) {
    (void)state;
    fake_fit fit;
    http_server_start(&server, 503);
    leat_remote_monitor_options options = leat_remote_monitor_options_default();
    options.root = server.root;
    begin(&fit, &options);
    end_epoch(&fit, 0);
    wait_for_words(&fit, 1, 0);
    has(words.text, "the server answered with HTTP status 503, expected 200 to 299; training continues");
    end_epoch(&fit, 1);
    for (int i = 0; i < 20000 && server.count < 2; ++i)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    atomic_store(&server.status, 200);
    end_epoch(&fit, 2);
    wait_for_words(&fit, 1, 1);
    has(words.text, "the server accepts messages again; ");
    leat_callback_destroy(&fit.monitor);
    http_server_stop(&server);
    assert_int_equal(words.warnings, 1);
    assert_int_equal(server.count, 3);
}

/* The server reads the first message and never answers: it costs 5 s, and the hooks never wait for that. */
static void a_silent_server_loses_the_oldest_messages(void **state) {
    (void)state;
    fake_fit fit;
    http_server_start(&server, 0);
    leat_remote_monitor_options options = leat_remote_monitor_options_default();
    options.root = server.root;
    begin(&fit, &options);
    for (int epoch = 0; epoch < 3 * LEATI_POSTER_QUEUE; ++epoch) end_epoch(&fit, epoch);
    leat_callback_destroy(&fit.monitor);
    http_server_stop(&server);
    assert_int_equal(server.count, 1);
    assert_int_equal(words.warnings, 1);
}

static void options_are_checked(void **state) {
    (void)state;
    static const char *const split[] = {"A: b", "C: d\r\nE: f"}, *const bare[] = {"Authorization"},
                             *const none[] = {NULL}, *const blank[] = {"A b: c"};
    const leat_remote_monitor_options good = leat_remote_monitor_options_default();
    leat_remote_monitor_options bad[9] = {good, good, good, good, good, good, good, good, good};
    static const char *const says[] = {
        "root: expected a URL that begins with http:// or https://, received 'ftp://x'",
        "a URL has no blanks",
        "a URL has no blanks",
        "field: expected the name",
        "header 1: expected 'Name: value'",
        "header 0: expected 'Name: value'",
        "header 0: expected 'Name: value' on one line, received 'NULL'",
        "header 0: expected 'Name: value'",
        "header_count: expected 0 to 64, received -1"};
    bad[0].root = "ftp://x";
    bad[1].root = "http://x\r\ny";
    bad[2].path = "/a b";
    bad[3].field = "";
    bad[4].headers = split, bad[4].header_count = 2;
    bad[5].headers = bare, bad[5].header_count = 1;
    bad[6].headers = none, bad[6].header_count = 1;
    bad[7].headers = blank, bad[7].header_count = 1;
    bad[8].header_count = -1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        leat_callback monitor;
        leat_error err = {0};
        assert_int_equal(leat_remote_monitor_create(&monitor, sizeof monitor, &bad[i], &err), LEAT_EINVAL);
        has(err.message, says[i]);
        assert_memory_equal(err.message, "RemoteMonitor: ", 15);
        assert_null(monitor.user);
    }
}

static void a_library_that_is_not_installed_is_not_found(void **state) {
    (void)state;
    leati_library *library = NULL;
    leat_error err = {0};
    assert_int_equal(leati_library_open_system(&library, "libleat_is_not_here.so.4", &err), LEAT_ENOTFOUND);
    assert_null(library);
    has(err.message, "cannot load 'libleat_is_not_here.so.4': ");
}

int main(void) {
    unsetenv("http_proxy"); /* libcurl obeys it */
    unsetenv("all_proxy");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_form_has_the_logs_of_each_epoch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(json_is_sent_with_headers_and_another_path, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_and_values_of_all_kinds_are_encoded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_is_down_is_one_warning, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_outage_is_told_at_its_beginning_and_its_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_silent_server_loses_the_oldest_messages, set_up, tear_down),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(a_library_that_is_not_installed_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
