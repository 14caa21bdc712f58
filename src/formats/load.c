/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the options of loading a model, and compiles the model as its file says.  Room: formats. */
#include "formats/load.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/growing.h"

static const leat_model_load_options defaults = {.compile = true};
static const leati_growing options_type = LEATI_GROWING(leat_model_load_options, compile, &defaults);

void leat_model_load_options_init(leat_model_load_options *options, size_t size) {
    leati_growing_init(&options_type, options, size);
}

leat_status leati_load_read(leati_load *out, const leat_model_load_options *options, leat_error *err) {
    leat_model_load_options all;
    LEATI_TRY(leati_growing_read(&options_type, options, &all, err));
    *out = (leati_load){.registry = all.registry, .compile = all.compile};
    return LEAT_OK;
}

leat_status leati_load_compilation(leat_model *model, const json_t *training_config, const leati_load *load,
                                   leat_error *err) {
    if (load->compile) return leati_model_compile_config(model, training_config, err);
    leati_model_store_compilation(model, training_config);
    return LEAT_OK;
}

leat_status leati_load_hint(leat_status status, const leati_load *load, leat_error *err) {
    if (status == LEAT_OK || status == LEAT_ENOMEM || !load->hints || !err) return status;
    size_t length = strlen(err->message);
    snprintf(err->message + length, sizeof err->message - length,
             "; to load the model without its compilation, call leat_model_load_using with the option "
             "compile = false");
    return status;
}
