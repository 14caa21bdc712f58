/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins with data: shared objects that the SPEC plugin:./name.so?options names.  (Plugins with custom layers,
 * for the command line option --layers, define leat_plugin_register: leat/layer.h.) A plugin is one C file:
 *
 *     #include "leat/plugin.h"
 *     LEAT_PLUGIN leat_status leat_plugin_open(leat_sequence *out, const char *options, int64_t batch_size,
 *                                              leat_error *err) { ... }
 *
 * It is compiled by `cc -shared -fPIC name.c -o name.so -lleat -lleat_feed`. */
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

/** Creates the sequence of a plugin.  The plugin defines this function; leat calls it.
 *  @param out  The sequence to fill in; leat has initialized it like leat_sequence_default().
 *  @param options  The part of the SPEC behind the `?`, unchanged; "" if there is none.  Borrowed for the call.
 *  @param batch_size  The batch size that the caller wishes.  The plugin decides: it sets out->spec.batch_size.
 *
 *  leat unloads the shared object after it has called out->destroy.
 *  Errors: those that the plugin chooses.  On failure free everything and return leat_error_set(err, LEAT_EUSER,
 *  ...); leat then ignores *out.
 *  Threads: leat calls it on the thread that opens the source. */
leat_status leat_plugin_open(leat_sequence *out, const char *options, int64_t batch_size, leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
