/* SPDX-License-Identifier: Apache-2.0 */
/* Keras's layers that are made of others, as steps: RandAugment and AugMix, which choose at random, and
 * RandomColorJitter.  Room: image. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "image/augment/augment.h"

/* The steps of RandAugment in their order, and those of AugMix; each draws at most two numbers. */
static const char *const rand_names[] = {"shear",        "translation",   "rotation",    "brightness",
                                         "degeneration", "contrast",      "sharpness",   "posterization",
                                         "solarization", "auto_contrast", "equalization"};
static const char *const mix_names[] = {"shear",        "translation",   "rotation",     "posterization",
                                        "solarization", "auto_contrast", "equalization", "brightness",
                                        "degeneration", "contrast",      "sharpness"};
enum { LAYERS = 11, LAYERS_WITHOUT_COLORS = 7, MOST_OPS = 8, MOST_CHAINS = 8, MOST_SLOTS = 16 };
/* Where the drawn numbers stand: of RandAugment two for each layer, then the chosen layers; of AugMix the weights, then
 * a layer and its two numbers for each place in a chain. */
enum { RAND_CHOICES = 2 * LAYERS, MIX_WEIGHT = MOST_CHAINS, MIX_SLOTS = MOST_CHAINS + 1 };

/* Adds the text of a step whose strength lies in the range of the factor. */
static void add_step(leati_text *text, const char *name, const leati_step *step, const char *interpolation) {
    const double *factor = step->arguments[0].number;
    char low[40], high[40];
    snprintf(low, sizeof low, "%.15g", factor[0]);
    snprintf(high, sizeof high, "%.15g", factor[1]);
    leati_decimal_point(low);
    leati_decimal_point(high);
    if (text->length > 0) leati_text_add(text, ",");
    if (strcmp(name, "shear") == 0)
        leati_text_add(text, "RandomShear((%s,%s),(%s,%s),interpolation=%s)", low, high, low, high,
                       interpolation);
    else if (strcmp(name, "translation") == 0)
        leati_text_add(text, "RandomTranslation((%s,%s),(%s,%s),interpolation=%s)", low, high, low, high,
                       interpolation);
    else if (strcmp(name, "rotation") == 0)
        leati_text_add(text, "RandomRotation((%s,%s),interpolation=%s)", low, high, interpolation);
    else if (strcmp(name, "brightness") == 0)
        leati_text_add(text, "RandomBrightness((%s,%s))", low, high);
    else if (strcmp(name, "degeneration") == 0)
        leati_text_add(text, "RandomColorDegeneration((%s,%s))", low, high);
    else if (strcmp(name, "contrast") == 0)
        leati_text_add(text, "RandomContrast((%s,%s))", low, high);
    else if (strcmp(name, "sharpness") == 0)
        leati_text_add(text, "RandomSharpness((%s,%s))", low, high);
    else if (strcmp(name, "posterization") == 0)
        leati_text_add(text, "RandomPosterization(%d)", (int)fmax(1, floor(8 * factor[1])));
    else if (strcmp(name, "solarization") == 0)
        leati_text_add(text, "Solarization((%s,%s),(%s,%s))", low, high, low, high);
    else
        leati_text_add(text, strcmp(name, "equalization") == 0 ? "Equalization" : "AutoContrast");
}

/* Makes the steps to choose from.  `interpolation` is the index of the argument. */
static leat_status make_inner(leati_step *step, const char *const *names, int count, int interpolation,
                              leat_error *err) {
    static const char *const words[] = {"nearest", "bilinear"};
    const leati_extent *e = &step->before;
    leati_text text = {0};
    LEATI_TRY(leati_check_factor(step, 0, 0, err));
    for (int i = 0; i < count; ++i)
        add_step(&text, names[i], step, words[step->arguments[interpolation].word]);
    leat_status status =
        text.failed ? leati_fail_memory(err, 0, "the steps to choose from")
                    : leat_augment_create(&step->inner, text.data, e->height, e->width, e->channels, err);
    leati_text_fini(&text);
    return leati_prefix(status, err, "%s", step->type->name);
}

static void draw_inner(const leati_step *step, int index, leat_rng *rng, double *drawn) {
    const leati_step *chosen = &step->inner->steps[index];
    if (chosen->type->draw) chosen->type->draw(chosen, rng, drawn);
}

/* ---- RandAugment ---- */

static leat_status check_rand_augment(leati_step *step, leat_error *err) {
    return make_inner(step, rand_names, LAYERS, 2, err);
}

/* Draws the chosen layers, then the numbers of all layers in their order. */
static void draw_rand_augment(const leati_step *step, leat_rng *rng, double *drawn) {
    const int ops = (int)step->arguments[1].number[0];
    for (int i = 0; i < ops; ++i) drawn[RAND_CHOICES + i] = floor(leati_draw_between(rng, 0, LAYERS));
    for (ptrdiff_t k = 0; k < LAYERS; ++k) draw_inner(step, (int)k, rng, drawn + 2 * k);
}

