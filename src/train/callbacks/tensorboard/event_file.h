/* SPDX-License-Identifier: Apache-2.0 */
/* Event files of TensorBoard: records with checksums, one for each event (docs/formats/tensorboard.md).  Records are
 * kept in memory and appended to the file from time to time.  Room: train. */
#ifndef LEATI_TRAIN_TENSORBOARD_EVENT_FILE_H
#define LEATI_TRAIN_TENSORBOARD_EVENT_FILE_H

#include "leat/checkpoint.h"
#include "leat/error.h"
#include "formats/protobuf/message.h"

/* A file of events.  It is created when the first event is written. */
typedef struct leati_event_file {
    char *folder;         /* "logs/train" */
    char *name;           /* name of the file in the folder; NULL until leati_event_file_name or _load */
    char *run_id;         /* a part of the name; NULL: each name is new */
    int fd;               /* -1 if the file is not open */
    leati_message buffer; /* records that are not in the file yet */
    size_t record;        /* position in the buffer where the current record begins */
    int64_t flushed_ns;   /* time of the last flush */
} leati_event_file;

/* Sets the folder, "<log_dir>/<run>", which is created together with the file, and run_id (NULL allowed).
 * Errors: LEAT_ENOMEM. */
leat_status leati_event_file_init(leati_event_file *file, const char *log_dir, const char *run,
                                  const char *run_id, leat_error *err);
/* Frees the file without writing what is in its buffer. */
void leati_event_file_fini(leati_event_file *file);

/* Chooses the name of a new file: with run_id a name of its own, which empties a file of that name, otherwise a
 * name that no file in the folder has.  Errors: LEAT_EIO, LEAT_ENOMEM. */
leat_status leati_event_file_name(leati_event_file *file, leat_error *err);

/* Begins an event, and returns the message to which the caller adds the fields of the event. */
leati_message *leati_event_begin(leati_event_file *file, int64_t step);
/* Ends the event.  Writes the buffer to the file if the buffer is large, or if the last flush is two minutes ago.
 * Errors: those of leati_event_file_flush; LEAT_ENOMEM: the event is lost. */
leat_status leati_event_end(leati_event_file *file, leat_error *err);

/* Appends the buffer to the file; if it is empty, does nothing.  After a failure the buffer is empty, too.
 * Errors: LEAT_EIO the folder or the file; LEAT_EINVAL the path is not a regular file; LEAT_ENOMEM. */
leat_status leati_event_file_flush(leati_event_file *file, leat_error *err);
/* Flushes and closes the file.  Errors: those of leati_event_file_flush. */
leat_status leati_event_file_close(leati_event_file *file, leat_error *err);

/* Flush the file and put its name and size into a state; take them from a state, so that the next event is appended
 * where the file ended then.  `key` is the name of the values: "train".
 * Errors: those of leati_event_file_flush, leat_state_put_file and leat_state_restore_file; LEAT_ENOTFOUND the
 * state has no such file. */
leat_status leati_event_file_save(leati_event_file *file, leat_state *state, const char *key,
                                  leat_error *err);
leat_status leati_event_file_load(leati_event_file *file, const leat_state *state, const char *key,
                                  leat_error *err);

#endif
