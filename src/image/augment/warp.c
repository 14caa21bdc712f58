/* SPDX-License-Identifier: Apache-2.0 */
/* Keras's RandomPerspective and RandomElasticTransform as steps, and their kernels.  Room: image. */
#include "image/augment/warp.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "image/augment/augment.h"

/* ---- Kernels ---- */

/* Solves the linear system whose rows are (8 coefficients, right side), by elimination with pivots. */
static bool solve(double h[8], double m[8][9]) {
    for (int k = 0; k < 8; ++k) {
        int pivot = k;
        for (int i = k + 1; i < 8; ++i)
            if (fabs(m[i][k]) > fabs(m[pivot][k])) pivot = i;
        if (fabs(m[pivot][k]) < 1e-12) return false;
        for (int j = 0; j < 9; ++j) {
            const double kept = m[k][j];
            m[k][j] = m[pivot][j];
            m[pivot][j] = kept;
        }
        for (int i = k + 1; i < 8; ++i) {
            const double factor = m[i][k] / m[k][k];
            for (int j = k; j < 9; ++j) m[i][j] -= factor * m[k][j];
        }
    }
    for (int k = 7; k >= 0; --k) {
        h[k] = m[k][8];
        for (int j = k + 1; j < 8; ++j) h[k] -= m[k][j] * h[j];
        h[k] /= m[k][k];
    }
    return true;
}

bool leati_perspective_between(double h[8], double from[4][2], double to[4][2]) {
    double m[8][9];
    for (int i = 0; i < 4; ++i) {
        const double x = from[i][0], y = from[i][1], u = to[i][0], v = to[i][1];
        const double first[9] = {x, y, 1, 0, 0, 0, -u * x, -u * y, u};
        const double second[9] = {0, 0, 0, x, y, 1, -v * x, -v * y, v};
        memcpy(m[2 * i], first, sizeof first);
        memcpy(m[2 * i + 1], second, sizeof second);
    }
    return solve(h, m);
}

void leati_sample_perspective(const leati_sample_job *job, const double h[8]) {
    float *dst = job->dst;
    for (int64_t y = 0; y < job->dst_height; ++y)
        for (int64_t x = 0; x < job->dst_width; ++x, dst += job->channels) {
            const double px = (double)x, py = (double)y, divisor = h[6] * px + h[7] * py + 1;
            leati_sample_at(job, (h[0] * px + h[1] * py + h[2]) / divisor,
                            (h[3] * px + h[4] * py + h[5]) / divisor, dst);
        }
}

void leati_sample_displaced(const leati_sample_job *job, const float *dx, const float *dy) {
    float *dst = job->dst;
    for (int64_t y = 0; y < job->dst_height; ++y)
        for (int64_t x = 0; x < job->dst_width; ++x, dst += job->channels)
            leati_sample_at(job, (double)x + (double)*dx++, (double)y + (double)*dy++, dst);
}

/* Writes the weighted sums of `taps` numbers that are `step` numbers apart, along lines of `length` numbers. */
static void smooth(float *to, const float *from, int64_t index, int64_t length, int64_t step,
                   const double *weights, int64_t taps) {
    const int64_t middle = taps / 2, at = index / step % length;
    double sum = 0;
    for (int64_t k = 0; k < taps; ++k) {
        const int64_t other = at + k - middle;
        if (other >= 0 && other < length) sum += weights[k] * (double)from[index + (k - middle) * step];
    }
    to[index] = (float)sum;
}

enum { MOST_TAPS = 511 }; /* of a Gaussian */

void leati_fill_displacements(float *field, float *spare, int64_t height, int64_t width, double alpha,
                              double sigma, leat_rng *rng) {
    const int64_t count = height * width, wanted = (int64_t)(6 * sigma) / 2 * 2 + 1;
    const int64_t taps = wanted < MOST_TAPS ? wanted : MOST_TAPS;
    const int64_t middle = taps / 2;
    double weights[MOST_TAPS], sum = 0;
    for (int64_t k = 0; k < taps; ++k) {
        const double distance = (double)(k - middle) / sigma;
        weights[k] = exp(-0.5 * distance * distance);
        sum += weights[k];
    }
    for (int64_t k = 0; k < taps; ++k) weights[k] /= sum;
    for (int64_t i = 0; i < count; ++i) field[i] = (float)(leat_rng_normal(rng) * sigma);
    for (int64_t i = 0; i < count; ++i) smooth(spare, field, i, width, 1, weights, taps);
    for (int64_t i = 0; i < count; ++i) smooth(field, spare, i, height, width, weights, taps);
    for (int64_t i = 0; i < count; ++i) field[i] *= (float)alpha;
}

/* ---- RandomPerspective ---- */

/* Draws a probability, then a number that has to be below it. */
static void draw_chance(const leati_step *step, leat_rng *rng, double *drawn) {
    const double chance = leati_draw_factor(step, 0, rng);
    drawn[0] = leati_draw_between(rng, 0, 1) < chance;
}

static leat_status check_perspective(leati_step *step, leat_error *err) {
    step->sampling = (leati_sampling){.fill = LEATI_FILL_CONSTANT,
                                      .order = step->arguments[2].word,
                                      .value = (float)step->arguments[3].number[0]};
    return leati_check_factor(step, 0, 0, err);
}

static void draw_perspective(const leati_step *step, leat_rng *rng, double *drawn) {
    const double scale = step->arguments[1].number[0];
    draw_chance(step, rng, drawn);
    for (int i = 0; i < 8; ++i) drawn[1 + i] = leati_draw_between(rng, -0.5 * scale, 0.5 * scale);
}

