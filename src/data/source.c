/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the source that a SPEC names, with the tables of data/kinds.h.  Room: data. */
#include "leat/source.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/call.h"
#include "data/combine/combine.h"
#include "data/images.h"
#include "data/kinds.h"
#include "tensor/sequence.h"

/* ---- Values of options ---- */

static leat_status apply_scale(leati_settings *settings, char *value, leat_error *err) {
    double numerator = 0, denominator = 1;
    LEATI_TRY(leati_spec_decode(value, err));
    const char *rest = leati_read_decimal(value, &numerator);
    if (rest && *rest == '/') rest = leati_read_decimal(rest + 1, &denominator);
    if (!rest || *rest || numerator == 0 || denominator == 0)
        return leati_fail(err, LEAT_EINVAL,
                          "scale=%s: expected a number or a fraction other than 0, such as 1/255", value);
    settings->columns.numerator = numerator;
    settings->columns.denominator = denominator;
    return LEAT_OK;
}

/* Reads an integer from 1 to 2^31-1 at *text and moves *text behind it; returns 0 if there is none. */
static int64_t read_count(const char **text) {
    int64_t value = 0;
    for (; **text >= '0' && **text <= '9' && value <= INT32_MAX; ++*text) value = 10 * value + (**text - '0');
    return value <= INT32_MAX ? value : 0;
}

static leat_status apply_shape(leati_settings *settings, char *value, leat_error *err) {
    LEATI_TRY(leati_spec_decode(value, err));
    const char *p = value;
    int rank = 0;
    for (;; ++p) {
        int64_t dimension = read_count(&p);
        if (dimension < 1 || rank == LEAT_MAX_RANK - 1 || (*p && *p != 'x'))
            return leati_fail(err, LEAT_EINVAL,
                              "shape=%s: expected 1 to %d dimensions with x between them, such as 28x28x1",
                              value, LEAT_MAX_RANK - 1);
        settings->columns.shape[rank++] = dimension;
        if (!*p) break;
    }
    settings->columns.shape_rank = rank;
    return LEAT_OK;
}

static leat_status apply_onehot(leati_settings *settings, char *value, leat_error *err) {
    LEATI_TRY(leati_spec_decode(value, err));
    const char *p = value;
    settings->columns.onehot = read_count(&p);
    if (*p || settings->columns.onehot < 1)
        return leati_fail(err, LEAT_EINVAL, "onehot=%s: expected the number of classes", value);
    return LEAT_OK;
}

static leat_status apply_inputs(leati_settings *settings, char *value, leat_error *err) {
    (void)err;
    settings->inputs = value;
    return LEAT_OK;
}

static leat_status apply_targets(leati_settings *settings, char *value, leat_error *err) {
    (void)err;
    settings->targets = value;
    return LEAT_OK;
}

static leat_status apply_sample_weights(leati_settings *settings, char *value, leat_error *err) {
    (void)err;
    settings->sample_weights = value;
    return LEAT_OK;
}

/* The options of pictures are parsed together, when the source is opened. */
#define STORE_TEXT(key, value_name, text)                                                                    \
    static leat_status apply_##key(leati_settings *settings, char *value, leat_error *err) {                 \
        (void)err;                                                                                           \
        settings->images.key = value;                                                                        \
        return LEAT_OK;                                                                                      \
    }
LEATI_IMAGE_OPTION_LIST(STORE_TEXT)
#undef STORE_TEXT
#define STORE_RAGGED_TEXT(key, value_name, text)                                                             \
    static leat_status apply_##key(leati_settings *settings, char *value, leat_error *err) {                 \
        settings->ragged.key = value;                                                                        \
        return leati_spec_decode(value, err);                                                                \
    }
LEATI_RAGGED_OPTION_LIST(STORE_RAGGED_TEXT)
#undef STORE_RAGGED_TEXT

/* The kind reads the option from the SPEC. */
static leat_status keep_text(leati_settings *settings, char *value, leat_error *err) {
    (void)settings;
    (void)value;
    (void)err;
    return LEAT_OK;
}

/* ---- Tables ---- */

typedef struct kind {
    const char *name, *usage;
    int path_min, path_max;
    leati_kind_open *open;
} kind;

static const kind kinds[] = {
#define KIND_ROW(name, paths, least, most, text) {#name, #name ":" paths, least, most, leati_open_##name},
    LEATI_KIND_LIST(KIND_ROW)
#undef KIND_ROW
};

