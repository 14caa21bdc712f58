/* SPDX-License-Identifier: Apache-2.0 */
/* A mode of the CPU in which denormal numbers (below 1.2e-38 in float32) count as 0, as they do in TensorFlow.  Some
 * CPUs take a hundred times as long to compute with a denormal number, and a network that has learnt its data
 * produces thousands of them.  The mode belongs to the calling thread; threads that it starts inherit the mode. */
#ifndef LEATI_BASE_OS_DENORMALS_H
#define LEATI_BASE_OS_DENORMALS_H

#include <stdint.h>

#if defined(__x86_64__)

#include <xmmintrin.h>

typedef uint32_t leati_float_mode;

static inline leati_float_mode leati_get_float_mode(void) {
    return _mm_getcsr();
}

static inline void leati_set_float_mode(leati_float_mode mode) {
    _mm_setcsr(mode);
}

#define LEATI_FLUSHING 0x8040u /* MXCSR: results (FTZ) and operands (DAZ) */

#elif defined(__aarch64__)

typedef uint64_t leati_float_mode;

static inline leati_float_mode leati_get_float_mode(void) {
    leati_float_mode mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}

static inline void leati_set_float_mode(leati_float_mode mode) {
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}

#define LEATI_FLUSHING ((leati_float_mode)1 << 24) /* FPCR: FZ */

#else /* other CPUs: denormal numbers are not flushed */

typedef uint32_t leati_float_mode;

static inline leati_float_mode leati_get_float_mode(void) {
    return 0;
}

static inline void leati_set_float_mode(leati_float_mode mode) {
    (void)mode;
}

#define LEATI_FLUSHING 0u

#endif

/* Turns the mode on for the calling thread.  Returns the previous mode, for leati_set_float_mode to restore. */
static inline leati_float_mode leati_flush_denormals(void) {
    leati_float_mode before = leati_get_float_mode();
    if ((before & LEATI_FLUSHING) != LEATI_FLUSHING) leati_set_float_mode(before | LEATI_FLUSHING);
    return before;
}

#endif
