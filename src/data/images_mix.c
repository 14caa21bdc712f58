/* SPDX-License-Identifier: Apache-2.0 */
/* Mixes the samples of a batch with each other, as Keras's MixUp and CutMix do.  Room: data. */
#include "data/images_mix.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

leat_status leati_mix_read(leati_mix *out, const char *text, leat_error *err) {
    const bool cut = strncmp(text, "cutmix", 6) == 0;
    const char *rest = cut ? text + 6 : text + 5;
    *out = (leati_mix){cut ? LEATI_MIX_CUT : LEATI_MIX_UP, cut ? 1 : 0.2};
    bool valid = cut || strncmp(text, "mixup", 5) == 0;
    if (valid && *rest == '(') {
        rest = leati_read_decimal(rest + 1, &out->alpha);
        valid = rest && *rest == ')';
        rest += valid;
    }
    if (valid && *rest == '\0' && out->alpha > 0 && out->alpha <= (cut ? 1 : 10)) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL,
                      "mix=%s: expected mixup, mixup(ALPHA) with ALPHA up to 10, cutmix or cutmix(FACTOR) "
                      "with FACTOR up to 1",
                      text);
}

/* Draws from the beta distribution with both parameters alpha (Jöhnk 1964): two powers of uniform numbers, until their
 * sum is at most 1; the result is the share of the first. */
static double draw_beta(double alpha, leat_rng *rng) {
    double first = 0, second = 0;
    do {
        first = log(1 - leat_rng_uniform(rng)) / alpha;
        second = log(1 - leat_rng_uniform(rng)) / alpha;
    } while (exp(first) + exp(second) > 1);
    return 1 / (1 + exp(second - first));
}

/* Fills `order` with a random permutation (Fisher and Yates). */
static void draw_order(int64_t *order, int64_t count, leat_rng *rng) {
    for (int64_t i = 0; i < count; ++i) order[i] = i;
    for (int64_t i = count - 1; i > 0; --i) {
        const int64_t other = (int64_t)leat_rng_below(rng, (uint64_t)i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

/* ---- Mixing two samples ---- */

static void mix_bytes(uint8_t *dst, const uint8_t *other, size_t count, float weight) {
    for (size_t i = 0; i < count; ++i) dst[i] = (uint8_t)(weight * dst[i] + (1 - weight) * other[i] + 0.5f);
}

static void mix_floats(float *dst, const float *other, size_t count, float weight) {
    for (size_t i = 0; i < count; ++i) dst[i] = weight * dst[i] + (1 - weight) * other[i];
}

/* A box of a picture: x0 <= x < x1, y0 <= y < y1. */
typedef struct box {
    double x0, x1, y0, y1;
} box;

static box draw_box(double ratio, const leat_tensor *pictures, leat_rng *rng) {
    const double width = ratio * (double)pictures->shape[2], height = ratio * (double)pictures->shape[1];
    box out;
    out.x0 = leat_rng_uniform(rng) * ((double)pictures->shape[2] - width);
    out.x1 = out.x0 + width;
    out.y0 = leat_rng_uniform(rng) * ((double)pictures->shape[1] - height);
    out.y1 = out.y0 + height;
    return out;
}

/* Copies the box of another picture. */
static void cut(unsigned char *dst, const unsigned char *other, const leat_tensor *pictures, const box *b) {
    const size_t pixel = (size_t)pictures->shape[3] * leat_dtype_bytes(pictures->dtype);
    const int64_t width = pictures->shape[2], first = (int64_t)ceil(b->x0), last = (int64_t)ceil(b->x1);
    const int64_t end = last < width ? last : width;
    for (int64_t y = (int64_t)ceil(b->y0); y < pictures->shape[1] && (double)y < b->y1; ++y) {
        const size_t at = (size_t)(y * width + first) * pixel;
        if (end > first) memcpy(dst + at, other + at, (size_t)(end - first) * pixel);
    }
}

/* ---- A batch ---- */

/* Copies of what the batch had before, and the drawn permutation. */
typedef struct originals {
    unsigned char *pictures;
    float *labels;
    int64_t *order;
} originals;

static void mix_all(const leati_mix *mix, leat_rng *rng, leat_batch *batch, const originals *before) {
    const leat_tensor *pictures = &batch->tensors[0], *labels = &batch->tensors[1];
    const size_t bytes = leat_tensor_bytes(pictures) / (size_t)batch->size;
    const size_t classes = leat_tensor_bytes(labels) / (size_t)batch->size / sizeof(float);
    const double alpha = mix->mode == LEATI_MIX_CUT ? leat_rng_uniform(rng) * mix->alpha + 1e-6 : mix->alpha;
    for (int64_t i = 0; i < batch->size; ++i) {
        unsigned char *dst = (unsigned char *)pictures->data + (size_t)i * bytes;
        const unsigned char *other = before->pictures + (size_t)before->order[i] * bytes;
        double weight = draw_beta(alpha, rng);
        if (mix->mode == LEATI_MIX_CUT) {
            const box b = draw_box(sqrt(1 - weight), pictures, rng);
            cut(dst, other, pictures, &b);
        } else if (pictures->dtype == LEAT_U8) {
            mix_bytes(dst, other, bytes, (float)weight);
        } else {
            mix_floats((float *)(void *)dst, (const float *)(const void *)other, bytes / sizeof(float),
                       (float)weight);
        }
        mix_floats((float *)labels->data + (size_t)i * classes,
                   before->labels + (size_t)before->order[i] * classes, classes, (float)weight);
    }
}

leat_status leati_mix_batch(const leati_mix *mix, const leat_rng *rng, leat_batch *batch, leat_error *err) {
    originals before = {leati_memdup(batch->tensors[0].data, leat_tensor_bytes(&batch->tensors[0])),
                        leati_memdup(batch->tensors[1].data, leat_tensor_bytes(&batch->tensors[1])),
                        leati_calloc((size_t)batch->size, sizeof(int64_t))};
    leat_rng stream = *rng;
    leat_status status = LEAT_OK;
    if (before.pictures && before.labels && before.order) {
        draw_order(before.order, batch->size, &stream);
        mix_all(mix, &stream, batch, &before);
    } else {
        status = leati_fail_memory(err, leat_tensor_bytes(&batch->tensors[0]), "the mixing of a batch");
    }
    leati_free(before.pictures);
    leati_free(before.labels);
    leati_free(before.order);
    return status;
}
