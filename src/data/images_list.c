/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the pictures of a folder in the order in which Keras lists them: classes by name, then folders by path, then
 * files by name.  images_archive.c and images_csv.c list those of an archive and of a CSV file.  Room: data. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/images.h"
#include "zip/unpack.h"

/* Folders inside each other; links can form a circle. */
enum { MAX_DEPTH = 40 };

/* ---- The list ---- */

bool leati_labels_are_classes(leati_label_mode labels) {
    return labels == LEATI_LABELS_INT || labels == LEATI_LABELS_ONEHOT || labels == LEATI_LABELS_BINARY ||
           labels == LEATI_LABELS_MULTIHOT;
}

void leati_image_file_fini(leati_image_file *file) {
    leati_free(file->path);
    leati_free(file->mask);
    *file = (leati_image_file){0};
}

void leati_image_list_fini(leati_image_list *list) {
    for (int64_t i = 0; i < list->count; ++i) leati_image_file_fini(&list->files[i]);
    for (int i = 0; i < list->class_count; ++i) leati_free(list->classes[i]);
    leati_free(list->files);
    leati_free(list->classes);
    leati_free(list->raw);
    leati_free(list->numbers);
    leati_archive_close(list->archive);
    *list = (leati_image_list){0};
}

leat_status leati_image_list_add(leati_image_list *list, char *path, int32_t label, leat_error *err) {
    if (list->count == list->capacity) {
        const int64_t capacity = list->capacity ? 2 * list->capacity : 64;
        leati_image_file *files = leati_realloc(list->files, (size_t)capacity, sizeof *files);
        if (!files) {
            leati_free(path);
            return leati_fail_memory(err, (size_t)capacity * sizeof *files, "a list of files");
        }
        list->files = files;
        list->capacity = capacity;
    }
    const char *name = strrchr(path, '/');
    list->files[list->count++] = (leati_image_file){.path = path,
                                                    .folder = name ? (size_t)(name - path) : 0,
                                                    .label = label,
                                                    .member = -1};
    return LEAT_OK;
}

int leati_image_list_class(leati_image_list *list, const char *name) {
    for (int i = list->class_count - 1; i >= 0; --i)
        if (strcmp(list->classes[i], name) == 0) return i;
    char **classes = leati_realloc(list->classes, (size_t)list->class_count + 1, sizeof *classes);
    if (!classes) return -1;
    list->classes = classes;
    classes[list->class_count] = leati_strdup(name);
    return classes[list->class_count] ? list->class_count++ : -1;
}

/* Returns "folder/name" for leati_free; NULL without memory. */
static char *join(const char *folder, const char *name) {
    leati_text path = {0};
    const size_t length = strlen(folder);
    leati_text_add(&path, "%s%s%s", folder, length > 0 && folder[length - 1] == '/' ? "" : "/", name);
    return path.failed ? NULL : path.data;
}

/* ---- Folders ---- */

bool leati_is_picture_name(const char *name) {
    static const char *const suffixes[] = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp",
                                           ".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm"};
    const char *suffix = strrchr(name, '.');
    for (size_t i = 0; suffix && i < sizeof suffixes / sizeof *suffixes; ++i)
        if (strcasecmp(suffix, suffixes[i]) == 0) return true;
    return false;
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_link(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
}

static leat_status cannot_read(const char *path, leat_error *err) {
    return leati_fail_errno(err, errno == ENOENT ? LEAT_ENOTFOUND : LEAT_EIO, errno,
                            "cannot read the folder '%s'", path);
}

/* What happens with each entry of a folder; takes `path`. */
typedef struct visit {
    leati_image_list *list;
    bool follow_links;
    int32_t label;
    int depth;
} visit;

static leat_status visit_folder(const visit *v, const char *folder, leat_error *err);

static leat_status visit_entry(const visit *v, char *path, const char *name, leat_error *err) {
    leat_status status = LEAT_OK;
    if (is_folder(path)) {
        visit inner = *v;
        ++inner.depth;
        if (v->follow_links || !is_link(path)) status = visit_folder(&inner, path, err);
        leati_free(path);
        return status;
    }
    if (leati_is_picture_name(name)) return leati_image_list_add(v->list, path, v->label, err);
    leati_free(path);
    return LEAT_OK;
}

