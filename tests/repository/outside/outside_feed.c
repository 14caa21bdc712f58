/* SPDX-License-Identifier: Apache-2.0 */
/* A program outside of leat's tree that uses the feed without a model: one pass with worker processes. */
#include <stdio.h>

#include <leat/feed.h>

static int64_t length(void *user) {
    (void)user;
    return 100;
}

static leat_status get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    (void)user;
    (void)rng;
    (void)err;
    ((int64_t *)batch->tensors[0].data)[0] = index;
    return LEAT_OK;
}

int main(void) {
    leat_error err = {0};
    leat_sequence sequence = leat_sequence_default();
    leat_feed_options options = leat_feed_options_default();
    leat_feed *feed = NULL;
    const leat_batch *batch = NULL;
    int64_t sum = 0;
    sequence.length = length;
    sequence.get = get;
    sequence.spec.batch_size = 1;
    options.workers = 2;
    options.use_multiprocessing = true;
    options.passes = 1;
    leat_status status = leat_batch_spec_add(&sequence.spec, LEAT_PART_INPUT, "x", LEAT_I64, 0, NULL, &err);
    if (status == LEAT_OK) status = leat_feed_open(&feed, &sequence, &options, &err);
    while (status == LEAT_OK && (status = leat_feed_get(feed, &batch, &err)) == LEAT_OK) {
        sum += ((const int64_t *)batch->tensors[0].data)[0];
        leat_feed_release(feed);
    }
    leat_feed_close(&feed);
    printf("outside_feed: %lld\n", (long long)sum);
    if (status != LEAT_ENOTFOUND) printf("%s\n", err.message);
    return status == LEAT_ENOTFOUND && sum == 4950 ? 0 : 1;
}
