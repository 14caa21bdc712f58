/* SPDX-License-Identifier: Apache-2.0 */
/* `leat feed show`: writes a page with samples as pictures or numbers, and their labels.  Room: cli. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/commands/feed/png.h"
#include "cli/commands/feed/sample.h"
#include "cli/options/parse.h"
#include "cli/run/files.h"
#include "cli/text/say.h"
#include "leat/file.h"
#include "leat/model.h"

enum { default_samples = 48, MOST_TARGETS = 16 };

/* Text or bytes that grow; after a failed allocation, further calls do nothing. */
typedef struct buffer {
    unsigned char *data;
    size_t size, capacity;
    bool failed;
} buffer;

static void add(buffer *out, const void *data, size_t bytes) {
    if (out->size + bytes + 1 > out->capacity && !out->failed) {
        const size_t capacity = 2 * (out->size + bytes + 1);
        unsigned char *grown = realloc(out->data, capacity);
        if (grown) {
            out->data = grown;
            out->capacity = capacity;
        }
        out->failed = !grown;
    }
    if (out->failed) return;
    memcpy(out->data + out->size, data, bytes);
    out->size += bytes;
    out->data[out->size] = '\0';
}

static void add_text(buffer *out, const char *text) {
    add(out, text, strlen(text));
}

/* Adds a text with the characters of HTML escaped. */
static void add_escaped(buffer *out, const char *text) {
    for (; *text; ++text) {
        const char *name = *text == '<'   ? "&lt;"
                           : *text == '>' ? "&gt;"
                           : *text == '&' ? "&amp;"
                           : *text == '"' ? "&quot;"
                                          : NULL;
        if (name)
            add_text(out, name);
        else
            add(out, text, 1);
    }
}

static void add_number(buffer *out, int64_t number) {
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, number);
    add_text(out, text);
}

/* ---- Pictures as PNG files in the page ---- */

static void add_base64(buffer *out, const unsigned char *data, size_t bytes) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes; i += 3) {
        const size_t left = bytes - i;
        const unsigned group = (unsigned)data[i] << 16 | (left > 1 ? (unsigned)data[i + 1] << 8 : 0) |
                               (left > 2 ? data[i + 2] : 0);
        const char four[4] = {letters[group >> 18], letters[group >> 12 & 63],
                              left > 1 ? letters[group >> 6 & 63] : '=',
                              left > 2 ? letters[group & 63] : '='};
        add(out, four, 4);
    }
}

/* ---- Samples ---- */

/* Converts numbers to bytes: the smallest becomes 0, the largest 255. */
static void scale_floats(unsigned char *to, const float *from, int64_t count) {
    float low = from[0], high = from[0];
    for (int64_t i = 1; i < count; ++i) {
        if (from[i] < low) low = from[i];
        if (from[i] > high) high = from[i];
    }
    const float range = high > low ? high - low : 1;
    for (int64_t i = 0; i < count; ++i) {
        const float value = (from[i] - low) / range * 255;
        to[i] = (unsigned char)(value >= 0 && value <= 255 ? value : 0); /* 0 for NaN */
    }
}

/* Stretches bytes like floats. */
static void stretch_bytes(unsigned char *bytes, int64_t count) {
    unsigned char low = bytes[0], high = bytes[0];
    for (int64_t i = 1; i < count; ++i) {
        if (bytes[i] < low) low = bytes[i];
        if (bytes[i] > high) high = bytes[i];
    }
    for (int64_t i = 0; i < count && high > low; ++i)
        bytes[i] = (unsigned char)((bytes[i] - low) * 255 / (high - low));
}

/* Adds a tensor of the current sample as an image.  A mask has the numbers of classes, which are stretched. */
static void add_picture(buffer *page, const leat_tensor *tensor, bool is_mask) {
    const int64_t height = tensor->shape[1], width = tensor->shape[2], channels = tensor->shape[3];
    const int64_t count = height * width * channels;
    size_t size = 0;
    unsigned char *bytes = calloc((size_t)count, 1);
    if (!bytes) {
        page->failed = true;
        return;
    }
    if (tensor->dtype == LEAT_F32)
        scale_floats(bytes, tensor->data, count);
    else
        memcpy(bytes, tensor->data, (size_t)count);
    if (is_mask && tensor->dtype == LEAT_U8) stretch_bytes(bytes, count);
    unsigned char *png = cli_png_write(bytes, width, height, channels, &size);
    add_text(page, "<img alt=\"\" src=\"data:image/png;base64,");
    if (png) add_base64(page, png, size);
    add_text(page, "\">");
    page->failed = page->failed || !png;
    free(bytes);
    free(png);
}

static bool shows_pictures(const leat_tensor_spec *spec) {
    return spec->rank == 3 && (spec->dtype == LEAT_U8 || spec->dtype == LEAT_F32) &&
           (spec->shape[2] == 1 || spec->shape[2] == 3 || spec->shape[2] == 4) && spec->shape[0] < 16384 &&
           spec->shape[1] < 16384;
}

