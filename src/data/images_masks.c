/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the masks of segmentation that belong to pictures.  Room: data. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/images.h"

/* The endings of files that are tried instead of the picture's own. */
static const char *const endings[] = {".png",  ".bmp", ".gif", ".tif", ".tiff",
                                      ".webp", ".pgm", ".ppm", ".jpg"};

/* Where masks are. */
typedef struct place {
    const char *folder;       /* of the masks, or their archive; "": paths are complete */
    leati_image_list members; /* of the archive, sorted by path; empty: the masks are files */
} place;

static int compare_paths(const void *a, const void *b) {
    return strcmp(((const leati_image_file *)a)->path, ((const leati_image_file *)b)->path);
}

/* Returns the member of the archive whose path behind the first `skip` characters and '/' is `name`; NULL: there is
 * none. */
static const leati_image_file *find_member(const place *p, const char *name, size_t skip) {
    int64_t low = 0, high = p->members.count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order = strcmp(p->members.files[middle].path + skip + 1, name);
        if (order == 0) return &p->members.files[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Adds the mask with this name to the list, if there is one.  In an archive, the folders around all masks may be part
 * of the name or not. */
static leat_status try_name(leati_image_list *out, const place *p, const char *name, bool *found,
                            leat_error *err) {
    const leati_image_file *member = NULL;
    leati_text path = {0};
    if (p->members.count == 0) {
        leati_text_add(&path, "%s%s%s", p->folder, *p->folder ? "/" : "", name);
        *found = !path.failed && access(path.data, F_OK) == 0;
    } else {
        member = find_member(p, name, p->members.prefix);
        if (!member) member = find_member(p, name, p->members.root);
        if (member) leati_text_add(&path, "%s", member->path);
        *found = member != NULL;
    }
    if (path.failed) return leati_fail_memory(err, strlen(name), "the path of a mask");
    if (!*found) {
        leati_text_fini(&path);
        return LEAT_OK;
    }
    LEATI_TRY(leati_image_list_add(out, path.data, 0, err));
    if (member) out->files[out->count - 1].member = member->member;
    return LEAT_OK;
}

/* Adds the mask that has the name of a picture, maybe with another ending. */
static leat_status find(leati_image_list *out, const place *p, const char *picture, bool *found,
                        leat_error *err) {
    const char *dot = strrchr(picture, '.');
    const int stem = dot && !strchr(dot, '/') ? (int)(dot - picture) : (int)strlen(picture);
    leat_status status = try_name(out, p, picture, found, err);
    for (size_t i = 0; i < sizeof endings / sizeof *endings && status == LEAT_OK && !*found; ++i) {
        leati_text name = {0};
        leati_text_add(&name, "%.*s%s", stem, picture, endings[i]);
        status = name.failed ? leati_fail_memory(err, strlen(picture), "the path of a mask")
                             : try_name(out, p, name.data, found, err);
        leati_text_fini(&name);
    }
    return status;
}

/* Returns the part of a path behind its first `length` characters and '/'. */
static const char *rest_of(const char *path, size_t length) {
    path += length;
    while (*path == '/') ++path;
    return path;
}

static leat_status find_of_picture(leati_image_list *out, const place *p, const leati_image_list *list,
                                   const leati_image_file *file, const char *path, leat_error *err) {
    const bool is_inside = strncmp(file->path, path, list->prefix) == 0;
    const char *name = rest_of(file->path, is_inside ? list->prefix : 0);
    bool found = false;
    LEATI_TRY(find(out, p, name, &found, err));
    if (!found && list->root > list->prefix)
        LEATI_TRY(find(out, p, rest_of(file->path, list->root), &found, err));
    if (found) return LEAT_OK;
    return leati_fail(
        err, LEAT_ENOTFOUND,
        "picture '%s' has no mask: expected '%s/%s', or the same name with the ending .png, .bmp, .gif, "
        ".tif, .webp, .pgm or .jpg",
        file->path, p->folder, name);
}

/* Adds the mask that the row of a list names. */
static leat_status find_of_row(leati_image_list *out, const place *p, const leati_image_list *list,
                               const leati_image_file *file, const char *path, leat_error *err) {
    leati_text name = {0};
    bool found = false;
    if (*p->folder == '\0' && file->mask[0] != '/' && list->prefix > 0)
        leati_text_add(&name, "%.*s/", (int)list->prefix, path);
    leati_text_add(&name, "%s", file->mask);
    leat_status status = name.failed ? leati_fail_memory(err, strlen(file->mask), "the path of a mask")
                                     : try_name(out, p, name.data, &found, err);
    if (status == LEAT_OK && !found)
        status = leati_fail(err, LEAT_ENOTFOUND, "picture '%s' has no mask: expected '%s%s%s'", file->path,
                            p->folder, *p->folder ? "/" : "", name.data);
    leati_text_fini(&name);
    return status;
}

/* Lists the members if the masks are in an archive. */
static leat_status open_place(place *out, const leati_image_choices *choices, leat_error *err) {
    struct stat info;
    const leati_image_choices all = {.labels = LEATI_LABELS_NONE};
    *out = (place){.folder = choices->masks ? choices->masks : ""};
    if (!choices->masks || stat(choices->masks, &info) != 0 || S_ISDIR(info.st_mode)) return LEAT_OK;
    LEATI_TRY(leati_prefix(leati_image_list_read(&out->members, choices->masks, &all, err), err,
                           "masks=%s (expected a folder, a zip or a tar file)", choices->masks));
    if (!out->members.archive) {
        leati_image_list_fini(&out->members);
        return leati_fail(err, LEAT_EINVAL, "masks=%s: expected a folder, a zip or a tar file",
                          choices->masks);
    }
    qsort(out->members.files, (size_t)out->members.count, sizeof *out->members.files, compare_paths);
    return LEAT_OK;
}

leat_status leati_image_masks_find(leati_image_list *out, const leati_image_list *list, const char *path,
                                   const leati_image_choices *choices, leat_error *err) {
    place p;
    *out = (leati_image_list){0};
    if (list->from_csv && choices->directory) path = choices->directory;
    leat_status status = open_place(&p, choices, err);
    for (int64_t i = 0; i < list->count && status == LEAT_OK; ++i)
        status = list->files[i].mask ? find_of_row(out, &p, list, &list->files[i], path, err)
                                     : find_of_picture(out, &p, list, &list->files[i], path, err);
    if (status == LEAT_OK) {
        out->archive = p.members.archive;
        p.members.archive = NULL;
    } else {
        leati_image_list_fini(out);
    }
    leati_image_list_fini(&p.members);
    return status;
}
