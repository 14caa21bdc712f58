/* SPDX-License-Identifier: Apache-2.0 */
/* The sequence for tests, and the functions that count resources. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, syscall */
#include "feed/source.h"

#include "cmocka_all.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/os/clock.h"

void sleep_us(int64_t us) {
    struct timespec rest = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    while (nanosleep(&rest, &rest) != 0) continue;
}

void wait_until(_Atomic int64_t *value, int64_t least) {
    for (int i = 0; i < 30000 && atomic_load(value) < least; ++i) sleep_us(1000);
    if (atomic_load(value) < least) fail_msg("%lld is not reached", (long long)least);
}

static int sources; /* number of sources; each has one mapping */

void source_init(source *s, int64_t length, int64_t batch_size, int64_t width) {
    *s = (source){.length = length,
                  .batch_size = batch_size,
                  .width = width,
                  .fail_at = -1,
                  .kill_at = -1,
                  .skip_at = -1,
                  .hang_at = -1,
                  .wrong_at = -1,
                  .state = {.scale = 1}};
    s->counts = mmap(NULL, sizeof *s->counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(s->counts, MAP_FAILED);
    ++sources;
    atomic_store(&s->counts->fails_left, INT64_MAX);
    s->own = calloc((size_t)(SOURCE_MAX_LENGTH * width), sizeof *s->own);
    assert_non_null(s->own);
    for (int64_t i = 0; i < SOURCE_MAX_LENGTH * width; ++i) s->own[i] = (float)(i % 1000003);
}

void source_fini(source *s) {
    munmap(s->counts, sizeof *s->counts);
    --sources;
    free(s->own);
}

static int64_t source_length(void *user) {
    return ((source *)user)->length;
}

static void misbehave(const source *s, leat_batch *batch) {
    switch (s->wrong) {
    case 0: batch->size = s->batch_size + 1; break;
    case 1: batch->size = 0; break;
    case 2: batch->tensors[0].shape[1] = s->width + 1; break;
    case 3: batch->tensors[0].rank = 3; break;
    case 5: batch->tensors[0].data = NULL; break;
    default: break;
    }
}

static void fill(source *s, int64_t index, leat_rng *rng, leat_batch *batch) {
    if (s->short_last && index == s->length - 1) batch->size = s->batch_size > 1 ? s->batch_size - 1 : 1;
    leat_tensor *x = &batch->tensors[0];
    if (s->varying) x->shape[1] = 1 + index % s->width;
    int64_t count = batch->size * x->shape[1];
    if (s->borrowed)
        x->data = s->own + index % (SOURCE_MAX_LENGTH - s->batch_size) * s->width;
    else
        for (int64_t i = 0; i < count; ++i)
            ((float *)x->data)[i] = (float)leat_rng_uniform(rng) * (float)s->state.scale;
    for (int64_t i = 0; i < batch->size; ++i) ((int64_t *)batch->tensors[1].data)[i] = index * 1000 + i;
}

static void take_time(source *s, int64_t index) {
    while (atomic_load(&s->counts->pause)) sleep_us(200);
    /* Sleep in steps, so that a process that was stopped in the middle still has the rest to do, as with real work. */
    for (int left = s->slow_us; left > 0; left -= 10000) sleep_us(left < 10000 ? left : 10000);
    if (s->delay_us) {
        uint64_t now = (uint64_t)leati_now_ns();
        sleep_us((int64_t)((now * 0x9E3779B97F4A7C15u >> 33) % (uint64_t)(s->delay_us + 1)));
    }
    if (index == s->hang_at && atomic_fetch_sub(&s->counts->hangs_left, 1) > 0) {
        atomic_fetch_add(&s->counts->hanging, 1);
        while (!atomic_load(&s->counts->released)) sleep_us(200);
        atomic_fetch_sub(&s->counts->hanging, 1);
    }
}

static bool is_to_fail(source *s, int64_t index) {
    bool here = s->fail_every ? index % s->fail_every == s->fail_at : index == s->fail_at;
    return here && atomic_fetch_sub(&s->counts->fails_left, 1) > 0;
}

static leat_status source_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    source *s = user;
    atomic_fetch_add(&s->counts->gets, 1);
    atomic_fetch_add(&s->counts->gets_of[index % SOURCE_MAX_LENGTH], 1);
    atomic_store(&s->counts->last_pid, getpid());
    if (atomic_load(&s->counts->in_hook) || s->state.pass != atomic_load(&s->counts->hooks))
        atomic_fetch_add(&s->counts->hook_overtaken, 1);
    take_time(s, index);
    if (index == s->skip_at) return LEAT_ESKIPPED;
    if (is_to_fail(s, index)) return leat_error_set(err, LEAT_EUSER, "sample %d of the file is damaged", 41);
    fill(s, index, rng, batch);
    if (index == s->kill_at && atomic_fetch_sub(&s->counts->kills_left, 1) > 0) {
        if (s->kill_signal == 0) _exit(0);
        signal(s->kill_signal, SIG_DFL);
        kill(getpid(), s->kill_signal);
    }
    if (index == s->wrong_at) {
        if (s->wrong == 4) return LEAT_EIO;
        misbehave(s, batch);
    }
    return LEAT_OK;
}

