/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the decoders of pictures, with a small limit of pixels, and resizes what they give. */
#include <stdlib.h>

#include "fuzz.h"
#include "image/picture.h"

static void resize(const leati_picture *in, leati_filter filter, leati_fit fit) {
    leati_picture out;
    if (leati_picture_create(&out, 9, 7, in->channels, NULL) != LEAT_OK) return;
    if (leati_picture_fit(&out, in, filter, fit, NULL) != LEAT_OK) abort();
    leati_picture_fini(&out);
}

static void decode(const uint8_t *data, size_t size, const leati_picture_options *options) {
    leat_error err = {0};
    leati_picture picture;
    if (leati_picture_decode(&picture, data, size, options, &err) != LEAT_OK) {
        if (err.message[0] == '\0' || picture.pixels) abort();
        return;
    }
    if (picture.width * picture.height > options->max_pixels) abort();
    resize(&picture, (leati_filter)(size % LEATI_FILTER_COUNT), (leati_fit)(size % LEATI_FIT_COUNT));
    leati_picture_fini(&picture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    decode(data, size, &(leati_picture_options){.color = LEATI_COLOR_RGBA, .max_pixels = 1 << 16});
    decode(data, size,
           &(leati_picture_options){
               .color = LEATI_COLOR_GRAYSCALE, .max_pixels = 1 << 16, .scaled_width = 2, .scaled_height = 2});
    return 0;
}
