/* SPDX-License-Identifier: Apache-2.0 */
/* The source of pictures: decodes and resizes each picture in the worker that makes its batch.  Room: data. */
#include "data/images.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/images_statistics.h"
#include "data/kinds.h"
#include "data/numbered.h"
#include "image/augment/run.h"
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
} images;

/* ---- One sample ---- */

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

static leat_status decode_file(const images *s, leati_picture *out, const leati_image_file *file,
                               leat_error *err) {
    return decode_as(s, out, &s->list, file, s->choices.color, err);
}

void leati_image_write_scaled(const leati_picture *picture, const float table[256], float *dst) {
    const int64_t count = picture->width * picture->height * picture->channels;
    for (int64_t i = 0; i < count; ++i) dst[i] = table[picture->pixels[i]];
}

/* The place of a sample in a batch, and its random numbers. */
typedef struct place {
    void *dst;
    const leat_rng *rng; /* NULL: the sample is not augmented */
    int64_t number;      /* of the sample in the source */
} place;

/* Augments a picture of the size that the options give. */
static leat_status write_augmented(const images *s, const leati_picture *picture, const place *at,
                                   leat_error *err) {
    leati_augment_picture job = {.src = picture->pixels, .channels = picture->channels, .scale = 1};
    job.is_still = !at->rng || s->choices.is_validation;
    if (s->numbered.spec.tensors[0].dtype == LEAT_F32)
        job.floats = at->dst;
    else
        job.bytes = at->dst;
    if (s->choices.denominator != 0) job.scale = s->choices.numerator / s->choices.denominator;
    return leati_augment_run(s->augment, at->rng, at->number, &job, err);
}

/* Writes a picture into its place in the batch. */
static leat_status write_picture(const images *s, const leati_image_file *file, const place *at,
                                 leat_error *err) {
    const bool direct = !s->table && !s->augment;
    void *dst = at->dst;
    leati_picture in, out = {s->choices.width, s->choices.height, (int)s->choices.color, dst};
    LEATI_TRY(decode_file(s, &in, file, err));
    if (s->sizes) {
        s->sizes[2 * at->number] = in.height;
        s->sizes[2 * at->number + 1] = in.width;
    }
    leat_status status =
        direct ? LEAT_OK : leati_picture_allocate(&out, out.width, out.height, out.channels, err);
    if (status == LEAT_OK)
        status = leati_prefix(leati_picture_fit(&out, &in, s->choices.filter, s->choices.fit, err), err,
                              "picture '%s'", file->path);
    if (!direct && out.pixels != dst) {
        if (status == LEAT_OK && s->augment)
            status = write_augmented(s, &out, at, err);
        else if (status == LEAT_OK)
            leati_image_write_scaled(&out, s->table, dst);
        leati_picture_fini(&out);
    }
    leati_picture_fini(&in);
    return status;
}

