/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one case on one backend.  The loss is the sum of all outputs, each element times a fixed random weight;
 * finite differences of that sum are computed in double, by a five-point stencil (error of order h^4). */
#include "ops/harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/ref/ref.h"
#include "base/memory.h"
#include "base/text.h"
#include "cmocka_all.h"
#include "engine/graph/build.h"
#include "engine/plan/plan.h"
#include "leat/rng.h"
#include "tensor/bfloat16.h"
#include "tensor/convert.h"

/* Half a unit in the last of eight binary digits, for the rounding of the result and of its operands. */
#define BF16_TOLERANCE 0.015

/* A case with its data. */
typedef struct subject {
    const op_case *c;
    const leati_op_descriptor *descriptor;
    void *data[OP_MAX_INPUTS];
    float *weights[LEATI_MAX_OUTPUTS]; /* weights of the loss */
    leati_desc outputs[LEATI_MAX_OUTPUTS];
} subject;

/* A plan for a case. */
typedef struct trial {
    leati_plan *plan;
    leati_arena *arena;
    unsigned char *states; /* memory of written inputs */
    leati_device *device;
    void *device_states; /* the same on the device */
    size_t state_bytes;
    size_t state_offset[OP_MAX_INPUTS];
    leati_value outputs[LEATI_MAX_OUTPUTS], gradients[OP_MAX_INPUTS];
} trial;

static void *allocate(size_t bytes) {
    void *memory = leati_calloc_aligned(bytes + 1);
    assert_non_null(memory);
    return memory;
}

static bool is_written(const subject *s, int i) {
    return s->descriptor->writes >> i & 1u;
}

static double draw(const op_input *input, leat_rng *rng) {
    double low = input->low, high = input->high;
    if (input->fill == OP_UNIFORM && low == 0 && high == 0) low = -1, high = 1;
    double value = low + (high - low) * leat_rng_uniform(rng);
    switch (input->fill) {
    case OP_SIGNED: return leat_rng_below(rng, 2) ? value : -value;
    case OP_WHOLE: return low + (double)leat_rng_below(rng, (uint64_t)(high - low) + 1);
    case OP_CONSTANT: return low;
    default: return value;
    }
}

static void write_number(leat_dtype dtype, void *data, int64_t i, double value) {
    leati_convert(dtype, (char *)data + (size_t)i * leat_dtype_bytes(dtype), LEAT_F64, &value, 1);
}

static void fill(const op_input *input, void *data, leat_rng *rng) {
    int64_t count = leati_desc_count(&input->desc);
    int64_t last = input->desc.rank > 0 ? input->desc.shape[input->desc.rank - 1] : 1, chosen = 0;
    for (int64_t i = 0; i < count; ++i) {
        double value = draw(input, rng);
        if (input->fill == OP_DISTINCT)
            value = input->low + (input->high - input->low) * ((double)i + 0.5) / (double)count;
        if (i % last == 0) chosen = (int64_t)leat_rng_below(rng, (uint64_t)last);
        if (input->fill == OP_ONE_HOT) value = i % last == chosen;
        write_number(input->desc.dtype, data, i, value);
    }
    for (int64_t i = count - 1; input->fill == OP_DISTINCT && i > 0; --i) {
        float *x = data, kept = x[i];
        int64_t j = (int64_t)leat_rng_below(rng, (uint64_t)i + 1);
        x[i] = x[j];
        x[j] = kept;
    }
}

static void subject_init(subject *s, const op_case *c) {
    leat_rng rng = leat_rng_for(7, (uint64_t)c->op, strlen(c->name));
    *s = (subject){.c = c, .descriptor = leati_op_descriptor_of(c->op)};
    for (int i = 0; i < c->input_count; ++i) {
        if (c->inputs[i].desc.rank < 0) continue;
        s->data[i] = allocate(leati_desc_bytes(&c->inputs[i].desc));
        fill(&c->inputs[i], s->data[i], &rng);
    }
}

static void subject_fini(subject *s) {
    for (int i = 0; i < OP_MAX_INPUTS; ++i) leati_free(s->data[i]);
    for (int i = 0; i < LEATI_MAX_OUTPUTS; ++i) leati_free(s->weights[i]);
}

static bool is_compared(const subject *s, int output) {
    return !(s->c->opaque >> output & 1u);
}

static bool reaches_loss(const subject *s, int output) {
    return is_compared(s, output) && s->outputs[output].dtype == LEAT_F32;
}

static bool is_differentiated(const subject *s, int i) {
    return s->descriptor->gradient && s->data[i] && s->c->inputs[i].desc.dtype == LEAT_F32 &&
           !(s->c->constant >> i & 1u);
}

