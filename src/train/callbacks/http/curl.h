/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP requests by libcurl, which is loaded while the program runs: leat is not linked with it, and its headers are not
 * needed to build leat.  Room: train. */
#ifndef LEATI_TRAIN_CALLBACKS_HTTP_CURL_H
#define LEATI_TRAIN_CALLBACKS_HTTP_CURL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"

/* The interface of libcurl.so.4 that leat uses: values of <curl/curl.h>, which that library never changes. */
enum {
    LEATI_CURLE_OK = 0,
    LEATI_CURL_GLOBAL_DEFAULT = 3,
    LEATI_CURLOPT_POSTFIELDSIZE = 60,
    LEATI_CURLOPT_NOSIGNAL = 99,
    LEATI_CURLOPT_TIMEOUT_MS = 155,
    LEATI_CURLOPT_CONNECTTIMEOUT_MS = 156,
    LEATI_CURLOPT_PROTOCOLS = 181,
    LEATI_CURLOPT_QUICK_EXIT = 322,
    LEATI_CURLOPT_URL = 10002,
    LEATI_CURLOPT_ERRORBUFFER = 10010,
    LEATI_CURLOPT_POSTFIELDS = 10015,
    LEATI_CURLOPT_USERAGENT = 10018,
    LEATI_CURLOPT_HTTPHEADER = 10023,
    LEATI_CURLOPT_WRITEFUNCTION = 20011,
    LEATI_CURLINFO_RESPONSE_CODE = 0x200002,
    LEATI_CURLPROTO_HTTP_AND_HTTPS = 3,
    LEATI_CURL_ERROR_SIZE = 256
};

/* A connection to one URL.  Opaque.  One thread at a time may use it. */
typedef struct leati_curl leati_curl;

/* Loads libcurl and prepares requests to `url` with these header lines.  Copies the texts.
 * Errors: LEAT_ENOTSUP libcurl is not installed; LEAT_ENOMEM. */
leat_status leati_curl_create(leati_curl **out, const char *url, const char *const *headers, int header_count,
                              leat_error *err);
void leati_curl_destroy(leati_curl **curl);

/* Sends `body` by POST, in at most timeout_ms, of which connecting may take connect_ms.  The server's answer is
 * dropped.  Errors: LEAT_EIO the server was not reached, or its HTTP status is not 200 to 299. */
leat_status leati_curl_post(leati_curl *curl, const char *body, size_t bytes, int64_t connect_ms,
                            int64_t timeout_ms, leat_error *err);

#endif
