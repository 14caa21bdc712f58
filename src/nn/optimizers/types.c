/* SPDX-License-Identifier: Apache-2.0 */
/* The table of optimizers.  A new optimizer is a file in this folder, a line in types.h and a line here. */
#include "nn/optimizers/types.h"

#include <strings.h>

const leati_optimizer_type *const leati_optimizer_types[] = {
    &leati_optimizer_sgd,
    &leati_optimizer_rmsprop,
    &leati_optimizer_adagrad,
    &leati_optimizer_adadelta,
    &leati_optimizer_adam,
    &leati_optimizer_adamax,
    &leati_optimizer_nadam,
    &leati_optimizer_adamw,
    &leati_optimizer_lion,
    &leati_optimizer_adafactor,
    &leati_optimizer_ftrl,
    &leati_optimizer_lamb,
    &leati_optimizer_muon,
    &leati_optimizer_schedule_free_adamw,
    NULL,
};

const leati_optimizer_type *leati_optimizer_find(const char *name) {
    const leati_optimizer_type *const *type = leati_optimizer_types;
    while (*type && strcasecmp((*type)->class_name, name) != 0) ++type;
    return *type;
}

const char *leati_optimizer_name_at(int index) {
    const leati_optimizer_type *type = leati_optimizer_types[index];
    return type ? type->class_name : NULL;
}
