/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's F(4, 3) and F(4, 5) for windows of one axis, for the code that is compiled once per instruction set, and
 * the choice between them and winograd_tmpl.h.  A tile is 4 pixels of a line of the destination, which depend on 3 +
 * taps pixels of the source. */
#ifndef LEATI_BACKENDS_NATIVE_CONV_WINOGRAD_LINE_TMPL_H
#define LEATI_BACKENDS_NATIVE_CONV_WINOGRAD_LINE_TMPL_H

#include "backends/native/conv/winograd_tmpl.h"

/* ---- The transforms for 5 taps; those for 3 taps are an axis of F(4x4, 3x3) ---- */

/* The interpolation points are 0, P, -P, Q, -Q, R, -R and infinity.  An element's factor is 1 / N, where N is the
 * product of the distances of its point from the other finite ones. */
#define P    0.5f
#define P2   (P * P)
#define Q    1.0f
#define Q2   (Q * Q)
#define R    2.0f
#define R2   (R * R)
#define SUM1 (P2 + Q2 + R2)
#define SUM2 (P2 * Q2 + P2 * R2 + Q2 * R2)
#define SUM3 (P2 * Q2 * R2)
#define BY_P (1 / (2 * P2 * (P2 - Q2) * (P2 - R2)))
#define BY_Q (1 / (2 * Q2 * (Q2 - P2) * (Q2 - R2)))
#define BY_R (1 / (2 * R2 * (R2 - P2) * (R2 - Q2)))

LEATI_INLINE void source_of_5(vf to[8], const vf x[8]) {
    vf even_p = x[6] - (Q2 + R2) * x[4] + Q2 * R2 * x[2],
       odd_p = P * (x[5] - (Q2 + R2) * x[3] + Q2 * R2 * x[1]);
    vf even_q = x[6] - (P2 + R2) * x[4] + P2 * R2 * x[2],
       odd_q = Q * (x[5] - (P2 + R2) * x[3] + P2 * R2 * x[1]);
    vf even_r = x[6] - (P2 + Q2) * x[4] + P2 * Q2 * x[2],
       odd_r = R * (x[5] - (P2 + Q2) * x[3] + P2 * Q2 * x[1]);
    to[0] = x[6] - SUM1 * x[4] + SUM2 * x[2] - SUM3 * x[0];
    to[1] = even_p + odd_p, to[2] = even_p - odd_p;
    to[3] = even_q + odd_q, to[4] = even_q - odd_q;
    to[5] = even_r + odd_r, to[6] = even_r - odd_r;
    to[7] = x[7] - SUM1 * x[5] + SUM2 * x[3] - SUM3 * x[1];
}

LEATI_INLINE void weights_of_5(vf to[8], const vf x[5]) {
    vf even_p = (x[0] + P2 * x[2] + P2 * P2 * x[4]) * BY_P, odd_p = (x[1] + P2 * x[3]) * (P * BY_P);
    vf even_q = (x[0] + Q2 * x[2] + Q2 * Q2 * x[4]) * BY_Q, odd_q = (x[1] + Q2 * x[3]) * (Q * BY_Q);
    vf even_r = (x[0] + R2 * x[2] + R2 * R2 * x[4]) * BY_R, odd_r = (x[1] + R2 * x[3]) * (R * BY_R);
    to[0] = x[0] * (-1 / SUM3);
    to[1] = even_p + odd_p, to[2] = even_p - odd_p;
    to[3] = even_q + odd_q, to[4] = even_q - odd_q;
    to[5] = even_r + odd_r, to[6] = even_r - odd_r;
    to[7] = x[4];
}

LEATI_INLINE void result_of_5(vf to[4], const vf m[8]) {
    vf even_p = m[1] + m[2], odd_p = P * (m[1] - m[2]);
    vf even_q = m[3] + m[4], odd_q = Q * (m[3] - m[4]);
    vf even_r = m[5] + m[6], odd_r = R * (m[5] - m[6]);
    to[0] = m[0] + even_p + even_q + even_r;
    to[1] = odd_p + odd_q + odd_r;
    to[2] = P2 * even_p + Q2 * even_q + R2 * even_r;
    to[3] = P2 * odd_p + Q2 * odd_q + R2 * odd_r + m[7];
}

