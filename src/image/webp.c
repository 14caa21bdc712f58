/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes WebP with libwebp; of an animation, the first picture.  Room: image. */
#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

#include "base/error.h"
#include "image/raw.h"

static leat_status failed(leat_error *err, VP8StatusCode code) {
    switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY: return leati_fail_memory(err, 0, "a WebP decoder");
    case VP8_STATUS_NOT_ENOUGH_DATA: return leati_fail(err, LEAT_EFORMAT, "the file is truncated");
    default: return leati_fail(err, LEAT_EFORMAT, "the file is damaged (libwebp's status %d)", (int)code);
    }
}

/* Decodes the first picture of an animation, on a canvas of `raw`'s size. */
static leat_status decode_first(leati_raw *raw, const leati_encoded *in, leat_error *err) {
    const WebPData data = {in->data, in->bytes};
    WebPAnimDecoderOptions options;
    uint8_t *canvas = NULL;
    int timestamp = 0;
    if (!WebPAnimDecoderOptionsInit(&options)) return leati_fail(err, LEAT_ENOTSUP, "libwebp is too old");
    options.color_mode = MODE_RGBA;
    WebPAnimDecoder *decoder = WebPAnimDecoderNew(&data, &options);
    if (!decoder) return failed(err, VP8_STATUS_BITSTREAM_ERROR);
    leat_status status = LEAT_OK;
    if (!WebPAnimDecoderGetNext(decoder, &canvas, &timestamp))
        status = failed(err, VP8_STATUS_BITSTREAM_ERROR);
    else if (raw->layout == LEATI_RAW_RGBA)
        memcpy(raw->picture.pixels, canvas, (size_t)(raw->picture.width * raw->picture.height) * 4);
    else
        for (int64_t i = 0; i < raw->picture.width * raw->picture.height; ++i)
            memcpy(raw->picture.pixels + 3 * i, canvas + 4 * i, 3);
    WebPAnimDecoderDelete(decoder);
    return status;
}

static leat_status decode_still(leati_raw *raw, const leati_encoded *in, leat_error *err) {
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config)) return leati_fail(err, LEAT_ENOTSUP, "libwebp is too old");
    const size_t line = (size_t)raw->picture.width * (size_t)raw->picture.channels;
    config.output.colorspace = raw->layout == LEATI_RAW_RGBA ? MODE_RGBA : MODE_RGB;
    config.output.u.RGBA.rgba = raw->picture.pixels;
    config.output.u.RGBA.stride = (int)line;
    config.output.u.RGBA.size = line * (size_t)raw->picture.height;
    config.output.is_external_memory = 1;
    const VP8StatusCode code = WebPDecode(in->data, in->bytes, &config);
    WebPFreeDecBuffer(&config.output);
    return code == VP8_STATUS_OK ? LEAT_OK : failed(err, code);
}

leat_status leati_decode_webp(leati_raw *raw, const leati_encoded *in, leat_error *err) {
    WebPBitstreamFeatures features;
    const VP8StatusCode code = WebPGetFeatures(in->data, in->bytes, &features);
    if (code != VP8_STATUS_OK) return failed(err, code);
    LEATI_TRY(leati_raw_create(raw, in, features.width, features.height,
                               features.has_alpha ? LEATI_RAW_RGBA : LEATI_RAW_RGB, err));
    return features.has_animation ? decode_first(raw, in, err) : decode_still(raw, in, err);
}
