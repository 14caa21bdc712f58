/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the headers of tar files.  Checksums are corrected first, so that other bytes matter. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/archive/tar.h"
#include "fuzz.h"

typedef struct seen {
    uint64_t end, size;
} seen;

static leat_status visit(void *user, const leati_tar_member *member, leat_error *err) {
    seen *s = user;
    (void)err;
    if (member->offset < s->end || member->offset > s->size || member->bytes > s->size - member->offset ||
        strlen(member->name) > 40000)
        abort();
    s->end = member->offset + member->bytes;
    return LEAT_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    leat_error err = {0};
    seen s = {0, size};
    unsigned char *copy = leati_calloc(size + 1, 1);
    if (!copy) return 0;
    if (size > 0) memcpy(copy, data, size);
    for (size_t at = 0; at + 512 <= size; at += 512) {
        unsigned sum = 8 * ' ';
        if (memcmp(copy + at + 257, "ustar", 5) != 0) continue;
        for (size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? 0 : copy[at + i];
        for (int i = 0; i < 6; ++i)
            copy[at + 148 + (size_t)i] = (unsigned char)('0' + (sum >> (15 - 3 * i) & 7));
        copy[at + 154] = 0;
    }
    const leat_status status = leati_tar_scan_bytes(copy, size, "fuzz.tar", visit, &s, &err);
    leati_free(copy);
    return status != LEAT_OK && err.message[0] == '\0';
}
