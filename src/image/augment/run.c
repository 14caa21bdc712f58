/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the steps of an augmentation on one picture.  Neighbouring geometric steps are composed, so that the picture is
 * sampled once for all of them.  Room: image. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "image/augment/augment.h"
#include "image/augment/run.h"
#include "image/augment/statistics.h"
#include "image/picture.h"

/* The numbers of a sample come from streams of their own, apart from those of a batch: "augment" in ASCII. */
static const uint64_t AUGMENT_STREAM = 0x6175676d656e74;

double leati_draw_between(leat_rng *rng, double low, double high) {
    return low + (high - low) * leat_rng_uniform(rng);
}

/* ---- Creating ---- */

/* Reads the steps that are settings of ImageDataGenerator, for all of its steps wherever they stand. */
static void read_settings(leat_augment *augment) {
    static const leati_fill fills[] = {LEATI_FILL_NEAREST, LEATI_FILL_CONSTANT, LEATI_FILL_REFLECT,
                                       LEATI_FILL_WRAP};
    augment->settings.sampling = (leati_sampling){.fill = LEATI_FILL_NEAREST, .order = 1, .scipy = true};
    augment->settings.zca_epsilon = 1e-6;
    for (int i = 0; i < augment->step_count; ++i) {
        const leati_step *step = &augment->steps[i];
        leati_sampling *sampling = &augment->settings.sampling;
        if (strcmp(step->type->name, "fill_mode") == 0) sampling->fill = fills[step->arguments[0].word];
        if (strcmp(step->type->name, "cval") == 0) sampling->value = (float)step->arguments[0].number[0];
        if (strcmp(step->type->name, "interpolation_order") == 0)
            sampling->order = step->arguments[0].number[0] != 0;
        if (strcmp(step->type->name, "zca_epsilon") == 0)
            augment->settings.zca_epsilon = step->arguments[0].number[0];
    }
}

static size_t values(const leati_extent *extent) {
    return (size_t)(extent->height * extent->width * extent->channels);
}

/* Checks the steps in their order, each with the size that the steps before it leave. */
static leat_status check_steps(leat_augment *augment, leat_error *err) {
    leati_extent extent = augment->before;
    augment->most_values = values(&extent);
    for (int i = 0; i < augment->step_count; ++i) {
        leati_step *step = &augment->steps[i];
        step->before = step->after = extent;
        step->sampling = augment->settings.sampling;
        if (step->type->check) LEATI_TRY(step->type->check(step, err));
        extent = step->after;
        if (values(&extent) > augment->most_values) augment->most_values = values(&extent);
        augment->makes_floats = augment->makes_floats || step->type->makes_floats;
    }
    augment->after = extent;
    return LEAT_OK;
}

leat_status leat_augment_create(leat_augment **out, const char *steps, int64_t height, int64_t width,
                                int64_t channels, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(steps, err);
    if (height < 1 || width < 1 || height > 65535 || width > 65535)
        return leati_fail(err, LEAT_ESHAPE,
                          "expected a picture of 1 x 1 to 65535 x 65535 pixels, received %lld x %lld",
                          (long long)height, (long long)width);
    if (channels != 1 && channels != 3 && channels != 4)
        return leati_fail(err, LEAT_ESHAPE, "expected 1, 3 or 4 channels, received %lld",
                          (long long)channels);
    leat_augment *augment = leati_calloc(1, sizeof *augment);
    if (!augment) return leati_fail_memory(err, sizeof *augment, "an augmentation");
    augment->before = (leati_extent){height, width, channels};
    leat_status status = leati_augment_parse(augment, steps, err);
    if (status == LEAT_OK) {
        read_settings(augment);
        status = check_steps(augment, err);
    }
    if (status == LEAT_OK) status = leati_statistics_check(augment, err);
    if (status != LEAT_OK) leat_augment_destroy(&augment);
    *out = augment;
    return leati_prefix(status, err, "augment");
}

void leat_augment_destroy(leat_augment **augment) {
    if (!augment) return;
    for (int i = 0; *augment && i < (*augment)->step_count; ++i)
        leat_augment_destroy(&(*augment)->steps[i].inner);
    if (*augment) leati_free((*augment)->whitening);
    leati_free(*augment);
    *augment = NULL;
}

