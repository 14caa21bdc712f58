/* SPDX-License-Identifier: Apache-2.0 */
/* The source of pictures: decodes and resizes each picture in the worker that makes its batch.  Room: data. */
#include "data/images.h"

#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/images_cache.h"
#include "data/images_statistics.h"
#include "data/kinds.h"
#include "data/numbered/numbered.h"
#include "image/augment/run.h"
#include "image/augment/statistics.h"
#include "leat/source.h"
#include "tensor/sequence.h"

typedef struct images {
    leati_numbered numbered;     /* first */
    leati_image_choices choices; /* its texts are not used after the source is opened */
    leati_image_list list;
    leat_augment *augment;  /* NULL: samples are not augmented */
    float *table;           /* the scaled values of all 256 bytes; NULL: pictures are uint8 */
    int64_t *sizes;         /* of leat_source_note_sizes; borrowed */
    leati_image_list masks; /* of each picture; empty: the targets are labels, or there are none */
    leati_bad_samples bad;
    leati_cache *cache; /* of the records; NULL: they are made in each pass */
    char *path,
        *statistics; /* for statistics that are still missing: of the pictures, and the file or NULL */
} images;

/* ---- Decoding ---- */

leati_picture_options leati_image_decoding(const leati_image_choices *c) {
    return (leati_picture_options){.color = c->color,
                                   .max_pixels = c->max_pixels,
                                   .scaled_width = c->scaled_decoding ? c->width : 0,
                                   .scaled_height = c->scaled_decoding ? c->height : 0};
}

static leat_status decode_as(const images *s, leati_picture *out, const leati_image_list *list,
                             const leati_image_file *file, leati_picture_color color, leat_error *err) {
    leati_picture_options options = leati_image_decoding(&s->choices);
    options.color = color;
    unsigned char *bytes = NULL;
    size_t count = 0;
    leat_status status = leati_image_list_bytes(list, file, &bytes, &count, err);
    if (status == LEAT_OK) status = leati_picture_decode(out, bytes, count, &options, err);
    leati_free(bytes);
    return leati_prefix(status, err, "picture '%s'", file->path);
}

void leati_image_write_scaled(const leati_picture *picture, const float table[256], float *dst) {
    const int64_t count = picture->width * picture->height * picture->channels;
    for (int64_t i = 0; i < count; ++i) dst[i] = table[picture->pixels[i]];
}

/* Decodes and resizes a picture or its mask. */
static leat_status make(const images *s, int64_t number, bool is_mask, unsigned char *dst, leat_error *err) {
    const leati_image_list *list = is_mask ? &s->masks : &s->list;
    const leati_picture_color color = is_mask ? LEATI_COLOR_GRAYSCALE : s->choices.color;
    const leati_filter filter = is_mask ? LEATI_FILTER_NEAREST : s->choices.filter;
    leati_picture in, out = {s->choices.width, s->choices.height, (int)color, dst};
    LEATI_TRY(decode_as(s, &in, list, &list->files[number], color, err));
    if (s->sizes && !is_mask) {
        s->sizes[2 * number] = in.height;
        s->sizes[2 * number + 1] = in.width;
    }
    const leat_status status =
        leati_prefix(leati_picture_fit(&out, &in, filter, s->choices.fit, err), err, "%s '%s'",
                     is_mask ? "mask" : "picture", list->files[number].path);
    leati_picture_fini(&in);
    return status;
}

/* ---- Records: a picture and its mask before their augmentation, each with LEATI_PICTURE_SLACK bytes ---- */

static size_t picture_bytes(const images *s) {
    return (size_t)(s->choices.width * s->choices.height) * (size_t)s->choices.color;
}

/* Returns where the mask begins in a record. */
static size_t mask_offset(const images *s) {
    return picture_bytes(s) + LEATI_PICTURE_SLACK;
}

static size_t record_bytes(const images *s) {
    const size_t mask = (size_t)(s->choices.width * s->choices.height) + LEATI_PICTURE_SLACK;
    return mask_offset(s) + (s->masks.count > 0 ? mask : 0);
}

