/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, writes and lowers losses.  Room: nn. */
#include "nn/losses/loss.h"

#include <string.h>

#include "base/error.h"
#include "engine/graph/build.h"
#include "nn/losses/types.h"
#include "nn/config/object.h"
#include "tensor/number.h"

/* If two names have the same reduction, the first name is written to files. */
static const struct {
    const char *name;
    leati_reduction reduction;
} reductions[] = {
    {"sum_over_batch_size", LEATI_REDUCTION_SUM_OVER_BATCH_SIZE},
    {"sum", LEATI_REDUCTION_SUM},
    {"mean_with_sample_weight", LEATI_REDUCTION_MEAN_WITH_SAMPLE_WEIGHT}, /* current Keras */
    {"none", LEATI_REDUCTION_NONE},
    {"auto", LEATI_REDUCTION_SUM_OVER_BATCH_SIZE}, /* tf.keras */
    {"mean", LEATI_REDUCTION_SUM_OVER_BATCH_SIZE}, /* current Keras */
};

#define REDUCTION_COUNT (sizeof(reductions) / sizeof(reductions[0]))

const char *const leati_measure_common_keys[] = {"name", "dtype", "reduction", "fn", NULL};

static leat_status read_reduction(leati_reduction *out, const json_t *config, leat_error *err) {
    const json_t *value = config ? json_object_get(config, "reduction") : NULL;
    if (!value || json_is_null(value)) return LEAT_OK;
    for (size_t i = 0; json_is_string(value) && i < REDUCTION_COUNT; ++i) {
        if (strcmp(reductions[i].name, json_string_value(value)) == 0) {
            *out = reductions[i].reduction;
            return LEAT_OK;
        }
    }
    return leati_fail(err, LEAT_EINVAL,
                      "expected reduction to be \"sum_over_batch_size\", \"sum\", \"mean\", "
                      "\"mean_with_sample_weight\" or \"none\"");
}

leat_status leati_measure_options_read(leati_measure_options *out, const leati_field *fields,
                                       const json_t *config, leat_error *err) {
    static const leati_field none[] = {{.key = NULL}};
    *out = (leati_measure_options){.axis = -1, .ignore_class = INT64_MIN};
    json_t *empty = config ? NULL : json_object();
    if (!config && !empty) return leati_fail(err, LEAT_ENOMEM, "no memory for options");
    leat_status status = leati_fields_read(fields ? fields : none, leati_measure_common_keys,
                                           config ? config : empty, out, err);
    json_decref(empty);
    return status;
}

static leat_status read_custom(leati_output_loss *out, const leati_part *part, const leati_object *object,
                               leat_error *err) {
    const leati_measure_options none = {.axis = -1, .ignore_class = INT64_MIN};
    out->options = none;
    LEATI_TRY(leati_part_object_create(&out->options.object, part, object, leati_measure_common_keys, err));
    leati_custom_loss_prepare(out->options.object);
    out->type = part->type;
    leat_status status = read_reduction(&out->reduction, object->config, err);
    if (status != LEAT_OK) leati_loss_fini(out);
    return status;
}

void leati_loss_fini(leati_output_loss *loss) {
    leati_part_object_destroy(&loss->options.object);
    loss->type = NULL;
}

leat_status leati_loss_read_with(leati_output_loss *out, const json_t *value, const leati_part *parts,
                                 leat_error *err) {
    out->type = NULL;
    out->reduction = LEATI_REDUCTION_SUM_OVER_BATCH_SIZE;
    if (!value || json_is_null(value)) return LEAT_OK;
    leati_object object;
    LEATI_TRY(leati_object_read(&object, value, "loss", err));
    const leati_loss_type *type = leati_loss_find(object.name);
    const leati_part *part = leati_part_find(parts, LEATI_PART_LOSS, &object, type != NULL);
    if (part) return read_custom(out, part, &object, err);
    if (!type) return leati_part_unknown(err, parts, LEATI_PART_LOSS, object.name, leati_loss_name_at);
    leat_status status = leati_measure_options_read(&out->options, type->measure.fields, object.config, err);
    if (status == LEAT_OK) status = read_reduction(&out->reduction, object.config, err);
    if (status != LEAT_OK) return leati_prefix(status, err, "loss '%s'", object.name);
    out->type = type;
    return LEAT_OK;
}

static const char *reduction_name(leati_reduction reduction) {
    size_t i = 0;
    while (reductions[i].reduction != reduction) {
        ++i;
    }
    return reductions[i].name;
}

/* True if a file gets the object and not the function's name, because current Keras has no function of that name.
 * For cosine_proximity it is the other way round: Keras 2.3.1 has no class. */
static bool written_as_object(const leati_loss_type *type, const char *configured_name) {
    if (!type->measure.class_name || type == &leati_loss_cosine_proximity) return false;
    return type == &leati_loss_logcosh || type == &leati_loss_huber ||
           type == &leati_loss_kullback_leibler_divergence ||
           strcmp(configured_name, type->measure.class_name) == 0;
}

