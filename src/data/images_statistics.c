/* SPDX-License-Identifier: Apache-2.0 */
/* Computes statistics by one pass over the pictures, and keeps them in a file: an .npz file with the arrays `key`,
 * `pictures`, `mean`, `std` and `whitening`.  The result does not depend on the number of threads.  Room: data. */
#include "data/images_statistics.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/threads/thread_pool.h"
#include "data/numbered/numbered.h"
#include "image/augment/run.h"
#include "image/augment/statistics.h"
#include "leat/npz.h"

/* ---- Computing ---- */

enum {
    CHUNK = 64, /* pictures that are read at a time; sums do not depend on the threads */
    MOST_THREADS = 64
};

typedef struct pass {
    const leati_image_fitting *fitting;
    int64_t numbers[CHUNK]; /* of the pictures of this chunk, in the list */
    leati_moments moments;
    int64_t next, count; /* the next picture of the list to look at; the pictures of this chunk */
    float *pictures;     /* (CHUNK, values), those without a gap first; only with whitening */
    leati_channel_sums sums[CHUNK];
    leat_status status[CHUNK];
    leat_error errors[CHUNK];
    int64_t kept;
} pass;

static bool counts(const leati_image_fitting *f, int64_t number) {
    return !f->wanted || f->wanted[number];
}

/* Returns the number of pictures of which the statistics are. */
static int64_t fitted_count(const leati_image_fitting *f) {
    int64_t count = 0;
    for (int64_t i = 0; i < f->list->count; ++i) count += counts(f, i);
    return count;
}

/* Reads one picture of the chunk and runs the steps before those that need statistics. */
static leat_status read_picture(pass *p, int64_t i, leat_error *err) {
    const leati_image_fitting *f = p->fitting;
    const int64_t values = p->moments.values;
    leati_picture picture;
    float *memory =
        p->pictures ? p->pictures + i * values : leati_realloc(NULL, (size_t)values, sizeof *memory);
    if (!memory) return leati_fail_memory(err, (size_t)values * sizeof *memory, "a picture");
    leat_status status = f->load(f->user, &picture, p->numbers[i], err);
    if (status == LEAT_OK) {
        const leati_augment_picture job = {.src = picture.pixels,
                                           .channels = picture.channels,
                                           .is_still = true,
                                           .for_statistics = true,
                                           .floats = memory,
                                           .scale = 1};
        status = leati_augment_run(f->augment, NULL, 0, &job, err);
        leati_picture_fini(&picture);
    }
    if (status == LEAT_OK) p->sums[i] = leati_channel_sums_of(memory, values, p->moments.channels);
    if (!p->pictures) leati_free(memory);
    return status;
}

static void read_task(void *context, int64_t task, int member) {
    pass *p = context;
    (void)member;
    p->errors[task] = (leat_error){0};
    p->status[task] = read_picture(p, task, &p->errors[task]);
}

static void add_task(void *context, int64_t task, int member) {
    pass *p = context;
    (void)member;
    leati_moments_add_row(&p->moments, task, p->pictures, p->kept);
}

/* Adds the sums of the chunk's pictures in their order, and moves these pictures together. */
static leat_status add_chunk(pass *p, leat_error *err) {
    const int64_t values = p->moments.values;
    p->kept = 0;
    for (int64_t i = 0; i < p->count; ++i) {
        const bool is_bad = p->status[i] != LEAT_OK && p->status[i] != LEAT_ENOMEM;
        if (is_bad && p->fitting->choices->skip_bad) continue;
        if (p->status[i] != LEAT_OK)
            return leati_fail(err, p->status[i], "statistics: %s", p->errors[i].message);
        for (int64_t c = 0; c < p->moments.channels; ++c) {
            p->moments.channel.sum[c] += p->sums[i].sum[c];
            p->moments.channel.square[c] += p->sums[i].square[c];
        }
        if (p->pictures && p->kept < i)
            memcpy(p->pictures + p->kept * values, p->pictures + i * values, (size_t)values * sizeof(float));
        ++p->kept;
    }
    p->moments.samples += p->kept;
    return LEAT_OK;
}

typedef struct part {
    const leat_source_options *options;
    double begin, end;
} part;

static void report_part(void *user, double share) {
    const part *p = user;
    p->options->progress(p->options->progress_user, p->begin + (p->end - p->begin) * share);
}

static leat_status read_all(pass *p, leati_thread_pool *pool, const leati_share_report *report,
                            leat_error *err) {
    const int64_t total = p->fitting->list->count;
    while (p->next < total) {
        if (report->call) report->call(report->user, (double)p->next / (double)total);
        for (p->count = 0; p->next < total && p->count < CHUNK; ++p->next)
            if (counts(p->fitting, p->next)) p->numbers[p->count++] = p->next;
        if (p->count == 0) break;
        leati_thread_pool_share(pool, MOST_THREADS, p->count, read_task, p);
        LEATI_TRY(add_chunk(p, err));
        if (p->pictures) leati_thread_pool_share(pool, MOST_THREADS, p->moments.values, add_task, p);
    }
    return LEAT_OK;
}

