/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites functions of TensorFlow that functional models of tf.keras call as layers.  Room: nn. */
#include "nn/keras3/translate_tf.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "nn/config/object.h"
#include "nn/layers/operations/operation.h"

static leat_status no_memory(leat_error *err) {
    return leati_fail(err, LEAT_ENOMEM, "no memory for a configuration");
}

/* A function of TensorFlow, with the function of keras.ops that computes the same.  `arguments` lists the named
 * arguments: "y:1" becomes the argument 1 of the call, "perm=axes" the option axes, "axis" an option of the same name,
 * "message=" is left out.  `options` has options, as JSON, that the function has if the call does not name them. */
typedef struct tf_function {
    const char *name, *function, *arguments, *options;
} tf_function;

#define REDUCE "axis keepdims keep_dims=keepdims"
#define POOL   "ksize=pool_size strides padding"
#define LAST   "{\"data_format\": \"channels_last\"}"

static const tf_function functions[] = {
    {"__operators__.add", "Add", "y:1", NULL},
    {"math.add", "Add", "y:1", NULL},
    {"math.subtract", "Subtract", "y:1", NULL},
    {"math.multiply", "Multiply", "y:1", NULL},
    {"math.truediv", "TrueDivide", "y:1", NULL},
    {"math.divide", "TrueDivide", "y:1", NULL},
    {"realdiv", "TrueDivide", "y:1", NULL},
    {"compat.v1.div", "TrueDivide", "y:1", NULL},
    {"nn.bias_add", "Add", "bias:1", NULL},
    {"math.floordiv", "FloorDivide", "y:1", NULL},
    {"compat.v1.floor_div", "FloorDivide", "y:1", NULL},
    {"math.floormod", "Mod", "y:1", NULL},
    {"math.mod", "Mod", "y:1", NULL},
    {"math.pow", "Power", "y:1", NULL},
    {"math.maximum", "Maximum", "y:1", NULL},
    {"math.minimum", "Minimum", "y:1", NULL},
    {"math.equal", "Equal", "y:1", NULL},
    {"__operators__.eq", "Equal", "y:1 other:1", NULL},
    {"math.not_equal", "NotEqual", "y:1", NULL},
    {"__operators__.ne", "NotEqual", "y:1 other:1", NULL},
    {"math.greater", "Greater", "y:1", NULL},
    {"math.greater_equal", "GreaterEqual", "y:1", NULL},
    {"math.less", "Less", "y:1", NULL},
    {"math.less_equal", "LessEqual", "y:1", NULL},
    {"math.logical_and", "LogicalAnd", "y:1", NULL},
    {"math.logical_or", "LogicalOr", "y:1", NULL},
    {"math.logical_xor", "LogicalXor", "y:1", NULL},
    {"math.logical_not", "LogicalNot", "", NULL},
    {"math.negative", "Negative", "", NULL},
    {"math.abs", "Absolute", "", NULL},
    {"math.exp", "Exp", "", NULL},
    {"math.expm1", "Expm1", "", NULL},
    {"math.log", "Log", "", NULL},
    {"math.log1p", "Log1p", "", NULL},
    {"math.sqrt", "Sqrt", "", NULL},
    {"math.rsqrt", "Rsqrt", "", NULL},
    {"math.square", "Square", "", NULL},
    {"math.reciprocal", "Reciprocal", "", NULL},
    {"math.sign", "Sign", "", NULL},
    {"math.floor", "Floor", "", NULL},
    {"math.ceil", "Ceil", "", NULL},
    {"math.round", "Round", "", NULL},
    {"math.tanh", "Tanh", "", NULL},
    {"nn.tanh", "Tanh", "", NULL},
    {"math.sigmoid", "Sigmoid", "", NULL},
    {"nn.sigmoid", "Sigmoid", "", NULL},
    {"math.log_sigmoid", "LogSigmoid", "", NULL},
    {"math.softplus", "Softplus", "", NULL},
    {"nn.softplus", "Softplus", "", NULL},
    {"nn.softsign", "Softsign", "", NULL},
    {"nn.relu", "Relu", "", NULL},
    {"nn.relu6", "Relu6", "", NULL},
    {"nn.elu", "Elu", "", "{\"alpha\": 1.0}"},
    {"nn.selu", "Selu", "", NULL},
    {"nn.silu", "Silu", "", NULL},
    {"nn.swish", "Silu", "", NULL},
    {"nn.gelu", "Gelu", "approximate", "{\"approximate\": false}"},
    {"nn.leaky_relu", "LeakyRelu", "alpha=negative_slope", "{\"negative_slope\": 0.2}"},
    {"nn.softmax", "Softmax", "axis", "{\"axis\": -1}"},
    {"nn.log_softmax", "LogSoftmax", "axis", "{\"axis\": -1}"},
    {"math.l2_normalize", "Normalize", "axis", "{\"order\": 2, \"epsilon\": 1e-6}"},
    {"linalg.l2_normalize", "Normalize", "axis", "{\"order\": 2, \"epsilon\": 1e-6}"},
    {"math.reduce_mean", "Mean", REDUCE, "{\"axis\": null, \"keepdims\": false}"},
    {"math.reduce_sum", "Sum", REDUCE, "{\"axis\": null, \"keepdims\": false}"},
    {"math.reduce_max", "Max", REDUCE, "{\"axis\": null, \"keepdims\": false}"},
    {"math.reduce_min", "Min", REDUCE, "{\"axis\": null, \"keepdims\": false}"},
    {"math.reduce_prod", "Prod", REDUCE, "{\"axis\": null, \"keepdims\": false}"},
    {"math.reduce_any", "Any", REDUCE, "{\"axis\": null, \"keepdims\": false}"},
    {"math.reduce_all", "All", REDUCE, "{\"axis\": null, \"keepdims\": false}"},
    {"math.reduce_variance", "Var", REDUCE, "{\"axis\": null, \"keepdims\": false}"},
    {"math.reduce_std", "Std", REDUCE, "{\"axis\": null, \"keepdims\": false}"},
    {"math.reduce_logsumexp", "Logsumexp", REDUCE, "{\"axis\": null, \"keepdims\": false}"},
    {"compat.v1.norm", "Norm", "ord axis keepdims", "{\"keepdims\": false}"},
    {"norm", "Norm", "ord axis keepdims", "{\"keepdims\": false}"},
    {"math.argmax", "Argmax", "axis", "{\"axis\": 0, \"keepdims\": false}"},
    {"math.argmin", "Argmin", "axis", "{\"axis\": 0, \"keepdims\": false}"},
    {"math.cumsum", "Cumsum", "axis", "{\"axis\": 0}"},
    {"linalg.matmul", "Matmul", "b:1", NULL},
    {"tensordot", "Tensordot", "b:1 axes", NULL},
    {"__operators__.getitem", "GetItem", "slice_spec:1", NULL},
    {"reshape", "Reshape", "shape=newshape", NULL},
    {"compat.v1.transpose", "Transpose", "perm=axes", "{\"axes\": null}"},
    {"transpose", "Transpose", "perm=axes", "{\"axes\": null}"},
    {"expand_dims", "ExpandDims", "axis", NULL},
    {"compat.v1.expand_dims", "ExpandDims", "axis", NULL},
    {"compat.v1.squeeze", "Squeeze", "axis", "{\"axis\": null}"},
    {"squeeze", "Squeeze", "axis", "{\"axis\": null}"},
    {"concat", "Concatenate", "axis", NULL},
    {"stack", "Stack", "axis", "{\"axis\": 0}"},
    {"split", "Split", "num_or_size_splits=indices_or_sections axis", "{\"axis\": 0}"},
    {"unstack", "Unstack", "num axis", "{\"axis\": 0}"},
    {"reverse", "Flip", "axis", NULL},
    {"tile", "Tile", "multiples=repeats", NULL},
    {"repeat", "Repeat", "repeats axis", NULL},
    {"compat.v1.pad", "Pad", "paddings=pad_width mode constant_values:1", "{\"mode\": \"constant\"}"},
    {"pad", "Pad", "paddings=pad_width mode constant_values:1", "{\"mode\": \"constant\"}"},
    {"compat.v1.gather", "Take", "indices:1 axis", "{\"axis\": 0}"},
    {"gather", "Take", "indices:1 axis", "{\"axis\": 0}"},
    {"where", "Where", "x:1 y:2", NULL},
    {"compat.v1.where_v2", "Where", "x:1 y:2", NULL},
    {"clip_by_value", "Clip", "clip_value_min=x_min clip_value_max=x_max", NULL},
    {"cast", "Cast", "dtype", NULL},
    {"one_hot", "OneHot", "depth=num_classes axis dtype", "{\"axis\": -1}"},
    {"zeros_like", "ZerosLike", "dtype", NULL},
    {"ones_like", "OnesLike", "dtype", NULL},
    {"identity", "Copy", "", NULL},
    {"convert_to_tensor", "ConvertToTensor", "dtype", NULL},
    {"stop_gradient", "StopGradient", "", NULL},
    {"math.squared_difference", "Subtract", "y:1", NULL},
    {"math.divide_no_nan", "DivideNoNan", "y:1", NULL},
    {"compat.v1.math.scalar_mul", "Multiply", "x:1", NULL},
    {"math.scalar_mul", "Multiply", "x:1", NULL},
    {"image.adjust_brightness", "Add", "delta:1", NULL},
    {"math.sin", "Sin", "", NULL},
    {"math.cos", "Cos", "", NULL},
    {"math.tan", "Tan", "", NULL},
    {"math.asin", "Arcsin", "", NULL},
    {"math.acos", "Arccos", "", NULL},
    {"math.atan", "Arctan", "", NULL},
    {"math.sinh", "Sinh", "", NULL},
    {"math.cosh", "Cosh", "", NULL},
    {"math.asinh", "Arcsinh", "", NULL},
    {"math.acosh", "Arccosh", "", NULL},
    {"math.atanh", "Arctanh", "", NULL},
    {"math.erf", "Erf", "", NULL},
    {"math.erfc", "Erfc", "", NULL},
    {"math.is_nan", "Isnan", "", NULL},
    {"math.is_inf", "Isinf", "", NULL},
    {"math.is_finite", "Isfinite", "", NULL},
    {"math.count_nonzero", "CountNonzero", REDUCE, "{\"axis\": null}"},
    {"math.reduce_euclidean_norm", "Norm", REDUCE, "{\"ord\": null, \"axis\": null, \"keepdims\": false}"},
    {"roll", "Roll", "shift axis", NULL},
    {"linalg.matrix_transpose", "Swapaxes", "", "{\"axis1\": -1, \"axis2\": -2}"},
    {"ensure_shape", "Copy", "shape=", NULL},
    {"debugging.check_numerics", "Copy", "message=", NULL},
    {"image.flip_left_right", "Flip", "", "{\"axis\": 2}"},
    {"image.flip_up_down", "Flip", "", "{\"axis\": 1}"},
    {"image.rgb_to_grayscale", "RGBToGrayscale", "", LAST},
    {"image.resize", "Resize", "size method=interpolation antialias",
     "{\"interpolation\": \"bilinear\", \"antialias\": false, \"data_format\": \"channels_last\"}"},
    {"image.crop_to_bounding_box", "CropImages",
     "offset_height=top_cropping offset_width=left_cropping target_height target_width", LAST},
    {"image.pad_to_bounding_box", "PadImages",
     "offset_height=top_padding offset_width=left_padding target_height target_width", LAST},
    {"image.extract_patches", "ExtractPatches", "sizes=size strides rates=dilation_rate padding", LAST},
    {"nn.depth_to_space", "DepthToSpace", "block_size", LAST},
    {"nn.space_to_depth", "SpaceToDepth", "block_size", LAST},
    {"nn.max_pool", "MaxPool", POOL, LAST},
    {"nn.max_pool1d", "MaxPool", POOL, LAST},
    {"nn.max_pool2d", "MaxPool", POOL, LAST},
    {"nn.max_pool3d", "MaxPool", POOL, LAST},
    {"compat.v1.nn.max_pool", "MaxPool", POOL, LAST},
    {"nn.avg_pool", "AveragePool", POOL, LAST},
    {"nn.avg_pool1d", "AveragePool", POOL, LAST},
    {"nn.avg_pool2d", "AveragePool", POOL, LAST},
    {"nn.avg_pool3d", "AveragePool", POOL, LAST},
    {"compat.v1.nn.avg_pool", "AveragePool", POOL, LAST},
};

