/* SPDX-License-Identifier: Apache-2.0 */
/* Fits a picture into a size of another aspect ratio.  Room: image. */
#include <string.h>

#include "base/error.h"
#include "image/picture.h"

const char *const leati_fit_names[LEATI_FIT_COUNT] = {"stretch", "crop", "pad"};

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* The part in the middle, with the integer arithmetic of Keras's load_img. */
static leati_box crop_box(const leati_picture *out, const leati_picture *in) {
    const int64_t height = least(in->height, in->width * out->height / out->width);
    const int64_t width = least(in->width, in->height * out->width / out->height);
    const int64_t x = (in->width - width) / 2, y = (in->height - height) / 2;
    return (leati_box){x, y, x + (width < 1 ? 1 : width), y + (height < 1 ? 1 : height)};
}

/* Copies the picture into the middle of a black one that has the aspect ratio of `out`. */
static leat_status pad(leati_picture *padded, const leati_picture *out, const leati_picture *in,
                       leat_error *err) {
    const int64_t by_width = in->width * out->height / out->width;
    const int64_t by_height = in->height * out->width / out->height;
    const int64_t height = in->height > by_width ? in->height : by_width;
    const int64_t width = in->width > by_height ? in->width : by_height;
    const int64_t x = (width - in->width) / 2, y = (height - in->height) / 2;
    const size_t line = (size_t)(in->width * in->channels);
    LEATI_TRY(leati_picture_create(padded, width, height, in->channels, err));
    for (int64_t i = 0; i < in->height; ++i)
        memcpy(padded->pixels + ((y + i) * width + x) * in->channels, in->pixels + (size_t)i * line, line);
    return LEAT_OK;
}

leat_status leati_picture_fit(leati_picture *out, const leati_picture *in, leati_filter filter, leati_fit fit,
                              leat_error *err) {
    if (fit == LEATI_FIT_STRETCH) return leati_picture_resize(out, in, filter, NULL, err);
    if (fit == LEATI_FIT_CROP) {
        const leati_box box = crop_box(out, in);
        return leati_picture_resize(out, in, filter, &box, err);
    }
    leati_picture padded;
    LEATI_TRY(pad(&padded, out, in, err));
    leat_status status = leati_picture_resize(out, &padded, filter, NULL, err);
    leati_picture_fini(&padded);
    return status;
}