static const struct {
    const char *key, *kinds;
    leat_status (*apply)(leati_settings *settings, char *value, leat_error *err);
} option_types[] = {
#define OPTION_ROW(key, kinds, value, text) {#key, " " kinds " ", apply_##key},
    LEATI_OPTION_LIST(OPTION_ROW)
#undef OPTION_ROW
#define IMAGE_OPTION_ROW(key, value, text) {#key, " images ", apply_##key},
        LEATI_IMAGE_OPTION_LIST(IMAGE_OPTION_ROW)
#undef IMAGE_OPTION_ROW
#define TEXT_OPTION_ROW(key, kinds, value, text) {#key, " " kinds " ", keep_text},
            LEATI_TEXT_OPTION_LIST(TEXT_OPTION_ROW)
#undef TEXT_OPTION_ROW
#define PICTURE_ROW(key) {#key, " tar tfrecord ", apply_##key},
                LEATI_PICTURE_KEY_LIST(PICTURE_ROW)
#undef PICTURE_ROW
#define RAGGED_OPTION_ROW(key, value, text) {#key, " ragged ", apply_##key},
                    LEATI_RAGGED_OPTION_LIST(RAGGED_OPTION_ROW)
#undef RAGGED_OPTION_ROW
};

enum {
    kind_count = sizeof kinds / sizeof *kinds,
    option_type_count = sizeof option_types / sizeof *option_types
};

static leat_status find_kind_by_name(const kind **out, const char *name, leat_error *err) {
    const char *names[kind_count];
    for (size_t i = 0; i < kind_count; ++i) {
        names[i] = kinds[i].name;
        if (strcmp(kinds[i].name, name) != 0) continue;
        *out = &kinds[i];
        return LEAT_OK;
    }
    const char *near = leati_nearest(name, names, kind_count);
#define KIND_NAME(name, paths, least, most, text) " " #name
    return leati_fail(err, LEAT_EINVAL, "no kind '%s'%s%s%s; there are" LEATI_KIND_LIST(KIND_NAME), name,
                      near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
#undef KIND_NAME
}

/* Finds the kind of the SPEC and checks the number of paths. */
static leat_status find_kind(const kind **out, const leati_spec *spec, leat_error *err) {
    const kind *k = NULL;
    LEATI_TRY(find_kind_by_name(&k, spec->kind, err));
    *out = k;
    if (spec->path_count >= k->path_min && spec->path_count <= k->path_max) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "received %d paths, expected %s (a comma in a path is written %%2C)",
                      spec->path_count, k->usage);
}

leat_status leati_spec_check_kind(const leati_spec *spec, leat_error *err) {
    const kind *k = NULL;
    return find_kind(&k, spec, err);
}

/* Returns true if the kind has the option with this index. */
static bool has_option(const kind *k, size_t option) {
    size_t length = strlen(k->name);
    for (const char *at = option_types[option].kinds; (at = strstr(at, k->name)); at += length)
        if (at[-1] == ' ' && at[length] == ' ') return true;
    return false;
}

