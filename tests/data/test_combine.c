/* SPDX-License-Identifier: Apache-2.0 */
/* Combinations of sequences: which samples they have, in which order, and how their SPECs are read. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/files.h"
#include "leat/combine.h"
#include "leat/feed.h"
#include "leat/npz.h"
#include "leat/source.h"

enum { MOST = 1024, PASSES = 3 };

/* Writes `count` samples whose input is first, first + 1, ... and whose target is the input's negative. */
static int write_samples(const char *path, int32_t first, int count) {
    static int32_t x[MOST];
    static int64_t y[MOST];
    for (int i = 0; i < count; ++i) x[i] = first + i, y[i] = -(first + i);
    leat_tensor tensors[] = {leat_tensor_view(LEAT_I32, 1, (int64_t[]){count}, x),
                             leat_tensor_view(LEAT_I64, 1, (int64_t[]){count}, y)};
    return leat_npz_write(path, (const char *[]){"x", "y"}, tensors, 2, NULL) == LEAT_OK ? 0 : -1;
}

static int enter(void **state) {
    if (files_enter(state) != 0) return -1;
    float other[6] = {0};
    leat_tensor tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){3, 2}, other);
    if (leat_npz_write("other.npz", (const char *[]){"x"}, &tensor, 1, NULL) != LEAT_OK) return -1;
    return write_samples("a.npz", 100, 7) || write_samples("b.npz", 200, 4) || write_samples("c.npz", 300, 90)
               ? -1
               : 0;
}

static leat_sequence opened(const char *spec, int64_t batch_size) {
    leat_sequence s;
    leat_error err = {0};
    leat_source_options options = {.size = sizeof options, .batch_size = batch_size};
    if (leat_source_open(&s, sizeof s, spec, &options, &err) != LEAT_OK)
        fail_msg("%s: %s", spec, err.message);
    return s;
}

/* Reads all samples in their order with get, and in the reverse order with get_samples; checks that both give the same
 * samples.  Returns their number. */
static int64_t read_all(int32_t *out, const char *spec, uint64_t pass) {
    static int32_t x[MOST] __attribute__((aligned(64)));
    static int64_t y[MOST] __attribute__((aligned(64)));
    leat_sequence s = opened(spec, 3);
    const int64_t count = s.samples(s.user), length = s.length(s.user);
    leat_error err = {0};
    int64_t done = 0;
    assert_int_equal(length, (count + s.spec.batch_size - 1) / s.spec.batch_size);
    for (int64_t i = 0; i < length; ++i) {
        leat_batch batch = {.size = s.spec.batch_size,
                            .tensor_count = 2,
                            .tensors = {{.data = x}, {.data = y}}};
        leat_rng rng = leat_rng_for(1, pass, (uint64_t)i);
        if (s.get(s.user, i, &rng, &batch, &err) != LEAT_OK) fail_msg("%s: %s", spec, err.message);
        memcpy(out + done, x, (size_t)batch.size * sizeof *out);
        for (int64_t k = 0; k < batch.size; ++k) assert_int_equal(y[k], -x[k]);
        done += batch.size;
    }
    assert_int_equal(done, count);
    for (int64_t i = count - 1; i >= 1; i -= 2) {
        const int64_t numbers[] = {i, i - 1};
        leat_batch batch = {.size = 2, .tensor_count = 2, .tensors = {{.data = x}, {.data = y}}};
        leat_rng rng = leat_rng_for(1, pass, 99);
        assert_int_equal(s.get_samples(s.user, numbers, 2, &rng, &batch, &err), LEAT_OK);
        assert_true(x[0] == out[i] && x[1] == out[i - 1]);
    }
    leat_sequence_destroy(&s);
    return count;
}

