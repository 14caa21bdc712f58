/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP requests by libcurl.  Room: train. */
#include "train/callbacks/http/curl.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/library.h"

/* The functions of libcurl; a handle is a pointer to a type that libcurl hides. */
typedef struct functions {
    int (*global_init)(long flags);
    void *(*easy_init)(void);
    int (*easy_setopt)(void *handle, int option, ...);
    int (*easy_perform)(void *handle);
    int (*easy_getinfo)(void *handle, int info, ...);
    void (*easy_cleanup)(void *handle);
    void *(*slist_append)(void *list, const char *line);
    void (*slist_free_all)(void *list);
    const char *(*easy_strerror)(int code);
} functions;

struct leati_curl {
    leati_library *library;
    functions call;
    void *handle;
    void *headers;
    char reason[LEATI_CURL_ERROR_SIZE]; /* libcurl's text about the last failure */
};

static leat_status find_functions(leati_curl *curl, leat_error *err) {
    functions *call = &curl->call;
    const struct {
        const char *name;
        void *out;
    } table[] = {{"curl_global_init", &call->global_init},    {"curl_easy_init", &call->easy_init},
                 {"curl_easy_setopt", &call->easy_setopt},    {"curl_easy_perform", &call->easy_perform},
                 {"curl_easy_getinfo", &call->easy_getinfo},  {"curl_easy_cleanup", &call->easy_cleanup},
                 {"curl_slist_append", &call->slist_append},  {"curl_slist_free_all", &call->slist_free_all},
                 {"curl_easy_strerror", &call->easy_strerror}};
    for (size_t i = 0; i < sizeof table / sizeof *table; ++i)
        LEATI_TRY(
            leati_library_function(curl->library, table[i].name, table[i].out, sizeof(void (*)(void)), err));
    return LEAT_OK;
}

/* Debian's libcurl-gnutls.so.4 has the same interface. */
static leat_status load(leati_curl *curl, leat_error *err) {
    leat_error reason = {0};
    leat_status status = leati_library_open_system(&curl->library, "libcurl.so.4", &reason);
    if (status == LEAT_ENOTFOUND)
        status = leati_library_open_system(&curl->library, "libcurl-gnutls.so.4", NULL);
    if (status == LEAT_OK) status = find_functions(curl, &reason);
    if (status == LEAT_OK) return LEAT_OK;
    if (status == LEAT_ENOMEM) return leati_fail_memory(err, 0, "libcurl");
    return leati_fail(
        err, LEAT_ENOTSUP,
        "%s: install libcurl (Debian and Ubuntu: apt-get install libcurl4; Fedora: dnf install libcurl)",
        reason.message);
}

/* Has the type of CURLOPT_WRITEFUNCTION. */
static size_t drop(const char *data, size_t size, size_t count, void *user) {
    (void)data, (void)user;
    return size * count;
}

static leat_status add_header(leati_curl *curl, const char *line, leat_error *err) {
    void *longer = curl->call.slist_append(curl->headers, line);
    if (!longer) return leati_fail_memory(err, strlen(line), "an HTTP header");
    curl->headers = longer;
    return LEAT_OK;
}

/* The header "Expect:" turns off libcurl's question whether the server wants the body, which some servers ignore. */
static leat_status add_headers(leati_curl *curl, const char *const *headers, int header_count,
                               leat_error *err) {
    LEATI_TRY(add_header(curl, "Expect:", err));
    for (int i = 0; i < header_count; ++i) LEATI_TRY(add_header(curl, headers[i], err));
    return LEAT_OK;
}

/* The options that an older libcurl may not know are set without a look at the result: LEATI_CURLOPT_QUICK_EXIT lets
 * easy_cleanup return while a thread of libcurl still waits for a name server. */
static bool set_options(leati_curl *curl, const char *url) {
    const functions *call = &curl->call;
    void *handle = curl->handle;
    (void)call->easy_setopt(handle, LEATI_CURLOPT_QUICK_EXIT, 1L);
    (void)call->easy_setopt(handle, LEATI_CURLOPT_PROTOCOLS, (long)LEATI_CURLPROTO_HTTP_AND_HTTPS);
    return call->easy_setopt(handle, LEATI_CURLOPT_URL, url) == LEATI_CURLE_OK &&
           call->easy_setopt(handle, LEATI_CURLOPT_USERAGENT, "leat/" LEAT_VERSION_STRING) ==
               LEATI_CURLE_OK &&
           call->easy_setopt(handle, LEATI_CURLOPT_HTTPHEADER, curl->headers) == LEATI_CURLE_OK &&
           call->easy_setopt(handle, LEATI_CURLOPT_NOSIGNAL, 1L) == LEATI_CURLE_OK &&
           call->easy_setopt(handle, LEATI_CURLOPT_ERRORBUFFER, curl->reason) == LEATI_CURLE_OK &&
           call->easy_setopt(handle, LEATI_CURLOPT_WRITEFUNCTION, drop) == LEATI_CURLE_OK;
}

static leat_status prepare(leati_curl *curl, const char *url, const char *const *headers, int header_count,
                           leat_error *err) {
    LEATI_TRY(load(curl, err));
    if (curl->call.global_init(LEATI_CURL_GLOBAL_DEFAULT) != LEATI_CURLE_OK)
        return leati_fail(err, LEAT_ENOTSUP, "libcurl cannot be initialized");
    LEATI_TRY(add_headers(curl, headers, header_count, err));
    curl->handle = curl->call.easy_init();
    if (!curl->handle || !set_options(curl, url))
        return leati_fail_memory(err, strlen(url), "an HTTP connection");
    return LEAT_OK;
}

leat_status leati_curl_create(leati_curl **out, const char *url, const char *const *headers, int header_count,
                              leat_error *err) {
    *out = leati_calloc(1, sizeof **out);
    if (!*out) return leati_fail_memory(err, sizeof **out, "an HTTP connection");
    leat_status status = prepare(*out, url, headers, header_count, err);
    if (status != LEAT_OK) leati_curl_destroy(out);
    return status;
}

void leati_curl_destroy(leati_curl **curl) {
    leati_curl *freed = *curl;
    *curl = NULL;
    if (!freed) return;
    if (freed->handle) freed->call.easy_cleanup(freed->handle);
    if (freed->headers) freed->call.slist_free_all(freed->headers);
    leati_library_close(&freed->library);
    leati_free(freed);
}

leat_status leati_curl_post(leati_curl *curl, const char *body, size_t bytes, int64_t connect_ms,
                            int64_t timeout_ms, leat_error *err) {
    const functions *call = &curl->call;
    long answer = 0;
    curl->reason[0] = '\0';
    (void)call->easy_setopt(curl->handle, LEATI_CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
    (void)call->easy_setopt(curl->handle, LEATI_CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    (void)call->easy_setopt(curl->handle, LEATI_CURLOPT_POSTFIELDSIZE, (long)bytes);
    (void)call->easy_setopt(curl->handle, LEATI_CURLOPT_POSTFIELDS, body);
    int code = call->easy_perform(curl->handle);
    if (code != LEATI_CURLE_OK)
        return leati_fail(err, LEAT_EIO, "%s", curl->reason[0] ? curl->reason : call->easy_strerror(code));
    (void)call->easy_getinfo(curl->handle, LEATI_CURLINFO_RESPONSE_CODE, &answer);
    if (answer >= 200 && answer < 300) return LEAT_OK;
    return leati_fail(err, LEAT_EIO, "the server answered with HTTP status %ld, expected 200 to 299", answer);
}
