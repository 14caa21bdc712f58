/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenMP runtime under oneDNN. */
#ifndef LEATI_BACKENDS_ONEDNN_OPENMP_H
#define LEATI_BACKENDS_ONEDNN_OPENMP_H

/* oneDNN's thread count is the OpenMP runtime's: set around creation and execution, to one value for both.  Returns what
 * leave puts back. */
int leati_openmp_enter(int threads);
void leati_openmp_leave(int before);

/* From now on OpenMP's threads sleep soon after a parallel region.  GNU's would spin for 3 ms, on a core that a worker or
 * the pool of the other kernels (base/threads/thread_pool.h) wants: a step of an LSTM takes half as long again. */
void leati_openmp_sleep_soon(void);

#endif
