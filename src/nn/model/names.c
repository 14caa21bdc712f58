/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the names of layers, losses and so on that leat knows, sorted.  Room: nn. */
#include <string.h>

#include "leat/model.h"
#include "nn/activations/activation.h"
#include "nn/constraints/constraint.h"
#include "nn/initializers/types.h"
#include "nn/layers/types.h"
#include "nn/losses/types.h"
#include "nn/metrics/types.h"
#include "nn/optimizers/types.h"
#include "nn/regularizers/regularizer.h"

/* At least the length of the longest list, which a test checks. */
enum { most_names = 512 };

typedef struct names {
    const char *sorted[most_names];
    int count;
} names;

/* For each kind, a function that returns its names: index from 0, in any order; NULL at the end. */
static const char *(*const sources[])(int index) = {
    [LEAT_NAMES_LAYERS] = leati_layer_name_at,
    [LEAT_NAMES_LOSSES] = leati_loss_name_at,
    [LEAT_NAMES_METRICS] = leati_metric_name_at,
    [LEAT_NAMES_OPTIMIZERS] = leati_optimizer_name_at,
    [LEAT_NAMES_ACTIVATIONS] = leati_activation_name_at,
    [LEAT_NAMES_INITIALIZERS] = leati_initializer_name_at,
    [LEAT_NAMES_REGULARIZERS] = leati_regularizer_name_at,
    [LEAT_NAMES_CONSTRAINTS] = leati_constraint_name_at,
};

/* Inserts a name in order, unless the list has it. */
static void insert(names *to, const char *name) {
    int at = to->count;
    while (at > 0 && strcmp(to->sorted[at - 1], name) > 0) --at;
    if (to->count == most_names || (at > 0 && strcmp(to->sorted[at - 1], name) == 0)) return;
    memmove(to->sorted + at + 1, to->sorted + at, (size_t)(to->count - at) * sizeof *to->sorted);
    to->sorted[at] = name;
    ++to->count;
}

/* Sorts the list at each call, since it is short: so the library needs neither memory nor a lock for it. */
static void collect(names *out, leat_name_kind kind) {
    out->count = 0;
    if ((unsigned)kind >= sizeof sources / sizeof *sources) return;
    const char *name;
    for (int i = 0; (name = sources[kind](i)) != NULL; ++i) insert(out, name);
}

int leat_name_count(leat_name_kind kind) {
    names all;
    collect(&all, kind);
    return all.count;
}

const char *leat_name_get(leat_name_kind kind, int index) {
    names all;
    collect(&all, kind);
    return index >= 0 && index < all.count ? all.sorted[index] : NULL;
}
