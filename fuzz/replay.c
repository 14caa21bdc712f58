/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target on all files of the given folders, in any build, so that the corpus is a regression test. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

static int replay(const char *path) {
    struct stat about;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &about) != 0) {
        perror(path);
        if (file) fclose(file);
        return 1;
    }
    size_t size = (size_t)about.st_size;
    uint8_t *data = malloc(size ? size : 1); /* no spare bytes: a sanitizer detects reads beyond the end */
    int failed = !data || fread(data, 1, size, file) != size;
    fclose(file);
    if (failed)
        fprintf(stderr, "%s: cannot be read\n", path);
    else
        failed = LLVMFuzzerTestOneInput(data, size) != 0;
    free(data);
    return failed;
}

/* Returns the number of files, or -1 if a file fails. */
static int replay_folder(const char *folder) {
    int count = 0;
    DIR *directory = opendir(folder);
    if (!directory) {
        perror(folder);
        return -1;
    }
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[4096];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (replay(path) != 0) {
            closedir(directory);
            return -1;
        }
        ++count;
    }
    closedir(directory);
    return count;
}

int main(int argc, char **argv) {
    int total = 0;
    for (int i = 1; i < argc; ++i) {
        int count = replay_folder(argv[i]);
        if (count < 0) return 1;
        total += count;
    }
    printf("%d files\n", total);
    return total > 0 ? 0 : 1; /* an empty corpus tests nothing */
}