/* Finds the record of a sample in the cache, or makes it in `memory`. */
static leat_status get_record(const images *s, int64_t number, unsigned char *memory,
                              const unsigned char **out, leat_error *err) {
    leati_cache *cache = s->sizes ? NULL : s->cache; /* the cache does not know the sizes in the files */
    *out = cache ? leati_cache_find(cache, number) : NULL;
    if (*out) return leati_cache_check(cache, *out, err);
    *out = memory;
    LEATI_TRY(make(s, number, false, memory, err));
    if (s->masks.count > 0) LEATI_TRY(make(s, number, true, memory + mask_offset(s), err));
    if (cache) leati_cache_keep(cache, number, memory);
    return LEAT_OK;
}

static leat_status allocate_record(const images *s, unsigned char **out, leat_error *err) {
    *out = leati_calloc(record_bytes(s), 1);
    return *out ? LEAT_OK : leati_fail_memory(err, record_bytes(s), "a picture");
}

/* ---- One sample ---- */

/* The place of a sample in a batch, and its random numbers. */
typedef struct place {
    void *dst;
    const leat_rng *rng; /* NULL: the sample is not augmented */
    int64_t number;      /* of the sample in the source */
} place;

static bool is_still(const images *s, const place *at) {
    return !at->rng || s->choices.is_validation;
}

/* Writes a picture, augmented and scaled. */
static leat_status write_picture(const images *s, const unsigned char *pixels, const place *at,
                                 leat_error *err) {
    const leati_image_choices *c = &s->choices;
    if (!s->augment && !s->table) {
        memcpy(at->dst, pixels, picture_bytes(s));
        return LEAT_OK;
    }
    if (!s->augment) {
        const leati_picture picture = {c->width, c->height, (int)c->color,
                                       (unsigned char *)(uintptr_t)pixels};
        leati_image_write_scaled(&picture, s->table, at->dst);
        return LEAT_OK;
    }
    leati_augment_picture job = {.src = pixels, .channels = (int64_t)c->color, .scale = 1};
    job.is_still = is_still(s, at);
    if (s->numbered.spec.tensors[0].dtype == LEAT_F32)
        job.floats = at->dst;
    else
        job.bytes = at->dst;
    if (c->denominator != 0) job.scale = c->numerator / c->denominator;
    return leati_augment_run(s->augment, at->rng, at->number, &job, err);
}

/* Writes the mask of a picture, moved as the picture is. */
static leat_status write_mask(const images *s, const unsigned char *pixels, const place *at,
                              leat_error *err) {
    const leati_augment_picture job = {.src = pixels,
                                       .channels = 1,
                                       .is_mask = true,
                                       .is_still = is_still(s, at),
                                       .bytes = at->dst,
                                       .scale = 1};
    if (s->augment) return leati_augment_run(s->augment, at->rng, at->number, &job, err);
    memcpy(at->dst, pixels, (size_t)(s->choices.width * s->choices.height));
    return LEAT_OK;
}

/* Writes target number `target` of a picture, which is not another picture. */
static void write_label(const images *s, const leati_image_file *file, int target, void *dst) {
    switch (s->choices.labels) {
    case LEATI_LABELS_INT: *(int32_t *)dst = file->label; break;
    case LEATI_LABELS_BINARY: *(float *)dst = (float)file->label; break;
    case LEATI_LABELS_ONEHOT:
        memset(dst, 0, (size_t)s->list.class_count * sizeof(float));
        ((float *)dst)[file->label] = 1;
        break;
    case LEATI_LABELS_RAW: memcpy(dst, file->raw, (size_t)s->list.raw_columns * sizeof(float)); break;
    case LEATI_LABELS_MULTIHOT:
        memset(dst, 0, (size_t)s->list.class_count * sizeof(float));
        for (int i = 0; i < file->label_count; ++i)
            ((float *)dst)[s->list.numbers[file->first_number + i]] = 1;
        break;
    case LEATI_LABELS_MULTI: *(float *)dst = file->raw[target]; break;
    case LEATI_LABELS_NONE:
    case LEATI_LABELS_INPUT: break;
    }
}