static leat_status apply_rand_augment(const leati_step *step, const double *drawn, leati_work *work,
                                      leat_error *err) {
    const int ops = (int)step->arguments[1].number[0];
    for (int i = 0; i < ops; ++i) {
        const ptrdiff_t k = (ptrdiff_t)drawn[RAND_CHOICES + i];
        LEATI_TRY(leati_step_run(&step->inner->steps[k], drawn + 2 * k, work, err));
    }
    return LEAT_OK;
}

/* ---- AugMix ---- */

static int chains_of(const leati_step *step) {
    return (int)step->arguments[1].number[0];
}

static int depth_of(const leati_step *step) {
    return (int)step->arguments[2].number[0];
}

static leat_status check_aug_mix(leati_step *step, leat_error *err) {
    if (chains_of(step) * depth_of(step) > MOST_SLOTS)
        return leati_fail(err, LEAT_EINVAL,
                          "AugMix expects num_chains * chain_depth of at most %d, received %d * %d",
                          MOST_SLOTS, chains_of(step), depth_of(step));
    const bool all = step->arguments[4].number[0] != 0;
    return make_inner(step, mix_names, all ? LAYERS : LAYERS_WITHOUT_COLORS, 5, err);
}

/* Draws from the gamma distribution (Marsaglia and Tsang 2000). */
static double draw_gamma(double alpha, leat_rng *rng) {
    if (alpha < 1) {
        const double power = pow(1 - leat_rng_uniform(rng), 1 / alpha);
        return power * draw_gamma(alpha + 1, rng);
    }
    const double d = alpha - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        const double x = leat_rng_normal(rng), root = 1 + c * x, v = root * root * root;
        if (v <= 0) continue;
        if (log(1 - leat_rng_uniform(rng)) < 0.5 * x * x + d - d * v + d * log(v)) return d * v;
    }
}

/* Draws the weights of the chains, the weight of the picture itself, and for each place in a chain the layer, or none,
 * and its numbers. */
static void draw_aug_mix(const leati_step *step, leat_rng *rng, double *drawn) {
    const double alpha = step->arguments[3].number[0];
    const int chains = chains_of(step), places = chains * depth_of(step);
    double sum = 0;
    for (int i = 0; i < chains; ++i) sum += drawn[i] = draw_gamma(alpha, rng);
    for (int i = 0; i < chains; ++i) drawn[i] /= sum;
    const double own = draw_gamma(alpha, rng);
    drawn[MIX_WEIGHT] = own / (own + draw_gamma(alpha, rng));
    for (ptrdiff_t i = 0; i < places; ++i) {
        double *place = drawn + MIX_SLOTS + 3 * i;
        place[0] = floor(leati_draw_between(rng, 0, step->inner->step_count + 1));
        if ((int)place[0] < step->inner->step_count) draw_inner(step, (int)place[0], rng, place + 1);
    }
}

/* Runs a chain of steps on the picture. */
static leat_status run_chain(const leati_step *step, const double *place, leati_work *work, leat_error *err) {
    for (int i = 0; i < depth_of(step); ++i, place += 3)
        if ((int)place[0] < step->inner->step_count)
            LEATI_TRY(leati_step_run(&step->inner->steps[(int)place[0]], place + 1, work, err));
    return LEAT_OK;
}

static leat_status apply_aug_mix(const leati_step *step, const double *drawn, leati_work *work,
                                 leat_error *err) {
    const size_t count = (size_t)(work->extent.height * work->extent.width * work->extent.channels);
    const float weight = (float)drawn[MIX_WEIGHT];
    leat_status status = LEAT_OK;
    float *memory = leati_calloc(2 * count, sizeof *memory), *picture = memory, *sum = memory + count;
    if (!memory) return leati_fail_memory(err, 2 * count * sizeof *memory, "AugMix");
    leati_work_to_floats(work);
    memcpy(picture, work->pixels, count * sizeof *picture);
    for (ptrdiff_t k = 0; k < chains_of(step) && status == LEAT_OK; ++k) {
        memcpy(work->pixels, picture, count * sizeof *picture);
        status = run_chain(step, drawn + MIX_SLOTS + 3 * k * depth_of(step), work, err);
        for (size_t i = 0; i < count; ++i) sum[i] += work->pixels[i] * (float)drawn[k];
    }
    for (size_t i = 0; i < count; ++i) {
        const float value = weight * picture[i] + (1 - weight) * sum[i];
        work->pixels[i] = value < 0 ? 0 : value > 255 ? 255 : value;
    }
    leati_free(memory);
    return status;
}

/* ---- RandomColorJitter ---- */

/* The steps that the factors stand for, in the order in which they are applied. */
static const char *const jitter_names[] = {"RandomBrightness", "RandomContrast", "RandomSaturation",
                                           "RandomHue"};
enum { JITTERS = 4 };