static leat_status source_hook(void *user, int64_t pass, leat_error *err) {
    source *s = user;
    atomic_store(&s->counts->in_hook, 1);
    atomic_store(&s->counts->hook_thread, (int64_t)syscall(SYS_gettid));
    sleep_us(2000); /* long enough to catch a worker that does not wait */
    if (s->hook_fails) {
        atomic_store(&s->counts->in_hook, 0);
        return leat_error_set(err, LEAT_EUSER, "the index file is gone");
    }
    s->state.scale += 2;
    s->state.pass = pass + 1;
    s->length += s->growth;
    atomic_fetch_add(&s->counts->hooks, 1);
    atomic_store(&s->counts->in_hook, 0);
    return LEAT_OK;
}

static leat_status source_worker_init(void *user, int worker, leat_error *err) {
    source *s = user;
    (void)worker;
    if (s->init_fails) return leat_error_set(err, LEAT_EIO, "the camera is not there");
    atomic_fetch_add(&s->counts->inits, 1);
    return LEAT_OK;
}

static void source_worker_fini(void *user, int worker) {
    (void)worker;
    atomic_fetch_add(&((source *)user)->counts->finis, 1);
}

leat_sequence source_sequence(source *s) {
    leat_sequence sequence = leat_sequence_default();
    sequence.user = s;
    sequence.spec.batch_size = s->batch_size;
    leat_error err = {0};
    assert_int_equal(leat_batch_spec_add(&sequence.spec, LEAT_PART_INPUT, "x", LEAT_F32, 1, &s->width, &err),
                     LEAT_OK);
    assert_int_equal(leat_batch_spec_add(&sequence.spec, LEAT_PART_TARGET, "y", LEAT_I64, 0, NULL, &err),
                     LEAT_OK);
    sequence.length = source_length;
    sequence.get = source_get;
    sequence.worker_init = source_worker_init;
    sequence.worker_fini = source_worker_fini;
    return sequence;
}

leat_sequence source_sequence_with_hook(source *s, bool declares_state) {
    leat_sequence sequence = source_sequence(s);
    sequence.on_epoch_end = source_hook;
    if (declares_state) {
        sequence.state = &s->state;
        sequence.state_bytes = sizeof s->state;
    }
    return sequence;
}

static int64_t source_samples(void *user) {
    return ((source *)user)->samples;
}

static int64_t source_length_of_samples(void *user) {
    const source *s = user;
    return (s->samples + s->batch_size - 1) / s->batch_size;
}

