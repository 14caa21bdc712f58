/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of source that a SPEC can name, and the options they take: one table, for opening, for messages and for
 * leat_source_help. */
#ifndef LEATI_DATA_KINDS_H
#define LEATI_DATA_KINDS_H

#include "data/columns.h"
#include "data/spec.h"

/* What the options say.  The lists are as written, names with commas between them; NULL: not given. */
typedef struct leati_settings {
    leati_column_options columns;
    char *inputs;
    char *targets;
    char *sample_weights;
} leati_settings;

/* Opens a source of one kind.  `spec` is parsed, `text` is what it was parsed from. */
typedef leat_status leati_kind_open(leat_sequence *out, const leati_spec *spec, const char *text,
                                    const leati_settings *settings, const leat_source_options *options,
                                    leat_error *err);

leati_kind_open leati_open_idx, leati_open_npy, leati_open_npz, leati_open_plugin;

/* Every kind: name, paths, what it is. */
#define LEATI_KIND_LIST(X)                                                                                   \
    X(idx, "INPUTS[,TARGETS]", 1, 2,                                                                         \
      "The files of MNIST, plain or .gz (unpacked once, into memory).  Pictures (N, H, W) become (H, W, "    \
      "1).")                                                                                                 \
    X(npy, "INPUTS[,TARGETS[,WEIGHTS]]", 1, 3, "NumPy arrays, one a file, mapped.")                          \
    X(npz, "FILE", 1, 1,                                                                                     \
      "Named NumPy arrays: stored ones are mapped, deflated ones unpacked once, into memory.")               \
    X(plugin, "OBJECT.so", 1, 1,                                                                             \
      "A shared object that defines leat_plugin_open (leat/plugin.h); it gets what follows the ? as it is.")

/* Every option: key, the kinds that take it, value, what it does. */
#define LEATI_OPTION_LIST(X)                                                                                 \
    X(scale, "idx npy npz", "A or A/B", "inputs * A / B, as float32")                                        \
    X(shape, "idx npy npz", "28x28x1", "the shape of one input sample")                                      \
    X(onehot, "idx npy npz", "CLASSES", "targets from labels 0 .. CLASSES-1 to rows of float32")             \
    X(inputs, "npz", "NAME[,NAME...]", "the arrays that are inputs, in the model's order; default x")        \
    X(targets, "npz", "NAME[,NAME...]", "the targets; default y, where there is one")                        \
    X(sample_weights, "npz", "NAME[,NAME...]",                                                               \
      "the sample weights; default sample_weight, where there is one")

#endif
