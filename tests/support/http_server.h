/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP server on 127.0.0.1, in a thread of the test program. */
#ifndef LEAT_TESTS_SUPPORT_HTTP_SERVER_H
#define LEAT_TESTS_SUPPORT_HTTP_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

enum { http_max_requests = 64, http_request_bytes = 4096 };

typedef struct http_server {
    int listener;
    char root[64];      /* "http://127.0.0.1:40000" */
    atomic_int status;  /* of the answers; 0: the server reads and never answers */
    atomic_int count;   /* requests that were received */
    atomic_bool ending; /* set by http_server_stop */
    pthread_t thread;
    char requests[http_max_requests][http_request_bytes]; /* header and body */
} http_server;

void http_server_start(http_server *server, int status);
void http_server_stop(http_server *server);

/* Returns the body of a request. */
const char *http_server_body(const http_server *server, int index);

#endif
