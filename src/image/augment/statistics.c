/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the numbers that steps take from the training data, as ImageDataGenerator.fit does.  Room: image. */
#include "image/augment/statistics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "image/augment/augment.h"

static bool has_name(const leati_step *step, const char *name) {
    return strcmp(step->type->name, name) == 0;
}

/* Returns true if the step has to get its numbers from statistics. */
static bool lacks_numbers(const leati_step *step) {
    return step->type->takes_statistics && (has_name(step, "zca_whitening") || step->arguments[0].count == 0);
}

static bool does_nothing(const leati_step *step) {
    return !step->type->apply && !step->type->matrix;
}

/* Checks a step that needs statistics.  `before` is the last step before it that does something; NULL: none.  The
 * generator adds featurewise_center by itself, and leaves out featurewise_std_normalization with zca_whitening. */
static leat_status check_one(const leati_step *step, const leati_step *before, leat_error *err) {
    if (has_name(step, "featurewise_center") || (before && has_name(before, "featurewise_center")))
        return LEAT_OK;
    if (before && has_name(before, "featurewise_std_normalization"))
        return leati_fail(
            err, LEAT_EINVAL,
            "zca_whitening takes the place of featurewise_std_normalization, which ImageDataGenerator "
            "ignores beside it: expected featurewise_center,zca_whitening");
    return leati_fail(err, LEAT_EINVAL,
                      "%s expects featurewise_center immediately before it: featurewise_center,%s",
                      step->type->name, step->type->name);
}

leat_status leati_statistics_check(leat_augment *augment, leat_error *err) {
    const leati_step *before = NULL;
    int center = 0; /* the last featurewise_center */
    augment->first_statistic = augment->step_count;
    for (int i = 0; i < augment->step_count; ++i) {
        const leati_step *step = &augment->steps[i];
        if (does_nothing(step)) continue;
        if (has_name(step, "featurewise_center")) {
            if (augment->first_statistic < augment->step_count)
                return leati_fail(err, LEAT_EINVAL, "expected featurewise_center once, received it twice");
            center = i;
        }
        if (lacks_numbers(step)) {
            LEATI_TRY(check_one(step, before, err));
            augment->first_statistic = center;
        }
        before = step;
    }
    return LEAT_OK;
}

bool leati_statistics_missing(const leat_augment *augment) {
    for (int i = augment->first_statistic; i < augment->step_count; ++i) {
        const leati_step *step = &augment->steps[i];
        if (lacks_numbers(step) && !(has_name(step, "zca_whitening") && augment->whitening)) return true;
    }
    return false;
}

bool leati_statistics_whitens(const leat_augment *augment) {
    for (int i = augment->first_statistic; i < augment->step_count; ++i)
        if (has_name(&augment->steps[i], "zca_whitening")) return true;
    return false;
}

int64_t leati_statistics_values(const leat_augment *augment) {
    const leati_extent *picture = &augment->steps[augment->first_statistic].before;
    return picture->height * picture->width * picture->channels;
}

int64_t leati_statistics_channels(const leat_augment *augment) {
    return augment->before.channels;
}

static void add_step(leati_text *out, const leati_step *step) {
    char number[40];
    leati_text_add(out, " %s(", step->type->name);
    for (int i = 0; i < LEATI_AUGMENT_MAX_ARGUMENTS && step->type->parameters[i].name; ++i)
        for (int k = 0; k < step->arguments[i].count; ++k) {
            snprintf(number, sizeof number, "%.17g",
                     step->type->parameters[i].kind == LEATI_ARGUMENT_WORD ? step->arguments[i].word
                                                                           : step->arguments[i].number[k]);
            leati_decimal_point(number);
            leati_text_add(out, "%s%s", i + k ? "," : "", number);
        }
    leati_text_add(out, ")");
}

void leati_statistics_key(const leat_augment *augment, leati_text *out) {
    const leati_extent *picture = &augment->steps[augment->first_statistic].before;
    char epsilon[40];
    leati_text_add(out, "%lldx%lldx%lld", (long long)picture->height, (long long)picture->width,
                   (long long)picture->channels);
    for (int i = 0; i < augment->first_statistic; ++i) {
        const leati_step *step = &augment->steps[i];
        if (!does_nothing(step) && (!step->type->draw || step->type->rest)) add_step(out, step);
    }
    if (!leati_statistics_whitens(augment)) return;
    snprintf(epsilon, sizeof epsilon, "%.17g", augment->settings.zca_epsilon);
    leati_decimal_point(epsilon);
    leati_text_add(out, " then");
    for (int i = augment->first_statistic; i < augment->step_count; ++i)
        if (augment->steps[i].type->takes_statistics) add_step(out, &augment->steps[i]);
    leati_text_add(out, " zca_epsilon=%s", epsilon);
}

/* ---- Sums ---- */