/* Functions that become layers. */
static const tf_function layers[] = {
    {"math.add_n", "Add", "", NULL},
    {"keras.backend.batch_flatten", "Flatten", "", LAST},
    {"samples.reshape", "Reshape", "shape=target_shape", NULL}, /* tf.reshape(x, (tf.shape(x)[0], 12)) */
};
enum { layer_count = sizeof layers / sizeof layers[0] };

static bool is_layer(const tf_function *function) {
    return function >= layers && function < layers + layer_count;
}

/* Returns the function of keras.ops that is called with the result of a function; NULL for most functions. */
static const char *second_function(const tf_function *function) {
    return strcmp(function->name, "math.squared_difference") == 0 ? "Square" : NULL;
}

static const char *function_of(const json_t *item) {
    const char *name = json_string_value(json_object_get(json_object_get(item, "config"), "function"));
    const char *class_name = leati_item_class(item);
    bool is_tf = strcmp(class_name, "TFOpLambda") == 0 || strcmp(class_name, "SlicingOpLambda") == 0;
    return is_tf ? name ? name : "" : NULL;
}

static const tf_function *find_function(const char *name) {
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; ++i)
        if (strcmp(functions[i].name, name) == 0) return &functions[i];
    for (size_t i = 0; i < layer_count; ++i)
        if (strcmp(layers[i].name, name) == 0) return &layers[i];
    return NULL;
}