/* Sets the descriptors of the outputs and the weights of the loss, once the shapes are known. */
static void learn_outputs(subject *s, const leati_graph *graph, const trial *t) {
    leat_rng rng = leat_rng_for(11, (uint64_t)s->c->op, 0);
    for (int k = 0; k < s->descriptor->outputs; ++k) {
        s->outputs[k] = *leati_graph_desc(graph, t->outputs[k]);
        if (s->weights[k]) continue;
        int64_t count = leati_desc_count(&s->outputs[k]);
        s->weights[k] = allocate((size_t)count * sizeof(float));
        for (int64_t i = 0; i < count; ++i) s->weights[k][i] = (float)(2 * leat_rng_uniform(&rng) - 1);
    }
}

static leati_value loss_of(const subject *s, leati_graph *g, const trial *t) {
    leati_value loss = leati_scalar(g, 0);
    for (int k = 0; k < s->descriptor->outputs; ++k) {
        if (!reaches_loss(s, k)) continue;
        leati_value weights = leati_graph_constant(g, &s->outputs[k], s->weights[k]);
        leati_value part = leati_reduce_all(g, LEATI_REDUCE_SUM, leati_mul(g, t->outputs[k], weights));
        loss = leati_add(g, loss, part);
    }
    return loss;
}

static void add_gradients(const subject *s, leati_graph *g, const leati_value *inputs, trial *t) {
    leat_error err = {0};
    leati_value wrt[OP_MAX_INPUTS], gradient[OP_MAX_INPUTS];
    int count = 0, at = 0;
    for (int i = 0; i < s->c->input_count; ++i)
        if (is_differentiated(s, i)) wrt[count++] = inputs[i];
    if (leati_graph_differentiate(g, loss_of(s, g, t), count, wrt, gradient, &err) != LEAT_OK)
        fail_msg("%s: %s", s->c->name, err.message);
    for (int i = 0; i < s->c->input_count; ++i) {
        if (!is_differentiated(s, i)) continue;
        t->gradients[i] = gradient[at++];
        assert_true(t->gradients[i] >= 0);
        leati_graph_keep(g, t->gradients[i]);
    }
}

/* The settings of one trial. */
typedef struct manner {
    const leati_backend *backend;
    int threads;
    bool gradients, bf16; /* bf16: every tensor that may be bf16 is */
    leati_device *device; /* NULL: the host */
} manner;

static leati_value make_input(const subject *s, leati_graph *g, int i, size_t state_offset) {
    const op_input *input = &s->c->inputs[i];
    if (input->desc.rank < 0) return LEATI_NONE;
    if (is_written(s, i)) return leati_graph_state(g, LEATI_SLAB_SLOT0, state_offset, &input->desc);
    return leati_graph_input(g, i, &input->desc);
}

/* A tensor that is kept between runs, which is never bf16. */
static leati_value as_kept(leati_graph *g, leati_value value) {
    if (leati_graph_value(g, value)->may_be_bf16)
        value = leati_graph_node(g, LEATI_OP_COPY, NULL, 1, &value, NULL);
    leati_graph_keep(g, value);
    return value;
}

static void trial_init(trial *t, subject *s, const manner *m) {
    const leati_backend *const backends[] = {m->backend, &leati_backend_ref, NULL};
    leat_error err = {0};
    leati_graph *g;
    leati_value inputs[OP_MAX_INPUTS], read[OP_MAX_INPUTS];
    size_t used = 0;
    *t = (trial){0};
    assert_int_equal(leati_graph_create(&g, &err), LEAT_OK);
    assert_int_equal(leati_arena_create_on(&t->arena, m->device, &err), LEAT_OK);
    for (int i = 0; i < s->c->input_count; ++i) {
        t->state_offset[i] = used;
        inputs[i] = make_input(s, g, i, used);
        read[i] = m->bf16 && !is_written(s, i) ? leati_graph_rounded_to_bf16(g, inputs[i]) : inputs[i];
        if (is_written(s, i) && inputs[i] >= 0) used += leati_align(leati_desc_bytes(&s->c->inputs[i].desc));
    }
    t->states = allocate(used);
    t->device = m->device;
    t->state_bytes = used;
    if (m->device)
        assert_int_equal(m->device->class->allocate(m->device, used, &t->device_states, &err), LEAT_OK);
    leati_graph_store_bf16(g, m->bf16);
    leati_graph_node(g, s->c->op, &s->c->attrs, s->c->input_count, read, t->outputs);
    if (s->c->then) t->outputs[0] = leati_eltwise_of(g, t->outputs[0], *s->c->then);
    leati_graph_store_bf16(g, false);
    if (leati_graph_check(g, &err) != LEAT_OK) fail_msg("%s: %s", s->c->name, err.message);
    for (int k = 0; k < s->descriptor->outputs; ++k)
        if (is_compared(s, k)) t->outputs[k] = as_kept(g, t->outputs[k]);
    learn_outputs(s, g, t);
    if (m->gradients && s->descriptor->gradient) add_gradients(s, g, inputs, t);
    leati_plan_options options = {.threads = m->threads, .backends = backends, .arena = t->arena};
    options.slabs[LEATI_SLAB_SLOT0] = m->device ? t->device_states : t->states;
    if (leati_plan_create(&t->plan, &g, &options, &err) != LEAT_OK)
        fail_msg("%s: %s", s->c->name, err.message);
}

