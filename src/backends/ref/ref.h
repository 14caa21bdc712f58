/* SPDX-License-Identifier: Apache-2.0 */
/* The ref backend: every op in plain C, in one thread, clear rather than fast.  The other backends are compared
 * with it, sanitizers run it, and it serves the tasks that no other backend supports.  There is one file per family
 * of ops; each op has a prepare function leati_ref_<op>. */
#ifndef LEATI_BACKENDS_REF_REF_H
#define LEATI_BACKENDS_REF_REF_H

#include "engine/backend.h"

extern const leati_backend leati_backend_ref;

/* The ref backend serves all ops. */
#define LEATI_REF_DECLARED(upper, lower)                                                                     \
    leat_status leati_ref_##lower(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err);
LEATI_OP_LIST(LEATI_REF_DECLARED)
#undef LEATI_REF_DECLARED

/* The state of a ref kernel: a copy of its task. */
typedef struct leati_ref {
    leati_attrs attrs;
    int input_count, output_count;
    uint32_t unused;
    size_t first_bytes; /* of the first input */
    leati_desc descs[]; /* inputs, then outputs, in the order of args */
} leati_ref;

typedef leat_status (*leati_ref_run)(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                     leat_error *err);

/* Prepares an op that needs no other state than a copy of the task, and runs `run`. */
leat_status leati_ref_accept(const leati_task *task, leati_kernel *kernel, leati_ref_run run,
                             leat_error *err);

/* For a kernel: its copy of the task, and the descriptors of its inputs and outputs. */
static inline const leati_ref *leati_ref_of(const leati_kernel *kernel) {
    return kernel->state;
}
static inline const leati_desc *leati_ref_in(const leati_ref *ref, int i) {
    return &ref->descs[i];
}
static inline const leati_desc *leati_ref_out(const leati_ref *ref, int i) {
    return &ref->descs[ref->input_count + i];
}

/* Defines leati_ref_<op>(), which accepts every task and runs `run_function`. */
#define LEATI_REF_ACCEPTS(op, run_function)                                                                  \
    leat_status leati_ref_##op(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {   \
        (void)why;                                                                                           \
        return leati_ref_accept(task, kernel, run_function, err);                                            \
    }

#endif