/* ---- Tensors ---- */

typedef struct translation {
    const json_t *items;
    json_t *shapes; /* names of items that compute only shapes */
} translation;

static const json_t *find_item(const json_t *items, const char *name) {
    for (size_t i = 0; name && i < json_array_size(items); ++i)
        if (strcmp(leati_item_name(json_array_get(items, i)), name) == 0) return json_array_get(items, i);
    return NULL;
}

/* True for ["dense", 0, 0] and ["dense", 0, 0, {...}]. */
static bool is_tensor(const translation *t, const json_t *value) {
    size_t size = json_array_size(value);
    return (size == 3 || size == 4) && json_is_integer(json_array_get(value, 1)) &&
           json_is_integer(json_array_get(value, 2)) &&
           find_item(t->items, json_string_value(json_array_get(value, 0)));
}

/* True for a tensor that is a shape or an element of a shape. */
static bool is_shape(const translation *t, const json_t *value) {
    const char *name = json_string_value(json_array_get(value, 0));
    return is_tensor(t, value) && json_object_get(t->shapes, name);
}

/* True for a tensor, and for lists with one in them. */
static bool has_tensor(const translation *t, const json_t *value) {
    if (is_tensor(t, value)) return true;
    for (size_t i = 0; i < json_array_size(value); ++i)
        if (has_tensor(t, json_array_get(value, i))) return true;
    return false;
}

