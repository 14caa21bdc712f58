/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the machine on which a fit ran, for its configuration.  Room: train. */
#ifndef LEATI_TRAIN_HISTORY_MACHINE_H
#define LEATI_TRAIN_HISTORY_MACHINE_H

#include <stdbool.h>

#include <jansson.h>

/* Adds "cpu", "instruction_set", "cores", "memory_bytes" and "system" to an object; facts that the system does not
 * provide are missing.  Returns false if memory is lacking. */
bool leati_machine_add(json_t *object);

#endif