void leat_augment_output(const leat_augment *augment, int64_t *height, int64_t *width, bool *is_float) {
    if (height) *height = augment ? augment->after.height : 0;
    if (width) *width = augment ? augment->after.width : 0;
    if (is_float) *is_float = augment && augment->makes_floats;
}

/* ---- Drawing ---- */

typedef struct drawing {
    double number[LEATI_AUGMENT_MAX_STEPS][LEATI_AUGMENT_MAX_DRAWS];
    bool left_out[LEATI_AUGMENT_MAX_STEPS];
} drawing;

/* Draws the numbers of all steps.  Step k has the blocks from k * 2^32 on of the sample's stream, so that the numbers
 * of a step do not depend on how many the steps before it draw. */
static void draw(drawing *out, const leat_augment *augment, const leat_rng *rng, int64_t sample) {
    memset(out, 0, sizeof *out);
    for (int i = 0; i < augment->step_count; ++i) {
        const leati_step *step = &augment->steps[i];
        leat_rng stream = leat_rng_for(rng->key, AUGMENT_STREAM, (uint64_t)sample);
        stream.counter[0] = (uint64_t)i << 32;
        if (step->type->draw) step->type->draw(step, &stream, out->number[i]);
    }
}

/* Sets the numbers for a sample that is not augmented. */
static void draw_nothing(drawing *out, const leat_augment *augment) {
    memset(out, 0, sizeof *out);
    for (int i = 0; i < augment->step_count; ++i) {
        const leati_step *step = &augment->steps[i];
        if (step->type->rest) step->type->rest(step, out->number[i]);
        out->left_out[i] = step->type->draw && !step->type->rest;
    }
}

/* ---- Running ---- */

void leati_work_to_floats(leati_work *work) {
    const int64_t count = (int64_t)values(&work->extent);
    if (!work->bytes) return;
    for (int64_t i = 0; i < count; ++i) work->pixels[i] = (float)work->bytes[i];
    work->bytes = NULL;
}

void leati_work_swap(leati_work *work) {
    float *result = work->spare;
    work->spare = work->pixels;
    work->pixels = result;
    work->bytes = NULL;
}

leati_sample_job leati_work_job(const leati_work *work, const leati_sampling *sampling,
                                const leati_extent *after) {
    leati_sample_job job = {.bytes = work->bytes,
                            .floats = work->bytes ? NULL : work->pixels,
                            .height = work->extent.height,
                            .width = work->extent.width,
                            .channels = work->extent.channels,
                            .dst = work->spare,
                            .dst_height = after->height,
                            .dst_width = after->width,
                            .sampling = *sampling};
    if (work->is_mask) job.sampling.order = 0;
    return job;
}

static void sample(leati_work *work, const leati_affine *affine, const leati_sampling *sampling,
                   const leati_extent *after) {
    leati_sample_job job = leati_work_job(work, sampling, after);
    job.affine = *affine;
    leati_sample_choose()(&job);
    const int64_t channels = work->extent.channels;
    work->extent = *after;
    work->extent.channels = channels;
    leati_work_swap(work);
}

static bool same_sampling(const leati_sampling *a, const leati_sampling *b) {
    return a->fill == b->fill && a->order == b->order && a->value == b->value && a->scipy == b->scipy;
}

/* Returns true if a step can be sampled together with those before it, whose sampling is `sampling`; `fixed` is false
 * if these steps are flips alone, which agree with any sampling. */
static bool composes(const leati_step *step, const leati_sampling *sampling, bool fixed) {
    return step->type->matrix &&
           (step->type->any_sampling || !fixed || same_sampling(sampling, &step->sampling));
}

static bool is_identity(const leati_affine *a) {
    return a->x[0] == 1 && a->x[1] == 0 && a->x[2] == 0 && a->y[0] == 0 && a->y[1] == 1 && a->y[2] == 0;
}

/* Samples the picture once for the geometric steps from number `first` on; returns the number of the step after
 * them. */
