/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes SPECs: the parser of the text, and the options of every kind of source.  The files do not exist. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/spec.h"
#include "fuzz.h"
#include "leat/source.h"

/* Opens the text inside of a combination. */
static void open_inside(const char *format, const char *text) {
    char spec[512];
    leat_sequence sequence;
    leat_error err = {0};
    snprintf(spec, sizeof spec, format, text);
    if (leat_source_open(&sequence, sizeof sequence, spec, NULL, &err) == LEAT_OK || err.message[0] == '\0')
        abort();
}

static void open_with(const char *kind, const char *options) {
    char spec[512];
    leat_sequence sequence;
    leat_error err = {0};
    snprintf(spec, sizeof spec, "%s:/nowhere/at/all?%s", kind, options);
    if (leat_source_open(&sequence, sizeof sequence, spec, NULL, &err) == LEAT_OK || err.message[0] == '\0')
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char text[400];
    leati_spec spec;
    if (size >= sizeof text) return 0;
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    if (leati_spec_parse(&spec, text, NULL) == LEAT_OK) leati_spec_fini(&spec);
    open_with("npy", text);
    open_with("npz", text);
    open_with("idx", text);
    open_with("images", text);
    open_inside("concat(npy:/nowhere/at/all; %s)", text);
    open_inside("take(npy:/nowhere/at/all; count=1%s", text);
    return 0;
}
