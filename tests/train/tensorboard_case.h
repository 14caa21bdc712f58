/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of event files, and fits that write to it. */
#ifndef LEAT_TESTS_TRAIN_TENSORBOARD_CASE_H
#define LEAT_TESTS_TRAIN_TENSORBOARD_CASE_H

#include "leat/train.h"
#include "train/event_reader.h"

extern char log_folder[64];

/* Set-up and teardown of a test: create and remove the folder. */
int make_log_folder(void **state);
int remove_log_folder(void **state);
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_log_folder, remove_log_folder)

/* Gives the path of file number `index` of a run, in the order of names.  Returns the number of files. */
int find_file(const char *run, int index, char path[512]);

/* Reads file number `index` of a run.  The list is valid until three other lists were read. */
event_list *read_run(const char *run, int index);

/* Creates the callback for the folder.  options NULL: the defaults. */
leat_callback make_tensorboard(const leat_tensorboard_options *options);

/* Trains a classifier with validation on 40 samples in 5 batches. */
leat_status train_watched(leat_model *model, leat_callback *callback, int64_t epochs, leat_history **history,
                          leat_error *err);
void train_and_close(const leat_tensorboard_options *options, int64_t epochs);

#endif
