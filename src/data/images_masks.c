/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the masks of segmentation that belong to pictures.  Room: data. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/images.h"

/* The endings of files that are tried instead of the picture's own. */
static const char *const endings[] = {".png",  ".bmp", ".gif", ".tif", ".tiff",
                                      ".webp", ".pgm", ".ppm", ".jpg"};

/* Writes the path of the mask of the picture `name`, relative to its folder; returns false if there is none. */
static bool find(char *out, size_t bytes, const char *masks, const char *name) {
    const char *dot = strrchr(name, '.');
    const int stem = dot && !strchr(dot, '/') ? (int)(dot - name) : (int)strlen(name);
    snprintf(out, bytes, "%s/%s", masks, name);
    if (access(out, F_OK) == 0) return true;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; ++i) {
        snprintf(out, bytes, "%s/%.*s%s", masks, stem, name, endings[i]);
        if (access(out, F_OK) == 0) return true;
    }
    return false;
}

static leat_status find_one(char **out, const char *picture, const char *folder, const char *masks,
                            leat_error *err) {
    const size_t length = strlen(folder);
    const char *name = strncmp(picture, folder, length) == 0 ? picture + length : picture;
    while (*name == '/') ++name;
    const size_t bytes = strlen(masks) + strlen(name) + sizeof "/.webp";
    *out = leati_calloc(bytes, 1);
    if (!*out) return leati_fail_memory(err, bytes, "the path of a mask");
    if (find(*out, bytes, masks, name)) return LEAT_OK;
    return leati_fail(
        err, LEAT_ENOTFOUND,
        "picture '%s' has no mask: expected '%s/%s', or the same name with the ending .png, .bmp, .gif, "
        ".tif, .webp, .pgm or .jpg",
        picture, masks, name);
}

leat_status leati_image_masks_find(char ***out, const leati_image_list *list, const char *folder,
                                   const char *masks, leat_error *err) {
    leat_status status = LEAT_OK;
    *out = NULL;
    if (list->from_csv)
        return leati_fail(err, LEAT_EINVAL, "masks=%s expects a folder of pictures, received the list '%s'",
                          masks, folder);
    char **paths = leati_calloc((size_t)list->count, sizeof *paths);
    if (!paths) return leati_fail_memory(err, (size_t)list->count * sizeof *paths, "the paths of masks");
    for (int64_t i = 0; i < list->count && status == LEAT_OK; ++i)
        status = find_one(&paths[i], list->files[i].path, folder, masks, err);
    if (status == LEAT_OK)
        *out = paths;
    else
        leati_image_masks_free(paths, list->count);
    return status;
}

void leati_image_masks_free(char **paths, int64_t count) {
    for (int64_t i = 0; paths && i < count; ++i) leati_free(paths[i]);
    leati_free(paths);
}
