/* SPDX-License-Identifier: Apache-2.0 */
/* Caches: each sample is made once, a file is whole or absent, and a cache that cannot be kept does not end a fit. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "cmocka_all.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/files.h"
#include "leat/combine.h"
#include "leat/feed.h"
#include "leat/log.h"

enum { SAMPLES = 100, VALUES = 37, BATCH = 8 };

/* The number of samples that were made; worker processes share it. */
static atomic_int *made;

static char logged[4096];

static void keep_log(void *user, leat_log_level level, const char *message) {
    (void)user;
    (void)level;
    const size_t length = strlen(logged);
    snprintf(logged + length, sizeof logged - length, "%s\n", message);
}

static int enter(void **state) {
    made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    leat_set_log(keep_log, NULL);
    return made == MAP_FAILED ? -1 : files_enter(state);
}

static int reset(void **state) {
    (void)state;
    atomic_store(made, 0);
    logged[0] = '\0';
    remove("c");
    return 0;
}

static float value_of(int64_t sample, int k) {
    return (float)(sample * 1000 + k);
}

static int64_t samples(void *user) {
    (void)user;
    return SAMPLES;
}

static int64_t length(void *user) {
    (void)user;
    return (SAMPLES - 1) / BATCH + 1;
}

/* `user` is the number of a sample that is left out, or NULL. */
static leat_status get_samples(void *user, const int64_t *numbers, int64_t count, leat_rng *rng,
                               leat_batch *batch, leat_error *err) {
    (void)rng;
    float *x = batch->tensors[0].data;
    unsigned char *y = batch->tensors[1].data;
    int64_t kept = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (user && numbers[i] == *(int64_t *)user) continue;
        for (int k = 0; k < VALUES; ++k) x[kept * VALUES + k] = value_of(numbers[i], k);
        y[kept++] = (unsigned char)numbers[i];
        atomic_fetch_add(made, 1);
    }
    if (kept == 0) return leat_error_set(err, LEAT_ESKIPPED, "left out");
    batch->size = kept;
    return LEAT_OK;
}

static leat_status get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    int64_t numbers[BATCH], count = SAMPLES - index * BATCH < BATCH ? SAMPLES - index * BATCH : BATCH;
    for (int64_t i = 0; i < count; ++i) numbers[i] = index * BATCH + i;
    return get_samples(user, numbers, count, rng, batch, err);
}

static leat_sequence source(void *user) {
    leat_sequence s = leat_sequence_default();
    s.user = user;
    s.spec.batch_size = BATCH;
    assert_int_equal(leat_batch_spec_add(&s.spec, LEAT_PART_INPUT, NULL, LEAT_F32, 1, (int64_t[]){VALUES},
                                         NULL),
                     LEAT_OK);
    assert_int_equal(leat_batch_spec_add(&s.spec, LEAT_PART_TARGET, NULL, LEAT_U8, 1, (int64_t[]){1}, NULL),
                     LEAT_OK);
    s.length = length;
    s.samples = samples;
    s.get = get;
    s.get_samples = get_samples;
    return s;
}

static leat_sequence cached(const char *file, const char *key, size_t memory, int64_t *left_out) {
    leat_sequence s = source(left_out), out;
    leat_cache_options options = leat_cache_options_default();
    leat_error err = {0};
    options.file = file;
    options.key = key;
    options.memory = memory;
    if (leat_sequence_cache(&s, &options, &out, sizeof out, &err) != LEAT_OK) fail_msg("%s", err.message);
    return out;
}

