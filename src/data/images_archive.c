/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the pictures of an archive as images_list.c lists those of the unpacked folder.  Room: data. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/images.h"

/* A member with its path inside of the archive, without "./" and empty parts; that of a folder ends in '/'. */
typedef struct entry {
    char *path;
    int64_t member;
} entry;

typedef struct listing {
    leati_image_list *list;
    const char *archive; /* path */
    entry *entries;      /* sorted by path */
    int64_t count;
    int64_t first, end; /* the entries inside of the folder that has the classes */
    size_t root;        /* length of that folder's path, with its '/' */
} listing;

static void end_listing(listing *l) {
    for (int64_t i = 0; i < l->count; ++i) leati_free(l->entries[i].path);
    leati_free(l->entries);
}

/* Returns the name without "." and empty parts, for leati_free; NULL without memory. */
static char *clean_path(const char *name) {
    char *out = leati_calloc(strlen(name) + 1, 1), *to = out;
    while (out && *name) {
        const size_t length = strcspn(name, "/");
        const bool ends = name[length] == '/';
        if (length > 0 && !(length == 1 && *name == '.')) {
            memcpy(to, name, length);
            to += length;
            if (ends) *to++ = '/';
        }
        name += length + ends;
    }
    return out;
}

static int compare_entries(const void *a, const void *b) {
    const entry *left = a, *right = b;
    const int order = strcmp(left->path, right->path);
    return order != 0 ? order : (left->member > right->member) - (left->member < right->member);
}

/* Adds an entry, unless macOS put the member there, which describes another member. */
static leat_status add_entry(listing *l, const char *name, int64_t member, leat_error *err) {
    char *path = clean_path(name);
    if (!path) return leati_fail_memory(err, strlen(name), "the name of a member");
    if (*path == '\0' || strncmp(path, "__MACOSX/", 9) == 0)
        leati_free(path);
    else
        l->entries[l->count++] = (entry){path, member};
    return LEAT_OK;
}

/* Keeps the last of several members with one path, as unpacking does. */
static void drop_replaced(listing *l) {
    int64_t kept = 0;
    for (int64_t i = 0; i < l->count; ++i) {
        if (i + 1 < l->count && strcmp(l->entries[i].path, l->entries[i + 1].path) == 0)
            leati_free(l->entries[i].path);
        else
            l->entries[kept++] = l->entries[i];
    }
    l->count = kept;
}

static leat_status read_entries(listing *l, leat_error *err) {
    const leati_archive *archive = l->list->archive;
    const int64_t count = leati_archive_count(archive);
    int64_t links = 0;
    l->entries = leati_calloc((size_t)count + 1, sizeof *l->entries);
    if (!l->entries) return leati_fail_memory(err, (size_t)count * sizeof *l->entries, "a list of members");
    for (int64_t i = 0; i < count; ++i) {
        const char *name = leati_archive_name(archive, i);
        if (name) LEATI_TRY(add_entry(l, name, i, err));
        links += name == NULL;
    }
    if (links > 0)
        leati_log(LEAT_LOG_WARNING,
                  "'%s': left out: %lld links; archives made by tar --dereference --hard-dereference have "
                  "the files instead",
                  l->archive, (long long)links);
    if (l->count > 0) qsort(l->entries, (size_t)l->count, sizeof *l->entries, compare_entries);
    drop_replaced(l);
    l->end = l->count;
    return LEAT_OK;
}

/* Returns the part of an entry's path inside of the root. */
static const char *inner_path(const listing *l, int64_t i) {
    return l->entries[i].path + l->root;
}

static bool is_class(const leati_image_choices *choices, const char *name, size_t length) {
    for (int i = 0; i < choices->class_count; ++i)
        if (strlen(choices->classes[i]) == length && memcmp(choices->classes[i], name, length) == 0)
            return true;
    return false;
}

/* Returns the length of the only folder's name, with its '/', if the root has one folder alone, no pictures beside
 * the folder, and none directly inside of it; otherwise 0.  Archives often have such a folder around all files. */
static size_t find_single_folder(const listing *l, const leati_image_choices *choices, const char **out) {
    const char *folder = NULL;
    size_t length = 0;
    bool has_folders = false;
    for (int64_t i = l->first; i < l->end; ++i) {
        const char *path = inner_path(l, i), *slash = strchr(path, '/');
        if (!slash && leati_is_picture_name(path)) return 0;
        if (!slash) continue;
        if (!folder) {
            folder = path;
            length = (size_t)(slash - path) + 1;
        }
        if (strncmp(folder, path, length) != 0) return 0;
        const char *inside = path + length;
        if (strchr(inside, '/')) has_folders = true;
        if (*inside && !strchr(inside, '/') && leati_is_picture_name(inside)) return 0;
    }
    *out = folder;
    return folder && has_folders && folder[0] != '.' && !is_class(choices, folder, length - 1) ? length : 0;
}

