/* SPDX-License-Identifier: Apache-2.0 */
/* Fork handlers.  fork() itself calls these functions (pthread_atfork), so that a C program does not need to call
 * them.  They are for host languages that create processes in another way (clone, _Fork), or that have fork hooks
 * of their own, such as Python's os.register_at_fork.  It is harmless if they are called in addition to fork()'s
 * handlers. */
#ifndef LEAT_FORK_H
#define LEAT_FORK_H

#include "leat/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Prepares for a fork.  Call it in the thread that is about to fork.  It ends the idle OpenMP threads of this
 *  thread, since a child would inherit OpenMP's list of these threads but not the threads themselves.  (The next
 *  parallel region starts new threads; their threadprivate variables are lost.) Then it waits until no other
 *  thread is inside a section that must not be interrupted: a call of HDF5, the creation of a oneDNN primitive,
 *  the transfer of published weights to a predictor.  No thread can enter such a section until
 *  leat_after_fork_parent.  Calls can be nested.  Threads: any. */
LEAT_API void leat_before_fork(void);

/** Ends the preparation.  Call it in the parent after the fork, even if the fork failed, in the thread that called
 *  leat_before_fork.  Without such a call before, it does nothing.  Threads: any. */
LEAT_API void leat_after_fork_parent(void);

/** Makes leat usable in the child.  Call it in the child.  Afterwards models and predictors of the parent start
 *  compute threads of the child when they are next used, and functions of a feed that the parent opened return
 *  LEAT_EINVAL.  A second call in the same child does nothing, and the call is allowed without leat_before_fork.
 *  The child must not use a feed, a model or a predictor that another thread of the parent was using at the fork.
 *  Threads: any. */
LEAT_API void leat_after_fork_child(void);

#ifdef __cplusplus
}
#endif
#endif
