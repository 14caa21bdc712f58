/* SPDX-License-Identifier: Apache-2.0 */
/* keras.initializers: random or constant first values of weights.  The descriptor of a type has its configuration as
 * a table of fields.  A layer may define an initializer of its own that has no name in configurations (an LSTM's
 * bias). */
#ifndef LEATI_NN_INITIALIZERS_INITIALIZER_H
#define LEATI_NN_INITIALIZERS_INITIALIZER_H

#include <stdint.h>

#include <jansson.h>

#include "leat/error.h"
#include "leat/rng.h"
#include "nn/config/field.h"
#include "nn/parts/part.h"

typedef struct leati_initializer_type {
    const char *class_name;   /* name in files: several types are written as "VarianceScaling" */
    const char *const *names; /* names that are read, NULL-terminated */
    const char *preset;       /* JSON: defaults that differ from those of the fields; NULL: none */
    size_t config_bytes;
    const leati_field *fields; /* NULL: no configuration */
    size_t seed_offset;        /* in the configuration, of an OPTIONAL_INT; SIZE_MAX: there is no seed */
    /* Checks what a field cannot say; may be NULL. */
    leat_status (*check)(void *config, leat_error *err);
    /* Fills out, row-major, with a weight of the given shape (all dimensions are known). */
    leat_status (*draw)(const void *config, int rank, const int64_t *dims, leat_rng *rng, float *out,
                        leat_error *err);
} leati_initializer_type;

typedef struct leati_initializer {
    const leati_initializer_type *type; /* of a custom initializer: no fields */
    void *config;                       /* type->config_bytes, laid out by type->fields */
    leati_part_object *object;          /* a custom initializer; NULL: one of leat's */
    int64_t seed;                       /* of a custom initializer; INT64_MIN: null */
} leati_initializer;

/* The initializers of weights that have no initializer in the configuration. */
extern const leati_initializer leati_zeros;
extern const leati_initializer leati_ones;

/* Reads a name ("glorot_uniform", "zeros"), {"class_name": ..., "config": ...}, or null, which gives NULL.
 * `parts` has the custom initializers.
 * Errors: LEAT_ENOTFOUND with the nearest known name; errors of leati_fields_read. */
leat_status leati_initializer_read_with(leati_initializer **out, const json_t *value, const leati_part *parts,
                                        leat_error *err);
/* Like leati_initializer_read_with, without custom initializers. */
static inline leat_status leati_initializer_read(leati_initializer **out, const json_t *value,
                                                 leat_error *err) {
    return leati_initializer_read_with(out, value, NULL, err);
}

/* Writes {"class_name": ..., "config": ...} as Keras 2.3.1 does (new reference); null for NULL. */
leat_status leati_initializer_write(const leati_initializer *initializer, json_t **out, leat_error *err);
void leati_initializer_destroy(leati_initializer **initializer);

/* Draws a weight.  `stream` identifies the weight.  A seed in the configuration replaces (seed, stream), so that two
 * weights with the same seed are equal, as in Keras.
 * Errors: LEAT_ESHAPE a shape that is not supported (Identity, Orthogonal); LEAT_ENOMEM. */
leat_status leati_initializer_draw(const leati_initializer *initializer, int rank, const int64_t *dims,
                                   uint64_t seed, uint64_t stream, float *out, leat_error *err);

/* For nn/initializers/custom.c: reads and writes a custom initializer, and draws a weight with it. */
leat_status leati_custom_initializer_read(leati_initializer *out, const leati_part *part,
                                          const leati_object *object, leat_error *err);
leat_status leati_custom_initializer_write(const leati_initializer *initializer, json_t **out,
                                           leat_error *err);
leat_status leati_custom_initializer_draw(const leati_initializer *initializer, int rank, const int64_t *dims,
                                          leat_rng *rng, float *out, leat_error *err);

/* The kind of a field whose member is a leati_initializer *; null is NULL. */
#define LEATI_FIELD_INITIALIZER (&leati_field_initializer)
extern const leati_field_kind leati_field_initializer;

#endif
