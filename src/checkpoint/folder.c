/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, names and removes the files of checkpoints.  Room: checkpoint. */
#include "checkpoint/folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/log.h"
#include "base/memory.h"
#include "checkpoint/state.h"

static const leat_checkpoint_options defaults = {.every_epochs = 1, .keep = 2};
static const leati_growing options_type = LEATI_GROWING(leat_checkpoint_options, folder, &defaults);

void leat_checkpoint_options_init(leat_checkpoint_options *options, size_t size) {
    leati_growing_init(&options_type, options, size);
}

leat_status leati_checkpoint_options_read(const leat_checkpoint_options *in, leat_checkpoint_options *out,
                                          leat_error *err) {
    LEATI_TRY(leati_growing_read(&options_type, in, out, err));
    if (!out->folder || !out->folder[0])
        return leati_fail(err, LEAT_EINVAL, "checkpoints: folder is required");
    if (out->every_steps < 0 || out->every_ms < 0 || out->every_epochs < 0)
        return leati_fail(err, LEAT_EINVAL,
                          "checkpoints: every_steps, every_ms and every_epochs must be at least 0");
    if (out->keep < 1)
        return leati_fail(err, LEAT_EINVAL, "checkpoints: keep: expected at least 1, received %d", out->keep);
    return LEAT_OK;
}

/* ---- Names ---- */

#define NAME_FORMAT "step-%012" PRId64 ".leat"

/* Returns the number of steps in a checkpoint's file name; -1 if a checkpoint does not have this name. */
static int64_t steps_of(const char *name) {
    char expected[40];
    if (strncmp(name, "step-", 5) != 0 || name[5] < '0' || name[5] > '9') return -1;
    int64_t steps = strtoll(name + 5, NULL, 10);
    snprintf(expected, sizeof expected, NAME_FORMAT, steps);
    return strcmp(name, expected) == 0 ? steps : -1;
}

leat_status leati_checkpoint_path(char **out, const char *folder, int64_t steps, leat_error *err) {
    size_t bytes = strlen(folder) + 40;
    *out = leati_calloc(bytes, 1);
    if (!*out) return leati_fail_memory(err, bytes, "a file name");
    snprintf(*out, bytes, "%s/" NAME_FORMAT, folder, steps);
    return LEAT_OK;
}

leat_status leati_checkpoint_folder_make(const char *folder, leat_error *err) {
    struct stat info;
    if (mkdir(folder, 0777) == 0) return LEAT_OK;
    int number = errno;
    if (number == EEXIST && stat(folder, &info) == 0 && S_ISDIR(info.st_mode)) return LEAT_OK;
    return leati_fail_errno(err, LEAT_EIO, number == EEXIST ? ENOTDIR : number,
                            "cannot create the folder '%s'", folder);
}

/* ---- Lists ---- */

