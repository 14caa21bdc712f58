/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of an image's coordinates, and linear maps of its values.
 * Sources: keras.layers.RandomRotation, RandomTranslation, RandomZoom, RandomShear, RandomContrast, RandomBrightness,
 * RandomInvert, RandomColorDegeneration, RandomPerspective, RandomElasticTransform; TensorFlow's
 * ImageProjectiveTransformV3; keras.ops.image.map_coordinates.  Room: nn. */
#include "nn/layers/preprocessing/image_change_kinds.h"

#include <math.h>
#include <string.h>

static const float radians_per_degree = 0.017453292519943295f;

/* ---- Maps of coordinates ---- */

static leati_image_map map_of(const leati_change *c, const leati_image_size *size) {
    const float last_column = (float)size->width - 1, last_row = (float)size->height - 1;
    leati_image_map map = {1, 0, 0, 0, 1, 0, 0, 0};
    if (c->kind == LEATI_ELASTIC) return map;
    if (c->kind == LEATI_PERSPECTIVE) {
        leati_perspective_map(c, size, &map);
        return map;
    }
    if (c->kind == LEATI_TRANSLATE)
        return (leati_image_map){.a0 = 1, .a2 = -c->amount[1], .b1 = 1, .b2 = -c->amount[0]};
    if (c->kind == LEATI_ZOOM)
        return (leati_image_map){.a0 = c->amount[1],
                                 .a2 = last_column / 2 * (1 - c->amount[1]),
                                 .b1 = c->amount[0],
                                 .b2 = last_row / 2 * (1 - c->amount[0])};
    if (c->kind == LEATI_SHEAR)
        return (leati_image_map){.a0 = 1, .a1 = c->amount[1], .b0 = c->amount[0], .b1 = 1};
    const float angle = c->amount[0] * radians_per_degree, cosine = cosf(angle), sine = sinf(angle);
    const float x = 0.5f * last_column, y = 0.5f * last_row;
    return (leati_image_map){.a0 = cosine,
                             .a1 = -sine,
                             .a2 = x - x * cosine - y * -sine,
                             .b0 = sine,
                             .b1 = cosine,
                             .b2 = y - x * sine - y * cosine};
}

static float limited(float x, float highest) {
    return x < 0 ? 0 : x > highest ? highest : x;
}

/* Extends the image by mirror images of itself; the pixels at the edges occur twice. */
static float reflected(float x, int64_t length) {
    const int64_t period = 2 * length;
    if (length <= 1) return 0;
    if (x < 0) {
        x += (float)(period * (int64_t)(-x / (float)period));
        x = x < (float)-length ? x + (float)period : -x - 1;
    } else if (x > (float)(length - 1)) {
        x -= (float)(period * (int64_t)(x / (float)period));
        if (x >= (float)length) x = (float)period - x - 1;
    }
    return limited(x, (float)(length - 1));
}

/* Extends the image by copies of itself. */
static float wrapped(float x, int64_t length) {
    const float last = (float)(length - 1);
    if (length <= 1) return 0;
    if (x < 0)
        x += (float)(length * ((int64_t)(-x / last) + 1));
    else if (x > last)
        x -= (float)(length * (int64_t)(x / last));
    return limited(x, last);
}

static float inside(const leati_change *c, float x, int64_t length) {
    if (c->kind == LEATI_PERSPECTIVE) return x; /* Keras has only `constant` */
    switch (c->fill_mode) {
    case LEATI_FILL_REFLECT: return reflected(x, length);
    case LEATI_FILL_WRAP: return wrapped(x, length);
    case LEATI_FILL_NEAREST: return limited(x, (float)(length - 1));
    default: return x;
    }
}

/* The pixels of the image that make one pixel of the result, and their weights; -1: outside of the image. */
typedef struct sources {
    int count;
    int64_t index[4];
    float weight[4];
} sources;

static int64_t index_of(const leati_image_size *size, float y, float x) {
    if (!(y >= 0 && y < (float)size->height && x >= 0 && x < (float)size->width)) return -1;
    return ((int64_t)y * size->width + (int64_t)x) * size->channels;
}