static void assert_samples(const char *spec, const char *expected) {
    int32_t samples[MOST];
    char text[8 * MOST] = "";
    size_t length = 0;
    const int64_t count = read_all(samples, spec, 0);
    for (int64_t i = 0; i < count; ++i)
        length += (size_t)snprintf(text + length, sizeof text - length, i ? " %d" : "%d", (int)samples[i]);
    if (strcmp(text, expected) != 0) fail_msg("%s: %s", spec, text);
}

static void parts_are_selected_and_joined(void **state) {
    (void)state;
    assert_samples("concat(npz:a.npz; npz:b.npz)", "100 101 102 103 104 105 106 200 201 202 203");
    assert_samples("concat(npz:b.npz)", "200 201 202 203");
    assert_samples("take(npz:a.npz; count=3)", "100 101 102");
    assert_samples("take(npz:a.npz; count=300)", "100 101 102 103 104 105 106");
    assert_samples("skip( npz:a.npz ;count=5 )", "105 106");
    assert_samples("shard(npz:a.npz; rank=1; world=3)", "101 104");
    assert_samples("repeat(take(npz:a.npz; count=2); times=3)", "100 101 100 101 100 101");
    assert_samples("concat(skip(npz:b.npz; count=3); take(npz:a.npz; count=1); repeat(npz:b.npz; times=1))",
                   "203 100 200 201 202 203");
    assert_samples("cache(take(concat(npz:a.npz; npz:b.npz); count=8))", "100 101 102 103 104 105 106 200");
}

static void mixtures_have_exact_proportions(void **state) {
    (void)state;
    int32_t samples[MOST], again[MOST];
    bool seen[MOST] = {false};
    int counts[4] = {0};
    const char *spec = "mix(npz:c.npz; npz:a.npz; weights=0.75,0.25)";
    assert_int_equal(read_all(samples, spec, 0), 7 * 4 + 1 + 1); /* the 8th sample of `a` would repeat */
    for (int i = 0; i < 30; ++i) {
        ++counts[samples[i] / 100];
        assert_false(seen[samples[i]]);
        seen[samples[i]] = true;
        if (i % 4 == 3) assert_int_equal(counts[1], (i + 1) / 4);
    }
    assert_int_equal(read_all(again, spec, 0), 30);
    assert_memory_equal(samples, again, 30 * sizeof *samples);
    read_all(again, spec, 1);
    assert_memory_not_equal(samples, again, 30 * sizeof *samples); /* another pass */
    assert_int_equal(read_all(samples, "mix(npz:a.npz; npz:b.npz; weights=1,1; samples=40)", 0), 40);
    int times[MOST] = {0};
    for (int i = 0; i < 40; ++i) ++times[samples[i]];
    for (int i = 200; i < 204; ++i) assert_int_equal(times[i], 5);
    for (int i = 100; i < 107; ++i) assert_in_range(times[i], 2, 3);
}

static void parts_stand_side_by_side(void **state) {
    (void)state;
    leat_sequence s = opened("zip(take(npz:a.npz; count=4); targets(npz:b.npz))", 32);
    int32_t x[4], third[4];
    int64_t y[4];
    leat_error err = {0};
    assert_int_equal(s.spec.tensor_count, 3);
    assert_int_equal(s.spec.batch_size, 4);
    assert_int_equal(s.spec.tensors[2].part, LEAT_PART_TARGET);
    leat_batch batch = {.size = 4, .tensor_count = 3, .tensors = {{.data = x}, {.data = y}, {.data = third}}};
    leat_rng rng = leat_rng_for(0, 0, 0);
    assert_int_equal(s.get_samples(s.user, (int64_t[]){3, 0, 1, 2}, 4, &rng, &batch, &err), LEAT_OK);
    assert_true(x[0] == 103 && x[3] == 102 && y[0] == -103 && third[0] == 203 && third[3] == 202);
    leat_sequence_destroy(&s);
}

/* ---- Feeds ---- */

