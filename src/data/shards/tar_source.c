/* SPDX-License-Identifier: Apache-2.0 */
/* The source of samples in tar files, named as WebDataset names them: neighbouring members whose paths are
 * equal up to the
 * first dot of the file's name are one sample, and the rest of the name says which part the member is.  Room: data. */
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/shards/records.h"
#include "data/archive/tar.h"

enum { MAX_PARTS = 64 };

/* A part of the current sample: a member of the archive. */
typedef struct part {
    char *extension; /* points into `name` of the grouping */
    leati_span span;
} part;

/* The members of the current sample, while a shard is read. */
typedef struct grouping {
    leati_records *records;
    int32_t shard;
    char *key; /* NULL: none */
    part members[MAX_PARTS];
    int count;
} grouping;

static const char inputs_by_default[] = "jpg;jpeg;png;webp;gif;bmp;tif;tiff;ppm;pgm",
                  targets_by_default[] = "cls";

/* Returns the form that the last part of an extension stands for. */
static leati_field_form form_of(const char *extension) {
    static const struct {
        const char *name;
        leati_field_form form;
    } forms[] = {{"jpg", LEATI_FIELD_PICTURE},  {"jpeg", LEATI_FIELD_PICTURE}, {"png", LEATI_FIELD_PICTURE},
                 {"webp", LEATI_FIELD_PICTURE}, {"gif", LEATI_FIELD_PICTURE},  {"bmp", LEATI_FIELD_PICTURE},
                 {"tif", LEATI_FIELD_PICTURE},  {"tiff", LEATI_FIELD_PICTURE}, {"ppm", LEATI_FIELD_PICTURE},
                 {"pgm", LEATI_FIELD_PICTURE},  {"cls", LEATI_FIELD_CLASS},    {"cls2", LEATI_FIELD_CLASS},
                 {"class", LEATI_FIELD_CLASS},  {"count", LEATI_FIELD_CLASS},  {"index", LEATI_FIELD_CLASS},
                 {"inx", LEATI_FIELD_CLASS},    {"id", LEATI_FIELD_CLASS},     {"npy", LEATI_FIELD_NPY}};
    const char *dot = strrchr(extension, '.');
    for (size_t i = 0; i < sizeof forms / sizeof *forms; ++i)
        if (strcasecmp(dot ? dot + 1 : extension, forms[i].name) == 0) return forms[i].form;
    return LEATI_FIELD_UNKNOWN;
}

/* Finds the member that a field names, as EXTENSION;EXTENSION; NULL if there is none. */
static const part *find_member(const grouping *g, const char *names) {
    for (const char *name = names; *name;) {
        const size_t length = strcspn(name, ";");
        for (int i = 0; i < g->count; ++i)
            if (strlen(g->members[i].extension) == length &&
                strncasecmp(g->members[i].extension, name, length) == 0)
                return &g->members[i];
        name += length + (name[length] == ';');
    }
    return NULL;
}

/* Says which parts the first sample has. */
static leat_status no_part(const grouping *g, const leati_field *field, leat_error *err) {
    const char *names[MAX_PARTS];
    leati_text all = {0};
    for (int i = 0; i < g->count; ++i) names[i] = g->members[i].extension;
    leati_text_add_names(&all, names, (size_t)g->count, 16);
    const leat_status status =
        leati_fail(err, LEAT_EINVAL, "the first sample, '%.100s', has no part '%s'; it has: %.200s", g->key,
                   field->name, all.data ? all.data : "none");
    leati_text_fini(&all);
    return status;
}

/* Chooses the fields that the SPEC does not name, when the first sample is known. */
static leat_status choose_fields(const grouping *g, leat_error *err) {
    leati_records *records = g->records;
    bool has_input = false, has_target = false;
    for (int i = 0; i < records->field_count; ++i) {
        has_input = has_input || records->fields[i].part == LEAT_PART_INPUT;
        has_target = has_target || records->fields[i].part == LEAT_PART_TARGET;
    }
    if (!has_input) {
        const leati_field target = records->fields[0];
        if (records->field_count > 1)
            return leati_fail(err, LEAT_EINVAL, "expected inputs=EXTENSION with several targets");
        records->field_count = 0;
        records->fields[records->field_count++] =
            (leati_field){.name = inputs_by_default, .part = LEAT_PART_INPUT, .rank = -1};
        if (has_target) records->fields[records->field_count++] = target;
    }
    if (!has_target && records->field_count < LEAT_BATCH_MAX_TENSORS && find_member(g, targets_by_default))
        records->fields[records->field_count++] =
            (leati_field){.name = targets_by_default, .part = LEAT_PART_TARGET, .rank = -1};
    for (int i = 0; i < records->field_count; ++i) {
        leati_field *field = &records->fields[i];
        const part *found = find_member(g, field->name);
        if (!found) return no_part(g, field, err);
        field->form = form_of(found->extension);
        if (field->form == LEATI_FIELD_UNKNOWN && field->has_dtype) field->form = LEATI_FIELD_RAW;
        if (field->form == LEATI_FIELD_UNKNOWN)
            return leati_fail(
                err, LEAT_ENOTSUP,
                "parts with the extension '%s' are not supported: expected pictures, cls, npy, or the "
                "type of raw elements (%s:float32)",
                found->extension, found->extension);
    }
    records->spans_per_sample = records->field_count;
    return LEAT_OK;
}

