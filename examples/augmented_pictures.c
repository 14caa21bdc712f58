/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence of one's own that reads pictures from files, augments them, and moves a mask of segmentation with each
 * picture: leat/picture.h.
 *
 *     example_augmented_pictures STEPS PICTURE...        example_augmented_pictures 'flip,rotate(15)' a.jpg b.png
 *
 * The mask here is the bright part of the picture; a program would read it from a file.  The program prints, for two
 * passes, the numbers drawn for each picture and the mean of the result. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "leat/leat.h"

enum { SIDE = 64 };

typedef struct photos {
    char **paths;
    int64_t count;
    leat_augment *augment;
} photos;

static int64_t length(void *user) {
    return ((photos *)user)->count;
}

/* Reads a file of at most 64 MiB. */
static leat_status read_file(const char *path, void **data, size_t *bytes, leat_error *err) {
    const size_t most = (size_t)64 << 20;
    FILE *file = fopen(path, "rb");
    *data = file ? malloc(most) : NULL;
    *bytes = *data ? fread(*data, 1, most, file) : 0;
    if (file) fclose(file);
    return *data ? LEAT_OK : leat_error_set(err, LEAT_EUSER, "cannot read '%s'", path);
}

/* Makes a batch of one sample: the picture, and its mask as target. */
static leat_status get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    photos *p = user;
    void *data = NULL;
    size_t bytes = 0;
    uint8_t mask[SIDE * SIDE];
    leat_picture photo = {0}, small = {0};
    leat_status status = read_file(p->paths[index], &data, &bytes, err);
    if (status == LEAT_OK) status = leat_picture_decode(&photo, data, bytes, NULL, err);
    if (status == LEAT_OK) status = leat_picture_resize(&small, &photo, SIDE, SIDE, "bilinear", "crop", err);
    for (int i = 0; status == LEAT_OK && i < SIDE * SIDE; ++i) mask[i] = small.pixels[3 * i] > 127;
    /* The index is the number of the sample: both calls draw the same numbers, in every worker. */
    if (status == LEAT_OK)
        status = leat_augment_apply_floats(p->augment, rng, index, small.pixels, 1 / 255.0,
                                           batch->tensors[0].data, err);
    if (status == LEAT_OK)
        status = leat_augment_apply_mask(p->augment, rng, index, mask, batch->tensors[1].data, err);
    leat_picture_destroy(&small);
    leat_picture_destroy(&photo);
    free(data);
    return status;
}

static leat_status print_sample(const photos *p, leat_feed *feed, uint64_t seed, leat_error *err) {
    const leat_batch *batch = NULL;
    char *numbers = NULL;
    leat_status status = leat_feed_get(feed, &batch, err);
    if (status != LEAT_OK) return status;
    const leat_feed_position at = leat_feed_position_get(feed);
    const leat_rng rng =
        leat_rng_for(seed, (uint64_t)at.pass, 0); /* what `get` received, but for the index */
    const float *pixels = batch->tensors[0].data;
    const uint8_t *mask = batch->tensors[1].data;
    double sum = 0;
    int64_t marked = 0;
    for (int i = 0; i < SIDE * SIDE * 3; ++i) sum += pixels[i];
    for (int i = 0; i < SIDE * SIDE; ++i) marked += mask[i];
    status = leat_augment_explain(p->augment, &rng, at.index, &numbers, err);
    if (status == LEAT_OK)
        printf("pass %" PRId64 " %s: mean %.3f, %" PRId64 " pixels marked, %s\n", at.pass, p->paths[at.index],
               sum / (SIDE * SIDE * 3), marked, numbers);
    leat_string_free(numbers);
    leat_feed_release(feed);
    return status;
}

static leat_status run(photos *p, const char *steps, leat_error *err) {
    leat_feed *feed = NULL;
    leat_sequence sequence = leat_sequence_default();
    leat_feed_options options = leat_feed_options_default();
    const int64_t picture[] = {SIDE, SIDE, 3}, mask[] = {SIDE, SIDE, 1};
    sequence.user = p;
    sequence.length = length;
    sequence.get = get;
    sequence.spec.batch_size = 1;
    options.workers = 2;
    options.seed = 7;
    leat_status status = leat_augment_create(&p->augment, steps, SIDE, SIDE, 3, err);
    if (status == LEAT_OK)
        status = leat_batch_spec_add(&sequence.spec, LEAT_PART_INPUT, NULL, LEAT_F32, 3, picture, err);
    if (status == LEAT_OK)
        status = leat_batch_spec_add(&sequence.spec, LEAT_PART_TARGET, NULL, LEAT_U8, 3, mask, err);
    if (status == LEAT_OK) status = leat_feed_open(&feed, &sequence, &options, err);
    for (int64_t i = 0; status == LEAT_OK && i < 2 * p->count; ++i)
        status = print_sample(p, feed, options.seed, err);
    leat_feed_close(&feed);
    leat_augment_destroy(&p->augment);
    return status;
}

int main(int count, char **arguments) {
    leat_error err = {0};
    if (count < 3) {
        fprintf(stderr, "usage: %s STEPS PICTURE...\n", arguments[0]);
        return 2;
    }
    photos p = {.paths = arguments + 2, .count = count - 2};
    if (run(&p, arguments[1], &err) == LEAT_OK) return 0;
    fprintf(stderr, "%s\n", err.message);
    return 1;
}
