/* SPDX-License-Identifier: Apache-2.0 */
/* Counts classes and the values of masks.  Room: cli. */
#include "cli/commands/feed/targets.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/text/say.h"

/* The most values of masks that are printed. */
enum { MAX_VALUES = 16 };

static const leat_tensor *first_target(const cli_samples *samples) {
    const leat_batch_spec *spec = &samples->data->spec;
    if (leat_batch_spec_count(spec, LEAT_PART_TARGET) == 0) return NULL;
    return &samples->batch.tensors[leat_batch_spec_first(spec, LEAT_PART_TARGET)];
}

static void note_pixels(cli_targets *t, const leat_tensor *mask) {
    const uint8_t *values = mask->data;
    for (int64_t i = 0; i < leat_tensor_count(mask); ++i) ++t->pixels[values[i]];
}

/* Counts the ones of a row of zeros and ones. */
static void note_row(cli_targets *t, const float *row, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
        if (row[i] != 0 && row[i] != 1) return;
    for (int64_t i = 0; i < count; ++i) t->ones[i] += row[i] == 1;
    ++t->bit_rows;
    t->width = count;
}

void cli_targets_note(cli_targets *t, const cli_samples *samples) {
    const int64_t number = cli_samples_class(samples);
    const leat_tensor *target = first_target(samples);
    ++t->samples;
    if (number >= 0 && number < CLI_MAX_CLASSES) {
        ++t->classes[number];
        if (number >= t->class_count) t->class_count = number + 1;
    } else {
        ++t->unclassed;
    }
    if (!target) return;
    const int64_t count = leat_tensor_count(target);
    if (target->dtype == LEAT_U8 && target->rank == 4)
        note_pixels(t, target);
    else if (target->dtype == LEAT_F32 && target->rank == 2 && count > 1 && count <= CLI_MAX_CLASSES)
        note_row(t, target->data, count);
}

void cli_targets_add(cli_targets *t, const cli_targets *more) {
    for (int64_t i = 0; i < CLI_MAX_CLASSES; ++i) {
        t->classes[i] += more->classes[i];
        t->ones[i] += more->ones[i];
    }
    for (int i = 0; i < 256; ++i) t->pixels[i] += more->pixels[i];
    t->samples += more->samples;
    t->unclassed += more->unclassed;
    t->bit_rows += more->bit_rows;
    if (more->width > t->width) t->width = more->width;
    if (more->class_count > t->class_count) t->class_count = more->class_count;
}

void cli_targets_end(cli_targets *t, const cli_samples *samples) {
    const leat_tensor *target = first_target(samples);
    t->may_have_several = t->unclassed > 0 && t->width > 0 && t->bit_rows == t->samples;
    if (t->may_have_several) {
        memcpy(t->classes, t->ones, sizeof t->classes);
        t->class_count = t->width;
    } else if (target && target->dtype == LEAT_F32 && t->unclassed > 0) {
        t->class_count = 0; /* numbers, of which some look like classes */
    }
    while (t->class_count > 0 && t->class_count < CLI_MAX_CLASSES &&
           cli_samples_class_name(samples, t->class_count))
        ++t->class_count;
}

json_t *cli_targets_classes(const cli_targets *t, const cli_samples *samples) {
    json_t *list = json_array();
    for (int64_t i = 0; i < t->class_count; ++i) {
        const char *name = cli_samples_class_name(samples, i);
        json_array_append_new(list, json_pack("{s:I, s:s?, s:I}", "label", (json_int_t)i, "name", name,
                                              "samples", (json_int_t)t->classes[i]));
    }
    return list;
}

json_t *cli_targets_masks(const cli_targets *t) {
    json_t *list = json_array();
    for (int i = 0; i < 256; ++i)
        if (t->pixels[i] > 0)
            json_array_append_new(list,
                                  json_pack("{s:i, s:I}", "value", i, "pixels", (json_int_t)t->pixels[i]));
    return list;
}

/* Says how unequal the classes are, if there are several. */
static void print_balance(const cli_targets *t) {
    int64_t least = INT64_MAX, most = 0;
    for (int64_t i = 0; i < t->class_count; ++i) {
        if (t->classes[i] < least) least = t->classes[i];
        if (t->classes[i] > most) most = t->classes[i];
    }
    if (t->class_count < 2) return;
    if (least == 0)
        cli_say_to(stdout, "  balance: a class has no samples, the largest has %" PRId64 "\n", most);
    else
        cli_say_to(stdout, "  balance: the largest class has %.1f times the samples of the smallest\n",
                   (double)most / (double)least);
}

static void print_masks(const cli_targets *t) {
    int64_t all = 0;
    int values = 0;
    for (int i = 0; i < 256; ++i) all += t->pixels[i];
    for (int i = 0; i < 256; ++i) {
        if (t->pixels[i] == 0) continue;
        if (values++ == 0) cli_say_to(stdout, "  values of the masks:");
        if (values <= MAX_VALUES)
            cli_say_to(stdout, "%s %d (%.1f %%)", values > 1 ? "," : "", i,
                       100.0 * (double)t->pixels[i] / (double)all);
    }
    if (values > MAX_VALUES) cli_say_to(stdout, " and %d more", values - MAX_VALUES);
    if (values > 0) cli_say_to(stdout, "\n");
}

void cli_targets_print(const cli_targets *t, const cli_samples *samples) {
    for (int64_t i = 0; i < t->class_count; ++i) {
        const char *name = cli_samples_class_name(samples, i);
        cli_say_to(stdout, "  class %-4" PRId64 " %8" PRId64 " samples, %5.1f %%%s%s\n", i, t->classes[i],
                   100.0 * (double)t->classes[i] / (double)t->samples, name ? "  " : "", name ? name : "");
    }
    if (t->may_have_several) cli_say_to(stdout, "  a sample may have several classes, or none\n");
    print_balance(t);
    print_masks(t);
}
