/* SPDX-License-Identifier: Apache-2.0 */
/* What a feed of JPEGs cannot exceed: libjpeg-turbo called directly, and leat's resize, on some threads.
 *
 *     bench_decode THREADS PASSES FILE...      prints pictures per second
 *     bench_decode cpu ROUNDS FILE...          prints microseconds of one thread's CPU time per picture, the least of
 *                                              some rounds, of decoding alone, with a resize, and by leat's functions
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

/* ---- CPU time of one thread ---- */

typedef enum way { BARE_DECODE, BARE_RESIZE, LEAT_DECODE, LEAT_RESIZE, WAY_COUNT } way;

static const char *const way_names[WAY_COUNT] = {"libjpeg-turbo alone", "libjpeg-turbo, leat's resize",
                                                 "leat's decode", "leat's decode and resize"};

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Goes over all files in one way; returns the seconds for each file. */
static double measure(way w, char **files, int count, unsigned char *file, unsigned char *pixels) {
    const leati_picture_options rgb = {.color = LEATI_COLOR_RGB};
    const double start = cpu_seconds();
    for (int i = 0; i < count; ++i) {
        leati_picture in, out = {SIDE, SIDE, 3, pixels};
        const size_t bytes = read_file(file, files[i]);
        const bool is_leat = w == LEAT_DECODE || w == LEAT_RESIZE;
        if (is_leat ? leati_picture_decode(&in, file, bytes, &rgb, NULL) != LEAT_OK
                    : !decode(&in, file, bytes))
            continue;
        if (w == BARE_RESIZE || w == LEAT_RESIZE)
            (void)leati_picture_fit(&out, &in, LEATI_FILTER_BILINEAR, LEATI_FIT_STRETCH, NULL);
        if (is_leat)
            leati_picture_fini(&in);
        else
            free(in.pixels);
    }
    return (cpu_seconds() - start) / count;
}

static int compare(int rounds, char **files, int count) {
    double least[WAY_COUNT] = {0};
    unsigned char *file = malloc(MOST_BYTES), *pixels = malloc((size_t)3 * SIDE * SIDE + LEATI_PICTURE_SLACK);
    for (int i = 0; file && pixels && i < rounds; ++i)
        for (int w = 0; w < WAY_COUNT; ++w) {
            const double seconds = measure((way)w, files, count, file, pixels);
            if (i == 0 || seconds < least[w]) least[w] = seconds;
        }
    for (int w = 0; w < WAY_COUNT; ++w) printf("%-30s %7.1f us\n", way_names[w], 1e6 * least[w]);
    free(file);
    free(pixels);
    return 0;
}

/* ---- Pictures per second ---- */

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
    if (count < 4) return fprintf(stderr, "usage: bench_decode THREADS|cpu PASSES FILE...\n"), 2;
    if (strcmp(words[1], "cpu") == 0) return compare(atoi(words[2]), words + 3, count - 3);
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
