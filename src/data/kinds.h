/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the kinds of source that a SPEC can name, and their options.  The tables serve to open sources, for
 * messages and for leat_source_help. */
#ifndef LEATI_DATA_KINDS_H
#define LEATI_DATA_KINDS_H

#include "data/columns.h"
#include "data/spec.h"

/* The options of `images` alone.  Their texts are not decoded; data/images_options.c parses them. */
#define LEATI_IMAGE_OPTION_LIST(X)                                                                           \
    X(size, "HEIGHTxWIDTH", "the size of all pictures; default 256x256")                                     \
    X(color, "rgb|grayscale|rgba", "the channels; default rgb")                                              \
    X(interpolation, "FILTER",                                                                               \
      "nearest, bilinear (default), bicubic, lanczos, box or hamming, with the bytes that Pillow gives")     \
    X(aspect, "stretch|crop|pad",                                                                            \
      "crop takes the middle (Keras: keep_aspect_ratio, crop_to_aspect_ratio), pad adds black margins "      \
      "(pad_to_aspect_ratio); default stretch")                                                              \
    X(augment, "STEP[,STEP...]",                                                                             \
      "random changes of each sample, such as flip,rotate(15),zoom(0.1),brightness(0.2): the arguments of "  \
      "ImageDataGenerator and Keras's layers as steps (docs/pictures.md); not for subset=validation")        \
    X(statistics, "FILE.npz",                                                                                \
      "keeps what steps such as featurewise_center without numbers need of the training data: written if "   \
      "there is no such file, otherwise read; default RUN/statistics.npz of `leat fit --out RUN`")           \
    X(cache, "FILE|memory|memory:SIZE",                                                                      \
      "keeps the decoded and resized pictures, and augments them anew in each pass: in a file, which is "    \
      "made in the first pass and used again while pictures and options are the same, or in memory; each "   \
      "subset needs a file of its own")                                                                      \
    X(mix, "mixup|cutmix",                                                                                   \
      "mixes the samples of each batch with each other, as Keras's MixUp and CutMix: mixup(0.2), "           \
      "cutmix(1); "                                                                                          \
      "needs labels=onehot; not for subset=validation")                                                      \
    X(labels, "int|onehot|binary|raw|multi_output|multihot|input|none",                                      \
      "the targets: the number of the class (default), one-hot rows, 0 or 1, the numbers of a list's "       \
      "columns as one target, or each column as a target of its own, ones for several classes of a list's "  \
      "row, the augmented picture itself for autoencoders; none: no targets.  With input and none, the "     \
      "whole folder is one list")                                                                            \
    X(masks, "FOLDER|ARCHIVE",                                                                               \
      "the targets are pictures of this folder, zip or tar file with the same names: masks of "              \
      "segmentation, "                                                                                       \
      "uint8 (H, W, 1), resized by the nearest pixel, and moved with their pictures by augment; implies "    \
      "labels=none")                                                                                         \
    X(mask_col, "NAME",                                                                                      \
      "the column of a CSV list that has the paths of the masks, relative to masks, to directory, or to "    \
      "the list's folder")                                                                                   \
    X(classes, "NAME[,NAME...]", "the classes in the order of their numbers; default all, sorted")           \
    X(follow_links, "true|false", "enter linked folders inside of classes; default false")                   \
    X(validation, "SHARE", "the share of files for validation, with subset")                                 \
    X(subset, "training|validation", "the files to read")                                                    \
    X(split, "shuffled|ordered|per_class",                                                                   \
      "how files for validation are chosen: as image_dataset_from_directory(seed=N) does (default), the "    \
      "last ones as it does with shuffle=False, or the first of each class as flow_from_directory does")     \
    X(seed, "N", "the seed of split=shuffled, the same for both subsets")                                    \
    X(bad, "fail|skip",                                                                                      \
      "skip leaves out a picture that cannot be read, says so in the log, and makes the batch shorter")      \
    X(decode, "full|scaled",                                                                                 \
      "scaled decodes JPEG at 1/2, 1/4 or 1/8 where that is still large enough: faster, other pixels")       \
    X(max_pixels, "N", "pictures with more pixels are bad; default 89478485")                                \
    X(directory, "FOLDER", "the folder that the paths of a CSV list are relative to; default the list's")    \
    X(x_col, "NAME", "the column of a CSV list that has the paths; default filename")                        \
    X(y_col, "NAME[,NAME...]", "the column that has the labels; default class")                              \
    X(label_separator, "CHARACTER", "between the classes of a row, with labels=multihot; default |")

