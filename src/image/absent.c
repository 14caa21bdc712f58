/* SPDX-License-Identifier: Apache-2.0 */
/* The decoders of a library that was built without the libraries of picture formats.  Room: image. */
#include "base/error.h"
#include "image/raw.h"

static leat_status absent(leat_error *err) {
    return leati_fail(err, LEAT_ENOTSUP,
                      "this leat was built without the library of the format (LEAT_PICTURES=OFF)");
}

leat_status leati_decode_jpeg(leati_raw *raw, const leati_encoded *in, leat_error *err) {
    (void)raw;
    (void)in;
    return absent(err);
}

leat_status leati_decode_png(leati_raw *raw, const leati_encoded *in, leat_error *err) {
    (void)raw;
    (void)in;
    return absent(err);
}

leat_status leati_decode_webp(leati_raw *raw, const leati_encoded *in, leat_error *err) {
    (void)raw;
    (void)in;
    return absent(err);
}

leat_status leati_decode_gif(leati_raw *raw, const leati_encoded *in, leat_error *err) {
    (void)raw;
    (void)in;
    return absent(err);
}

leat_status leati_decode_tiff(leati_raw *raw, const leati_encoded *in, leat_error *err) {
    (void)raw;
    (void)in;
    return absent(err);
}
