/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the keys of Keras's configurations as tables of fields.  From its field, a key is read from JSON,
 * checked, given its default and written back; layers, optimizers, losses, metrics and initializers use this. */
#ifndef LEATI_NN_CONFIG_FIELD_H
#define LEATI_NN_CONFIG_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "leat/error.h"
#include "leat/tensor.h"

/* A list of integers: kernel_size, strides, a target shape.  An element of -1 stands for null or for a size that
 * is to be computed; a count of -1 means that the whole list is null. */
typedef struct leati_ints {
    int32_t count;
    bool number; /* NUMBERS: the configuration has one number, not a list */
    int64_t values[LEAT_MAX_RANK];
} leati_ints;

/* A number or a list of numbers.  If `values` is NULL, the key is null.  An empty list is valid only if null is
 * the default. */
#define LEATI_MAX_REALS 65536
typedef struct leati_reals {
    int32_t count;
    bool number;    /* the configuration has one number, not a list */
    double *values; /* owned; freed by leati_fields_fini */
} leati_reals;

#define LEATI_FIELD_TEXT_BYTES 64

typedef struct leati_field leati_field;

/* How the value of a key is read and written.  `member` points at the member of the configuration's struct. */
typedef struct leati_field_kind {
    /* Reads a JSON value.  `context` is what the caller of leati_fields_read_with passed, or NULL; only
     * LEATI_FIELD_LAYER and LEATI_FIELD_LAYERS use it.  Errors name the key. */
    leat_status (*read)(const leati_field *field, const json_t *value, const void *context, void *member,
                        leat_error *err);
    /* Makes a JSON value (new reference).  LEAT_ENOMEM may come without a message. */
    leat_status (*write)(const leati_field *field, const void *member, json_t **out, leat_error *err);
    /* Frees what the member owns and zeroes the member; NULL: it owns nothing. */
    void (*fini)(void *member);
} leati_field_kind;

/* The kinds that are plain values.  Other headers define LEATI_FIELD_ACTIVATION (nn/activations/activation.h),
 * LEATI_FIELD_INITIALIZER (nn/initializers/initializer.h), LEATI_FIELD_REGULARIZER
 * (nn/regularizers/regularizer.h), LEATI_FIELD_CONSTRAINT (nn/constraints/constraint.h), LEATI_FIELD_LAYER and
 * LEATI_FIELD_LAYERS (nn/layers/wrapping.h). */
#define LEATI_FIELD_INT            (&leati_field_int)            /* int64_t */
#define LEATI_FIELD_OPTIONAL_INT   (&leati_field_optional_int)   /* int64_t; null is INT64_MIN */
#define LEATI_FIELD_FLOAT          (&leati_field_float)          /* double */
#define LEATI_FIELD_OPTIONAL_FLOAT (&leati_field_optional_float) /* double; null is NAN */
#define LEATI_FIELD_BOOL           (&leati_field_bool)           /* bool */
#define LEATI_FIELD_CHOICE         (&leati_field_choice) /* int32_t: index into `choices`; null is the default */
#define LEATI_FIELD_TEXT           (&leati_field_text) /* char[LEATI_FIELD_TEXT_BYTES]; null is "" */
#define LEATI_FIELD_TUPLE          (&leati_field_tuple) /* leati_ints of `arity`; a single number is repeated */
#define LEATI_FIELD_PAIRS          (&leati_field_pairs) /* leati_ints of 2 * arity: n, (n, n) or ((n, n), (n, n)) */
#define LEATI_FIELD_LIST           (&leati_field_list) /* leati_ints of any count; a null element is -1 */
#define LEATI_FIELD_NUMBERS        (&leati_field_numbers) /* like LIST; a single number is written without a list */
#define LEATI_FIELD_REALS          (&leati_field_reals) /* leati_reals */
#define LEATI_FIELD_JSON           (&leati_field_json)  /* json_t *, owned; NULL is null */

extern const leati_field_kind leati_field_int, leati_field_optional_int, leati_field_float,
    leati_field_optional_float, leati_field_bool, leati_field_choice, leati_field_text, leati_field_tuple,
    leati_field_pairs, leati_field_list, leati_field_numbers, leati_field_reals, leati_field_json;

struct leati_field {
    const char *key;
    const leati_field_kind *kind;
    int32_t arity;      /* TUPLE, PAIRS */
    size_t offset;      /* of the member in the configuration's struct */
    const char *preset; /* the default, as JSON text: "\"valid\"", "[1, 1]"; NULL: the key is required */
    const char *const *choices; /* CHOICE: names, NULL-terminated */
    bool
        nullable; /* CHOICE: null is valid too; its index is the count of the names.  It is not the default */
    double minimum; /* INT, FLOAT, TUPLE...: the smallest valid value if `limited` */
    bool limited;
    bool reshapes; /* ACTIVATION: an activation that changes the shape is valid too */
    bool hidden;   /* read, but not written (a legacy key) */
    bool later;    /* a key that Keras 2.3.1 does not have: written only where its value is not the default */
};

/* Reads every field of the table `fields`, which ends with a NULL key, from a JSON object into *config, which must
 * be zeroed.  A key that has no field is LEAT_ENOTSUP unless its value is null or `ignored` (NULL-terminated, may be
 * NULL) lists it.
 * Errors name the key, what was expected and what was received.  On failure leati_fields_fini has been called. */
leat_status leati_fields_read(const leati_field *fields, const char *const *ignored, const json_t *object,
                              void *config, leat_error *err);
/* Like leati_fields_read, but hands `context` to every field's kind. */
leat_status leati_fields_read_with(const leati_field *fields, const char *const *ignored,
                                   const json_t *object, const void *context, void *config, leat_error *err);

/* Adds the fields to `object`, in the table's order, without those that are hidden, or `later` with their default. */
leat_status leati_fields_write(const leati_field *fields, const void *config, json_t *object,
                               leat_error *err);

/* Frees what the members of *config own. */
void leati_fields_fini(const leati_field *fields, void *config);

#endif
