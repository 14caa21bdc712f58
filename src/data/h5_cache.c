/* SPDX-License-Identifier: Apache-2.0 */
/* A cache of unpacked chunks, of which those are given up that were not used for the longest time.  Room: data. */
#include "data/h5_cache.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/os/fork.h"
#include "base/os/futex.h"

typedef struct dataset dataset;

/* A chunk that is in memory, or that a thread is loading. */
typedef struct entry {
    struct entry *newer, *older;
    dataset *of;
    int64_t number;
    unsigned char *data; /* NULL: it is being loaded */
    int users;           /* threads that load it or copy from it */
} entry;

struct dataset {
    dataset *next;
    leati_chunk_cache *cache;
    leati_h5_chunks *chunks;
    leati_h5_chunk_form form;
    entry **at;                /* (form.bands * form.in_band), NULL: the chunk is not in memory */
    int64_t loaded, rows_read; /* until now: chunks, and rows */
    bool warned;
};

struct leati_chunk_cache {
    size_t limit, bytes;
    /* Guards all that follows, and the entries.  It is only held inside of leati_fork_hold, so that no child inherits
     * it locked. */
    pthread_mutex_t mutex;
    dataset *datasets;
    entry *newest, *oldest;
    uint32_t forks;    /* leati_fork_depth() of the process that has filled the list */
    leati_futex loads; /* changes whenever a load has ended */
};

/* ---- Entries, under the mutex ---- */

static void unlink_entry(leati_chunk_cache *c, entry *e) {
    *(e->newer ? &e->newer->older : &c->newest) = e->older;
    *(e->older ? &e->older->newer : &c->oldest) = e->newer;
}

static void link_newest(leati_chunk_cache *c, entry *e) {
    e->newer = NULL;
    e->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
}

static void give_up(leati_chunk_cache *c, entry *e) {
    unlink_entry(c, e);
    c->bytes -= e->of->form.chunk_bytes;
    e->of->at[e->number] = NULL;
    leati_free(e->data);
    leati_free(e);
}

/* Gives up entries that nobody uses until there is room for another chunk, or only entries in use are left. */
static void make_room(leati_chunk_cache *c, size_t bytes) {
    for (entry *e = c->oldest, *newer; e && c->bytes + bytes > c->limit; e = newer) {
        newer = e->newer;
        if (e->users == 0) give_up(c, e);
    }
}

/* In a new process, the threads that were using or loading entries do not exist. */
static void forget_threads(leati_chunk_cache *c) {
    for (entry *e = c->newest, *older; e; e = older) {
        older = e->older;
        e->users = 0;
        if (!e->data) give_up(c, e);
    }
}

static void lock(leati_chunk_cache *c) {
    leati_fork_hold();
    pthread_mutex_lock(&c->mutex);
    if (c->forks == leati_fork_depth()) return;
    c->forks = leati_fork_depth();
    forget_threads(c);
}

static void unlock(leati_chunk_cache *c) {
    pthread_mutex_unlock(&c->mutex);
    leati_fork_release();
}

/* ---- Reading ---- */

/* Says once if the order of the samples lets chunks be unpacked much more often than their samples are read. */
static void watch(dataset *d, int64_t rows) {
    const int64_t chunks = d->form.bands * d->form.in_band;
    d->rows_read += rows;
    if (d->warned || d->loaded < 64 || d->loaded < chunks) return;
    const double needed = (double)d->rows_read / (double)d->form.rows * (double)d->form.in_band;
    if ((double)d->loaded < 4 * needed) return;
    d->warned = true;
    leati_log(LEAT_LOG_WARNING,
              "'%s': '%s': each chunk has been unpacked about %.0f times for one reading of its %lld "
              "samples: shuffle with "
              "--shuffle blocks, or keep all in memory with the option memory=SIZE of the SPEC",
              d->form.file, d->form.name, (double)d->loaded / needed, (long long)d->form.rows);
}

/* Returns a new entry that this thread is to load; NULL: no memory. */
static entry *begin_load(leati_chunk_cache *c, dataset *d, int64_t number) {
    make_room(c, d->form.chunk_bytes);
    entry *e = leati_calloc(1, sizeof *e);
    if (!e) return NULL;
    *e = (entry){.of = d, .number = number, .users = 1};
    c->bytes += d->form.chunk_bytes;
    d->at[number] = e;
    ++d->loaded;
    link_newest(c, e);
    return e;
}

