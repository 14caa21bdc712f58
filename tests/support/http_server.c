/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP server for tests. */
#include "support/http_server.h"

#include "cmocka_all.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

const char *http_server_body(const http_server *server, int index) {
    const char *end = strstr(server->requests[index], "\r\n\r\n");
    return end ? end + 4 : "";
}

/* Returns the bytes of the request in `text`; 0 if it is incomplete. */
static size_t request_bytes(const char *text) {
    const char *end = strstr(text, "\r\n\r\n"), *length = NULL;
    if (!end) return 0;
    for (const char *line = text; line && line < end; line = strstr(line, "\r\n")) {
        if (*line == '\r') line += 2;
        if (strncasecmp(line, "Content-Length:", 15) == 0) length = line + 15;
    }
    const size_t bytes = (size_t)(end + 4 - text) + (length ? (size_t)strtoul(length, NULL, 10) : 0);
    return strlen(text) >= bytes ? bytes : 0;
}

static bool wait_for(const http_server *server, int fd) {
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    while (!atomic_load(&server->ending))
        if (poll(&wanted, 1, 20) > 0) return true;
    return false;
}

static void answer(http_server *server, int connection) {
    char text[128];
    int status = atomic_load(&server->status);
    if (status == 0) return;
    int length = snprintf(text, sizeof text, "HTTP/1.1 %d Answer\r\nContent-Length: 2\r\n\r\nok", status);
    if (send(connection, text, (size_t)length, MSG_NOSIGNAL) != length) atomic_store(&server->ending, true);
}

static void serve(http_server *server, int connection) {
    char text[http_request_bytes] = "";
    size_t used = 0;
    while (wait_for(server, connection)) {
        ssize_t got = recv(connection, text + used, sizeof text - 1 - used, 0);
        if (got <= 0) break;
        text[used += (size_t)got] = '\0';
        for (size_t bytes; (bytes = request_bytes(text)) > 0;) {
            int index = atomic_load(&server->count);
            if (index < http_max_requests) {
                memcpy(server->requests[index], text, bytes);
                atomic_store(&server->count, index + 1);
            }
            memmove(text, text + bytes, used - bytes + 1);
            used -= bytes;
            answer(server, connection);
        }
    }
    close(connection);
}

static void *run(void *user) {
    http_server *server = user;
    while (wait_for(server, server->listener)) {
        int connection = accept(server->listener, NULL, NULL);
        if (connection >= 0) serve(server, connection);
    }
    return NULL;
}

void http_server_start(http_server *server, int status) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    memset(server, 0, sizeof *server);
    atomic_store(&server->status, status);
    server->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(server->listener >= 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(server->listener, 16), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &bytes), 0);
    snprintf(server->root, sizeof server->root, "http://127.0.0.1:%d", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&server->thread, NULL, run, server), 0);
}

void http_server_stop(http_server *server) {
    atomic_store(&server->ending, true);
    pthread_join(server->thread, NULL);
    close(server->listener);
}