/* Reads a pass and checks all samples; returns their number. */
static int read_pass(const leat_sequence *s, int64_t left_out) {
    static float x[BATCH * VALUES] __attribute__((aligned(64)));
    static unsigned char y[BATCH] __attribute__((aligned(64)));
    const int64_t count = s->length(s->user);
    int64_t expected = 0;
    int found = 0;
    for (int64_t i = 0; i < count; ++i) {
        leat_batch batch = {.size = BATCH, .tensor_count = 2, .tensors = {{.data = x}, {.data = y}}};
        leat_rng rng = leat_rng_for(0, 0, (uint64_t)i);
        leat_error err = {0};
        if (s->get(s->user, i, &rng, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
        for (int64_t k = 0; k < batch.size; ++k, ++expected, ++found) {
            if (expected == left_out) ++expected;
            assert_int_equal(y[k], expected);
            for (int v = 0; v < VALUES; ++v) assert_true(x[k * VALUES + v] == value_of(expected, v));
        }
    }
    return found;
}

static void make_file(void) {
    leat_sequence s = cached("c", "one", 0, NULL);
    assert_int_equal(read_pass(&s, -1), SAMPLES);
    leat_sequence_destroy(&s);
}

/* ---- Memory ---- */

static void memory_keeps_each_sample(void **state) {
    (void)state;
    leat_sequence s = cached(NULL, NULL, 0, NULL);
    for (int pass = 0; pass < 3; ++pass) assert_int_equal(read_pass(&s, -1), SAMPLES);
    assert_int_equal(atomic_load(made), SAMPLES);
    leat_sequence_destroy(&s);
}

static void memory_that_is_too_small_keeps_some(void **state) {
    (void)state;
    leat_sequence s = cached(NULL, NULL, 10 * (VALUES * sizeof(float) + 1), NULL);
    for (int pass = 0; pass < 2; ++pass) assert_int_equal(read_pass(&s, -1), SAMPLES);
    assert_int_equal(atomic_load(made), 2 * SAMPLES - 10);
    assert_non_null(strstr(logged, "10 of 100 samples"));
    leat_sequence_destroy(&s);
}

static void samples_that_are_left_out_stay_so(void **state) {
    (void)state;
    int64_t left_out = 13;
    leat_sequence s = cached(NULL, NULL, 0, &left_out);
    for (int pass = 0; pass < 2; ++pass) assert_int_equal(read_pass(&s, 13), SAMPLES - 1);
    assert_int_equal(atomic_load(made), SAMPLES - 1);
    leat_sequence_destroy(&s);
}

/* ---- Feeds ---- */

/* Reads passes through a feed with worker processes. */
static void read_feed(const char *file, int passes) {
    leat_sequence s = cached(file, "one", 0, NULL);
    leat_feed_options options = leat_feed_options_default();
    leat_feed *feed;
    leat_error err = {0};
    options.workers = 3;
    options.use_multiprocessing = true;
    options.shuffle = LEAT_SHUFFLE_SAMPLES;
    options.passes = passes;
    if (leat_feed_open(&feed, &s, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
    for (;;) {
        const leat_batch *batch;
        const leat_status status = leat_feed_get(feed, &batch, &err);
        if (status == LEAT_ENOTFOUND) break;
        if (status != LEAT_OK) fail_msg("%s", err.message);
        const float *x = batch->tensors[0].data;
        const unsigned char *y = batch->tensors[1].data;
        for (int64_t i = 0; i < batch->size; ++i) assert_true(x[i * VALUES + 3] == value_of(y[i], 3));
        leat_feed_release(feed);
    }
    leat_feed_close(&feed);
    leat_sequence_destroy(&s);
}

static void worker_processes_share_a_cache(void **state) {
    (void)state;
    read_feed(NULL, 5);
    /* Batches of the second pass may be made before the first one is complete. */
    assert_in_range(atomic_load(made), SAMPLES, 2 * SAMPLES);
    atomic_store(made, 0);
    read_feed("c", 5);
    assert_in_range(atomic_load(made), SAMPLES, 2 * SAMPLES);
    atomic_store(made, 0);
    read_feed("c", 5);
    assert_int_equal(atomic_load(made), 0);
}

/* ---- Files ---- */

static void a_file_is_made_once(void **state) {
    (void)state;
    make_file();
    assert_int_equal(atomic_load(made), SAMPLES);
    assert_int_equal(files_count(), 1);
    make_file();
    assert_int_equal(atomic_load(made), SAMPLES);
    leat_sequence s = cached("c", "another", 0, NULL);
    assert_int_equal(read_pass(&s, -1), SAMPLES);
    leat_sequence_destroy(&s);
    assert_int_equal(atomic_load(made), 2 * SAMPLES);
    assert_int_equal(files_count(), 1);
    make_file(); /* the file has the other key now */
    assert_int_equal(atomic_load(made), 3 * SAMPLES);
}

static void an_unfinished_file_disappears(void **state) {
    (void)state;
    int64_t left_out = 99;
    leat_sequence s = cached("c", "one", 0, &left_out);
    assert_int_equal(read_pass(&s, 99), SAMPLES - 1);
    assert_int_equal(files_count(), 1); /* the temporary one */
    leat_sequence_destroy(&s);
    assert_int_equal(files_count(), 0);
}

static void change_byte(long at) {
    FILE *file = fopen("c", "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    const int byte = fgetc(file);
    assert_int_equal(fseek(file, -1, SEEK_CUR), 0);
    fputc(byte ^ 1, file);
    assert_int_equal(fclose(file), 0);
}

static void damage_is_noticed(void **state) {
    (void)state;
    make_file();
    change_byte(-5); /* in the last sample */
    atomic_store(made, 0);
    leat_sequence s = cached("c", "one", 0, NULL);
    for (int pass = 0; pass < 2; ++pass) assert_int_equal(read_pass(&s, -1), SAMPLES);
    leat_sequence_destroy(&s);
    assert_int_equal(atomic_load(made), 2); /* the damaged sample, in each pass */
    assert_non_null(strstr(logged, "sample 99"));
    static const long places[] = {30, 4100}; /* in the header and in the table */
    for (int i = 0; i < 2; ++i) {
        change_byte(places[i]);
        atomic_store(made, 0);
        make_file();
        assert_int_equal(atomic_load(made), SAMPLES);
    }
    assert_int_equal(truncate("c", 6000), 0);
    atomic_store(made, 0);
    make_file();
    assert_int_equal(atomic_load(made), SAMPLES);
}

static void another_file_is_not_overwritten(void **state) {
    (void)state;
    FILE *file = fopen("c", "w");
    assert_non_null(file);
    fputs("the only copy of something else, which is longer than the header of a cache: 1 2 3 4 5 6 7 8 9",
          file);
    assert_int_equal(fclose(file), 0);
    leat_sequence s = source(NULL), out;
    leat_cache_options options = leat_cache_options_default();
    leat_error err = {0};
    options.file = "c";
    assert_int_equal(leat_sequence_cache(&s, &options, &out, sizeof out, &err), LEAT_EINVAL); /* no key */
    options.key = "one";
    assert_int_equal(leat_sequence_cache(&s, &options, &out, sizeof out, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "is not a cache"));
}

/* With a limit of file sizes, the file cannot be written, as on a full disk. */
static void a_full_disk_does_not_end_the_fit(void **state) {
    (void)state;
    struct rlimit limit, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 5000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    leat_sequence s = cached("c", "one", 0, NULL);
    for (int pass = 0; pass < 2; ++pass) assert_int_equal(read_pass(&s, -1), SAMPLES);
    leat_sequence_destroy(&s);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(atomic_load(made), 2 * SAMPLES);
    assert_non_null(strstr(logged, "no cache is kept in 'c'"));
    assert_int_equal(files_count(), 0);
    s = cached("none/c", "one", 0, NULL); /* no such folder */
    assert_int_equal(read_pass(&s, -1), SAMPLES);
    leat_sequence_destroy(&s);
}

static void two_programs_make_the_same_file(void **state) {
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        leat_sequence s = cached("c", "one", 0, NULL);
        const int count = read_pass(&s, -1);
        leat_sequence_destroy(&s);
        _exit(count == SAMPLES ? 0 : 1);
    }
    leat_sequence first = cached("c", "one", 0, NULL), second = cached("c", "one", 0, NULL);
    assert_int_equal(read_pass(&first, -1), SAMPLES);
    assert_int_equal(read_pass(&second, -1), SAMPLES);
    leat_sequence_destroy(&first);
    assert_int_equal(read_pass(&second, -1), SAMPLES);
    leat_sequence_destroy(&second);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(files_count(), 1);
    atomic_store(made, 0);
    make_file();
    assert_int_equal(atomic_load(made), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(memory_keeps_each_sample, reset),
        cmocka_unit_test_setup(memory_that_is_too_small_keeps_some, reset),
        cmocka_unit_test_setup(samples_that_are_left_out_stay_so, reset),
        cmocka_unit_test_setup(worker_processes_share_a_cache, reset),
        cmocka_unit_test_setup(a_file_is_made_once, reset),
        cmocka_unit_test_setup(an_unfinished_file_disappears, reset),
        cmocka_unit_test_setup(damage_is_noticed, reset),
        cmocka_unit_test_setup(another_file_is_not_overwritten, reset),
        cmocka_unit_test_setup(a_full_disk_does_not_end_the_fit, reset),
        cmocka_unit_test_setup_teardown(two_programs_make_the_same_file, reset, reset),
    };
    return cmocka_run_group_tests(tests, enter, files_leave);
}