/* Adds the numbers of a tensor that is no picture, as many as fit: a row of them for each step of time. */
static void add_numbers(buffer *page, const leat_tensor *tensor, const char *what, int64_t most) {
    const int64_t count = leat_tensor_count(tensor), shown = count < most ? count : most;
    const int64_t row = tensor->rank > 2 ? count / tensor->shape[1] : count;
    const bool is_float = strncmp(leat_dtype_name(tensor->dtype), "float", 5) == 0 ||
                          strncmp(leat_dtype_name(tensor->dtype), "bfloat", 6) == 0;
    double *numbers = calloc((size_t)count, sizeof *numbers);
    const leat_tensor to = leat_tensor_view(LEAT_F64, tensor->rank, tensor->shape, numbers);
    if (!numbers || leat_tensor_copy(&to, tensor, NULL, NULL) != LEAT_OK) {
        page->failed = true;
        free(numbers);
        return;
    }
    add_text(page, what);
    for (int k = 1; k < tensor->rank; ++k) {
        add_text(page, k > 1 ? "x" : " ");
        add_number(page, tensor->shape[k]);
    }
    add_text(page, ":");
    for (int64_t i = 0; i < shown; ++i) {
        char text[40];
        snprintf(text, sizeof text, is_float ? " %g" : " %.0f", numbers[i]);
        if (row > 1 && i > 0 && i % row == 0) add_text(page, "<br>");
        add_text(page, text);
    }
    add_text(page, shown < count ? " ...<br>" : "<br>");
    free(numbers);
}

/* Adds inputs and targets: pictures, and the numbers of inputs that are no pictures. */
static void add_tensors(buffer *page, const cli_samples *samples) {
    enum { MOST = 64 };
    const leat_batch_spec *spec = &samples->data->spec;
    for (int i = 0; i < spec->tensor_count; ++i) {
        const bool is_target = spec->tensors[i].part == LEAT_PART_TARGET;
        if (shows_pictures(&spec->tensors[i]) && spec->tensors[i].part != LEAT_PART_SAMPLE_WEIGHT)
            add_picture(page, &samples->batch.tensors[i], is_target && spec->tensors[i].shape[2] == 1);
        else if (spec->tensors[i].part == LEAT_PART_INPUT)
            add_numbers(page, &samples->batch.tensors[i], "input", MOST);
    }
}

static void add_sample(buffer *page, cli_samples *samples, int64_t number) {
    leat_error err = {0};
    char *place = cli_samples_name(samples, number);
    const bool read = cli_samples_read(samples, number, false, &err) == LEAT_OK;
    const int64_t label = read ? cli_samples_class(samples) : -1;
    const char *name = cli_samples_class_name(samples, label);
    add_text(page, "<figure>");
    if (read)
        add_tensors(page, samples);
    else
        add_escaped(page, err.message);
    add_text(page, "<figcaption>");
    if (name) {
        add_text(page, "<b>");
        add_escaped(page, name);
        add_text(page, "</b> ");
    }
    if (label >= 0) {
        add_text(page, "class ");
        add_number(page, label);
        add_text(page, "<br>");
    }
    for (int i = 0; read && label < 0 && i < samples->batch.tensor_count; ++i)
        if (samples->data->spec.tensors[i].part == LEAT_PART_TARGET &&
            !shows_pictures(&samples->data->spec.tensors[i]))
            add_numbers(page, &samples->batch.tensors[i], "target", MOST_TARGETS);
    add_text(page, "sample ");
    add_number(page, number);
    if (place) {
        add_text(page, "<br>");
        add_escaped(page, place);
    }
    leat_string_free(place);
    add_text(page, "</figcaption></figure>\n");
}

static int write_page(cli_session *session, cli_samples *samples, const char *spec, const char *output) {
    const int64_t count = cli_samples_count(samples),
                  wanted = cli_number(session->arguments, CLI_SAMPLES, default_samples);
    const int64_t shown = wanted < count ? wanted : count;
    buffer page = {0};
    leat_error err = {0};
    add_text(&page, "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>");
    add_escaped(&page, spec);
    add_text(&page,
             "</title>\n<style>body{font:14px sans-serif;margin:2em}figure{display:inline-block;margin:0 1em "
             "1em 0;"
             "width:224px;vertical-align:top;overflow-wrap:anywhere}img{width:100%;image-rendering:pixelated}"
             "</style>\n<h1>");
    add_escaped(&page, spec);
    add_text(&page, "</h1>\n<p>");
    add_number(&page, shown);
    add_text(&page, " of ");
    add_number(&page, count);
    add_text(&page, " samples, as the model receives them</p>\n");
    for (int64_t i = 0; i < shown && !cli_signal_code(); ++i) add_sample(&page, samples, i * count / shown);
    add_text(&page, "</html>");
    int code = cli_signal_code();
    if (page.failed) {
        cli_say("leat feed show: out of memory\n");
        code = CLI_FAILURE;
    } else if (code == CLI_SUCCESS && cli_replace_text(output, (char *)page.data, &err) != LEAT_OK) {
        code = cli_fail(session, &err);
    }
    if (code == CLI_SUCCESS) cli_say("wrote %s\n", output);
    free(page.data);
    return code;
}

int cli_feed_show(const cli_arguments *arguments) {
    cli_session session = {.command = "feed show", .arguments = arguments};
    cli_samples samples = {0};
    const char *spec = arguments->operands[0];
    int code = cli_samples_open(&samples, &session, spec);
    if (code == CLI_SUCCESS) {
        cli_catch_signals(&session);
        code = write_page(&session, &samples, spec, arguments->text[CLI_PAGE_OUTPUT]);
    }
    cli_samples_close(&samples);
    cli_close(&session);
    return code;
}
