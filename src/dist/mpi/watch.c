/* SPDX-License-Identifier: Apache-2.0 */
/* Beats between neighbouring ranks.  Room: dist. */
#define _GNU_SOURCE /* syscall */
#include "dist/mpi/watch.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/os/clock.h"

enum { TAG = 7 };
enum { BEAT = 1, LAST_BEAT = 2 };

static const int64_t look_ns = 50000000, say_ns = 250000000;

static int open_pidfd(pid_t pid) {
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    return -1;
#endif
}

void leati_watch_begin(leati_watch *watch, leati_mpi *mpi, const leat_dist *dist,
                       const leati_siblings *siblings, int64_t timeout_ms) {
    const int before = (dist->rank + dist->size - 1) % dist->size;
    *watch = (leati_watch){.mpi = mpi,
                           .peers = dist->peers,
                           .rank = dist->rank,
                           .size = dist->size,
                           .before = before,
                           .pidfd = -1,
                           .siblings = siblings,
                           .timeout_ns = timeout_ms * 1000000,
                           .looked_ns = leati_now_ns()};
    watch->heard_ns = watch->looked_ns;
    if (dist->size == 1) return;
    const leati_dist_peer *me = &dist->peers[dist->rank], *it = &dist->peers[before];
    bool is_near = strcmp(me->host, it->host) == 0 && me->space[0] && strcmp(me->space, it->space) == 0;
    if (is_near) watch->pidfd = open_pidfd(it->pid);
}

static leat_status fail(const leati_watch *watch, const char *cause, leat_error *err) {
    const leati_dist_peer *it = &watch->peers[watch->before];
    return leati_fail(err, LEAT_EIO, "rank %d (host %s, process %d) %s", watch->before, it->host,
                      (int)it->pid, cause);
}

static bool has_ended(const leati_watch *watch) {
    struct pollfd one = {.fd = watch->pidfd, .events = POLLIN};
    return watch->pidfd >= 0 && poll(&one, 1, 0) == 1;
}

static int say(leati_watch *watch, unsigned char beat) {
    const leati_mpi_calls *calls = watch->mpi->calls;
    bool done = false;
    int code = 0;
    if (watch->is_saying && (code = calls->test(watch->mpi, &watch->said, &done)) == 0 && done)
        watch->is_saying = false;
    if (code || watch->is_saying) return code;
    watch->said_beat = beat;
    watch->said_ns = leati_now_ns();
    watch->is_saying = true;
    return calls->send(watch->mpi, &watch->said_beat, 1, (watch->rank + 1) % watch->size, TAG, &watch->said);
}

static int listen(leati_watch *watch) {
    const leati_mpi_calls *calls = watch->mpi->calls;
    bool done = false;
    int code = 0;
    if (watch->before_ended) return 0;
    if (!watch->is_listening)
        code = calls->receive(watch->mpi, &watch->heard_beat, 1, watch->before, TAG, &watch->heard);
    watch->is_listening = code == 0;
    if (code == 0) code = calls->test(watch->mpi, &watch->heard, &done);
    if (code || !done) return code;
    watch->is_listening = false;
    watch->heard_ns = leati_now_ns();
    watch->before_ended = watch->heard_beat == LAST_BEAT;
    return 0;
}

/* A process that was stopped itself, with its job, has heard nothing meanwhile: it waits once more. */
static leat_status check_silence(leati_watch *watch, int64_t now, leat_error *err) {
    char cause[96];
    if (now - watch->looked_ns > watch->timeout_ns / 4) watch->heard_ns = now;
    watch->looked_ns = now;
    if (watch->before_ended || now - watch->heard_ns < watch->timeout_ns) return LEAT_OK;
    snprintf(cause, sizeof cause,
             "has not answered for %lld s: it is stopped, or its host or the network has failed",
             (long long)(watch->timeout_ns / 1000000000));
    return fail(watch, cause, err);
}

static leat_status look(leati_watch *watch, unsigned char beat, leat_error *err) {
    char text[256];
    int64_t now = leati_now_ns();
    bool is_gone = has_ended(watch); /* its last beat may still be on the way, and is listened for below */
    int code = now - watch->said_ns >= say_ns || beat == LAST_BEAT ? say(watch, beat) : 0;
    if (code == 0) code = listen(watch);
    if (is_gone && !watch->before_ended)
        return fail(watch, "has ended before the run: it was killed, or it failed", err);
    if (code == 0 && leati_siblings_launcher_has_ended(watch->siblings))
        return leati_fail(err, LEAT_EIO, "the launcher (process %d) has ended before its ranks",
                          (int)watch->siblings->parent);
    if (code == 0) return check_silence(watch, now, err);
    watch->mpi->calls->explain(watch->mpi, code, text, sizeof text);
    return fail(watch, text, err);
}

leat_status leati_watch_look(leati_watch *watch, leat_error *err) {
    if (watch->size == 1 || leati_now_ns() - watch->looked_ns < look_ns) return LEAT_OK;
    return look(watch, BEAT, err);
}

leat_status leati_watch_end(leati_watch *watch, leat_error *err) {
    const struct timespec pause = {.tv_nsec = 1000000};
    bool said = false;
    if (watch->size == 1) return LEAT_OK;
    while (!said || !watch->before_ended || watch->is_saying) {
        bool done = false;
        if (watch->is_saying && watch->mpi->calls->test(watch->mpi, &watch->said, &done) == 0 && done)
            watch->is_saying = false;
        if (!said && !watch->is_saying) {
            LEATI_TRY(look(watch, LAST_BEAT, err));
            said = watch->said_beat == LAST_BEAT;
        }
        if (listen(watch) != 0) return fail(watch, "cannot be reached", err);
        LEATI_TRY(check_silence(watch, leati_now_ns(), err));
        if (!watch->before_ended) (void)nanosleep(&pause, NULL);
    }
    return LEAT_OK;
}

void leati_watch_fini(leati_watch *watch) {
    if (watch->pidfd >= 0) (void)close(watch->pidfd);
    watch->pidfd = -1;
}
