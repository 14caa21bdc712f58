/* SPDX-License-Identifier: Apache-2.0 */
/* Opens sources of the kinds idx, npy and npz: makes columns of files.  Room: data. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/os/file.h"
#include "base/memory.h"
#include "data/idx.h"
#include "data/kinds.h"
#include "data/npz.h"

/* The files that columns are read from; they are closed when the columns are destroyed. */
typedef struct files {
    leati_map maps[LEATI_SPEC_MAX_PATHS];
    void *unpacked[LEATI_SPEC_MAX_PATHS];
    leat_npz *npz[LEATI_SPEC_MAX_PATHS];
    int count;
} files;

static void release(void *owner) {
    files *f = owner;
    for (int i = 0; i < f->count; ++i) {
        leati_map_close(&f->maps[i]);
        leati_free(f->unpacked[i]);
        leat_npz_close(&f->npz[i]);
    }
    leati_free(f);
}

/* Creates empty columns that own an empty `files`, and whose rows are named by the first path of the SPEC. */
static leat_status create(leati_columns **out, files **f, const leati_spec *spec,
                          const leat_source_options *options, leat_error *err) {
    *out = NULL;
    *f = leati_calloc(1, sizeof **f);
    if (!*f) return leati_fail_memory(err, sizeof **f, "a source");
    leat_status status = leati_columns_create(out, options, *f, release, err);
    if (status != LEAT_OK) {
        release(*f);
        return status;
    }
    status = leati_columns_set_path(*out, spec->paths[0], err);
    if (status != LEAT_OK) leati_columns_destroy(*out);
    return status;
}

static leat_status finish(leat_sequence *out, leati_columns *columns, leat_status status, leat_error *err) {
    if (status == LEAT_OK) return leati_columns_finish(out, columns, err);
    leati_columns_destroy(columns);
    return status;
}

/* ---- idx ---- */

static leat_status add_idx(leati_columns *columns, files *f, const char *path, leat_batch_part part,
                           const leati_settings *settings, leat_error *err) {
    leati_array array;
    int index = f->count++;
    leati_map *map = &f->maps[index];
    LEATI_TRY(leati_map_open_guarded(map, path, err));
    LEATI_TRY(leati_idx_parse(&array, &f->unpacked[index], map->data, map->size, path, err));
    LEATI_TRY(leati_map_check(map, map->data, map->size, err));
    if (f->unpacked[index])
        leati_map_close(map);
    else
        array.map = map;
    if (part == LEAT_PART_INPUT && array.rank == 3)
        array.shape[array.rank++] = 1; /* images with one channel */
    return leati_columns_add(columns, part, NULL, &array, &settings->columns, path, err);
}

leat_status leati_open_idx(leat_sequence *out, const leati_spec *spec, const char *text,
                           const leati_settings *settings, const leat_source_options *options,
                           leat_error *err) {
    leati_columns *columns;
    files *f;
    (void)text;
    LEATI_TRY(create(&columns, &f, spec, options, err));
    leat_status status = add_idx(columns, f, spec->paths[0], LEAT_PART_INPUT, settings, err);
    if (status == LEAT_OK && spec->path_count > 1)
        status = add_idx(columns, f, spec->paths[1], LEAT_PART_TARGET, settings, err);
    return finish(out, columns, status, err);
}

/* ---- npy ---- */

static leat_status add_npy(leati_columns *columns, files *f, const char *path, leat_batch_part part,
                           const leati_settings *settings, leat_error *err) {
    const leati_array *array = NULL;
    leat_npz **npz = &f->npz[f->count++];
    LEATI_TRY(leati_npz_open_guarded(npz, path, err));
    if (leat_npz_count(*npz) != 1 || leat_npz_name(*npz, 0)[0] != '\0')
        return leati_fail(err, LEAT_EFORMAT, "'%s' is an .npz file; write npz:%s instead", path, path);
    LEATI_TRY(leati_npz_array(*npz, "", &array, err));
    return leati_columns_add(columns, part, NULL, array, &settings->columns, path, err);
}

leat_status leati_open_npy(leat_sequence *out, const leati_spec *spec, const char *text,
                           const leati_settings *settings, const leat_source_options *options,
                           leat_error *err) {
    leati_columns *columns;
    files *f;
    (void)text;
    LEATI_TRY(create(&columns, &f, spec, options, err));
    leat_status status = LEAT_OK;
    for (int i = 0; i < spec->path_count && status == LEAT_OK; ++i)
        status = add_npy(columns, f, spec->paths[i], (leat_batch_part)i, settings, err);
    return finish(out, columns, status, err);
}

/* ---- npz ---- */

leat_status leati_open_npz(leat_sequence *out, const leati_spec *spec, const char *text,
                           const leati_settings *settings, const leat_source_options *options,
                           leat_error *err) {
    leati_columns *columns;
    files *f;
    (void)text;
    LEATI_TRY(create(&columns, &f, spec, options, err));
    leat_npz **npz = &f->npz[f->count++];
    leat_status status = leati_npz_open_guarded(npz, spec->paths[0], err);
    if (status == LEAT_OK)
        status = leati_columns_add_members(columns, *npz, settings->inputs, "x", LEAT_PART_INPUT,
                                           &settings->columns, err);
    if (status == LEAT_OK)
        status = leati_columns_add_members(columns, *npz, settings->targets, "y", LEAT_PART_TARGET,
                                           &settings->columns, err);
    if (status == LEAT_OK)
        status = leati_columns_add_members(columns, *npz, settings->sample_weights, "sample_weight",
                                           LEAT_PART_SAMPLE_WEIGHT, &settings->columns, err);
    return finish(out, columns, status, err);
}