static int run_geometry(leati_work *work, const leat_augment *augment, const drawing *drawn, int first) {
    leati_affine all = {{1, 0, 0}, {0, 1, 0}};
    leati_sampling sampling = augment->steps[first].sampling;
    bool fixed = false;
    int i = first;
    for (; i < augment->step_count && composes(&augment->steps[i], &sampling, fixed); ++i) {
        const leati_step *step = &augment->steps[i];
        leati_affine affine;
        if (drawn->left_out[i]) continue;
        step->type->matrix(step, drawn->number[i], &affine);
        all = leati_affine_compose(&all, &affine);
        if (!step->type->any_sampling && !fixed) {
            sampling = step->sampling;
            fixed = true;
        }
        if (step->after.height != step->before.height || step->after.width != step->before.width) {
            ++i; /* positions beyond the new border must not be read from the larger picture */
            break;
        }
    }
    if (!is_identity(&all) || augment->steps[first].before.height != augment->steps[i - 1].after.height ||
        augment->steps[first].before.width != augment->steps[i - 1].after.width)
        sample(work, &all, &sampling, &augment->steps[i - 1].after);
    return i;
}

leat_status leati_step_run(const leati_step *step, const double *drawn, leati_work *work, leat_error *err) {
    leati_affine affine;
    if (step->type->matrix) {
        step->type->matrix(step, drawn, &affine);
        if (!is_identity(&affine)) sample(work, &affine, &step->sampling, &step->after);
        return LEAT_OK;
    }
    if (work->is_mask && !step->type->on_masks) return LEAT_OK;
    return step->type->apply(step, drawn, work, err);
}

/* Runs the steps before number `end`. */
static leat_status run(leati_work *work, const leat_augment *augment, const drawing *drawn, int end,
                       leat_error *err) {
    for (int i = 0; i < end;) {
        const leati_step *step = &augment->steps[i];
        if (step->type->matrix) {
            i = run_geometry(work, augment, drawn, i);
            continue;
        }
        if (step->type->apply && !drawn->left_out[i] && (!work->is_mask || step->type->on_masks))
            LEATI_TRY(leati_prefix(step->type->apply(step, drawn->number[i], work, err), err, "%s",
                                   step->type->name));
        ++i;
    }
    return LEAT_OK;
}

/* ---- Results ---- */

static void write_bytes(const leati_work *work, unsigned char *dst) {
    const int64_t count = (int64_t)values(&work->extent);
    if (work->bytes) {
        memcpy(dst, work->bytes, (size_t)count);
        return;
    }
    leati_sample_round(dst, work->pixels, count);
}

static void write_floats(const leati_work *work, double scale, float *dst) {
    const int64_t count = (int64_t)values(&work->extent);
    for (int64_t i = 0; i < count; ++i)
        dst[i] = (float)((work->bytes ? (double)work->bytes[i] : (double)work->pixels[i]) * scale);
}

leat_status leati_augment_run(const leat_augment *augment, const leat_rng *rng, int64_t number,
                              const leati_augment_picture *picture, leat_error *err) {
    drawing drawn;
    const int end = picture->for_statistics ? augment->first_statistic : augment->step_count;
    if (!picture->for_statistics && !picture->is_mask && leati_statistics_missing(augment))
        return leati_fail(err, LEAT_EINVAL,
                          "%s has no numbers: give them, or compute them of the training data",
                          augment->steps[augment->first_statistic].type->name);
    size_t pixels = augment->most_values / (size_t)augment->before.channels * (size_t)picture->channels;
    float *memory = leati_realloc(NULL, 2 * pixels, sizeof *memory);
    if (!memory) return leati_fail_memory(err, 2 * pixels * sizeof *memory, "the augmentation of a picture");
    leati_work work = {.extent = augment->before,
                       .bytes = picture->src,
                       .pixels = memory,
                       .spare = memory + pixels,
                       .is_mask = picture->is_mask,
                       .augment = augment};
    work.extent.channels = picture->channels;
    if (picture->numbers) {
        memset(&drawn, 0, sizeof drawn);
        memcpy(drawn.number, picture->numbers, (size_t)augment->step_count * sizeof drawn.number[0]);
    } else if (picture->is_still)
        draw_nothing(&drawn, augment);
    else
        draw(&drawn, augment, rng, number);
    leat_status status = run(&work, augment, &drawn, end, err);
    if (status == LEAT_OK && picture->floats) write_floats(&work, picture->scale, picture->floats);
    if (status == LEAT_OK && picture->bytes) write_bytes(&work, picture->bytes);
    leati_free(memory);
    return status;
}

