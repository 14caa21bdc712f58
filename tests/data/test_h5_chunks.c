/* SPDX-License-Identifier: Apache-2.0 */
/* HDF5 datasets in chunks that do not fit into the memory of the source: the same samples as from memory, in any order,
 * by threads and processes; damaged chunks; the order by blocks. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hdf5.h>

#include "data/files.h"
#include "leat/feed.h"
#include "leat/log.h"
#include "leat/source.h"

enum {
    ROWS = 503,
    HEIGHT = 6,
    WIDTH = 5,
    CHUNK = 7,
    LABEL_CHUNK = 16,
    DAMAGED = 10,
    VALUES = HEIGHT * WIDTH
};

static haddr_t damaged_at; /* address of the chunk of the samples 70 to 76 */

static int16_t value_of(int64_t row, int at) {
    return (int16_t)(row * 31 + at);
}

static hid_t chunked(int rank, const hsize_t *chunk, bool packed) {
    const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    const int16_t fill = 77;
    H5Pset_chunk(how, rank, chunk);
    H5Pset_fill_value(how, H5T_NATIVE_SHORT, &fill);
    if (packed) {
        H5Pset_shuffle(how);
        H5Pset_deflate(how, 6);
        H5Pset_fletcher32(how);
    }
    return how;
}

