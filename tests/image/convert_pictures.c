/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes and resizes the pictures that lines of standard input name, and prints the CRC-32 of each result:
 *     PATH<tab>COLOR<tab>WIDTH<tab>HEIGHT<tab>FILTER<tab>FIT
 * COLOR is grayscale, rgb or rgba; with the width 0 a picture keeps its size.  The output has one line for each line of
 * input: WIDTH HEIGHT CRC, or `error: MESSAGE`.  tests/interop/check_pictures.py compares them with Pillow's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/os/file.h"
#include "image/picture.h"

typedef struct job {
    char path[1024], color[16], filter[16], fit[16];
    long long width, height;
} job;

static int find(const char *const *names, int count, const char *name) {
    for (int i = 0; i < count; ++i)
        if (strcmp(names[i], name) == 0) return i;
    fprintf(stderr, "unknown word '%s'\n", name);
    exit(2);
}

static leati_picture_color color_of(const char *name) {
    return strcmp(name, "grayscale") == 0 ? LEATI_COLOR_GRAYSCALE
           : strcmp(name, "rgba") == 0    ? LEATI_COLOR_RGBA
                                          : LEATI_COLOR_RGB;
}

static unsigned long checksum(const leati_picture *picture) {
    return crc32(0, picture->pixels, (unsigned)(picture->width * picture->height * picture->channels));
}

static leat_status convert(const job *j, leati_picture *out, leat_error *err) {
    const leati_picture_options options = {.color = color_of(j->color)};
    leati_map map;
    leati_picture in;
    leat_status status = leati_map_open(&map, j->path, err);
    if (status != LEAT_OK) return status;
    status = leati_picture_decode(&in, map.data, map.size, &options, err);
    leati_map_close(&map);
    if (status != LEAT_OK) return status;
    if (j->width == 0) {
        *out = in;
        return LEAT_OK;
    }
    status = leati_picture_create(out, j->width, j->height, in.channels, err);
    if (status == LEAT_OK)
        status =
            leati_picture_fit(out, &in, (leati_filter)find(leati_filter_names, LEATI_FILTER_COUNT, j->filter),
                              (leati_fit)find(leati_fit_names, LEATI_FIT_COUNT, j->fit), err);
    leati_picture_fini(&in);
    return status;
}

int main(void) {
    char line[2048];
    while (fgets(line, sizeof line, stdin)) {
        job j;
        leat_error err = {0};
        leati_picture out = {0};
        if (sscanf(line, "%1023[^\t]\t%15s\t%lld\t%lld\t%15s\t%15s", j.path, j.color, &j.width, &j.height,
                   j.filter, j.fit) != 6)
            return 2;
        if (convert(&j, &out, &err) == LEAT_OK)
            printf("%lld %lld %08lx\n", (long long)out.width, (long long)out.height, checksum(&out));
        else
            printf("error: %s\n", err.message);
        leati_picture_fini(&out);
    }
    return 0;
}
