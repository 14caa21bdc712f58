/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the kinds of source that a SPEC can name, and their options.  The tables serve to open sources, for
 * messages and for leat_source_help. */
#ifndef LEATI_DATA_KINDS_H
#define LEATI_DATA_KINDS_H

#include "data/columns.h"
#include "data/spec.h"

/* The values of the options.  A list is the text of the option, names with commas between them; NULL: no such
 * option. */
typedef struct leati_settings {
    leati_column_options columns;
    char *inputs;
    char *targets;
    char *sample_weights;
} leati_settings;

/* Opens a source of one kind.  `spec` is the parsed form of `text`. */
typedef leat_status leati_kind_open(leat_sequence *out, const leati_spec *spec, const char *text,
                                    const leati_settings *settings, const leat_source_options *options,
                                    leat_error *err);

leati_kind_open leati_open_idx, leati_open_npy, leati_open_npz, leati_open_plugin;

/* Checks that the SPEC's kind exists and takes this number of paths.  Errors: LEAT_EINVAL. */
leat_status leati_spec_check_kind(const leati_spec *spec, leat_error *err);

/* All kinds: name, paths, smallest and largest number of paths, description. */
#define LEATI_KIND_LIST(X)                                                                                   \
    X(idx, "INPUTS[,TARGETS]", 1, 2,                                                                         \
      "Files of MNIST, plain or .gz (unpacked once, into memory).  Samples of images (N, H, W) get shape "   \
      "(H, W, 1).")                                                                                          \
    X(npy, "INPUTS[,TARGETS[,WEIGHTS]]", 1, 3, "NumPy arrays, one in each file; the files are mapped.")      \
    X(npz, "FILE", 1, 1,                                                                                     \
      "Named NumPy arrays: stored ones are mapped, deflated ones unpacked once, into memory.")               \
    X(plugin, "OBJECT.so", 1, 1,                                                                             \
      "A shared object that defines leat_plugin_open (leat/plugin.h); it receives the text after the ?.")

/* All options: key, the kinds that have the option, value, description. */
#define LEATI_OPTION_LIST(X)                                                                                 \
    X(scale, "idx npy npz", "A or A/B", "inputs * A / B, as float32")                                        \
    X(shape, "idx npy npz", "28x28x1", "the shape of one input sample")                                      \
    X(onehot, "idx npy npz", "CLASSES", "labels 0 .. CLASSES-1 of targets become one-hot rows of float32")   \
    X(inputs, "npz", "NAME[,NAME...]", "the arrays that are inputs, in the model's order; default x")        \
    X(targets, "npz", "NAME[,NAME...]", "the targets; default y, if the file has it")                        \
    X(sample_weights, "npz", "NAME[,NAME...]",                                                               \
      "the sample weights; default sample_weight, if the file has it")

#endif
