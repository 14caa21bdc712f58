/* SPDX-License-Identifier: Apache-2.0 */
/* The source of TFRecord files whose records are tf.train.Examples.  A record is its length (8 bytes), the
 * checksum of the
 * length, its data, and the checksum of the data, in little-endian.  Source: tensorflow.org, "TFRecord and
 * tf.train.Example".  Room: data. */
#include "data/shards/tfrecord.h"

#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/os/file.h"
#include "base/text.h"
#include "data/shards/example.h"
#include "data/shards/records.h"
#include "zip/unpack.h"

enum { HEADER_BYTES = 12, FOOTER_BYTES = 4 };

/* ---- The index ---- */

static uint64_t read_le(const unsigned char *at, int bytes) {
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; --i) value = value << 8 | at[i];
    return value;
}

leat_status leati_tfrecord_scan(leati_window *file, leati_tfrecord_visit visit, void *user, leat_error *err) {
    for (uint64_t at = 0; at < file->size;) {
        const unsigned char *header = NULL;
        LEATI_TRY(leati_window_get(file, at, HEADER_BYTES, &header, err));
        if (!header)
            return leati_fail(err, LEAT_EFORMAT,
                              "'%s', offset %llu: the file ends inside of a record's header", file->label,
                              (unsigned long long)at);
        const uint64_t bytes = read_le(header, 8), left = file->size - at - HEADER_BYTES;
        if (leati_crc32c_masked(header, 8) != read_le(header + 8, 4))
            return leati_fail(err, LEAT_EFORMAT, "'%s', offset %llu: %s", file->label, (unsigned long long)at,
                              at == 0 ? "this is no TFRecord file"
                                      : "the checksum of a record's length is wrong");
        if (bytes > left || left - bytes < FOOTER_BYTES)
            return leati_fail(err, LEAT_EFORMAT,
                              "'%s', offset %llu: the file ends inside of a record of %llu bytes",
                              file->label, (unsigned long long)at, (unsigned long long)bytes);
        if (bytes > UINT32_MAX - FOOTER_BYTES)
            return leati_fail(err, LEAT_ENOTSUP, "'%s', offset %llu: a record of more than 4 GB", file->label,
                              (unsigned long long)at);
        LEATI_TRY(visit(user, at + HEADER_BYTES, (uint32_t)bytes + FOOTER_BYTES, err));
        at += HEADER_BYTES + bytes + FOOTER_BYTES;
    }
    return LEAT_OK;
}

typedef struct indexing {
    leati_records *records;
    int32_t shard;
} indexing;

static leat_status add_record(void *user, uint64_t offset, uint32_t bytes, leat_error *err) {
    const indexing *to = user;
    leati_span *span = NULL;
    LEATI_TRY(leati_records_add(to->records, &span, err));
    *span = (leati_span){offset, bytes, to->shard};
    return LEAT_OK;
}

/* Unpacks a compressed shard into memory; leaves a plain one alone. */
static leat_status unpack_shard(leati_records *records, int32_t shard, leat_error *err) {
    leati_map map;
    const char *path = records->shards.paths[shard];
    LEATI_TRY(leati_map_open_guarded(&map, path, err));
    leat_status status = LEAT_OK;
    if (leati_is_packed(map.data, map.size)) {
        status = leati_unpack(&records->contents[shard], &records->content_bytes[shard], map.data, map.size,
                              path, err);
        const leat_status present = leati_map_check(&map, map.data, map.size, status == LEAT_OK ? err : NULL);
        if (status == LEAT_OK) status = present;
    }
    leati_map_close(&map);
    return status;
}

static leat_status scan_shard(leati_records *records, int32_t shard, leat_error *err) {
    leati_window file;
    indexing to = {records, shard};
    LEATI_TRY(unpack_shard(records, shard, err));
    if (records->contents[shard])
        file = leati_window_of(records->contents[shard], records->content_bytes[shard],
                               records->shards.paths[shard]);
    else
        LEATI_TRY(leati_window_open(&file, records->shards.paths[shard], err));
    leat_status status = leati_tfrecord_scan(&file, add_record, &to, err);
    leati_window_close(&file);
    return status;
}

static leat_status index_shards(leati_records *records, leat_error *err) {
    const size_t count = (size_t)records->shards.count;
    records->spans_per_sample = 1;
    records->contents = leati_calloc(count, sizeof *records->contents);
    records->content_bytes = leati_calloc(count, sizeof *records->content_bytes);
    if (!records->contents || !records->content_bytes)
        return leati_fail_memory(err, count * sizeof *records->contents, "an index");
    for (size_t i = 0; i < count; ++i) {
        leat_error problem = {0};
        const leat_status status = scan_shard(records, (int32_t)i, &problem);
        if (status != LEAT_OK) LEATI_TRY(leati_records_leave_out(records, status, &problem, err));
    }
    return LEAT_OK;
}