/* The transposed transforms, as in winograd_tmpl.h. */
LEATI_INLINE void diff_of_5(vf to[8], const vf x[4]) {
    vf even_p = x[0] + P2 * x[2], odd_p = P * (x[1] + P2 * x[3]);
    vf even_q = x[0] + Q2 * x[2], odd_q = Q * (x[1] + Q2 * x[3]);
    vf even_r = x[0] + R2 * x[2], odd_r = R * (x[1] + R2 * x[3]);
    to[0] = x[0];
    to[1] = even_p + odd_p, to[2] = even_p - odd_p;
    to[3] = even_q + odd_q, to[4] = even_q - odd_q;
    to[5] = even_r + odd_r, to[6] = even_r - odd_r;
    to[7] = x[3];
}

LEATI_INLINE void weights_back_of_5(vf to[5], const vf m[8]) {
    vf even_p = (m[1] + m[2]) * BY_P, odd_p = (m[1] - m[2]) * (P * BY_P);
    vf even_q = (m[3] + m[4]) * BY_Q, odd_q = (m[3] - m[4]) * (Q * BY_Q);
    vf even_r = (m[5] + m[6]) * BY_R, odd_r = (m[5] - m[6]) * (R * BY_R);
    to[0] = m[0] * (-1 / SUM3) + even_p + even_q + even_r;
    to[1] = odd_p + odd_q + odd_r;
    to[2] = P2 * even_p + Q2 * even_q + R2 * even_r;
    to[3] = P2 * odd_p + Q2 * odd_q + R2 * odd_r;
    to[4] = P2 * P2 * even_p + Q2 * Q2 * even_q + R2 * R2 * even_r + m[7];
}

#undef P
#undef P2
#undef Q
#undef Q2
#undef R
#undef R2
#undef SUM1
#undef SUM2
#undef SUM3
#undef BY_P
#undef BY_Q
#undef BY_R

/* ---- Tiles ---- */

LEATI_INLINE void line_source_tile(const leati_winograd *w, int64_t tile, const int taps, const bool bf16) {
    const leati_geometry *g = w->g;
    const int elements = 3 + taps;
    tile_window window = winograd_window(w, tile);
    const void *at[8];
    int64_t element_stride = w->element_stride, ahead = WINOGRAD_AHEAD * g->channels;
    window.x -= g->pad_before[2];
    for (int j = 0; j < elements; j++) at[j] = winograd_pixel(w, pixel_of(g->in, window, 0, j), g->channels);
    for (int64_t c = 0; c < g->channels; c += LEATI_LANES) {
        float *to = transformed_at(w, tile, c);
        vf x[8], t[8];
        for (int j = taps - 1; j < elements; j++) winograd_prefetch(at[j], ahead + c, bf16);
        for (int j = 0; j < elements; j++) x[j] = v_load_image(at[j], c, LEATI_LANES, bf16);
        if (taps == 5)
            source_of_5(t, x);
        else
            source_line(4, t, x);
        for (int j = 0; j < elements; j++) v_store(to + j * element_stride, t[j]);
    }
}

LEATI_INLINE void line_diff_tile(const leati_winograd *w, int64_t tile, const int taps, const bool bf16) {
    const leati_geometry *g = w->g;
    tile_window window = winograd_window(w, tile);
    const void *at[4];
    int64_t element_stride = w->element_stride, ahead = WINOGRAD_AHEAD * g->filters;
    for (int j = 0; j < 4; j++) at[j] = winograd_pixel(w, pixel_of(g->out, window, 0, j), g->filters);
    for (int64_t c = 0; c < g->filters; c += LEATI_LANES) {
        float *to = transformed_at(w, tile, c);
        vf x[4], t[8];
        for (int j = 0; j < 4; j++) winograd_prefetch(at[j], ahead + c, bf16);
        for (int j = 0; j < 4; j++) x[j] = v_load_image(at[j], c, LEATI_LANES, bf16);
        if (w->sums) v_store(w->sums + c, v_load(w->sums + c) + (x[0] + x[1]) + (x[2] + x[3]));
        if (taps == 5)
            diff_of_5(t, x);
        else
            diff_line(4, t, x);
        for (int j = 0; j < 3 + taps; j++) v_store(to + j * element_stride, t[j]);
    }
}

