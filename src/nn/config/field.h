/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations as tables: each key of a Keras config is one row, read from JSON, checked, given its default and
 * written back by the same row.  Layers, optimizers, initializers, regularizers and constraints all use it. */
#ifndef LEATI_NN_CONFIG_FIELD_H
#define LEATI_NN_CONFIG_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "leat/error.h"
#include "leat/model.h"
#include "leat/tensor.h"

/* A list of whole numbers: kernel_size, strides, a target shape.  -1 stands for null or "to be found"; a count of -1 is
 * null itself. */
typedef struct leati_ints {
    int32_t count;
    bool number; /* NUMBERS: one number, given without a list */
    int64_t values[LEAT_MAX_RANK];
} leati_ints;

/* A number, or a list of them; without values it is null.  A list may be empty where null is the default. */
#define LEATI_MAX_REALS 65536
typedef struct leati_reals {
    int32_t count;
    bool number;    /* given without a list */
    double *values; /* owned: leati_fields_fini */
} leati_reals;

#define LEATI_FIELD_TEXT_BYTES 64

typedef enum leati_field_kind {
    LEATI_FIELD_INT,            /* int64_t */
    LEATI_FIELD_OPTIONAL_INT,   /* int64_t; null is INT64_MIN */
    LEATI_FIELD_FLOAT,          /* double */
    LEATI_FIELD_OPTIONAL_FLOAT, /* double; null is NAN */
    LEATI_FIELD_BOOL,           /* bool */
    LEATI_FIELD_CHOICE,         /* int32_t: place in `choices`; whatever the case, null is the default */
    LEATI_FIELD_TEXT,           /* char[LEATI_FIELD_TEXT_BYTES]; null, where it is the default, is "" */
    LEATI_FIELD_TUPLE, /* leati_ints of `arity` numbers; a single number is repeated; null where it is the default */
    LEATI_FIELD_PAIRS, /* leati_ints of 2 * arity numbers: n, (n, n) or ((n, n), (n, n)) */
    LEATI_FIELD_LIST, /* leati_ints of any count; a single number is a list of one; null elements are -1, null
                                itself where it is the default */
    LEATI_FIELD_NUMBERS,     /* as LIST; a number without a list is written so */
    LEATI_FIELD_REALS,       /* leati_reals; null where it is the default */
    LEATI_FIELD_ACTIVATION,  /* leati_activation (nn/config/activation.h) */
    LEATI_FIELD_INITIALIZER, /* leati_initializer * (nn/initializers/initializer.h); NULL is null */
    LEATI_FIELD_REGULARIZER, /* leati_regularizer (nn/config/regularizer.h); kind none is null */
    LEATI_FIELD_CONSTRAINT,  /* leati_constraint (nn/config/constraint.h); kind none is null */
    LEATI_FIELD_LAYER,       /* leati_layer * (nn/layers/rnn/wrapping.h); NULL is null */
    LEATI_FIELD_LAYERS,      /* leati_layers (nn/layers/rnn/wrapping.h) */
    LEATI_FIELD_JSON         /* json_t *, kept as it is; NULL is null */
} leati_field_kind;

typedef struct leati_field {
    const char *key;
    leati_field_kind kind;
    int32_t arity;      /* TUPLE, PAIRS */
    size_t offset;      /* of the member in the configuration's struct */
    const char *preset; /* the default, as JSON text: "\"valid\"", "[1, 1]"; NULL: the key is required */
    const char *const *choices; /* CHOICE: names, NULL-terminated */
    bool nullable;              /* CHOICE: null is one more, behind the names, and not the default */
    double minimum;             /* INT, FLOAT, TUPLE...: smallest value allowed where `limited` */
    bool limited;
    bool reshapes; /* ACTIVATION: one that changes the shape will do */
    bool hidden;   /* read, but not written (a legacy key) */
    bool later;    /* a key that Keras 2.3.1 does not have: written only where its value is not the default */
} leati_field;

/* Reads every row of `fields` (ended by key NULL) from a JSON object into *config, which is zeroed before.  Keys of the
 * object that no row knows are LEAT_ENOTSUP unless named in `ignored` (NULL-terminated, may be NULL).
 * Errors name the key, what was expected and what was found.  After failure: leati_fields_fini has been called. */
leat_status leati_fields_read(const leati_field *fields, const char *const *ignored, const json_t *object,
                              void *config, leat_error *err);
/* The same where rows may be layers, of which some are registered (NULL: none). */
leat_status leati_fields_read_with(const leati_field *fields, const char *const *ignored,
                                   const json_t *object, const leat_registry *registry, void *config,
                                   leat_error *err);

/* Adds every row that is to be written to `object`, in the table's order. */
leat_status leati_fields_write(const leati_field *fields, const void *config, json_t *object,
                               leat_error *err);

/* Frees what the rows own. */
void leati_fields_fini(const leati_field *fields, void *config);

#endif
