/* SPDX-License-Identifier: Apache-2.0 */
/* STFTSpectrogram: the short-time Fourier transform of signals as two convolutions, whose kernels are weights.
 * Source: keras.layers.STFTSpectrogram, keras.initializers.STFT. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "engine/graph/build.h"
#include "json/json.h"
#include "nn/layers/preprocessing/spectrum.h"
#include "nn/layers/spatial.h"
#include "nn/layers/types.h"

/* ---- Windows ---- */

static const double pi = 3.14159265358979323846;

/* The windows are sums of up to three cosines. */
static const struct {
    const char *name;
    double terms[3];
} windows[] = {{"", {1, 0, 0}},
               {"boxcar", {1, 0, 0}},
               {"hann", {0.5, -0.5, 0}},
               {"hamming", {0.54, -0.46, 0}},
               {"blackman", {0.42, -0.5, 0.08}}};

leat_status leati_window_check(const char *name, leat_error *err) {
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; ++i)
        if (strcmp(windows[i].name, name) == 0) return LEAT_OK;
    return leati_fail(err, LEAT_ENOTSUP,
                      "window: expected \"hann\", \"hamming\", \"blackman\", \"boxcar\" or null, received "
                      "\"%s\"",
                      name);
}

double leati_window_at(const char *name, int64_t index, int64_t period) {
    const double angle = period > 0 ? 2 * pi * (double)index / (double)period : pi;
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; ++i)
        if (strcmp(windows[i].name, name) == 0)
            return windows[i].terms[0] + windows[i].terms[1] * cos(angle) +
                   windows[i].terms[2] * cos(2 * angle);
    return 1;
}

/* ---- Configuration ---- */

enum { MODE_LOG, MODE_MAGNITUDE, MODE_PSD, MODE_REAL, MODE_IMAG, MODE_ANGLE, MODE_STFT };
static const char *const modes[] = {"log", "magnitude", "psd", "real", "imag", "angle", "stft", NULL};

typedef struct config config;

/* The configuration of the initial value of a kernel. */
typedef struct side {
    const config *layer;
    bool imaginary;
} side;

struct config {
    int32_t mode, padding, data_format;
    int64_t frame_length, frame_step, fft_length; /* the last two may be null: INT64_MIN */
    json_t *window_name, *scaling_name;           /* texts; NULL: none */
    const char *window, *scaling;                 /* "": none; set by check */
    bool periodic, expand_dims;
    leati_ints kernel, strides; /* set by check */
    int64_t bins;               /* frequencies; set by check */
    side sides[2];
    leati_initializer initializers[2];
};