static leat_status visit_folder(const visit *v, const char *folder, leat_error *err) {
    if (v->depth > MAX_DEPTH)
        return leati_fail(err, LEAT_EINVAL, "'%s' is inside of more than %d folders: do links form a circle?",
                          folder, MAX_DEPTH);
    DIR *stream = opendir(folder);
    if (!stream) return cannot_read(folder, err);
    leat_status status = LEAT_OK;
    for (const struct dirent *entry = NULL; status == LEAT_OK && (errno = 0, entry = readdir(stream));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        char *path = join(folder, entry->d_name);
        status =
            path ? visit_entry(v, path, entry->d_name, err) : leati_fail_memory(err, 0, "a list of files");
    }
    if (status == LEAT_OK && errno != 0) status = cannot_read(folder, err);
    closedir(stream);
    return status;
}

int leati_compare_image_files(const void *a, const void *b) {
    const leati_image_file *left = a, *right = b;
    const size_t both = left->folder < right->folder ? left->folder : right->folder;
    const int order = memcmp(left->path, right->path, both);
    if (order != 0) return order;
    if (left->folder != right->folder) return left->folder < right->folder ? -1 : 1;
    return strcmp(left->path + left->folder, right->path + right->folder);
}

/* Adds the pictures of a folder and of the folders inside of it, sorted. */
static leat_status add_folder(leati_image_list *list, const char *folder, int32_t label, bool follow_links,
                              leat_error *err) {
    const int64_t first = list->count;
    LEATI_TRY(visit_folder(&(visit){list, follow_links, label, 0}, folder, err));
    if (list->count > first)
        qsort(list->files + first, (size_t)(list->count - first), sizeof *list->files,
              leati_compare_image_files);
    return LEAT_OK;
}

/* ---- Classes ---- */

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void leati_image_list_sort_classes(leati_image_list *list) {
    if (list->class_count > 0)
        qsort(list->classes, (size_t)list->class_count, sizeof *list->classes, compare_names);
}

/* Adds the names of all subfolders that are not hidden as classes, sorted. */
static leat_status find_classes(leati_image_list *list, const char *folder, leat_error *err) {
    DIR *stream = opendir(folder);
    if (!stream) return cannot_read(folder, err);
    leat_status status = LEAT_OK;
    for (const struct dirent *entry = NULL; status == LEAT_OK && (errno = 0, entry = readdir(stream));) {
        if (entry->d_name[0] == '.') continue;
        char *path = join(folder, entry->d_name);
        if (!path || (is_folder(path) && leati_image_list_class(list, entry->d_name) < 0))
            status = leati_fail_memory(err, 0, "the names of classes");
        leati_free(path);
    }
    if (status == LEAT_OK && errno != 0) status = cannot_read(folder, err);
    closedir(stream);
    leati_image_list_sort_classes(list);
    return status;
}

leat_status leati_image_list_take_classes(leati_image_list *list, const leati_image_choices *choices,
                                          leat_error *err) {
    for (int i = 0; i < choices->class_count; ++i) {
        const int number = leati_image_list_class(list, choices->classes[i]);
        if (number < 0) return leati_fail_memory(err, 0, "the names of classes");
        if (number != i)
            return leati_fail(err, LEAT_EINVAL, "classes: '%s' is named twice", choices->classes[i]);
    }
    return LEAT_OK;
}

static leat_status read_classes(leati_image_list *list, const char *folder,
                                const leati_image_choices *choices, leat_error *err) {
    LEATI_TRY(choices->class_count ? leati_image_list_take_classes(list, choices, err)
                                   : find_classes(list, folder, err));
    if (list->class_count == 0)
        return leati_fail(
            err, LEAT_EINVAL,
            "'%s' has no subfolders, expected one for each class (labels=none reads a flat folder)", folder);
    for (int i = 0; i < list->class_count; ++i) {
        char *path = join(folder, list->classes[i]);
        leat_status status = path ? add_folder(list, path, i, choices->follow_links, err)
                                  : leati_fail_memory(err, 0, "a list of files");
        leati_free(path);
        if (status != LEAT_OK) return leati_prefix(status, err, "class '%s'", list->classes[i]);
    }
    return LEAT_OK;
}

/* Reads the beginning of an open file.  Returns the number of bytes. */
static size_t read_head(int fd, unsigned char head[LEATI_ARCHIVE_HEAD_BYTES]) {
    const ssize_t count = pread(fd, head, LEATI_ARCHIVE_HEAD_BYTES, 0);
    return count < 0 ? 0 : (size_t)count;
}

bool leati_image_is_archive(int fd) {
    unsigned char head[LEATI_ARCHIVE_HEAD_BYTES];
    return leati_is_archive(head, read_head(fd, head));
}