static leat_status computed(const char *what, leat_error *err) {
    return leati_fail(err, LEAT_ENOTSUP,
                      "%s: leat needs numbers here, and the model computes them from the shape of a tensor; "
                      "in Keras, write the numbers (x.shape[1]) and save the model again",
                      what);
}

/* Makes a tensor of current Keras.  There, the calls of a model count from 0, in tf.keras from 1. */
static json_t *tensor_of(const translation *t, const json_t *value) {
    const char *name = json_string_value(json_array_get(value, 0));
    json_int_t call = json_integer_value(json_array_get(value, 1));
    if (call > 0 && leati_item_is_model(find_item(t->items, name))) --call;
    return json_pack("{s:s, s:{s:[s, I, O]}}", "class_name", "__keras_tensor__", "config", "keras_history",
                     name, call, json_array_get(value, 2));
}

/* Converts an argument: tensors, slices, lists of them, constants (new reference). */
static json_t *argument_of(const translation *t, const json_t *value) {
    if (is_tensor(t, value)) return tensor_of(t, value);
    if (json_is_object(value) && json_object_get(value, "start"))
        return json_pack("{s:s, s:O}", "class_name", "__slice__", "config", value);
    if (strcmp(leati_item_class(value), "__ellipsis__") == 0)
        return json_pack("{s:s, s:{}}", "class_name", "__ellipsis__", "config");
    if (!json_is_array(value)) return json_incref((json_t *)(uintptr_t)value);
    json_t *out = json_array(), *item;
    size_t index;
    bool set = out != NULL;
    json_array_foreach(value, index, item) set = set && json_array_append_new(out, argument_of(t, item)) == 0;
    if (set) return out;
    json_decref(out);
    return NULL;
}

