/* SPDX-License-Identifier: Apache-2.0 */
/* The fixed tree of sums.  Room: train. */
#include "train/parallel/tree.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

int leati_first_part(int rank, int size, int parts) {
    return (int)((int64_t)rank * parts / size);
}

/* Returns the rank that has a node: that of the node's first leaf. */
static int owner_of(const leati_tree *tree, int level, int index) {
    const int size = tree->dist->size, leaf = index << level;
    int rank = 0;
    while (leati_first_part(rank + 1, size, LEATI_TREE_LEAVES) <= leaf) ++rank;
    return rank;
}

static float *take(leati_tree *tree) {
    if (tree->spares > 0) return tree->spare[--tree->spares];
    return leati_calloc_aligned(tree->count * sizeof(float));
}

static void give_back(leati_tree *tree, float **node) {
    if (*node) tree->spare[tree->spares++] = *node;
    *node = NULL;
}

static void give_all_back(leati_tree *tree) {
    for (int level = 0; level < LEATI_TREE_LEVELS; ++level)
        for (int i = 0; i < LEATI_TREE_LEAVES; ++i) give_back(tree, &tree->nodes[level][i]);
}

void leati_tree_begin(leati_tree *tree, leat_dist *dist, size_t count,
                      const bool present[LEATI_TREE_LEAVES]) {
    give_all_back(tree);
    if (tree->count != count)
        while (tree->spares > 0) leati_free(tree->spare[--tree->spares]);
    tree->dist = dist;
    tree->count = count;
    for (int i = 0; i < LEATI_TREE_LEAVES; ++i) tree->present[0][i] = present[i];
    for (int level = 1; level < LEATI_TREE_LEVELS; ++level)
        for (int i = 0; i < LEATI_TREE_LEAVES >> level; ++i)
            tree->present[level][i] = tree->present[level - 1][2 * i] || tree->present[level - 1][2 * i + 1];
}

float *leati_tree_leaf(leati_tree *tree, int leaf) {
    return tree->nodes[0][leaf] = take(tree);
}

/* Makes the parent of two nodes of this rank, of which one may not exist anywhere. */
static void join(leati_tree *tree, int level, int parent) {
    float **left = &tree->nodes[level][2 * parent], **right = &tree->nodes[level][2 * parent + 1];
    float *sum = *left ? *left : *right;
    if (*left && *right) {
        const float *added = *right;
        for (size_t i = 0; i < tree->count; ++i) sum[i] += added[i];
        give_back(tree, right);
    }
    *left = *right = NULL;
    tree->nodes[level + 1][parent] = sum;
}

void leati_tree_add(leati_tree *tree, int leaf) {
    for (int level = 0; level + 1 < LEATI_TREE_LEVELS; ++level, leaf /= 2) {
        if (leaf % 2 == 0 || !tree->nodes[level][leaf] || !tree->nodes[level][leaf - 1]) return;
        join(tree, level, leaf / 2);
    }
}

/* Brings the right child to the rank of the left one. */
static leat_status bring(leati_tree *tree, int level, int right, leat_error *err) {
    const int me = tree->dist->rank, from = owner_of(tree, level, right),
              to = owner_of(tree, level, right - 1);
    const size_t bytes = tree->count * sizeof(float);
    float **node = &tree->nodes[level][right];
    if (!tree->present[level][right] || from == to || (me != from && me != to)) return LEAT_OK;
    if (me == from) {
        LEATI_TRY(leati_dist_send(tree->dist, *node, bytes, to, err));
        give_back(tree, node);
        return LEAT_OK;
    }
    *node = take(tree);
    if (!*node) return leati_fail_memory(err, bytes, "a sum of gradients");
    return leati_dist_receive(tree->dist, *node, bytes, from, err);
}

leat_status leati_tree_finish(leati_tree *tree, float **sum, leat_error *err) {
    for (int level = 0; level + 1 < LEATI_TREE_LEVELS; ++level)
        for (int i = 0; i < LEATI_TREE_LEAVES >> (level + 1); ++i) {
            if (!tree->present[level + 1][i] || tree->nodes[level + 1][i]) continue;
            LEATI_TRY(bring(tree, level, 2 * i + 1, err));
            if (owner_of(tree, level + 1, i) == tree->dist->rank) join(tree, level, i);
        }
    *sum = tree->nodes[LEATI_TREE_LEVELS - 1][0];
    return LEAT_OK;
}

void leati_tree_fini(leati_tree *tree) {
    give_all_back(tree);
    while (tree->spares > 0) leati_free(tree->spare[--tree->spares]);
}
