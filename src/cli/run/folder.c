/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a run.  Room: cli. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "cli/run/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options/table.h"
#include "cli/text/say.h"

/* The files that a run writes, in the order in which they are removed: without run.json nothing else is a run. */
static const char *const files[] = {"run.json",     "model.h5",      "best.h5",       "log.csv",
                                    "history.json", "report.html",   "start.h5",      "start.json",
                                    "start.keras",  "checkpoint.h5", "statistics.npz"};
enum { file_count = sizeof files / sizeof *files };

void cli_folder_path(char out[CLI_PATH_BYTES], const cli_folder *folder, const char *name) {
    snprintf(out, CLI_PATH_BYTES, "%s/%s", folder->path, name);
}

/* ---- Making and locking ---- */

/* Creates the folders above the last one; errors are found when the last one is made. */
static void make_parents(const char *path) {
    char parent[CLI_PATH_BYTES];
    snprintf(parent, sizeof parent, "%s", path);
    for (char *slash = parent + 1; (slash = strchr(slash, '/')); ++slash) {
        *slash = '\0';
        (void)mkdir(parent, 0777);
        *slash = '/';
    }
}

static int find(cli_folder *folder, const char *path) {
    char *full = realpath(path, NULL);
    if (!full || strlen(full) >= sizeof folder->path - 64) {
        cli_say("leat fit: cannot find the folder '%s': %s\n", path, strerror(full ? ENAMETOOLONG : errno));
        free(full);
        return CLI_FAILURE;
    }
    snprintf(folder->path, sizeof folder->path, "%s", full);
    free(full);
    return CLI_SUCCESS;
}

static int lock(cli_folder *folder, const char *path) {
    leat_error err = {0};
    int code = find(folder, path);
    if (code != CLI_SUCCESS) return code;
    if (leat_folder_lock(&folder->lock, folder->path, &err) == LEAT_OK) return CLI_SUCCESS;
    cli_say("leat fit: %s\n", err.message);
    folder->path[0] = '\0';
    return CLI_FAILURE;
}

/* Locks the folder, and removes what a killed process has not finished to write there. */
static int lock_and_clean(cli_folder *folder, const char *path) {
    leat_error err = {0};
    int code = lock(folder, path);
    if (code == CLI_SUCCESS && leat_folder_clean(folder->path, &err) != LEAT_OK) {
        cli_say("leat fit: %s\n", err.message);
        cli_folder_close(folder);
        code = CLI_FAILURE;
    }
    return code;
}

int cli_folder_make(cli_folder *out, const char *path) {
    struct stat info;
    *out = (cli_folder){.name = path};
    if (!*path || strlen(path) >= CLI_PATH_BYTES - 64) {
        cli_say("leat fit: --out '%.100s': expected the name of a folder\n", path);
        return CLI_USAGE;
    }
    make_parents(path);
    out->is_new = mkdir(path, 0777) == 0;
    int number = errno;
    if (!out->is_new && (number != EEXIST || stat(path, &info) != 0 || !S_ISDIR(info.st_mode))) {
        cli_say("leat fit: cannot create the folder '%s': %s\n", path,
                strerror(number == EEXIST ? ENOTDIR : number));
        return CLI_FAILURE;
    }
    return lock_and_clean(out, path);
}

int cli_folder_find(cli_folder *out, const char *path) {
    *out = (cli_folder){.name = path};
    return find(out, path);
}

int cli_folder_open(cli_folder *out, const char *path) {
    *out = (cli_folder){.name = path};
    return lock_and_clean(out, path);
}

void cli_folder_close(cli_folder *folder) {
    leat_folder_unlock(&folder->lock);
    folder->path[0] = '\0';
}

/* ---- Other runs ---- */

const char *cli_folder_find_run(const cli_folder *folder) {
    char path[CLI_PATH_BYTES];
    for (int i = 0; i < file_count; ++i) {
        cli_folder_path(path, folder, files[i]);
        if (access(path, F_OK) == 0) return files[i];
    }
    cli_folder_path(path, folder, "checkpoints");
    return access(path, F_OK) == 0 ? "checkpoints" : NULL;
}

static int cannot_remove(const char *path) {
    cli_say("leat fit: cannot remove '%s': %s\n", path, strerror(errno));
    return CLI_FAILURE;
}

/* Removes checkpoints/step-*.leat, and the folder if it is empty then. */
static int remove_checkpoints(const cli_folder *folder) {
    char path[CLI_PATH_BYTES], file[CLI_PATH_BYTES + 256];
    cli_folder_path(path, folder, "checkpoints");
    DIR *directory = opendir(path);
    int code = CLI_SUCCESS;
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        if (strncmp(entry->d_name, "step-", 5) != 0 && strcmp(entry->d_name, "lock") != 0) continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (unlink(file) != 0) code = cannot_remove(file);
    }
    if (directory) closedir(directory);
    (void)rmdir(path);
    return code;
}

/* Fails if one of the run's files is a directory, FIFO or device, which leat does not remove. */
static int check_removable(const cli_folder *folder) {
    char path[CLI_PATH_BYTES];
    struct stat info;
    for (int i = 0; i < file_count; ++i) {
        cli_folder_path(path, folder, files[i]);
        if (lstat(path, &info) != 0 || S_ISREG(info.st_mode) || S_ISLNK(info.st_mode)) continue;
        cli_say("leat fit: '%s' is no regular file: remove it, or choose another --out\n", path);
        return CLI_FAILURE;
    }
    return CLI_SUCCESS;
}

int cli_folder_remove_run(const cli_folder *folder) {
    char path[CLI_PATH_BYTES];
    int code = check_removable(folder);
    if (code != CLI_SUCCESS) return code;
    for (int i = 0; i < file_count; ++i) {
        cli_folder_path(path, folder, files[i]);
        if (unlink(path) != 0 && errno != ENOENT) return cannot_remove(path);
    }
    return remove_checkpoints(folder);
}

void cli_folder_abandon(cli_folder *folder) {
    char path[CLI_PATH_BYTES];
    if (!folder->lock) return;
    (void)cli_folder_remove_run(folder);
    if (folder->is_new) {
        cli_folder_path(path, folder, "lock");
        (void)unlink(path);
        (void)rmdir(folder->path);
    }
    cli_folder_close(folder);
}
