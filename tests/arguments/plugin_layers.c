/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object for leat_registry_load that registers no layer. */
#include "leat/layer.h"
#include "leat/plugin.h"

LEAT_PLUGIN leat_status leat_plugin_register(leat_registry *registry, leat_error *err) {
    (void)registry, (void)err;
    return LEAT_OK;
}
