/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the list of pictures in a zip or tar file: classes, order, and the content of members.  The checksums of tar
 * headers are corrected first, so that other bytes matter. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/images.h"
#include "fuzz.h"

static void correct_checksums(unsigned char *data, size_t size) {
    for (size_t at = 0; at + 512 <= size; at += 512) {
        unsigned sum = 8 * ' ';
        if (memcmp(data + at + 257, "ustar", 5) != 0) continue;
        for (size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? 0 : data[at + i];
        for (int i = 0; i < 6; ++i)
            data[at + 148 + (size_t)i] = (unsigned char)('0' + (sum >> (15 - 3 * i) & 7));
        data[at + 154] = 0;
    }
}

static void read_pictures(const leati_image_list *list) {
    for (int64_t i = 0; i < list->count; ++i) {
        const leati_image_file *picture = &list->files[i];
        unsigned char *content = NULL;
        size_t bytes = 0;
        leat_error err = {0};
        if (picture->member < 0 || picture->member >= leati_archive_count(list->archive)) abort();
        if (list->class_count > 0 && (picture->label < 0 || picture->label >= list->class_count)) abort();
        if (leati_image_list_bytes(list, picture, &content, &bytes, &err) != LEAT_OK && !err.message[0])
            abort();
        leati_free(content);
    }
}

static leat_status list_pictures(const unsigned char *data, size_t size, leati_label_mode labels,
                                 leat_error *err) {
    const leati_image_choices choices = {.labels = labels};
    leati_image_list list = {0};
    leat_status status = leati_archive_open_bytes(&list.archive, data, size, "fuzz", err);
    if (status == LEAT_OK) status = leati_image_list_read_archive(&list, "fuzz", &choices, err);
    if (status == LEAT_OK) read_pictures(&list);
    leati_image_list_fini(&list);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    leat_error err = {0};
    unsigned char *copy = leati_calloc(size + 1, 1);
    if (!copy) return 0;
    if (size > 0) memcpy(copy, data, size);
    correct_checksums(copy, size);
    const bool failed = list_pictures(copy, size, LEATI_LABELS_INT, &err) != LEAT_OK ||
                        list_pictures(copy, size, LEATI_LABELS_NONE, &err) != LEAT_OK;
    leati_free(copy);
    return failed && err.message[0] == '\0';
}