static void write_set(hid_t file, const char *name, hid_t type, int rank, const hsize_t *shape, hid_t how,
                      const int16_t *numbers) {
    const hid_t space = H5Screate_simple(rank, shape, NULL);
    const hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);
    if (numbers) assert_true(H5Dwrite(set, H5T_NATIVE_SHORT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    unsigned mask = 0;
    hsize_t size = 0;
    const hsize_t at[] = {(hsize_t)DAMAGED * CHUNK, 0, 0};
    if (strcmp(name, "x") == 0) H5Dget_chunk_info_by_coord(set, at, &mask, &damaged_at, &size);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(how);
}

/* x: big-endian int16 in packed chunks that divide rows and columns; y: float64 in other chunks; none: a dataset of
 * which nothing was written. */
static void make_file(void) {
    static int16_t x[ROWS * VALUES], y[ROWS];
    const hsize_t shape[] = {ROWS, HEIGHT, WIDTH}, chunk[] = {CHUNK, 4, WIDTH}, labels[] = {LABEL_CHUNK};
    for (int i = 0; i < ROWS; ++i) {
        y[i] = (int16_t)i;
        for (int k = 0; k < VALUES; ++k) x[i * VALUES + k] = value_of(i, k);
    }
    const hid_t file = H5Fcreate("c.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    write_set(file, "x", H5T_STD_I16BE, 3, shape, chunked(3, chunk, true), x);
    write_set(file, "y", H5T_IEEE_F64LE, 1, shape, chunked(1, labels, false), y);
    write_set(file, "none", H5T_STD_I16LE, 3, shape, chunked(3, chunk, true), NULL);
    H5Fclose(file);
}

static void open_source(leat_sequence *out, const char *spec) {
    leat_error err = {0};
    leat_source_options options = leat_source_options_default();
    options.batch_size = 8;
    if (leat_source_open(out, sizeof *out, spec, &options, &err) != LEAT_OK)
        fail_msg("%s: %s", spec, err.message);
}

static leat_status take(const leat_sequence *s, const int64_t *numbers, int64_t count, int32_t *x, float *y,
                        leat_error *err) {
    leat_batch batch = {.size = count, .tensor_count = s->spec.tensor_count};
    leat_rng rng = {0};
    batch.tensors[0].data = x;
    batch.tensors[1].data = y;
    return s->get_samples(s->user, numbers, count, &rng, &batch, err);
}

static void samples_are_read_in_any_order(void **state) {
    (void)state;
    static int32_t x[ROWS * VALUES];
    static float y[ROWS];
    int64_t numbers[ROWS];
    leat_sequence s;
    leat_error err = {0};
    open_source(&s, "h5:c.h5?memory=8000");
    assert_true(s.block_samples == LABEL_CHUNK && s.blocks_at_once == 1);
    assert_true(s.spec.tensors[0].dtype == LEAT_I32 && s.spec.tensors[1].dtype == LEAT_F32);
    for (int step = 1; step < ROWS; step += 100) { /* 503 is a prime number */
        for (int64_t i = 0; i < ROWS; ++i) numbers[i] = i * step % ROWS;
        assert_int_equal(take(&s, numbers, ROWS, x, y, &err), LEAT_OK);
        for (int i = 0; i < ROWS; ++i) {
            assert_true(y[i] == (float)numbers[i]);
            for (int k = 0; k < VALUES; ++k) assert_int_equal(x[i * VALUES + k], value_of(numbers[i], k));
        }
    }
    leat_sequence_destroy(&s);
    open_source(&s, "h5:c.h5?inputs=none&memory=8000&scale=1/2");
    static float halves[ROWS * VALUES];
    for (int64_t i = 0; i < ROWS; ++i) numbers[i] = i;
    assert_int_equal(take(&s, numbers, ROWS, (int32_t *)(void *)halves, y, &err), LEAT_OK);
    for (int i = 0; i < ROWS * VALUES; ++i) assert_true(halves[i] == 38.5f);
    leat_sequence_destroy(&s);
}

static void the_memory_says_what_is_read_at_once(void **state) {
    (void)state;
    leat_sequence s;
    leat_error err = {0};
    open_source(&s, "h5:c.h5?memory=1M");
    assert_int_equal(s.block_samples, 0);
    leat_sequence_destroy(&s);
    open_source(&s, "h5:c.h5?memory=20K"); /* the labels are read at once */
    assert_true(s.block_samples == CHUNK && s.blocks_at_once > 1);
    leat_sequence first, last;
    assert_int_equal(leat_sequence_split(&s, 0.2, &first, &last, sizeof first, &err), LEAT_OK);
    assert_true(first.block_samples == CHUNK && last.blocks_at_once == first.blocks_at_once);
    leat_sequence_destroy(&first);
    leat_sequence_destroy(&last);
    assert_int_equal(leat_source_open(&s, sizeof s, "h5:c.h5?memory=1000", NULL, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "give memory=1M or more"));
    assert_int_equal(leat_source_open(&s, sizeof s, "h5:c.h5?memory=much", NULL, &err), LEAT_EINVAL);
}

static void as_many_datasets_as_a_batch_has(void **state) {
    (void)state;
    char spec[128] = "h5:c.h5?memory=8000&inputs=x";
    leat_sequence s;
    leat_error err = {0};
    for (int i = 1; i <= LEAT_BATCH_MAX_TENSORS; ++i) strcat(spec, ",x");
    assert_int_equal(leat_source_open(&s, sizeof s, spec, NULL, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "at most 32"));
}

/* Returns a number that stands for all bytes of two passes, in order; *pass_sum is that of the targets of one pass. */
static uint64_t stream_of(const char *spec, int workers, bool processes, leat_shuffle shuffle,
                          int64_t group) {
    leat_sequence s;
    leat_feed *feed;
    leat_error err = {0};
    uint64_t hash = 14695981039346656037u;
    open_source(&s, spec);
    leat_feed_options options = leat_feed_options_default();
    options.workers = workers;
    options.use_multiprocessing = processes;
    options.shuffle = shuffle;
    options.shuffle_window = group;
    options.seed = 5;
    if (leat_feed_open(&feed, &s, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
    for (int pass = 0; pass < 2; ++pass) {
        bool seen[ROWS] = {false};
        for (int64_t at = 0; at < ROWS;) {
            const leat_batch *batch;
            if (leat_feed_get(feed, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
            const float *y = batch->tensors[1].data;
            const unsigned char *received = batch->tensors[0].data;
            for (int64_t i = 0; i < batch->size; ++i, ++at) {
                assert_false(seen[(int)y[i]]);
                seen[(int)y[i]] = true;
            }
            for (size_t i = 0; i < leat_tensor_bytes(&batch->tensors[0]); ++i)
                hash = (hash ^ received[i]) * 1099511628211u;
            leat_feed_release(feed);
        }
    }
    leat_feed_close(&feed);
    leat_sequence_destroy(&s);
    return hash;
}

#define CHUNKED "h5:c.h5?memory=20K"

static void the_stream_does_not_depend_on_the_workers(void **state) {
    (void)state;
    static const leat_shuffle ways[] = {LEAT_SHUFFLE_NONE, LEAT_SHUFFLE_SAMPLES, LEAT_SHUFFLE_BLOCKS};
    for (int way = 0; way < 3; ++way) {
        const uint64_t expected = stream_of("h5:c.h5?memory=9000", 0, false, ways[way], 0);
        for (int workers = 1; workers <= 4; workers *= 2)
            for (int processes = 0; processes < 2; ++processes)
                assert_true(stream_of("h5:c.h5?memory=9000", workers, processes, ways[way], 0) == expected);
        if (ways[way] != LEAT_SHUFFLE_BLOCKS)
            assert_true(stream_of("h5:c.h5", 2, false, ways[way], 0) == expected);
        else
            assert_true(stream_of("h5:c.h5?memory=9000", 2, false, LEAT_SHUFFLE_AUTO, 0) == expected &&
                        stream_of("h5:c.h5?memory=9000", 2, false, LEAT_SHUFFLE_BLOCKS, 3) != expected);
    }
}

/* ---- Combinations ---- */

static void count_warning(void *user, leat_log_level level, const char *message) {
    *(int *)user += level == LEAT_LOG_WARNING && strstr(message, "unpacked") != NULL;
}

/* Returns a number that stands for the bytes of a pass; *warnings is set if chunks were unpacked again and again. */
static uint64_t combined_stream(const char *spec, int workers, bool processes, leat_shuffle shuffle,
                                int *warnings) {
    leat_sequence s;
    leat_feed *feed;
    leat_error err = {0};
    uint64_t hash = 14695981039346656037u;
    *warnings = 0;
    open_source(&s, spec);
    leat_feed_options options = leat_feed_options_default();
    options.workers = workers;
    options.use_multiprocessing = processes;
    options.shuffle = shuffle;
    options.passes = 2;
    leat_set_log(count_warning, warnings);
    if (leat_feed_open(&feed, &s, &options, &err) != LEAT_OK) fail_msg("%s: %s", spec, err.message);
    const leat_batch *batch;
    leat_status status;
    while ((status = leat_feed_get(feed, &batch, &err)) == LEAT_OK) {
        for (int k = 0; k < batch->tensor_count; ++k) {
            const unsigned char *received = batch->tensors[k].data;
            for (size_t i = 0; i < leat_tensor_bytes(&batch->tensors[k]); ++i)
                hash = (hash ^ received[i]) * 1099511628211u;
        }
        leat_feed_release(feed);
    }
    assert_int_equal(status, LEAT_ENOTFOUND); /* the end of the stream */
    leat_feed_close(&feed);
    leat_sequence_destroy(&s);
    leat_set_log(NULL, NULL);
    return hash;
}

/* Combinations have blocks, so that each chunk is unpacked few times; by samples it is unpacked again and again. */
static void combinations_have_blocks(void **state) {
    (void)state;
    static const char *const specs[] = {
        "concat(" CHUNKED "; " CHUNKED ")",
        "zip(" CHUNKED "; targets(" CHUNKED "))",
        "mix(" CHUNKED "; " CHUNKED "; weights=1,2)",
        "take(" CHUNKED "; count=490)",
        "skip(" CHUNKED "; count=3)",
        "shard(" CHUNKED "; rank=1; world=3)",
        "repeat(" CHUNKED "; times=2)",
        "timeseries(" CHUNKED "; sequence_length=3; sampling_rate=2)",
        "concat(skip(" CHUNKED "; count=100); take(mix(" CHUNKED "; " CHUNKED "); count=600))",
    };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; ++i) {
        int warnings = 0;
        const uint64_t expected = combined_stream(specs[i], 0, false, LEAT_SHUFFLE_AUTO, &warnings);
        if (warnings) fail_msg("%s: chunks are unpacked again and again", specs[i]);
        assert_true(combined_stream(specs[i], 2, false, LEAT_SHUFFLE_BLOCKS, &warnings) == expected);
        assert_true(combined_stream(specs[i], 2, true, LEAT_SHUFFLE_BLOCKS, &warnings) == expected);
        (void)combined_stream(specs[i], 0, false, LEAT_SHUFFLE_SAMPLES, &warnings);
        if (!warnings && !strstr(specs[i], "timeseries")) /* a window reads neighbours */
            fail_msg("%s: samples in any order need no chunk again", specs[i]);
    }
}

static void blocks_of_combinations(void **state) {
    (void)state;
    static const struct {
        const char *spec;
        int64_t samples, at_once;
    } cases[] = {
        {CHUNKED, CHUNK, 7},
        {"take(" CHUNKED "; count=100)", CHUNK, 7},
        {"skip(" CHUNKED "; count=14)", CHUNK, 7},
        {"skip(" CHUNKED "; count=3)", 4 * CHUNK, 1}, /* five chunks, in the worst case */
        {"shard(" CHUNKED "; rank=0; world=2)", 4 * 4,
         1}, /* 16 samples lie in 31 rows, or at most 6 chunks */
        {"mix(" CHUNKED "; weights=1)", 3 * CHUNK, 1},
        {"timeseries(" CHUNKED "; sequence_length=3)", 4 * CHUNK, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        leat_sequence s;
        open_source(&s, cases[i].spec);
        if (s.block_samples != cases[i].samples || s.blocks_at_once != cases[i].at_once)
            fail_msg("%s: %d blocks of %d samples", cases[i].spec, (int)s.blocks_at_once,
                     (int)s.block_samples);
        leat_sequence_destroy(&s);
    }
}

static void a_damaged_chunk_fails_its_samples_alone(void **state) {
    (void)state;
    leat_sequence s;
    leat_error err = {0};
    int32_t x[2 * VALUES];
    float y[2];
    FILE *stream = fopen("c.h5", "r+b");
    assert_non_null(stream);
    fseek(stream, (long)damaged_at + 20, SEEK_SET);
    fputs("damage", stream);
    fclose(stream);
    open_source(&s, "h5:c.h5?memory=8000");
    for (int turn = 0; turn < 3; ++turn) {
        assert_int_equal(take(&s, (const int64_t[]){69, 70}, 2, x, y, &err), LEAT_EFORMAT);
        assert_non_null(strstr(err.message, "samples 70 to 76"));
        assert_non_null(strstr(err.message, "'c.h5': 'x'"));
        assert_int_equal(take(&s, (const int64_t[]){69, 77}, 2, x, y, &err), LEAT_OK);
        assert_int_equal(x[VALUES], value_of(77, 0));
    }
    assert_int_equal(truncate("c.h5", 100), 0);
    assert_int_not_equal(take(&s, (const int64_t[]){300, 400}, 2, x, y, &err), LEAT_OK);
    leat_sequence_destroy(&s);
}

static int enter(void **state) {
    if (files_enter(state) != 0) return -1;
    make_file();
    return 0;
}

static int leave(void **state) {
    remove("c.h5");
    return files_leave(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_read_in_any_order),
        cmocka_unit_test(the_memory_says_what_is_read_at_once),
        cmocka_unit_test(as_many_datasets_as_a_batch_has),
        cmocka_unit_test(the_stream_does_not_depend_on_the_workers),
        cmocka_unit_test(combinations_have_blocks),
        cmocka_unit_test(blocks_of_combinations),
        cmocka_unit_test(a_damaged_chunk_fails_its_samples_alone), /* last: it damages the file */
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
