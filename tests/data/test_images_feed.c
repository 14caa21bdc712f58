/* SPDX-License-Identifier: Apache-2.0 */
/* A feed of augmented pictures has the same bytes for any number and kind of workers, after killed workers, and after a
 * resume in the middle; samples for validation are not augmented. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "cmocka_all.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/files.h"
#include "leat/feed.h"
#include "leat/source.h"

enum { SAMPLES = 45, BATCH = 8, BATCHES = 6, PASSES = 2, SIDE = 20, PICTURE = SIDE * SIDE * 3 };

#define STEPS                                                                                                \
    "augment=flip(both),rotate(40),zoom(0.3),shift(0.2),brightness(0.4),RandomRotation(0.1),"                \
    "RandomPerspective(0.7,0.3),RandomElasticTransform(0.7),RandAugment,AugMix"
static const char *spec = "images:d?size=20x20&" STEPS;

static bytes file;

/* The bytes of a stream: the pictures of all passes in their order. */
typedef struct stream {
    unsigned char pixels[PASSES][SAMPLES][PICTURE];
    int64_t batches;
} stream;

static const char *path_of(int i) {
    static char path[64];
    snprintf(path, sizeof path, "d/%c/%02d.ppm", 'a' + i % 2, i);
    return path;
}

static int enter(void **state) {
    if (files_enter(state) != 0 || mkdir("d", 0777) != 0 || mkdir("d/a", 0777) != 0 ||
        mkdir("d/b", 0777) != 0)
        return -1;
    for (int i = 0; i < SAMPLES; ++i) {
        file.size = 0;
        bytes_add_text(&file, "P6 23 31 255\n");
        for (int k = 0; k < 23 * 31; ++k) {
            const unsigned char pixel[3] = {(unsigned char)(i * 5 + k % 23), (unsigned char)(k / 4),
                                            (unsigned char)(k * 7)};
            bytes_add(&file, pixel, 3);
        }
        bytes_write(&file, path_of(i));
    }
    return 0;
}

static int leave(void **state) {
    for (int i = 0; i < SAMPLES; ++i) remove(path_of(i));
    rmdir("d/a");
    rmdir("d/b");
    rmdir("d");
    return files_leave(state);
}