static leat_status apply_option(leati_settings *settings, const kind *k, const char *key, char *value,
                                leat_error *err) {
    const char *names[option_type_count];
    size_t count = 0;
    for (size_t i = 0; i < option_type_count; ++i) {
        if (!has_option(k, i)) continue;
        if (strcmp(option_types[i].key, key) == 0) return option_types[i].apply(settings, value, err);
        names[count++] = option_types[i].key;
    }
    const char *hint = leati_keras_option(key);
    if (hint)
        return leati_fail(err, LEAT_EINVAL, "%s has no option '%s': what Keras calls so is %s", k->name, key,
                          hint);
    const char *near = leati_nearest(key, names, count);
    return leati_fail(err, LEAT_EINVAL, "%s has no option '%s'%s%s%s", k->name, key,
                      near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
}

leat_status leati_settings_read(leati_settings *out, const leati_spec *spec, leat_error *err) {
    const kind *k = NULL;
    *out = (leati_settings){.columns = leati_column_options_default()};
    LEATI_TRY(find_kind(&k, spec, err));
    for (int i = 0; i < spec->option_count; ++i)
        LEATI_TRY(apply_option(out, k, spec->keys[i], spec->values[i], err));
    return LEAT_OK;
}

static leat_status open_spec(leat_sequence *out, const leati_spec *spec, const char *text,
                             const leat_source_options *options, leat_error *err) {
    const kind *k = NULL;
    leati_settings settings;
    LEATI_TRY(find_kind(&k, spec, err));
    LEATI_TRY(leati_settings_read(&settings, spec, err));
    return k->open(out, spec, text, &settings, options, err);
}

leat_status leati_open_text(leat_sequence *out, const char *text, const leat_source_options *options,
                            int depth, leat_error *err) {
    leati_spec parsed;
    if (leati_is_call(text)) return leati_call_open(out, text, options, depth, err);
    LEATI_TRY(leati_spec_parse(&parsed, text, err));
    leat_status status = open_spec(out, &parsed, text, options, err);
    leati_spec_fini(&parsed);
    return status;
}

/* Completes the sources of pictures in an opened sequence with statistics of its training data: of all samples but
 * those that a split for validation will take from the end. */
static leat_status fit_sources(const leat_sequence *whole, const leat_source_options *options,
                               leat_error *err) {
    if (!whole->samples || (!leati_is_images(whole) && !leati_combined_of(whole))) return LEAT_OK;
    const int64_t samples = whole->samples(whole->user);
    unsigned char *wanted = leati_calloc((size_t)samples, 1);
    if (!wanted) return leati_fail_memory(err, (size_t)samples, "the samples for statistics");
    if (options->validation_split > 0) leati_sequence_fix(whole);
    memset(wanted, 1, (size_t)leati_split_count(samples, options->validation_split));
    const leat_status status = leati_combined_visit(whole, wanted, leati_images_fit_source, options, err);
    leati_free(wanted);
    return status;
}

leat_status leat_source_open(leat_sequence *out, size_t size, const char *spec,
                             const leat_source_options *options, leat_error *err) {
    LEATI_GIVEN(out, err);
    leat_sequence made;
    leat_source_options effective;
    LEATI_TRY(leati_sequence_begin(out, size, err));
    LEATI_GIVEN(spec, err);
    LEATI_TRY(leati_source_options_read(options, &effective, err));
    leat_status status = leati_open_text(&made, spec, &effective, 0, err);
    if (status == LEAT_OK) {
        status = fit_sources(&made, &effective, err);
        if (status != LEAT_OK) leat_sequence_destroy(&made);
    }
    if (status == LEAT_OK) leati_sequence_write(&made, out, size);
    return status == LEAT_OK ? LEAT_OK : leati_prefix(status, err, "data '%.160s'", spec);
}

/* The last part of leat_source_help. */
#define HELP_NOTES                                                                                           \
    "tar and tfrecord have the options size, color, interpolation, aspect, decode, max_pixels and bad of\n"  \
    "images for their pictures.  In the paths of csv, tar and tfrecord, {000..099} stands for numbers, "     \
    "and\n"                                                                                                  \
    "* for any text.\n"                                                                                      \
    "The first dimension of an array counts samples.  float64 and sample weights become float32; elements\n" \
    "of other types are not converted.  An input or target with one number for each sample gets the shape\n" \
    "(1,).  An array in Fortran order is copied to C order in memory, once.  A comma, ?, & or % in a path\n" \
    "or a name is percent-escaped: %2C %3F %26 %25; inside of a combination also ( ) and ;: %28 %29 %3B.\n"  \
    "\n"                                                                                                     \
    "Examples:\n"                                                                                            \
    "  'idx:train-images.gz,train-labels.gz?scale=1/255&onehot=10'\n"                                        \
    "  npy:x.npy,y.npy\n"                                                                                    \
    "  'npz:data.npz?inputs=x0,x1&targets=t0'\n"                                                             \
    "  'images:photos?size=224x224&scale=1/255&labels=onehot&validation=0.2&subset=training&seed=1'\n"       \
    "  'csv:train.csv?targets=price&onehot_categories=city&missing=mean&mapping=mapping.json'\n"             \
    "  'tar:train-{000..099}.tar?size=224x224&scale=1/255'\n"                                                \
    "  'tfrecord:train-*.tfrecord?inputs=image:28x28x1&targets=label'\n"                                     \
    "  'plugin:./frames.so?folder=/data&fps=30'\n"                                                           \
    "  'ragged:reviews.npz?maxlen=500&buckets=100,200,300'\n"                                                \
    "  'concat(npz:a.npz; npz:b.npz)'\n"                                                                     \
    "  'timeseries(take(npz:series.npz; count=10000); sequence_length=24)'\n"                                \
    "  'cache(images:photos?size=224x224; file=photos.cache)'\n"

const char *leat_source_help(void) {
#define KIND_HELP(name, paths, least, most, text)          "  " #name ":" paths "\n      " text "\n"
#define OPTION_HELP(key, kinds, value, text)               "  " #key "=" value "   (" kinds ")\n      " text "\n"
#define RAGGED_OPTION_HELP(key, value, text)               "  " #key "=" value "   (ragged)\n      " text "\n"
#define CALL_HELP(name, parts, options, least, most, text) "  " #name "(" parts ")\n      " text "\n"
#define IMAGE_OPTION_HELP(key, value, text)                "  " #key "=" value "   (images)\n      " text "\n"
    return "SPEC names data: KIND:PATH[,PATH...][?KEY=VALUE[&KEY=VALUE...]]\n\nKinds:\n" LEATI_KIND_LIST(
        KIND_HELP) "\nOptions:\n" LEATI_OPTION_LIST(OPTION_HELP) LEATI_IMAGE_OPTION_LIST(IMAGE_OPTION_HELP)
        LEATI_TEXT_OPTION_LIST(OPTION_HELP) LEATI_RAGGED_OPTION_LIST(
            RAGGED_OPTION_HELP) "\nCombinations of SPECs, themselves "
                                "SPECs:\n" LEATI_CALL_LIST(CALL_HELP) "\n" HELP_NOTES;
#undef CALL_HELP
#undef RAGGED_OPTION_HELP
#undef IMAGE_OPTION_HELP
#undef KIND_HELP
#undef OPTION_HELP
}
