/* SPDX-License-Identifier: Apache-2.0 */
/* The sequence of synthetic batches.  Room: cli. */
#include "cli/commands/feed/synthetic.h"

#include <string.h>
#include <time.h>

static int64_t thread_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void cli_burn(int64_t us) {
    if (us <= 0) return;
    for (int64_t end = thread_ns() + us * 1000; thread_ns() < end;) continue;
}

static void fill(unsigned char *data, int64_t bytes, leat_rng *rng) {
    int64_t at = 0;
    for (; at + 4 <= bytes; at += 4) {
        uint32_t word = leat_rng_u32(rng);
        for (int k = 0; k < 4; ++k) data[at + k] = (unsigned char)(word >> 8 * k);
    }
    if (at == bytes) return;
    uint32_t last = leat_rng_u32(rng);
    for (int k = 0; at < bytes; ++at, ++k) data[at] = (unsigned char)(last >> 8 * k);
}

static int64_t length_of(void *user) {
    return ((const cli_synthetic *)user)->batches;
}

static leat_status get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    const cli_synthetic *synthetic = user;
    (void)index;
    (void)err;
    cli_burn(synthetic->work_us);
    if (synthetic->random)
        fill(batch->tensors[0].data, synthetic->bytes, rng);
    else
        memset(batch->tensors[0].data, (int)(leat_rng_u32(rng) & 0xff), (size_t)synthetic->bytes);
    return LEAT_OK;
}

leat_status cli_synthetic_open(leat_sequence *out, cli_synthetic *synthetic, leat_error *err) {
    *out = leat_sequence_default();
    out->user = synthetic;
    out->length = length_of;
    out->get = get;
    out->spec.batch_size = 1;
    return leat_batch_spec_add(&out->spec, LEAT_PART_INPUT, "payload", LEAT_U8, 1, &synthetic->bytes, err);
}
