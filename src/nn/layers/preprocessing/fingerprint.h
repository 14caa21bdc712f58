/* SPDX-License-Identifier: Apache-2.0 */
/* The hash functions of TensorFlow that Keras's preprocessing layers use. */
#ifndef LEATI_NN_LAYERS_PREPROCESSING_FINGERPRINT_H
#define LEATI_NN_LAYERS_PREPROCESSING_FINGERPRINT_H

#include <stdint.h>

/* Hashes the decimal text of a number.  key: two numbers, for SipHash-2-4; NULL: FarmHash's Fingerprint64.
 * Sources: Pike and Alakuijala, FarmHash; Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012. */
uint64_t leati_fingerprint(int64_t number, const uint64_t *key);

/* Combines two fingerprints, as TensorFlow's FingerprintCat64 does. */
uint64_t leati_fingerprint_join(uint64_t first, uint64_t second);

#endif