/* The pixels around (x, y) as keras.ops.image.map_coordinates takes them: whole positions are brought inside. */
static sources elastic_sources(const leati_change *c, const leati_image_size *size, float x, float y) {
    const float left = c->bilinear ? floorf(x) : rintf(x), top = c->bilinear ? floorf(y) : rintf(y);
    const float right = x - left, bottom = y - top;
    sources from = {.count = c->bilinear ? 4 : 1, .weight = {1}};
    for (int i = 0; i < from.count; ++i) {
        const int64_t row = leati_elastic_index(c, (int64_t)top + i / 2, size->height);
        const int64_t column = leati_elastic_index(c, (int64_t)left + i % 2, size->width);
        from.index[i] = row < 0 || column < 0 ? -1 : (row * size->width + column) * size->channels;
        if (c->bilinear) from.weight[i] = (i / 2 ? bottom : 1 - bottom) * (i % 2 ? right : 1 - right);
    }
    return from;
}

static sources around(const leati_image_size *size, float x, float y) {
    const float left = floorf(x), top = floorf(y), right = left + 1, bottom = top + 1;
    return (sources){4,
                     {index_of(size, top, left), index_of(size, top, right), index_of(size, bottom, left),
                      index_of(size, bottom, right)},
                     {(bottom - y) * (right - x), (bottom - y) * (x - left), (y - top) * (right - x),
                      (y - top) * (x - left)}};
}

static sources sources_of(const leati_change *c, const leati_image_size *size, const leati_image_map *map,
                          int64_t row, int64_t column) {
    const float r = (float)row, k = (float)column;
    if (c->kind == LEATI_ELASTIC) {
        const float shift = c->field[row * size->width + column];
        return elastic_sources(c, size, k + shift, r + shift);
    }
    const float divisor = map->c0 * k + map->c1 * r + 1;
    if (divisor == 0) return (sources){1, {-1}, {1}};
    const float x = inside(c, (map->a0 * k + map->a1 * r + map->a2) / divisor, size->width);
    const float y = inside(c, (map->b0 * k + map->b1 * r + map->b2) / divisor, size->height);
    return c->bilinear ? around(size, x, y) : (sources){1, {index_of(size, roundf(y), roundf(x))}, {1}};
}

static float value_at(const leati_change *c, const sources *from, const float *src, int64_t channel) {
    float sum = 0;
    for (int i = 0; i < from->count; ++i)
        sum += from->weight[i] * (from->index[i] < 0 ? c->fill_value : src[from->index[i] + channel]);
    return sum;
}

/* Returns true if (x, y) has a pixel of the image on each side. */
static inline bool is_between(const leati_image_size *size, float x, float y) {
    return x >= 0 && x < (float)(size->width - 1) && y >= 0 && y < (float)(size->height - 1);
}

/* Writes the pixel at (x, y), which is_between() others: the same sum as that of value_at(). */
static inline void interpolate(const leati_image_size *size, int64_t channels, float x, float y,
                               const float *src, float *dst) {
    const int32_t column = (int32_t)x, row = (int32_t)y;
    const float right = (float)column + 1 - x, left = x - (float)column;
    const float bottom = (float)row + 1 - y, top = y - (float)row;
    const float *above = src + (row * size->width + column) * channels,
                *below = above + size->width * channels;
    for (int64_t i = 0; i < channels; ++i)
        dst[i] = bottom * right * above[i] + bottom * left * above[channels + i] + top * right * below[i] +
                 top * left * below[channels + i];
}

/* Writes a row of a bilinear change whose map is affine.  `channels` are those of `size`, for which the compiler may
 * know the number. */
static inline void interpolate_row(const leati_change *c, const leati_image_size *size,
                                   const leati_image_map *map, int64_t row, int64_t channels,
                                   const float *src, float *dst) {
    const float x0 = map->a1 * (float)row, y0 = map->b1 * (float)row;
    for (int64_t column = 0; column < size->width; ++column, dst += channels) {
        float x = map->a0 * (float)column + x0 + map->a2, y = map->b0 * (float)column + y0 + map->b2;
        if (!is_between(size, x, y)) {
            x = inside(c, x, size->width);
            y = inside(c, y, size->height);
        }
        if (is_between(size, x, y)) {
            interpolate(size, channels, x, y, src, dst);
            continue;
        }
        const sources from = around(size, x, y);
        for (int64_t i = 0; i < channels; ++i) dst[i] = value_at(c, &from, src, i);
    }
}