static void record(int32_t *out, const char *spec, int workers, bool processes, int64_t from_batch) {
    leat_sequence s = opened(spec, 8);
    leat_feed *feed;
    leat_error err = {0};
    leat_feed_options options = leat_feed_options_default();
    options.workers = workers;
    options.use_multiprocessing = processes;
    options.seed = 5;
    options.shuffle = LEAT_SHUFFLE_SAMPLES;
    options.passes = PASSES;
    if (leat_feed_open(&feed, &s, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
    for (int64_t i = 0;; ++i) {
        const leat_batch *batch;
        const leat_status status = leat_feed_get(feed, &batch, &err);
        if (status == LEAT_ENOTFOUND) break; /* the end of the stream */
        if (status != LEAT_OK) fail_msg("%s", err.message);

        if (i >= from_batch) {
            memcpy(out, batch->tensors[0].data, (size_t)batch->size * sizeof *out);
            out += batch->size;
        }
        leat_feed_release(feed);
    }
    leat_feed_close(&feed);
    leat_sequence_destroy(&s);
}

static void streams_do_not_depend_on_the_workers(void **state) {
    (void)state;
    static int32_t first[PASSES * MOST], now[PASSES * MOST];
    static const char *const specs[] = {
        "mix(npz:c.npz; concat(npz:a.npz; npz:b.npz); weights=2,1; samples=100)",
        "cache(concat(npz:c.npz; repeat(npz:a.npz; times=2)))",
        "timeseries(npz:c.npz; sequence_length=1)",
    };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; ++i) {
        memset(first, 0, sizeof first);
        record(first, specs[i], 0, false, 0);
        for (int workers = 1; workers <= 4; workers *= 2)
            for (int processes = 0; processes < 2; ++processes) {
                memset(now, 0, sizeof now);
                record(now, specs[i], workers, processes, 0);
                assert_memory_equal(first, now, sizeof first);
            }
    }
}

/* ---- Texts ---- */

static void mistakes_are_explained(void **state) {
    (void)state;
    static const struct {
        const char *spec, *text;
        leat_status status;
    } cases[] = {
        {"konkat(npz:a.npz)", "did you mean 'concat'", LEAT_EINVAL},
        {"concat(npz:a.npz", "a bracket is missing", LEAT_EINVAL},
        {"concat(npz:a.npz) x", "unexpected text", LEAT_EINVAL},
        {"concat()", "is empty", LEAT_EINVAL},
        {"concat(npz:a.npz;)", "is empty", LEAT_EINVAL},
        {"take(npz:a.npz; npz:b.npz; count=1)", "at most 1", LEAT_EINVAL},
        {"take(npz:a.npz)", "needs the option count=N", LEAT_EINVAL},
        {"take(npz:a.npz; count=-1)", "an integer of at least 1", LEAT_EINVAL},
        {"take(npz:a.npz; number=1)", "has no option 'number'", LEAT_EINVAL},
        {"take(npz:a.npz; count=1; count=2)", "twice", LEAT_EINVAL},
        {"skip(npz:a.npz; count=7)", "no samples are left", LEAT_EINVAL},
        {"shard(npz:a.npz; rank=2; world=2)", "expected 0 to 1", LEAT_EINVAL},
        {"mix(npz:a.npz; npz:b.npz; weights=1)", "expected 2 numbers", LEAT_EINVAL},
        {"mix(npz:a.npz; npz:b.npz; weights=1,0)", "above 0", LEAT_EINVAL},
        {"zip(npz:a.npz; npz:b.npz)", "part 0 has 7 samples, part 1 has 4", LEAT_ESHAPE},
        {"concat(npz:a.npz; npz:other.npz)", "part 0 has 2 tensors, part 1 has 1", LEAT_ESHAPE},
        {"concat(npz:other.npz; targets(npz:other.npz))", "tensor 0 is", LEAT_ESHAPE},
        {"concat(npz:a.npz; npz:none.npz)", "none.npz", LEAT_ENOTFOUND},
        {"cache(npz:a.npz; memory=3X)", "such as 4G", LEAT_EINVAL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        leat_sequence s;
        leat_error err = {0};
        const leat_status status = leat_source_open(&s, sizeof s, cases[i].spec, NULL, &err);
        if (status != cases[i].status || !strstr(err.message, cases[i].text))
            fail_msg("%s: %d %s", cases[i].spec, (int)status, err.message);
    }
    char deep[512] = "";
    for (int i = 0; i < 17; ++i) strcat(deep, "concat(");
    strcat(deep, "npz:a.npz");
    for (int i = 0; i < 17; ++i) strcat(deep, ")");
    leat_sequence s;
    leat_error err = {0};
    assert_int_equal(leat_source_open(&s, sizeof s, deep, NULL, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "at most 16"));
}

static void a_failure_leaves_the_parts_to_the_caller(void **state) {
    (void)state;
    leat_sequence a = opened("npz:a.npz", 4), b = opened("npz:other.npz", 4), s;
    leat_error err = {0};
    assert_int_equal(leat_sequence_concat((leat_sequence *[]){&a, &b}, 2, &s, sizeof s, &err), LEAT_ESHAPE);
    assert_int_equal(leat_sequence_concat((leat_sequence *[]){&a, &a}, 2, &s, sizeof s, &err), LEAT_EINVAL);
    assert_int_equal(leat_sequence_concat((leat_sequence *[]){&a, NULL}, 2, &s, sizeof s, &err), LEAT_EINVAL);
    assert_int_equal(leat_sequence_concat((leat_sequence *[]){&a}, 0, &s, sizeof s, &err), LEAT_EINVAL);
    assert_int_equal(a.samples(a.user), 7);
    leat_sequence plain = a;
    plain.get_samples = NULL;
    plain.samples = NULL;
    assert_int_equal(leat_sequence_repeat(&plain, 2, &s, sizeof s, &err), LEAT_ENOTSUP);
    leat_sequence_destroy(&a);
    leat_sequence_destroy(&b);
}

static void random_numbers_are_needed(void **state) {
    (void)state;
    static int32_t x[8] __attribute__((aligned(64)));
    static int64_t y[8] __attribute__((aligned(64)));
    leat_sequence s = opened("concat(npz:a.npz; npz:b.npz)", 4);
    leat_batch batch = {.size = 4, .tensor_count = 2, .tensors = {{.data = x}, {.data = y}}};
    leat_error err = {0};
    assert_int_equal(s.get(s.user, 0, NULL, &batch, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "rng is NULL"));
    leat_sequence_destroy(&s);
}

static void fingerprints_cover_all_files(void **state) {
    (void)state;
    char *recorded = NULL;
    leat_error err = {0};
    const char *spec = "concat(npz:a.npz; take(npz:b.npz; count=2))";
    assert_int_equal(leat_source_fingerprint(spec, &recorded, &err), LEAT_OK);
    assert_non_null(strstr(recorded, "a.npz"));
    assert_int_equal(leat_source_check_fingerprint(spec, recorded, &err), LEAT_OK);
    assert_int_equal(leat_source_check_fingerprint("npz:a.npz", recorded, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "number of files"));
    assert_int_equal(write_samples("b.npz", 250, 4), 0);
    assert_int_equal(leat_source_check_fingerprint(spec, recorded, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "b.npz"));
    assert_int_equal(write_samples("b.npz", 200, 4), 0);
    leati_free(recorded);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_selected_and_joined),
        cmocka_unit_test(mixtures_have_exact_proportions),
        cmocka_unit_test(parts_stand_side_by_side),
        cmocka_unit_test(streams_do_not_depend_on_the_workers),
        cmocka_unit_test(mistakes_are_explained),
        cmocka_unit_test(a_failure_leaves_the_parts_to_the_caller),
        cmocka_unit_test(random_numbers_are_needed),
        cmocka_unit_test(fingerprints_cover_all_files),
    };
    return cmocka_run_group_tests(tests, enter, files_leave);
}