/* Runs the steps on a copy of the caller's picture that has the slack which kernels read. */
static leat_status apply(const leat_augment *augment, const leat_rng *rng, int64_t number,
                         leati_augment_picture *picture, leat_error *err) {
    const size_t count = (size_t)(augment->before.height * augment->before.width) * (size_t)picture->channels;
    unsigned char *copy = leati_calloc(count + LEATI_PICTURE_SLACK, 1);
    if (!copy) return leati_fail_memory(err, count, "the augmentation of a picture");
    memcpy(copy, picture->src, count);
    picture->src = copy;
    leat_status status = leati_augment_run(augment, rng, number, picture, err);
    leati_free(copy);
    return status;
}

leat_status leat_augment_apply(const leat_augment *augment, const leat_rng *rng, int64_t sample_number,
                               const unsigned char *src, void *dst, leat_error *err) {
    LEATI_GIVEN(augment, err);
    LEATI_GIVEN(rng, err);
    LEATI_GIVEN(src, err);
    LEATI_GIVEN(dst, err);
    leati_augment_picture picture = {.src = src, .channels = augment->before.channels, .scale = 1};
    if (augment->makes_floats)
        picture.floats = dst;
    else
        picture.bytes = dst;
    return apply(augment, rng, sample_number, &picture, err);
}

leat_status leat_augment_apply_floats(const leat_augment *augment, const leat_rng *rng, int64_t sample_number,
                                      const unsigned char *src, double scale, float *dst, leat_error *err) {
    LEATI_GIVEN(augment, err);
    LEATI_GIVEN(rng, err);
    LEATI_GIVEN(src, err);
    LEATI_GIVEN(dst, err);
    leati_augment_picture picture = {.src = src,
                                     .channels = augment->before.channels,
                                     .floats = dst,
                                     .scale = scale};
    return apply(augment, rng, sample_number, &picture, err);
}

leat_status leat_augment_apply_mask(const leat_augment *augment, const leat_rng *rng, int64_t sample_number,
                                    const unsigned char *src, unsigned char *dst, leat_error *err) {
    LEATI_GIVEN(augment, err);
    LEATI_GIVEN(rng, err);
    LEATI_GIVEN(src, err);
    LEATI_GIVEN(dst, err);
    leati_augment_picture picture = {.src = src, .channels = 1, .bytes = dst, .is_mask = true};
    return apply(augment, rng, sample_number, &picture, err);
}

/* ---- Explaining ---- */

/* Adds `"name": number` for each drawn number of a step. */
static void add_draws(leati_text *text, const leati_step *step, const double *numbers) {
    int index = 0;
    bool first = true;
    for (const char *p = step->type->draws; *p; ++index) {
        const size_t length = strcspn(p, " ");
        char number[40];
        snprintf(number, sizeof number, "%.17g", numbers[index]);
        leati_decimal_point(number);
        if (*p != '-') { /* a number that is not used */
            leati_text_add(text, "%s\"%.*s\": %s", first ? "" : ", ", (int)length, p, number);
            first = false;
        }
        p += length + (p[length] == ' ');
    }
}

leat_status leat_augment_explain(const leat_augment *augment, const leat_rng *rng, int64_t sample_number,
                                 char **out, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(augment, err);
    LEATI_GIVEN(rng, err);
    drawing drawn;
    leati_text text = {0};
    draw(&drawn, augment, rng, sample_number);
    leati_text_add(&text, "[");
    for (int i = 0; i < augment->step_count; ++i) {
        leati_text_add(&text, "%s{\"step\": \"%s\"%s", i ? ", " : "", augment->steps[i].type->name,
                       *augment->steps[i].type->draws ? ", " : "");
        add_draws(&text, &augment->steps[i], drawn.number[i]);
        leati_text_add(&text, "}");
    }
    leati_text_add(&text, "]");
    if (text.failed) {
        leati_text_fini(&text);
        return leati_fail_memory(err, text.capacity, "the numbers of an augmentation");
    }
    *out = text.data;
    return LEAT_OK;
}