leat_status leati_loss_write_with(const json_t *value, const leati_part *parts, json_t **out,
                                  leat_error *err) {
    leati_output_loss loss = {0};
    leati_object object;
    *out = NULL;
    LEATI_TRY(leati_object_read(&object, value, "loss", err));
    LEATI_TRY(leati_loss_read_with(&loss, value, parts, err));
    if (loss.options.object) {
        leat_status status =
            leati_part_object_write(loss.options.object, leati_measure_common_keys, object.config, out, err);
        leati_loss_fini(&loss);
        return status;
    }
    if (!loss.type) {
        *out = json_null();
        return LEAT_OK;
    }
    if (!written_as_object(loss.type, object.name)) {
        *out = json_string(loss.type->measure.name);
        return *out ? LEAT_OK : leati_fail(err, LEAT_ENOMEM, "no memory for a loss's name");
    }
    const json_t *configured_name = object.config ? json_object_get(object.config, "name") : NULL;
    const char *name =
        json_is_string(configured_name) ? json_string_value(configured_name) : loss.type->measure.name;
    json_t *config = json_pack("{s:s, s:s}", "reduction", reduction_name(loss.reduction), "name", name);
    leat_status status = LEAT_OK;
    if (config && loss.type->measure.fields)
        status = leati_fields_write(loss.type->measure.fields, &loss.options, config, err);
    if (status != LEAT_OK) {
        json_decref(config);
        return status;
    }
    return leati_object_write(loss.type->measure.class_name, config, out, err);
}

leat_status leati_loss_check_targets(const leati_output_loss *loss, const leat_tensor *targets,
                                     int64_t classes, leat_error *err) {
    bool numbers = loss->type && (loss->type->sparse || loss->type->label_lists);
    if (!numbers || loss->type->unbounded || classes < 0) return LEAT_OK;
    int64_t count = leat_tensor_count(targets);
    int64_t per_sample = targets->rank > 0 && targets->shape[0] > 0 ? count / targets->shape[0] : 1;
    for (int64_t i = 0; i < count; ++i) {
        double number = leati_number_at(targets->dtype, targets->data, i);
        bool ignored = number == (double)loss->options.ignore_class;
        if ((number >= 0.0 && number < (double)classes) || ignored) continue;
        return leati_fail_sample(
            err, LEAT_EINVAL, i / per_sample,
            "%s: expected class numbers from 0 to %lld, received %g in sample %lld of the batch",
            loss->type->measure.name, (long long)(classes - 1), number, (long long)(i / per_sample));
    }
    return LEAT_OK;
}

leati_value leati_weights_like(leati_graph *graph, leati_value weights, leati_value values) {
    if (weights < 0 || values < 0) return LEATI_INVALID;
    leati_desc w = *leati_graph_desc(graph, weights);
    const leati_desc v = *leati_graph_desc(graph, values);
    if (w.rank == v.rank + 1 && w.shape[w.rank - 1] == 1) w.rank -= 1;
    bool fits = w.rank <= v.rank;
    for (int i = 0; fits && i < w.rank; ++i) {
        fits = w.shape[i] == v.shape[i] || w.shape[i] == 1;
    }
    if (!fits) {
        return leati_graph_fail(
            graph, LEAT_ESHAPE,
            "sample weights of rank %d do not fit loss values of rank %d, sizes %lld and %lld", (int)w.rank,
            (int)v.rank, (long long)leati_desc_count(&w), (long long)leati_desc_count(&v));
    }
    while (w.rank < v.rank) {
        w.shape[w.rank++] = 1;
    }
    leati_value aligned = leati_reshape(graph, weights, w.rank, w.shape);
    return leati_desc_same_shape(&w, &v) ? aligned : leati_broadcast(graph, aligned, v.rank, v.shape);
}

/* Returns 1 for each value that a mean counts, otherwise 0; LEATI_NONE if all count. */
static leati_value counted(const leati_output_loss *loss, leati_graph *graph, leati_value y_true,
                           leati_value values) {
    if (values < 0) return LEATI_NONE;
    if (loss->type->skips_zeros)
        return leati_binary_of(graph, LEATI_GREATER, values, leati_scalar(graph, 0.0f));
    leati_value kept = loss->type->sparse ? leati_kept_classes(graph, &loss->options, y_true) : LEATI_NONE;
    const leati_desc desc = *leati_graph_desc(graph, values);
    return kept < 0 ? kept : leati_reshape(graph, kept, desc.rank, desc.shape);
}

/* Returns a / b, or 0 where b is 0, as a is, too. */
static leati_value quotient(leati_graph *graph, leati_value a, leati_value b) {
    leati_value none = leati_binary_of(graph, LEATI_EQUAL, b, leati_scalar(graph, 0.0f));
    return leati_div(graph, a, leati_add(graph, b, none));
}