/* Adds the members of the current sample to the index. */
static leat_status end_sample(grouping *g, leat_error *err) {
    leati_records *records = g->records;
    const part *found[LEAT_BATCH_MAX_TENSORS] = {0};
    leati_span *spans = NULL;
    leat_status status = LEAT_OK;
    if (!g->key) return LEAT_OK;
    if (records->spans_per_sample == 0) status = choose_fields(g, err);
    for (int i = 0; i < records->field_count && status == LEAT_OK; ++i) {
        found[i] = find_member(g, records->fields[i].name);
        if (found[i]) continue;
        leat_error problem = {0};
        (void)leati_fail(&problem, LEAT_EFORMAT, "'%s': sample '%.100s' has no part '%s'",
                         records->shards.paths[g->shard], g->key, records->fields[i].name);
        status = leati_records_leave_out(records, LEAT_EFORMAT, &problem, err);
        if (status == LEAT_OK) status = LEAT_ESKIPPED;
    }
    if (status == LEAT_OK) status = leati_records_add(records, &spans, err);
    for (int i = 0; i < records->field_count && status == LEAT_OK; ++i)
        if (found[i]) spans[i] = found[i]->span;
    for (int i = 0; i < g->count; ++i) leati_free(g->members[i].extension);
    leati_free(g->key);
    g->key = NULL;
    g->count = 0;
    return status == LEAT_ESKIPPED ? LEAT_OK : status;
}

static leat_status visit(void *user, const leati_tar_member *member, leat_error *err) {
    grouping *g = user;
    const char *name = member->name;
    if (member->kind != LEATI_TAR_FILE) return LEAT_OK;
    const char *base = strrchr(name, '/'), *dot = strchr(base ? base : name, '.');
    if (!dot || (base ? dot == base + 1 : dot == name)) return LEAT_OK; /* no extension, or a hidden file */
    const size_t key_bytes = (size_t)(dot - name);
    const bool same = g->key && strlen(g->key) == key_bytes && memcmp(g->key, name, key_bytes) == 0;
    if (!same) LEATI_TRY(end_sample(g, err));
    if (!g->key) {
        g->key = leati_calloc(key_bytes + 1, 1);
        if (!g->key) return leati_fail_memory(err, key_bytes, "the key of a sample");
        memcpy(g->key, name, key_bytes);
    }
    if (g->count == MAX_PARTS)
        return leati_fail(err, LEAT_EFORMAT, "sample '%.100s' has more than %d parts", g->key, MAX_PARTS);
    if (member->bytes > UINT32_MAX) return leati_fail(err, LEAT_ENOTSUP, "'%.100s' has more than 4 GB", name);
    char *extension = leati_strdup(dot + 1);
    if (!extension) return leati_fail_memory(err, strlen(dot), "the name of a part");
    g->members[g->count++] = (part){extension, {member->offset, (uint32_t)member->bytes, g->shard}};
    return LEAT_OK;
}

/* Reads the headers of a shard.  If bad data is skipped, a shard that is cut off keeps its complete
 * samples. */
static leat_status index_shard(leati_records *records, int32_t shard, leat_error *err) {
    leat_error problem = {0};
    grouping g = {.records = records, .shard = shard};
    leat_status status = leati_tar_scan(records->shards.paths[shard], visit, &g, &problem);
    if (status != LEAT_OK) status = leati_records_leave_out(records, status, &problem, err);
    const leat_status last = end_sample(&g, status == LEAT_OK ? err : NULL);
    return status == LEAT_OK ? last : status;
}

leat_status leati_open_tar(leat_sequence *out, const leati_spec *spec, const char *text,
                           const leati_settings *settings, const leat_source_options *options,
                           leat_error *err) {
    leati_records *records = NULL;
    (void)text;
    LEATI_TRY(leati_records_create(&records, spec, settings, err));
    leat_status status = LEAT_OK;
    for (int64_t i = 0; i < records->shards.count && status == LEAT_OK; ++i)
        status = index_shard(records, (int32_t)i, err);
    if (status == LEAT_OK) return leati_records_finish(out, records, options, err);
    leati_records_destroy(records);
    return status;
}
