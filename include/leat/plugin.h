/* SPDX-License-Identifier: Apache-2.0 */
/* What a shared object must define to be named by the SPEC plugin:./name.so?options.  (One with layers, for the option --layers,
 * defines leat_plugin_register: leat/layer.h.)  A plugin is one C file:
 *
 *     #include "leat/plugin.h"
 *     LEAT_PLUGIN leat_status leat_plugin_open(leat_sequence *out, const char *options, int64_t batch_size,
 *                                              leat_error *err) { ... }
 *
 * compiled with `cc -shared -fPIC name.c -o name.so -lleat -lleat_feed`. */
#ifndef LEAT_PLUGIN_H
#define LEAT_PLUGIN_H

#include <stdint.h>

#include "leat/error.h"
#include "leat/sequence.h"

#if defined(__GNUC__)
#define LEAT_PLUGIN __attribute__((visibility("default")))
#else
#define LEAT_PLUGIN
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Fills *out, a sequence from leat_sequence_default().  `options` is what follows the `?` of the SPEC, as it was written
 *  ("" where there is none); borrowed for the call.  batch_size is what the caller asks for; out->spec.batch_size has the
 *  last word.  On failure return leat_error_set(err, LEAT_EUSER, ...) and own nothing; *out is then ignored.
 *  The object is unloaded after out->destroy. */
leat_status leat_plugin_open(leat_sequence *out, const char *options, int64_t batch_size, leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
