/* SPDX-License-Identifier: Apache-2.0 */
/* leat_source_files: names the files of a source, or of a combination whose samples are files.  Room: data. */
#include <string.h>

#include "base/error.h"
#include "data/call.h"
#include "data/paths.h"
#include "json/json.h"

static leat_status list_files(json_t **out, const char *text, int depth, leat_error *err);

/* Appends the files of the second list to those of the first one; equal classes stay, different ones do not. */
static leat_status append_lists(json_t *first, json_t *second, leat_error *err) {
    if (!json_equal(json_object_get(first, "classes"), json_object_get(second, "classes")))
        json_array_clear(json_object_get(first, "classes"));
    if (json_array_extend(json_object_get(first, "files"), json_object_get(second, "files")) == 0)
        return LEAT_OK;
    return leati_fail_memory(err, 0, "the names of files");
}

static leat_status list_concat(json_t **out, const leati_call *call, int depth, leat_error *err) {
    LEATI_TRY(list_files(out, call->parts[0], depth, err));
    for (int i = 1; i < call->part_count; ++i) {
        json_t *next = NULL;
        LEATI_TRY(list_files(&next, call->parts[i], depth, err));
        const leat_status status = append_lists(*out, next, err);
        json_decref(next);
        LEATI_TRY(status);
    }
    return LEAT_OK;
}

/* Replaces the files by those that a part or a repetition has. */
static leat_status select_files(json_t *list, int64_t start, int64_t stop, int64_t step, int64_t times,
                                leat_error *err) {
    json_t *files = json_object_get(list, "files"), *selected = json_array();
    const int64_t count = (int64_t)json_array_size(files), end = stop < count ? stop : count;
    int failed = selected ? 0 : -1;
    for (int64_t turn = 0; turn < times && failed == 0; ++turn)
        for (int64_t i = start; i < end && failed == 0; i += step)
            failed = json_array_append(selected, json_array_get(files, (size_t)i));
    if (failed == 0) failed = json_object_set(list, "files", selected);
    json_decref(selected);
    return failed == 0 ? LEAT_OK : leati_fail_memory(err, 0, "the names of files");
}

static leat_status list_selection(json_t **out, const leati_call *call, int depth, leat_error *err) {
    int64_t count = 0, times = 1, rank = 0, world = 1;
    LEATI_TRY(leati_call_integer(call, "count", 0, &count, err));
    LEATI_TRY(leati_call_integer(call, "times", 1, &times, err));
    LEATI_TRY(leati_call_integer(call, "rank", 0, &rank, err));
    LEATI_TRY(leati_call_integer(call, "world", 1, &world, err));
    LEATI_TRY(list_files(out, call->parts[0], depth, err));
    const bool takes = strcmp(call->name, "take") == 0, skips = strcmp(call->name, "skip") == 0;
    return select_files(*out, skips ? count : rank, takes ? count : INT64_MAX, world, times, err);
}

/* Samples that are side by side have the files of the first part that has files. */
static leat_status list_first(json_t **out, const leati_call *call, int depth, leat_error *err) {
    leat_status status = LEAT_ENOTSUP;
    for (int i = 0; i < call->part_count && status == LEAT_ENOTSUP; ++i)
        status = list_files(out, call->parts[i], depth, err);
    return status;
}

static const struct {
    const char *name;
    leat_status (*list)(json_t **out, const leati_call *call, int depth, leat_error *err);
} listers[] = {{"concat", list_concat},   {"take", list_selection},   {"skip", list_selection},
               {"shard", list_selection}, {"repeat", list_selection}, {"zip", list_first},
               {"targets", list_first},   {"cache", list_first}};

static leat_status list_call(json_t **out, const leati_call *call, int depth, leat_error *err) {
    for (size_t i = 0; i < sizeof listers / sizeof *listers; ++i)
        if (strcmp(listers[i].name, call->name) == 0) return listers[i].list(out, call, depth + 1, err);
    return leati_fail(err, LEAT_ENOTSUP, "the samples of %s(...) are not files", call->name);
}

static leat_status list_files(json_t **out, const char *text, int depth, leat_error *err) {
    leati_call call;
    *out = NULL;
    if (!leati_is_call(text)) return leati_source_files(out, text, err);
    if (depth == LEATI_CALL_MAX_DEPTH)
        return leati_fail(err, LEAT_EINVAL, "expected at most %d combinations inside of each other",
                          LEATI_CALL_MAX_DEPTH);
    LEATI_TRY(leati_call_parse(&call, text, err));
    const leat_status status = list_call(out, &call, depth, err);
    leati_call_fini(&call);
    if (status == LEAT_OK) return LEAT_OK;
    json_decref(*out);
    *out = NULL;
    return status;
}

leat_status leat_source_files(const char *spec, char **out, leat_error *err) {
    json_t *list = NULL;
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(spec, err);
    leat_status status = list_files(&list, spec, 0, err);
    if (status == LEAT_OK) status = leati_json_write(list, out, err);
    json_decref(list);
    return leati_prefix(status, err, "data '%.160s'", spec);
}