static leat_status load(leati_chunk_cache *c, entry *e, leat_error *err) {
    unsigned char *data = NULL;
    const leat_status status = leati_h5_chunks_load(e->of->chunks, e->number, &data, err);
    lock(c);
    e->data = data;
    if (!data) give_up(c, e);
    atomic_fetch_add(&c->loads, 1);
    unlock(c);
    leati_futex_wake(&c->loads, INT_MAX, false);
    return status;
}

/* Finds a chunk, or loads it, and takes it into use. */
static leat_status take(leati_chunk_cache *c, dataset *d, int64_t number, entry **out, leat_error *err) {
    lock(c);
    while (d->at[number] && !d->at[number]->data) {
        const uint32_t seen = atomic_load(&c->loads);
        unlock(c);
        leati_futex_wait(&c->loads, seen, -1, false);
        lock(c);
    }
    entry *e = *out = d->at[number];
    if (e) {
        ++e->users;
        unlink_entry(c, e);
        link_newest(c, e);
    } else {
        e = *out = begin_load(c, d, number);
    }
    const bool loaded = e && e->data;
    unlock(c);
    if (loaded) return LEAT_OK;
    return e ? load(c, e, err) : leati_fail_memory(err, sizeof *e, "a chunk of a dataset");
}

/* Reads rows of one band. */
static leat_status read_band(dataset *d, int64_t band, int64_t first, int64_t count, unsigned char *dst,
                             leat_error *err) {
    leati_chunk_cache *c = d->cache;
    for (int64_t i = 0; i < d->form.in_band; ++i) {
        const int64_t number = band * d->form.in_band + i;
        entry *e = NULL;
        LEATI_TRY(take(c, d, number, &e, err));
        leati_h5_chunks_copy(d->chunks, number, e->data, first, count, dst);
        lock(c);
        --e->users;
        if (i == 0) watch(d, count);
        unlock(c);
    }
    return LEAT_OK;
}

static leat_status read_rows(void *user, int64_t first, int64_t count, unsigned char *dst, leat_error *err) {
    dataset *d = user;
    const int64_t rows = d->form.rows;
    for (int64_t done = 0, some; done < count; done += some) {
        const int64_t at = first + done, left = rows - at % rows;
        some = count - done < left ? count - done : left;
        const leat_status status =
            read_band(d, at / rows, at, some, dst + (size_t)done * d->form.row_bytes, err);
        if (status != LEAT_OK)
            return leati_prefix(status, err, "the chunk of the samples %lld to %lld",
                                (long long)(at / rows * rows), (long long)((at / rows + 1) * rows - 1));
    }
    return LEAT_OK;
}

/* ---- Making ---- */

leat_status leati_chunk_cache_create(leati_chunk_cache **out, size_t limit, leat_error *err) {
    leati_chunk_cache *c = *out = leati_calloc(1, sizeof *c);
    if (!c) return leati_fail_memory(err, sizeof *c, "a cache of chunks");
    pthread_mutex_init(&c->mutex, NULL);
    c->limit = limit;
    c->forks = leati_fork_depth();
    return LEAT_OK;
}

void leati_chunk_cache_destroy(leati_chunk_cache **cache) {
    leati_chunk_cache *c = *cache;
    if (!c) return;
    while (c->newest) give_up(c, c->newest);
    for (dataset *d = c->datasets, *next; d; d = next) {
        next = d->next;
        leati_h5_chunks_close(&d->chunks);
        leati_free(d->at);
        leati_free(d);
    }
    pthread_mutex_destroy(&c->mutex);
    leati_free(c);
    *cache = NULL;
}

leat_status leati_chunk_cache_add(leati_chunk_cache *c, leati_h5_chunks *chunks, leati_array_reader *reader,
                                  leat_error *err) {
    const leati_h5_chunk_form form = leati_h5_chunks_form(chunks);
    const size_t count = (size_t)(form.bands * form.in_band);
    dataset *d = leati_calloc(1, sizeof *d);
    if (!d) {
        leati_h5_chunks_close(&chunks);
        return leati_fail_memory(err, sizeof *d, "a dataset");
    }
    *d = (dataset){.next = c->datasets, .cache = c, .chunks = chunks, .form = form};
    c->datasets = d;
    d->at = leati_calloc(count, sizeof(entry *));
    if (!d->at) return leati_fail_memory(err, count * sizeof(entry *), "a table of chunks");
    *reader = (leati_array_reader){.read = read_rows, .user = d};
    return LEAT_OK;
}
