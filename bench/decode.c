/* SPDX-License-Identifier: Apache-2.0 */
/* What a feed of JPEGs cannot exceed: libjpeg-turbo called directly, and leat's resize, on some threads.
 *
 *     bench_decode THREADS PASSES FILE...      prints pictures per second
 *
 * Each thread reads every THREADS-th file into one buffer, decodes it to RGB line by line and resizes it to 224x224.
 * There is no queue, no order, no label, no limit of pixels and no message that names a file. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#include "image/picture.h"

enum { SIDE = 224, MOST_BYTES = 32 << 20 };

typedef struct work {
    char **files;
    int count, first, step, passes;
    int64_t done;
} work;

static size_t read_file(unsigned char *out, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return 0;
    const size_t bytes = fread(out, 1, MOST_BYTES, file);
    fclose(file);
    return bytes;
}

static bool decode(leati_picture *out, const unsigned char *data, size_t bytes) {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, data, bytes);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info);
    *out = (leati_picture){.width = info.output_width, .height = info.output_height, .channels = 3};
    const size_t line = 3 * (size_t)info.output_width;
    out->pixels = malloc(line * info.output_height + LEATI_PICTURE_SLACK);
    while (out->pixels && info.output_scanline < info.output_height) {
        JSAMPROW row = out->pixels + info.output_scanline * line;
        jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_destroy_decompress(&info);
    return out->pixels != NULL;
}

static void *run(void *argument) {
    work *w = argument;
    unsigned char *file = malloc(MOST_BYTES), *pixels = malloc((size_t)3 * SIDE * SIDE + LEATI_PICTURE_SLACK);
    for (int pass = 0; file && pixels && pass < w->passes; ++pass)
        for (int i = w->first; i < w->count; i += w->step) {
            leati_picture in, out = {SIDE, SIDE, 3, pixels};
            const size_t bytes = read_file(file, w->files[i]);
            if (!decode(&in, file, bytes)) continue;
            w->done +=
                leati_picture_fit(&out, &in, LEATI_FILTER_BILINEAR, LEATI_FIT_STRETCH, NULL) == LEAT_OK;
            free(in.pixels);
        }
    free(file);
    free(pixels);
    return NULL;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int count, char **words) {
    enum { MOST_THREADS = 64 };
    pthread_t threads[MOST_THREADS];
    work parts[MOST_THREADS];
    int64_t done = 0;
    if (count < 4) return fprintf(stderr, "usage: bench_decode THREADS PASSES FILE...\n"), 2;
    int wanted = atoi(words[1]);
    if (wanted < 1 || wanted > MOST_THREADS) return fprintf(stderr, "expected 1 to 64 threads\n"), 2;
    const double start = now();
    for (int i = 0; i < wanted; ++i) {
        parts[i] = (work){words + 3, count - 3, i, wanted, atoi(words[2]), 0};
        if (pthread_create(&threads[i], NULL, run, &parts[i]) != 0) return fprintf(stderr, "no thread\n"), 1;
    }
    for (int i = 0; i < wanted; ++i) {
        pthread_join(threads[i], NULL);
        done += parts[i].done;
    }
    printf("%.1f\n", (double)done / (now() - start));
    return 0;
}