/* Writes the targets of a sample, whose record is given; its picture is in the batch already. */
static leat_status write_targets(const images *s, const unsigned char *record, int64_t sample_place,
                                 const place *of_picture, leat_batch *batch, leat_error *err) {
    for (int k = 1; k < s->numbered.spec.tensor_count; ++k) {
        const size_t bytes = leati_sample_bytes(&s->numbered.spec.tensors[k]);
        place at = *of_picture;
        at.dst = (unsigned char *)batch->tensors[k].data + (size_t)sample_place * bytes;
        if (s->masks.count > 0) return write_mask(s, record + mask_offset(s), &at, err);
        if (s->choices.labels == LEATI_LABELS_INPUT)
            memcpy(at.dst, of_picture->dst, bytes);
        else
            write_label(s, &s->list.files[at.number], k - 1, at.dst);
    }
    return LEAT_OK;
}

/* Writes the tensors of a sample to their place in the batch.
 * @param memory  For a record; NULL: the picture needs no changes and is made in the batch. */
static leat_status write_sample(const images *s, const place *from, int64_t sample_place,
                                unsigned char *memory, leat_batch *batch, leat_error *err) {
    const unsigned char *record = NULL;
    const size_t bytes = leati_sample_bytes(&s->numbered.spec.tensors[0]);
    place at = *from;
    at.dst = (unsigned char *)batch->tensors[0].data + (size_t)sample_place * bytes;
    if (memory) {
        LEATI_TRY(get_record(s, at.number, memory, &record, err));
        LEATI_TRY(write_picture(s, record, &at, err));
    } else {
        LEATI_TRY(make(s, at.number, false, at.dst, err));
    }
    return write_targets(s, record, sample_place, &at, batch, err);
}

static leat_status make_samples(images *s, const int64_t *numbers, int64_t count, const leat_rng *rng,
                                leat_batch *batch, int64_t *made, leat_error *first, leat_error *err) {
    const bool direct = !s->augment && !s->table && !s->cache && s->masks.count == 0;
    unsigned char *memory = NULL;
    leat_status status = direct ? LEAT_OK : allocate_record(s, &memory, err);
    for (int64_t i = 0; i < count && status == LEAT_OK; ++i) {
        const place at = {.rng = rng, .number = numbers[i]};
        leat_error problem = {0};
        status = write_sample(s, &at, *made, memory, batch, &problem);
        if (status == LEAT_OK)
            ++*made;
        else
            status = leati_bad_sample(&s->bad, status, &problem, err);
        if (first->message[0] == '\0') *first = problem;
    }
    leati_free(memory);
    return status;
}

static leat_status make_batch(leati_numbered *source, const int64_t *numbers, int64_t count, leat_rng *rng,
                              leat_batch *batch, leat_error *err) {
    images *s = (images *)source;
    int64_t made = 0;
    leat_error first = {0};
    LEATI_TRY(make_samples(s, numbers, count, rng, batch, &made, &first, err));
    if (made == 0) return leati_bad_batch(&s->bad, count, &first, err);
    batch->size = made;
    for (int k = 0; k < s->numbered.spec.tensor_count; ++k) batch->tensors[k].shape[0] = made;
    if (s->choices.mix.mode == LEATI_MIX_NONE || !rng || s->choices.is_validation) return LEAT_OK;
    return leati_mix_batch(&s->choices.mix, rng, batch, err);
}

/* ---- The sequence ---- */

static void before_pass(leati_numbered *source) {
    images *s = (images *)source;
    if (s->cache) leati_cache_finish(s->cache);
}

