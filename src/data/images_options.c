/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the options of the source of pictures.  Room: data. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "data/images.h"

/* Finds a word in a list; a NULL word is the default, number `fallback`. */
static leat_status read_word(int *out, const char *key, char *word, const char *const *names, int count,
                             int fallback, leat_error *err) {
    *out = fallback;
    if (!word) return LEAT_OK;
    LEATI_TRY(leati_spec_decode(word, err));
    leati_text expected = {0};
    for (int i = 0; i < count; ++i) {
        if (strcmp(names[i], word) == 0) {
            *out = i;
            leati_text_fini(&expected);
            return LEAT_OK;
        }
        leati_text_add(&expected, "%s%s", i == 0 ? "" : i == count - 1 ? " or " : ", ", names[i]);
    }
    leat_status status = leati_fail(err, LEAT_EINVAL, "%s=%s: expected %s", key, word,
                                    expected.data ? expected.data : "another word");
    leati_text_fini(&expected);
    return status;
}

static leat_status read_bool(bool *out, const char *key, char *word, leat_error *err) {
    static const char *const names[] = {"false", "true"};
    int value = 0;
    LEATI_TRY(read_word(&value, key, word, names, 2, 0, err));
    *out = value == 1;
    return LEAT_OK;
}

/* Reads digits at *text and moves *text behind them; returns -1 if there are none or the number is above `most`. */
static int64_t read_digits(const char **text, int64_t most) {
    int64_t value = 0;
    const char *begin = *text;
    for (; **text >= '0' && **text <= '9' && value <= most; ++*text) value = 10 * value + (**text - '0');
    return *text == begin || value > most ? -1 : value;
}

static leat_status read_size(leati_image_choices *out, char *text, leat_error *err) {
    out->width = out->height = 256; /* Keras's default */
    if (!text) return LEAT_OK;
    LEATI_TRY(leati_spec_decode(text, err));
    const char *p = text;
    out->height = read_digits(&p, 65535);
    if (*p == 'x') {
        ++p;
        out->width = read_digits(&p, 65535);
    } else {
        out->width = -1;
    }
    if (*p == '\0' && out->width > 0 && out->height > 0) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "size=%s: expected HEIGHTxWIDTH, such as 224x224", text);
}

static leat_status read_integer(int64_t *out, const char *key, char *text, int64_t most, leat_error *err) {
    LEATI_TRY(leati_spec_decode(text, err));
    const char *p = text;
    *out = read_digits(&p, most);
    if (*p == '\0' && *out >= 0) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "%s=%s: expected an integer from 0 to %lld", key, text,
                      (long long)most);
}

/* Reads a decimal fraction between 0 and 1, such as 0.2, independently of the locale. */
static leat_status read_share(double *out, char *text, leat_error *err) {
    LEATI_TRY(leati_spec_decode(text, err));
    const char *p = text;
    double power = 1, value = 0;
    if (*p == '0') ++p;
    bool fits = *p == '.' && p[1] != '\0';
    for (++p; fits && *p; ++p) {
        fits = *p >= '0' && *p <= '9' && power < 1e14;
        value = 10 * value + (*p - '0');
        power *= 10;
    }
    *out = value / power;
    if (fits && value > 0) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "validation=%s: expected a number between 0 and 1, such as 0.2",
                      text);
}

/* Splits a list at its commas, then decodes the parts. */
static leat_status read_list(char **out, int *count, int most, const char *key, char *text, leat_error *err) {
    while (text) {
        char *comma = strchr(text, ',');
        if (*count == most)
            return leati_fail(err, LEAT_EINVAL, "%s: expected at most %d names, received more", key, most);
        if (comma) *comma = '\0';
        out[(*count)++] = text;
        LEATI_TRY(leati_spec_decode(text, err));
        if (*text == '\0') return leati_fail(err, LEAT_EINVAL, "%s: name %d is empty", key, *count);
        text = comma ? comma + 1 : NULL;
    }
    return LEAT_OK;
}

static leat_status read_split(leati_image_choices *out, const leati_image_texts *texts, leat_error *err) {
    static const char *const splits[] = {"shuffled", "ordered", "per_class"};
    static const char *const subsets[] = {"training", "validation"};
    int split = 0, subset = 0;
    int64_t seed = 0;
    LEATI_TRY(read_word(&split, "split", texts->split, splits, 3, 0, err));
    LEATI_TRY(read_word(&subset, "subset", texts->subset, subsets, 2, -1, err));
    if (texts->validation) LEATI_TRY(read_share(&out->validation, texts->validation, err));
    if (texts->seed) LEATI_TRY(read_integer(&seed, "seed", texts->seed, UINT32_MAX, err));
    out->split = (leati_split_mode)split;
    out->is_validation = subset == 1;
    out->has_seed = texts->seed != NULL;
    out->seed = (uint32_t)seed;
    if ((texts->validation != NULL) != (subset >= 0))
        return leati_fail(
            err, LEAT_EINVAL,
            "expected both validation=SHARE and subset=training or subset=validation, or neither");
    if (!texts->validation && (texts->split || texts->seed))
        return leati_fail(err, LEAT_EINVAL,
                          "split and seed need validation=SHARE (the feed shuffles: --shuffle)");
    if (texts->validation && out->split == LEATI_SPLIT_SHUFFLED && !out->has_seed)
        return leati_fail(
            err, LEAT_EINVAL,
            "validation needs seed=N, the same for both subsets, or split=ordered or split=per_class");
    return LEAT_OK;
}