static const leati_field fields[] = {LEATI_CHOICE_FIELD(config, mode, modes, "\"log\""),
                                     LEATI_INT_FIELD(config, frame_length, 1, "256"),
                                     LEATI_FIELD(config, frame_step, LEATI_FIELD_OPTIONAL_INT, "null"),
                                     LEATI_FIELD(config, fft_length, LEATI_FIELD_OPTIONAL_INT, "null"),
                                     {.key = "window",
                                      .kind = LEATI_FIELD_JSON,
                                      .preset = "\"hann\"",
                                      .offset = offsetof(config, window_name)},
                                     LEATI_FIELD(config, periodic, LEATI_FIELD_BOOL, "false"),
                                     {.key = "scaling",
                                      .kind = LEATI_FIELD_JSON,
                                      .preset = "\"density\"",
                                      .offset = offsetof(config, scaling_name)},
                                     LEATI_PADDING_FIELD(config),
                                     LEATI_FIELD(config, expand_dims, LEATI_FIELD_BOOL, "false"),
                                     LEATI_DATA_FORMAT_FIELD(config),
                                     {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    const int64_t length = c->frame_length;
    c->window = c->window_name ? json_string_value(c->window_name) : "";
    c->scaling = c->scaling_name ? json_string_value(c->scaling_name) : "";
    int64_t step = c->frame_step == INT64_MIN ? length / 2 : c->frame_step, fft = 1;
    if (length > INT32_MAX || step < 1 || step > length)
        return leati_fail(err, LEAT_EINVAL, "frame_step: expected 1 to frame_length");
    while (fft < length) fft *= 2;
    if (c->fft_length != INT64_MIN) fft = c->fft_length;
    if (fft < length || fft > INT32_MAX)
        return leati_fail(err, LEAT_EINVAL, "fft_length: expected at least frame_length");
    if (!c->scaling ||
        (c->scaling[0] && strcmp(c->scaling, "density") != 0 && strcmp(c->scaling, "spectrum") != 0))
        return leati_fail(err, LEAT_EINVAL, "scaling: expected \"density\", \"spectrum\" or null");
    if (c->padding != LEATI_PADDING_VALID && c->padding != LEATI_PADDING_SAME)
        return leati_fail(err, LEAT_EINVAL, "padding: expected \"valid\" or \"same\"");
    LEATI_TRY(leati_window_check(c->window ? c->window : "a list", err));
    c->kernel = (leati_ints){.count = 1, .values = {length}};
    c->strides = (leati_ints){.count = 1, .values = {step}};
    c->bins = fft / 2 + 1;
    return LEAT_OK;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    const leati_slide slide = {&c->kernel, &c->strides, NULL, c->padding};
    const int64_t bins = c->mode == MODE_STFT ? 2 * c->bins : c->bins;
    leati_shape image;
    (void)input_count, (void)output_count;
    LEATI_TRY(leati_image_shape(&inputs[0], 1, c->data_format, &image, err));
    LEATI_TRY(leati_slide_infer(&slide, &image, err));
    const int64_t batch = image.dims[0], steps = image.dims[1], channels = image.dims[2];
    const bool last = c->data_format == LEATI_CHANNELS_LAST;
    if (c->expand_dims && last)
        outputs[0] = (leati_shape){.rank = 4, .dims = {batch, steps, bins, channels}};
    else if (c->expand_dims)
        outputs[0] = (leati_shape){.rank = 4, .dims = {batch, channels, steps, bins}};
    else
        outputs[0] =
            (leati_shape){.rank = 3,
                          .dims = {batch, last ? steps : channels * bins, last ? channels * bins : steps}};
    for (int i = 1; channels < 0 && !c->expand_dims && i < 3; ++i)
        if (i == (last ? 2 : 1)) outputs[0].dims[i] = -1;
    return LEAT_OK;
}

/* ---- Kernels ---- */

static double window_scale(const config *c, int64_t period) {
    double sum = 0;
    const bool density = strcmp(c->scaling, "density") == 0;
    if (!c->window[0] || !c->scaling[0]) return 1;
    for (int64_t i = 0; i < c->frame_length; ++i) {
        const double value = leati_window_at(c->window, i, period);
        sum += density ? value * value : fabs(value);
    }
    return density ? sqrt(sum) : sum;
}

/* Fills a kernel (frame_length, 1, bins) with the windowed cosines or sines of the frequencies. */
static leat_status draw(const void *initial, int rank, const int64_t *dims, leat_rng *rng, float *out,
                        leat_error *err) {
    const side *s = initial;
    const config *c = s->layer;
    const int64_t period = c->frame_length - (c->periodic ? 0 : 1), fft = (c->bins - 1) * 2;
    const double scale = window_scale(c, c->frame_length == 1 ? 0 : period);
    (void)rank, (void)rng, (void)err;
    for (int64_t t = 0; t < dims[0]; ++t) {
        const double weight = leati_window_at(c->window, t, dims[0] == 1 ? 0 : period) / scale;
        for (int64_t bin = 0; bin < dims[2]; ++bin) {
            const double angle = fft > 0 ? -2 * pi * (double)((t * bin) % fft) / (double)fft : 0;
            *out++ = (float)(weight * (s->imaginary ? sin(angle) : cos(angle)));
        }
    }
    return LEAT_OK;
}

static const leati_initializer_type kernel_type = {.class_name = "a Fourier transform",
                                                   .seed_offset = SIZE_MAX,
                                                   .draw = draw};

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    config *c = layer->config;
    (void)input_count, (void)inputs;
    for (int i = 0; i < 2; ++i) {
        if (c->mode == (i == 0 ? MODE_IMAG : MODE_REAL)) continue;
        c->sides[i] = (side){c, i == 1};
        c->initializers[i] = (leati_initializer){.type = &kernel_type, .config = &c->sides[i]};
        const leati_weight_spec spec = {.name = i == 0 ? "real_kernel" : "imag_kernel",
                                        .rank = 3,
                                        .dims = {c->frame_length, 1, c->bins},
                                        .initializer = &c->initializers[i]};
        LEATI_TRY(leati_layer_add_weight(layer, &spec, err));
    }
    return LEAT_OK;
}

/* ---- Lowering ---- */