/* Adds the text of a step with the factor that was given. */
static void add_jitter(leati_text *text, const char *name, const leati_argument *factor) {
    leati_text_add(text, "%s%s(%s", text->length > 0 ? "," : "", name, factor->is_list ? "(" : "");
    for (int i = 0; i < factor->count; ++i) {
        char number[40];
        snprintf(number, sizeof number, "%.15g", factor->number[i]);
        leati_decimal_point(number);
        leati_text_add(text, "%s%s", i > 0 ? "," : "", number);
    }
    leati_text_add(text, "%s)", factor->is_list ? ")" : "");
}

static leat_status check_jitter(leati_step *step, leat_error *err) {
    const leati_extent *e = &step->before;
    leati_text text = {0};
    for (int i = 0; i < JITTERS; ++i)
        if (step->arguments[i].count > 0) add_jitter(&text, jitter_names[i], &step->arguments[i]);
    leat_status status = LEAT_OK;
    if (text.failed)
        status = leati_fail_memory(err, 0, "the steps of RandomColorJitter");
    else if (text.length > 0)
        status = leat_augment_create(&step->inner, text.data, e->height, e->width, e->channels, err);
    leati_text_fini(&text);
    return leati_prefix(status, err, "%s", step->type->name);
}

static void draw_jitter(const leati_step *step, leat_rng *rng, double *drawn) {
    int inner = 0;
    for (int i = 0; i < JITTERS; ++i)
        if (step->arguments[i].count > 0) draw_inner(step, inner++, rng, drawn + i);
}

static leat_status apply_jitter(const leati_step *step, const double *drawn, leati_work *work,
                                leat_error *err) {
    int inner = 0;
    for (int i = 0; i < JITTERS; ++i)
        if (step->arguments[i].count > 0)
            LEATI_TRY(leati_step_run(&step->inner->steps[inner++], drawn + i, work, err));
    return LEAT_OK;
}

#define INTERPOLATION                                                                                        \
    { "interpolation", LEATI_ARGUMENT_WORD, "bilinear", "nearest bilinear", 0, 0 }

const leati_step_type leati_policy_steps[] = {
    {.name = "RandAugment",
     .parameters = {{"factor", LEATI_ARGUMENT_LIST, "0.5", NULL, 0, 1},
                    {"num_ops", LEATI_ARGUMENT_NUMBER, "2", NULL, 1, MOST_OPS},
                    INTERPOLATION},
     .draws = "shear_x shear_y height_translate width_translate angle - rgb_delta - color_factor - "
              "contrast_factor - "
              "sharpness_factor - shift_factor - additions thresholds - - - - layer_0 layer_1 layer_2 "
              "layer_3 layer_4 "
              "layer_5 layer_6 layer_7",
     .check = check_rand_augment,
     .draw = draw_rand_augment,
     .apply = apply_rand_augment,
     .on_masks = true},
    {.name = "AugMix",
     .parameters = {{"factor", LEATI_ARGUMENT_LIST, "0.3", NULL, 0, 1},
                    {"num_chains", LEATI_ARGUMENT_NUMBER, "3", NULL, 1, MOST_CHAINS},
                    {"chain_depth", LEATI_ARGUMENT_NUMBER, "3", NULL, 1, 8},
                    {"alpha", LEATI_ARGUMENT_NUMBER, "1", NULL, 0.01, 1000},
                    {"all_ops", LEATI_ARGUMENT_BOOL, "true", NULL, 0, 0},
                    INTERPOLATION},
     .draws = "chain_mixing_weight_0 chain_mixing_weight_1 chain_mixing_weight_2 "
              "chain_mixing_weight_3 chain_mixing_weight_4 chain_mixing_weight_5 "
              "chain_mixing_weight_6 chain_mixing_weight_7 weight_sample layer_0 first_0 second_0 "
              "layer_1 first_1 second_1 layer_2 first_2 second_2 layer_3 first_3 second_3 layer_4 "
              "first_4 second_4 layer_5 first_5 second_5 layer_6 first_6 second_6 layer_7 first_7 "
              "second_7 layer_8 first_8 second_8 layer_9 first_9 second_9 layer_10 first_10 "
              "second_10 layer_11 first_11 second_11 layer_12 first_12 second_12 layer_13 first_13 "
              "second_13 layer_14 first_14 second_14 layer_15 first_15 second_15",
     .check = check_aug_mix,
     .draw = draw_aug_mix,
     .apply = apply_aug_mix},
    {.name = "RandomColorJitter",
     .parameters = {{"brightness_factor", LEATI_ARGUMENT_LIST, NULL, NULL, -1, 1},
                    {"contrast_factor", LEATI_ARGUMENT_LIST, NULL, NULL, 0, 1},
                    {"saturation_factor", LEATI_ARGUMENT_LIST, NULL, NULL, -1, 1},
                    {"hue_factor", LEATI_ARGUMENT_LIST, NULL, NULL, 0, 1}},
     .draws = "rgb_delta contrast_factor saturation_factor hue_factor",
     .check = check_jitter,
     .draw = draw_jitter,
     .apply = apply_jitter},
    {.name = NULL},
};