/* Reads an archive or a CSV list. */
static leat_status read_single_file(leati_image_list *list, const char *path,
                                    const leati_image_choices *choices, leat_error *err) {
    unsigned char head[LEATI_ARCHIVE_HEAD_BYTES];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* the reader of a list reports failures */
    const size_t count = fd < 0 ? 0 : read_head(fd, head);
    if (fd >= 0) close(fd);
    if (leati_is_archive(head, count)) {
        LEATI_TRY(leati_archive_open(&list->archive, path, err));
        return leati_image_list_read_archive(list, path, choices, err);
    }
    if (leati_is_packed(head, count))
        return leati_fail(err, LEAT_ENOTSUP,
                          "'%s' is compressed as a whole: expected a folder, a CSV list, a zip file or an "
                          "uncompressed tar file; unpack it",
                          path);
    return leati_image_list_read_csv(list, path, choices, err);
}

static leat_status read_folder(leati_image_list *list, const char *path, const leati_image_choices *choices,
                               leat_error *err) {
    list->prefix = list->root = strlen(path);
    if (leati_labels_are_classes(choices->labels)) return read_classes(list, path, choices, err);
    return add_folder(list, path, 0, choices->follow_links, err);
}

static leat_status read_list(leati_image_list *list, const char *path, const leati_image_choices *choices,
                             leat_error *err) {
    struct stat info;
    if (stat(path, &info) != 0)
        return leati_fail_errno(err, errno == ENOENT ? LEAT_ENOTFOUND : LEAT_EIO, errno, "cannot open '%s'",
                                path);
    LEATI_TRY(S_ISDIR(info.st_mode) ? read_folder(list, path, choices, err)
                                    : read_single_file(list, path, choices, err));
    const char *of_list = choices->labels == LEATI_LABELS_RAW        ? "labels=raw"
                          : choices->labels == LEATI_LABELS_MULTIHOT ? "labels=multihot"
                          : choices->labels == LEATI_LABELS_MULTI    ? "labels=multi_output"
                          : choices->mask_column                     ? "mask_col"
                                                                     : NULL;
    if (!list->from_csv && of_list)
        return leati_fail(err, LEAT_EINVAL, "%s needs a CSV list, '%s' is %s", of_list, path,
                          list->archive ? "an archive" : "a folder");
    if (list->count == 0) return leati_fail(err, LEAT_EINVAL, "'%s' has no pictures", path);
    if (choices->labels == LEATI_LABELS_BINARY && list->class_count != 2)
        return leati_fail(err, LEAT_EINVAL, "labels=binary needs two classes, '%s' has %d", path,
                          list->class_count);
    return leati_image_list_split(list, choices, err);
}

leat_status leati_image_list_read(leati_image_list *out, const char *path, const leati_image_choices *choices,
                                  leat_error *err) {
    *out = (leati_image_list){0};
    leat_status status = read_list(out, path, choices, err);
    if (status != LEAT_OK) leati_image_list_fini(out);
    return status;
}

/* ---- Files ---- */

leat_status leati_image_list_bytes(const leati_image_list *list, const leati_image_file *file,
                                   unsigned char **out, size_t *bytes, leat_error *err) {
    if (file->member < 0) return leati_image_read_file(out, bytes, file->path, err);
    return leati_archive_read(list->archive, file->member, out, bytes, err);
}

static leat_status read_open_file(unsigned char **out, size_t *bytes, int fd, const char *path,
                                  leat_error *err) {
    struct stat info;
    if (fstat(fd, &info) != 0) return leati_fail_errno(err, LEAT_EIO, errno, "cannot read '%s'", path);
    if (!S_ISREG(info.st_mode))
        return leati_fail(err, LEAT_EINVAL, "expected a regular file, '%s' is something else", path);
    const size_t size = (size_t)info.st_size;
    *bytes = 0;
    *out = leati_calloc(size + 1, 1);
    if (!*out) return leati_fail_memory(err, size, "the bytes of a file");
    while (*bytes < size) {
        const ssize_t count = read(fd, *out + *bytes, size - *bytes);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return leati_fail_errno(err, LEAT_EIO, errno, "cannot read '%s'", path);
        if (count == 0) break; /* the file was shortened; its decoder sees that */
        *bytes += (size_t)count;
    }
    return LEAT_OK;
}

leat_status leati_image_read_file(unsigned char **out, size_t *bytes, const char *path, leat_error *err) {
    *out = NULL;
    const int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: for a FIFO without a writer */
    if (fd < 0)
        return leati_fail_errno(err, errno == ENOENT ? LEAT_ENOTFOUND : LEAT_EIO, errno, "cannot open '%s'",
                                path);
    leat_status status = read_open_file(out, bytes, fd, path, err);
    close(fd);
    if (status == LEAT_OK) return LEAT_OK;
    leati_free(*out);
    *out = NULL;
    return status;
}
