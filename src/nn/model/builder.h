/* SPDX-License-Identifier: Apache-2.0 */
/* The builder and its nodes: for the functions of include/leat/model.h that make nodes. */
#ifndef LEATI_NN_MODEL_BUILDER_H
#define LEATI_NN_MODEL_BUILDER_H

#include "nn/model/model.h"

struct leat_node {
    leat_builder *builder;
    leati_source source;
    leat_node *next; /* next node of the builder */
};

struct leat_builder {
    leat_model *model;
    leat_node *nodes;
    const leat_registry *registry; /* borrowed; NULL: none */
    bool from_model;               /* leat_builder_create_from made the builder */
    leat_error failure;            /* the first failure; code LEAT_OK: none */
};

/* Makes a node of the builder for a tensor of its network; NULL on failure, which the builder keeps. */
leat_node *leati_builder_node(leat_builder *builder, leati_source source);

#endif
