/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that sends messages to an HTTP server, so that training never waits for the server.  Room: train. */
#ifndef LEATI_TRAIN_CALLBACKS_HTTP_POSTER_H
#define LEATI_TRAIN_CALLBACKS_HTTP_POSTER_H

#include <stdbool.h>
#include <stddef.h>

#include "leat/error.h"

enum {
    LEATI_POSTER_QUEUE = 8, /* messages that may wait */
    LEATI_POSTER_CONNECT_MS = 2000,
    LEATI_POSTER_TIMEOUT_MS = 5000,
    LEATI_POSTER_NEWS_BYTES = 512
};

/* Opaque.  Threads: externally synchronised; the thread that sends is internal. */
typedef struct leati_poster leati_poster;

/* Starts the thread.  Copies the texts.  Errors: those of leati_curl_create; LEAT_EIO the thread cannot be started. */
leat_status leati_poster_create(leati_poster **out, const char *url, const char *const *headers,
                                int header_count, leat_error *err);

/* Takes `body`, a text that the poster frees with leati_free.  If the queue is full, its oldest message is lost. */
void leati_poster_send(leati_poster *poster, char *body);

/* Returns true if an outage has begun or ended since the last call, and writes a sentence about that.
 * *is_bad receives true if messages are lost. */
bool leati_poster_news(leati_poster *poster, char out[LEATI_POSTER_NEWS_BYTES], bool *is_bad);

/* Sends what is in the queue, for at most LEATI_POSTER_TIMEOUT_MS, and ends the thread.  leati_poster_news may be
 * called between finish and destroy.  In a forked child, where the thread does not exist, both functions do nothing. */
void leati_poster_finish(leati_poster *poster);
void leati_poster_destroy(leati_poster **poster);

#endif
