/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for the names of layers and models, which become paths in HDF5 files and appear on terminals. */
#ifndef LEATI_NN_CONFIG_NAME_H
#define LEATI_NN_CONFIG_NAME_H

#include "leat/error.h"

/* Checks a name: a text of 1 to LEAT_NAME_BYTES - 1 bytes of UTF-8 without control characters, which consists of parts
 * with a '/' between them.  No part is empty or ".", because HDF5 ignores such parts: "a/" would be the path of "a".
 * name NULL: there is no text.  Errors: LEAT_EINVAL. */
leat_status leati_name_check(const char *name, leat_error *err);

/* Writes `base` and `suffix` to `out`, which has LEAT_NAME_BYTES bytes.  A base that is too long is cut between two
 * characters. */
void leati_name_append(char *out, const char *base, const char *suffix);

#endif
