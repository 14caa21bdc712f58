/* SPDX-License-Identifier: Apache-2.0 */
/* The activations of Keras 2.3.1: one row each.  To add one, add its kind to the header and its row here. */
#include "nn/activation.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "engine/build.h"
#include "nn/object.h"

typedef struct row {
    const char *name;
    leati_eltwise eltwise; /* unused by softmax */
} row;

static const row rows[LEATI_ACTIVATION_COUNT] = {
    [LEATI_ACTIVATION_LINEAR] = {"linear", {LEATI_FN_LINEAR, 1.0f, 0.0f, 0.0f}},
    [LEATI_ACTIVATION_SOFTMAX] = {"softmax", {LEATI_FN_LINEAR, 0.0f, 0.0f, 0.0f}},
    [LEATI_ACTIVATION_ELU] = {"elu", {LEATI_FN_ELU, 1.0f, 0.0f, 0.0f}},
    [LEATI_ACTIVATION_SELU] = {"selu", {LEATI_FN_SELU, 0.0f, 0.0f, 0.0f}},
    [LEATI_ACTIVATION_SOFTPLUS] = {"softplus", {LEATI_FN_SOFTPLUS, 0.0f, 0.0f, 0.0f}},
    [LEATI_ACTIVATION_SOFTSIGN] = {"softsign", {LEATI_FN_SOFTSIGN, 0.0f, 0.0f, 0.0f}},
    [LEATI_ACTIVATION_RELU] = {"relu", {LEATI_FN_RELU, 0.0f, INFINITY, 0.0f}},
    [LEATI_ACTIVATION_TANH] = {"tanh", {LEATI_FN_TANH, 0.0f, 0.0f, 0.0f}},
    [LEATI_ACTIVATION_SIGMOID] = {"sigmoid", {LEATI_FN_SIGMOID, 0.0f, 0.0f, 0.0f}},
    [LEATI_ACTIVATION_HARD_SIGMOID] = {"hard_sigmoid", {LEATI_FN_HARD_SIGMOID, 0.2f, 0.5f, 0.0f}},
    [LEATI_ACTIVATION_EXPONENTIAL] = {"exponential", {LEATI_FN_EXP, 0.0f, 0.0f, 0.0f}},
};

const char *leati_activation_name(leati_activation_kind kind) {
    return (unsigned)kind < LEATI_ACTIVATION_COUNT ? rows[kind].name : "unknown";
}

static const char *name_at(int index) {
    return index < (int)LEATI_ACTIVATION_COUNT ? rows[index].name : NULL;
}

leat_status leati_activation_from_name(leati_activation *out, const char *name, leat_error *err) {
    for (int i = 0; i < (int)LEATI_ACTIVATION_COUNT; ++i) {
        if (strcmp(rows[i].name, name) == 0) {
            out->kind = (leati_activation_kind)i;
            return LEAT_OK;
        }
    }
    return leati_unknown_name(err, "activation", name, name_at);
}

leat_status leati_activation_read(leati_activation *out, const json_t *value, leat_error *err) {
    *out = (leati_activation){0};
    if (!value || json_is_null(value)) return LEAT_OK;
    leati_object object;
    LEATI_TRY(leati_object_read(&object, value, "activation", err));
    return leati_activation_from_name(out, object.name, err);
}

leat_status leati_activation_write(const leati_activation *activation, json_t **out, leat_error *err) {
    *out = json_string(leati_activation_name(activation->kind));
    return *out ? LEAT_OK : leati_fail(err, LEAT_ENOMEM, "no memory for an activation's name");
}

bool leati_activation_eltwise(const leati_activation *activation, leati_eltwise *out) {
    *out = rows[activation->kind].eltwise;
    return activation->kind != LEATI_ACTIVATION_SOFTMAX;
}

leati_value leati_activation_lower(const leati_activation *activation, leati_graph *graph, leati_value x) {
    if (activation->kind == LEATI_ACTIVATION_LINEAR) return x;
    if (activation->kind == LEATI_ACTIVATION_SOFTMAX) {
        return leati_softmax_of(graph, x, leati_graph_desc(graph, x)->rank - 1);
    }
    return leati_eltwise_of(graph, x, rows[activation->kind].eltwise);
}