/* The options of `images` that sources with pictures inside of shards have, too. */
#define LEATI_PICTURE_KEY_LIST(X) X(size) X(color) X(interpolation) X(aspect) X(decode) X(max_pixels) X(bad)

/* The options of `ragged` alone, in the same form; data/ragged_open.c parses them. */
#define LEATI_RAGGED_OPTION_LIST(X)                                                                          \
    X(values, "NAME", "the array of all time steps; default values")                                         \
    X(offsets, "NAME", "the array of the samples' offsets in it, and its end; default offsets")              \
    X(maxlen, "N", "the time steps of all samples; default those of the longest one")                        \
    X(padding, "pre|post", "where time steps are added; default pre")                                        \
    X(truncating, "pre|post", "where time steps are cut off; default pre")                                   \
    X(value, "NUMBER", "the added numbers; default 0")                                                       \
    X(buckets, "N[,N...]",                                                                                   \
      "lengths: batches have samples of similar lengths, padded to the next of them; maxlen is the last")    \
    X(within, "shuffled|ordered", "the order of the samples of a bucket, in each pass; default shuffled")

typedef struct leati_ragged_texts {
#define LEATI_RAGGED_TEXT(key, value, text) char *key;
    LEATI_RAGGED_OPTION_LIST(LEATI_RAGGED_TEXT)
#undef LEATI_RAGGED_TEXT
} leati_ragged_texts;

typedef struct leati_image_texts {
#define LEATI_IMAGE_TEXT(key, value, text) char *key;
    LEATI_IMAGE_OPTION_LIST(LEATI_IMAGE_TEXT)
#undef LEATI_IMAGE_TEXT
} leati_image_texts;

/* The values of the options.  A list is the text of the option, names with commas between them; NULL: no such
 * option. */
typedef struct leati_settings {
    leati_column_options columns;
    char *inputs;
    char *targets;
    char *sample_weights;
    leati_image_texts images;
    leati_ragged_texts ragged;
} leati_settings;

/* Opens a source of one kind.  `spec` is the parsed form of `text`. */
typedef leat_status leati_kind_open(leat_sequence *out, const leati_spec *spec, const char *text,
                                    const leati_settings *settings, const leat_source_options *options,
                                    leat_error *err);

leati_kind_open leati_open_idx, leati_open_npy, leati_open_npz, leati_open_images, leati_open_plugin,
    leati_open_csv, leati_open_tar, leati_open_tfrecord, leati_open_h5, leati_open_ragged;

/* Checks that the SPEC's kind exists and takes this number of paths.  Errors: LEAT_EINVAL. */
leat_status leati_spec_check_kind(const leati_spec *spec, leat_error *err);

/* Returns what stands for an argument of Keras's functions that read data, such as class_mode; NULL: not known. */
const char *leati_keras_option(const char *name);

/* Reads the options of a SPEC; their texts point into *spec.  Errors: LEAT_EINVAL. */
leat_status leati_settings_read(leati_settings *out, const leati_spec *spec, leat_error *err);

/* Options whose texts a kind reads from the SPEC itself, by leati_spec_value(): key, kinds, value, description. */
#define LEATI_TEXT_OPTION_LIST(X)                                                                            \
    X(inputs, "csv", "COLUMNS[|COLUMNS...]",                                                                 \
      "the columns of each input, as NAME, POSITION (from 0) or FIRST..LAST, with commas between them; "     \
      "default: one input of all other columns")                                                             \
    X(targets, "csv", "COLUMNS[|COLUMNS...]", "the columns of each target")                                  \
    X(sample_weights, "csv", "COLUMN[|COLUMN...]", "the columns that are sample weights")                    \
    X(inputs, "tar", "EXTENSION[;EXTENSION...][,...]",                                                       \
      "the part that is each input; of several extensions, the first that a sample has; default: a picture." \
      "  EXTENSION:TYPE:SHAPE reads raw elements")                                                           \
    X(targets, "tar", "EXTENSION[,...]", "the part that is each target; default cls, if there is one")       \
    X(inputs, "tfrecord", "FEATURE[,...]",                                                                   \
      "the feature that is each input, also FEATURE:SHAPE, and FEATURE:TYPE:SHAPE for bytes that are raw "   \
      "elements; other bytes are pictures")                                                                  \
    X(targets, "tfrecord", "FEATURE[,...]", "the feature that is each target")                               \
    X(exclude, "csv", "COLUMNS", "columns that the default of inputs leaves out")                            \
    X(integers, "csv", "COLUMNS", "columns that are int32, as a target is with onehot")                      \
    X(categories, "csv", "COLUMNS", "columns of texts that become 0, 1, ... in the order of the texts")      \
    X(onehot_categories, "csv", "COLUMNS", "columns of texts that become one-hot columns")                   \
    X(mapping, "csv", "FILE.json",                                                                           \
      "keeps categories and means: written if there is no such file, otherwise read, and a category that "   \
      "it does not have is an error")                                                                        \
    X(missing, "csv", "fail|skip|mean|NUMBER",                                                               \
      "for a field without value (empty, NA, nan, null ...): fail (default), leave out the row, the mean "   \
      "of the column or a number")                                                                           \
    X(bad, "csv", "fail|skip", "skip leaves out rows that cannot be read, and says how many")                \
    X(header, "csv", "true|false", "the first line has the names of the columns; default true")              \
    X(separator, "csv", "CHARACTER|tab|space", "the character between fields; default ,")                    \
    X(decimal, "csv", "CHARACTER", "the decimal separator; default .")                                       \
    X(skip_lines, "csv", "N", "lines before the header that are ignored; default 0")                         \
    X(memory, "h5", "SIZE",                                                                                  \
      "for datasets in chunks, such as 256M; default 1G.  Those that fit into half of it are read once; of " \
      "larger ones, the chunks used last are kept unpacked")