leati_channel_sums leati_channel_sums_of(const float *picture, int64_t values, int64_t channels) {
    leati_channel_sums out = {{0}, {0}};
    for (int64_t i = 0; i < values; i += channels)
        for (int64_t c = 0; c < channels; ++c) {
            const double value = (double)picture[i + c];
            out.sum[c] += value;
            out.square[c] += value * value;
        }
    return out;
}

leat_status leati_moments_init(leati_moments *out, const leat_augment *augment, leat_error *err) {
    *out = (leati_moments){.values = leati_statistics_values(augment),
                           .channels = leati_statistics_channels(augment)};
    if (!leati_statistics_whitens(augment)) return LEAT_OK;
    const size_t n = (size_t)out->values;
    out->sums = leati_calloc(n, sizeof *out->sums);
    out->products = leati_calloc(n * n, sizeof *out->products);
    if (out->sums && out->products) return LEAT_OK;
    leati_moments_fini(out);
    return leati_fail_memory(err, n * n * sizeof(double), "the statistics of zca_whitening");
}

void leati_moments_fini(leati_moments *moments) {
    leati_free(moments->sums);
    leati_free(moments->products);
    *moments = (leati_moments){0};
}

void leati_moments_add_row(leati_moments *moments, int64_t i, const float *pictures, int64_t count) {
    const int64_t n = moments->values;
    double *row = moments->products + i * n;
    for (int64_t s = 0; s < count; ++s) {
        const float *picture = pictures + s * n;
        const double value = (double)picture[i];
        moments->sums[i] += value;
        for (int64_t j = 0; j <= i; ++j) row[j] += value * (double)picture[j];
    }
}

/* ---- Results ---- */

/* Returns the number that featurewise_center subtracts from a channel. */
static double center_of(const leat_augment *augment, int64_t channel, double computed) {
    const leati_argument *numbers = &augment->steps[augment->first_statistic].arguments[0];
    return numbers->count == 0 ? computed : numbers->number[numbers->count > 1 ? channel : 0];
}

/* Computes the mean product of each two values of centered pictures, and from it the matrix. */
static leat_status whiten(leati_statistics *out, const leat_augment *augment, const leati_moments *m,
                          const leati_share_report *report, leat_error *err) {
    const size_t n = (size_t)m->values;
    const double samples = (double)m->samples;
    double center[4] = {0}, *matrix = leati_realloc(NULL, n * n, sizeof *matrix);
    out->whitening = leati_realloc(NULL, n * n, sizeof *out->whitening);
    leat_status status = LEAT_OK;
    if (!matrix || !out->whitening)
        status = leati_fail_memory(err, n * n * sizeof *matrix, "the matrix of zca_whitening");
    for (int64_t c = 0; c < m->channels; ++c) center[c] = center_of(augment, c, out->mean[c]);
    for (size_t i = 0; i < n && status == LEAT_OK; ++i)
        for (size_t j = 0; j <= i; ++j) {
            const size_t a = i % (size_t)m->channels, b = j % (size_t)m->channels;
            const double product = m->products[i * n + j] / samples - center[a] * m->sums[j] / samples -
                                   center[b] * m->sums[i] / samples + center[a] * center[b];
            matrix[i * n + j] = matrix[j * n + i] = product;
        }
    if (status == LEAT_OK)
        status = leati_whitening_compute(matrix, m->values, augment->settings.zca_epsilon, out->whitening,
                                         report, err);
    leati_free(matrix);
    return status;
}

leat_status leati_statistics_compute(leati_statistics *out, const leat_augment *augment,
                                     const leati_moments *m, const leati_share_report *report,
                                     leat_error *err) {
    *out = (leati_statistics){0};
    if (m->samples < 1) return leati_fail(err, LEAT_EINVAL, "there is no sample to compute statistics of");
    const int64_t pixels = m->values / m->channels;
    const double count = (double)m->samples * (double)pixels;
    for (int64_t c = 0; c < m->channels; ++c) {
        out->mean[c] = m->channel.sum[c] / count;
        const double variance = m->channel.square[c] / count - out->mean[c] * out->mean[c];
        out->std[c] = variance > 0 ? sqrt(variance) : 0;
    }
    if (!m->products) return LEAT_OK;
    leat_status status = whiten(out, augment, m, report, err);
    if (status == LEAT_OK) return LEAT_OK;
    leati_free(out->whitening);
    out->whitening = NULL;
    return status;
}

void leati_statistics_set(leat_augment *augment, leati_statistics *statistics) {
    for (int i = augment->first_statistic; i < augment->step_count; ++i) {
        leati_step *step = &augment->steps[i];
        if (!lacks_numbers(step) || has_name(step, "zca_whitening")) continue;
        const double *numbers = has_name(step, "featurewise_center") ? statistics->mean : statistics->std;
        step->arguments[0].count = (int)augment->before.channels;
        memcpy(step->arguments[0].number, numbers, (size_t)augment->before.channels * sizeof *numbers);
    }
    if (!augment->whitening) augment->whitening = statistics->whitening;
    statistics->whitening = NULL;
}
