/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of a fit, an evaluation or a prediction: Python's objects as C's hooks. */
#ifndef LEAT_PYTHON_HOOKS_H
#define LEAT_PYTHON_HOOKS_H

#include "trainer.h"

/* The callbacks of one call: first the one that looks at Python's signals, then those of the caller. */
typedef struct hook_list {
    leat_callback *items;
    leat_callback **pointers;
    int count;
} hook_list;

/* callbacks: a list whose items are texts for leat_callback_from_text, tuples of a class and its arguments, or dicts of
 * functions by the hook's name:
 * set_params(params) and the hooks of LEAT_HOOK_LIST, which receive (index, logs). */
int hook_list_open(hook_list *out, call *c, PyObject *callbacks);
void hook_list_close(hook_list *list);

/* Returns a new dict. */
PyObject *logs_dict(const leat_logs *logs);

/* Returns the exception of a call that has ended as a new reference: None after success; NULL with an exception if
 * there is no memory. */
PyObject *call_exception(call *c, leat_status status, const leat_error *err);

#endif