/* All kinds: name, paths, smallest and largest number of paths, description. */
#define LEATI_KIND_LIST(X)                                                                                   \
    X(idx, "INPUTS[,TARGETS]", 1, 2,                                                                         \
      "Files of MNIST, plain or .gz (unpacked once, into memory).  Samples of images (N, H, W) get shape "   \
      "(H, W, 1).")                                                                                          \
    X(npy, "INPUTS[,TARGETS[,WEIGHTS]]", 1, 3, "NumPy arrays, one in each file; the files are mapped.")      \
    X(npz, "FILE", 1, 1,                                                                                     \
      "Named NumPy arrays: stored ones are mapped, deflated ones unpacked once, into memory.")               \
    X(images, "FOLDER|ARCHIVE|LIST.csv", 1, 1,                                                               \
      "Pictures (JPEG, PNG, WebP, GIF, TIFF, BMP, PPM): a subfolder for each class, such a folder in a zip " \
      "or tar file, or a CSV list with a header.  Samples are uint8 (H, W, C); with scale, float32.")        \
    X(csv, "FILE[,FILE...]", 1, LEATI_SPEC_MAX_PATHS,                                                        \
      "Tables of text (RFC 4180), plain, .gz or .zst, read into memory.  One tensor of float32 for the "     \
      "inputs, int32 where all its columns are integers or categories.")                                     \
    X(h5, "FILE", 1, 1,                                                                                      \
      "Datasets of HDF5: contiguous ones are mapped, small ones in chunks are read once, into memory, and "  \
      "of "                                                                                                  \
      "large ones the chunks that samples need.")                                                            \
    X(tar, "SHARD[,SHARD...]", 1, LEATI_SPEC_MAX_PATHS,                                                      \
      "Samples in tar files, named as WebDataset names them: KEY.jpg, KEY.cls.  Parts: pictures, cls, npy, " \
      "raw elements.")                                                                                       \
    X(tfrecord, "FILE[,FILE...]", 1, LEATI_SPEC_MAX_PATHS,                                                   \
      "Records of TFRecord files, plain, .gz or .zst (unpacked into memory), which are tf.train.Examples.")  \
    X(ragged, "FILE.npz", 1, 1,                                                                              \
      "Samples that vary in length, such as sentences: an array with all time steps, and the offsets of "    \
      "the samples in it.  They are padded and cut as pad_sequences does it.")                               \
    X(plugin, "OBJECT.so", 1, 1,                                                                             \
      "A shared object that defines leat_plugin_open (leat/plugin.h); it receives the text after the ?.")

/* All options: key, the kinds that have the option, value, description. */
#define LEATI_OPTION_LIST(X)                                                                                 \
    X(scale, "idx npy npz images csv tar tfrecord h5", "A or A/B", "inputs * A / B, as float32")             \
    X(shape, "idx npy npz csv h5", "28x28x1", "the shape of one input sample")                               \
    X(onehot, "idx npy npz ragged csv tar tfrecord h5", "CLASSES",                                           \
      "labels 0 .. CLASSES-1 of targets become one-hot rows of float32")                                     \
    X(inputs, "npz h5", "NAME[,NAME...]", "the arrays that are inputs, in the model's order; default x")     \
    X(targets, "npz h5 ragged", "NAME[,NAME...]", "the targets; default y, if the file has it")              \
    X(sample_weights, "npz h5 ragged", "NAME[,NAME...]",                                                     \
      "the sample weights; default sample_weight, if the file has it")

#endif
