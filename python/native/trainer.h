/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the module leat._trainer share: memory that Python sees, data, models and predictors. */
#ifndef LEAT_PYTHON_TRAINER_H
#define LEAT_PYTHON_TRAINER_H

#include "native.h"

#include <stdatomic.h>

#include "leat/leat.h"

/* ---- memory (arrays.c) ---- */

/* Returns a new object that exports the memory of a tensor as a buffer.  owner: kept alive by it; may be NULL.
 * release(context) is called, without the interpreter's lock being needed, when the object dies; may be NULL. */
PyObject *memory_new(const leat_tensor *tensor, PyObject *owner, void (*release)(void *context),
                     void *context);

/* Returns a new memory object with a copy of the tensor. */
PyObject *memory_copy(const leat_tensor *tensor);

/* Gets the buffer of an object, and describes it as a tensor with strides.  Returns -1 with an exception. */
typedef struct array_view {
    Py_buffer buffer;
    leat_tensor tensor;
    int64_t strides[LEAT_MAX_RANK]; /* bytes */
    bool contiguous;
} array_view;

int array_open(array_view *out, PyObject *array);
void array_close(array_view *view);

/* Returns the tuple of a tensor's dimensions; -1 is None. */
PyObject *shape_tuple(const leat_tensor *tensor);

/* The arrays of a call: inputs, targets and sample weights, each a list of (name, array). */
typedef struct array_set {
    array_view *views;
    leat_array *items;
    int count;
    leat_arrays arrays;
} array_set;

int array_set_open(array_set *out, PyObject *inputs, PyObject *targets, PyObject *weights);
void array_set_close(array_set *set);

/* ---- data (data.c) ---- */

enum { KEPT_BATCHES = 3 };

/* Batches that a thread takes ahead (ahead.c). */
typedef struct ahead ahead;

/* The data of a fit, an evaluation, a prediction or a feed. */
typedef struct data_set {
    PyObject ob_base;
    leat_sequence sequence; /* zeroed: closed */
    array_set arrays;       /* of data that is arrays */
    /* Of data that Python makes: next(index) returns the arrays of a batch, or None; length() the batches of a pass.
     * `next` is called on the thread of the call or, with `ahead`, on the thread that calls run_ahead(). */
    PyObject *next, *length;
    ahead *ahead;     /* NULL: none */
    array_view *kept; /* the arrays of the last batches: KEPT_BATCHES times the tensors of a batch */
    int kept_turn;
    struct call *call; /* the call that raises the exceptions of `next` */
    atomic_int users;  /* calls and feeds that use the sequence now */
} data_set;

/* Returns the data of an argument, or NULL with an exception. */
data_set *data_of(PyObject *object);

/* Points the tensors of the batch to the arrays of a list, which *views keep.  Returns 1 with *err set, or -1 with an
 * exception. */
int take_arrays(const data_set *d, PyObject *made, array_view *views, leat_batch *batch, leat_error *err);

/* Returns the batches that are taken ahead, or NULL with an exception.  Freed with the interpreter's lock held, after
 * run_ahead() has ended. */
ahead *ahead_new(int depth, int tensors);
void ahead_free(ahead *a);

/* Gives the batch with number `index` of a pass, or the next one of a generator, to the thread of the call. */
leat_status ahead_take(data_set *d, int64_t index, leat_batch *batch, leat_error *err);

/* Returns (-1, [memory of each tensor]) of a batch of a native source.  The memory is that of the batch, which is kept;
 * if too many batches are kept, it is a copy, and *copied is set. */
PyObject *view_tensors(PyObject *from, leat_feed *feed, const leat_batch *batch, bool *copied);

/* ---- calls (training.c) ---- */

/* One long call of a model.  The thread that made it runs all hooks. */
typedef struct call {
    struct model *model;
    PyObject *error_type, *error, *error_trace; /* the exception that ends the call */
    int64_t looked_ns;                          /* when Python's signals were looked at last */
    char stop_reason[256];                      /* "": the training was not stopped */
} call;

/* Takes the exception that is set over, so that call_end raises it.  Returns LEAT_EUSER. */
leat_status call_failed(call *c, const char *where, leat_error *err);

/* ---- models (model.c) ---- */

typedef struct model {
    PyObject ob_base;
    leat_model *model;       /* NULL: closed */
    unsigned long owner;     /* the thread whose call is running */
    int depth;               /* calls of that thread */
    leat_training *training; /* during a hook */
    atomic_bool stopping;    /* stop() was called during the running call */
} model;

/* Begin and end a call of a model: another thread's call is an error.  Free-threaded interpreters guard `owner` and
 * `depth` by the model's critical section. */
int model_begin(model *m);
void model_end(model *m);

/* Methods of the model that training.c has, and functions of the module that data.c has. */
#define METHOD(name) PyObject *name(PyObject *self, PyObject *args)
METHOD(model_fit);
METHOD(model_evaluate);
METHOD(model_predict);
METHOD(model_train_on_batch);
METHOD(model_test_on_batch);
METHOD(model_predict_on_batch);
METHOD(model_publish);
METHOD(model_stop);
METHOD(arrays_data);
METHOD(source_data);
METHOD(python_data);
METHOD(data_run_ahead);
METHOD(data_stop_ahead);
#undef METHOD

extern PyType_Spec memory_spec, data_spec, model_spec, predictor_spec;
extern PyObject *memory_type, *data_type, *model_type, *predictor_type;

/* Frees an object whose type was made from a spec. */
void free_object(PyObject *self);
PyObject *allocate_object(PyObject *type);

/* Adds the types and functions of the module. */
int trainer_add(PyObject *module);
#endif