/* ---- Calls ---- */

/* Finds an argument in the list of a function: its position in the call, or the name of the option. */
static bool find_argument(const char *list, const char *name, int *position, char option[64]) {
    size_t length = strlen(name);
    *position = -1;
    for (const char *at = list; *at;) {
        size_t word = strcspn(at, " "), own = strcspn(at, " :=");
        if (own == length && memcmp(at, name, length) == 0) {
            if (at[own] == ':') *position = at[own + 1] - '0';
            snprintf(option, 64, "%.*s", (int)(at[own] == '=' ? word - own - 1 : own),
                     at[own] == '=' ? at + own + 1 : at);
            return true;
        }
        at += word + (at[word] == ' ');
    }
    return false;
}

/* True for arguments that change nothing: names, and the defaults of options that keras.ops does not have. */
static bool has_no_effect(const char *key, const json_t *value) {
    static const char *const names[] = {"name", "out_type", "output_type", "validate_indices", "num", NULL};
    const char *text = json_string_value(value);
    for (const char *const *name = names; *name; ++name)
        if (strcmp(*name, key) == 0) return true;
    if (json_is_null(value) || json_is_false(value)) return true;
    if (strcmp(key, "batch_dims") == 0 && json_is_integer(value) && json_integer_value(value) == 0)
        return true;
    return strcmp(key, "data_format") == 0 && text && strncmp(text, "N", 1) == 0 &&
           text[strlen(text) - 1] == 'C';
}

/* True if the first number of a new shape is computed. */
static bool begins_with_batch(const translation *t, const json_t *shape) {
    return json_array_size(shape) > 1 && is_shape(t, json_array_get(shape, 0));
}

/* Replaces the computed numbers of a new shape by -1, of which there may be one; of samples without the first. */
static leat_status simplify_shape(const translation *t, json_t *shape, leat_error *err) {
    int unknown = 0;
    if (begins_with_batch(t, shape)) json_array_remove(shape, 0);
    for (size_t i = 0; i < json_array_size(shape); ++i) {
        const json_t *item = json_array_get(shape, i);
        if (is_shape(t, item) && json_array_set_new(shape, i, json_integer(-1)) != 0) return no_memory(err);
        item = json_array_get(shape, i);
        if (json_is_integer(item)) unknown += json_integer_value(item) == -1;
    }
    return unknown <= 1 ? LEAT_OK
                        : leati_fail(err, LEAT_ENOTSUP,
                                     "shape: expected numbers, of which one is unknown; write the numbers "
                                     "that are known instead of -1");
}

/* Changes the sizes of the parts of a split to the indices where the parts begin. */
static leat_status begins_of_parts(json_t *sizes, leat_error *err) {
    json_int_t sum = 0;
    for (size_t i = 0; i < json_array_size(sizes); ++i) {
        sum += json_integer_value(json_array_get(sizes, i));
        if (json_array_set_new(sizes, i, json_integer(sum)) != 0) return no_memory(err);
    }
    json_array_remove(sizes, json_array_size(sizes) - 1);
    return LEAT_OK;
}

