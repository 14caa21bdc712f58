/* SPDX-License-Identifier: Apache-2.0 */
/* The hand-written part of docs/keras-names.md. */
#include "nn/keras_names.h"

#include <stddef.h>

const names_rule names_rules[] = {
    /* Names of every module. */
    {"*",
     "deserialize get serialize deserialize_keras_object serialize_keras_object get_registered_name "
     "get_registered_object",
     "no", "Python objects; leat reads and writes the same JSON with its files and its compile options"},
    {"*", "CustomObjectScope custom_object_scope get_custom_objects register_keras_serializable", "partly",
     "own layers in C: `leat_registry_create` and `leat_registry_add` (`leat/layer.h`)"},
    {"*",
     "Layer Loss Metric Optimizer Initializer Regularizer Constraint Callback LearningRateSchedule Wrapper",
     "partly",
     "base classes in Python; own layers are written in C (`leat/layer.h`), and callbacks "
     "(`leat/callback.h`)"},

    /* Layers. */
    {"layers", "Input", "yes", "`leat_input`; the layer InputLayer in files"},
    {"layers", "RNN StackedRNNCells", "partly",
     "with the cells of LSTM, GRU, SimpleRNN and ConvLSTM2D, not with own cells"},
    {"layers", "Lambda", "partly",
     "Python code is not run: a custom layer in C under its name replaces it; Lambdas of keras.applications "
     "are "
     "recognized"},
    {"layers", "Bidirectional", "partly", "`backward_layer` only as a copy of `layer` that goes backwards"},
    {"layers", "RandomCrop", "partly", "only for images of the size of the crop"},
    {"layers", "Normalization", "partly", "mean and variance from the file or the configuration; no `adapt`"},
    {"layers", "add average concatenate dot maximum minimum multiply subtract", "yes",
     "the function adds the layer of the same name"},
    {"layers",
     "AtrousConvolution1D AtrousConvolution2D ConvRecurrent2D Deconvolution2D Deconvolution3D Highway "
     "MaxoutDense Recurrent",
     "no", "a name of Keras 1, which 2.3.1 has only to refuse it"},
    {"layers",
     "AvgPool?D MaxPool?D GlobalAvgPool?D GlobalMaxPool?D Convolution?D Convolution2DTranspose "
     "Convolution3DTranspose "
     "SeparableConvolution?D",
     "yes", "another name of a class; files have the name of the class"},
    {"layers", "InputSpec", "no", "a check in Python; leat checks shapes when it builds a model"},
    {"layers", "ConvLSTM2DCell", "no", "not in files by itself: use the layer ConvLSTM2D"},
    {"layers", "FlaxLayer JaxLayer TorchModuleWrapper TFSMLayer", "no",
     "they run code of another framework, which leat does not contain"},
    {"layers", "MixUp CutMix", "no", "mixing of batches: `mix=` of the source `images` (`docs/pictures.md`)"},
    {"layers", "AutoContrast Equalization Solarization", "no",
     "augmentation of images: a step of `augment=` of the source `images` (`docs/pictures.md`)"},
    {"layers",
     "Random* RandAugment AugMix Pipeline "
     "ContrastLimitedAdaptiveHistogramEqualization MaxNumBoundingBoxes",
     "no",
     "augmentation of images: change the samples in the sequence that feeds the model (`leat/sequence.h`)"},
    {"layers", "StringLookup TextVectorization", "no",
     "leat has no tensors of strings: feed the model the indices that the layer gives"},
    {"layers", "Discretization IntegerLookup", "partly",
     "vocabulary and boundaries from the file or the configuration; no `adapt`"},
    {"layers", "HashedCrossing Hashing", "partly", "of integers, not of strings"},
    {"layers", "STFTSpectrogram", "partly", "windows hann, hamming, blackman, boxcar or none"},
    {"layers",
     "Adaptive* CenterCrop Conv1DTranspose Convolution1DTranspose ConvLSTM1D ConvLSTM3D DepthwiseConv1D "
     "RMSNormalization Resizing SpectralNormalization",
     "no", "not implemented; a custom layer in C under this name takes its place (`leat/layer.h`)"},

    /* Losses, metrics, optimizers. */
    {"losses", "LossFunctionWrapper is_categorical_crossentropy", "no", "parts of Keras's implementation"},
    {"metrics", "Layer Reduce SensitivitySpecificityBase MeanMetricWrapper clone_metric clone_metrics", "no",
     "parts of Keras's implementation; a MeanMetricWrapper in a file is read as its function"},
    {"metrics", "Mean Sum", "no", "they do not compare with targets, and cannot be compiled in Keras either"},
    {"optimizers", "TFOptimizer", "no", "a wrapper of TensorFlow's optimizers, which cannot be in files"},
    {"optimizers", "LossScaleOptimizer", "partly",
     "no step is skipped where the update reads the rows of an Embedding's gradient"},
    {"optimizers", "MultiOptimizer OptimizerMap", "no", "several optimizers of one model: a model has one"},
    {"optimizers", "Muon", "partly", "`exclude_layers` are parts of names, not regular expressions"},
    {"optimizers", "clip_norm", "no", "a part of Keras's implementation"},

    /* Initializers and kin. */
    {"initializers", "STFT STFTInitializer stft", "no",
     "only as the first value of the kernels of STFTSpectrogram"},
    {"initializers", "IdentityInitializer OrthogonalInitializer variance_scaling", "yes",
     "another name of a class; files have the name of the class"},
    {"activations", "threshold", "no", "not implemented; as a layer: ReLU with `threshold`"},
    {"regularizers", "orthogonal_regularizer", "yes", "another name of OrthogonalRegularizer"},
    {"activations", "Layer", "no", "a part of Keras's implementation"},

    /* Callbacks. */
    {"callbacks", "EarlyStopping ReduceLROnPlateau CSVLogger TensorBoard TerminateOnNaN", "yes",
     "`leat/callback.h`, [callbacks.md](callbacks.md)"},
    {"callbacks", "ModelCheckpoint", "partly", "`leat/callback.h`; a path of .h5, .keras or weights"},
    {"callbacks", "LearningRateScheduler", "partly",
     "a function in C, or one of the schedules ([callbacks.md](callbacks.md))"},
    {"callbacks", "LambdaCallback", "partly", "a `leat_callback` with functions in C"},
    {"callbacks", "History BaseLogger ProgbarLogger CallbackList", "yes",
     "parts of every fit: the history, the progress bar, the list of callbacks"},
    {"callbacks", "BackupAndRestore", "yes",
     "checkpoints: [checkpoints.md](checkpoints.md), `leat fit --resume`"},
    {"callbacks", "RemoteMonitor", "no", "leat opens no connections; a callback in C can"},
    {"callbacks", "OrbaxCheckpoint", "no",
     "JAX's checkpoints; leat has its own ([checkpoints.md](checkpoints.md))"},
    {"callbacks", "SwapEMAWeights", "no", "the average replaces the weights at the end of a fit"},

    /* Applications, data, utilities. */
    {"applications", "imagenet_utils", "no", "prepare pixels with `scale=` of a data SPEC, or in a sequence"},
    {"applications", "*", "partly",
     "read from Keras's file, not built by name ([applications.md](applications.md)); no download of "
     "weights"},
    {"datasets", "mnist fashion_mnist", "partly", "`idx:` reads their files; no download"},
    {"datasets", "*", "no", "no download; arrays of NumPy are read (`npy:`, `npz:`)"},
    {"models", "Model", "yes", "`leat_model_create`, and every file"},
    {"models", "Sequential", "yes", "`leat_builder_create`, and every file"},
    {"models", "Input InputLayer", "yes", "`leat_input`"},
    {"models", "clone_model", "yes", "`leat_model_clone`"},
    {"models", "load_model", "yes", "`leat_model_load`"},
    {"models", "save_model", "yes", "`leat_model_save`"},
    {"models", "model_from_json model_from_config", "yes", "`leat_model_from_json`"},
    {"models", "model_from_yaml", "no", "YAML is not read; current Keras has removed it, too"},
    {"models", "has_arg to_list", "no", "parts of Keras's implementation"},
    {"saving", "load_model", "yes", "`leat_model_load`"},
    {"saving", "save_model", "yes", "`leat_model_save`"},
    {"saving", "load_weights", "yes", "`leat_model_load_weights`"},
    {"saving", "save_weights", "yes", "`leat_model_save_weights`"},
    {"saving", "KerasFileEditor", "no", "a tool in Python that changes files"},
    {"utils", "Sequence PyDataset", "yes", "`leat_sequence` (`leat/sequence.h`)"},
    {"utils", "OrderedEnqueuer GeneratorEnqueuer", "yes", "`leat_feed` (`leat/feed.h`)"},
    {"utils", "Progbar", "partly", "the progress bar of `leat fit`; not a part of its own"},
    {"utils", "print_summary", "yes", "`leat_model_summary`"},
    {"utils", "to_categorical", "partly", "`onehot=CLASSES` of a data SPEC"},
    {"utils", "plot_model model_to_dot", "no",
     "leat makes no pictures of models; TensorBoard shows the graph"},
    {"utils", "set_random_seed", "yes", "`leat_model_initialize`, `--seed`"},
    {"utils", "timeseries_dataset_from_array split_dataset", "partly",
     "a sequence in C; `--validation-split` of the command"},
    {"utils", "*", "no", "auxiliary functions in Python around files, arrays or Keras itself"},
    {"preprocessing.*", "*", "no",
     "samples are prepared before training, or in the sequence that feeds the model (`leat/sequence.h`)"},
    {"random", "*", "no", "functions on tensors in Python; leat's generator is `leat/rng.h`"},
    {"ops", "*", "no",
     "functions on tensors in Python; in a functional model, a custom layer in C takes the place of one that "
     "leat "
     "does not read"},
    {NULL, NULL, NULL, NULL},
};