/* ---- Fields ---- */

static void add_name(void *user, const char *name, size_t bytes) {
    leati_text *names = user;
    leati_text_add(names, "%s%.*s", names->length ? ", " : "", bytes < 60 ? (int)bytes : 60, name);
}

static leat_status no_feature(const leati_field *field, const unsigned char *bytes, size_t count,
                              leat_error *err) {
    leati_text names = {0};
    (void)leati_example_names(bytes, count, add_name, &names);
    leat_status status = leati_fail(err, LEAT_EFORMAT, "the record has no feature '%s'; it has %.300s",
                                    field->name, names.data ? names.data : "none");
    leati_text_fini(&names);
    return status;
}

/* Finds a feature in a record, whose checksum is behind it.  Lists of numbers stay encoded. */
static leat_status find_feature(const leati_field *field, const unsigned char *bytes, size_t count,
                                leati_feature *out, leat_error *err) {
    bool found = false;
    if (!leati_example_find(bytes, count, field->name, out, &found))
        return leati_fail(err, LEAT_EFORMAT, "the record is no tf.train.Example");
    return found ? LEAT_OK : no_feature(field, bytes, count, err);
}

static leat_status find_field(const leati_records *records, const leati_field *field,
                              const unsigned char *bytes, size_t count, const unsigned char **out,
                              size_t *out_count, leat_error *err) {
    leati_feature feature;
    count -= FOOTER_BYTES;
    if (field == records->fields && leati_crc32c_masked(bytes, count) != read_le(bytes + count, 4))
        return leati_fail(err, LEAT_EFORMAT, "the checksum of the record is wrong");
    LEATI_TRY(find_feature(field, bytes, count, &feature, err));
    *out = feature.data;
    *out_count = feature.bytes;
    if (field->form == LEATI_FIELD_NUMBERS) {
        if (feature.kind == (field->dtype == LEAT_I64 ? LEATI_FEATURE_INTEGERS : LEATI_FEATURE_FLOATS))
            return LEAT_OK;
        return leati_fail(err, LEAT_EDTYPE, "expected a list of %s",
                          field->dtype == LEAT_I64 ? "int64" : "float");
    }
    if (feature.kind == LEATI_FEATURE_BYTES && leati_feature_bytes(&feature, out, out_count)) return LEAT_OK;
    return leati_fail(err, LEAT_EDTYPE, "expected a list with bytes");
}

static leat_status decode_numbers(const leati_field *field, const unsigned char *bytes, size_t count,
                                  void *dst, leat_error *err) {
    const leati_feature feature = {field->dtype == LEAT_I64 ? LEATI_FEATURE_INTEGERS : LEATI_FEATURE_FLOATS,
                                   bytes, count};
    int64_t present = 0;
    if (!leati_feature_count(&feature, &present)) return leati_fail(err, LEAT_EFORMAT, "the list is damaged");
    if (present != field->count)
        return leati_fail(err, LEAT_ESHAPE, "expected %lld numbers, found %lld", (long long)field->count,
                          (long long)present);
    const bool fits = field->dtype == LEAT_I64 ? leati_feature_integers(&feature, dst, present)
                                               : leati_feature_floats(&feature, dst, present);
    return fits ? LEAT_OK : leati_fail(err, LEAT_EFORMAT, "the list is damaged");
}

/* Determines the form of a field by a record. */
static leat_status choose_form(leati_field *field, const unsigned char *bytes, size_t count,
                               leat_error *err) {
    leati_feature feature;
    const unsigned char *value = NULL;
    size_t value_bytes = 0;
    LEATI_TRY(find_feature(field, bytes, count - FOOTER_BYTES, &feature, err));
    if (feature.kind == LEATI_FEATURE_BYTES) {
        if (!leati_feature_bytes(&feature, &value, &value_bytes))
            return leati_fail(err, LEAT_EFORMAT, "feature '%s' of the first record is empty", field->name);
        const bool is_picture =
            !field->has_dtype && field->rank < 0 && leati_picture_format(value, value_bytes);
        field->form = is_picture ? LEATI_FIELD_PICTURE : LEATI_FIELD_RAW;
        return LEAT_OK;
    }
    const leat_dtype dtype = feature.kind == LEATI_FEATURE_FLOATS ? LEAT_F32 : LEAT_I64;
    if (feature.kind == LEATI_FEATURE_EMPTY || !leati_feature_count(&feature, &field->count))
        return leati_fail(err, LEAT_EFORMAT, "feature '%s' of the first record is empty or damaged",
                          field->name);
    if (field->has_dtype && field->dtype != dtype)
        return leati_fail(err, LEAT_EDTYPE, "feature '%s' has the type %s", field->name,
                          leat_dtype_name(dtype));
    field->form = LEATI_FIELD_NUMBERS;
    field->dtype = dtype;
    return LEAT_OK;
}

