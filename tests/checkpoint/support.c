/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka_all.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "checkpoint/state.h"
#include "checkpoint/support.h"
#include "leat/file.h"

char folder[] = "/tmp/leat-checkpoint-XXXXXX";

void expect_ok(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

void empty_folder(void) {
    char path[512];
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') (void)remove(path);
    }
    closedir(directory);
}

void write_text(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

void fill(leati_snapshot *snapshot, int64_t steps) {
    leat_state state = {.snapshot = snapshot, .prefix = "fit/"};
    leat_error err = {0};
    expect_ok(leati_snapshot_begin(snapshot, &err), &err);
    expect_ok(leati_state_put_i64(&state, "epoch", steps / 10, &err), &err);
    expect_ok(leati_state_put_i64(&state, "step", steps % 10, &err), &err);
    expect_ok(leati_state_put_i64(&state, "steps", steps, &err), &err);
    expect_ok(leati_state_put_i64(&state, "ended", steps == 30, &err), &err);
}

void write_checkpoint(int64_t steps) {
    leati_snapshot snapshot = {0};
    leat_error err = {0};
    char *path = NULL;
    fill(&snapshot, steps);
    leati_snapshot_finish(&snapshot);
    expect_ok(leati_checkpoint_path(&path, folder, steps, &err), &err);
    expect_ok(leat_file_replace(path, snapshot.data, snapshot.bytes, &err), &err);
    leati_free(path);
    leati_snapshot_fini(&snapshot);
}

void expect_steps(const int64_t *steps, size_t count) {
    leati_checkpoint_list list;
    leat_error err = {0};
    expect_ok(leati_checkpoint_list_read(&list, folder, &err), &err);
    assert_int_equal(list.count, count);
    if (count > 0) assert_memory_equal(list.steps, steps, count * sizeof *steps);
    leati_free(list.steps);
}

int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

int remove_folder(void **state) {
    (void)state;
    (void)chmod(folder, 0700);
    empty_folder();
    return rmdir(folder);
}