static leat_status read_labels(leati_image_choices *out, const leati_image_texts *texts, leat_error *err) {
    static const char *const modes[] = {"int",  "onehot",   "binary", "raw",
                                        "none", "multihot", "input",  "multi_output"};
    int labels = 0;
    LEATI_TRY(read_word(&labels, "labels", texts->labels, modes, sizeof modes / sizeof *modes,
                        texts->masks || texts->mask_col ? LEATI_LABELS_NONE : LEATI_LABELS_INT, err));
    out->labels = (leati_label_mode)labels;
    if (texts->masks) LEATI_TRY(leati_spec_decode(texts->masks, err));
    if (texts->mask_col) LEATI_TRY(leati_spec_decode(texts->mask_col, err));
    out->masks = texts->masks;
    out->mask_column = texts->mask_col;
    if ((out->masks || out->mask_column) && out->labels != LEATI_LABELS_NONE)
        return leati_fail(err, LEAT_EINVAL, "masks%s%s are the targets: leave labels=%s out",
                          out->masks ? "=" : "", out->masks ? out->masks : "", texts->labels);
    out->label_separator = '|';
    if (texts->label_separator) {
        LEATI_TRY(leati_spec_decode(texts->label_separator, err));
        if (texts->label_separator[0] == '\0' || texts->label_separator[1] != '\0')
            return leati_fail(err, LEAT_EINVAL, "label_separator=%s: expected one character",
                              texts->label_separator);
        out->label_separator = texts->label_separator[0];
    }
    LEATI_TRY(read_list(out->classes, &out->class_count, 256, "classes", texts->classes, err));
    LEATI_TRY(read_list(out->y_columns, &out->y_count, 32, "y_col", texts->y_col, err));
    out->directory = texts->directory;
    if (out->directory) LEATI_TRY(leati_spec_decode(out->directory, err));
    out->x_column = texts->x_col ? texts->x_col : NULL;
    if (out->x_column) LEATI_TRY(leati_spec_decode(out->x_column, err));
    const bool numbers = out->labels == LEATI_LABELS_RAW || out->labels == LEATI_LABELS_MULTI;
    if (out->y_count > 1 && !numbers)
        return leati_fail(err, LEAT_EINVAL,
                          "several columns in y_col need labels=raw, which makes one target of them, or "
                          "labels=multi_output, which makes a target of each");
    const bool classes = leati_labels_are_classes(out->labels);
    if (!classes && out->class_count > 0)
        return leati_fail(err, LEAT_EINVAL, "classes needs labels that are classes, and labels=%s was given",
                          modes[labels]);
    if (!classes && !numbers && out->split == LEATI_SPLIT_PER_CLASS)
        return leati_fail(err, LEAT_EINVAL,
                          "split=per_class needs labels that are classes, and labels=%s was given",
                          modes[labels]);
    return LEAT_OK;
}

static leat_status read_mix(leati_image_choices *out, const leati_image_texts *texts, leat_error *err) {
    if (!texts->mix) return LEAT_OK;
    LEATI_TRY(leati_spec_decode(texts->mix, err));
    LEATI_TRY(leati_mix_read(&out->mix, texts->mix, err));
    if (out->labels == LEATI_LABELS_ONEHOT) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL,
                      "mix=%s expects labels=onehot, since a label becomes a mixture of two", texts->mix);
}

leat_status leati_image_choices_read(leati_image_choices *out, const leati_settings *settings,
                                     leat_error *err) {
    static const char *const colors[] = {"rgb", "grayscale", "rgba"};
    static const leati_picture_color color_values[] = {LEATI_COLOR_RGB, LEATI_COLOR_GRAYSCALE,
                                                       LEATI_COLOR_RGBA};
    static const char *const decodings[] = {"full", "scaled"}, *const policies[] = {"fail", "skip"};
    const leati_image_texts *texts = &settings->images;
    int color = 0, filter = 0, fit = 0, decoding = 0, policy = 0;
    *out = (leati_image_choices){.numerator = settings->columns.numerator,
                                 .denominator = settings->columns.denominator};
    LEATI_TRY(read_size(out, texts->size, err));
    LEATI_TRY(read_word(&color, "color", texts->color, colors, 3, 0, err));
    LEATI_TRY(read_word(&filter, "interpolation", texts->interpolation, leati_filter_names,
                        LEATI_FILTER_COUNT, LEATI_FILTER_BILINEAR, err));
    LEATI_TRY(read_word(&fit, "aspect", texts->aspect, leati_fit_names, LEATI_FIT_COUNT, 0, err));
    LEATI_TRY(read_word(&decoding, "decode", texts->decode, decodings, 2, 0, err));
    LEATI_TRY(read_word(&policy, "bad", texts->bad, policies, 2, 0, err));
    LEATI_TRY(read_bool(&out->follow_links, "follow_links", texts->follow_links, err));
    if (texts->max_pixels)
        LEATI_TRY(read_integer(&out->max_pixels, "max_pixels", texts->max_pixels, INT32_MAX, err));
    if (texts->augment) LEATI_TRY(leati_spec_decode(texts->augment, err));
    out->augment = texts->augment;
    if (texts->statistics) LEATI_TRY(leati_spec_decode(texts->statistics, err));
    out->statistics = texts->statistics;
    if (texts->cache) LEATI_TRY(leati_spec_decode(texts->cache, err));
    if (texts->cache && *texts->cache == '\0')
        return leati_fail(err, LEAT_EINVAL,
                          "cache=: expected memory, memory:SIZE such as memory:4G, or a file");
    out->cache = texts->cache;
    out->color = color_values[color];
    out->filter = (leati_filter)filter;
    out->fit = (leati_fit)fit;
    out->scaled_decoding = decoding == 1;
    out->skip_bad = policy == 1;
    LEATI_TRY(read_split(out, texts, err));
    LEATI_TRY(read_labels(out, texts, err));
    return read_mix(out, texts, err);
}
