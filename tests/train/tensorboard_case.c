/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of event files, and fits that write to it. */
#define _XOPEN_SOURCE 700 /* nftw, alphasort */
#include "train/tensorboard_case.h"

#include "cmocka_all.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/support.h"

char log_folder[64];

int make_log_folder(void **state) {
    (void)state;
    return mkdtemp(strcpy(log_folder, "/tmp/leat-tensorboard-XXXXXX")) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at) {
    (void)info, (void)kind, (void)at;
    return remove(path);
}

int remove_log_folder(void **state) {
    (void)state;
    return nftw(log_folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

int find_file(const char *run, int index, char path[512]) {
    char in[128];
    struct dirent **entries = NULL;
    int found = 0;
    snprintf(in, sizeof in, "%s/%s", log_folder, run);
    int count = scandir(in, &entries, NULL, alphasort);
    for (int i = 0; i < count; ++i) {
        if (entries[i]->d_name[0] != '.' && found++ == index)
            snprintf(path, 512, "%s/%s", in, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return found;
}

event_list *read_run(const char *run, int index) {
    static event_list lists[4];
    static int next;
    char path[512] = "";
    event_list *list = &lists[next++ % 4];
    free_events(list);
    assert_true(find_file(run, index, path) > index);
    read_events(list, path);
    return list;
}

leat_callback make_tensorboard(const leat_tensorboard_options *options) {
    leat_error err = {0};
    leat_callback out;
    leat_tensorboard_options all = options ? *options : leat_tensorboard_options_default();
    all.log_dir = log_folder;
    expect_ok(leat_tensorboard_create(&out, sizeof out, &all, &err), &err);
    return out;
}

leat_status train_watched(leat_model *model, leat_callback *callback, int64_t epochs, leat_history **history,
                          leat_error *err) {
    clusters data = clusters_of(40, 8), held_out = clusters_of(16, 8);
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
    leat_fit_options options = quiet_fit_with(epochs, &callback, 1);
    options.validation = &validation;
    return leat_model_fit_generator(model, &sequence, &options, history, err);
}

void train_and_close(const leat_tensorboard_options *options, int64_t epochs) {
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    leat_callback callback = make_tensorboard(options);
    expect_ok(train_watched(model, &callback, epochs, NULL, &err), &err);
    leat_callback_destroy(&callback);
    leat_model_destroy(&model);
}
