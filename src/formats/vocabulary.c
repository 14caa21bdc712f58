/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the file vocabulary.txt of an archive.  Room: formats. */
#include "formats/vocabulary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

static leat_status parse_lines(const char *text, const char *label, json_t *list, leat_error *err) {
    while (text[strspn(text, "\r\n")]) {
        char *end;
        errno = 0;
        const long long token = strtoll(text, &end, 10);
        const size_t line_end = strspn(end, "\r\n");
        if (end == text || errno || (*end && line_end == 0))
            return leati_fail(err, LEAT_EFORMAT, "%s: line %zu: expected an integer", label,
                              json_array_size(list) + 1);
        if (json_array_append_new(list, json_integer(token)) != 0)
            return leati_fail(err, LEAT_ENOMEM, "no memory for a vocabulary");
        text = end + line_end;
    }
    return LEAT_OK;
}

leat_status leati_vocabulary_parse(const void *data, size_t size, const char *label, json_t **out,
                                   leat_error *err) {
    *out = NULL;
    if (memchr(data, 0, size))
        return leati_fail(err, LEAT_EFORMAT, "%s: expected lines of integers, received a zero byte", label);
    char *text = leati_calloc(1, size + 1);
    json_t *list = json_array();
    leat_status status = text && list ? LEAT_OK : leati_fail_memory(err, size + 1, label);
    if (status == LEAT_OK) memcpy(text, data, size);
    if (status == LEAT_OK) status = parse_lines(text, label, list, err);
    leati_free(text);
    if (status == LEAT_OK)
        *out = list;
    else
        json_decref(list);
    return status;
}
