/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the first picture of a GIF with giflib.  Room: image. */
#include <string.h>

#include <gif_lib.h>

#include "base/error.h"
#include "base/memory.h"
#include "image/raw.h"

typedef struct reader {
    const unsigned char *at;
    size_t left;
} reader;

static int read_data(GifFileType *gif, GifByteType *to, int count) {
    reader *in = gif->UserData;
    const size_t taken = (size_t)count < in->left ? (size_t)count : in->left;
    memcpy(to, in->at, taken);
    in->at += taken;
    in->left -= taken;
    return (int)taken;
}

static leat_status failed(leat_error *err, int code) {
    const char *text = GifErrorString(code);
    if (code == D_GIF_ERR_NOT_ENOUGH_MEM) return leati_fail_memory(err, 0, "a GIF decoder");
    if (code == D_GIF_ERR_READ_FAILED || code == D_GIF_ERR_EOF_TOO_SOON)
        return leati_fail(err, LEAT_EFORMAT, "the file is truncated");
    return leati_fail(err, LEAT_EFORMAT, "%s", text ? text : "the file is damaged");
}

/* Reads an extension; a graphic control extension may name the transparent index, otherwise *transparent is kept. */
static leat_status read_extension(GifFileType *gif, int *transparent, leat_error *err) {
    GifByteType *block = NULL;
    int code = 0;
    if (DGifGetExtension(gif, &code, &block) == GIF_ERROR) return failed(err, gif->Error);
    while (block) {
        if (code == GRAPHICS_EXT_FUNC_CODE && block[0] >= 4 && (block[1] & 1)) *transparent = block[4];
        if (DGifGetExtensionNext(gif, &block) == GIF_ERROR) return failed(err, gif->Error);
    }
    return LEAT_OK;
}

static void read_palette(leati_raw *raw, const GifFileType *gif, int transparent) {
    const ColorMapObject *colors = gif->Image.ColorMap ? gif->Image.ColorMap : gif->SColorMap;
    leati_raw_black_palette(raw);
    for (int i = 0; !colors && i < 256; ++i)
        memset(raw->palette[i], i, 3); /* a picture without a palette is gray */
    for (int i = 0; colors && i < colors->ColorCount && i < 256; ++i) {
        raw->palette[i][0] = colors->Colors[i].Red;
        raw->palette[i][1] = colors->Colors[i].Green;
        raw->palette[i][2] = colors->Colors[i].Blue;
    }
    if (transparent >= 0) raw->palette[transparent][3] = 0;
}

/* Reads the lines of the picture into its place on the canvas. */
static leat_status read_lines(leati_raw *raw, GifFileType *gif, leat_error *err) {
    static const int first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2};
    const GifImageDesc *frame = &gif->Image;
    unsigned char *origin = raw->picture.pixels + frame->Top * raw->picture.width + frame->Left;
    for (int turn = 0; turn < (frame->Interlace ? 4 : 1); ++turn)
        for (int y = frame->Interlace ? first[turn] : 0; y < frame->Height;
             y += frame->Interlace ? step[turn] : 1)
            if (DGifGetLine(gif, origin + y * raw->picture.width, frame->Width) == GIF_ERROR)
                return failed(err, gif->Error);
    return LEAT_OK;
}

static leat_status decode_frame(leati_raw *raw, const leati_encoded *in, GifFileType *gif, int transparent,
                                leat_error *err) {
    if (DGifGetImageDesc(gif) == GIF_ERROR) return failed(err, gif->Error);
    const GifImageDesc *frame = &gif->Image;
    const int64_t right = (int64_t)frame->Left + frame->Width, bottom = (int64_t)frame->Top + frame->Height;
    if (frame->Left < 0 || frame->Top < 0 || frame->Width < 1 || frame->Height < 1)
        return leati_fail(err, LEAT_EFORMAT, "the first picture has the size %d x %d at (%d, %d)",
                          frame->Width, frame->Height, frame->Left, frame->Top);
    LEATI_TRY(leati_raw_create(raw, in, right > gif->SWidth ? right : gif->SWidth,
                               bottom > gif->SHeight ? bottom : gif->SHeight, LEATI_RAW_PALETTE, err));
    read_palette(raw, gif, transparent);
    if (transparent >= 0)
        memset(raw->picture.pixels, transparent, (size_t)(raw->picture.width * raw->picture.height));
    return read_lines(raw, gif, err);
}

static leat_status decode(leati_raw *raw, const leati_encoded *in, GifFileType *gif, leat_error *err) {
    int transparent = -1;
    for (;;) {
        GifRecordType type = UNDEFINED_RECORD_TYPE;
        if (DGifGetRecordType(gif, &type) == GIF_ERROR) return failed(err, gif->Error);
        if (type == IMAGE_DESC_RECORD_TYPE) return decode_frame(raw, in, gif, transparent, err);
        if (type == TERMINATE_RECORD_TYPE) return leati_fail(err, LEAT_EFORMAT, "the file has no picture");
        if (type == EXTENSION_RECORD_TYPE) LEATI_TRY(read_extension(gif, &transparent, err));
    }
}

leat_status leati_decode_gif(leati_raw *raw, const leati_encoded *in, leat_error *err) {
    reader from = {in->data, in->bytes};
    int code = 0;
    GifFileType *gif = DGifOpen(&from, read_data, &code);
    if (!gif) return failed(err, code);
    leat_status status = decode(raw, in, gif, err);
    DGifCloseFile(gif, &code);
    return status;
}
