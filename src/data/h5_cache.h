/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of HDF5's chunked datasets that are larger than memory: the chunks that were used last are kept unpacked, up
 * to a limit of bytes for all datasets of a cache together.  Any number of threads may read.  A forked process has the
 * chunks of its parent, and from then on chunks of its own. */
#ifndef LEATI_DATA_H5_CACHE_H
#define LEATI_DATA_H5_CACHE_H

#include "data/array.h"
#include "h5/h5.h"

typedef struct leati_chunk_cache leati_chunk_cache;

/* Makes a cache that keeps at most `limit` bytes; chunks that are being read come on top if nothing can be given up.
 * Errors: LEAT_ENOMEM. */
leat_status leati_chunk_cache_create(leati_chunk_cache **out, size_t limit, leat_error *err);
void leati_chunk_cache_destroy(leati_chunk_cache **cache);

/* Adds a dataset, which the cache owns from then on, also after a failure.  *reader reads its rows until the cache is
 * destroyed.  Errors: LEAT_ENOMEM. */
leat_status leati_chunk_cache_add(leati_chunk_cache *cache, leati_h5_chunks *chunks,
                                  leati_array_reader *reader, leat_error *err);

#endif
