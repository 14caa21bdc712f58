/* SPDX-License-Identifier: Apache-2.0 */
/* B-trees of version 2, whose records are visited in order. */
#ifndef LEATI_H5_TREE2_H
#define LEATI_H5_TREE2_H

#include "h5/reader.h"

/* Receives a record; *stop = true ends the visit without an error.  Returns false on failure. */
typedef bool (*leati_h5_tree_record)(leati_h5_reader *r, const unsigned char *record, void *user, bool *stop);

/* Visits the records of the tree, which have the given type and size. */
bool leati_h5_visit_tree(leati_h5_reader *r, uint64_t address, unsigned type, size_t record_bytes,
                         leati_h5_tree_record visit, void *user);

#endif
