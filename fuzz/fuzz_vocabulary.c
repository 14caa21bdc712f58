/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes vocabulary.txt of an archive: the numbers that are read, written as lines, must be read again. */
#include <stdio.h>
#include <stdlib.h>

#include "formats/vocabulary.h"
#include "fuzz.h"

static void check_again(const json_t *list) {
    const size_t count = json_array_size(list), room = 24 * count + 1;
    char *text = calloc(room, 1);
    json_t *again = NULL;
    leat_error err = {0};
    size_t used = 0;
    if (!text) abort();
    for (size_t i = 0; i < count; ++i)
        used += (size_t)snprintf(text + used, room - used, "%lld\n",
                                 (long long)json_integer_value(json_array_get(list, i)));
    if (leati_vocabulary_parse(text, used, "again", &again, &err) != LEAT_OK || !json_equal(list, again))
        abort();
    json_decref(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    json_t *list = NULL;
    leat_error err = {0};
    if (!data) return 0; /* libFuzzer begins with an empty input */
    leat_status status = leati_vocabulary_parse(data, size, "vocabulary.txt", &list, &err);
    if (status == LEAT_EINTERNAL || (status != LEAT_OK && err.message[0] == '\0')) abort();
    if (status == LEAT_OK) check_again(list);
    json_decref(list);
    return 0;
}
