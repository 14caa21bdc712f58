/* SPDX-License-Identifier: Apache-2.0 */
/* A feed of a source gives equal bytes for any number and kind of workers, and each sample once in a pass. */
#include "cmocka_all.h"

#include <string.h>
#include <unistd.h>

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
    leat_source_options source = {.size = sizeof source, .batch_size = batch_size};
    leat_feed_options options = leat_feed_options_default();
    options.workers = workers;
    options.use_multiprocessing = processes;
    options.seed = seed;
    options.shuffle = LEAT_SHUFFLE_SAMPLES;
    memset(out, 0, sizeof *out);
    if (leat_source_open(&s, sizeof s, "npz:d.npz?onehot=5", &source, &err) != LEAT_OK)
        fail_msg("%s", err.message);
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
            assert_true(s.y[pass][i] == (float)(sample % 5)); /* the target of this sample */
        }
        if (pass > 0) assert_memory_not_equal(s.x[pass], s.x[pass - 1], sizeof s.x[pass]);
    }
}

/* ---- Files that are shortened while they are in use ---- */

enum { rows = 64, row_bytes = 8192 };

static void make_npy(void) {
    static int32_t x[rows][row_bytes / 4];
    leat_tensor tensor = leat_tensor_view(LEAT_I32, 2, (int64_t[]){rows, row_bytes / 4}, x);
    assert_int_equal(leat_npy_write("b.npy", &tensor, NULL), LEAT_OK);
}

static void make_npz(void) {
    static int32_t x[rows][row_bytes / 4];
    leat_tensor tensor = leat_tensor_view(LEAT_I32, 2, (int64_t[]){rows, row_bytes / 4}, x);
    assert_int_equal(leat_npz_write("b.npz", (const char *[]){"x"}, &tensor, 1, NULL), LEAT_OK);
}

static void make_idx(void) {
    static bytes file;
    static const unsigned char sample[512];
    file.size = 0;
    bytes_add_be(&file, 0x0802, 4);
    bytes_add_be(&file, rows, 4);
    bytes_add_be(&file, sizeof sample, 4);
    for (int i = 0; i < rows; ++i) bytes_add(&file, sample, sizeof sample);
    bytes_write(&file, "b.idx");
}

static const struct {
    const char *path, *spec;
    void (*make)(void);
} shortened_files[] = {{"b.npy", "npy:b.npy", make_npy},
                       {"b.npz", "npz:b.npz", make_npz},
                       {"b.idx", "idx:b.idx", make_idx}};

/* Takes a batch, shortens the file, and takes the remaining batches. */
static leat_status shorten_in_a_stream(const char *spec, const char *path, const leat_feed_options *options,
                                       leat_error *err) {
    leat_sequence s;
    leat_feed *feed;
    leat_source_options source = {.size = sizeof source, .batch_size = batch_size};
    if (leat_source_open(&s, sizeof s, spec, &source, err) != LEAT_OK) fail_msg("%s", err->message);
    if (leat_feed_open(&feed, &s, options, err) != LEAT_OK) fail_msg("%s", err->message);
    leat_status status = LEAT_OK;
    for (int i = 0; i < 10 * rows && status == LEAT_OK; ++i) {
        const leat_batch *batch;
        status = leat_feed_get(feed, &batch, err);
        if (status == LEAT_OK) leat_feed_release(feed);
        if (i == 0) assert_int_equal(truncate(path, 5000), 0);
    }
    assert_int_equal(leat_feed_close(&feed), 0);
    leat_sequence_destroy(&s);
    return status;
}

static void shortened_file_ends_the_stream_with_an_error(void **state) {
    (void)state;
    for (size_t f = 0; f < sizeof shortened_files / sizeof *shortened_files; ++f)
        for (int mode = 0; mode < 6; ++mode) {
            leat_feed_options options = leat_feed_options_default();
            leat_error err = {0};
            options.workers = mode / 2 > 0 ? 2 : 0;
            options.use_multiprocessing = mode / 2 == 2;
            options.shuffle = mode % 2 ? LEAT_SHUFFLE_SAMPLES : LEAT_SHUFFLE_NONE;
            options.max_queue_size = 1;
            shortened_files[f].make();
            leat_status status =
                shorten_in_a_stream(shortened_files[f].spec, shortened_files[f].path, &options, &err);
            if (status != LEAT_EIO || strncmp(err.message, "batch ", 6) != 0 ||
                !strstr(err.message, shortened_files[f].path) ||
                !strstr(err.message, "was shortened to 5000 bytes while it was in use"))
                fail_msg("%s, mode %d: %s %s", shortened_files[f].spec, mode, leat_status_name(status),
                         err.message);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        /* This test is the first: cmocka installs a handler of SIGBUS for each test, leat installs its handler
         * once in a process. */
        cmocka_unit_test(shortened_file_ends_the_stream_with_an_error),
        cmocka_unit_test(the_stream_does_not_depend_on_the_workers),
        cmocka_unit_test(every_pass_has_every_sample_once_in_another_order),
    };
    return cmocka_run_group_tests(tests, enter, files_leave);
}