/* Replaces a text by the one that keras.ops has: "VALID" by "valid". */
static leat_status to_lower_case(json_t **value, leat_error *err) {
    char text[32];
    snprintf(text, sizeof text, "%s", json_string_value(*value));
    for (char *at = text; *at; ++at) *at = (char)(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
    json_decref(*value);
    *value = json_string(text);
    return *value ? LEAT_OK : no_memory(err);
}

/* True for the options of windows, which TensorFlow may give for the batch and the channels, too: [1, 2, 2, 1]. */
static bool is_of_window(const char *option) {
    return strcmp(option, "pool_size") == 0 || strcmp(option, "strides") == 0 ||
           strcmp(option, "size") == 0 || strcmp(option, "dilation_rate") == 0;
}

/* Returns an option in the form of keras.ops (new reference in *out). */
static leat_status adapt_option(const translation *t, const char *option, const json_t *value, json_t **out,
                                leat_error *err) {
    bool new_shape = strcmp(option, "newshape") == 0 || strcmp(option, "target_shape") == 0;
    *out = json_deep_copy(value);
    if (!*out) return no_memory(err);
    if (new_shape) return is_tensor(t, value) ? computed(option, err) : simplify_shape(t, *out, err);
    if (has_tensor(t, value)) return computed(option, err);
    if (json_is_string(value) && (strcmp(option, "mode") == 0 || strcmp(option, "padding") == 0))
        return to_lower_case(out, err);
    if (is_of_window(option) && json_array_size(value) > 2) {
        json_array_remove(*out, json_array_size(*out) - 1);
        json_array_remove(*out, 0);
    }
    return strcmp(option, "indices_or_sections") == 0 && json_is_array(value) ? begins_of_parts(*out, err)
                                                                              : LEAT_OK;
}

/* True for nested lists of numbers; *real is set if one is not an integer. */
static bool is_array_of_numbers(const json_t *value, bool *real) {
    if (json_is_real(value)) *real = true;
    if (!json_is_array(value)) return json_is_number(value);
    for (size_t i = 0; i < json_array_size(value); ++i)
        if (!is_array_of_numbers(json_array_get(value, i), real)) return false;
    return true;
}

/* Converts an argument of the call.  An array, which tf.keras writes as a list, gets the form of current Keras. */
static json_t *positional(const translation *t, const tf_function *function, const json_t *value) {
    bool real = false, slices = strcmp(function->function, "GetItem") == 0;
    if (slices || !json_is_array(value) || is_tensor(t, value) || !is_array_of_numbers(value, &real))
        return argument_of(t, value);
    return json_pack("{s:s, s:{s:O, s:s}}", "class_name", "__numpy__", "config", "value", value, "dtype",
                     real ? "float32" : "int32");
}

/* Puts the named arguments of a call into its list of arguments, or into the options of the function. */
static leat_status take_arguments(const translation *t, const tf_function *function, const json_t *named,
                                  json_t *args, json_t *options, leat_error *err) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)named, key, value) {
        int position;
        char option[64];
        if (!find_argument(function->arguments, key, &position, option)) {
            if (has_no_effect(key, value)) continue;
            return leati_fail(err, LEAT_ENOTSUP,
                              "called with the argument '%.64s', which leat does not support", key);
        }
        if (!option[0]) continue;
        if (position >= 0 && is_shape(t, value)) return computed(key, err);
        json_t *converted = position >= 0 ? positional(t, function, value) : NULL;
        leat_status status = position >= 0 ? LEAT_OK : adapt_option(t, option, value, &converted, err);
        if (status != LEAT_OK) json_decref(converted);
        LEATI_TRY(status);
        while (position >= 0 && json_array_size(args) <= (size_t)position)
            if (json_array_append_new(args, json_null()) != 0) break;
        int failed = position >= 0 ? json_array_set_new(args, (size_t)position, converted)
                                   : json_object_set_new(options, option, converted);
        if (failed) return no_memory(err);
    }
    return LEAT_OK;
}

/* Makes the first argument: a tensor, the constant in ["_CONSTANT_VALUE", -1, constant, {...}], or a list. */
static json_t *first_argument(const translation *t, const json_t *node) {
    const char *name = json_string_value(json_array_get(node, 0));
    if (name && strcmp(name, "_CONSTANT_VALUE") == 0) return argument_of(t, json_array_get(node, 2));
    return argument_of(t, node);
}

