/* SPDX-License-Identifier: Apache-2.0 */
/* Custom initializers: the user's functions fill the weights, with random numbers of leat's.  Room: nn. */
#include <string.h>

#include "base/error.h"
#include "engine/graph/build.h"
#include "nn/initializers/initializer.h"

/* The type of all custom initializers; leati_initializer.object has the rest. */
static const leati_initializer_type custom_type = {.class_name = "custom", .seed_offset = SIZE_MAX};

static const char *const common_keys[] = {"dtype", "seed", NULL};

/* True if the definition has a key of this name. */
static bool has_key(const leati_part *part, const char *key) {
    for (const leati_field *field = part->fields; field->key; ++field)
        if (strcmp(field->key, key) == 0) return true;
    return false;
}

leat_status leati_custom_initializer_read(leati_initializer *out, const leati_part *part,
                                          const leati_object *object, leat_error *err) {
    const json_t *seed = json_object_get(object->config, "seed");
    out->type = &custom_type;
    out->seed = INT64_MIN;
    if (json_is_integer(seed)) out->seed = (int64_t)json_integer_value(seed);
    if (seed && !json_is_integer(seed) && !json_is_null(seed) && !has_key(part, "seed"))
        return leati_fail(err, LEAT_EINVAL, "initializer '%s': seed: expected an integer or null",
                          part->name);
    return leati_part_object_create(&out->object, part, object, common_keys, err);
}

leat_status leati_custom_initializer_write(const leati_initializer *initializer, json_t **out,
                                           leat_error *err) {
    *out = NULL;
    json_t *source = initializer->seed == INT64_MIN ? NULL : json_pack("{s:I}", "seed", initializer->seed);
    if (initializer->seed != INT64_MIN && !source)
        return leati_fail(err, LEAT_ENOMEM, "no memory for an initializer");
    leat_status status = leati_part_object_write(initializer->object, common_keys, source, out, err);
    json_decref(source);
    return status;
}

leat_status leati_custom_initializer_draw(const leati_initializer *initializer, int rank, const int64_t *dims,
                                          leat_rng *rng, float *out, leat_error *err) {
    const leat_initializer_definition *d = initializer->object->part->definition;
    const leati_desc desc = leati_desc_make(LEAT_F32, rank, dims);
    const leat_initializer_call call = {.size = sizeof call,
                                        .config = leati_part_settings(initializer->object),
                                        .user = d->user,
                                        .rank = rank,
                                        .shape = dims,
                                        .count = leati_desc_count(&desc),
                                        .rng = rng,
                                        .weight = out};
    return leati_prefix(d->fill(&call, err), err, "initializer '%s'", d->name);
}
