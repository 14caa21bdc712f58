/* SPDX-License-Identifier: Apache-2.0 */
/* Which elements RESAMPLE takes for one of its outputs, along one axis: the same for all backends.
 *
 * Output o lies at o / factor.  Nearest: the element there or before it.  Linear: between that and the next, which at the
 * end is that one again: TensorFlow's resize_bilinear with corners neither aligned nor halved.  Halved: it lies at
 * (o + 1/2) / factor - 1/2, and before the first element is that one again. */
#ifndef LEATI_ENGINE_OP_SEMANTICS_RESAMPLE_H
#define LEATI_ENGINE_OP_SEMANTICS_RESAMPLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct leati_resample_axis {
    bool linear, halved;
    int64_t in, factor;
} leati_resample_axis;

/* in[low] * (1 - share) + in[high] * share */
typedef struct leati_resample_point {
    int64_t low, high;
    float share;
} leati_resample_point;

static inline leati_resample_point leati_resample_at(const leati_resample_axis *axis, int64_t o) {
    int64_t low = o / axis->factor;
    if (!axis->linear) return (leati_resample_point){low, low, 0};
    if (axis->halved) {
        int64_t at = 2 * o + 1 - axis->factor, whole = 2 * axis->factor; /* in halves of an output's width */
        if (at < 0) return (leati_resample_point){0, 0, 0};
        low = at / whole;
        return (leati_resample_point){low, low + 1 < axis->in ? low + 1 : low,
                                      (float)(at % whole) / (float)whole};
    }
    return (leati_resample_point){low, low + 1 < axis->in ? low + 1 : low,
                                  (float)(o % axis->factor) / (float)axis->factor};
}

/* How much of element i is in output o, and which outputs may have some: from `first` to `last` - 1. */
static inline float leati_resample_share(const leati_resample_axis *axis, int64_t i, int64_t o) {
    leati_resample_point p = leati_resample_at(axis, o);
    return (p.low == i ? 1 - p.share : 0) + (p.high == i ? p.share : 0);
}

static inline void leati_resample_reach(const leati_resample_axis *axis, int64_t i, int64_t *first,
                                        int64_t *last) {
    *first = (axis->linear && i > 0 ? i - 1 : i) * axis->factor;
    *last = (axis->halved && i + 1 < axis->in ? i + 2 : i + 1) * axis->factor;
}

#endif