/* Returns a product with transposed operands as an Einstein sum. */
static leat_status transposed_product(json_t *item, json_t *options, bool a, bool b, leat_error *err) {
    char text[32];
    snprintf(text, sizeof text, "...%s,...%s->...ik", a ? "ji" : "ij", b ? "kj" : "jk");
    bool set = json_object_set_new(item, "class_name", json_string("Einsum")) == 0 &&
               json_object_set_new(options, "subscripts", json_string(text)) == 0;
    return set ? LEAT_OK : no_memory(err);
}

/* True if the operand of a call, or one of a list of operands, is a shape. */
static bool reads_shape(const translation *t, const json_t *node) {
    bool shape = is_shape(t, node);
    for (size_t i = 0; !shape && i < json_array_size(node); ++i) shape = is_shape(t, json_array_get(node, i));
    return shape;
}

static leat_status translate_node(const translation *t, const tf_function *function, json_t *item,
                                  const json_t *node, json_t *options, json_t *calls, leat_error *err) {
    const bool alone = json_is_string(json_array_get(node, 0));
    json_t *named = json_deep_copy(json_array_get(alone ? node : json_array_get(node, 0), 3));
    bool a = json_is_true(json_object_get(named, "transpose_a"));
    bool b = json_is_true(json_object_get(named, "transpose_b"));
    json_object_del(named, "transpose_a");
    json_object_del(named, "transpose_b");
    json_t *args = json_pack("[o]", first_argument(t, node));
    leat_status status = !args                  ? no_memory(err)
                         : reads_shape(t, node) ? computed("its operand", err)
                                                : take_arguments(t, function, named, args, options, err);
    if (status == LEAT_OK && (a || b)) status = transposed_product(item, options, a, b, err);
    json_decref(named);
    json_t *call = json_pack("{s:o, s:{}}", "args", args, "kwargs");
    if (json_array_append_new(calls, call) != 0 && status == LEAT_OK) status = no_memory(err);
    return status;
}

/* Finds the function that an item becomes; NULL after a failure. */
static const tf_function *function_for(const translation *t, const json_t *item, leat_error *err) {
    const json_t *node = json_array_get(json_object_get(item, "inbound_nodes"), 0);
    const tf_function *function = find_function(function_of(item));
    if (function && strcmp(function->function, "Reshape") == 0 &&
        begins_with_batch(t, json_object_get(json_array_get(node, 3), "shape")))
        return find_function("samples.reshape");
    if (!function)
        leati_fail(err, LEAT_ENOTSUP,
                   "leat has no function for tf.%.64s; in Keras, put it into a layer class of your own and "
                   "register a custom layer of that name with leat (leat/layer.h), or use functions of "
                   "docs/operations.md",
                   function_of(item));
    return function;
}

/* Gives an item a class and a configuration.  The class may be that of a transposed product, which is already set. */
static leat_status set_class(json_t *item, bool as_layer, json_t *options, json_t *calls, leat_error *err) {
    const char *module = as_layer ? "layers" : leati_operation_module(leati_item_class(item));
    const char *place = as_layer ? "keras" : "keras.src";
    bool set = json_object_set_new(options, "name", json_string(leati_item_name(item))) == 0 &&
               json_object_set_new(item, "module", json_sprintf("%s.%s", place, module)) == 0 &&
               json_object_set(item, "config", options) == 0 &&
               json_object_set(item, "inbound_nodes", calls) == 0;
    return set ? LEAT_OK : no_memory(err);
}