static void interpolate_image(const leati_change *c, const leati_image_size *size, const leati_image_map *map,
                              const float *src, float *dst) {
    for (int64_t row = 0; row < size->height; ++row, dst += size->width * size->channels)
        switch (size->channels) {
        case 1: interpolate_row(c, size, map, row, 1, src, dst); break;
        case 3: interpolate_row(c, size, map, row, 3, src, dst); break;
        default: interpolate_row(c, size, map, row, size->channels, src, dst);
        }
}

static void map_image(const leati_change *c, const leati_image_size *size, const float *src, float *dst) {
    const leati_image_map map = map_of(c, size);
    if (c->bilinear && c->kind != LEATI_ELASTIC && c->kind != LEATI_PERSPECTIVE) {
        interpolate_image(c, size, &map, src, dst);
        return;
    }
    for (int64_t row = 0; row < size->height; ++row)
        for (int64_t column = 0; column < size->width; ++column) {
            const sources from = sources_of(c, size, &map, row, column);
            for (int64_t channel = 0; channel < size->channels; ++channel) {
                const float value = value_at(c, &from, src, channel);
                *dst++ = c->kind == LEATI_ELASTIC ? leati_limit(c, value) : value;
            }
        }
}

static void map_image_back(const leati_change *c, const leati_image_size *size, const float *src,
                           const float *diff_dst, float *diff_src) {
    const leati_image_map map = map_of(c, size);
    for (int64_t row = 0; row < size->height; ++row)
        for (int64_t column = 0; column < size->width; ++column, diff_dst += size->channels) {
            const sources from = sources_of(c, size, &map, row, column);
            for (int64_t channel = 0; channel < size->channels; ++channel) {
                if (c->kind == LEATI_ELASTIC && !leati_within(c, value_at(c, &from, src, channel))) continue;
                for (int i = 0; i < from.count; ++i)
                    if (from.index[i] >= 0)
                        diff_src[from.index[i] + channel] += from.weight[i] * diff_dst[channel];
            }
        }
}

/* ---- Values ---- */

static float mean_of(const leati_image_size *size, const float *src, int64_t channel) {
    const int64_t pixels = size->height * size->width;
    double sum = 0;
    for (int64_t i = 0; i < pixels; ++i) sum += (double)src[i * size->channels + channel];
    return (float)(sum / (double)pixels);
}

/* The value before the limits: factor x + addend. */
static void line_of(const leati_change *c, const leati_image_size *size, const float *src, int64_t channel,
                    float *factor, float *addend) {
    const bool contrast = c->kind == LEATI_CONTRAST;
    *factor = contrast ? c->amount[0] : 1;
    *addend = contrast ? (1 - c->amount[0]) * mean_of(size, src, channel) : c->amount[0];
}

static void change_values(const leati_change *c, const leati_image_size *size, const float *src, float *dst) {
    const int64_t count = size->height * size->width * size->channels;
    for (int64_t channel = 0; channel < size->channels; ++channel) {
        float factor, addend;
        line_of(c, size, src, channel, &factor, &addend);
        for (int64_t i = channel; i < count; i += size->channels)
            dst[i] = leati_limit(c, factor * src[i] + addend);
    }
}

/* No gradient flows where a value was limited. */
static void change_values_back(const leati_change *c, const leati_image_size *size, const float *src,
                               const float *diff_dst, float *diff_src) {
    const int64_t pixels = size->height * size->width, count = pixels * size->channels;
    for (int64_t channel = 0; channel < size->channels; ++channel) {
        float factor, addend;
        double sum = 0;
        line_of(c, size, src, channel, &factor, &addend);
        for (int64_t i = channel; i < count; i += size->channels) {
            const float y = factor * src[i] + addend;
            const float diff = leati_within(c, y) ? diff_dst[i] : 0;
            diff_src[i] = factor * diff;
            sum += (double)diff;
        }
        const float shared = c->kind == LEATI_CONTRAST ? (float)((1 - factor) * sum / (double)pixels) : 0;
        for (int64_t i = channel; i < count; i += size->channels) diff_src[i] += shared;
    }
}

/* ---- Values of three channels ---- */

static const float grey_weights[] = {0.2989f, 0.5870f, 0.1140f};

static float grey_of(const float *pixel) {
    return grey_weights[0] * pixel[0] + grey_weights[1] * pixel[1] + grey_weights[2] * pixel[2];
}

static float faded(const leati_change *c, float x, float grey) {
    return x + c->amount[0] * (grey - x);
}

