/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling at positions that no matrix gives: a perspective, and a field of displacements.  The functions work on plain
 * arrays, so that layers may use them, too. */
#ifndef LEATI_IMAGE_AUGMENT_WARP_H
#define LEATI_IMAGE_AUGMENT_WARP_H

#include <stdbool.h>

#include "image/augment/sample.h"
#include "leat/rng.h"

/* Computes the eight numbers h of the perspective that maps the points `from` to the points `to`, (x, y) each:
 * x' = (h0 x + h1 y + h2) / (h6 x + h7 y + 1), y' = (h3 x + h4 y + h5) / (h6 x + h7 y + 1).
 * Returns false if there is none, since three of the points lie on a line. */
bool leati_perspective_between(double h[8], double from[4][2], double to[4][2]);

/* Samples at the positions that a perspective maps the result's pixels to; job->affine is not used. */
void leati_sample_perspective(const leati_sample_job *job, const double h[8]);

/* Samples each pixel at its own position plus a displacement; dx and dy are (dst_height, dst_width). */
void leati_sample_displaced(const leati_sample_job *job, const float *dx, const float *dy);

/* Fills a field of displacements of RandomElasticTransform: normal numbers times sigma, smoothed by a Gaussian with the
 * same sigma, with zeros beyond the border, times alpha.  The Gaussian has at most 511 weights.
 * @param spare  Memory for (height, width) numbers. */
void leati_fill_displacements(float *field, float *spare, int64_t height, int64_t width, double alpha,
                              double sigma, leat_rng *rng);

#endif
