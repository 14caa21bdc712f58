/* SPDX-License-Identifier: Apache-2.0 */
/* Opens sources of the kind plugin: a sequence from a shared object, which stays loaded until the sequence is
 * destroyed. Room: data. */
#include "leat/plugin.h"

#include "base/error.h"
#include "base/os/library.h"
#include "base/memory.h"
#include "data/kinds.h"
#include "tensor/sequence.h"

typedef leat_status plugin_open(leat_sequence *out, const char *options, int64_t batch_size, leat_error *err);

/* Room for the sequence of a plugin: one that was compiled against a newer header fills a longer struct. */
typedef union made_by_plugin {
    leat_sequence sequence;
    unsigned char room[sizeof(leat_sequence) + LEATI_GROWING_MARGIN];
} made_by_plugin;

/* The `user` of the outer sequence, whose functions call those of the plugin's sequence, `inner`. */
typedef struct plugin {
    leati_library *library;
    leat_sequence inner;
} plugin;

static int64_t length(void *user) {
    plugin *p = user;
    return p->inner.length(p->inner.user);
}

static leat_status get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    plugin *p = user;
    return p->inner.get(p->inner.user, index, rng, batch, err);
}

static int64_t samples(void *user) {
    plugin *p = user;
    return p->inner.samples(p->inner.user);
}

static leat_status get_samples(void *user, const int64_t *numbers, int64_t count, leat_rng *rng,
                               leat_batch *batch, leat_error *err) {
    plugin *p = user;
    return p->inner.get_samples(p->inner.user, numbers, count, rng, batch, err);
}

static leat_status get_plain(void *user, const int64_t *numbers, int64_t count, leat_rng *rng,
                             leat_batch *batch, leat_error *err) {
    plugin *p = user;
    return p->inner.get_plain(p->inner.user, numbers, count, rng, batch, err);
}

static leat_status on_epoch_end(void *user, int64_t pass, leat_error *err) {
    plugin *p = user;
    return p->inner.on_epoch_end(p->inner.user, pass, err);
}

static leat_status worker_init(void *user, int worker, leat_error *err) {
    plugin *p = user;
    return p->inner.worker_init(p->inner.user, worker, err);
}

static void worker_fini(void *user, int worker) {
    plugin *p = user;
    p->inner.worker_fini(p->inner.user, worker);
}

static void destroy(void *user) {
    plugin *p = user;
    leat_sequence_destroy(&p->inner);
    leati_library_close(&p->library);
    leati_free(p);
}

/* Calls the plugin's entry function and checks the sequence that it has made. */
static leat_status call_entry(plugin *p, const char *path, const char *query, int64_t batch_size,
                              leat_error *err) {
    plugin_open *entry = NULL;
    LEATI_TRY(leati_library_function(p->library, "leat_plugin_open", &entry, sizeof entry, err));
    made_by_plugin made = {.sequence = leat_sequence_default()};
    leat_status status = entry(&made.sequence, query, batch_size, err);
    if (status == LEAT_OK) status = leati_sequence_read(&made.sequence, &p->inner, err);
    if (status != LEAT_OK) return leati_prefix(status, err, "plugin '%s'", path);
    if (!p->inner.length || !p->inner.get || p->inner.spec.batch_size < 1 || p->inner.spec.tensor_count < 1)
        return leati_fail(err, LEAT_EINVAL,
                          "plugin '%s' did not set length, get, spec.batch_size or spec.tensors", path);
    return LEAT_OK;
}

leat_status leati_open_plugin(leat_sequence *out, const leati_spec *spec, const char *text,
                              const leati_settings *settings, const leat_source_options *options,
                              leat_error *err) {
    (void)settings;
    plugin *p = leati_calloc(1, sizeof *p);
    if (!p) return leati_fail_memory(err, sizeof *p, "a plugin");
    leat_status status = leati_library_open(&p->library, spec->paths[0], err);
    if (status == LEAT_OK)
        status = call_entry(p, spec->paths[0], leati_spec_query(text), options->batch_size, err);
    if (status != LEAT_OK) {
        destroy(p);
        return status;
    }
    *out = p->inner;
    out->user = p;
    out->length = length;
    out->get = get;
    out->samples = p->inner.samples ? samples : NULL;
    out->get_samples = p->inner.get_samples ? get_samples : NULL;
    out->get_plain = p->inner.get_plain ? get_plain : NULL;
    out->on_epoch_end = p->inner.on_epoch_end ? on_epoch_end : NULL;
    out->worker_init = p->inner.worker_init ? worker_init : NULL;
    out->worker_fini = p->inner.worker_fini ? worker_fini : NULL;
    out->destroy = destroy;
    return LEAT_OK;
}
