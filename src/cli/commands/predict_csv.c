/* SPDX-License-Identifier: Apache-2.0 */
/* Writes predictions as a table.  Room: cli. */
#include "cli/commands/predict_csv.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run/files.h"
#include "leat/model.h"
#include "leat/source.h"

static int64_t width_of(const leat_tensor *output) {
    int64_t width = 1;
    for (int i = 1; i < output->rank; ++i) width *= output->shape[i];
    return width;
}

/* Writes a field with quotes, if it has characters that need them (RFC 4180). */
static void write_text(FILE *out, const char *text) {
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    putc('"', out);
    for (; *text; ++text) {
        if (*text == '"') putc('"', out);
        putc(*text, out);
    }
    putc('"', out);
}

static void write_header(FILE *out, char *const *names, const leat_tensor *outputs, int count) {
    fputs("sample", out);
    for (int i = 0; i < count; ++i) {
        const int64_t width = width_of(&outputs[i]);
        for (int64_t k = 0; k < width; ++k) {
            char number[24] = "";
            if (width > 1) snprintf(number, sizeof number, "_%" PRId64, k);
            putc(',', out);
            write_text(out, names[i]);
            fputs(number, out);
        }
    }
}

/* Returns true if the data says how many samples it has, and all of them were predicted. */
static bool are_all(const leat_sequence *data, int64_t predicted) {
    return !data->get_samples || data->samples(data->user) == predicted;
}

static void write_sample(FILE *out, const leat_sequence *data, int64_t number) {
    char *name = NULL;
    if (leat_source_sample_name(data, number, NULL, &name, NULL) == LEAT_OK)
        write_text(out, name);
    else
        fprintf(out, "%" PRId64, number);
    leat_string_free(name);
}

/* Writes the numbers of one sample of an output; each can be read back exactly.  `row` has room for them. */
static leat_status write_numbers(FILE *out, const leat_tensor *output, int64_t sample, double *row,
                                 leat_error *err) {
    const int64_t width = width_of(output);
    const size_t bytes = leat_tensor_bytes(output) / (size_t)output->shape[0];
    const leat_tensor from =
        leat_tensor_view(output->dtype, 1, &width, (char *)output->data + (size_t)sample * bytes);
    const leat_tensor to = leat_tensor_view(LEAT_F64, 1, &width, row);
    const int digits = output->dtype == LEAT_F32 ? 9 : 17;
    leat_status status = leat_tensor_copy(&to, &from, NULL, err);
    for (int64_t k = 0; status == LEAT_OK && k < width; ++k) fprintf(out, ",%.*g", digits, row[k]);
    return status;
}

static leat_status write_rows(FILE *out, const leat_sequence *data, const leat_tensor *outputs, int count,
                              double *row, leat_error *err) {
    const int64_t samples = outputs[0].shape[0];
    const bool has_places = are_all(data, samples);
    leat_status status = LEAT_OK;
    for (int64_t n = 0; status == LEAT_OK && n < samples; ++n) {
        putc('\n', out);
        if (has_places) write_sample(out, data, n);
        for (int i = 0; status == LEAT_OK && i < count; ++i)
            status = write_numbers(out, &outputs[i], n, row, err);
    }
    return status;
}

/* Sets *text to the table without its last line break, for free(). */
static leat_status make_table(char **text, const leat_sequence *data, char *const *names,
                              const leat_tensor *outputs, int count, leat_error *err) {
    size_t bytes = 0, widest = 1;
    for (int i = 0; i < count; ++i)
        if ((size_t)width_of(&outputs[i]) > widest) widest = (size_t)width_of(&outputs[i]);
    FILE *out = open_memstream(text, &bytes);
    double *row = calloc(widest, sizeof *row);
    leat_status status =
        out && row ? LEAT_OK : leat_error_set(err, LEAT_ENOMEM, "no memory for a row of the table");
    if (status == LEAT_OK) {
        write_header(out, names, outputs, count);
        status = write_rows(out, data, outputs, count, row, err);
    }
    free(row);
    const bool is_whole = out && ferror(out) == 0;
    if (out && (fclose(out) != 0 || !is_whole) && status == LEAT_OK)
        status = leat_error_set(err, LEAT_ENOMEM, "no memory for the text of the table");
    return status;
}

leat_status cli_predict_csv_write(const char *path, const leat_sequence *data, char *const *names,
                                  const leat_tensor *outputs, int count, leat_error *err) {
    char *text = NULL;
    leat_status status = make_table(&text, data, names, outputs, count, err);
    if (status == LEAT_OK) status = cli_replace_text(path, text, err);
    free(text);
    return status;
}
