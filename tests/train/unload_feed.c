/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that uses libleat_feed.so alone, for test_unload.c: takes batches from worker threads and
 * processes. */
#include "leat/feed.h"

LEAT_API const char *unload_use(void);

static leat_error err;

static leat_status get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *error) {
    (void)user, (void)rng, (void)error;
    *(int64_t *)batch->tensors[0].data = index;
    return LEAT_OK;
}

static int64_t length(void *user) {
    (void)user;
    return 10;
}

static leat_status take(bool processes) {
    leat_sequence sequence = leat_sequence_default();
    leat_feed_options options = leat_feed_options_default();
    leat_feed *feed = NULL;
    const leat_batch *batch = NULL;
    sequence.spec.batch_size = 1;
    sequence.length = length;
    sequence.get = get;
    options.workers = 2;
    options.use_multiprocessing = processes;
    leat_status status = leat_batch_spec_add(&sequence.spec, LEAT_PART_INPUT, NULL, LEAT_I64, 0, NULL, &err);
    if (status == LEAT_OK) status = leat_feed_open(&feed, &sequence, &options, &err);
    for (int i = 0; i < 20 && status == LEAT_OK; ++i) {
        status = leat_feed_get(feed, &batch, &err);
        if (status == LEAT_OK) leat_feed_release(feed);
    }
    leat_feed_close(&feed);
    return status;
}

const char *unload_use(void) {
    leat_status status = take(false);
    if (status == LEAT_OK) status = take(true);
    return status == LEAT_OK ? NULL : err.message;
}
