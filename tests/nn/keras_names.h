/* SPDX-License-Identifier: Apache-2.0 */
/* What docs/keras-names.md says of names that leat does not know by itself, or knows in part. */
#ifndef LEAT_TESTS_NN_KERAS_NAMES_H
#define LEAT_TESTS_NN_KERAS_NAMES_H

/* The first rule whose module and patterns fit a name counts.  Where leat has the name, the rule's "no" does not
 * count. */
typedef struct names_rule {
    const char *module;   /* "losses"; "*": any module */
    const char *patterns; /* names with * and ?, separated by spaces */
    const char *state;    /* "yes", "partly" or "no" */
    const char *text;     /* the reason, or what leat has instead */
} names_rule;

extern const names_rule names_rules[]; /* ends with a NULL module */

#endif
