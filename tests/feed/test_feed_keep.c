/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that the caller keeps, and slots that grow with the batches. */
#include "cmocka_all.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feed/source.h"

static const feed_mode modes[] = {{0, false}, {2, false}, {2, true}};

enum { MODES = sizeof modes / sizeof *modes, KEPT = 3 };

/* A batch that a test keeps: a copy of its tensors, and the digest of its bytes. */
typedef struct kept_batch {
    leat_kept *kept;
    leat_tensor tensors[2];
    uint64_t digest;
} kept_batch;

static uint64_t digest_tensors(const leat_tensor *tensors) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (int t = 0; t < 2; ++t)
        for (size_t i = 0; i < leat_tensor_bytes(&tensors[t]); ++i)
            hash = (hash ^ ((const unsigned char *)tensors[t].data)[i]) * 0x100000001b3u;
    return hash;
}

static const leat_batch *take(leat_feed *feed) {
    const leat_batch *batch = NULL;
    leat_error err = {0};
    if (leat_feed_get(feed, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
    return batch;
}

static kept_batch take_and_keep(leat_feed *feed) {
    leat_error err = {0};
    kept_batch out = {0};
    memcpy(out.tensors, take(feed)->tensors, sizeof out.tensors);
    if (leat_feed_keep(feed, &out.kept, &err) != LEAT_OK) fail_msg("%s", err.message);
    assert_non_null(out.kept);
    leat_feed_release(feed);
    out.digest = digest_tensors(out.tensors);
    return out;
}

/* The stream is the same as without keeping, and what is kept stays the same, whatever is kept and released. */
static void kept_batches_stay(void **state) {
    (void)state;
    enum { batches = 200 };
    source s;
    source_init(&s, 17, 5, 40);
    leat_sequence sequence = source_sequence(&s);
    for (int m = 0; m < MODES; ++m) {
        leat_feed_options options = source_options(modes[m]);
        leat_feed *plain = source_open(&sequence, &options);
        options.kept_batches = KEPT;
        leat_feed *feed = source_open(&sequence, &options);
        kept_batch kept[KEPT] = {0};
        for (int i = 0; i < batches; ++i) {
            kept_batch *place = &kept[(i * 7 + i / 5) % KEPT];
            if (place->kept) assert_true(digest_tensors(place->tensors) == place->digest);
            leat_kept_release(&place->kept);
            assert_null(place->kept);
            *place = take_and_keep(feed);
            assert_true(digest_tensors(take(plain)->tensors) == place->digest);
            leat_feed_release(plain);
        }
        leat_feed_close(&plain);
        leat_feed_close(&feed);
        for (int i = 0; i < KEPT; ++i) { /* after the feed was closed, too */
            assert_true(digest_tensors(kept[i].tensors) == kept[i].digest);
            leat_kept_release(&kept[i].kept);
        }
    }
    source_fini(&s);
}

static void keeping_has_limits(void **state) {
    (void)state;
    source s;
    source_init(&s, 17, 5, 40);
    leat_sequence sequence = source_sequence(&s);
    for (int m = 0; m < MODES; ++m) {
        leat_feed_options options = source_options(modes[m]);
        options.kept_batches = 1;
        leat_feed *feed = source_open(&sequence, &options);
        leat_kept *kept = NULL, *second = NULL;
        leat_error err = {0};
        assert_int_equal(leat_feed_keep(feed, &second, &err), LEAT_EINVAL); /* no batch is in use */
        take(feed);
        assert_int_equal(leat_feed_keep(feed, &kept, &err), LEAT_OK);
        assert_int_equal(leat_feed_keep(feed, &second, &err), LEAT_EINVAL); /* it is kept already */
        leat_feed_release(feed);
        take(feed);
        assert_int_equal(leat_feed_keep(feed, &second, &err), LEAT_EBUSY);
        assert_null(second);
        leat_kept_release(&kept);
        assert_int_equal(leat_feed_keep(feed, &second, &err), LEAT_OK); /* the place is free again */
        leat_feed_release(feed);
        for (int i = 0; i < 40; ++i) { /* the feed goes on while the only spare place is kept */
            take(feed);
            leat_feed_release(feed);
        }
        leat_kept_release(&second);
        leat_feed_close(&feed);
        options.kept_batches = 0;
        feed = source_open(&sequence, &options);
        take(feed);
        assert_int_equal(leat_feed_keep(feed, &kept, &err), LEAT_EBUSY);
        assert_int_equal(leat_feed_keep(feed, NULL, &err), LEAT_EINVAL);
        assert_int_equal(leat_feed_set_helper_data(feed, "", 0, &err),
                         LEAT_EINVAL); /* it has no helper program */
        leat_feed_close(&feed);
    }
    leat_kept *none = NULL;
    assert_int_equal(leat_feed_keep(NULL, &none, NULL), LEAT_EINVAL);
    assert_int_equal(leat_batch_reserve(NULL, 1, NULL), LEAT_EINVAL);
    leat_kept_release(&none);
    leat_kept_release(NULL);
    source_fini(&s);
}

static void *release_elsewhere(void *kept) {
    leat_kept_release(kept);
    return NULL;
}

static void any_thread_releases(void **state) {
    (void)state;
    source s;
    source_init(&s, 17, 5, 40);
    leat_sequence sequence = source_sequence(&s);
    resources before = resources_now();
    for (int m = 0; m < MODES; ++m) {
        leat_feed_options options = source_options(modes[m]);
        options.kept_batches = 2;
        leat_feed *feed = source_open(&sequence, &options);
        for (int i = 0; i < 20; ++i) {
            kept_batch first = take_and_keep(feed), second = take_and_keep(feed);
            pthread_t thread;
            assert_int_equal(pthread_create(&thread, NULL, release_elsewhere, &first.kept), 0);
            if (i == 19) leat_feed_close(&feed); /* while the other thread releases */
            pthread_join(thread, NULL);
            assert_true(digest_tensors(second.tensors) == second.digest);
            leat_kept_release(&second.kept);
        }
    }
    resources_check(before);
    source_fini(&s);
}

/* A child of the caller can read a kept batch, and its release does not touch the parent. */
static void children_have_kept_batches(void **state) {
    (void)state;
    source s;
    source_init(&s, 17, 5, 40);
    leat_sequence sequence = source_sequence(&s);
    leat_feed_options options = source_options(modes[2]);
    options.kept_batches = 1;
    leat_feed *feed = source_open(&sequence, &options);
    kept_batch kept = take_and_keep(feed);
    pid_t pid = fork();
    if (pid == 0) {
        bool same = digest_tensors(kept.tensors) == kept.digest;
        leat_kept_release(&kept.kept);
        leat_feed_close(&feed);
        _exit(same ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(digest_tensors(kept.tensors) == kept.digest);
    take(feed);
    leat_feed_release(feed);
    leat_kept_release(&kept.kept);
    leat_feed_close(&feed);
    source_fini(&s);
}

/* ---- elastic slots ---- */

enum { LENGTH = 60, LARGEST = 300000 };

static int64_t elastic_length(void *user) {
    (void)user;
    return LENGTH;
}

static int64_t bytes_of(int64_t index) {
    return 1 + index * 7919 % LARGEST;
}

static leat_status elastic_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    (void)rng;
    batch->size = bytes_of(index);
    const bool *borrows = user;
    static unsigned char own[LARGEST];
    if (*borrows) {
        memset(own, (int)(index & 0xff), sizeof own); /* one worker only */
        batch->tensors[0].data = own;
        return LEAT_OK;
    }
    leat_status status = leat_batch_reserve(batch, (size_t)batch->size, err);
    if (status == LEAT_OK) memset(batch->tensors[0].data, (int)(index & 0xff), (size_t)batch->size);
    return status;
}

static leat_sequence elastic_sequence(bool *borrows) {
    leat_sequence sequence = leat_sequence_default();
    leat_error err = {0};
    sequence.user = borrows;
    sequence.length = elastic_length;
    sequence.get = elastic_get;
    sequence.spec.batch_size = (int64_t)1 << 32; /* 4 GiB of address space for each slot */
    assert_int_equal(leat_batch_spec_add(&sequence.spec, LEAT_PART_INPUT, NULL, LEAT_U8, 0, NULL, &err),
                     LEAT_OK);
    return sequence;
}

static void slots_grow_with_batches(void **state) {
    (void)state;
    for (int m = 0; m < MODES; ++m)
        for (int borrows = 0; borrows < 2; ++borrows) {
            bool flag = borrows;
            leat_sequence sequence = elastic_sequence(&flag);
            leat_feed_options options = source_options(modes[m]);
            if (borrows && !options.use_multiprocessing) continue; /* threads would share the memory */
            if (borrows) options.workers = 1;
            options.elastic = true;
            options.kept_batches = 2;
            leat_feed *feed = source_open(&sequence, &options);
            for (int i = 0; i < 3 * LENGTH; ++i) {
                const leat_batch *batch = take(feed);
                int64_t index = i % LENGTH;
                assert_int_equal(batch->size, bytes_of(index));
                const unsigned char *data = batch->tensors[0].data;
                for (int64_t k = 0; k < batch->size; ++k) assert_int_equal(data[k], index & 0xff);
                leat_feed_release(feed);
            }
            /* No slot has more memory than the largest batch needs, in pages of up to 64 KiB. */
            int64_t most = (LARGEST + 65536) * (options.max_queue_size + 3) + (1 << 20);
            assert_true(leat_feed_stats_get(feed).ring_bytes <= most);
            assert_true(leat_feed_stats_get(feed).ring_bytes > bytes_of(0));
            leat_feed_close(&feed);
        }
}

static void elastic_slots_have_rules(void **state) {
    (void)state;
    bool borrows = false;
    leat_error err = {0};
    leat_feed *feed = NULL;
    leat_sequence sequence = elastic_sequence(&borrows);
    leat_feed_options options = source_options(modes[1]);
    options.elastic = true;
    options.memory = 1 << 30;
    assert_int_equal(leat_feed_open(&feed, &sequence, &options, &err), LEAT_ENOTSUP);
    options.memory = 0;
    source s;
    source_init(&s, 17, 5, 40);
    leat_sequence two = source_sequence(&s);
    assert_int_equal(leat_feed_open(&feed, &two, &options, &err), LEAT_ENOTSUP);
    source_fini(&s);
    leat_batch batch = {0};
    assert_int_equal(leat_batch_reserve(&batch, 1, &err), LEAT_EINVAL); /* no feed makes this batch */
    sequence.spec.batch_size = 100;                                     /* less than elastic_get needs */
    assert_int_equal(leat_feed_open(&feed, &sequence, &options, &err), LEAT_OK);
    const leat_batch *taken = NULL;
    assert_int_equal(leat_feed_get(feed, &taken, &err), LEAT_OK); /* of 1 byte */
    leat_feed_release(feed);
    assert_int_equal(leat_feed_get(feed, &taken, &err), LEAT_ESHAPE);
    assert_non_null(strstr(err.message, "a batch needs 7920 bytes"));
    leat_feed_close(&feed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_batches_stay),       cmocka_unit_test(keeping_has_limits),
        cmocka_unit_test(any_thread_releases),     cmocka_unit_test(children_have_kept_batches),
        cmocka_unit_test(slots_grow_with_batches), cmocka_unit_test(elastic_slots_have_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
