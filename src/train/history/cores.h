/* SPDX-License-Identifier: Apache-2.0 */
/* Whether cores were in use, by anyone: what tells a batch that computes from one that waits for a disk. */
#ifndef LEATI_TRAIN_HISTORY_CORES_H
#define LEATI_TRAIN_HISTORY_CORES_H

#include <stdbool.h>
#include <stdint.h>

/* Core time in use since the machine started, over the cores that this process may run on, known to some 10 ms a core.
 * False where the system does not tell. */
bool leati_cores_used_ns(int64_t *out);

#endif
