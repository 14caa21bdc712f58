/* SPDX-License-Identifier: Apache-2.0 */
/* MelSpectrogram: the powers of a signal's frequencies on the mel scale, in decibels.  The transform of frames is
 * a product with a constant matrix.  Source: keras.layers.MelSpectrogram, tf.signal.stft. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/graph/build.h"
#include "json/json.h"
#include "nn/layers/preprocessing/spectrum.h"
#include "nn/layers/spatial.h"
#include "nn/layers/types.h"

static const double pi = 3.14159265358979323846;

typedef struct config {
    int64_t fft_length, sequence_stride, sequence_length,
        num_mel_bins;                         /* sequence_length: INT64_MIN is null */
    json_t *window_name;                      /* a text; NULL: none */
    const char *window;                       /* "": none; set by check */
    double sampling_rate, min_freq, max_freq; /* max_freq: NAN is null */
    bool power_to_db;
    double top_db, mag_exp, min_power, ref_power;
} config;

static const leati_field fields[] = {LEATI_INT_FIELD(config, fft_length, 1, "2048"),
                                     LEATI_INT_FIELD(config, sequence_stride, 1, "512"),
                                     LEATI_FIELD(config, sequence_length, LEATI_FIELD_OPTIONAL_INT, "null"),
                                     {.key = "window",
                                      .kind = LEATI_FIELD_JSON,
                                      .preset = "\"hann\"",
                                      .offset = offsetof(config, window_name)},
                                     LEATI_FIELD(config, sampling_rate, LEATI_FIELD_FLOAT, "16000"),
                                     LEATI_INT_FIELD(config, num_mel_bins, 1, "128"),
                                     LEATI_FIELD(config, min_freq, LEATI_FIELD_FLOAT, "20.0"),
                                     LEATI_FIELD(config, max_freq, LEATI_FIELD_OPTIONAL_FLOAT, "null"),
                                     LEATI_FIELD(config, power_to_db, LEATI_FIELD_BOOL, "true"),
                                     LEATI_FIELD(config, top_db, LEATI_FIELD_FLOAT, "80.0"),
                                     LEATI_FIELD(config, mag_exp, LEATI_FIELD_FLOAT, "2.0"),
                                     LEATI_FIELD(config, min_power, LEATI_FIELD_FLOAT, "1e-10"),
                                     LEATI_FIELD(config, ref_power, LEATI_FIELD_FLOAT, "1.0"),
                                     {.key = NULL}};

static int64_t frame_length(const config *c) {
    return c->sequence_length == INT64_MIN ? c->fft_length : c->sequence_length;
}

static double highest_frequency(const config *c) {
    return isnan(c->max_freq) || c->max_freq == 0 ? floor(c->sampling_rate / 2) : c->max_freq;
}

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    c->window = c->window_name ? json_string_value(c->window_name) : "";
    if (c->fft_length > 1 << 16 || c->num_mel_bins > 1 << 16)
        return leati_fail(err, LEAT_ENOTSUP, "fft_length, num_mel_bins: expected at most %d", 1 << 16);
    if (frame_length(c) < 1 || frame_length(c) > c->fft_length)
        return leati_fail(err, LEAT_EINVAL, "sequence_length: expected 1 to fft_length");
    if (!c->window || (strcmp(c->window, "hann") != 0 && strcmp(c->window, "hamming") != 0 && c->window[0]))
        return leati_fail(err, LEAT_EINVAL, "window: expected \"hann\", \"hamming\" or null");
    if (!(c->sampling_rate > 0) || !(c->min_freq >= 0) || !(highest_frequency(c) > c->min_freq))
        return leati_fail(err, LEAT_EINVAL, "expected 0 <= min_freq < max_freq, and a sampling_rate above 0");
    if (!(c->min_power > 0) || !(c->mag_exp > 0))
        return leati_fail(err, LEAT_EINVAL, "min_power, mag_exp: expected numbers above 0");
    return LEAT_OK;
}

/* Half of the transform's length is added at both ends of the signal. */
static int64_t padded_length(const config *c, int64_t samples) {
    return samples + 2 * (c->fft_length / 2);
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    const int64_t samples = inputs[0].rank == 2 ? inputs[0].dims[1] : -2;
    (void)input_count, (void)output_count;
    if (samples == -2 || (samples >= 0 && samples <= c->fft_length / 2))
        return leati_shape_unexpected(&inputs[0],
                                      "(batch, samples) with more samples than half of the fft_length", err);
    const int64_t steps =
        samples < 0 ? -1 : 1 + (padded_length(c, samples) - c->fft_length) / c->sequence_stride;
    outputs[0] = (leati_shape){.rank = 3, .dims = {inputs[0].dims[0], c->num_mel_bins, steps}};
    return LEAT_OK;
}

/* ---- Constants ---- */

/* Fills (fft_length, 2 bins) with windowed cosines, then sines.  The window stands in the middle of a frame; without
 * a window the whole frame counts.  TensorFlow's windows of odd length are symmetric. */
static void fill_transform(const config *c, int64_t bins, float *out) {
    const int64_t fft = c->fft_length, length = frame_length(c), first = (fft - length) / 2;
    const int64_t period = length == 1 ? 0 : length - length % 2;
    for (int64_t t = 0; t < fft; ++t, out += 2 * bins) {
        const bool inside = !c->window[0] || (t >= first && t < first + length);
        const double flat = length == 1 ? 1 : leati_window_at(c->window, t - first, period);
        const double weight = inside ? flat : 0;
        for (int64_t bin = 0; bin < bins; ++bin) {
            const double angle = 2 * pi * (double)((t * bin) % fft) / (double)fft;
            out[bin] = (float)(weight * cos(angle));
            out[bins + bin] = (float)(-weight * sin(angle));
        }
    }
}

