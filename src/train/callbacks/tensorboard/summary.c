/* SPDX-License-Identifier: Apache-2.0 */
/* Events of scalars and histograms.  Source: tensorboard/compat/proto/summary.proto and tensor.proto;
 * tensorboard/plugins/scalar/summary_v2.py and plugins/histogram/summary_v2.py.  Room: train. */
#include "train/callbacks/tensorboard/summary.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Fields of tensorboard.Event, Summary, Summary.Value, SummaryMetadata and its PluginData, TensorProto, and
 * TensorShapeProto with its Dim. */
enum {
    EVENT_SUMMARY = 5,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_TENSOR = 8,
    VALUE_METADATA = 9,
    METADATA_PLUGIN_DATA = 1,
    METADATA_DATA_CLASS = 4,
    PLUGIN_NAME = 1,
    TENSOR_DTYPE = 1,
    TENSOR_SHAPE = 2,
    TENSOR_CONTENT = 4,
    SHAPE_DIM = 2,
    DIM_SIZE = 1
};

/* Values of the enumerations DataType and DataClass. */
enum { DT_FLOAT = 1, DT_DOUBLE = 2, CLASS_SCALAR = 1, CLASS_TENSOR = 2 };

/* The two kinds of summaries. */
typedef struct summary_kind {
    const char *plugin; /* name of TensorBoard's plugin that shows the summary */
    int data_class, dtype;
} summary_kind;

static const summary_kind scalars = {"scalars", CLASS_SCALAR, DT_FLOAT};
static const summary_kind histograms = {"histograms", CLASS_TENSOR, DT_DOUBLE};

static void add_metadata(leati_message *message, const summary_kind *kind) {
    size_t metadata = leati_message_begin(message, VALUE_METADATA);
    size_t plugin = leati_message_begin(message, METADATA_PLUGIN_DATA);
    leati_message_text(message, PLUGIN_NAME, kind->plugin);
    leati_message_end(message, plugin);
    leati_message_int(message, METADATA_DATA_CLASS, kind->data_class);
    leati_message_end(message, metadata);
}

static void add_shape(leati_message *message, const int64_t *dims, int rank) {
    size_t shape = leati_message_begin(message, TENSOR_SHAPE);
    for (int i = 0; i < rank; ++i) {
        size_t dim = leati_message_begin(message, SHAPE_DIM);
        leati_message_int(message, DIM_SIZE, dims[i]);
        leati_message_end(message, dim);
    }
    leati_message_end(message, shape);
}

/* Writes an event with one tensor, whose numbers are in *content in little-endian order.  Frees *content. */
static leat_status write_tensor(leati_event_file *file, const summary_kind *kind, const char *tag,
                                int64_t step, const int64_t *dims, int rank, leati_message *content,
                                leat_error *err) {
    leati_message *message = leati_event_begin(file, step);
    size_t summary = leati_message_begin(message, EVENT_SUMMARY);
    size_t value = leati_message_begin(message, SUMMARY_VALUE);
    leati_message_text(message, VALUE_TAG, tag);
    size_t tensor = leati_message_begin(message, VALUE_TENSOR);
    leati_message_int(message, TENSOR_DTYPE, kind->dtype);
    add_shape(message, dims, rank);
    leati_message_bytes(message, TENSOR_CONTENT, content->data, content->length);
    leati_message_end(message, tensor);
    add_metadata(message, kind);
    leati_message_end(message, value);
    leati_message_end(message, summary);
    message->failed = message->failed || content->failed;
    leati_message_fini(content);
    return leati_event_end(file, err);
}

/* Rounds to float32.  A number beyond its range becomes infinite. */
static float to_float(double value) {
    if (isfinite(value) && fabs(value) > (double)FLT_MAX)
        return copysignf(INFINITY, (float)copysign(1, value));
    return (float)value;
}

leat_status leati_event_scalar(leati_event_file *file, const char *tag, double value, int64_t step,
                               leat_error *err) {
    leati_message content = {0};
    float number = to_float(value);
    uint32_t bits = 0;
    memcpy(&bits, &number, sizeof bits);
    leati_message_raw_u32(&content, bits);
    return write_tensor(file, &scalars, tag, step, NULL, 0, &content, err);
}

/* ---- Histograms ---- */

/* Returns the number of finite values, and sets their minimum and maximum. */
static int64_t find_range(const float *values, int64_t count, double *low, double *high) {
    int64_t finite = 0;
    float least = FLT_MAX, most = -FLT_MAX;
    for (int64_t i = 0; i < count; ++i) {
        if (!isfinite(values[i])) continue;
        if (values[i] < least) least = values[i];
        if (values[i] > most) most = values[i];
        ++finite;
    }
    *low = (double)least;
    *high = (double)most;
    return finite;
}

void leati_histogram(leati_bucket out[LEATI_BUCKETS], const float *values, int64_t count) {
    double low = 0, high = 0;
    int64_t finite = find_range(values, count, &low, &high);
    double width = (high - low) / LEATI_BUCKETS;
    memset(out, 0, LEATI_BUCKETS * sizeof *out);
    if (finite == 0) return;
    for (int i = 0; i < LEATI_BUCKETS; ++i) {
        out[i].left = low + width * i;
        out[i].right = i == LEATI_BUCKETS - 1 ? high : low + width * (i + 1);
    }
    if (low == high) {
        out[LEATI_BUCKETS - 1].count = (double)finite;
        return;
    }
    for (int64_t i = 0; i < count; ++i) {
        if (!isfinite(values[i])) continue;
        int bucket = (int)(((double)values[i] - low) / width);
        ++out[bucket < LEATI_BUCKETS ? bucket : LEATI_BUCKETS - 1].count;
    }
}

leat_status leati_event_histogram(leati_event_file *file, const char *tag, const float *values, int64_t count,
                                  int64_t step, leat_error *err) {
    leati_bucket buckets[LEATI_BUCKETS];
    leati_message content = {0};
    leati_histogram(buckets, values, count);
    for (int i = 0; i < LEATI_BUCKETS; ++i) {
        leati_message_raw_f64(&content, buckets[i].left);
        leati_message_raw_f64(&content, buckets[i].right);
        leati_message_raw_f64(&content, buckets[i].count);
    }
    return write_tensor(file, &histograms, tag, step, (const int64_t[]){LEATI_BUCKETS, 3}, 2, &content, err);
}