static void destroy(leati_numbered *source) {
    images *s = (images *)source;
    if (s->cache) leati_cache_close(s->cache);
    leati_free(s->cache);
    leati_image_list_fini(&s->masks);
    leati_image_list_fini(&s->list);
    leat_augment_destroy(&s->augment);
    leati_free(s->table);
    leati_free(s->path);
    leati_free(s->statistics);
    leati_free(s);
}

/* A file of the cache is complete only if one process makes all records. */
static bool may_depend(const images *s) {
    return s->bad.skipped || s->choices.mix.mode != LEATI_MIX_NONE ||
           (s->cache && s->cache->building.fd >= 0);
}

/* ---- Opening ---- */

/* Makes a picture for statistics. */
static leat_status load_picture(const void *user, leati_picture *out, int64_t number, leat_error *err) {
    const images *s = user;
    const unsigned char *record = NULL;
    unsigned char *memory = NULL;
    LEATI_TRY(leati_picture_create(out, s->choices.width, s->choices.height, (int)s->choices.color, err));
    leat_status status =
        s->cache ? allocate_record(s, &memory, err) : make(s, number, false, out->pixels, err);
    if (status == LEAT_OK && s->cache) status = get_record(s, number, memory, &record, err);
    if (status == LEAT_OK && s->cache) memcpy(out->pixels, record, picture_bytes(s));
    leati_free(memory);
    if (status != LEAT_OK) leati_picture_fini(out);
    return status;
}

/* Gives the steps the statistics of a subset for training. */
static leat_status fit_to(const images *training, const char *path, const unsigned char *wanted,
                          const leat_source_options *options, leat_error *err) {
    const leati_image_fitting fitting = {.augment = training->augment,
                                         .choices = &training->choices,
                                         .options = options,
                                         .list = &training->list,
                                         .wanted = wanted,
                                         .path = path,
                                         .load = load_picture,
                                         .user = training};
    return leati_images_fit(&fitting, err);
}

/* Gives the steps of a subset for validation the statistics of the training data.  Those of other sources follow when
 * it is known which samples are for training. */
static leat_status fit_steps(images *s, const char *path, const leat_source_options *options,
                             leat_error *err) {
    if (!leati_statistics_missing(s->augment)) return LEAT_OK;
    if (!s->choices.is_validation) {
        s->path = leati_strdup(path);
        if (s->choices.statistics) s->statistics = leati_strdup(s->choices.statistics);
        return s->path && !s->choices.statistics == !s->statistics
                   ? LEAT_OK
                   : leati_fail_memory(err, strlen(path), "the path of pictures");
    }
    images training = *s;
    training.choices.is_validation = false;
    training.cache = NULL; /* it has other pictures */
    LEATI_TRY(leati_image_list_read(&training.list, path, &training.choices, err));
    const leat_status status = fit_to(&training, path, NULL, options, err);
    leati_image_list_fini(&training.list);
    return status;
}

static leat_status describe_batch(images *s, leat_error *err) {
    static const leat_dtype dtypes[] = {LEAT_I32, LEAT_F32, LEAT_F32, LEAT_F32,
                                        LEAT_F32, LEAT_F32, LEAT_F32, LEAT_F32};
    const leati_label_mode labels = s->choices.labels;
    int64_t picture[] = {s->choices.height, s->choices.width, (int64_t)s->choices.color};
    bool is_float = s->table != NULL, makes_floats = false;
    const int64_t label = labels == LEATI_LABELS_ONEHOT || labels == LEATI_LABELS_MULTIHOT
                              ? s->list.class_count
                          : labels == LEATI_LABELS_RAW ? s->list.raw_columns
                                                       : 1;
    if (s->augment) leat_augment_output(s->augment, &picture[0], &picture[1], &makes_floats);
    is_float = is_float || makes_floats;
    const leat_dtype dtype = is_float ? LEAT_F32 : LEAT_U8;
    leat_batch_spec *spec = &s->numbered.spec;
    LEATI_TRY(leat_batch_spec_add(spec, LEAT_PART_INPUT, NULL, dtype, 3, picture, err));
    const int64_t mask[] = {picture[0], picture[1], 1};
    if (s->masks.count > 0) return leat_batch_spec_add(spec, LEAT_PART_TARGET, NULL, LEAT_U8, 3, mask, err);
    if (labels == LEATI_LABELS_NONE) return LEAT_OK;
    if (labels == LEATI_LABELS_INPUT)
        return leat_batch_spec_add(spec, LEAT_PART_TARGET, NULL, dtype, 3, picture, err);
    if (labels != LEATI_LABELS_MULTI)
        return leat_batch_spec_add(spec, LEAT_PART_TARGET, NULL, dtypes[labels], 1, &label, err);
    for (int i = 0; i < s->list.raw_columns; ++i)
        LEATI_TRY(
            leat_batch_spec_add(spec, LEAT_PART_TARGET, s->choices.y_columns[i], LEAT_F32, 1, &label, err));
    return LEAT_OK;
}

