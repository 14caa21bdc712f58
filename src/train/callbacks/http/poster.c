/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that sends messages to an HTTP server.  Room: train. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "train/callbacks/http/poster.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/clock.h"
#include "base/os/fork.h"
#include "base/os/signals.h"
#include "train/callbacks/http/curl.h"

struct leati_poster {
    leati_curl *curl; /* used by the thread alone */
    pthread_t thread;
    bool started; /* the thread runs and must be joined */
    uint32_t fork_depth;
    pthread_mutex_t lock;  /* guards the members below */
    pthread_cond_t change; /* a message was added, or `closing` was set */
    bool closing;
    int64_t deadline_ns; /* with `closing`: the time after which nothing is sent */
    int first, count;    /* the messages that wait: queue[first], and so on around the ring */
    char *queue[LEATI_POSTER_QUEUE];
    bool failing;    /* the last message was not accepted */
    bool has_news;   /* `failing` has changed, and leati_poster_news has not told it */
    int64_t lost;    /* messages since the server accepted one */
    int64_t missing; /* messages that were lost before that, and about which leati_poster_news has not told */
    char reason[LEAT_ERROR_MESSAGE_BYTES];
};

/* ---- The thread ---- */

static char *take(leati_poster *poster) {
    char *body = poster->queue[poster->first];
    poster->queue[poster->first] = NULL;
    poster->first = (poster->first + 1) % LEATI_POSTER_QUEUE;
    --poster->count;
    return body;
}

static void note_result(leati_poster *poster, leat_status status, const leat_error *err) {
    const bool failed = status != LEAT_OK;
    if (failed != poster->failing) poster->has_news = true;
    poster->failing = failed;
    if (failed) {
        snprintf(poster->reason, sizeof poster->reason, "%s", err->message);
        ++poster->lost;
    } else if (poster->has_news) {
        poster->missing += poster->lost;
        poster->lost = 0;
    }
}

static void drop_all(leati_poster *poster) {
    while (poster->count > 0) {
        leati_free(take(poster));
        ++poster->lost;
    }
}

/* Sends the oldest message.  The caller holds the lock, which is released while the message is on its way. */
static void post_one(leati_poster *poster) {
    leat_error err = {0};
    int64_t timeout_ms = LEATI_POSTER_TIMEOUT_MS;
    if (poster->closing) timeout_ms = (poster->deadline_ns - leati_now_ns()) / 1000000;
    if (timeout_ms < 1) {
        drop_all(poster);
        return;
    }
    char *body = take(poster);
    pthread_mutex_unlock(&poster->lock);
    int64_t connect_ms = timeout_ms < LEATI_POSTER_CONNECT_MS ? timeout_ms : LEATI_POSTER_CONNECT_MS;
    leat_status status = leati_curl_post(poster->curl, body, strlen(body), connect_ms, timeout_ms, &err);
    leati_free(body);
    pthread_mutex_lock(&poster->lock);
    note_result(poster, status, &err);
    if (poster->closing && poster->failing) drop_all(poster);
}

static void *run(void *user) {
    leati_poster *poster = user;
    pthread_setname_np(pthread_self(), "leat-monitor");
    pthread_mutex_lock(&poster->lock);
    while (poster->count > 0 || !poster->closing)
        if (poster->count > 0)
            post_one(poster);
        else
            pthread_cond_wait(&poster->change, &poster->lock);
    pthread_mutex_unlock(&poster->lock);
    return NULL;
}

/* ---- The trainer's thread ---- */

static bool is_of_this_process(const leati_poster *poster) {
    return poster->fork_depth == leati_fork_depth();
}

static leat_status start(leati_poster *poster, leat_error *err) {
    sigset_t before;
    leati_mask_all_but_faults(&before);
    int failed = pthread_create(&poster->thread, NULL, run, poster);
    leati_mask_restore(&before);
    if (failed) return leati_fail_errno(err, LEAT_EIO, failed, "cannot start the thread that sends");
    poster->started = true;
    return LEAT_OK;
}

leat_status leati_poster_create(leati_poster **out, const char *url, const char *const *headers,
                                int header_count, leat_error *err) {
    leati_poster *poster = *out = leati_calloc(1, sizeof *poster);
    if (!poster) return leati_fail_memory(err, sizeof *poster, "a queue of messages");
    poster->fork_depth = leati_fork_depth();
    pthread_mutex_init(&poster->lock, NULL);
    pthread_cond_init(&poster->change, NULL);
    leat_status status = leati_curl_create(&poster->curl, url, headers, header_count, err);
    if (status == LEAT_OK) status = start(poster, err);
    if (status != LEAT_OK) leati_poster_destroy(out);
    return status;
}

void leati_poster_send(leati_poster *poster, char *body) {
    if (!is_of_this_process(poster)) {
        leati_free(body);
        return;
    }
    pthread_mutex_lock(&poster->lock);
    if (poster->count == LEATI_POSTER_QUEUE) {
        leati_free(take(poster));
        ++poster->lost;
    }
    poster->queue[(poster->first + poster->count++) % LEATI_POSTER_QUEUE] = body;
    pthread_cond_signal(&poster->change);
    pthread_mutex_unlock(&poster->lock);
}

bool leati_poster_news(leati_poster *poster, char out[LEATI_POSTER_NEWS_BYTES], bool *is_bad) {
    if (!is_of_this_process(poster)) return false;
    pthread_mutex_lock(&poster->lock);
    const bool has_news = poster->has_news;
    *is_bad = poster->failing;
    if (has_news && poster->failing)
        snprintf(out, LEATI_POSTER_NEWS_BYTES, "%.400s; training continues", poster->reason);
    else if (has_news)
        snprintf(out, LEATI_POSTER_NEWS_BYTES,
                 "the server accepts messages again; %" PRId64 " were lost: %.300s", poster->missing,
                 poster->reason);
    if (!poster->failing) poster->missing = 0;
    poster->has_news = false;
    pthread_mutex_unlock(&poster->lock);
    return has_news;
}

void leati_poster_finish(leati_poster *poster) {
    if (!poster->started || !is_of_this_process(poster)) return;
    pthread_mutex_lock(&poster->lock);
    poster->closing = true;
    poster->deadline_ns = leati_now_ns() + LEATI_POSTER_TIMEOUT_MS * INT64_C(1000000);
    pthread_cond_signal(&poster->change);
    pthread_mutex_unlock(&poster->lock);
    pthread_join(poster->thread, NULL);
    poster->started = false;
    if (poster->failing || poster->lost == 0) return;
    snprintf(poster->reason, sizeof poster->reason, "the server is slower than the epochs");
    poster->missing += poster->lost;
    poster->has_news = true;
}

void leati_poster_destroy(leati_poster **poster) {
    leati_poster *freed = *poster;
    *poster = NULL;
    if (!freed || !is_of_this_process(freed)) return;
    leati_poster_finish(freed);
    while (freed->count > 0) leati_free(take(freed));
    leati_curl_destroy(&freed->curl);
    pthread_cond_destroy(&freed->change);
    pthread_mutex_destroy(&freed->lock);
    leati_free(freed);
}