/* Finds the entries of the root whose paths begin with the `length` characters at `folder`: sorted by path, they are
 * neighbours. */
static void find_range(const listing *l, const char *folder, size_t length, int64_t *first, int64_t *end) {
    int64_t low = l->first, high = l->end;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (strncmp(inner_path(l, middle), folder, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *first = low;
    while (low < l->end && strncmp(inner_path(l, low), folder, length) == 0) ++low;
    *end = low;
}

/* Moves the root into folders around all files. */
static void find_root(listing *l, const leati_image_choices *choices) {
    const char *folder = NULL;
    for (size_t length = 0; (length = find_single_folder(l, choices, &folder)) > 0; l->root += length)
        find_range(l, folder, length, &l->first, &l->end);
}

/* Adds the pictures whose paths begin with a folder of the root: "cat/", or "" for all. */
static leat_status add_pictures(listing *l, const char *folder, int32_t label, leat_error *err) {
    leati_image_list *list = l->list;
    const int64_t before = list->count;
    int64_t first = 0, end = 0;
    find_range(l, folder, strlen(folder), &first, &end);
    if (first == end && *folder)
        return leati_fail(err, LEAT_ENOTFOUND, "'%s' has no folder '%s'", l->archive, folder);
    for (int64_t i = first; i < end; ++i) {
        const char *path = l->entries[i].path, *name = strrchr(path, '/');
        if (!leati_is_picture_name(name ? name + 1 : path)) continue;
        leati_text full = {0};
        leati_text_add(&full, "%s/%s", l->archive, path);
        if (full.failed) return leati_fail_memory(err, strlen(path), "a list of files");
        LEATI_TRY(leati_image_list_add(list, full.data, label, err));
        list->files[list->count - 1].member = l->entries[i].member;
    }
    if (list->count > before)
        qsort(list->files + before, (size_t)(list->count - before), sizeof *list->files,
              leati_compare_image_files);
    return LEAT_OK;
}

/* Adds the names of all folders in the root that are not hidden as classes, sorted. */
static leat_status find_classes(listing *l, leat_error *err) {
    const char *last = "";
    size_t last_length = 0;
    for (int64_t i = l->first; i < l->end; ++i) {
        const char *path = inner_path(l, i), *slash = strchr(path, '/');
        const size_t length = slash ? (size_t)(slash - path) : 0;
        if (!slash || *path == '.' || (length == last_length && memcmp(path, last, length) == 0)) continue;
        char name[4096];
        if (length >= sizeof name)
            return leati_fail(err, LEAT_EFORMAT, "'%s': the name of a folder has %zu bytes", l->archive,
                              length);
        memcpy(name, path, length);
        name[length] = '\0';
        if (leati_image_list_class(l->list, name) < 0)
            return leati_fail_memory(err, length, "the names of classes");
        last = path;
        last_length = length;
    }
    leati_image_list_sort_classes(l->list);
    return LEAT_OK;
}

static leat_status add_classes(listing *l, const leati_image_choices *choices, leat_error *err) {
    leati_image_list *list = l->list;
    find_root(l, choices);
    LEATI_TRY(choices->class_count ? leati_image_list_take_classes(list, choices, err)
                                   : find_classes(l, err));
    if (list->class_count == 0)
        return leati_fail(
            err, LEAT_EINVAL,
            "'%s' has no folders, expected one for each class (labels=none reads a flat archive)",
            l->archive);
    for (int i = 0; i < list->class_count; ++i) {
        leati_text folder = {0};
        leati_text_add(&folder, "%s/", list->classes[i]);
        const leat_status status = folder.failed ? leati_fail_memory(err, 0, "a list of files")
                                                 : add_pictures(l, folder.data, i, err);
        leati_text_fini(&folder);
        LEATI_TRY(leati_prefix(status, err, "class '%s'", list->classes[i]));
    }
    return LEAT_OK;
}

/* Returns the length of the folder that all pictures are in. */
static size_t common_folder(const leati_image_list *list, size_t prefix) {
    size_t length = list->count > 0 ? list->files[0].folder : prefix;
    for (int64_t i = 1; i < list->count; ++i) {
        const char *path = list->files[i].path, *first = list->files[0].path;
        size_t same = 0, folder = prefix;
        for (; same < length && path[same] == first[same]; ++same)
            if (path[same] == '/') folder = same;
        if (same == length && path[same] == '/') folder = same;
        length = folder;
    }
    return length < prefix ? prefix : length;
}

leat_status leati_image_list_read_archive(leati_image_list *list, const char *path,
                                          const leati_image_choices *choices, leat_error *err) {
    listing l = {.list = list, .archive = path};
    leat_status status = read_entries(&l, err);
    if (status == LEAT_OK)
        status = leati_labels_are_classes(choices->labels) ? add_classes(&l, choices, err)
                                                           : add_pictures(&l, "", 0, err);
    list->prefix = strlen(path);
    list->root = common_folder(list, list->prefix);
    end_listing(&l);
    return status;
}
