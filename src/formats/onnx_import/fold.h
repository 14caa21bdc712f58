/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that compute constants at import share. */
#ifndef LEATI_FORMATS_ONNX_IMPORT_FOLD_H
#define LEATI_FORMATS_ONNX_IMPORT_FOLD_H

#include "formats/onnx_import/import.h"

/* Copies an element with its size. */
void leati_fold_copy(leati_import_tensor *to, int64_t index, const leati_import_tensor *from, int64_t source);
/* Makes room for sizes of a constant's elements. */
void leati_fold_sizes(leati_import *x, leati_import_tensor *tensor);
/* Returns a constant whose element (i, j, ...) is element base + i strides[0] + j strides[1] ... of `from`. */
leati_import_tensor *leati_fold_strided(leati_import *x, const leati_import_tensor *from, int rank,
                                        const int64_t *dims, const int64_t *strides, int64_t base);
/* Writes the strides of a constant. */
void leati_fold_strides(const leati_import_tensor *tensor, int64_t strides[LEAT_MAX_RANK]);

/* Fold the node; return NULL if they cannot. */
typedef const leati_import_tensor *leati_fold(leati_import *x);
typedef struct leati_fold_operator {
    const char *name;
    leati_fold *fold;
    int detail;
} leati_fold_operator;
/* Tables that end with a NULL name: operators that move elements, and that compute numbers. */
extern const leati_fold_operator leati_fold_moves[], leati_fold_computations[];
/* The detail of the operator that is being folded. */
int leati_fold_detail(const leati_fold_operator *table, const char *name);

#endif
