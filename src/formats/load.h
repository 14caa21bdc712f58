/* SPDX-License-Identifier: Apache-2.0 */
/* The options of loading a model, and what a file says about its compilation. */
#ifndef LEATI_FORMATS_LOAD_H
#define LEATI_FORMATS_LOAD_H

#include "nn/model/model.h"

typedef struct leati_load {
    const leat_registry *registry; /* custom layers; NULL: none */
    bool compile;                  /* false: the compilation of the file is stored, but not used */
    bool hints;                    /* errors of the compilation say how to load the file without it */
} leati_load;

/* Reads the caller's options (NULL: the defaults).  Errors: LEAT_EINVAL. */
leat_status leati_load_read(leati_load *out, const leat_model_load_options *options, leat_error *err);

/* Compiles the model by a training_config in the form of Keras 2.3.1, or only stores the training_config. */
leat_status leati_load_compilation(leat_model *model, const json_t *training_config, const leati_load *load,
                                   leat_error *err);

/* Returns status, the result of reading the compilation.  After a failure, adds to the message how to load the file
 * without its compilation, if load->hints is true. */
leat_status leati_load_hint(leat_status status, const leati_load *load, leat_error *err);

#endif
