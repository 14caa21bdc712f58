/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes JPEG with libjpeg-turbo.  Room: image. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include "base/error.h"
#include "image/raw.h"

/* A progressive file with more scans than this costs time without end; encoders write about ten. */
enum { max_scans = 500 };

/* The state of a decoder.  libjpeg finds it behind the members that come first. */
typedef struct decoder {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf failure;
    char message[JMSG_LENGTH_MAX];
} decoder;

static void fail_decoding(j_common_ptr common) {
    decoder *d = common->client_data;
    common->err->format_message(common, d->message);
    longjmp(d->failure, 1);
}

/* Pillow ignores warnings, too: photographs with small faults are common. */
static void ignore_message(j_common_ptr common) {
    (void)common;
}

static void ignore(j_decompress_ptr info) {
    (void)info;
}

static boolean out_of_data(j_decompress_ptr info) {
    decoder *d = info->client_data;
    snprintf(d->message, sizeof d->message, "the file is truncated");
    longjmp(d->failure, 1);
    return FALSE;
}

static void skip_data(j_decompress_ptr info, long count) {
    if (count <= 0) return;
    if ((size_t)count > info->src->bytes_in_buffer) (void)out_of_data(info);
    info->src->next_input_byte += count;
    info->src->bytes_in_buffer -= (size_t)count;
}

static void watch_scans(j_common_ptr common) {
    decoder *d = common->client_data;
    if (d->info.input_scan_number <= max_scans) return;
    snprintf(d->message, sizeof d->message, "the file has more than %d scans", max_scans);
    longjmp(d->failure, 1);
}

static void set_up(decoder *d, const leati_encoded *in) {
    d->info.err = jpeg_std_error(&d->errors);
    d->errors.error_exit = fail_decoding;
    d->errors.output_message = ignore_message;
    d->info.client_data = d;
    jpeg_create_decompress(&d->info);
    d->progress.progress_monitor = watch_scans;
    d->info.progress = &d->progress;
    d->source = (struct jpeg_source_mgr){.next_input_byte = in->data,
                                         .bytes_in_buffer = in->bytes,
                                         .init_source = ignore,
                                         .fill_input_buffer = out_of_data,
                                         .skip_input_data = skip_data,
                                         .resync_to_restart = jpeg_resync_to_restart,
                                         .term_source = ignore};
    d->info.src = &d->source;
}

/* Sets the size at which the picture is decoded. */
static void choose_scale(decoder *d, const leati_picture_options *options) {
    const int64_t width = options->scaled_width, height = options->scaled_height;
    if (width < 1 || height < 1) return;
    unsigned divisor = 8;
    while (divisor > 1 && (d->info.image_width / divisor < width || d->info.image_height / divisor < height))
        divisor /= 2;
    d->info.scale_num = 1;
    d->info.scale_denom = divisor;
}

static leat_status choose_layout(decoder *d, leati_raw_layout *layout, leat_error *err) {
    switch (d->info.num_components) {
    case 1:
        *layout = LEATI_RAW_GRAY;
        d->info.out_color_space = JCS_GRAYSCALE;
        return LEAT_OK;
    case 3:
        *layout = LEATI_RAW_RGB;
        d->info.out_color_space = JCS_RGB;
        return LEAT_OK;
    case 4:
        *layout = LEATI_RAW_CMYK;
        d->info.out_color_space = JCS_CMYK;
        return LEAT_OK;
    default:
        return leati_fail(err, LEAT_ENOTSUP, "expected 1, 3 or 4 colour components, found %d",
                          d->info.num_components);
    }
}

/* The CMYK values of a JPEG file are inverted, as Adobe writes them. */
static void invert(leati_picture *picture) {
    const int64_t count = picture->width * picture->height * picture->channels;
    for (int64_t i = 0; i < count; ++i) picture->pixels[i] = (unsigned char)(255 - picture->pixels[i]);
}

static leat_status decode(decoder *d, leati_raw *raw, const leati_encoded *in, leat_error *err) {
    leati_raw_layout layout = LEATI_RAW_RGB;
    const int64_t most = in->options->max_pixels > 0 ? in->options->max_pixels : LEATI_PICTURE_MAX_PIXELS;
    jpeg_read_header(&d->info, TRUE);
    LEATI_TRY(choose_layout(d, &layout, err));
    if (d->info.image_width > most / d->info.image_height) /* before libjpeg allocates anything for it */
        return leati_raw_create(raw, in, d->info.image_width, d->info.image_height, layout, err);
    choose_scale(d, in->options);
    jpeg_start_decompress(&d->info);
    LEATI_TRY(leati_raw_allocate(raw, in, d->info.output_width, d->info.output_height, layout, err));
    const size_t line = (size_t)d->info.output_width * (size_t)raw->picture.channels;
    while (d->info.output_scanline < d->info.output_height) {
        JSAMPROW rows[4];
        for (unsigned i = 0; i < 4; ++i)
            rows[i] = raw->picture.pixels + line * ((size_t)d->info.output_scanline + i);
        const unsigned left = d->info.output_height - d->info.output_scanline;
        jpeg_read_scanlines(&d->info, rows, left < 4 ? left : 4);
    }
    if (layout == LEATI_RAW_CMYK) invert(&raw->picture);
    return LEAT_OK;
}

leat_status leati_decode_jpeg(leati_raw *raw, const leati_encoded *in, leat_error *err) {
    decoder d;
    memset(&d, 0, sizeof d);
    leat_status status = LEAT_EFORMAT;
    if (setjmp(d.failure) == 0) {
        set_up(&d, in);
        status = decode(&d, raw, in, err);
    } else {
        status = leati_fail(err, LEAT_EFORMAT, "%s", d.message);
    }
    jpeg_destroy_decompress(&d.info);
    return status;
}
