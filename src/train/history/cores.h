/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how much core time all processes used.  This shows if `get` computed, or waited for something else such
 * as a disk.  Room: train. */
#ifndef LEATI_TRAIN_HISTORY_CORES_H
#define LEATI_TRAIN_HISTORY_CORES_H

#include <stdbool.h>
#include <stdint.h>

/* Gets the core time that all processes have used since the machine started, on the cores that this process may
 * run on, with a resolution of about 10 ms per core.  Returns false if the system does not provide the figure. */
bool leati_cores_used_ns(int64_t *out);

#endif
