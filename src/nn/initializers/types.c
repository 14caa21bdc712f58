/* SPDX-License-Identifier: Apache-2.0 */
/* The table of initializers.  A new initializer is a descriptor in a file of this folder, a line in types.h and a
 * line here. */
#include "nn/initializers/types.h"

#include <string.h>

const leati_initializer_type *const leati_initializer_types[] = {
    &leati_initializer_zeros,
    &leati_initializer_ones,
    &leati_initializer_constant,
    &leati_initializer_random_normal,
    &leati_initializer_random_uniform,
    &leati_initializer_truncated_normal,
    &leati_initializer_variance_scaling,
    &leati_initializer_orthogonal,
    &leati_initializer_identity,
    &leati_initializer_lecun_uniform,
    &leati_initializer_lecun_normal,
    &leati_initializer_glorot_uniform,
    &leati_initializer_glorot_normal,
    &leati_initializer_he_uniform,
    &leati_initializer_he_normal,
    NULL,
};

const leati_initializer_type *leati_initializer_find(const char *name) {
    for (const leati_initializer_type *const *type = leati_initializer_types; *type; ++type)
        for (const char *const *known = (*type)->names; *known; ++known)
            if (strcmp(*known, name) == 0) return *type;
    return NULL;
}

const char *leati_initializer_name_at(int index) {
    for (const leati_initializer_type *const *type = leati_initializer_types; *type; ++type)
        for (const char *const *known = (*type)->names; *known; ++known)
            if (index-- == 0) return *known;
    return NULL;
}