static void trial_fini(trial *t) {
    leati_plan_destroy(&t->plan);
    leati_arena_destroy(&t->arena);
    if (t->device) t->device->class->release(t->device, t->device_states);
    leati_free(t->states);
}

static void trial_run(const trial *t, const subject *s) {
    const void *inputs[OP_MAX_INPUTS];
    leat_error err = {0};
    for (int i = 0; i < OP_MAX_INPUTS; ++i) {
        inputs[i] = s->data[i];
        if (s->data[i] && is_written(s, i))
            memcpy(t->states + t->state_offset[i], s->data[i], leati_desc_bytes(&s->c->inputs[i].desc));
    }
    const leati_device_class *class = t->device ? t->device->class : NULL;
    leat_status status = LEAT_OK;
    if (class) status = class->copy_in(t->device, t->device_states, t->states, t->state_bytes, &err);
    if (status == LEAT_OK) status = leati_plan_run(t->plan, inputs, 5, 3, &err);
    if (class && status == LEAT_OK)
        status = class->copy_out(t->device, t->states, t->device_states, t->state_bytes, &err);
    if (class && status == LEAT_OK) status = class->wait(t->device, &err);
    if (status != LEAT_OK) fail_msg("%s: %s", s->c->name, err.message);
}

static double loss_in_double(const trial *t, const subject *s) {
    double loss = 0;
    for (int k = 0; k < s->descriptor->outputs; ++k) {
        if (!reaches_loss(s, k)) continue;
        const float *output = leati_plan_output(t->plan, t->outputs[k]).data;
        int64_t count = leati_desc_count(&s->outputs[k]);
        for (int64_t i = 0; i < count; ++i) loss += (double)output[i] * (double)s->weights[k][i];
    }
    return loss;
}

static void report(const trial *t, const subject *s, const char *what, int64_t i, double got,
                   double expected) {
    leati_text text = {0};
    leati_plan_describe(t->plan, &text);
    print_message("%s", text.data ? text.data : "");
    leati_text_fini(&text);
    fail_msg("%s: %s [%lld]: got %.9g, expected %.9g", s->c->name, what, (long long)i, got, expected);
}

static void compare(const trial *t, const subject *s, const char *what, const float *got,
                    const float *expected, int64_t count, double tolerance) {
    double largest = 1e-3;
    for (int64_t i = 0; i < count; ++i)
        if (isfinite(expected[i])) largest = fmax(largest, fabs((double)expected[i]));
    for (int64_t i = 0; i < count; ++i) {
        double a = (double)got[i], b = (double)expected[i];
        bool same = a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * largest;
        if (!same) report(t, s, what, i, a, b);
    }
}

/* Compares the outputs, written states and gradients of two trials. */
static void compare_trials(const trial *got, const trial *expected, const subject *s, double tolerance) {
    char what[32];
    for (int k = 0; k < s->descriptor->outputs; ++k) {
        if (!is_compared(s, k)) continue;
        leat_tensor a = leati_plan_output(got->plan, got->outputs[k]);
        leat_tensor b = leati_plan_output(expected->plan, expected->outputs[k]);
        snprintf(what, sizeof what, "output %d", k);
        if (a.dtype == LEAT_F32)
            compare(got, s, what, a.data, b.data, leat_tensor_count(&a), tolerance);
        else if (leat_tensor_bytes(&a) > 0)
            assert_memory_equal(a.data, b.data, leat_tensor_bytes(&a));
    }
    for (int i = 0; i < s->c->input_count; ++i) {
        int64_t count = leati_desc_count(&s->c->inputs[i].desc);
        snprintf(what, sizeof what, "state or gradient of input %d", i);
        if (s->data[i] && is_written(s, i))
            compare(got, s, what, (const float *)(const void *)(got->states + got->state_offset[i]),
                    (const float *)(const void *)(expected->states + expected->state_offset[i]), count,
                    tolerance);
        if (is_differentiated(s, i))
            compare(got, s, what, leati_plan_output(got->plan, got->gradients[i]).data,
                    leati_plan_output(expected->plan, expected->gradients[i]).data, count,
                    tolerance < BF16_TOLERANCE ? 10 * tolerance : tolerance);
    }
}

