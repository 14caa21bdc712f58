/* SPDX-License-Identifier: Apache-2.0 */
/* What the extension modules leat._native and leat._trainer share: feeds for Python.  They use leat's public headers
 * alone. */
#ifndef LEAT_PYTHON_NATIVE_H
#define LEAT_PYTHON_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "leat/feed.h"

/* A free-threaded interpreter runs the code between the two macros in one thread at a time for each object, as long as
 * the code neither calls Python nor waits.  Other interpreters have their lock for that. */
#if !defined(Py_BEGIN_CRITICAL_SECTION)
#define Py_BEGIN_CRITICAL_SECTION(object) {
#define Py_END_CRITICAL_SECTION()         }
#endif

/* The first bytes of each batch in a slot: this header, and the place of each part from the header on. */
typedef struct slot_part {
    uint64_t offset, bytes;
} slot_part;

typedef struct slot_header {
    uint64_t kind; /* a number of Python's side: a batch, or an exception */
    uint64_t count;
    slot_part parts[];
} slot_header;

enum { SLOT_ALIGNMENT = 64, SLOT_MAX_PARTS = 1 << 16 };

/* The Python functions that a sequence calls.  Each may be NULL. */
typedef struct source {
    PyObject *make; /* make(numbers, key, stream): (kind, [parts]), or None for no such batch */
    PyObject *length, *samples, *end_pass;
    enum { SOURCE_INLINE, SOURCE_THREADS, SOURCE_PROCESSES } workers;
} source;

/* Sets up a sequence that calls the functions of *functions, which must outlive it.
 * by_samples: `make` receives the numbers of samples; otherwise the number of a batch. */
int source_sequence(leat_sequence *out, source *functions, bool by_samples, bool generator,
                    int64_t batch_size, int64_t most_bytes);

/* Raises the exception for an error of leat.  Returns NULL. */
PyObject *raise_error(const leat_error *err);

enum { KIND_STRUCTURE = 2 }; /* a batch whose part 0 is a structure (structure.c) */

/* Returns a new tuple (kind, [part, ...]) whose parts view the memory of the batch, or (kind, batch) for
 * KIND_STRUCTURE.  The batch in use of the feed is kept if possible, otherwise copied; *copied says which. */
PyObject *view_batch(leat_feed *feed, const leat_batch *batch, bool *copied);

/* Creates a type and adds it to the module.  out: NULL allowed; receives a further reference. */
int add_type(PyObject *module, const char *name, PyType_Spec *spec, PyObject **out);

/* Returns a batch whose arrays view the memory of a slot in which a worker makes it: a structure (structure.c). */
PyObject *view_being_made(const slot_header *header);

/* begin_in_place([structure, array, ...]): lays the batch that this thread is making out like another batch, which has
 * these parts, and returns it: its arrays view the slot, and have any content.  `make` then returns (kind, None) if it
 * has filled them. */
PyObject *begin_in_place(PyObject *module, PyObject *parts);

/* Returns a new object that views the memory of one part of a slot, and keeps the slot. */
PyObject *view_part(PyObject *owner, const slot_part *where);

/* encode_structure(batch): [structure, array, ...], or None if only a pickle can hold the batch. */
PyObject *encode_structure(PyObject *module, PyObject *batch);
/* Returns the batch in a slot; its arrays view the slot. */
PyObject *build_structure(PyObject *owner, const slot_header *header);
/* set_array_types(numpy.ndarray, {format: dtype}, torch.Tensor, torch.from_numpy); None: as before. */
PyObject *set_array_types(PyObject *module, PyObject *args);

extern PyType_Spec feed_spec, slot_spec, part_spec;
extern PyObject *slot_type, *part_type;

/* Lets parts serve as buffers.  The caller has set part_type. */
void finish_part_type(void);
/* Lets the interpreter know of forks that leat makes.  Returns 0, or an error number. */
int watch_forks(void);
/* Sets that the forks of this thread, which holds the interpreter's lock, are those of leat, or not. */
void set_leat_forks(bool on);

/* make_immortal(object): its objects are not counted any more, for CPython 3.12 and later.  Returns their number. */
PyObject *make_immortal(PyObject *module, PyObject *root);

PyObject *run_helper(PyObject *module, PyObject *args);
PyObject *run_supervisor(PyObject *module, PyObject *args);
PyObject *run_worker(PyObject *module, PyObject *args);
PyObject *open_together(PyObject *module, PyObject *args);

#endif
