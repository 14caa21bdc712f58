/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and fills leat_callback structs of callers that were compiled with another version of the header.
 * Room: train. */
#ifndef LEATI_TRAIN_HOOKS_CALLBACK_H
#define LEATI_TRAIN_HOOKS_CALLBACK_H

#include "leat/callback.h"

/* Copies the caller's callback into a struct of this version.  Errors: those of leati_growing_read. */
leat_status leati_callback_read(const leat_callback *in, leat_callback *out, leat_error *err);

/* Zeroes the caller's *out of `size` bytes.  Errors: those of leati_growing_fits. */
leat_status leati_callback_begin(leat_callback *out, size_t size, leat_error *err);

/* Copies *in, a struct of this version, into the caller's *out of `size` bytes. */
void leati_callback_write(const leat_callback *in, leat_callback *out, size_t size);

#endif
