/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up vectors of the parts of a batch in one fixed binary tree, across the ranks, so that the sum is the same bytes
 * for any number of ranks: ((0+1)+(2+3))+((4+5)+(6+7)).  Room: train. */
#ifndef LEATI_TRAIN_PARALLEL_TREE_H
#define LEATI_TRAIN_PARALLEL_TREE_H

#include "dist/dist.h"

enum { LEATI_TREE_LEVELS = 4, LEATI_TREE_LEAVES = 8 };

typedef struct leati_tree {
    leat_dist *dist;                                    /* borrowed */
    size_t count;                                       /* floats of a vector */
    float *nodes[LEATI_TREE_LEVELS][LEATI_TREE_LEAVES]; /* that this rank has, by level and index */
    bool present[LEATI_TREE_LEVELS][LEATI_TREE_LEAVES]; /* that some rank has: a part may have no samples */
    float *spare[LEATI_TREE_LEAVES + 1];
    int spares;
} leati_tree;

/* Returns the first part of a rank; that of rank `size` is the number of parts. */
int leati_first_part(int rank, int size, int parts);

/* Begins a sum of vectors of `count` floats; present[i]: leaf i exists. */
void leati_tree_begin(leati_tree *tree, leat_dist *dist, size_t count, const bool present[LEATI_TREE_LEAVES]);
/* Returns the memory of a leaf of this rank, to be filled; NULL without memory. */
float *leati_tree_leaf(leati_tree *tree, int leaf);
/* Adds what can be added on this rank, after a leaf was filled. */
void leati_tree_add(leati_tree *tree, int leaf);
/* Adds across the ranks.  *sum is the whole sum on rank 0, NULL on other ranks, and valid until the next call of
 * leati_tree_begin.  Errors: those of the communicator; LEAT_ENOMEM. */
leat_status leati_tree_finish(leati_tree *tree, float **sum, leat_error *err);
void leati_tree_fini(leati_tree *tree);

#endif