/* Writes the mask of a picture, moved as the picture is. */
static leat_status write_mask(const images *s, const place *at, leat_error *err) {
    const leati_image_file *file = &s->masks.files[at->number];
    leati_picture in, out = {0};
    LEATI_TRY(decode_as(s, &in, &s->masks, file, LEATI_COLOR_GRAYSCALE, err));
    leat_status status = leati_picture_create(&out, s->choices.width, s->choices.height, 1, err);
    if (status == LEAT_OK)
        status = leati_prefix(leati_picture_fit(&out, &in, LEATI_FILTER_NEAREST, s->choices.fit, err), err,
                              "mask '%s'", file->path);
    leati_picture_fini(&in);
    const leati_augment_picture job = {.src = out.pixels,
                                       .channels = 1,
                                       .is_mask = true,
                                       .is_still = !at->rng || s->choices.is_validation,
                                       .bytes = at->dst,
                                       .scale = 1};
    if (status == LEAT_OK && s->augment)
        status = leati_augment_run(s->augment, at->rng, at->number, &job, err);
    else if (status == LEAT_OK)
        memcpy(at->dst, out.pixels, (size_t)(out.width * out.height));
    leati_picture_fini(&out);
    return status;
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

/* Returns the bytes of one sample of a tensor. */
static size_t sample_bytes(const images *s, int tensor) {
    const leat_tensor_spec *spec = &s->numbered.spec.tensors[tensor];
    return leati_count_bytes(leati_shape_count(spec->rank, spec->shape), leat_dtype_bytes(spec->dtype));
}

/* Writes the tensors of a sample to their place in the batch. */
static leat_status write_sample(const images *s, int64_t number, int64_t place_in_batch, const leat_rng *rng,
                                leat_batch *batch, leat_error *err) {
    const leati_image_file *file = &s->list.files[number];
    place at = {.rng = rng, .number = number};
    at.dst = (unsigned char *)batch->tensors[0].data + (size_t)place_in_batch * sample_bytes(s, 0);
    LEATI_TRY(write_picture(s, file, &at, err));
    const void *picture = at.dst;
    for (int k = 1; k < s->numbered.spec.tensor_count; ++k) {
        at.dst = (unsigned char *)batch->tensors[k].data + (size_t)place_in_batch * sample_bytes(s, k);
        if (s->masks.count > 0) return write_mask(s, &at, err);
        if (s->choices.labels == LEATI_LABELS_INPUT)
            memcpy(at.dst, picture, sample_bytes(s, 0));
        else
            write_label(s, file, k - 1, at.dst);
    }
    return LEAT_OK;
}

static leat_status make_batch(leati_numbered *source, const int64_t *numbers, int64_t count, leat_rng *rng,
                              leat_batch *batch, leat_error *err) {
    images *s = (images *)source;
    int64_t made = 0;
    for (int64_t i = 0; i < count; ++i) {
        leat_error problem = {0};
        const leat_status status = write_sample(s, numbers[i], made, rng, batch, &problem);
        if (status == LEAT_OK)
            ++made;
        else
            LEATI_TRY(leati_bad_sample(&s->bad, status, &problem, err));
    }
    if (made == 0)
        return leati_fail(err, LEAT_ESKIPPED, "all %lld pictures of the batch are bad", (long long)count);
    batch->size = made;
    for (int k = 0; k < s->numbered.spec.tensor_count; ++k) batch->tensors[k].shape[0] = made;
    if (s->choices.mix.mode == LEATI_MIX_NONE || !rng || s->choices.is_validation) return LEAT_OK;
    return leati_mix_batch(&s->choices.mix, rng, batch, err);
}

/* ---- The sequence ---- */

static void destroy(leati_numbered *source) {
    images *s = (images *)source;
    leati_image_list_fini(&s->masks);
    leati_image_list_fini(&s->list);
    leat_augment_destroy(&s->augment);
    leati_free(s->table);
    leati_free(s);
}

/* ---- Opening ---- */

/* Makes a picture for statistics. */
static leat_status load_picture(const void *user, leati_picture *out, int64_t number, leat_error *err) {
    const images *s = user;
    const leati_image_file *file = &s->list.files[number];
    leati_picture in;
    *out = (leati_picture){0};
    LEATI_TRY(decode_file(s, &in, file, err));
    leat_status status =
        leati_picture_create(out, s->choices.width, s->choices.height, (int)s->choices.color, err);
    if (status == LEAT_OK)
        status = leati_prefix(leati_picture_fit(out, &in, s->choices.filter, s->choices.fit, err), err,
                              "picture '%s'", file->path);
    leati_picture_fini(&in);
    if (status != LEAT_OK) leati_picture_fini(out);
    return status;
}

/* Gives the steps the statistics that they need, which are of the training data for both subsets. */
static leat_status fit_steps(const images *s, const char *path, const leat_source_options *options,
                             leat_error *err) {
    images training = *s;
    training.choices.is_validation = false;
    if (s->choices.is_validation)
        LEATI_TRY(leati_image_list_read(&training.list, path, &training.choices, err));
    const leati_image_fitting fitting = {.augment = s->augment,
                                         .choices = &training.choices,
                                         .options = options,
                                         .list = &training.list,
                                         .path = path,
                                         .load = load_picture,
                                         .user = &training};
    leat_status status = leati_images_fit(&fitting, err);
    if (s->choices.is_validation) leati_image_list_fini(&training.list);
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

leat_status leat_source_note_sizes(const leat_sequence *sequence, int64_t *sizes, leat_error *err) {
    LEATI_GIVEN(sequence, err);
    if (!leati_is_images(sequence))
        return leati_fail(err, LEAT_ENOTSUP, "expected a source of the kind images, received another one");
    LEATI_TRY(leati_batch_spec_check(&sequence->spec, err));
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
    leat_status status = open_images(s, spec->paths[0], settings, options, err);
    if (status != LEAT_OK) {
        destroy(&s->numbered);
        return status;
    }
    *out = leati_numbered_sequence(&s->numbered);
    return LEAT_OK;
}
