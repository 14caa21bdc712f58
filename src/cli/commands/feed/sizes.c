/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of the sizes of pictures.  Room: cli. */
#include "cli/commands/feed/sizes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/text/say.h"

static int compare(const void *a, const void *b) {
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* Compares pictures by height, then by width. */
static int compare_pairs(const void *a, const void *b) {
    const int order = compare(a, b);
    return order != 0 ? order : compare((const int64_t *)a + 1, (const int64_t *)b + 1);
}

/* Computes the range of column `column` of the pairs. */
static cli_range range_of(const int64_t *pairs, int64_t count, int column) {
    int64_t *values = malloc((size_t)count * sizeof *values);
    if (!values) return (cli_range){0};
    for (int64_t i = 0; i < count; ++i) values[i] = pairs[2 * i + column];
    qsort(values, (size_t)count, sizeof *values, compare);
    const cli_range out = {values[0], values[count / 2], values[count - 1]};
    free(values);
    return out;
}

static void find_most_frequent(cli_sizes *out, const int64_t *pairs, int64_t count) {
    for (int64_t begin = 0, end = 0; begin < count; begin = end) {
        while (end < count && compare_pairs(&pairs[2 * begin], &pairs[2 * end]) == 0) ++end;
        if (end - begin <= out->common_count) continue;
        out->common_count = end - begin;
        out->common_height = pairs[2 * begin];
        out->common_width = pairs[2 * begin + 1];
    }
}

cli_sizes cli_sizes_of(int64_t *sizes, int64_t samples) {
    cli_sizes out = {0};
    if (!sizes) return out;
    for (int64_t i = 0; i < samples; ++i) {
        if (sizes[2 * i] == 0) continue;
        sizes[2 * out.count] = sizes[2 * i];
        sizes[2 * out.count++ + 1] = sizes[2 * i + 1];
    }
    if (out.count == 0) return out;
    qsort(sizes, (size_t)out.count, 2 * sizeof *sizes, compare_pairs);
    out.height = range_of(sizes, out.count, 0);
    out.width = range_of(sizes, out.count, 1);
    find_most_frequent(&out, sizes, out.count);
    return out;
}

static json_t *range_json(const cli_range *range) {
    return json_pack("{s:I, s:I, s:I}", "min", (json_int_t)range->least, "median", (json_int_t)range->median,
                     "max", (json_int_t)range->most);
}

json_t *cli_sizes_json(const cli_sizes *s) {
    if (s->count == 0) return json_null();
    return json_pack("{s:I, s:o, s:o, s:{s:I, s:I, s:I}}", "pictures", (json_int_t)s->count, "height",
                     range_json(&s->height), "width", range_json(&s->width), "most_frequent", "height",
                     (json_int_t)s->common_height, "width", (json_int_t)s->common_width, "pictures",
                     (json_int_t)s->common_count);
}

static void print_range(const char *name, const cli_range *range) {
    cli_say_to(stdout, "  %-10s %" PRId64 " to %" PRId64 " pixels, median %" PRId64 "\n", name, range->least,
               range->most, range->median);
}

void cli_sizes_print(const cli_sizes *s) {
    if (s->count == 0) return;
    print_range("height", &s->height);
    print_range("width", &s->width);
    cli_say_to(stdout,
               "  most frequent size (height x width): %" PRId64 "x%" PRId64 ", %" PRId64 " pictures\n",
               s->common_height, s->common_width, s->common_count);
}