static double mel_of(double hertz) {
    return 1127.0 * log(1.0 + hertz / 700.0);
}

/* Fills (bins, num_mel_bins) with triangles on the mel scale; the frequency 0 has no weight. */
static void fill_mel(const config *c, int64_t bins, float *out) {
    const double low = mel_of(c->min_freq), high = mel_of(highest_frequency(c));
    const double width = (high - low) / (double)(c->num_mel_bins + 1);
    for (int64_t bin = 0; bin < bins; ++bin) {
        const double mel = mel_of(c->sampling_rate / 2 * (double)bin / (double)(bins - 1));
        for (int64_t i = 0; i < c->num_mel_bins; ++i) {
            const double edge = low + width * (double)i;
            const double slope = fmin((mel - edge) / width, (edge + 2 * width - mel) / width);
            *out++ = bin > 0 ? (float)fmax(0, slope) : 0;
        }
    }
}

/* Adds a constant matrix that `fill` computes. */
static leati_value matrix(leati_graph *g, const config *c, int64_t rows, int64_t columns, int64_t bins,
                          void (*fill)(const config *, int64_t, float *)) {
    const leati_desc desc = leati_desc_make(LEAT_F32, 2, (int64_t[]){rows, columns});
    float *data = leati_calloc((size_t)(rows * columns), sizeof *data);
    if (!data) return leati_graph_fail(g, LEAT_ENOMEM, "no memory for a Fourier transform");
    fill(c, bins, data);
    const leati_value value = leati_graph_constant(g, &desc, data);
    leati_free(data);
    return value;
}

/* ---- Lowering ---- */

/* Extends signals (N, samples) at both ends by their mirror images, without the samples at the ends. */
static leati_value mirrored(leati_graph *g, leati_value x, int64_t count) {
    const int64_t samples = leati_graph_desc(g, x)->shape[1];
    if (count == 0) return x;
    const leati_value parts[] = {leati_reverse(g, leati_slice_axis(g, x, 1, 1, count), 1), x,
                                 leati_reverse(g, leati_slice_axis(g, x, 1, samples - 1 - count, count), 1)};
    return leati_concat(g, 3, parts, 1);
}

/* Returns the powers of the frequencies: (frames * batch, bins). */
static leati_value powers_of(const config *c, leati_graph *g, leati_value frames, int64_t bins) {
    const leati_value transform = matrix(g, c, c->fft_length, 2 * bins, bins, fill_transform);
    const leati_value y = leati_matmul(g, frames, false, transform, false, LEATI_NONE);
    const leati_value squares = leati_function_of(g, y, LEATI_FN_SQUARE);
    const leati_value power =
        leati_add(g, leati_slice_axis(g, squares, 1, 0, bins), leati_slice_axis(g, squares, 1, bins, bins));
    if (c->mag_exp == 2) return power;
    return leati_eltwise_of(g, power,
                            (leati_eltwise){.function = LEATI_FN_POW, .a = (float)(c->mag_exp / 2)});
}

/* Values more than top_db below the largest one of the batch become that. */
static leati_value decibels(const config *c, leati_graph *g, leati_value x) {
    const double reference = 10 * log10(fmax(fabs(c->ref_power), c->min_power));
    const leati_value limited = leati_binary_of(g, LEATI_MAX, x, leati_scalar(g, (float)c->min_power));
    const leati_value y = leati_linear(g, leati_function_of(g, limited, LEATI_FN_LOG),
                                       (float)(10 / log(10.0)), (float)-reference);
    const leati_value most = leati_reduce_all(g, LEATI_REDUCE_MAX, y);
    return leati_binary_of(g, LEATI_MAX, y, leati_linear(g, most, 1, (float)-c->top_db));
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    static const int32_t bins_before_frames[] = {1, 2, 0};
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const leati_desc input = *leati_graph_desc(g, inputs[0]);
    const int64_t batch = input.shape[0], bins = c->fft_length / 2 + 1;
    const leati_ints kernel = {.count = 1, .values = {c->fft_length}};
    const leati_ints strides = {.count = 1, .values = {c->sequence_stride}};
    const leati_slide slide = {&kernel, &strides, NULL, LEATI_PADDING_VALID};
    (void)input_count;
    leati_value x = input.dtype == LEAT_F32 ? inputs[0] : leati_cast(g, inputs[0], LEAT_F32, 1);
    x = leati_expand_last(g, mirrored(g, x, c->fft_length / 2));
    const leati_attrs attrs = {
        .conv = {.window = leati_slide_window(&slide, leati_graph_desc(g, x)), .groups = 1}};
    leati_value y = leati_graph_node(g, LEATI_OP_PATCHES, &attrs, 1, &x, NULL);
    const int64_t steps = leati_graph_desc(g, y)->shape[0];
    y = leati_reshape(g, y, 2, (int64_t[]){steps * batch, c->fft_length});
    y = powers_of(c, g, y, bins);
    y = leati_matmul(g, y, false, matrix(g, c, bins, c->num_mel_bins, bins, fill_mel), false, LEATI_NONE);
    if (c->power_to_db && batch > 0) y = decibels(c, g, y);
    y = leati_reshape(g, y, 3, (int64_t[]){steps, batch, c->num_mel_bins});
    outputs[0] = leati_transpose(g, y, bins_before_frames);
}

LEATI_LAYER_TYPE(mel_spectrogram, "MelSpectrogram", "mel_spectrogram", config, fields, LEATI_ONE_INPUT,
                 .check = check, .infer = infer, .lower = lower);
