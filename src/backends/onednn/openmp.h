/* SPDX-License-Identifier: Apache-2.0 */
/* The number of threads and the waiting of the OpenMP runtime that oneDNN uses. */
#ifndef LEATI_BACKENDS_ONEDNN_OPENMP_H
#define LEATI_BACKENDS_ONEDNN_OPENMP_H

/* oneDNN takes its thread count from the OpenMP runtime.  Primitives must be created and executed with the same
 * count, so leat sets it around both, for the calling thread alone.  Returns the previous count, which
 * leati_openmp_leave() restores. */
int leati_openmp_enter(int threads);
void leati_openmp_leave(int before);

/* Makes OpenMP's threads sleep soon after a parallel region, from now on.  GNU's runtime would let them spin for 3
 * ms, on a core that a worker or leat's own thread pool (base/threads/thread_pool.h) needs: a step of an LSTM then
 * takes half as long again. */
void leati_openmp_sleep_soon(void);

#endif
