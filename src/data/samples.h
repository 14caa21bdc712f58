/* SPDX-License-Identifier: Apache-2.0 */
/* What leat/source.h asks a source of records, in tar and TFRecord files, about single samples. */
#ifndef LEATI_DATA_SAMPLES_H
#define LEATI_DATA_SAMPLES_H

#include "leat/sequence.h"

/* Returns true for a sequence that reads records. */
bool leati_is_records(const leat_sequence *sequence);

/* leat_source_note_sizes for records. */
leat_status leati_records_note_sizes(const leat_sequence *sequence, int64_t *sizes, leat_error *err);

/* Returns the path of the shard that a sample of such a sequence lies in, and where its first piece begins. */
const char *leati_records_place(const leat_sequence *sequence, int64_t number, uint64_t *offset);

#endif