/* Computes the statistics with a thread for each core. */
static leat_status compute(leati_statistics *out, const leati_image_fitting *f, pass *p, leat_error *err) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const bool whitens = leati_statistics_whitens(f->augment), reports = f->options->progress != NULL;
    part reading = {f->options, 0, whitens ? 0.5 : 1}, rest = {f->options, 0.5, 1};
    const leati_share_report first = {reports ? report_part : NULL, &reading};
    const leati_share_report second = {reports && whitens ? report_part : NULL, &rest};
    leati_thread_pool *pool = NULL;
    p->fitting = f;
    LEATI_TRY(leati_moments_init(&p->moments, f->augment, err));
    leat_status status = leati_thread_pool_create(&pool, err);
    if (status == LEAT_OK)
        status = leati_thread_pool_reserve(pool,
                                           cores < 1              ? 1
                                           : cores > MOST_THREADS ? MOST_THREADS
                                                                  : (int)cores,
                                           err);
    if (status == LEAT_OK && whitens) {
        p->pictures = leati_realloc(NULL, CHUNK * (size_t)p->moments.values, sizeof *p->pictures);
        if (!p->pictures)
            status = leati_fail_memory(err, CHUNK * sizeof(float), "the statistics of pictures");
    }
    if (status == LEAT_OK) status = read_all(p, pool, &first, err);
    if (status == LEAT_OK) status = leati_statistics_compute(out, f->augment, &p->moments, &second, err);
    if (reports) f->options->progress(f->options->progress_user, 1);
    leati_thread_pool_destroy(&pool);
    leati_free(p->pictures);
    leati_moments_fini(&p->moments);
    return status;
}

/* ---- The file ---- */

/* Writes what the statistics were computed of: the folder, and a checksum of the names of its pictures. */
static void describe_pictures(const leati_image_fitting *f, leati_text *out) {
    XXH3_state_t hash;
    XXH3_INITSTATE(&hash);
    XXH3_64bits_reset(&hash);
    for (int64_t i = 0; i < f->list->count; ++i)
        if (counts(f, i))
            XXH3_64bits_update(&hash, f->list->files[i].path, strlen(f->list->files[i].path) + 1);
    leati_text_add(out, "%s %lld %016llx", f->path, (long long)fitted_count(f),
                   (unsigned long long)XXH3_64bits_digest(&hash));
}

static leat_tensor row_of(void *data, leat_dtype dtype, int64_t count) {
    return (leat_tensor){.data = data, .dtype = dtype, .rank = 1, .shape = {count}};
}

static leat_status write_file(const char *path, const leati_statistics *s, const leat_augment *augment,
                              leati_text *key, leati_text *pictures, leat_error *err) {
    static const char *const names[] = {"key", "pictures", "mean", "std", "whitening"};
    const int64_t channels = leati_statistics_channels(augment), values = leati_statistics_values(augment);
    double mean[4], deviation[4];
    memcpy(mean, s->mean, sizeof mean);
    memcpy(deviation, s->std, sizeof deviation);
    const leat_tensor tensors[] = {
        row_of(key->data, LEAT_U8, (int64_t)key->length),
        row_of(pictures->data, LEAT_U8, (int64_t)pictures->length),
        row_of(mean, LEAT_F64, channels),
        row_of(deviation, LEAT_F64, channels),
        {.data = s->whitening, .dtype = LEAT_F32, .rank = 2, .shape = {values, values}}};
    return leati_prefix(leat_npz_write(path, names, tensors, s->whitening ? 5 : 4, err), err, "statistics");
}

/* Gets an array of the file; checks its type and number of elements. */
static leat_status get_array(leat_npz *file, const char *path, const char *name, leat_dtype dtype,
                             int64_t count, leat_tensor *out, leat_error *err) {
    LEATI_TRY(leati_prefix(leat_npz_get(file, name, out, err), err, "statistics"));
    int64_t found = 1;
    for (int k = 0; k < out->rank; ++k) found *= out->shape[k];
    if (out->dtype == dtype && (count < 0 || found == count)) return LEAT_OK;
    return leati_fail(
        err, LEAT_EFORMAT,
        "statistics '%s': expected the array %s of %lld elements of type %s, received %lld of type %s", path,
        name, (long long)(count < 0 ? found : count), leat_dtype_name(dtype), (long long)found,
        leat_dtype_name(out->dtype));
}

static bool is_text(const leat_tensor *found, const leati_text *expected) {
    return (size_t)found->shape[0] == expected->length &&
           memcmp(found->data, expected->data, expected->length) == 0;
}

