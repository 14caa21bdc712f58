/* SPDX-License-Identifier: Apache-2.0 */
/* The source of CSV files: reads all files when it is opened, and makes columns of their numbers.  Room: data. */
#include "data/table/csv.h"

#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/os/clock.h"
#include "base/os/file.h"
#include "data/archive/paths.h"
#include "zip/unpack.h"

/* Refuses files whose first bytes say that they are no text of 8-bit characters. */
static leat_status check_text(const unsigned char *data, size_t bytes, const char *path, leat_error *err) {
    static const struct {
        const char *begin;
        size_t bytes;
        const char *what;
    } forms[] = {{"BZh", 3, "compressed with bzip2: unpack it (.gz and .zst are read as they are)"},
                 {"\xfd\x37zXZ", 5, "compressed with xz: unpack it (.gz and .zst are read as they are)"},
                 {"PK\3\4", 4, "a zip file: unpack it (.gz and .zst are read as they are)"},
                 {"\xff\xfe", 2, "text in UTF-16: iconv -f UTF-16 -t UTF-8 converts it"},
                 {"\xfe\xff", 2, "text in UTF-16: iconv -f UTF-16 -t UTF-8 converts it"},
                 {"PAR1", 4, "a Parquet file, which leat does not read (docs/sources.md)"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; ++i)
        if (bytes >= forms[i].bytes && memcmp(data, forms[i].begin, forms[i].bytes) == 0)
            return leati_fail(err, LEAT_EFORMAT, "'%s' is %s", path, forms[i].what);
    return LEAT_OK;
}

static leat_status add_file(leati_csv_table *table, const char *path, const leati_spec *spec,
                            leati_thread_pool *pool, leat_error *err) {
    leati_map map;
    unsigned char *unpacked = NULL;
    size_t bytes = 0;
    LEATI_TRY(leati_map_open_guarded(&map, path, err));
    leat_status status = LEAT_OK;
    const char *text = (const char *)map.data;
    bytes = map.size;
    if (leati_is_packed(map.data, map.size)) {
        status = leati_unpack(&unpacked, &bytes, map.data, map.size, path, err);
        text = (const char *)unpacked;
    }
    if (status == LEAT_OK) status = check_text((const unsigned char *)text, bytes, path, err);
    if (status == LEAT_OK) status = leati_csv_table_add(table, text, bytes, path, spec, pool, err);
    const leat_status present = leati_map_check(&map, map.data, map.size, status == LEAT_OK ? err : NULL);
    if (status == LEAT_OK) status = present;
    leati_free(unpacked);
    leati_map_close(&map);
    return status;
}

static leat_status add_files(leati_csv_table *table, const leati_spec *spec, leat_error *err) {
    leati_path_list paths;
    leati_thread_pool *pool = NULL;
    LEATI_TRY(leati_path_list_expand(&paths, spec->paths, spec->path_count, err));
    const int cores = leati_core_count();
    leat_status status = leati_thread_pool_create(&pool, err);
    if (status == LEAT_OK)
        status =
            leati_thread_pool_reserve(pool, cores < LEATI_THREAD_POOL_MAX ? cores : LEATI_THREAD_POOL_MAX,
                                      err);
    for (int64_t i = 0; i < paths.count && status == LEAT_OK; ++i)
        status = add_file(table, paths.paths[i], spec, pool, err);
    leati_thread_pool_destroy(&pool);
    leati_path_list_fini(&paths);
    return status;
}

/* Reads the files, and the mapping if there is one; otherwise writes the mapping. */
static leat_status read_table(leati_csv_table *table, const leati_spec *spec, leat_error *err) {
    LEATI_TRY(leati_csv_format_read(&table->format, spec, err));
    table->mapping = leati_spec_value(spec, "mapping");
    if (table->mapping) LEATI_TRY(leati_spec_decode(table->mapping, err));
    LEATI_TRY(add_files(table, spec, err));
    if (table->skipped > 0)
        leati_log(LEAT_LOG_WARNING, "left out %lld rows of %lld, the first: %s", (long long)table->skipped,
                  (long long)table->rows + table->skipped, table->first_skipped);
    if (table->rows == 0) return leati_fail(err, LEAT_EFORMAT, "'%s' has no rows", spec->paths[0]);
    LEATI_TRY(leati_csv_table_finish(table, err));
    return table->mapping && !table->mapping_was_read ? leati_csv_mapping_write(table, table->mapping, err)
                                                      : LEAT_OK;
}

static void release(void *owner) {
    leati_csv_table_fini(owner);
    leati_free(owner);
}

static leati_row_place find_row(const void *owner, int64_t row) {
    const leati_csv_table *table = owner;
    const leati_csv_run run = leati_csv_runs_find(&table->runs, row);
    return (leati_row_place){table->paths[run.file], true, run.line};
}

static leat_status add_group(leati_columns *columns, const leati_csv_table *table,
                             const leati_csv_group *group, const leati_settings *settings, leat_error *err) {
    const char *first = table->columns[group->columns[0]].name;
    const leati_array array = {.dtype = group->is_integer ? LEAT_I32 : LEAT_F32,
                               .rank = 2,
                               .shape = {table->rows, group->final_width},
                               .data = group->data,
                               .bytes =
                                   leati_count_bytes(leati_mul_saturated(table->rows, group->final_width),
                                                     4)};
    const char *name = group->width == 1 && strlen(first) < LEAT_NAME_BYTES ? first : NULL;
    leati_array flat = array;
    if (group->part == LEAT_PART_SAMPLE_WEIGHT) flat.rank = 1;
    return leati_columns_add(columns, group->part, name, &flat, &settings->columns, first, err);
}

leat_status leati_open_csv(leat_sequence *out, const leati_spec *spec, const char *text,
                           const leati_settings *settings, const leat_source_options *options,
                           leat_error *err) {
    leati_columns *columns = NULL;
    (void)text;
    leati_csv_table *table = leati_calloc(1, sizeof *table);
    if (!table) return leati_fail_memory(err, sizeof *table, "a source");
    leat_status status = leati_columns_create(&columns, options, table, release, err);
    if (status != LEAT_OK) {
        release(table);
        return status;
    }
    leati_columns_set_place(columns, find_row);
    status = read_table(table, spec, err);
    for (int g = 0; g < table->group_count && status == LEAT_OK; ++g)
        status = add_group(columns, table, &table->groups[g], settings, err);
    if (status == LEAT_OK) return leati_columns_finish(out, columns, err);
    leati_columns_destroy(columns);
    return status;
}