static leat_status open_images(images *s, const char *path, const leati_settings *settings,
                               const leat_source_options *options, leat_error *err) {
    LEATI_TRY(leati_check_batch_size(options->batch_size, err));
    LEATI_TRY(leati_image_choices_read(&s->choices, settings, err));
    LEATI_TRY(leati_image_list_read(&s->list, path, &s->choices, err));
    if (s->choices.masks || s->choices.mask_column)
        LEATI_TRY(leati_image_masks_find(&s->masks, &s->list, path, &s->choices, err));
    s->numbered.spec.batch_size = options->batch_size;
    s->numbered.samples = s->list.count;
    s->bad = (leati_bad_samples){.skipped = s->choices.skip_bad, .what = "pictures"};
    if (s->choices.cache)
        LEATI_TRY(leati_images_cache_open(&s->cache, &s->choices, &s->list, &s->masks, record_bytes(s), err));
    LEATI_TRY(leati_scaled_bytes(&s->table, s->choices.numerator, s->choices.denominator, err));
    if (s->choices.augment) {
        LEATI_TRY(leat_augment_create(&s->augment, s->choices.augment, s->choices.height, s->choices.width,
                                      (int64_t)s->choices.color, err));
        LEATI_TRY(fit_steps(s, path, options, err));
    }
    return describe_batch(s, err);
}

bool leati_is_images(const leat_sequence *sequence) {
    return leati_numbered_of(sequence, make_batch) != NULL;
}

leat_status leati_images_fit_source(const leat_sequence *sequence, const unsigned char *wanted,
                                    const leat_source_options *options, leat_error *err) {
    images *s = leati_is_images(sequence) ? sequence->user : NULL;
    if (!s || !s->path) return LEAT_OK;
    s->choices.statistics = s->statistics;
    return fit_to(s, s->path, wanted, options, err);
}

const leati_image_list *leati_images_list(const leat_sequence *sequence) {
    return leati_is_images(sequence) ? &((const images *)sequence->user)->list : NULL;
}

leat_status leati_images_note_sizes(const leat_sequence *sequence, int64_t *sizes, leat_error *err) {
    images *s = sequence->user;
    if (s->choices.scaled_decoding)
        return leati_fail(err, LEAT_ENOTSUP, "with decode=scaled, the sizes of pictures are not known");
    s->sizes = sizes;
    return LEAT_OK;
}

leat_status leati_open_images(leat_sequence *out, const leati_spec *spec, const char *text,
                              const leati_settings *settings, const leat_source_options *options,
                              leat_error *err) {
    (void)text;
    images *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a source of pictures");
    s->numbered.make = make_batch;
    s->numbered.destroy = destroy;
    s->numbered.before_pass = before_pass;
    s->numbered.is_random = true;
    leat_status status = open_images(s, spec->paths[0], settings, options, err);
    if (status != LEAT_OK) {
        destroy(&s->numbered);
        return status;
    }
    s->numbered.depends = may_depend(s);
    *out = leati_numbered_sequence(&s->numbered);
    return LEAT_OK;
}