/* Returns d loss / d data[i][element] = (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12 h. */
static double difference(const trial *forward, const subject *s, int i, int64_t element) {
    float *x = (float *)s->data[i] + element, kept = *x;
    double values[5];
    for (int k = 0; k < 5; ++k) {
        *x = kept + (float)((k - 2) * OP_STEP);
        trial_run(forward, s);
        values[k] = loss_in_double(forward, s);
    }
    *x = kept;
    return (8 * (values[3] - values[1]) - (values[4] - values[0])) / (12 * OP_STEP);
}

static void check_differences(const trial *t, const trial *forward, const subject *s) {
    enum { most = 40 };
    double tolerance = s->c->gradient_tolerance > 0 ? s->c->gradient_tolerance : 1e-3;
    for (int i = 0; i < s->c->input_count; ++i) {
        if (!is_differentiated(s, i)) continue;
        int64_t count = leati_desc_count(&s->c->inputs[i].desc), every = (count + most - 1) / most;
        float got[most], expected[most];
        int64_t checked = 0;
        const float *gradient = leati_plan_output(t->plan, t->gradients[i]).data;
        for (int64_t element = 0; element < count; element += every, ++checked) {
            got[checked] = gradient[element];
            expected[checked] = (float)difference(forward, s, i, element);
        }
        char what[64];
        snprintf(what, sizeof what, "gradient with respect to input %d, every %lldth element", i,
                 (long long)every);
        compare(t, s, what, got, expected, checked, tolerance);
    }
}

void op_check(const op_case *c, const leati_backend *backend, int threads) {
    subject s;
    trial t, reference, forward;
    subject_init(&s, c);
    trial_init(&t, &s, &(manner){.backend = backend, .threads = threads, .gradients = true});
    trial_run(&t, &s);
    if (backend != &leati_backend_ref) {
        trial_init(&reference, &s, &(manner){.backend = &leati_backend_ref, .threads = 1, .gradients = true});
        trial_run(&reference, &s);
        compare_trials(&t, &reference, &s, c->tolerance > 0 ? c->tolerance : 1e-5);
        trial_fini(&reference);
    }
    if (s.descriptor->gradient && !c->bends) {
        trial_init(&forward, &s, &(manner){.backend = &leati_backend_ref, .threads = 1});
        check_differences(&t, &forward, &s);
        trial_fini(&forward);
    }
    trial_fini(&t);
    subject_fini(&s);
}

/* Rounds the inputs to values that bf16 can represent, so that only computed values are rounded. */
static void round_inputs(const subject *s) {
    for (int i = 0; i < s->c->input_count; ++i) {
        float *x = s->data[i];
        if (!x || s->c->inputs[i].desc.dtype != LEAT_F32 || is_written(s, i)) continue;
        for (int64_t k = 0; k < leati_desc_count(&s->c->inputs[i].desc); ++k)
            x[k] = leati_bfloat16_to_float(leati_bfloat16_of_float(x[k]));
    }
}

void op_check_bf16(const op_case *c, const leati_backend *backend, int threads) {
    subject s;
    trial t, reference;
    subject_init(&s, c);
    round_inputs(&s);
    trial_init(&t, &s, &(manner){.backend = backend, .threads = threads, .gradients = true, .bf16 = true});
    trial_run(&t, &s);
    trial_init(&reference, &s, &(manner){.backend = &leati_backend_ref, .threads = 1, .gradients = true});
    trial_run(&reference, &s);
    compare_trials(&t, &reference, &s, BF16_TOLERANCE);
    trial_fini(&reference);
    trial_fini(&t);
    subject_fini(&s);
}

void op_check_on(const op_case *c, leati_device *device, bool bf16) {
    subject s;
    trial t, reference;
    double tolerance = c->tolerance > 0 ? c->tolerance : 1e-5;
    subject_init(&s, c);
    if (bf16) round_inputs(&s);
    trial_init(&t, &s,
               &(manner){.backend = &leati_backend_ref,
                         .threads = 1,
                         .gradients = true,
                         .bf16 = bf16,
                         .device = device});
    trial_init(&reference, &s, &(manner){.backend = &leati_backend_ref, .threads = 1, .gradients = true});
    trial_run(&reference, &s);
    for (int run = 0; run < 3; ++run) { /* piece by piece, recorded, repeated */
        trial_run(&t, &s);
        compare_trials(&t, &reference, &s, bf16 && tolerance < BF16_TOLERANCE ? BF16_TOLERANCE : tolerance);
    }
    trial_fini(&reference);
    trial_fini(&t);
    subject_fini(&s);
}
