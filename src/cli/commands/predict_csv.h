/* SPDX-License-Identifier: Apache-2.0 */
/* `leat predict --output FILE.csv`: a row for each sample, with the place that it comes from.  Room: cli. */
#ifndef LEAT_CLI_COMMANDS_PREDICT_CSV_H
#define LEAT_CLI_COMMANDS_PREDICT_CSV_H

#include "leat/error.h"
#include "leat/sequence.h"
#include "leat/tensor.h"

/* Writes `count` outputs, whose first dimensions are the same number of samples, in the order of `data`.  The first
 * column, `sample`, says where a sample comes from, such as the path of its picture, or else its number from 0.  It
 * stays empty if there are fewer predictions than samples in the data, since some were then left out.
 * @param names  Of the outputs.  An output of several numbers has as many columns: NAME_0, NAME_1.
 * Errors: LEAT_ENOMEM; those of leat_file_replace. */
leat_status cli_predict_csv_write(const char *path, const leat_sequence *data, char *const *names,
                                  const leat_tensor *outputs, int count, leat_error *err);

#endif
