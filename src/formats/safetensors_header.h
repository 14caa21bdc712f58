/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a safetensors file: what tensors the file has, and where. */
#ifndef LEATI_FORMATS_SAFETENSORS_HEADER_H
#define LEATI_FORMATS_SAFETENSORS_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "leat/error.h"
#include "leat/tensor.h"

/* The bytes before the header: its length, 64 bits, little-endian. */
enum { LEATI_SAFETENSORS_LENGTH_BYTES = 8 };

typedef struct leati_stored_tensor {
    const char *name, *type; /* borrowed from the JSON; type: "F32" */
    leat_dtype dtype;        /* of a type that weights can be read from; LEATI_BF16, too */
    bool readable;           /* weights can be read from the type */
    int32_t rank;            /* -1: above LEAT_MAX_RANK */
    int64_t shape[LEAT_MAX_RANK];
    const unsigned char *data; /* of any alignment */
    size_t begin, end;         /* in the bytes behind the header */
} leati_stored_tensor;

typedef struct leati_safetensors {
    json_t *json;
    size_t count;
    leati_stored_tensor *tensors; /* in the order of their data */
} leati_safetensors;

/* Parses and checks the header; the data are borrowed.  The tensors must fill the bytes behind the header without gaps
 * and must not overlap, as in Python's safetensors.  Errors: LEAT_EFORMAT; LEAT_ENOMEM. */
leat_status leati_safetensors_parse(leati_safetensors *out, const unsigned char *data, size_t bytes,
                                    leat_error *err);
void leati_safetensors_fini(leati_safetensors *file);

/* Returns the tensor of that name; NULL if there is none. */
const leati_stored_tensor *leati_safetensors_find(const leati_safetensors *file, const char *name);

#endif