static leat_status source_get_samples(void *user, const int64_t *numbers, int64_t count, leat_rng *rng,
                                      leat_batch *batch, leat_error *err) {
    source *s = user;
    (void)err;
    atomic_fetch_add(&s->counts->gets, 1);
    take_time(s, -2);
    if (batch->size != count || batch->tensors[0].shape[0] != count) return LEAT_EINTERNAL;
    for (int64_t i = 0; i < count * s->width; ++i)
        ((float *)batch->tensors[0].data)[i] = (float)leat_rng_uniform(rng);
    memcpy(batch->tensors[1].data, numbers, (size_t)count * sizeof *numbers);
    return LEAT_OK;
}

/* Makes the batch that get_samples would make of the samples in their order. */
static leat_status source_get_in_order(void *user, int64_t index, leat_rng *rng, leat_batch *batch,
                                       leat_error *err) {
    const source *s = user;
    int64_t numbers[64], first = index * s->batch_size, count = s->samples - first;
    if (count > s->batch_size) count = s->batch_size;
    for (int64_t i = 0; i < count; ++i) numbers[i] = first + i;
    batch->size = batch->tensors[0].shape[0] = count;
    return source_get_samples(user, numbers, count, rng, batch, err);
}

leat_sequence source_sequence_of_samples(source *s, int64_t samples) {
    leat_sequence sequence = source_sequence(s);
    assert_true(s->batch_size <= 64);
    s->samples = samples;
    sequence.length = source_length_of_samples;
    sequence.get = source_get_in_order;
    sequence.samples = source_samples;
    sequence.get_samples = source_get_samples;
    return sequence;
}

static leat_status source_next(void *user, leat_rng *rng, leat_batch *batch, leat_error *err) {
    source *s = user;
    int64_t nobody = 0, self = (int64_t)syscall(SYS_gettid);
    bool alone = atomic_fetch_add(&s->counts->in_next, 1) == 0;
    if (!atomic_compare_exchange_strong(&s->counts->owner, &nobody, self)) alone = alone && nobody == self;
    if (!alone) atomic_fetch_add(&s->counts->crossed, 1);
    leat_status status = LEAT_OK;
    if (s->length >= 0 && s->made >= s->length)
        batch->size = 0;
    else
        status = source_get(user, s->made++, rng, batch, err);
    atomic_fetch_sub(&s->counts->in_next, 1);
    return status;
}

leat_sequence source_generator(source *s) {
    leat_sequence sequence = source_sequence(s);
    sequence.length = NULL;
    sequence.get = NULL;
    sequence.next = source_next;
    return sequence;
}

leat_feed_options source_options(feed_mode mode) {
    leat_feed_options options = leat_feed_options_default();
    options.workers = mode.workers;
    options.use_multiprocessing = mode.processes;
    options.seed = 77;
    return options;
}

