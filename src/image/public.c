/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions for pictures in memory (leat/picture.h).  Room: image. */
#include "leat/picture.h"

#include <string.h>

#include "base/error.h"
#include "base/growing.h"
#include "image/picture.h"

static const leat_picture_options presets = {.size = sizeof presets,
                                             .channels = 3,
                                             .max_pixels = LEATI_PICTURE_MAX_PIXELS};
static const leati_growing options_type = LEATI_GROWING(leat_picture_options, scaled_height, &presets);

void leat_picture_options_init(leat_picture_options *options, size_t size) {
    leati_growing_init(&options_type, options, size);
}

static leat_picture publish(const leati_picture *picture) {
    return (leat_picture){picture->width, picture->height, picture->channels, picture->pixels};
}

leat_status leat_picture_decode(leat_picture *out, const void *data, size_t bytes,
                                const leat_picture_options *options, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = (leat_picture){0};
    LEATI_GIVEN(data, err);
    leat_picture_options all;
    leati_picture picture;
    LEATI_TRY(leati_growing_read(&options_type, options, &all, err));
    if (all.channels != 1 && all.channels != 3 && all.channels != 4)
        return leati_fail(err, LEAT_EINVAL, "channels: expected 1, 3 or 4, received %lld",
                          (long long)all.channels);
    if (all.max_pixels < 0 || all.scaled_width < 0 || all.scaled_height < 0)
        return leati_fail(err, LEAT_EINVAL,
                          "expected max_pixels, scaled_width and scaled_height of at least 0");
    const leati_picture_options choices = {.color = (leati_picture_color)all.channels,
                                           .max_pixels = all.max_pixels,
                                           .scaled_width = all.scaled_width,
                                           .scaled_height = all.scaled_height};
    LEATI_TRY(leati_picture_decode(&picture, data, bytes, &choices, err));
    *out = publish(&picture);
    return LEAT_OK;
}

static leat_status find_word(int *out, const char *what, const char *word, const char *const *names,
                             int count, leat_error *err) {
    for (int i = 0; i < count; ++i)
        if (strcmp(names[i], word) == 0) {
            *out = i;
            return LEAT_OK;
        }
    return leati_fail(err, LEAT_EINVAL, "%s: no '%s'; there are %s, %s, %s%s", what, word, names[0], names[1],
                      names[2], count > 3 ? ", lanczos, box and hamming" : "");
}

leat_status leat_picture_resize(leat_picture *out, const leat_picture *in, int64_t height, int64_t width,
                                const char *interpolation, const char *aspect, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = (leat_picture){0};
    LEATI_GIVEN(in, err);
    int filter = LEATI_FILTER_BILINEAR, fit = LEATI_FIT_STRETCH;
    leati_picture result;
    if (interpolation)
        LEATI_TRY(
            find_word(&filter, "interpolation", interpolation, leati_filter_names, LEATI_FILTER_COUNT, err));
    if (aspect) LEATI_TRY(find_word(&fit, "aspect", aspect, leati_fit_names, LEATI_FIT_COUNT, err));
    if (height < 1 || width < 1 || height > 65535 || width > 65535)
        return leati_fail(err, LEAT_ESHAPE,
                          "expected a size from 1 x 1 to 65535 x 65535, received %lld x %lld",
                          (long long)height, (long long)width);
    if (!in->pixels || in->width < 1 || in->height < 1 ||
        (in->channels != 1 && in->channels != 3 && in->channels != 4))
        return leati_fail(err, LEAT_ESHAPE, "the picture has no pixels, or not 1, 3 or 4 channels");
    const leati_picture from = {in->width, in->height, (int)in->channels, in->pixels};
    LEATI_TRY(leati_picture_create(&result, width, height, from.channels, err));
    leat_status status = leati_picture_fit(&result, &from, (leati_filter)filter, (leati_fit)fit, err);
    if (status == LEAT_OK)
        *out = publish(&result);
    else
        leati_picture_fini(&result);
    return status;
}

void leat_picture_destroy(leat_picture *picture) {
    if (!picture) return;
    leati_picture freed = {.pixels = picture->pixels};
    leati_picture_fini(&freed);
    *picture = (leat_picture){0};
}
