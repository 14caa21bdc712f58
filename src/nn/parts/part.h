/* SPDX-License-Identifier: Apache-2.0 */
/* Custom parts (include/leat/custom.h): losses, metrics, activations and other objects that a program registers by
 * name.  A registry and the models made with it share the list of registered parts, whose nodes never change: each node
 * lives as long as a list, an object or a later node holds it. */
#ifndef LEATI_NN_PARTS_PART_H
#define LEATI_NN_PARTS_PART_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/growing.h"
#include "base/os/library.h"
#include "engine/graph/callee.h"
#include "leat/custom.h"
#include "leat/error.h"
#include "leat/sequence.h"
#include "nn/config/field.h"
#include "nn/config/object.h"

typedef enum leati_part_kind {
    LEATI_PART_LOSS,
    LEATI_PART_METRIC,
    LEATI_PART_ACTIVATION,
    LEATI_PART_INITIALIZER,
    LEATI_PART_REGULARIZER,
    LEATI_PART_CONSTRAINT,
    LEATI_PART_OPTIMIZER
} leati_part_kind;

/* The members that all definitions of leat/custom.h have. */
typedef struct leati_part_spec {
    leati_part_kind kind;
    const char *name;
    const leat_layer_key *keys;
    size_t config_bytes;
    void *user;
    leat_status (*check)(void *config, void *user, leat_error *err);
    const void *definition; /* of the kind, in this version's size */
    size_t definition_bytes;
    size_t type_bytes; /* size of leati_part.type */
} leati_part_spec;

typedef struct leati_part leati_part;
struct leati_part {
    leati_part_kind kind;
    char name[LEAT_NAME_BYTES]; /* as registered: "MyLoss" or "package>MyLoss" */
    leati_part_spec spec;
    leati_field *fields; /* spec.keys, and a NULL key at the end */
    void *definition;    /* owned copy */
    void *type;          /* owned: the type descriptor that the folder of the kind makes; zeroed at first */
    leati_library *library; /* contains the functions; NULL: the program */
    const leati_part *next; /* held: the part that was registered before; NULL: none */
    atomic_int holders;
};

/* An object of a part: a part with the values of its keys, which the user's functions receive. */
typedef struct leati_part_object {
    leati_callee callee;    /* first, because the engine passes its address to our functions */
    const leati_part *part; /* held */
    bool is_function;       /* the configuration has only a name */
    char registered_name[LEAT_NAME_BYTES];
    /* followed by the user's struct */
} leati_part_object;

/* The beginning of what leati_fields_read_with receives as its context. */
typedef struct leati_part_scope {
    const leati_part *parts; /* the registered parts; NULL: none */
} leati_part_scope;

/* Returns the parts of a context of leati_fields_read_with; NULL without a context. */
static inline const leati_part *leati_parts_of(const void *context) {
    return context ? ((const leati_part_scope *)context)->parts : NULL;
}

/* Makes a part with one holder.  library may be NULL.  Errors: LEAT_EINVAL the definition. */
leat_status leati_part_create(leati_part **out, const leati_part_spec *spec, leati_library *library,
                              leat_error *err);
const leati_part *leati_part_hold(const leati_part *part);
/* Drops a holder and sets *part to NULL; NULL is allowed. */
void leati_part_release(const leati_part **part);

/* Returns "MyLoss" of "package>MyLoss". */
const char *leati_bare_name(const char *name);
/* True if both names are equal; if `bare`, also if they are equal without the package that only one of them has. */
bool leati_name_matches(const char *a, const char *b, bool bare);
/* True if a name is that of a class: it begins with a capital letter. */
bool leati_is_class_name(const char *name);
/* Writes "my_loss" for "package>MyLoss". */
void leati_snake_name(const char *name, char out[LEAT_NAME_BYTES]);

/* Returns the part that an object names; NULL if there is none.  A part whose full name, with its package, is that of
 * the object comes first.  If leat has an object of this name (is_builtin), no other part is considered; otherwise a
 * package that only one of both names has is ignored. */
const leati_part *leati_part_find(const leati_part *parts, leati_part_kind kind, const leati_object *object,
                                  bool is_builtin);
/* Returns the failure that leati_unknown_name returns, also with the names of registered parts, and with the function
 * that registers such a part. */
leat_status leati_part_unknown(leat_error *err, const leati_part *parts, leati_part_kind kind,
                               const char *name, const char *(*name_at)(int index));
/* Returns the noun for messages: "loss". */
const char *leati_part_noun(leati_part_kind kind);

/* Makes an object from a name or a configuration.  `ignored` (NULL-terminated, may be NULL) lists keys that the caller
 * reads. */
leat_status leati_part_object_create(leati_part_object **out, const leati_part *part,
                                     const leati_object *object, const char *const *ignored, leat_error *err);
void leati_part_object_destroy(leati_part_object **object);

/* Returns the values of the keys, as the user's functions receive them. */
const void *leati_part_settings(const leati_part_object *object);

/* Writes a function's name, or {"module": null, "class_name": ..., "config": ..., "registered_name": ...} (new
 * reference).  The configuration also gets those of the keys `kept` (NULL-terminated, may be NULL) that `source`, the
 * configuration that the object was read from, has. */
leat_status leati_part_object_write(const leati_part_object *object, const char *const *kept,
                                    const json_t *source, json_t **out, leat_error *err);
/* Writes a value of a part of this kind in the form of current Keras (new reference); NULL if `value` does not name a
 * part of the list, or without memory. */
json_t *leati_part_value_keras3(const leati_part *parts, leati_part_kind kind, const json_t *value);

/* ---- Keys, of parts and of custom layers ---- */

/* Checks that the member of a key, of `bytes` bytes (0: the key has no member), lies inside of config_bytes, that a key
 * of kind CHOICE has choices, and that no key before it has its name.  The kind must be known.  Errors: LEAT_EINVAL. */
leat_status leati_key_check(const leat_layer_key *keys, int index, size_t bytes, size_t config_bytes,
                            leat_error *err);

/* Returns the field that reads a key. */
leati_field leati_key_field(const leat_layer_key *key, const leati_field_kind *kind, size_t offset);

/* Rounds an offset up to the alignment of any type. */
size_t leati_align_for_any(size_t offset);

/* ---- Ops ---- */

/* Returns the view of an argument of a call. */
static inline leat_tensor leati_part_view(const leati_desc *desc, void *data) {
    return leat_tensor_view(desc->dtype, desc->rank, desc->shape, data);
}

/* The `infer` of a callee whose output is like its first input. */
leat_status leati_part_infer_same(const leati_callee *callee, int input_count, const leati_desc *inputs,
                                  leati_desc *outputs, leat_error *err);

/* Adds the call of an object with one input and one output, and returns the output. */
leati_value leati_part_lower(const leati_part_object *object, leati_graph *graph, leati_value x);

#endif
