/* SPDX-License-Identifier: Apache-2.0 */
/* Batch specifications, and the default and the end of a sequence.  Room: tensor. */
#include "tensor/sequence.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

static const leati_growing type = LEATI_GROWING(leat_sequence, get, NULL);

void leat_sequence_init(leat_sequence *sequence, size_t size) {
    leati_growing_init(&type, sequence, size);
}

leat_status leati_sequence_read(const leat_sequence *in, leat_sequence *out, leat_error *err) {
    if (!in) return leati_fail(err, LEAT_EINVAL, "the sequence is NULL");
    return leati_growing_read(&type, in, out, err);
}

leat_status leati_sequence_begin(leat_sequence *out, size_t size, leat_error *err) {
    LEATI_TRY(leati_growing_fits(&type, size, err));
    leati_growing_report(NULL, sizeof *out, out, size);
    return LEAT_OK;
}

void leati_sequence_write(const leat_sequence *in, leat_sequence *out, size_t size) {
    leati_growing_write(&type, in, out, size);
}

static leat_status check_shape(int rank, const int64_t *shape, leat_error *err) {
    if (rank < 0 || rank > LEAT_MAX_RANK - 1)
        return leati_fail(err, LEAT_ESHAPE, "expected a sample of rank 0 to %d, received rank %d",
                          LEAT_MAX_RANK - 1, rank);
    for (int i = 0; i < rank; ++i)
        if (shape[i] < 1)
            return leati_fail(err, LEAT_ESHAPE,
                              "dimension %d of a sample: expected at least 1, received %lld", i,
                              (long long)shape[i]);
    return LEAT_OK;
}

leat_status leati_fail_tensors(leat_error *err) {
    return leati_fail(
        err, LEAT_EINVAL,
        "expected at most %d tensors in a batch: inputs, targets and sample weights; where a model "
        "has more inputs, put another one in front of it that cuts them out of a single array "
        "(docs/caveats.md)",
        LEAT_BATCH_MAX_TENSORS);
}

leat_status leat_batch_spec_add(leat_batch_spec *spec, leat_batch_part part, const char *name,
                                leat_dtype dtype, int rank, const int64_t *shape, leat_error *err) {
    LEATI_GIVEN(spec, err);
    if (rank > 0) LEATI_GIVEN(shape, err);
    if ((int)part < LEAT_PART_INPUT || (int)part > LEAT_PART_SAMPLE_WEIGHT)
        return leati_fail(
            err, LEAT_EINVAL,
            "expected a part of a batch (input, target or sample weight), received the number %d", (int)part);
    if (spec->tensor_count >= LEAT_BATCH_MAX_TENSORS) return leati_fail_tensors(err);
    if (spec->tensor_count > 0 && spec->tensors[spec->tensor_count - 1].part > part)
        return leati_fail(err, LEAT_EINVAL, "expected inputs first, then targets, then sample weights");
    if (name && strlen(name) >= LEAT_NAME_BYTES)
        return leati_fail(err, LEAT_EINVAL,
                          "expected a tensor's name of fewer than %d bytes, received '%.80s...'",
                          LEAT_NAME_BYTES, name);
    if (leat_dtype_bytes(dtype) == 0)
        return leati_fail(err, LEAT_EDTYPE, "expected a data type, received the number %d", (int)dtype);
    LEATI_TRY(check_shape(rank, shape, err));
    leat_tensor_spec *tensor = &spec->tensors[spec->tensor_count++];
    *tensor = (leat_tensor_spec){.part = part, .dtype = dtype, .rank = rank};
    snprintf(tensor->name, sizeof tensor->name, "%s", name ? name : "");
    for (int i = 0; i < rank; ++i) tensor->shape[i] = shape[i];
    return LEAT_OK;
}

int leat_batch_spec_count(const leat_batch_spec *spec, leat_batch_part part) {
    if (!spec) return 0;
    int count = 0;
    for (int i = 0; i < spec->tensor_count; ++i) count += spec->tensors[i].part == part;
    return count;
}

int leat_batch_spec_first(const leat_batch_spec *spec, leat_batch_part part) {
    if (!spec) return 0;
    int first = 0;
    while (first < spec->tensor_count && spec->tensors[first].part < part) ++first;
    return first;
}

void leat_sequence_destroy(leat_sequence *sequence) {
    if (!sequence) return;
    if (sequence->size >= type.least && sequence->destroy) sequence->destroy(sequence->user);
    leati_growing_clear(&type, sequence);
}

static leat_status check_tensor(const leat_tensor_spec *tensor, int i, leat_error *err) {
    if ((int)tensor->part < LEAT_PART_INPUT || (int)tensor->part > LEAT_PART_SAMPLE_WEIGHT)
        return leati_fail(err, LEAT_EINVAL, "tensor %d ('%s'): unknown part %d", i, tensor->name,
                          (int)tensor->part);
    if (leat_dtype_bytes(tensor->dtype) == 0)
        return leati_fail(err, LEAT_EDTYPE, "tensor %d ('%s'): unknown data type %d", i, tensor->name,
                          (int)tensor->dtype);
    if (tensor->rank < 0 || tensor->rank > LEAT_MAX_RANK - 1)
        return leati_fail(err, LEAT_ESHAPE,
                          "tensor %d ('%s'): expected a sample of rank 0 to %d, received %d", i, tensor->name,
                          LEAT_MAX_RANK - 1, (int)tensor->rank);
    for (int d = 0; d < tensor->rank; ++d)
        if (tensor->shape[d] < 1)
            return leati_fail(err, LEAT_ESHAPE,
                              "tensor %d ('%s'): dimension %d of a sample is %lld, expected at least 1", i,
                              tensor->name, d, (long long)tensor->shape[d]);
    return LEAT_OK;
}

leat_status leati_batch_spec_check(const leat_batch_spec *spec, leat_error *err) {
    if (spec->batch_size < 1)
        return leati_fail(err, LEAT_ESHAPE, "the specification's batch_size is %lld, expected at least 1",
                          (long long)spec->batch_size);
    if (spec->tensor_count < 1 || spec->tensor_count > LEAT_BATCH_MAX_TENSORS)
        return leati_fail(err, LEAT_ESHAPE, "the specification has %d tensors, expected 1 to %d",
                          (int)spec->tensor_count, LEAT_BATCH_MAX_TENSORS);
    for (int i = 0; i < spec->tensor_count; ++i) LEATI_TRY(check_tensor(&spec->tensors[i], i, err));
    return LEAT_OK;
}