LEATI_INLINE void line_result_tile(const leati_winograd *w, int64_t tile, const int taps, const bool bf16) {
    const leati_geometry *g = w->g;
    const bool calls = w->f && !is_clip(w->f);
    tile_window window = winograd_window(w, tile);
    int64_t at[4], element_stride = w->element_stride, ahead = WINOGRAD_AHEAD * g->filters;
    for (int j = 0; j < 4; j++) at[j] = pixel_of(g->out, window, 0, j) * g->filters + w->first_filter;
    for (int64_t c = 0; c < w->columns; c += LEATI_LANES) {
        const float *from = w->transformed + (tile - w->first) * w->group + c;
        vf m[8], y[4], bias = w->bias ? v_load(w->bias + w->first_filter + c) : (vf){0};
        for (int j = 0; j < 3 + taps; j++) m[j] = v_load(from + j * element_stride);
        if (taps == 5)
            result_of_5(y, m);
        else
            result_line(4, y, m);
        for (int j = 0; j < 4; j++) {
            if (at[j] < 0) continue;
            __builtin_prefetch((unsigned char *)w->dst + (bf16 ? 2 : 4) * (at[j] + c + ahead), 1);
            winograd_store(w, at[j] + c, calls, bf16, y[j] + bias);
        }
    }
}

/* Defines line_<name>(), which calls line_<name>_tile() for all tiles, and winograd_<name>(), which calls it or
 * square_<name>(). */
#define EACH_TILE(name)                                                                                      \
    static void line_##name(const leati_winograd *w) {                                                       \
        for (int64_t tile = w->first; tile < w->last; tile++)                                                \
            if (w->g->taps == 3 && w->bf16)                                                                  \
                line_##name##_tile(w, tile, 3, true);                                                        \
            else if (w->g->taps == 3)                                                                        \
                line_##name##_tile(w, tile, 3, false);                                                       \
            else if (w->bf16)                                                                                \
                line_##name##_tile(w, tile, 5, true);                                                        \
            else                                                                                             \
                line_##name##_tile(w, tile, 5, false);                                                       \
    }                                                                                                        \
    static void winograd_##name(const leati_winograd *w) {                                                   \
        (leati_winograd_is_line(w->g) ? line_##name : square_##name)(w);                                     \
    }
EACH_TILE(source)
EACH_TILE(diff)
EACH_TILE(result)
#undef EACH_TILE

/* ---- Weights ---- */

LEATI_INLINE void line_pack(const leati_winograd_weights *w, const int taps) {
    int64_t tap = w->depth * w->columns;
    for (int64_t row = w->first; row < w->last; row++)
        for (int64_t c = 0; c < w->columns; c += LEATI_LANES) {
            const float *from = w->weights + row * w->columns + c;
            float *to = packed_at(w, row, c);
            int64_t element = packed_element(w, c);
            vf x[5], y[8];
            for (int j = 0; j < taps; j++) x[j] = v_load(from + j * tap);
            if (taps == 5)
                weights_of_5(y, x);
            else
                weights_line(4, y, x);
            for (int j = 0; j < 3 + taps; j++) v_store(to + j * element, y[j]);
        }
}

LEATI_INLINE void line_unpack(const leati_winograd_weights *w, const int taps) {
    int64_t tap = w->depth * w->columns;
    for (int64_t at = w->first * w->columns; at < w->last * w->columns; at += LEATI_LANES) {
        vf x[8], y[5];
        for (int j = 0; j < 3 + taps; j++) x[j] = v_load(w->packed + j * tap + at);
        if (taps == 5)
            weights_back_of_5(y, x);
        else
            weights_back_line(4, y, x);
        for (int j = 0; j < taps; j++) v_store(w->weights + j * tap + at, y[j]);
    }
}

static void winograd_weights(const leati_winograd_weights *w) {
    if (w->taps == 9)
        square_weights(w);
    else if (w->taps == 5)
        line_pack(w, 5);
    else
        line_pack(w, 3);
}

static void winograd_weights_back(const leati_winograd_weights *w) {
    if (w->taps == 9)
        square_weights_back(w);
    else if (w->taps == 5)
        line_unpack(w, 5);
    else
        line_unpack(w, 3);
}

#endif
