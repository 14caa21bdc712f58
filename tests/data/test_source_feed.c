/* SPDX-License-Identifier: Apache-2.0 */
/* Sources in the feed: the same bytes for any number and kind of workers, all samples once a pass. */
#include "cmocka_all.h"

#include <string.h>

#include "data/files.h"
#include "leat/feed.h"
#include "leat/npz.h"
#include "leat/source.h"

enum { samples = 101, batch_size = 8, batches = 13, passes = 3 };

typedef struct stream {
    int32_t x[passes][samples];
    float y[passes][samples];
} stream;

static int enter(void **state) {
    static int32_t x[samples];
    static int64_t y[samples];
    if (files_enter(state) != 0) return -1;
    for (int i = 0; i < samples; ++i) x[i] = 1000 + i, y[i] = i % 5;
    leat_tensor tensors[] = {leat_tensor_view(LEAT_I32, 1, (int64_t[]){samples}, x),
                             leat_tensor_view(LEAT_I64, 1, (int64_t[]){samples}, y)};
    return leat_npz_write("d.npz", (const char *[]){"x", "y"}, tensors, 2, NULL) == LEAT_OK ? 0 : -1;
}

static void record(stream *out, int workers, bool processes, uint64_t seed) {
    leat_sequence s;
    leat_feed *feed;
    leat_error err = {0};
    leat_source_options source = {.batch_size = batch_size};
    leat_feed_options options = leat_feed_options_default();
    options.workers = workers;
    options.use_multiprocessing = processes;
    options.seed = seed;
    options.shuffle = LEAT_SHUFFLE_SAMPLES;
    memset(out, 0, sizeof *out);
    if (leat_source_open(&s, "npz:d.npz?onehot=5", &source, &err) != LEAT_OK) fail_msg("%s", err.message);
    if (leat_feed_open(&feed, &s, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
    for (int pass = 0; pass < passes; ++pass)
        for (int b = 0, at = 0; b < batches; ++b) {
            const leat_batch *batch;
            if (leat_feed_get(feed, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
            const int32_t *x = batch->tensors[0].data;
            const float *y = batch->tensors[1].data;
            for (int64_t i = 0; i < batch->size; ++i, ++at) {
                out->x[pass][at] = x[i];
                for (int k = 0; k < 5; ++k) out->y[pass][at] += y[5 * i + k] * (float)k;
            }
            leat_feed_release(feed);
        }
    leat_feed_close(&feed);
    leat_sequence_destroy(&s);
}

static void the_stream_does_not_depend_on_the_workers(void **state) {
    (void)state;
    static stream first, now;
    record(&first, 0, false, 3);
    const int workers[] = {1, 2, 4};
    for (int i = 0; i < 3; ++i)
        for (int processes = 0; processes < 2; ++processes) {
            record(&now, workers[i], processes, 3);
            assert_memory_equal(&first, &now, sizeof first);
        }
    record(&now, 2, true, 4);
    assert_memory_not_equal(&first, &now, sizeof first);
}

static void every_pass_has_every_sample_once_in_another_order(void **state) {
    (void)state;
    static stream s;
    record(&s, 2, true, 0);
    for (int pass = 0; pass < passes; ++pass) {
        bool seen[samples] = {false};
        for (int i = 0; i < samples; ++i) {
            int sample = s.x[pass][i] - 1000;
            assert_in_range(sample, 0, samples - 1);
            assert_false(seen[sample]);
            seen[sample] = true;
            assert_true(s.y[pass][i] == (float)(sample % 5)); /* the target that belongs to it */
        }
        if (pass > 0) assert_memory_not_equal(s.x[pass], s.x[pass - 1], sizeof s.x[pass]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_stream_does_not_depend_on_the_workers),
        cmocka_unit_test(every_pass_has_every_sample_once_in_another_order),
    };
    return cmocka_run_group_tests(tests, enter, files_leave);
}