static uint64_t digest(uint64_t hash, const void *memory, size_t bytes) {
    const unsigned char *byte = memory;
    for (size_t i = 0; i < bytes; ++i) hash = (hash ^ byte[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t digest_batch(uint64_t hash, const leat_feed *feed, const leat_batch *batch) {
    leat_feed_position at = leat_feed_position_get(feed);
    hash = digest(hash, &at, sizeof at);
    hash = digest(hash, &batch->size, sizeof batch->size);
    for (int t = 0; t < batch->tensor_count; ++t) {
        const leat_tensor *tensor = &batch->tensors[t];
        hash = digest(hash, tensor->shape, (size_t)tensor->rank * sizeof *tensor->shape);
        hash = digest(hash, tensor->data, leat_tensor_bytes(tensor));
    }
    return hash;
}

static const uint64_t digest_start = 0xcbf29ce484222325u;

uint64_t source_batch_digest(const leat_feed *feed, const leat_batch *batch) {
    return digest_batch(digest_start, feed, batch);
}

int64_t source_record(leat_feed *feed, source_entry *out, int64_t count, leat_error *end) {
    *end = (leat_error){0};
    for (int64_t i = 0; i < count; ++i) {
        const leat_batch *batch = NULL;
        if (leat_feed_get(feed, &batch, end) != LEAT_OK) return i;
        out[i] = (source_entry){.at = leat_feed_position_get(feed),
                                .next = leat_feed_next_position(feed),
                                .digest = source_batch_digest(feed, batch)};
        leat_feed_release(feed);
    }
    return count;
}

void source_compare(const source_entry *seen, const source_entry *expected, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const leat_feed_position *a = &seen[i].at, *b = &expected[i].at;
        if (a->pass != b->pass || a->ordinal != b->ordinal || a->index != b->index)
            fail_msg("batch %lld: (%lld, %lld, %lld), expected (%lld, %lld, %lld)", (long long)i,
                     (long long)a->pass, (long long)a->ordinal, (long long)a->index, (long long)b->pass,
                     (long long)b->ordinal, (long long)b->index);
        if (seen[i].digest != expected[i].digest)
            fail_msg("batch %lld, index %lld of pass %lld: other bytes", (long long)i, (long long)a->index,
                     (long long)a->pass);
    }
}

uint64_t source_digest(leat_feed *feed, int64_t batches) {
    uint64_t hash = digest_start;
    for (int64_t i = 0; i < batches; ++i) {
        const leat_batch *batch = NULL;
        leat_error err = {0};
        if (leat_feed_get(feed, &batch, &err) != LEAT_OK)
            fail_msg("batch %lld: %s", (long long)i, err.message);
        hash = digest_batch(hash, feed, batch);
        leat_feed_release(feed);
    }
    return hash;
}

leat_feed *source_open(const leat_sequence *sequence, const leat_feed_options *options) {
    leat_feed *feed = NULL;
    leat_error err = {0};
    if (leat_feed_open(&feed, sequence, options, &err) != LEAT_OK) fail_msg("%s", err.message);
    return feed;
}

uint64_t source_stream(const leat_sequence *sequence, const leat_feed_options *options, int64_t batches) {
    leat_feed *feed = source_open(sequence, options);
    uint64_t hash = source_digest(feed, batches);
    leat_feed_close(&feed);
    assert_null(feed);
    return hash;
}

static int entries(const char *path) {
    DIR *folder = opendir(path);
    assert_non_null(folder);
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

/* Returns the number of mappings in /proc/self/maps that a feed may have made, without those of the sources. */
static int mappings(void) {
    FILE *file = fopen("/proc/self/maps", "r");
    assert_non_null(file);
    char line[512];
    int count = 0;
    while (fgets(line, sizeof line, file)) /* shared anonymous memory shows as /dev/zero */
        count += strstr(line, "leat-ring") || strstr(line, "/dev/zero");
    fclose(file);
    return count - sources;
}

static int children(void) {
    char path[64];
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    for (struct dirent *task; (task = readdir(folder));) {
        snprintf(path, sizeof path, "/proc/self/task/%.20s/children", task->d_name);
        FILE *file = fopen(path, "r");
        int pid = 0;
        while (file && fscanf(file, "%d", &pid) == 1) ++count;
        if (file) fclose(file);
    }
    closedir(folder);
    return count;
}

static void *do_nothing(void *argument) {
    return argument;
}

resources resources_now(void) {
    static bool
        warm; /* a sanitizer starts its own thread with the first thread; that first thread must have ended */
    pthread_t thread;
    if (!warm && pthread_create(&thread, NULL, do_nothing, NULL) == 0) pthread_join(thread, NULL);
    for (int tries = 0; !warm && tries < 100 && entries("/proc/self/task") > 1; ++tries) sleep_us(100);
    warm = true;
    return (resources){.threads = entries("/proc/self/task"),
                       .children = children(),
                       .descriptors = entries("/proc/self/fd"),
                       .mappings = mappings()};
}

void resources_check(resources before) {
    resources now = resources_now();
    for (int tries = 0; tries < 200 && now.threads > before.threads; ++tries) {
        sleep_us(1000); /* pthread_join returns a moment before the thread is gone from /proc */
        now = resources_now();
    }
    assert_int_equal(now.threads, before.threads);
    assert_int_equal(now.children, before.children);
    assert_int_equal(now.descriptors, before.descriptors);
    assert_int_equal(now.mappings, before.mappings);
}
