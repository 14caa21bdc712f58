/* SPDX-License-Identifier: Apache-2.0 */
/* Initializers that draw no random numbers: Zeros, Ones, Constant, Identity. */
#include "nn/initializers/types.h"

#include "base/error.h"
#include "base/text.h"
#include "nn/config/array.h"

typedef struct constant_config {
    leati_value_array value;
} constant_config;

static const leati_field constant_fields[] = {
    {.key = "value", .kind = LEATI_FIELD_ARRAY, .offset = offsetof(constant_config, value), .preset = "0.0"},
    {.key = NULL},
};

typedef struct identity_config {
    double gain;
} identity_config;

static const leati_field identity_fields[] = {
    {.key = "gain", .kind = LEATI_FIELD_FLOAT, .offset = offsetof(identity_config, gain), .preset = "1.0"},
    {.key = NULL},
};

int64_t leati_shape_elements(int rank, const int64_t *dims) {
    int64_t count = 1;
    for (int i = 0; i < rank; ++i) {
        count *= dims[i];
    }
    return count;
}

static void fill(float value, int rank, const int64_t *dims, float *out) {
    int64_t count = leati_shape_elements(rank, dims);
    for (int64_t i = 0; i < count; ++i) {
        out[i] = value;
    }
}

static leat_status draw_zeros(const void *config, int rank, const int64_t *dims, leat_rng *rng, float *out,
                              leat_error *err) {
    (void)config, (void)rng, (void)err;
    fill(0.0f, rank, dims, out);
    return LEAT_OK;
}

static leat_status draw_ones(const void *config, int rank, const int64_t *dims, leat_rng *rng, float *out,
                             leat_error *err) {
    (void)config, (void)rng, (void)err;
    fill(1.0f, rank, dims, out);
    return LEAT_OK;
}

/* Returns true if numpy broadcasts the array to the shape: its dimensions are the last ones of the shape, or 1. */
static bool fits(const leati_value_array *array, int rank, const int64_t *dims) {
    bool right = array->rank <= rank;
    for (int i = 0; right && i < array->rank; ++i) {
        int64_t size = array->dims[array->rank - 1 - i];
        right = size == 1 || size == dims[rank - 1 - i];
    }
    return right;
}

/* Returns the index in the array of element `index` of a weight to which the array is broadcast. */
static int64_t source_of(const leati_value_array *array, int rank, const int64_t *dims, int64_t index) {
    int64_t source = 0, stride = 1;
    for (int i = 1; i <= array->rank; ++i) {
        int64_t size = array->dims[array->rank - i], at = index % dims[rank - i];
        if (size > 1) source += at * stride;
        stride *= size;
        index /= dims[rank - i];
    }
    return source;
}

/* As in Keras 2, an array of another shape with as many numbers is taken in its order; otherwise the array is
 * broadcast, as in current Keras. */
static leat_status draw_constant(const void *config, int rank, const int64_t *dims, leat_rng *rng, float *out,
                                 leat_error *err) {
    (void)rng;
    const leati_value_array *array = &((const constant_config *)config)->value;
    int64_t count = leati_shape_elements(rank, dims);
    bool same_count = leati_shape_elements(array->rank, array->dims) == count;
    char want[96], got[96];
    if (!same_count && !fits(array, rank, dims))
        return leati_fail(
            err, LEAT_ESHAPE,
            "initializer 'Constant': expected values that fit a weight of shape %s, received shape %s",
            leati_shape_text(want, sizeof want, rank, dims),
            leati_shape_text(got, sizeof got, array->rank, array->dims));
    for (int64_t i = 0; i < count; ++i)
        out[i] = (float)array->values[same_count ? i : source_of(array, rank, dims, i)];
    return LEAT_OK;
}

static leat_status draw_identity(const void *config, int rank, const int64_t *dims, leat_rng *rng, float *out,
                                 leat_error *err) {
    (void)rng;
    if (rank != 2) {
        return leati_fail(err, LEAT_ESHAPE,
                          "initializer 'Identity': expected a matrix, received a weight of rank %d", rank);
    }
    fill(0.0f, rank, dims, out);
    for (int64_t i = 0; i < dims[0] && i < dims[1]; ++i) {
        out[i * dims[1] + i] = (float)((const identity_config *)config)->gain;
    }
    return LEAT_OK;
}

const leati_initializer_type leati_initializer_zeros = {.class_name = "Zeros",
                                                        .names = (const char *const[]){"Zeros", "zeros",
                                                                                       "zero", NULL},
                                                        .seed_offset = SIZE_MAX,
                                                        .draw = draw_zeros};
const leati_initializer_type leati_initializer_ones = {.class_name = "Ones",
                                                       .names =
                                                           (const char *const[]){"Ones", "ones", "one", NULL},
                                                       .seed_offset = SIZE_MAX,
                                                       .draw = draw_ones};
const leati_initializer_type leati_initializer_constant = {.class_name = "Constant",
                                                           .names = (const char *const[]){"Constant",
                                                                                          "constant", NULL},
                                                           .config_bytes = sizeof(constant_config),
                                                           .fields = constant_fields,
                                                           .seed_offset = SIZE_MAX,
                                                           .draw = draw_constant};
const leati_initializer_type leati_initializer_identity = {.class_name = "Identity",
                                                           .names = (const char *const[]){"Identity",
                                                                                          "identity", NULL},
                                                           .config_bytes = sizeof(identity_config),
                                                           .fields = identity_fields,
                                                           .seed_offset = SIZE_MAX,
                                                           .draw = draw_identity};