/* Says that the folder of the pictures has other files than before. */
static void warn_of_changes(const leat_tensor *found, const leati_text *expected, const char *file,
                            const char *folder) {
    const size_t length = strlen(folder);
    if (is_text(found, expected) || (size_t)found->shape[0] <= length ||
        memcmp(found->data, folder, length) != 0 || ((const char *)found->data)[length] != ' ')
        return;
    leati_log(
        LEAT_LOG_WARNING,
        "statistics '%s' were computed of other pictures than '%s' has now: they are kept; remove the file "
        "to compute them anew",
        file, folder);
}

static leat_status read_arrays(leati_statistics *out, leat_npz *file, const char *path,
                               const leati_image_fitting *f, const leati_text *key,
                               const leati_text *pictures, leat_error *err) {
    const int64_t channels = leati_statistics_channels(f->augment),
                  values = leati_statistics_values(f->augment);
    leat_tensor found;
    LEATI_TRY(get_array(file, path, "key", LEAT_U8, -1, &found, err));
    if (!is_text(&found, key))
        return leati_fail(
            err, LEAT_EINVAL,
            "statistics '%s' are of %.*s, and these pictures are %s: remove the file to compute them "
            "anew, or give the size and the steps before as in the training",
            path, (int)found.shape[0], (const char *)found.data, key->data);
    LEATI_TRY(get_array(file, path, "pictures", LEAT_U8, -1, &found, err));
    if (!f->options->read_statistics) warn_of_changes(&found, pictures, path, f->path);
    LEATI_TRY(get_array(file, path, "mean", LEAT_F64, channels, &found, err));
    memcpy(out->mean, found.data, (size_t)channels * sizeof *out->mean);
    LEATI_TRY(get_array(file, path, "std", LEAT_F64, channels, &found, err));
    memcpy(out->std, found.data, (size_t)channels * sizeof *out->std);
    if (!leati_statistics_whitens(f->augment)) return LEAT_OK;
    LEATI_TRY(get_array(file, path, "whitening", LEAT_F32, values * values, &found, err));
    out->whitening = leati_realloc(NULL, (size_t)(values * values), sizeof *out->whitening);
    if (!out->whitening)
        return leati_fail_memory(err, (size_t)(values * values) * sizeof(float), "whitening");
    memcpy(out->whitening, found.data, (size_t)(values * values) * sizeof *out->whitening);
    return LEAT_OK;
}

static leat_status read_file(leati_statistics *out, const char *path, const leati_image_fitting *f,
                             const leati_text *key, const leati_text *pictures, leat_error *err) {
    leat_npz *file = NULL;
    LEATI_TRY(leati_prefix(leat_npz_open(&file, path, err), err, "statistics"));
    leat_status status = read_arrays(out, file, path, f, key, pictures, err);
    leat_npz_close(&file);
    return status;
}

/* ---- Both ---- */

static leat_status refuse(const leati_image_fitting *f, const char *path, leat_error *err) {
    if (path)
        return leati_fail(
            err, LEAT_EINVAL,
            "there are no statistics '%s': `leat fit --out RUN` writes them to RUN/statistics.npz", path);
    return leati_fail(
        err, LEAT_EINVAL,
        "the steps of '%s' need statistics of the training data: add statistics=RUN/statistics.npz, "
        "which `leat fit --out RUN` writes",
        f->path);
}

static leat_status get_statistics(leati_statistics *out, const leati_image_fitting *f, const char *path,
                                  leati_text *key, leati_text *pictures, leat_error *err) {
    if (path && access(path, F_OK) == 0) return read_file(out, path, f, key, pictures, err);
    if (f->options->read_statistics) return refuse(f, path, err);
    if (fitted_count(f) == 0)
        return leati_fail(
            err, LEAT_EINVAL,
            "no picture of '%s' is for training, so that its statistics must come from other data: add "
            "statistics=FILE",
            f->path);
    pass *p = leati_calloc(1, sizeof *p);
    if (!p) return leati_fail_memory(err, sizeof *p, "the statistics of pictures");
    leat_status status = compute(out, f, p, err);
    leati_free(p);
    if (status == LEAT_OK && path) status = write_file(path, out, f->augment, key, pictures, err);
    return status;
}

leat_status leati_images_fit(const leati_image_fitting *f, leat_error *err) {
    const char *path = f->choices->statistics ? f->choices->statistics : f->options->statistics;
    leati_statistics found = {{0}, {0}, NULL};
    leati_text key = {0}, pictures = {0};
    if (!leati_statistics_missing(f->augment)) return LEAT_OK;
    leati_statistics_key(f->augment, &key);
    describe_pictures(f, &pictures);
    leat_status status =
        key.failed || pictures.failed ? leati_fail_memory(err, 0, "the name of statistics") : LEAT_OK;
    if (status == LEAT_OK) status = get_statistics(&found, f, path, &key, &pictures, err);
    leati_text_fini(&key);
    leati_text_fini(&pictures);
    if (status == LEAT_OK) leati_statistics_set(f->augment, &found);
    leati_free(found.whitening);
    return status;
}
