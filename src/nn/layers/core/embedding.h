/* SPDX-License-Identifier: Apache-2.0 */
/* What Embedding and ReversibleEmbedding share. */
#ifndef LEATI_NN_LAYERS_CORE_EMBEDDING_H
#define LEATI_NN_LAYERS_CORE_EMBEDDING_H

#include "engine/graph/build.h"

/* Returns the mask of mask_zero: 1 where the index is not 0, else 0. */
leati_value leati_embedding_mask(leati_graph *g, leati_value indices);

#endif