/* Rewrites one function in the form of current Keras. */
static leat_status translate_item(const translation *t, json_t *item, leat_error *err) {
    const tf_function *function = function_for(t, item, err);
    const json_t *nodes = json_object_get(item, "inbound_nodes");
    if (!function) return LEAT_ENOTSUP;
    json_t *calls = json_array(),
           *options = json_loads(function->options ? function->options : "{}", 0, NULL);
    leat_status status = calls && options ? LEAT_OK : no_memory(err);
    if (status == LEAT_OK && json_object_set_new(item, "class_name", json_string(function->function)) != 0)
        status = no_memory(err);
    for (size_t i = 0; status == LEAT_OK && i < json_array_size(nodes); ++i)
        status = translate_node(t, function, item, json_array_get(nodes, i), options, calls, err);
    if (status == LEAT_OK) status = set_class(item, is_layer(function), options, calls, err);
    json_decref(options);
    json_decref(calls);
    return status;
}

/* Puts the translated item before itself under a new name, and makes the item call `then` with its results. */
static leat_status add_second(json_t *items, size_t index, const char *then, leat_error *err) {
    json_t *item = json_array_get(items, index), *first = json_deep_copy(item), *calls = json_array();
    json_t *options = json_object(), *config = json_object_get(first, "config");
    json_t *name = json_sprintf("%s_operand", leati_item_name(item));
    bool set = first && calls && name && json_object_set(config, "name", name) == 0 &&
               json_object_set(first, "name", name) == 0;
    for (size_t i = 0; set && i < json_array_size(json_object_get(first, "inbound_nodes")); ++i)
        set = json_array_append_new(calls, json_pack("{s:[{s:s, s:{s:[O, I, i]}}], s:{}}", "args",
                                                     "class_name", "__keras_tensor__", "config",
                                                     "keras_history", name, (json_int_t)i, 0, "kwargs")) == 0;
    set = set && json_object_set_new(item, "class_name", json_string(then)) == 0;
    leat_status status = set ? set_class(item, false, options, calls, err) : no_memory(err);
    if (status == LEAT_OK && json_array_insert(items, index, first) != 0) status = no_memory(err);
    json_decref(first);
    json_decref(calls);
    json_decref(options);
    json_decref(name);
    return status;
}

/* Finds the items that compute shapes: tf.shape, and elements of shapes.  Items come after those that they read. */
static leat_status find_shapes(translation *t, leat_error *err) {
    size_t index;
    json_t *item;
    json_array_foreach((json_t *)(uintptr_t)t->items, index, item) {
        const char *function = function_of(item);
        if (!function) continue;
        const json_t *node = json_array_get(json_object_get(item, "inbound_nodes"), 0);
        bool shape = strcmp(function, "compat.v1.shape") == 0 || strcmp(function, "shape") == 0 ||
                     (strcmp(function, "__operators__.getitem") == 0 && is_shape(t, node));
        if (shape && json_object_set_new(t->shapes, leati_item_name(item), json_true()) != 0)
            return no_memory(err);
    }
    return LEAT_OK;
}

leat_status leati_translate_tf(json_t *items, leat_error *err) {
    translation t = {items, json_object()};
    json_t *item;
    leat_status status = t.shapes ? find_shapes(&t, err) : no_memory(err);
    for (size_t i = 0; status == LEAT_OK && i < json_array_size(items); ++i) {
        item = json_array_get(items, i);
        if (strcmp(leati_item_class(item), "TensorFlowOpLayer") == 0)
            status = leati_fail(
                err, LEAT_ENOTSUP,
                "layer '%.64s': leat does not read TensorFlowOpLayer, a node of TensorFlow's graph, of "
                "tf.keras 2.0 to 2.3; build the model with tf.keras 2.4 or later, load the weights "
                "into it, and save it again",
                leati_item_name(item));
        if (!function_of(item) || json_object_get(t.shapes, leati_item_name(item))) continue;
        const tf_function *function = find_function(function_of(item));
        status = translate_item(&t, item, err);
        const char *second = status == LEAT_OK ? second_function(function) : NULL;
        if (second) status = add_second(items, i++, second, err);
        if (status != LEAT_OK)
            status = leati_prefix(status, err, "layer '%.64s' (%.64s)", leati_item_name(item),
                                  leati_item_class(item));
    }
    for (size_t i = json_array_size(items); status == LEAT_OK && i-- > 0;)
        if (json_object_get(t.shapes, leati_item_name(json_array_get(items, i)))) json_array_remove(items, i);
    json_decref(t.shapes);
    return status;
}
