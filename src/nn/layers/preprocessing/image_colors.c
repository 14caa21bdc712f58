/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of an image's colours by way of hue, saturation and value, and fewer colours.
 * Sources: keras.layers.RandomHue, RandomSaturation, RandomPosterization; TensorFlow's RGBToHSV.  Room: nn. */
#include <math.h>

#include "nn/layers/preprocessing/image_change_kinds.h"

/* ---- RandomHue, RandomSaturation ---- */

/* A number and its derivatives with respect to the three values of a pixel. */
typedef struct dual {
    float value, slope[3];
} dual;

typedef struct hsv {
    dual hue, saturation, value;
} hsv;

/* hue = (x[first] - x[second]) / (6 range) + turns, where first and second are the channels after the largest one. */
static void set_hue(dual *hue, const float *x, int largest, const dual *range) {
    const int first = (largest + 1) % 3, second = (largest + 2) % 3;
    const float norm = 1 / (6 * range->value), distance = x[first] - x[second];
    hue->value = norm * distance + (float)largest * 2 / 6;
    for (int i = 0; i < 3; ++i)
        hue->slope[i] = norm * ((float)(i == first) - (float)(i == second)) -
                        norm * distance / range->value * range->slope[i];
    if (hue->value < 0) ++hue->value;
}

static hsv hsv_of(const float x[3]) {
    hsv result = {0};
    const float most = fmaxf(fmaxf(x[0], x[1]), x[2]), least = fminf(fminf(x[0], x[1]), x[2]);
    const int largest = most == x[0] ? 0 : most == x[1] ? 1 : 2, smallest = least == x[2] ? 2 : least == x[1];
    dual range = {.value = most - least};
    result.value.value = most;
    result.value.slope[largest] = 1;
    range.slope[largest] += 1;
    range.slope[smallest] -= 1;
    if (range.value > 0) set_hue(&result.hue, x, largest, &range);
    if (most <= 0) return result;
    result.saturation.value = range.value / most;
    for (int i = 0; i < 3; ++i)
        result.saturation.slope[i] =
            (range.slope[i] - result.saturation.value * result.value.slope[i]) / most;
    return result;
}

/* Returns the share of a channel in a full colour of that hue, and the derivative in *slope. */
static float share_of(float hue, int channel, float *slope) {
    const float turn = (hue - floorf(hue)) * 6;
    const float center = channel == 0 ? 3 : channel == 1 ? 2 : 4, sign = channel == 0 ? 1 : -1;
    const float share = channel == 0 ? fabsf(turn - center) - 1 : 2 - fabsf(turn - center);
    *slope = share <= 0 || share >= 1 ? 0 : turn > center ? 6 * sign : -6 * sign;
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

static dual channel_of(const hsv *x, int channel) {
    float slope;
    const float share = share_of(x->hue.value, channel, &slope), s = x->saturation.value;
    const float level = 1 - s + s * share;
    dual result = {.value = x->value.value * level};
    for (int i = 0; i < 3; ++i)
        result.slope[i] = x->value.slope[i] * level + x->value.value * (x->saturation.slope[i] * (share - 1) +
                                                                        s * slope * x->hue.slope[i]);
    return result;
}

/* Computes the three changed values of a pixel, with derivatives.  Keras scales values for RandomHue from 0 to 1, and
 * limits them then; in RandomSaturation it limits the saturation by the range of values. */
static void change_pixel(const leati_change *c, const float *src, dual out[3]) {
    const bool turns = c->kind == LEATI_HUE;
    const float low = turns ? c->lowest : 0, range = turns ? c->highest - c->lowest : 1;
    const float x[3] = {(src[0] - low) / range, (src[1] - low) / range, (src[2] - low) / range};
    hsv colour = hsv_of(x);
    if (turns) {
        float *hue = &colour.hue.value;
        *hue += c->amount[0];
        *hue = *hue > 1 ? *hue - 1 : *hue < 0 ? *hue + 1 : *hue;
    } else {
        dual *s = &colour.saturation;
        const float product = s->value * c->amount[0];
        s->value = leati_limit(c, product);
        for (int i = 0; i < 3; ++i) s->slope[i] *= leati_within(c, product) ? c->amount[0] : 0;
    }
    for (int i = 0; i < 3; ++i) {
        out[i] = channel_of(&colour, i);
        if (!turns) continue;
        const bool inside = out[i].value >= 0 && out[i].value <= 1;
        out[i].value = fminf(fmaxf(out[i].value, 0), 1) * range + low;
        for (int k = 0; k < 3 && !inside; ++k) out[i].slope[k] = 0;
    }
}

void leati_change_colors(const leati_change *c, const leati_image_size *size, const float *src, float *dst) {
    const int64_t pixels = size->height * size->width;
    for (int64_t pixel = 0; pixel < pixels; ++pixel, src += 3, dst += 3) {
        dual changed[3];
        change_pixel(c, src, changed);
        for (int i = 0; i < 3; ++i) dst[i] = changed[i].value;
    }
}

/* The slopes are those of scaled values with respect to scaled values, and so of values with respect to values. */
void leati_change_colors_back(const leati_change *c, const leati_image_size *size, const float *src,
                              const float *diff_dst, float *diff_src) {
    const int64_t pixels = size->height * size->width;
    for (int64_t pixel = 0; pixel < pixels; ++pixel, src += 3, diff_dst += 3, diff_src += 3) {
        dual changed[3];
        change_pixel(c, src, changed);
        for (int i = 0; i < 3; ++i)
            diff_src[i] = diff_dst[0] * changed[0].slope[i] + diff_dst[1] * changed[1].slope[i] +
                          diff_dst[2] * changed[2].slope[i];
    }
}

/* ---- RandomPosterization ---- */

/* Values outside of the range wrap around, as numbers do that are cast to bytes. */
void leati_posterize(const leati_change *c, const leati_image_size *size, const float *src, float *dst) {
    const int64_t count = size->height * size->width * size->channels;
    const unsigned mask = 255u << (unsigned)c->amount[0] & 255u;
    const float range = c->highest - c->lowest;
    const bool bytes = c->lowest == 0 && c->highest == 255;
    for (int64_t i = 0; i < count; ++i) {
        const float level = bytes ? src[i] : (src[i] - c->lowest) / range * 255;
        const float kept = level > -1e9f && level < 1e9f ? level : 0;
        const float fewer = (float)((unsigned)(int64_t)kept & mask);
        dst[i] = bytes ? fewer : fewer / 255 * range + c->lowest;
    }
}
