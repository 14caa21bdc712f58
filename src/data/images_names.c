/* SPDX-License-Identifier: Apache-2.0 */
/* Names the files of a source of pictures, as JSON.  Room: data. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "data/images.h"
#include "data/paths.h"
#include "json/json.h"

json_t *leati_path_json(const char *path) {
    leati_text text = {0};
    json_t *unescaped = json_string(path);
    for (const unsigned char *byte = (const unsigned char *)path; *byte; ++byte) {
        bool escaped =
            *byte < 0x20 || *byte == 0x7F || strchr("%,?&", *byte) || (!unescaped && *byte >= 0x80);
        leati_text_add(&text, escaped ? "%%%02X" : "%c", *byte);
    }
    json_decref(unescaped);
    json_t *out = text.failed ? NULL : json_string(text.data);
    leati_text_fini(&text);
    return out;
}

static leat_status append_names(json_t *out, char *const *names, int count, leat_error *err) {
    for (int i = 0; i < count; ++i)
        if (json_array_append_new(out, leati_path_json(names[i])) != 0)
            return leati_fail_memory(err, strlen(names[i]), "the names of classes");
    return LEAT_OK;
}

static leat_status append_files(json_t *out, const leati_image_list *list, leat_error *err) {
    for (int64_t i = 0; i < list->count; ++i) {
        json_t *file = json_pack("{s:o}", "path", leati_path_json(list->files[i].path));
        if (file && list->class_count > 0 &&
            json_object_set_new(file, "label", json_integer(list->files[i].label)) != 0) {
            json_decref(file);
            file = NULL;
        }
        if (json_array_append_new(out, file) != 0) return leati_fail_memory(err, 0, "the names of files");
    }
    return LEAT_OK;
}

static leat_status describe(json_t **out, const leati_image_list *list, leat_error *err) {
    json_t *classes = json_array(), *files = json_array();
    leat_status status = classes && files ? LEAT_OK : leati_fail_memory(err, 0, "the names of files");
    if (status == LEAT_OK) status = append_names(classes, list->classes, list->class_count, err);
    if (status == LEAT_OK) status = append_files(files, list, err);
    *out = status == LEAT_OK ? json_pack("{s:O, s:O}", "classes", classes, "files", files) : NULL;
    if (status == LEAT_OK && !*out) status = leati_fail_memory(err, 0, "the names of files");
    json_decref(classes);
    json_decref(files);
    return status;
}

static leat_status list_spec(json_t **out, const leati_spec *spec, leat_error *err) {
    leati_settings settings;
    leati_image_choices choices;
    leati_image_list list;
    LEATI_TRY(leati_settings_read(&settings, spec, err));
    if (strcmp(spec->kind, "images") != 0)
        return leati_fail(err, LEAT_ENOTSUP,
                          "expected a source whose samples are files (images), received '%s'", spec->kind);
    LEATI_TRY(leati_image_choices_read(&choices, &settings, err));
    LEATI_TRY(leati_image_list_read(&list, spec->paths[0], &choices, err));
    leat_status status = describe(out, &list, err);
    leati_image_list_fini(&list);
    return status;
}

leat_status leati_source_files(json_t **out, const char *text, leat_error *err) {
    leati_spec parsed;
    *out = NULL;
    LEATI_TRY(leati_spec_parse(&parsed, text, err));
    leat_status status = list_spec(out, &parsed, err);
    leati_spec_fini(&parsed);
    return status;
}
