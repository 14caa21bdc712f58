/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel was fastest, by machine and task: in memory, and in a file for the next process.  The file is a cache: whatever
 * is wrong with it, or with writing it, is passed over in silence.  Externally synchronised; several processes may
 * use one file at once. */
#ifndef LEATI_ENGINE_PLAN_TUNING_CACHE_H
#define LEATI_ENGINE_PLAN_TUNING_CACHE_H

#include "engine/backend.h"

/* Of a key or a name in the file, with the NUL. */
#define LEATI_TUNED_NAME_BYTES 320

typedef struct leati_tuned_kernel {
    char implementation[64]; /* a kernel's */
    int threads;             /* that its task had; 0: what was taken without measuring */
} leati_tuned_kernel;

typedef struct leati_tuning_cache leati_tuning_cache;

/* Reads the file: $LEAT_CACHE_DIR/kernels (none where that is empty), $XDG_CACHE_HOME/leat/kernels, or
 * ~/.cache/leat/kernels.  NULL: no memory. */
leati_tuning_cache *leati_tuning_cache_open(const leati_backend *const *backends);
void leati_tuning_cache_close(leati_tuning_cache **choices);

/* Keys hold neither tabs nor ends of lines. */
const leati_tuned_kernel *leati_tuning_cache_find(const leati_tuning_cache *choices, const char *key);
/* Without memory it is not kept. */
void leati_tuning_cache_add(leati_tuning_cache *choices, const char *key, const leati_tuned_kernel *choice);

/* Adds what is new to the file, where there is one: the newest 2000 of all machines stay. */
void leati_tuning_cache_save(leati_tuning_cache *choices);

#endif