static leat_sequence opened(const char *text) {
    leat_sequence s;
    leat_error err = {0};
    leat_source_options options = leat_source_options_default();
    options.batch_size = BATCH;
    if (leat_source_open(&s, sizeof s, text, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
    return s;
}

/* ---- Workers that die ---- */

/* A sequence around the source: a worker process kills itself in every fifth call, before the batch is complete. */
typedef struct deadly {
    leat_sequence source;
    pid_t trainer;
    _Atomic int calls, deaths;
} deadly;

static int64_t deadly_length(void *user) {
    deadly *d = user;
    return d->source.length(d->source.user);
}

static int64_t deadly_samples(void *user) {
    deadly *d = user;
    return d->source.samples(d->source.user);
}

static leat_status deadly_get_samples(void *user, const int64_t *numbers, int64_t count, leat_rng *rng,
                                      leat_batch *batch, leat_error *err) {
    deadly *d = user;
    leat_status status = d->source.get_samples(d->source.user, numbers, count, rng, batch, err);
    if (getpid() != d->trainer && atomic_fetch_add(&d->calls, 1) % 5 == 4) {
        memset(batch->tensors[0].data, 0xee, PICTURE);
        atomic_fetch_add(&d->deaths, 1);
        kill(getpid(), SIGKILL);
    }
    return status;
}

static leat_status deadly_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    deadly *d = user;
    return d->source.get(d->source.user, index, rng, batch, err);
}

/* ---- Streams ---- */

typedef struct run {
    int workers;
    bool processes, kills;
    int64_t resume_at; /* batches after which the feed is closed and opened again; 0: never */
    uint64_t seed;
} run;

static void take(stream *out, leat_feed *feed, int64_t until) {
    leat_error err = {0};
    for (; out->batches < until; ++out->batches) {
        const leat_batch *batch;
        if (leat_feed_get(feed, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
        const int64_t pass = out->batches / BATCHES, first = out->batches % BATCHES * BATCH;
        memcpy(out->pixels[pass][first], batch->tensors[0].data, (size_t)batch->size * PICTURE);
        leat_feed_release(feed);
    }
}

static void record(stream *out, const run *r) {
    deadly *d = mmap(NULL, sizeof *d, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    leat_feed *feed;
    leat_error err = {0};
    leat_feed_options options = leat_feed_options_default();
    assert_ptr_not_equal(d, MAP_FAILED);
    options.workers = r->workers;
    options.use_multiprocessing = r->processes;
    options.seed = r->seed;
    options.shuffle = LEAT_SHUFFLE_SAMPLES;
    options.faults.max_deaths = 100;
    memset(out, 0, sizeof *out);
    d->source = opened(spec);
    d->trainer = r->kills ? getpid() : 0;
    leat_sequence s = leat_sequence_default();
    s.user = d;
    s.spec = d->source.spec;
    s.length = deadly_length;
    s.samples = deadly_samples;
    s.get = deadly_get;
    s.get_samples = deadly_get_samples;
    const leat_sequence *fed = r->kills ? &s : &d->source;
    if (leat_feed_open(&feed, fed, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
    if (r->resume_at > 0) {
        take(out, feed, r->resume_at);
        const leat_feed_position at = leat_feed_next_position(feed);
        leat_feed_close(&feed);
        if (leat_feed_open_at(&feed, fed, &options, &at, &err) != LEAT_OK) fail_msg("%s", err.message);
    }
    take(out, feed, (int64_t)PASSES * BATCHES);
    leat_feed_close(&feed);
    if (r->kills) assert_true(atomic_load(&d->deaths) > 1);
    leat_sequence_destroy(&d->source);
    munmap(d, sizeof *d);
}

static void the_bytes_do_not_depend_on_the_workers(void **state) {
    (void)state;
    static stream first, now;
    record(&first, &(run){.seed = 3});
    static const run runs[] = {
        {.workers = 1, .seed = 3},
        {.workers = 2, .seed = 3},
        {.workers = 4, .seed = 3},
        {.workers = 1, .processes = true, .seed = 3},
        {.workers = 2, .processes = true, .seed = 3},
        {.workers = 4, .processes = true, .seed = 3},
        {.workers = 2, .processes = true, .kills = true, .seed = 3},
        {.workers = 4, .processes = true, .kills = true, .seed = 3},
        {.workers = 0, .seed = 3, .resume_at = 4},
        {.workers = 4, .seed = 3, .resume_at = 9},
        {.workers = 2, .processes = true, .kills = true, .seed = 3, .resume_at = 7},
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; ++i) {
        record(&now, &runs[i]);
        if (memcmp(&first, &now, sizeof first) != 0) fail_msg("run %zu has other bytes", i);
    }
    record(&now, &(run){.workers = 2, .seed = 4});
    assert_memory_not_equal(&first, &now, sizeof first);
    assert_memory_not_equal(first.pixels[0], first.pixels[1], sizeof first.pixels[0]);
}

static void take_all(unsigned char *out, const leat_sequence *s) {
    leat_error err = {0};
    for (int64_t i = 0, at = 0; i < s->length(s->user); ++i) {
        static unsigned char pixels[SAMPLES * PICTURE];
        float labels[SAMPLES];
        leat_batch batch = {.size = s->spec.batch_size, .tensor_count = 2};
        leat_rng rng = leat_rng_for(9, 0, (uint64_t)i);
        batch.tensors[0].data = pixels;
        batch.tensors[1].data = labels;
        if (s->get(s->user, i, &rng, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
        memcpy(out + at * PICTURE, pixels, (size_t)batch.size * PICTURE);
        at += batch.size;
    }
}

/* ---- Caches below the augmentation ---- */

/* A cache changes no byte, with any workers, while it is filled, when it is full, and when its file is used again; once
 * it is full, the pictures are not read. */
static void caches_keep_the_bytes(void **state) {
    static const char *const specs[] = {"images:d?size=20x20&cache=memory&" STEPS,
                                        "images:d?size=20x20&cache=memory:2K&" STEPS,
                                        "images:d?size=20x20&cache=file.cache&" STEPS};
    static const run runs[] = {{.seed = 3},
                               {.workers = 2, .seed = 3},
                               {.workers = 2, .processes = true, .seed = 3},
                               {.workers = 2, .processes = true, .kills = true, .seed = 3},
                               {.workers = 1, .seed = 3, .resume_at = 7}};
    static stream first, now;
    (void)state;
    const char *plain = spec;
    record(&first, &runs[0]);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; ++i) {
        spec = specs[i];
        for (size_t k = 0; k < sizeof runs / sizeof *runs; ++k) {
            record(&now, &runs[k]);
            if (memcmp(&first, &now, sizeof first) != 0) fail_msg("%s, run %zu has other bytes", spec, k);
        }
    }
    assert_int_equal(access("file.cache", F_OK), 0);
    spec = plain;
}

/* Returns the value of the first picture's first byte. */
static int first_byte(const char *text) {
    leat_sequence s = opened(text);
    static unsigned char pixels[SAMPLES * PICTURE];
    take_all(pixels, &s);
    leat_sequence_destroy(&s);
    return pixels[0];
}

static void a_changed_picture_makes_a_cache_anew(void **state) {
    (void)state;
    static const char *const text = "images:d?size=23x31&interpolation=nearest&cache=file.cache";
    remove("file.cache");
    assert_int_equal(first_byte(text), 0);
    assert_int_equal(access("file.cache", F_OK), 0);
    assert_int_equal(chmod("d/a/00.ppm", 0), 0);
    assert_int_equal(first_byte(text), 0); /* the file of the cache is read instead */
    assert_int_equal(chmod("d/a/00.ppm", 0644), 0);
    file.size = 0;
    bytes_add_text(&file, "P6 1 1 255\n\x7b\x7b\x7b");
    bytes_write(&file, "d/a/00.ppm");
    assert_int_equal(first_byte(text), 0x7b);
    assert_int_equal(first_byte("images:d?size=9x9&cache=file.cache"),
                     0x7b); /* other options, another cache */
    leat_sequence s;
    leat_error err = {0};
    assert_int_equal(leat_source_open(&s, sizeof s, "images:d?cache=memory:4X", NULL, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "cache=memory:4X: expected bytes, or a number with K, M or G"));
    assert_int_equal(leat_source_open(&s, sizeof s, "images:d?cache=d/a/00.ppm", NULL, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "exists and is not a cache of leat"));
    assert_int_equal(leat_source_open(&s, sizeof s, "cache(images:d?augment=flip)", NULL, &err),
                     LEAT_ENOTSUP);
    assert_non_null(strstr(err.message, "the option cache=FILE or cache=memory of images"));
    remove("file.cache");
}

/* ---- Mixing ---- */

/* Takes a pass of a mixed source; returns the sum of all labels' largest shares. */
static double take_mixed(const char *text, int workers, unsigned char *pixels, float *labels) {
    leat_sequence s = opened(text);
    leat_feed *feed;
    leat_error err = {0};
    leat_feed_options options = leat_feed_options_default();
    options.workers = workers;
    options.use_multiprocessing = workers > 1;
    options.shuffle = LEAT_SHUFFLE_SAMPLES;
    double sum = 0;
    if (leat_feed_open(&feed, &s, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
    for (int b = 0, at = 0; b < BATCHES; ++b) {
        const leat_batch *batch;
        if (leat_feed_get(feed, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
        memcpy(pixels + (ptrdiff_t)at * PICTURE, batch->tensors[0].data, (size_t)batch->size * PICTURE);
        memcpy(labels + (ptrdiff_t)2 * at, batch->tensors[1].data, (size_t)batch->size * 2 * sizeof(float));
        at += (int)batch->size;
        leat_feed_release(feed);
    }
    for (int i = 0; i < SAMPLES; ++i) {
        assert_true(labels[2 * i] >= 0 && labels[2 * i + 1] >= 0);
        assert_true(labels[2 * i] + labels[2 * i + 1] > 0.9999f &&
                    labels[2 * i] + labels[2 * i + 1] < 1.0001f);
        sum += labels[2 * i] > labels[2 * i + 1] ? labels[2 * i] : labels[2 * i + 1];
    }
    leat_feed_close(&feed);
    leat_sequence_destroy(&s);
    return sum;
}

static void batches_are_mixed(void **state) {
    (void)state;
    static unsigned char plain[SAMPLES * PICTURE], mixed[SAMPLES * PICTURE], again[SAMPLES * PICTURE];
    static float labels[SAMPLES * 2], others[SAMPLES * 2];
    assert_true(take_mixed("images:d?size=20x20&labels=onehot", 0, plain, labels) == SAMPLES);
    static const char *const specs[] = {"images:d?size=20x20&labels=onehot&mix=mixup(0.4)",
                                        "images:d?size=20x20&labels=onehot&mix=cutmix"};
    for (int i = 0; i < 2; ++i) {
        assert_true(take_mixed(specs[i], 0, mixed, labels) < SAMPLES - 1);
        assert_memory_not_equal(plain, mixed, sizeof plain);
        (void)take_mixed(specs[i], 3, again, others);
        assert_memory_equal(mixed, again, sizeof mixed);
        assert_memory_equal(labels, others, sizeof labels);
    }
    /* A pixel of CutMix is one of a sample of the batch, at the same place. */
    for (int i = 0; i < SAMPLES; ++i)
        for (int k = 0; k < PICTURE; ++k) {
            bool found = false;
            for (int j = i / BATCH * BATCH; j < SAMPLES && j < (i / BATCH + 1) * BATCH; ++j)
                found = found || mixed[i * PICTURE + k] == plain[j * PICTURE + k];
            assert_true(found);
        }
}

static void wrong_mixes_are_refused(void **state) {
    (void)state;
    static const char *const specs[] = {"images:d?mix=mixup",
                                        "images:d?labels=onehot&mix=mix",
                                        "images:d?labels=onehot&mix=mixup(0)",
                                        "images:d?labels=onehot&mix=cutmix(2)",
                                        "images:d?labels=onehot&mix=mixup(1",
                                        "images:d?labels=onehot&augment=flop"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; ++i) {
        leat_sequence s;
        leat_error err = {0};
        assert_int_equal(leat_source_open(&s, sizeof s, specs[i], NULL, &err), LEAT_EINVAL);
    }
}

/* ---- Validation ---- */

static void validation_is_not_augmented(void **state) {
    (void)state;
    static unsigned char plain[SAMPLES * PICTURE], augmented[SAMPLES * PICTURE];
    leat_sequence s = opened("images:d?size=20x20&validation=0.2&subset=validation&split=ordered");
    take_all(plain, &s);
    leat_sequence_destroy(&s);
    s = opened("images:d?size=20x20&validation=0.2&subset=validation&split=ordered&" STEPS);
    take_all(augmented, &s);
    assert_memory_equal(plain, augmented, (size_t)s.samples(s.user) * PICTURE);
    leat_sequence_destroy(&s);
    s = opened("images:d?size=20x20&validation=0.2&subset=training&split=ordered&" STEPS);
    take_all(augmented, &s);
    leat_sequence_destroy(&s);
    s = opened("images:d?size=20x20&validation=0.2&subset=training&split=ordered");
    take_all(plain, &s);
    assert_memory_not_equal(plain, augmented, PICTURE);
    leat_sequence_destroy(&s);
}

/* leat_sequence_split makes a part for validation of a source that augments. */
static void a_split_off_part_is_not_augmented(void **state) {
    (void)state;
    static unsigned char plain[SAMPLES * PICTURE], augmented[SAMPLES * PICTURE];
    leat_sequence first, last, s = opened("images:d?size=20x20");
    take_all(plain, &s);
    leat_sequence_destroy(&s);
    s = opened(spec);
    assert_int_equal(leat_sequence_split(&s, 0.2, &first, &last, sizeof first, NULL), LEAT_OK);
    take_all(augmented, &last);
    assert_memory_equal(plain + first.samples(first.user) * PICTURE, augmented,
                        (size_t)last.samples(last.user) * PICTURE);
    take_all(augmented, &first);
    assert_memory_not_equal(plain, augmented, PICTURE);
    leat_sequence_destroy(&first);
    leat_sequence_destroy(&last);
}

/* ---- Masks ---- */

/* The folder e has copies of the pictures as masks: a mask is then the moved picture, with the nearest pixel. */
static void masks_move_with_their_pictures(void **state) {
    (void)state;
    static unsigned char pictures[SAMPLES * PICTURE], masks[SAMPLES * PICTURE], moved[SAMPLES * PICTURE];
    leat_error err = {0};
    assert_int_equal(symlink("d", "e"), 0);
    leat_sequence s = opened(
        "images:d?size=20x20&color=grayscale&interpolation=nearest&masks=e&augment=flip(both),shift(0.2)");
    assert_int_equal(s.spec.tensor_count, 2);
    assert_true(s.spec.tensors[1].dtype == LEAT_U8 && s.spec.tensors[1].rank == 3 &&
                s.spec.tensors[1].shape[2] == 1);
    leat_rng rng = leat_rng_for(9, 0, 0);
    leat_batch batch = {.size = BATCH, .tensor_count = 2};
    batch.tensors[0].data = pictures;
    batch.tensors[1].data = masks;
    assert_int_equal(s.get(s.user, 0, NULL, &batch, &err), LEAT_OK);
    assert_memory_equal(pictures, masks, BATCH * SIDE * SIDE);
    assert_int_equal(s.get(s.user, 0, &rng, &batch, &err), LEAT_OK);
    leat_sequence_destroy(&s);
    s = opened("images:d?size=20x20&color=grayscale&interpolation=nearest&labels=none&"
               "augment=flip(both),shift(0.2),interpolation_order=0");
    batch.tensor_count = 1;
    batch.tensors[0].data = moved;
    assert_int_equal(s.get(s.user, 0, &rng, &batch, &err), LEAT_OK);
    leat_sequence_destroy(&s);
    assert_memory_equal(masks, moved, BATCH * SIDE * SIDE);
    assert_memory_not_equal(pictures, moved, BATCH * SIDE * SIDE); /* pictures are interpolated */
    assert_int_equal(remove("e"), 0);
}

static void pictures_without_masks_are_refused(void **state) {
    (void)state;
    leat_sequence s;
    leat_error err = {0};
    assert_int_equal(leat_source_open(&s, sizeof s, "images:d?masks=d/a", NULL, &err), LEAT_ENOTFOUND);
    assert_non_null(strstr(err.message, "picture 'd/a/00.ppm' has no mask: expected 'd/a/a/00.ppm'"));
    assert_int_equal(leat_source_open(&s, sizeof s, "images:d?masks=d&labels=int", NULL, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "are the targets: leave labels=int out"));
}

/* ---- Statistics ---- */

enum { SMALL = 4 * 5 * 3 };

/* Opens a source and reads all samples; rng NULL: without augmentation. */
static leat_status take_opened(float *out, const char *text, leat_source_options options, leat_rng *rng,
                               leat_error *err) {
    leat_sequence s;
    options.batch_size = SAMPLES;
    leat_status status = leat_source_open(&s, sizeof s, text, &options, err);
    if (status != LEAT_OK) return status;
    int32_t labels[SAMPLES];
    leat_batch batch = {.size = s.spec.batch_size, .tensor_count = 2};
    batch.tensors[0].data = out;
    batch.tensors[1].data = labels;
    assert_int_equal(s.get(s.user, 0, rng, &batch, NULL), LEAT_OK);
    leat_sequence_destroy(&s);
    return LEAT_OK;
}

/* Opens a source that needs statistics, and reads all samples without augmentation. */
static leat_status take_standardized(float *out, const char *text, bool read_only, leat_error *err) {
    leat_source_options options = leat_source_options_default();
    options.read_statistics = read_only;
    options.statistics = "default.npz";
    return take_opened(out, text, options, NULL, err);
}

static void check_standardized(const float *pixels, int64_t samples) {
    for (int c = 0; c < 3; ++c) {
        double sum = 0, square = 0;
        for (int64_t i = c; i < samples * SMALL; i += 3) {
            sum += (double)pixels[i];
            square += (double)pixels[i] * (double)pixels[i];
        }
        sum /= (double)(samples * SMALL / 3);
        square /= (double)(samples * SMALL / 3);
        assert_true(sum > -1e-4 && sum < 1e-4 && square > 0.999 && square < 1.001);
    }
}

#define STANDARDIZED "images:d?size=4x5&augment=flip,featurewise_center,featurewise_std_normalization=True"

static void statistics_are_computed_and_kept(void **state) {
    (void)state;
    static float pixels[SAMPLES * SMALL], again[SAMPLES * SMALL];
    leat_error err = {0};
    assert_int_equal(take_standardized(pixels, STANDARDIZED, true, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "there are no statistics 'default.npz'"));
    assert_int_equal(take_standardized(pixels, STANDARDIZED, false, &err), LEAT_OK);
    check_standardized(pixels, SAMPLES);
    assert_int_equal(access("default.npz", F_OK), 0);
    assert_int_equal(take_standardized(again, STANDARDIZED, true, &err), LEAT_OK);
    assert_memory_equal(pixels, again, sizeof pixels);
    assert_int_equal(take_standardized(again, "images:d?size=5x5&augment=featurewise_center", false, &err),
                     LEAT_EINVAL);
    assert_non_null(strstr(err.message, "are of 4x5x3, and these pictures are 5x5x3"));
    assert_int_equal(take_standardized(pixels, "images:d?size=4x5&augment=rescale=1/255,featurewise_center",
                                       false, &err),
                     LEAT_EINVAL);
    assert_int_equal(remove("default.npz"), 0);
}

/* Samples for validation get the statistics of the training data, not their own. */
static void validation_has_the_statistics_of_training(void **state) {
    (void)state;
    static float pixels[SAMPLES * SMALL], validation[SAMPLES * SMALL], all[SAMPLES * SMALL];
    leat_error err = {0};
    assert_int_equal(take_standardized(pixels,
                                       STANDARDIZED
                                       "&validation=0.2&subset=training&split=ordered&statistics=s.npz",
                                       false, &err),
                     LEAT_OK);
    check_standardized(pixels, SAMPLES - SAMPLES / 5);
    const char *spec_of_validation =
        STANDARDIZED "&validation=0.2&subset=validation&split=ordered&statistics=s.npz";
    assert_int_equal(take_standardized(validation, spec_of_validation, true, &err), LEAT_OK);
    assert_int_equal(remove("s.npz"), 0);
    assert_int_equal(take_standardized(all, spec_of_validation, false, &err),
                     LEAT_OK); /* computed of the training data */
    assert_memory_equal(validation, all, SAMPLES / 5 * SMALL * sizeof(float));
    assert_int_equal(remove("s.npz"), 0);
}

/* Opens a source with a split to come, and reads all samples. */
static void take_before_split(float *out, const char *text, double share) {
    leat_error err = {0};
    leat_rng rng = leat_rng_for(1, 0, 0);
    leat_source_options options = leat_source_options_default();
    options.validation_split = share;
    assert_int_equal(take_opened(out, text, options, &rng, &err), LEAT_OK);
}

/* The samples that leat_sequence_split will take away do not count. */
static void a_split_leaves_samples_out_of_statistics(void **state) {
    (void)state;
    static float pixels[SAMPLES * SMALL];
    leat_sequence s;
    leat_error err = {0};
    leat_source_options options = leat_source_options_default();
    take_before_split(pixels, STANDARDIZED, 0.2);
    check_standardized(pixels, SAMPLES - SAMPLES / 5);
    take_before_split(pixels, STANDARDIZED, 0);
    check_standardized(pixels, SAMPLES);
    take_before_split(pixels, "concat(" STANDARDIZED ")", 0.2);
    check_standardized(pixels, SAMPLES - SAMPLES / 5);
    options.validation_split = 1;
    assert_int_equal(leat_source_open(&s, sizeof s, STANDARDIZED, &options, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "validation_split"));
}

/* Whitened samples are not correlated. */
static void samples_are_whitened(void **state) {
    (void)state;
    enum { VALUES = 2 * 3 };
    static float pixels[SAMPLES * SMALL];
    leat_error err = {0};
    double product[VALUES][VALUES] = {{0}};
    assert_int_equal(take_standardized(
                         pixels, "images:d?size=2x3&color=grayscale&augment=featurewise_center,zca_whitening",
                         false, &err),
                     LEAT_OK);
    for (int s = 0; s < SAMPLES; ++s)
        for (int i = 0; i < VALUES; ++i)
            for (int j = 0; j < VALUES; ++j)
                product[i][j] += (double)pixels[s * VALUES + i] * (double)pixels[s * VALUES + j] / SAMPLES;
    for (int i = 0; i < VALUES; ++i)
        for (int j = 0; j < VALUES; ++j)
            if (!(fabs(product[i][j] - (i == j)) < 1e-2)) fail_msg("%d %d: %g", i, j, product[i][j]);
    assert_int_equal(remove("default.npz"), 0);
}

static void scaled_samples_are_not_rounded(void **state) {
    (void)state;
    leat_sequence s = opened("images:d?size=20x20&scale=1/255&augment=rotate(30),CenterCrop(8,10)");
    static float pixels[SAMPLES * PICTURE], labels[SAMPLES];
    leat_batch batch = {.size = s.spec.batch_size, .tensor_count = 2};
    leat_rng rng = leat_rng_for(9, 0, 0);
    int fractions = 0;
    batch.tensors[0].data = pixels;
    batch.tensors[1].data = labels;
    assert_true(s.spec.tensors[0].dtype == LEAT_F32);
    assert_true(s.spec.tensors[0].shape[0] == 8 && s.spec.tensors[0].shape[1] == 10);
    assert_int_equal(s.get(s.user, 0, &rng, &batch, NULL), LEAT_OK);
    for (int i = 0; i < 8 * 10 * 3; ++i) {
        const float value = pixels[i] * 255;
        assert_true(value >= 0 && value < 255.01f);
        fractions += value - (float)(int)value > 0.1f && value - (float)(int)value < 0.9f;
    }
    assert_true(fractions > 50);
    leat_sequence_destroy(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_do_not_depend_on_the_workers),
        cmocka_unit_test(caches_keep_the_bytes),
        cmocka_unit_test(batches_are_mixed),
        cmocka_unit_test(wrong_mixes_are_refused),
        cmocka_unit_test(validation_is_not_augmented),
        cmocka_unit_test(a_split_off_part_is_not_augmented),
        cmocka_unit_test(masks_move_with_their_pictures),
        cmocka_unit_test(pictures_without_masks_are_refused),
        cmocka_unit_test(statistics_are_computed_and_kept),
        cmocka_unit_test(validation_has_the_statistics_of_training),
        cmocka_unit_test(a_split_leaves_samples_out_of_statistics),
        cmocka_unit_test(samples_are_whitened),
        cmocka_unit_test(scaled_samples_are_not_rounded),
        cmocka_unit_test(a_changed_picture_makes_a_cache_anew), /* the last: it changes a picture */
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