/* The corners move by a share of their coordinates, so that the first one, (0, 0), stays. */
static leat_status change_perspective(const leati_step *step, const double *drawn, leati_work *work,
                                      leat_error *err) {
    const double x = (double)(work->extent.width - 1), y = (double)(work->extent.height - 1);
    double start[4][2] = {{0, 0}, {x, 0}, {0, y}, {x, y}}, end[4][2], h[8];
    (void)err;
    if (drawn[0] == 0) return LEAT_OK;
    for (int i = 0; i < 4; ++i)
        for (int k = 0; k < 2; ++k) end[i][k] = start[i][k] * (1 + drawn[1 + 2 * i + k]);
    if (!leati_perspective_between(h, end, start)) return LEAT_OK; /* a line of pixels has no perspective */
    const leati_sample_job job = leati_work_job(work, &step->sampling, &work->extent);
    leati_sample_perspective(&job, h);
    leati_work_swap(work);
    return LEAT_OK;
}

/* ---- RandomElasticTransform ---- */

static leat_status check_elastic(leati_step *step, leat_error *err) {
    static const leati_fill fills[] = {LEATI_FILL_REFLECT, LEATI_FILL_WRAP, LEATI_FILL_CONSTANT,
                                       LEATI_FILL_NEAREST};
    const int64_t side = step->before.height < step->before.width ? step->before.height : step->before.width;
    step->sampling = (leati_sampling){.fill = fills[step->arguments[3].word],
                                      .order = step->arguments[2].word,
                                      .value = (float)step->arguments[4].number[0]};
    LEATI_TRY(leati_check_factor(step, 0, 0, err));
    LEATI_TRY(leati_check_factor(step, 1, 0, err));
    if (0.3 * step->arguments[1].number[1] * (double)side < MOST_TAPS) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL,
                      "%s: expected a scale below %g for pictures of %lld x %lld pixels, received %g",
                      step->type->name, MOST_TAPS / 0.3 / (double)side, (long long)step->before.height,
                      (long long)step->before.width, step->arguments[1].number[1]);
}

static void draw_elastic(const leati_step *step, leat_rng *rng, double *drawn) {
    if (step->arguments[0].number[1] == 0 || step->arguments[1].number[1] == 0) return;
    draw_chance(step, rng, drawn);
    drawn[1] = leati_draw_factor(step, 1, rng);
    drawn[2] = (double)leat_rng_u32(rng);
}

static void clip_to_bytes(leati_work *work) {
    const int64_t count = work->extent.height * work->extent.width * work->extent.channels;
    for (int64_t i = 0; i < count; ++i)
        work->pixels[i] = work->pixels[i] < 0 ? 0 : work->pixels[i] > 255 ? 255 : work->pixels[i];
}

static leat_status distort(const leati_step *step, const double *drawn, leati_work *work, leat_error *err) {
    const int64_t height = work->extent.height, width = work->extent.width;
    const size_t count = (size_t)(height * width);
    const double longest = (double)(height > width ? height : width),
                 shortest = (double)(height < width ? height : width);
    const double alpha = longest * 0.1 * drawn[1], sigma = shortest * 0.05 * drawn[1];
    leat_rng noise = leat_rng_for((uint64_t)drawn[2], 0, 0);
    if (drawn[0] == 0 || sigma <= 0) return LEAT_OK;
    float *memory = leati_realloc(NULL, 3 * count, sizeof *memory);
    if (!memory) return leati_fail_memory(err, 3 * count * sizeof *memory, "an elastic transformation");
    leati_fill_displacements(memory, memory + 2 * count, height, width, alpha, sigma, &noise);
    leati_fill_displacements(memory + count, memory + 2 * count, height, width, alpha, sigma, &noise);
    const leati_sample_job job = leati_work_job(work, &step->sampling, &work->extent);
    leati_sample_displaced(&job, memory, memory + count);
    leati_work_swap(work);
    if (!work->is_mask) clip_to_bytes(work);
    leati_free(memory);
    return LEAT_OK;
}

const leati_step_type leati_warp_steps[] = {
    {.name = "RandomPerspective",
     .parameters = {{"factor", LEATI_ARGUMENT_LIST, "1", NULL, 0, 1},
                    {"scale", LEATI_ARGUMENT_NUMBER, "1", NULL, 0, 1},
                    {"interpolation", LEATI_ARGUMENT_WORD, "bilinear", "nearest bilinear", 0, 0},
                    {"fill_value", LEATI_ARGUMENT_NUMBER, "0", NULL, -1e9, 1e9}},
     .draws = "apply_perspective x0 y0 x1 y1 x2 y2 x3 y3",
     .check = check_perspective,
     .draw = draw_perspective,
     .apply = change_perspective,
     .on_masks = true},
    {.name = "RandomElasticTransform",
     .parameters = {{"factor", LEATI_ARGUMENT_LIST, "1", NULL, 0, 1},
                    {"scale", LEATI_ARGUMENT_LIST, "1", NULL, 0, 1},
                    {"interpolation", LEATI_ARGUMENT_WORD, "bilinear", "nearest bilinear", 0, 0},
                    {"fill_mode", LEATI_ARGUMENT_WORD, "reflect", "reflect wrap constant nearest", 0, 0},
                    {"fill_value", LEATI_ARGUMENT_NUMBER, "0", NULL, -1e9, 1e9}},
     .draws = "apply_transform distortion_factor noise",
     .check = check_elastic,
     .draw = draw_elastic,
     .apply = distort,
     .on_masks = true},
    {.name = NULL},
};
