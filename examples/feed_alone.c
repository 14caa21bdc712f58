/* SPDX-License-Identifier: Apache-2.0 */
/* The feed without a model: worker processes read a file in blocks, and the caller takes the blocks in order, in the
 * memory that the workers wrote.  This program counts bytes; yours might decode, compute a checksum or train.
 *
 *     cc feed_alone.c -o feed_alone $(pkg-config --cflags --libs leat-feed) && ./feed_alone FILE [WORKERS] */
#define _POSIX_C_SOURCE 200809L /* pread */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "leat/feed.h"

enum { block_bytes = 1 << 20 };

typedef struct blocks {
    int fd;
    int64_t bytes;
} blocks;

static int64_t blocks_length(void *user) {
    const blocks *b = user;
    return (b->bytes + block_bytes - 1) / block_bytes;
}

/* Reads block `index` directly into the slot.  Workers call it. */
static leat_status blocks_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    const blocks *b = user;
    (void)rng;
    ssize_t got = pread(b->fd, batch->tensors[0].data, block_bytes, (off_t)(index * block_bytes));
    if (got <= 0) return leat_error_set(err, LEAT_EUSER, "cannot read at byte %" PRId64, index * block_bytes);
    batch->size = got; /* the last block is shorter */
    return LEAT_OK;
}

static leat_status count(const blocks *file, int workers, leat_error *err) {
    int64_t counts[256] = {0};
    leat_sequence sequence = leat_sequence_default();
    leat_feed_options options = leat_feed_options_default();
    leat_feed *feed = NULL;
    const leat_batch *batch = NULL;
    sequence.user = (void *)(uintptr_t)file;
    sequence.length = blocks_length;
    sequence.get = blocks_get;
    sequence.spec.batch_size = block_bytes;
    options.workers = workers;
    options.use_multiprocessing = true;
    options.passes = 1;
    leat_status status = leat_batch_spec_add(&sequence.spec, LEAT_PART_INPUT, "bytes", LEAT_U8, 0, NULL, err);
    if (status == LEAT_OK) status = leat_feed_open(&feed, &sequence, &options, err);
    while (status == LEAT_OK && (status = leat_feed_get(feed, &batch, err)) == LEAT_OK) {
        const unsigned char *bytes = batch->tensors[0].data;
        for (int64_t i = 0; i < batch->size; ++i) ++counts[bytes[i]];
        leat_feed_release(feed);
    }
    leat_feed_close(&feed);
    if (status != LEAT_ENOTFOUND) return status; /* LEAT_ENOTFOUND: all blocks were delivered */
    for (int i = 0; i < 256; ++i)
        if (counts[i]) printf("%02x %" PRId64 "\n", (unsigned)i, counts[i]);
    return LEAT_OK;
}

int main(int argc, char **argv) {
    leat_error err = {0};
    blocks file = {.fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1};
    file.bytes = file.fd >= 0 ? (int64_t)lseek(file.fd, 0, SEEK_END) : 0;
    if (file.bytes <= 0) {
        fputs("usage: feed_alone FILE [WORKERS]\n", stderr);
        return 2;
    }
    leat_status status = count(&file, argc > 2 ? atoi(argv[2]) : 2, &err);
    if (status != LEAT_OK) fprintf(stderr, "%s\n", err.message);
    close(file.fd);
    return status == LEAT_OK ? 0 : 1;
}
