/* SPDX-License-Identifier: Apache-2.0 */
/* Defines, for all backends, which source elements RESAMPLE reads for one output element, along one axis.
 *
 * Output o lies at position p = o / factor of the source.
 * Nearest: the output is element floor(p).
 * Linear: the output is interpolated between elements floor(p) and floor(p) + 1; the last element is repeated at the
 * end.  This is TensorFlow's resize_bilinear with align_corners and half_pixel_centers off.
 * Linear and halved (half_pixel_centers): p = (o + 1/2) / factor - 1/2; the first element is repeated at the start,
 * too. */
#ifndef LEATI_ENGINE_OP_SEMANTICS_RESAMPLE_H
#define LEATI_ENGINE_OP_SEMANTICS_RESAMPLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct leati_resample_axis {
    bool linear, halved;
    int64_t in, factor;
} leati_resample_axis;

/* The output is in[low] * (1 - share) + in[high] * share. */
typedef struct leati_resample_point {
    int64_t low, high;
    float share;
} leati_resample_point;

static inline leati_resample_point leati_resample_at(const leati_resample_axis *axis, int64_t o) {
    int64_t low = o / axis->factor;
    if (!axis->linear) return (leati_resample_point){low, low, 0};
    if (axis->halved) {
        int64_t at = 2 * o + 1 - axis->factor, whole = 2 * axis->factor; /* both in half output elements */
        if (at < 0) return (leati_resample_point){0, 0, 0};
        low = at / whole;
        return (leati_resample_point){low, low + 1 < axis->in ? low + 1 : low,
                                      (float)(at % whole) / (float)whole};
    }
    return (leati_resample_point){low, low + 1 < axis->in ? low + 1 : low,
                                  (float)(o % axis->factor) / (float)axis->factor};
}

/* Returns the factor with which source element i enters output o. */
static inline float leati_resample_share(const leati_resample_axis *axis, int64_t i, int64_t o) {
    leati_resample_point p = leati_resample_at(axis, o);
    return (p.low == i ? 1 - p.share : 0) + (p.high == i ? p.share : 0);
}

/* Sets the range of outputs, `first` to `last` - 1, that may depend on source element i. */
static inline void leati_resample_reach(const leati_resample_axis *axis, int64_t i, int64_t *first,
                                        int64_t *last) {
    *first = (axis->linear && i > 0 ? i - 1 : i) * axis->factor;
    *last = (axis->halved && i + 1 < axis->in ? i + 2 : i + 1) * axis->factor;
}

#endif
