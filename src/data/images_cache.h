/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of pictures that were decoded and resized, below their augmentation. */
#ifndef LEATI_DATA_IMAGES_CACHE_H
#define LEATI_DATA_IMAGES_CACHE_H

#include "data/combine/cache.h"
#include "data/images.h"

/* Opens the cache that choices->cache names: memory, memory:SIZE, or a file.  A file is used again if the pictures and
 * the masks have the same paths, sizes and times, and are decoded and resized in the same way.
 * @param[out] out  For leati_cache_close and leati_free; NULL on failure.
 * Errors: LEAT_EINVAL the size, or the file is no cache; LEAT_ENOMEM. */
leat_status leati_images_cache_open(leati_cache **out, const leati_image_choices *choices,
                                    const leati_image_list *list, const leati_image_list *masks,
                                    size_t record_bytes, leat_error *err);

#endif
