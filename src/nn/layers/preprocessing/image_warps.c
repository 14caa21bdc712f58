/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinates of RandomPerspective and RandomElasticTransform.
 * Sources: keras.ops.image.perspective_transform, elastic_transform, map_coordinates.  Room: nn. */
#include <math.h>

#include "nn/layers/preprocessing/image_change_kinds.h"

/* ---- RandomPerspective ---- */

enum { UNKNOWNS = 8 };

/* Solves 8 equations, each with its right side as the last number, by Gauss's elimination.  Returns false if there is
 * not exactly one solution. */
static bool solve(double m[UNKNOWNS][UNKNOWNS + 1], double out[UNKNOWNS]) {
    for (int column = 0; column < UNKNOWNS; ++column) {
        int pivot = column;
        for (int row = column + 1; row < UNKNOWNS; ++row)
            if (fabs(m[row][column]) > fabs(m[pivot][column])) pivot = row;
        if (!(fabs(m[pivot][column]) > 1e-12)) return false;
        for (int i = 0; i <= UNKNOWNS; ++i) {
            const double first = m[column][i];
            m[column][i] = m[pivot][i];
            m[pivot][i] = first;
        }
        for (int row = column + 1; row < UNKNOWNS; ++row) {
            const double factor = m[row][column] / m[column][column];
            for (int i = column; i <= UNKNOWNS; ++i) m[row][i] -= factor * m[column][i];
        }
    }
    for (int row = UNKNOWNS - 1; row >= 0; --row) {
        out[row] = m[row][UNKNOWNS];
        for (int i = row + 1; i < UNKNOWNS; ++i) out[row] -= m[row][i] * out[i];
        out[row] /= m[row][row];
    }
    return true;
}

void leati_perspective_map(const leati_change *c, const leati_image_size *size, leati_image_map *map) {
    double m[UNKNOWNS][UNKNOWNS + 1] = {{0}}, out[UNKNOWNS];
    bool moves = false;
    for (int corner = 0; corner < 4; ++corner) {
        const double x = corner % 2 ? (double)(size->width - 1) : 0;
        const double y = corner / 2 ? (double)(size->height - 1) : 0;
        const double to_x = x + x * (double)c->amount[2 * corner];
        const double to_y = y + y * (double)c->amount[2 * corner + 1];
        const double first[] = {to_x, to_y, 1, 0, 0, 0, -x * to_x, -x * to_y, x};
        const double second[] = {0, 0, 0, to_x, to_y, 1, -y * to_x, -y * to_y, y};
        for (int i = 0; i <= UNKNOWNS; ++i) {
            m[2 * corner][i] = first[i];
            m[2 * corner + 1][i] = second[i];
        }
        moves = moves || to_x != x || to_y != y;
    }
    if (moves && solve(m, out))
        *map = (leati_image_map){(float)out[0], (float)out[1], (float)out[2], (float)out[3],
                                 (float)out[4], (float)out[5], (float)out[6], (float)out[7]};
}

/* ---- RandomElasticTransform ---- */

/* Blurs along an axis whose elements are `stride` apart; zeros lie around the image. */
static void blur_axis(const float *src, float *dst, int64_t length, int64_t stride, int64_t radius,
                      float sigma) {
    double sum = 0;
    for (int64_t k = -radius; k <= radius; ++k) sum += exp(-0.5 * (double)(k * k) / (double)(sigma * sigma));
    for (int64_t i = 0; i < length; ++i) dst[i * stride] = 0;
    for (int64_t k = -radius; k <= radius; ++k) {
        const float weight = (float)(exp(-0.5 * (double)(k * k) / (double)(sigma * sigma)) / sum);
        for (int64_t i = k < 0 ? -k : 0; i < length && i + k < length; ++i)
            dst[i * stride] += weight * src[(i + k) * stride];
    }
}

/* In Keras the displacements in x and in y are the same numbers, as both are drawn with one seed. */
void leati_elastic_field(const leati_change *change, const leati_image_size *size, float *noise,
                         float *field) {
    const int64_t h = size->height, w = size->width, shorter = h < w ? h : w, longer = h < w ? w : h;
    const float alpha = (float)longer * (0.1f * change->amount[1]);
    const float sigma = (float)shorter * (0.05f * change->amount[1]);
    const int64_t radius = 3 * (int64_t)sigma;
    if (change->amount[0] == 0 || !(sigma > 0)) {
        for (int64_t i = 0; i < h * w; ++i) field[i] = 0;
        return;
    }
    for (int64_t row = 0; row < h; ++row) blur_axis(noise + row * w, field + row * w, w, 1, radius, sigma);
    for (int64_t column = 0; column < w; ++column)
        blur_axis(field + column, noise + column, h, w, radius, sigma);
    for (int64_t i = 0; i < h * w; ++i) field[i] = noise[i] * sigma * alpha;
}

/* Indices below 0 are counted from 0 upwards in `reflect` and `mirror`, so that -1 is 1, as TensorFlow does it. */
int64_t leati_elastic_index(const leati_change *c, int64_t index, int64_t length) {
    const int64_t last = length - 1, period = 2 * length;
    switch (c->fill_mode) {
    case LEATI_FILL_CONSTANT: return index < 0 || index > last ? -1 : index;
    case LEATI_FILL_NEAREST: return index < 0 ? 0 : index > last ? last : index;
    case LEATI_FILL_WRAP: return (index % length + length) % length;
    default: break;
    }
    index = (index < 0 ? -index : index) % period;
    if (index < length) return index;
    index = period - index - (c->fill_mode == LEATI_FILL_REFLECT);
    return index > last ? last : index;
}