/* An image of one channel is its own grey image. */
static void fade(const leati_change *c, const leati_image_size *size, const float *src, float *dst) {
    const int64_t count = size->height * size->width * size->channels;
    for (int64_t i = 0; i < count; ++i) {
        const float grey = size->channels == 3 ? grey_of(src + i / 3 * 3) : src[i];
        dst[i] = leati_limit(c, faded(c, src[i], grey));
    }
}

static void fade_back(const leati_change *c, const leati_image_size *size, const float *src,
                      const float *diff_dst, float *diff_src) {
    const int64_t channels = size->channels, pixels = size->height * size->width;
    for (int64_t pixel = 0; pixel < pixels;
         ++pixel, src += channels, diff_dst += channels, diff_src += channels) {
        const float grey = channels == 3 ? grey_of(src) : src[0];
        float sum = 0;
        for (int64_t i = 0; i < channels; ++i) {
            const float y = faded(c, src[i], grey);
            diff_src[i] = leati_within(c, y) ? diff_dst[i] : 0;
            sum += diff_src[i];
        }
        for (int64_t i = 0; i < channels; ++i)
            diff_src[i] += c->amount[0] * ((channels == 3 ? grey_weights[i] : 1) * sum - diff_src[i]);
    }
}

static void invert(const leati_change *c, const leati_image_size *size, const float *src, float *dst) {
    const int64_t count = size->height * size->width * size->channels;
    for (int64_t i = 0; i < count; ++i) dst[i] = c->amount[0] > 0 ? c->highest - src[i] : src[i];
}

static void invert_back(const leati_change *c, const leati_image_size *size, const float *diff_dst,
                        float *diff_src) {
    const int64_t count = size->height * size->width * size->channels;
    for (int64_t i = 0; i < count; ++i) diff_src[i] = c->amount[0] > 0 ? -diff_dst[i] : diff_dst[i];
}

/* ---- All changes ---- */

static bool moves_pixels(const leati_change *c) {
    return c->kind == LEATI_ROTATE || c->kind == LEATI_TRANSLATE || c->kind == LEATI_ZOOM ||
           c->kind == LEATI_SHEAR || c->kind == LEATI_PERSPECTIVE || c->kind == LEATI_ELASTIC;
}

void leati_change_image(const leati_change *change, const leati_image_size *size, const float *src,
                        float *dst) {
    switch (change->kind) {
    case LEATI_INVERT: invert(change, size, src, dst); break;
    case LEATI_FADE: fade(change, size, src, dst); break;
    case LEATI_CONTRAST:
    case LEATI_BRIGHTEN: change_values(change, size, src, dst); break;
    case LEATI_HUE:
    case LEATI_SATURATION: leati_change_colors(change, size, src, dst); break;
    case LEATI_POSTERIZE: leati_posterize(change, size, src, dst); break;
    case LEATI_SHARPEN:
    case LEATI_BLUR: leati_filter_image(change, size, src, dst); break;
    case LEATI_ERASE: leati_erase(change, size, src, dst); break;
    default: map_image(change, size, src, dst);
    }
}

void leati_change_image_back(const leati_change *change, const leati_image_size *size, const float *src,
                             const float *diff_dst, float *diff_src) {
    const size_t count = (size_t)(size->height * size->width * size->channels);
    if (moves_pixels(change) || change->kind == LEATI_POSTERIZE || change->kind == LEATI_SHARPEN ||
        change->kind == LEATI_BLUR)
        memset(diff_src, 0, count * sizeof *diff_src);
    switch (change->kind) {
    case LEATI_INVERT: invert_back(change, size, diff_dst, diff_src); break;
    case LEATI_FADE: fade_back(change, size, src, diff_dst, diff_src); break;
    case LEATI_CONTRAST:
    case LEATI_BRIGHTEN: change_values_back(change, size, src, diff_dst, diff_src); break;
    case LEATI_HUE:
    case LEATI_SATURATION: leati_change_colors_back(change, size, src, diff_dst, diff_src); break;
    case LEATI_POSTERIZE: break; /* the gradient is 0 */
    case LEATI_SHARPEN:
    case LEATI_BLUR: leati_filter_image_back(change, size, src, diff_dst, diff_src); break;
    case LEATI_ERASE: leati_erase_back(change, size, diff_dst, diff_src); break;
    default: map_image_back(change, size, src, diff_dst, diff_src);
    }
}