/* Says which features could be inputs. */
static leat_status no_inputs(const unsigned char *bytes, size_t count, leat_error *err) {
    leati_text names = {0};
    (void)leati_example_names(bytes, count, add_name, &names);
    const leat_status status =
        leati_fail(err, LEAT_EINVAL, "expected inputs=FEATURE; the features are %.300s",
                   names.data ? names.data : "not known");
    leati_text_fini(&names);
    return status;
}

/* Chooses the forms of all fields by a record. */
static leat_status choose_forms_by(leati_records *records, const unsigned char *bytes, size_t count,
                                   leat_error *err) {
    if (records->field_count == 0 || records->fields[0].part != LEAT_PART_INPUT)
        return no_inputs(bytes, count - FOOTER_BYTES, err);
    for (int i = 0; i < records->field_count; ++i)
        LEATI_TRY(choose_form(&records->fields[i], bytes, count, err));
    return LEAT_OK;
}

/* A record of a shard, which is mapped unless it is in memory. */
typedef struct mapped {
    leati_map map;
    const unsigned char *bytes;
    size_t count;
} mapped;

static leat_status map_record(mapped *out, const leati_records *records, int64_t sample, leat_error *err) {
    const leati_span *span = &records->spans[sample];
    *out = (mapped){.count = span->bytes};
    if (records->contents[span->shard]) {
        out->bytes = records->contents[span->shard] + span->offset;
        return LEAT_OK;
    }
    LEATI_TRY(leati_map_open_guarded(&out->map, records->shards.paths[span->shard], err));
    if (out->map.size >= span->offset + span->bytes) {
        out->bytes = out->map.data + span->offset;
        return LEAT_OK;
    }
    leati_map_close(&out->map);
    return leati_fail(err, LEAT_EIO, "'%s' was shortened while it was read",
                      records->shards.paths[span->shard]);
}

/* Ends the use of a record, whose file may have been shortened meanwhile. */
static leat_status unmap_record(mapped *record, leat_status status, leat_error *err) {
    if (!record->map.data) return status;
    if (status == LEAT_OK) status = leati_map_check(&record->map, record->map.data, record->map.size, err);
    leati_map_close(&record->map);
    return status;
}

/* Returns true if the checksum of a record is right. */
static bool is_whole(const mapped *record) {
    const size_t count = record->count - FOOTER_BYTES;
    return leati_crc32c_masked(record->bytes, count) == read_le(record->bytes + count, 4);
}

/* Finds the first record whose checksum is right, among a number of them. */
static leat_status find_whole_record(leati_records *records, leat_error *err) {
    enum { MOST = 1000 };
    for (int64_t i = 0; i < records->numbered.samples && i < MOST; ++i) {
        mapped record;
        LEATI_TRY(map_record(&record, records, i, err));
        const bool fits = is_whole(&record);
        LEATI_TRY(unmap_record(&record, LEAT_OK, err));
        if (!fits) continue;
        records->first = i;
        break;
    }
    return LEAT_OK;
}

/* Determines the forms of all fields by the first record; if bad data is skipped, by the first one that is whole. */
static leat_status choose_forms(leati_records *records, leat_error *err) {
    mapped record;
    if (records->numbered.samples == 0) return LEAT_OK;
    if (records->bad.skipped) LEATI_TRY(find_whole_record(records, err));
    const leati_span *span = &records->spans[records->first];
    LEATI_TRY(map_record(&record, records, records->first, err));
    const leat_status status = is_whole(&record)
                                   ? choose_forms_by(records, record.bytes, record.count, err)
                                   : leati_fail(err, LEAT_EFORMAT, "the checksum of the record is wrong");
    return leati_prefix(unmap_record(&record, status, err), err, "'%s', offset %llu",
                        records->shards.paths[span->shard], (unsigned long long)span->offset);
}

leat_status leati_open_tfrecord(leat_sequence *out, const leati_spec *spec, const char *text,
                                const leati_settings *settings, const leat_source_options *options,
                                leat_error *err) {
    leati_records *records = NULL;
    (void)text;
    LEATI_TRY(leati_records_create(&records, spec, settings, err));
    records->find = find_field;
    records->decode = decode_numbers;
    leat_status status = index_shards(records, err);
    if (status == LEAT_OK) status = choose_forms(records, err);
    if (status == LEAT_OK) return leati_records_finish(out, records, options, err);
    leati_records_destroy(records);
    return status;
}
