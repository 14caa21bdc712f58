/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of a model for TensorBoard: a node for each call of a layer.  Room: train. */
#ifndef LEATI_TRAIN_TENSORBOARD_GRAPH_H
#define LEATI_TRAIN_TENSORBOARD_GRAPH_H

#include "leat/model.h"
#include "train/callbacks/tensorboard/event_file.h"

/* Writes the model as a GraphDef.  A node has the name and the class of its layer, and as attributes the layer's
 * configuration, number of parameters, `trainable`, and the shapes of its outputs.  A layer that is called several
 * times has a node for each call: "dense_1/call_0", "dense_1/call_1".  The layers of a nested model are in its first
 * call: "encoder/dense_1".  Errors: those of leati_event_end and of leati_layer_config. */
leat_status leati_event_graph(leati_event_file *file, const leat_model *model, leat_error *err);

#endif
