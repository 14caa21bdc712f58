/* SPDX-License-Identifier: Apache-2.0 */
/* The tuning cache: the fastest kernel for each machine and task, in memory and in a file for later processes.  Errors
 * in reading or writing the file are ignored, because the kernels can be measured again.  Externally synchronised;
 * several processes may use the same file at the same time. */
#ifndef LEATI_ENGINE_PLAN_TUNING_CACHE_H
#define LEATI_ENGINE_PLAN_TUNING_CACHE_H

#include "engine/backend.h"

/* The largest size of a key or a name in the file, with the NUL. */
#define LEATI_TUNED_NAME_BYTES 320

typedef struct leati_tuned_kernel {
    char implementation[64]; /* leati_kernel.implementation */
    int threads;             /* threads of the fastest task; 0: the kernel that is chosen without measuring */
} leati_tuned_kernel;

typedef struct leati_tuning_cache leati_tuning_cache;

/* Reads the file: $LEAT_CACHE_DIR/kernels (no file if the variable is empty), $XDG_CACHE_HOME/leat/kernels, or
 * ~/.cache/leat/kernels.  Returns NULL if memory is lacking. */
leati_tuning_cache *leati_tuning_cache_open(const leati_backend *const *backends);
void leati_tuning_cache_close(leati_tuning_cache **choices);

/* Returns the entry of a key, or NULL.  Keys contain neither tabs nor newlines. */
const leati_tuned_kernel *leati_tuning_cache_find(const leati_tuning_cache *choices, const char *key);
/* Adds or replaces an entry; does nothing if memory is lacking. */
void leati_tuning_cache_add(leati_tuning_cache *choices, const char *key, const leati_tuned_kernel *choice);

/* Writes new entries to the file, if there is one.  The file keeps the newest 2000 entries of all machines. */
void leati_tuning_cache_save(leati_tuning_cache *choices);

#endif
