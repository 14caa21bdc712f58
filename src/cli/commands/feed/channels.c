/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of the channels of pictures.  Room: cli. */
#include "cli/commands/feed/channels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/text/say.h"

cli_channels cli_channels_of(const leat_batch_spec *spec) {
    const leat_tensor_spec *t = &spec->tensors[0];
    const bool fits =
        t->rank == 3 && (t->dtype == LEAT_U8 || t->dtype == LEAT_F32) && t->shape[2] <= CLI_MAX_CHANNELS;
    return (cli_channels){.count = fits ? t->shape[2] : 0};
}

void cli_channels_note(cli_channels *c, const leat_tensor *t) {
    const uint8_t *bytes = t->data;
    const float *floats = t->data;
    const int64_t count = c->count > 0 ? t->shape[1] * t->shape[2] * t->shape[3] : 0;
    for (int64_t i = 0; i < count; i += c->count)
        for (int64_t k = 0; k < c->count; ++k) {
            const double value = t->dtype == LEAT_U8 ? bytes[i + k] : (double)floats[i + k];
            c->sum[k] += value;
            c->square[k] += value * value;
        }
    if (c->count > 0) c->values += (double)count / (double)c->count;
}

void cli_channels_add(cli_channels *c, const cli_channels *more) {
    for (int64_t k = 0; k < c->count; ++k) {
        c->sum[k] += more->sum[k];
        c->square[k] += more->square[k];
    }
    c->values += more->values;
}

json_t *cli_channels_means(const cli_channels *c) {
    json_t *list = json_array();
    for (int64_t k = 0; k < c->count && c->values > 0; ++k)
        json_array_append_new(list, json_real(c->sum[k] / c->values));
    return list;
}

json_t *cli_channels_deviations(const cli_channels *c) {
    json_t *list = json_array();
    for (int64_t k = 0; k < c->count && c->values > 0; ++k) {
        const double mean = c->sum[k] / c->values, variance = c->square[k] / c->values - mean * mean;
        json_array_append_new(list, json_real(variance > 0 ? sqrt(variance) : 0));
    }
    return list;
}

/* Prints a list of numbers, with a point in every locale, and frees it. */
static void print_list(const char *name, json_t *list) {
    cli_say_to(stdout, "  %-10s (", name);
    for (size_t i = 0; i < json_array_size(list); ++i) {
        char *text = json_dumps(json_array_get(list, i), JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        cli_say_to(stdout, "%s%s", i ? ", " : "", text ? text : "?");
        free(text);
    }
    cli_say_to(stdout, ")\n");
    json_decref(list);
}

void cli_channels_print(const cli_channels *c) {
    if (c->count == 0 || c->values == 0) return;
    print_list("mean", cli_channels_means(c));
    print_list("std", cli_channels_deviations(c));
}