/* Converts (frames, batch * channels, bins) to the shape of the output. */
static leati_value arranged(const config *c, leati_graph *g, leati_value y, const leati_shape *output,
                            int64_t steps, int64_t batch, int64_t channels) {
    static const int32_t orders[2][2][4] = {{{1, 2, 3, 0}, {1, 2, 0, 3}}, {{1, 0, 2, 3}, {1, 0, 3, 2}}};
    const int64_t bins = leati_graph_desc(g, y)->shape[1];
    const int64_t dims[] = {steps, batch, channels, bins};
    y = leati_transpose(g, leati_reshape(g, y, 4, dims),
                        orders[c->data_format == LEATI_CHANNELS_LAST][c->expand_dims]);
    return leati_reshape(g, y, output->rank, output->dims);
}

/* Returns power + power without the first and the last frequency. */
static leati_value both_sides(leati_graph *g, leati_value power, int64_t bins) {
    const int64_t one = 1, inner = bins - 2;
    if (inner < 1) return power;
    const leati_value parts[] = {leati_full(g, 1, &one, 1), leati_full(g, 1, &inner, 2),
                                 leati_full(g, 1, &one, 1)};
    return leati_mul(g, power, leati_concat(g, 3, parts, 0));
}

static leati_value result_of(const config *c, leati_graph *g, const leati_value *sides, int count) {
    if (count == 1) return sides[0];
    if (c->mode == MODE_STFT) return leati_concat(g, 2, sides, 1);
    if (c->mode == MODE_ANGLE) return leati_angle_of(g, sides[1], sides[0]);
    leati_value power = leati_add(g, leati_function_of(g, sides[0], LEATI_FN_SQUARE),
                                  leati_function_of(g, sides[1], LEATI_FN_SQUARE));
    if (c->mode == MODE_PSD) return both_sides(g, power, c->bins);
    const leati_value least = leati_scalar(g, LEATI_EPSILON);
    leati_value y = leati_function_of(g, leati_binary_of(g, LEATI_MAX, power, least), LEATI_FN_SQRT);
    if (c->mode == MODE_MAGNITUDE) return y;
    return leati_function_of(g, leati_binary_of(g, LEATI_MAX, y, least), LEATI_FN_LOG);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    static const int32_t channels_first[] = {0, 2, 1};
    const config *c = layer->config;
    const leati_slide slide = {&c->kernel, &c->strides, NULL, c->padding};
    leati_graph *g = lowering->graph;
    const leati_desc input = *leati_graph_desc(g, inputs[0]);
    leati_shape shape = {.rank = input.rank}, output;
    leat_error err = {0};
    int output_count = 1;
    memcpy(shape.dims, input.shape, sizeof shape.dims);
    leat_status status = infer(layer, input_count, &shape, &output, &output_count, &err);
    if (status != LEAT_OK) {
        outputs[0] = leati_graph_fail(g, status, "%s", err.message);
        return;
    }
    leati_value x = input.dtype == LEAT_F32 ? inputs[0] : leati_cast(g, inputs[0], LEAT_F32, 1);
    if (c->data_format == LEATI_CHANNELS_LAST) x = leati_transpose(g, x, channels_first);
    const leati_desc signal = *leati_graph_desc(g, x);
    const int64_t batch = signal.shape[0], channels = signal.shape[1];
    x = leati_reshape(g, x, 3, (int64_t[]){batch * channels, signal.shape[2], 1});
    const leati_attrs attrs = {
        .conv = {.window = leati_slide_window(&slide, leati_graph_desc(g, x)), .groups = 1}};
    leati_value frames = leati_graph_node(g, LEATI_OP_PATCHES, &attrs, 1, &x, NULL);
    const int64_t steps = leati_graph_desc(g, frames)->shape[0], rows = steps * batch * channels;
    frames = leati_reshape(g, frames, 2, (int64_t[]){rows, c->frame_length});
    leati_value sides[2];
    const int count = c->mode == MODE_REAL || c->mode == MODE_IMAG ? 1 : 2;
    for (int i = 0; i < count; ++i) {
        leati_value kernel = leati_layer_weight(layer, lowering, i);
        kernel = leati_reshape(g, kernel, 2, (int64_t[]){c->frame_length, c->bins});
        sides[i] = leati_matmul(g, frames, false, kernel, false, LEATI_NONE);
    }
    outputs[0] = arranged(c, g, result_of(c, g, sides, count), &output, steps, batch, channels);
}

LEATI_LAYER_TYPE(stft_spectrogram, "STFTSpectrogram", "stft_spectrogram", config, fields, LEATI_ONE_INPUT,
                 .check = check, .infer = infer, .build = build, .lower = lower);
