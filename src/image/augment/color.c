/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of ImageDataGenerator that change the values of pixels.  Room: image. */
#include "image/augment/color.h"

#include <math.h>

static int64_t value_count(const leati_work *work) {
    return work->extent.height * work->extent.width * work->extent.channels;
}

static void find_range(const leati_work *work, float *least, float *most) {
    const int64_t count = value_count(work);
    *least = *most = work->pixels[0];
    for (int64_t i = 1; i < count; ++i) {
        *least = work->pixels[i] < *least ? work->pixels[i] : *least;
        *most = work->pixels[i] > *most ? work->pixels[i] : *most;
    }
}

static float clip(float value, float least, float most) {
    return value < least ? least : value > most ? most : value;
}

leat_status leati_color_channel_shift(const leati_step *step, const double *drawn, leati_work *work,
                                      leat_error *err) {
    const int64_t count = value_count(work);
    const float shift = (float)drawn[0];
    float least = 0, most = 0;
    (void)step;
    (void)err;
    leati_work_to_floats(work);
    find_range(work, &least, &most);
    for (int64_t i = 0; i < count; ++i) work->pixels[i] = clip(work->pixels[i] + shift, least, most);
    return LEAT_OK;
}

/* The generator makes a Pillow picture: the values are stretched so that the smallest becomes 0 and the largest 255,
 * and cut to integers.  ImageEnhance.Brightness cuts the products too, and keeps alpha. */
leat_status leati_color_enhance_brightness(const leati_step *step, const double *drawn, leati_work *work,
                                           leat_error *err) {
    const int64_t count = value_count(work), channels = work->extent.channels;
    const float factor = (float)drawn[0];
    float least = 0, most = 0;
    (void)step;
    (void)err;
    leati_work_to_floats(work);
    find_range(work, &least, &most);
    const float top = most - least;
    for (int64_t i = 0; i < count; ++i) {
        float value = work->pixels[i] - least;
        if (top != 0) value = value / top * 255;
        value = truncf(value);
        if (channels != 4 || i % 4 != 3) value = truncf(clip(value * factor, 0, 255));
        work->pixels[i] = value;
    }
    return LEAT_OK;
}

leat_status leati_color_multiply(const leati_step *step, const double *drawn, leati_work *work,
                                 leat_error *err) {
    const int64_t count = value_count(work), channels = work->extent.channels;
    const float factor = (float)drawn[0];
    (void)step;
    (void)err;
    leati_work_to_floats(work);
    if (channels != 4) {
        for (int64_t i = 0; i < count; ++i) work->pixels[i] = clip(work->pixels[i] * factor, 0, 255);
        return LEAT_OK;
    }
    for (int64_t i = 0; i < count; i += 4)
        for (int64_t c = 0; c < 3; ++c) work->pixels[i + c] = clip(work->pixels[i + c] * factor, 0, 255);
    return LEAT_OK;
}

/* ---- Standardizing ---- */

leat_status leati_color_rescale(const leati_step *step, const double *drawn, leati_work *work,
                                leat_error *err) {
    const int64_t count = value_count(work);
    const float factor = (float)step->arguments[0].number[0];
    (void)drawn;
    (void)err;
    leati_work_to_floats(work);
    for (int64_t i = 0; i < count; ++i) work->pixels[i] *= factor;
    return LEAT_OK;
}

static double mean_of(const leati_work *work) {
    const int64_t count = value_count(work);
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += work->pixels[i];
    return sum / (double)count;
}

static void subtract(leati_work *work, double mean) {
    const int64_t count = value_count(work);
    for (int64_t i = 0; i < count; ++i) work->pixels[i] -= (float)mean;
}

leat_status leati_color_samplewise_center(const leati_step *step, const double *drawn, leati_work *work,
                                          leat_error *err) {
    (void)drawn;
    (void)err;
    leati_work_to_floats(work);
    if (step->arguments[0].number[0] != 0) subtract(work, mean_of(work));
    return LEAT_OK;
}

/* Centres too, as the generator sets samplewise_center with samplewise_std_normalization. */
leat_status leati_color_samplewise_std(const leati_step *step, const double *drawn, leati_work *work,
                                       leat_error *err) {
    const int64_t count = value_count(work);
    double squares = 0;
    (void)drawn;
    (void)err;
    leati_work_to_floats(work);
    if (step->arguments[0].number[0] == 0) return LEAT_OK;
    subtract(work, mean_of(work));
    const double mean = mean_of(work);
    for (int64_t i = 0; i < count; ++i) {
        const double distance = work->pixels[i] - mean;
        squares += distance * distance;
    }
    const float divisor = (float)sqrt(squares / (double)count) + 1e-6f;
    for (int64_t i = 0; i < count; ++i) work->pixels[i] /= divisor;
    return LEAT_OK;
}

/* Subtracts the mean of each channel, or divides by the standard deviation; `leat feed check` computes both. */
static void change_channels(const leati_step *step, leati_work *work, bool divide) {
    const leati_argument *numbers = &step->arguments[0];
    const int64_t count = value_count(work), channels = work->extent.channels;
    leati_work_to_floats(work);
    for (int64_t c = 0; c < channels; ++c) {
        const float number = (float)numbers->number[numbers->count > 1 ? c : 0], divisor = number + 1e-6f;
        for (int64_t i = c; i < count; i += channels)
            work->pixels[i] = divide ? work->pixels[i] / divisor : work->pixels[i] - number;
    }
}

leat_status leati_color_featurewise_center(const leati_step *step, const double *drawn, leati_work *work,
                                           leat_error *err) {
    (void)drawn;
    (void)err;
    change_channels(step, work, false);
    return LEAT_OK;
}

leat_status leati_color_featurewise_std(const leati_step *step, const double *drawn, leati_work *work,
                                        leat_error *err) {
    (void)drawn;
    (void)err;
    change_channels(step, work, true);
    return LEAT_OK;
}

/* Multiplies the picture, as a row of values, by the symmetric matrix. */
leat_status leati_color_whiten(const leati_step *step, const double *drawn, leati_work *work,
                               leat_error *err) {
    const int64_t count = value_count(work);
    (void)step;
    (void)drawn;
    (void)err;
    leati_work_to_floats(work);
    for (int64_t j = 0; j < count; ++j) work->spare[j] = 0;
    for (int64_t i = 0; i < count; ++i) {
        const float value = work->pixels[i], *row = work->augment->whitening + i * count;
        for (int64_t j = 0; j < count; ++j) work->spare[j] += value * row[j];
    }
    leati_work_swap(work);
    return LEAT_OK;
}