static int by_steps(const void *a, const void *b) {
    const int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

static leat_status add_steps(leati_checkpoint_list *list, int64_t steps, leat_error *err) {
    int64_t *larger = leati_realloc(list->steps, list->count + 1, sizeof *larger);
    if (!larger) return leati_fail_memory(err, sizeof *larger, "the list of checkpoints");
    list->steps = larger;
    larger[list->count++] = steps;
    return LEAT_OK;
}

leat_status leati_checkpoint_list_read(leati_checkpoint_list *out, const char *folder, leat_error *err) {
    *out = (leati_checkpoint_list){0};
    DIR *directory = opendir(folder);
    if (!directory && errno == ENOENT) return LEAT_OK;
    if (!directory) return leati_fail_errno(err, LEAT_EIO, errno, "cannot read the folder '%s'", folder);
    leat_status status = LEAT_OK;
    for (const struct dirent *entry; status == LEAT_OK && (entry = readdir(directory));) {
        int64_t steps = steps_of(entry->d_name);
        if (steps >= 0) status = add_steps(out, steps, err);
    }
    closedir(directory);
    if (status == LEAT_OK && out->count > 0) qsort(out->steps, out->count, sizeof *out->steps, by_steps);
    if (status == LEAT_OK) return LEAT_OK;
    leati_free(out->steps);
    *out = (leati_checkpoint_list){0};
    return status;
}

/* ---- The newest one ---- */

static leat_status try_open(leati_image *out, const char *folder, int64_t steps, char **path,
                            leat_error *err) {
    LEATI_TRY(leati_checkpoint_path(path, folder, steps, err));
    leat_status status = leati_image_open(out, *path, err);
    if (status == LEAT_OK) return LEAT_OK;
    if (status == LEAT_ENOTFOUND)
        status = leati_fail(err, LEAT_EFORMAT, "'%s' is a link to a file that does not exist", *path);
    leati_free(*path);
    *path = NULL;
    return status;
}

leat_status leati_checkpoint_open_newest(leati_image *out, const char *folder, char **path, int *damaged,
                                         leat_error *err) {
    leati_checkpoint_list list;
    leat_status status = LEAT_ENOTFOUND;
    leat_error why = {0};
    *out = (leati_image){0};
    *path = NULL;
    *damaged = 0;
    LEATI_TRY(leati_checkpoint_list_read(&list, folder, err));
    for (size_t i = list.count; i-- > 0;) {
        status = try_open(out, folder, list.steps[i], path, &why);
        if (status != LEAT_EFORMAT) break;
        leati_log(LEAT_LOG_WARNING, "leat: skipped a checkpoint: %s", why.message);
        ++*damaged;
    }
    leati_free(list.steps);
    if (status != LEAT_OK && list.count > 0 && err) *err = why;
    if (list.count > 0) return status;
    return leati_fail(err, LEAT_ENOTFOUND, "the folder '%s' has no checkpoint", folder);
}

static leat_status read_info(const leati_image *image, leat_checkpoint_info *info, leat_error *err) {
    const leat_state state = {.image = image, .prefix = "fit/"};
    int64_t ended = 0;
    LEATI_TRY(leati_state_get_i64(&state, "epoch", &info->epoch, err));
    LEATI_TRY(leati_state_get_i64(&state, "step", &info->step, err));
    LEATI_TRY(leati_state_get_i64(&state, "steps", &info->steps, err));
    LEATI_TRY(leati_state_get_i64(&state, "ended", &ended, err));
    info->ended = ended != 0;
    return LEAT_OK;
}

leat_status leat_checkpoint_find(const char *folder, leat_checkpoint_info *out, size_t size,
                                 leat_error *err) {
    leat_checkpoint_info info = {0};
    leati_image image;
    char *path = NULL;
    LEATI_GIVEN(out, err);
    leati_growing_report(NULL, sizeof info, out, size);
    LEATI_GIVEN(folder, err);
    LEATI_TRY(leati_checkpoint_open_newest(&image, folder, &path, &info.damaged, err));
    leat_status status = read_info(&image, &info, err);
    leati_image_close(&image);
    if (strlen(path) < sizeof info.path) memcpy(info.path, path, strlen(path) + 1);
    leati_free(path);
    if (status == LEAT_OK) leati_growing_report(&info, sizeof info, out, size);
    return status;
}

/* ---- Removing ---- */

static leat_status remove_one(const char *folder, int64_t steps, leat_error *err) {
    char *path = NULL;
    LEATI_TRY(leati_checkpoint_path(&path, folder, steps, err));
    leat_status status = LEAT_OK;
    if (unlink(path) != 0 && errno != ENOENT)
        status = leati_fail_errno(err, LEAT_EIO, errno, "cannot remove '%s'", path);
    leati_free(path);
    return status;
}

leat_status leati_checkpoint_remove_after(const char *folder, int64_t steps, leat_error *err) {
    leati_checkpoint_list list;
    leat_status status = LEAT_OK;
    LEATI_TRY(leati_checkpoint_list_read(&list, folder, err));
    for (size_t i = 0; status == LEAT_OK && i < list.count; ++i)
        if (list.steps[i] > steps) status = remove_one(folder, list.steps[i], err);
    leati_free(list.steps);
    return status;
}

leat_status leati_checkpoint_prune(const char *folder, int keep, leat_error *err) {
    leati_checkpoint_list list;
    leat_status status = LEAT_OK;
    LEATI_TRY(leati_checkpoint_list_read(&list, folder, err));
    for (size_t i = 0; list.steps && status == LEAT_OK && i + (size_t)keep < list.count; ++i)
        status = remove_one(folder, list.steps[i], err);
    leati_free(list.steps);
    return status;
}
