/* SPDX-License-Identifier: Apache-2.0 */
/* A field whose value is a number or an array of numbers: nested lists as in Keras 2, or current Keras's
 * {"class_name": "__numpy__" | "__tensor__", "config": {"value": ..., "dtype": ...}}. */
#ifndef LEATI_NN_CONFIG_ARRAY_H
#define LEATI_NN_CONFIG_ARRAY_H

#include "nn/config/field.h"

typedef struct leati_value_array {
    int32_t rank; /* 0: one number */
    int64_t dims[LEAT_MAX_RANK];
    double *values; /* row-major; owned; freed by leati_fields_fini */
} leati_value_array;

/* The kind of a field whose member is a leati_value_array.  It is written as a number or as nested lists, which all
 * versions of Keras read. */
#define LEATI_FIELD_ARRAY (&leati_field_array)
extern const leati_field_kind leati_field_array;

#endif
