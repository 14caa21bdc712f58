/* SPDX-License-Identifier: Apache-2.0 */
/* What a fork of the process needs from leat.  fork() itself calls these functions (pthread_atfork), so a C program has no use
 * for them.  They are for a host runtime that makes processes in another way (clone, _Fork), or that has hooks of its own for
 * a fork, such as Python's os.register_at_fork.  Calling them beside fork()'s own handlers is harmless. */
#ifndef LEAT_FORK_H
#define LEAT_FORK_H

#include "leat/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Call in the thread that is going to fork.  Ends the idle OpenMP threads of this thread, since a child inherits the record of
 *  them and not the threads (the next parallel region starts new ones; threadprivate variables of theirs are lost); then waits
 *  until no other thread is inside a section of leat's that must not be cut in two: a call of HDF5, the making of a oneDNN
 *  primitive, the handing over of published weights.  Such a section cannot be entered until leat_after_fork_parent.
 *  Calls nest.  Threads: any. */
LEAT_API void leat_before_fork(void);

/** Call in the parent after the fork, or after a fork that failed, in the thread that called leat_before_fork.  Without such a
 *  call before it does nothing. */
LEAT_API void leat_after_fork_parent(void);

/** Call in the child.  From then on models and predictors of the parent start compute threads of the child's own when they are
 *  next used, and the functions of a feed that the parent opened return LEAT_EINVAL.  Further calls in this child do
 *  nothing, also without leat_before_fork.  A feed, a model or a predictor that another thread of the parent was using at that moment
 *  must not be used in the child. */
LEAT_API void leat_after_fork_child(void);

#ifdef __cplusplus
}
#endif
#endif
