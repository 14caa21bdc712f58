/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers in which line each row of a table began: a number for each run of rows that have one line each.
 * Room: data. */
#include "base/memory.h"
#include "data/table/csv.h"

static bool continues(const leati_csv_runs *runs, int64_t row, int64_t line, int file) {
    if (runs->count == 0) return false;
    const leati_csv_run *last = &runs->at[runs->count - 1];
    return last->file == file && line - last->line == row - last->row;
}

bool leati_csv_runs_add(leati_csv_runs *runs, int64_t row, int64_t line, int file) {
    if (continues(runs, row, line, file)) return true;
    if ((runs->count & (runs->count - 1)) == 0) { /* a power of 2, or 0 */
        leati_csv_run *more =
            leati_realloc(runs->at, runs->count ? 2 * (size_t)runs->count : 1, sizeof *more);
        if (!more) return false;
        runs->at = more;
    }
    runs->at[runs->count++] = (leati_csv_run){row, line, file};
    return true;
}

leati_csv_run leati_csv_runs_find(const leati_csv_runs *runs, int64_t row) {
    int64_t low = 0, high = runs->count; /* the run is from low to high - 1 */
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (runs->at[middle].row <= row)
            low = middle;
        else
            high = middle;
    }
    const leati_csv_run *run = &runs->at[low];
    return (leati_csv_run){row, run->line + (row - run->row), run->file};
}

void leati_csv_runs_fini(leati_csv_runs *runs) {
    leati_free(runs->at);
    *runs = (leati_csv_runs){0};
}
