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

static void write_rows(FILE *out, const leat_sequence *data, const leat_tensor *outputs,
                       double *const *numbers, int count) {
    const int64_t samples = outputs[0].shape[0];
    const bool has_places = are_all(data, samples);
    for (int64_t n = 0; n < samples; ++n) {
        putc('\n', out);
        if (has_places) write_sample(out, data, n);
        for (int i = 0; i < count; ++i) {
            const int64_t width = width_of(&outputs[i]);
            const int digits =
                outputs[i].dtype == LEAT_F32 ? 9 : 17; /* each number can be read back exactly */
            for (int64_t k = 0; k < width; ++k) fprintf(out, ",%.*g", digits, numbers[i][n * width + k]);
        }
    }
}

/* Returns the numbers of a tensor as doubles, for free(); NULL: no memory. */
static double *doubles_of(const leat_tensor *tensor) {
    const int64_t count = leat_tensor_count(tensor);
    double *numbers = calloc((size_t)count + 1, sizeof *numbers);
    const leat_tensor to = leat_tensor_view(LEAT_F64, tensor->rank, tensor->shape, numbers);
    if (numbers && leat_tensor_copy(&to, tensor, NULL, NULL) == LEAT_OK) return numbers;
    free(numbers);
    return NULL;
}

/* Returns the table without its last line break, for free(); NULL: no memory. */
static char *table_of(const leat_sequence *data, char *const *names, const leat_tensor *outputs, int count) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    double **numbers = calloc((size_t)count, sizeof *numbers);
    bool has_all = out && numbers;
    for (int i = 0; has_all && i < count; ++i) has_all = (numbers[i] = doubles_of(&outputs[i])) != NULL;
    if (has_all) {
        write_header(out, names, outputs, count);
        write_rows(out, data, outputs, numbers, count);
    }
    for (int i = 0; numbers && i < count; ++i) free(numbers[i]);
    free(numbers);
    if (out && fclose(out) == 0 && has_all) return text;
    free(text);
    return NULL;
}

leat_status cli_predict_csv_write(const char *path, const leat_sequence *data, char *const *names,
                                  const leat_tensor *outputs, int count, leat_error *err) {
    char *text = table_of(data, names, outputs, count);
    if (!text) return leat_error_set(err, LEAT_ENOMEM, "no memory for the text of '%s'", path);
    leat_status status = cli_replace_text(path, text, err);
    free(text);
    return status;
}