/* Scales a mean over all values to the mean over those that count, as in current Keras. */
static leati_value of_counted(leati_graph *graph, leati_value mean, leati_value kept, leati_totals *totals) {
    int64_t all = leati_desc_count(leati_graph_desc(graph, kept));
    if (totals) all = all / totals->samples * totals->whole;
    leati_value count = leati_reduce_all(graph, LEATI_REDUCE_SUM, kept);
    count = leati_total_count(graph, totals, count);
    return leati_mul(graph, mean, quotient(graph, leati_scalar(graph, (float)all), count));
}

static leati_value scaled(leati_graph *graph, leati_value x, float factor) {
    return factor == 1.0f ? x : leati_linear(graph, x, factor, 0.0f);
}

/* Returns the product of what counts and the weights, in the shape of the values; LEATI_NONE if there is neither. */
static leati_value all_weights(leati_graph *graph, leati_value *values, leati_value kept,
                               leati_value weights) {
    if (weights == LEATI_NONE) return kept;
    const leati_desc given = *leati_graph_desc(graph, weights);
    if (leati_graph_desc(graph, *values)->rank == 0) /* the loss of a whole batch, once for each weight */
        *values = leati_broadcast(graph, *values, given.rank, given.shape);
    weights = leati_weights_like(graph, weights, *values);
    return kept == LEATI_NONE ? weights : leati_mul(graph, weights, kept);
}

/* Reduces a loss of sums over the whole batch, which is one number or has one number for each class: every part
 * computes the loss of the batch, and contributes its share. */
static leati_value reduce_whole(const leati_output_loss *loss, leati_graph *graph, leati_value values,
                                leati_value weights, leati_totals *totals) {
    const bool sums = loss->reduction == LEATI_REDUCTION_SUM;
    const float share = leati_share_of_part(totals);
    leati_value one = leati_reduce_all(graph, sums ? LEATI_REDUCE_SUM : LEATI_REDUCE_MEAN, values);
    if (weights == LEATI_NONE) return scaled(graph, one, share);
    const int64_t all = leati_desc_count(leati_graph_desc(graph, weights)) / totals->samples * totals->whole;
    leati_value sum = leati_total_count(graph, totals, leati_reduce_all(graph, LEATI_REDUCE_SUM, weights));
    leati_value weighted = leati_mul(graph, one, sum);
    if (loss->reduction == LEATI_REDUCTION_MEAN_WITH_SAMPLE_WEIGHT)
        weighted = quotient(graph, weighted, sum);
    else if (!sums)
        weighted = scaled(graph, weighted, 1.0f / (float)all);
    return scaled(graph, weighted, share);
}

/* Weights the values of samples or steps, and reduces them. */
static leati_value reduce_values(const leati_output_loss *loss, leati_graph *graph, leati_value y_true,
                                 leati_value values, leati_value weights, leati_totals *totals) {
    leati_value kept = counted(loss, graph, y_true, values);
    leati_value factors = all_weights(graph, &values, kept, weights);
    if (factors != LEATI_NONE) values = leati_mul(graph, values, factors);
    bool by_weight = loss->reduction == LEATI_REDUCTION_MEAN_WITH_SAMPLE_WEIGHT && factors != LEATI_NONE;
    if (loss->reduction == LEATI_REDUCTION_SUM || by_weight) {
        leati_value sum = leati_reduce_all(graph, LEATI_REDUCE_SUM, values);
        if (!by_weight) return sum;
        factors = leati_reduce_all(graph, LEATI_REDUCE_SUM, factors);
        return quotient(graph, sum, leati_total_count(graph, totals, factors));
    }
    leati_value mean = leati_reduce_all(graph, LEATI_REDUCE_MEAN, values);
    mean = scaled(graph, mean, leati_share_of_part(totals));
    return kept == LEATI_NONE ? mean : of_counted(graph, mean, kept, totals);
}

/* Reduces a loss of pairs: every part has the values of all samples of the batch, and contributes its share. */
static leati_value reduce_pairs(const leati_output_loss *loss, leati_graph *graph, leati_value y_true,
                                leati_value values, leati_value weights, leati_totals *totals) {
    if (weights != LEATI_NONE) weights = leati_total_rows(graph, totals, weights, false);
    return scaled(graph, reduce_values(loss, graph, y_true, values, weights, NULL),
                  leati_share_of_part(totals));
}

leati_value leati_loss_lower(const leati_output_loss *loss, leati_graph *graph, leati_value y_true,
                             leati_value y_pred, leati_value weights, leati_totals *totals) {
    leati_measure_options options = loss->options;
    const int32_t before = totals ? totals->count : 0;
    options.totals = totals;
    leati_value values = loss->type->measure.lower(graph, &options, y_true, y_pred);
    if (totals && loss->type->compares) return reduce_pairs(loss, graph, y_true, values, weights, totals);
    if (totals && totals->count > before) return reduce_whole(loss, graph, values, weights, totals);
    return reduce_values(loss, graph, y_true, values, weights, totals);
}
