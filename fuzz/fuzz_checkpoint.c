/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes checkpoints: the records of an image, the states that are read from them, and the history of a fit. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/os/file.h"
#include "checkpoint/state.h"
#include "engine/backend.h"
#include "engine/device.h"
#include "fuzz.h"
#include "train/history/history.h"

enum { header_bytes = 32, version_at = 8, bytes_at = 16, checksum_at = 24 };

/* Nothing is computed here. */
const leati_backend *const leati_backends[] = {NULL};
leat_status leati_device_open(const char *name, int place, leati_device **out, leat_error *err) {
    (void)name;
    (void)place;
    (void)err;
    *out = NULL;
    return LEAT_ENOTSUP;
}

/* Gives the input the magic number, the version, the size and the checksum that a checkpoint must have: otherwise
 * nearly no input would reach the records. */
static void mend_header(uint8_t *data, uint64_t bytes) {
    const uint32_t version = 1;
    const uint64_t sum = XXH3_64bits(data + header_bytes, bytes - header_bytes);
    memcpy(data, "LEATCKPT", 8);
    memcpy(data + version_at, &version, sizeof version);
    memcpy(data + bytes_at, &bytes, sizeof bytes);
    memcpy(data + checksum_at, &sum, sizeof sum);
}

/* Writes the bytes to a temporary file, and its path to *path.  Returns 0, or -1 on failure. */
static int make_file(const uint8_t *data, size_t bytes, char path[64]) {
    static const char format[] = "/tmp/leat-fuzz-checkpoint-XXXXXX";
    memcpy(path, format, sizeof format);
    int fd = mkstemp(path);
    if (fd < 0) return -1;
    int failed = leati_write_all(fd, data, bytes, 0);
    close(fd);
    return failed ? -1 : 0;
}

static void load(const leati_image *image) {
    const leat_state fit = {.image = image, .prefix = "fit/"},
                     history = {.image = image, .prefix = "history/"};
    leat_history *loaded = NULL;
    leat_error err = {0};
    int64_t steps = 0;
    char *json = NULL;
    (void)!leati_state_get_i64(&fit, "steps", &steps, &err);
    (void)leati_state_find_text(&fit, "version");
    if (leati_history_create(&loaded, &err) == LEAT_OK &&
        leati_history_load(loaded, &history, &err) == LEAT_OK &&
        leat_history_json(loaded, &json, &err) == LEAT_OK)
        leat_string_free(json);
    leat_history_destroy(&loaded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    leati_image image;
    leat_error err = {0};
    char path[64];
    if (!copy) return 0;
    memcpy(copy, data, size);
    for (int mends = 0; mends < 2; ++mends) {
        if (mends && size >= header_bytes) mend_header(copy, size);
        if (make_file(copy, size, path) == 0 && leati_image_open(&image, path, &err) == LEAT_OK) {
            load(&image);
            leati_image_close(&image);
        }
        unlink(path);
    }
    free(copy);
    return 0;
}
