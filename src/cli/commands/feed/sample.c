/* SPDX-License-Identifier: Apache-2.0 */
/* Reads single samples of a source.  Room: cli. */
#include "cli/commands/feed/sample.h"

#include <stdlib.h>
#include <string.h>

#include "cli/options/parse.h"
#include "cli/text/say.h"
#include "leat/model.h"
#include "leat/source.h"

/* Gives the tensors of the batch the shapes that the specification allows. */
static void set_shapes(cli_samples *s) {
    const leat_batch_spec *spec = &s->data->spec;
    s->batch.size = 1;
    for (int i = 0; i < spec->tensor_count; ++i) {
        leat_tensor *tensor = &s->batch.tensors[i];
        tensor->data = s->memory[i];
        tensor->shape[0] = 1;
        for (int k = 0; k < spec->tensors[i].rank; ++k) tensor->shape[k + 1] = spec->tensors[i].shape[k];
    }
}

static int set_up_batch(cli_samples *s, const char *command) {
    const leat_batch_spec *spec = &s->data->spec;
    s->batch.tensor_count = spec->tensor_count;
    set_shapes(s);
    for (int i = 0; i < spec->tensor_count; ++i) {
        leat_tensor *tensor = &s->batch.tensors[i];
        tensor->dtype = spec->tensors[i].dtype;
        tensor->rank = spec->tensors[i].rank + 1;
        const size_t bytes = (leat_tensor_bytes(tensor) + 63) / 64 * 64;
        s->memory[i] = aligned_alloc(64, bytes ? bytes : 64);
        if (s->memory[i]) continue;
        cli_say("leat %s: out of memory\n", command);
        return CLI_FAILURE;
    }
    return CLI_SUCCESS;
}

int cli_samples_open(cli_samples *out, cli_session *session, const char *spec) {
    leat_error err = {0};
    char *files = NULL;
    *out = (cli_samples){.data = &session->data};
    session->batch_size = 1;
    int code = cli_open_data(session, &session->data, spec);
    if (code != CLI_SUCCESS) return code;
    const leat_sequence *data = &session->data;
    if (!data->get_samples &&
        (!data->get || data->spec.batch_size != 1 || data->length(data->user) == LEAT_LENGTH_INFINITE)) {
        cli_say("leat %s: '%s' has neither access by sample nor batches of one sample\n", session->command,
                spec);
        return CLI_FAILURE;
    }
    if (leat_source_files(spec, &files, &err) == LEAT_OK) out->files = json_loads(files, 0, NULL);
    leat_string_free(files);
    return set_up_batch(out, session->command);
}

int cli_samples_share(cli_samples *out, const cli_samples *from, const char *command) {
    *out = (cli_samples){.data = from->data, .files = json_incref(from->files)};
    return set_up_batch(out, command);
}

void cli_samples_close(cli_samples *samples) {
    for (int i = 0; i < LEAT_BATCH_MAX_TENSORS; ++i) free(samples->memory[i]);
    json_decref(samples->files);
    *samples = (cli_samples){0};
}

int64_t cli_samples_count(const cli_samples *samples) {
    const leat_sequence *data = samples->data;
    return data->get_samples ? data->samples(data->user) : data->length(data->user);
}

leat_status cli_samples_read(cli_samples *samples, int64_t number, bool is_plain, leat_error *err) {
    const leat_sequence *data = samples->data;
    leat_rng rng = leat_rng_for(0, 0, (uint64_t)number);
    set_shapes(samples);
    if (!data->get_samples) return data->get(data->user, number, &rng, &samples->batch, err);
    return (is_plain && data->get_plain ? data->get_plain : data->get_samples)(data->user, &number, 1, &rng,
                                                                               &samples->batch, err);
}

char *cli_samples_name(const cli_samples *samples, int64_t number) {
    const leat_rng rng = leat_rng_for(0, 0, (uint64_t)number);
    char *name = NULL;
    return leat_source_sample_name(samples->data, number, &rng, &name, NULL) == LEAT_OK ? name : NULL;
}

const char *cli_samples_class_name(const cli_samples *samples, int64_t number) {
    return number < 0 ? NULL
                      : json_string_value(
                            json_array_get(json_object_get(samples->files, "classes"), (size_t)number));
}

/* Returns the place of the only 1 in a row of zeros; -1: the row is none of that form. */
static int64_t place_of_one(const float *row, int64_t count) {
    int64_t place = -1;
    for (int64_t i = 0; i < count; ++i) {
        if (row[i] == 0) continue;
        if (row[i] != 1 || place >= 0) return -1;
        place = i;
    }
    return place;
}

int64_t cli_samples_class(const cli_samples *samples) {
    const int first = leat_batch_spec_first(&samples->data->spec, LEAT_PART_TARGET);
    if (leat_batch_spec_count(&samples->data->spec, LEAT_PART_TARGET) == 0) return -1;
    const leat_tensor *target = &samples->batch.tensors[first];
    const int64_t count = leat_tensor_count(target);
    if (target->dtype == LEAT_F32 && count > 1)
        return target->rank == 2 ? place_of_one(target->data, count) : -1;
    if (count != 1) return -1;
    switch (target->dtype) {
    case LEAT_U8: return *(const uint8_t *)target->data;
    case LEAT_I32: return *(const int32_t *)target->data;
    case LEAT_I64: return *(const int64_t *)target->data;
    case LEAT_F32: {
        const float value = *(const float *)target->data;
        return value == 0 || value == 1 ? (int64_t)value : -1;
    }
    default: return -1;
    }
}
