/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes CSV files.  The first byte chooses options.  A file must give the same numbers, or the same message, for every
 * size of chunks. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/table/csv.h"
#include "fuzz.h"

static leat_status read_table(leati_csv_table *table, const char *spec_text, const char *text, size_t bytes,
                              leat_error *err) {
    leati_spec spec;
    if (leati_spec_parse(&spec, spec_text, err) != LEAT_OK) abort();
    leat_status status = leati_csv_table_add(table, text, bytes, "fuzz.csv", &spec, NULL, err);
    if (status == LEAT_OK) status = leati_csv_table_finish(table, err);
    leati_spec_fini(&spec);
    return status;
}

static void compare(const leati_csv_table *a, const leati_csv_table *b) {
    if (a->rows != b->rows || a->skipped != b->skipped || a->group_count != b->group_count) abort();
    for (int g = 0; g < a->group_count; ++g) {
        const leati_csv_group *left = &a->groups[g], *right = &b->groups[g];
        if (left->final_width != right->final_width) abort();
        const size_t bytes = (size_t)(a->rows * left->final_width) * 4;
        if (bytes > 0 && memcmp(left->data, right->data, bytes) != 0) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const specs[] = {"csv:f", "csv:f?targets=0",
                                        "csv:f?inputs=0|1&categories=0&integers=1",
                                        "csv:f?onehot_categories=0"};
    if (size < 1) return 0;
    const int choice = data[0];
    const leati_csv_format format = {.separator = choice & 1 ? ';' : ',',
                                     .point = choice & 1 ? ',' : '.',
                                     .has_header = choice & 2,
                                     .missing = (leati_csv_missing)(choice >> 2 & 3)};
    leati_csv_table whole = {.format = format}, parts = {.format = format};
    leat_error err = {0}, other = {0};
    parts.format.chunk_bytes = 1 + (size_t)(choice >> 6) * 5;
    const char *spec = specs[choice >> 4 & 3], *text = (const char *)data + 1;
    const leat_status status = read_table(&whole, spec, text, size - 1, &err);
    if (read_table(&parts, spec, text, size - 1, &other) != status) abort();
    if (status == LEAT_OK)
        compare(&whole, &parts);
    else if (err.message[0] == '\0' || strcmp(err.message, other.message) != 0)
        abort();
    leati_csv_table_fini(&whole);
    leati_csv_table_fini(&parts);
    return 0;
}
