/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a sequence of arrays in the caller's memory.  Room: data. */
#include "leat/source.h"

#include <stdio.h>

#include "base/error.h"
#include "data/columns.h"
#include "tensor/sequence.h"

static leat_status add_part(leati_columns *columns, leat_batch_part part, const leat_array *arrays,
                            int32_t count, leat_error *err) {
    const leati_column_options plain = leati_column_options_default();
    if (count < 0) return leati_fail(err, LEAT_EINVAL, "expected at least 0 arrays, received %d", (int)count);
    if (!arrays && count > 0)
        return leati_fail(err, LEAT_EINVAL, "expected %d arrays, received NULL", (int)count);
    for (int32_t i = 0; i < count; ++i) {
        char origin[LEAT_NAME_BYTES + 16];
        const char *name = arrays[i].name && arrays[i].name[0] ? arrays[i].name : NULL;
        const leat_tensor *tensor = &arrays[i].tensor;
        if (name)
            snprintf(origin, sizeof origin, "%s", name);
        else
            snprintf(origin, sizeof origin, "array %d", (int)i);
        LEATI_TRY(leati_array_check(tensor, origin, err));
        leati_array array = leati_array_of(tensor, arrays[i].strides);
        LEATI_TRY(leati_columns_add(columns, part, name, &array, &plain, origin, err));
    }
    return LEAT_OK;
}

static leat_status open_arrays(leat_sequence *out, const leat_arrays *arrays,
                               const leat_source_options *options, leat_error *err) {
    leati_columns *columns = NULL;
    LEATI_TRY(leati_columns_create(&columns, options, NULL, NULL, err));
    leat_status status = add_part(columns, LEAT_PART_INPUT, arrays->inputs, arrays->input_count, err);
    if (status == LEAT_OK)
        status = add_part(columns, LEAT_PART_TARGET, arrays->targets, arrays->target_count, err);
    if (status == LEAT_OK)
        status = add_part(columns, LEAT_PART_SAMPLE_WEIGHT, arrays->sample_weights,
                          arrays->sample_weight_count, err);
    if (status == LEAT_OK) return leati_columns_finish(out, columns, err);
    leati_columns_destroy(columns);
    return status;
}

leat_status leat_arrays_open(leat_sequence *out, size_t size, const leat_arrays *arrays,
                             const leat_source_options *options, leat_error *err) {
    LEATI_GIVEN(out, err);
    leat_sequence made;
    leat_source_options all;
    LEATI_TRY(leati_sequence_begin(out, size, err));
    LEATI_GIVEN(arrays, err);
    LEATI_TRY(leati_source_options_read(options, &all, err));
    LEATI_TRY(open_arrays(&made, arrays, &all, err));
    leati_sequence_write(&made, out, size);
    return LEAT_OK;
}
