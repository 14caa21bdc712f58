/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses by a measurement who computes a convolution: leat's own kernel, or cuDNN with channels last or first, with
 * one of its algorithms.  Equal convolutions are measured once in a device's life, and all measurements together take
 * about two seconds; what comes later follows rules (ops/conv.c).  Room: backends/cuda. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/ops/conv_state.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/os/clock.h"

/* A convolution that was measured. */
typedef struct measured {
    leati_op op;
    leat_dtype dtype;
    uint32_t kinds; /* of what follows */
    bool tf32, has_bias;
    leati_geometry g;
    leati_cuda_conv_choice choice;
} measured;

struct leati_cuda_conv_choices {
    measured *list;
    size_t count;
    int64_t spent_ns;
};

static const int64_t most_ns = 2000000000;
static const double least_products = 2e7; /* below, a launch takes longer than the products */

void leati_cuda_conv_forget(leati_cuda *cuda) {
    if (cuda->conv_choices) leati_free(cuda->conv_choices->list);
    leati_free(cuda->conv_choices);
    cuda->conv_choices = NULL;
}

void leati_cuda_set_conv_way(leati_device *device, int way) {
    leati_cuda_of(device)->conv_way = way;
}

static measured describe(const leati_task *task, const leati_geometry *g) {
    return (measured){.op = task->op,
                      .dtype = task->inputs[0].dtype,
                      .kinds = task->attrs->post.kinds,
                      .tf32 = task->device->tf32,
                      .has_bias = leati_op_inputs(task) > 2 && task->inputs[2].rank >= 0,
                      .g = *g};
}

static bool is_equal(const measured *a, const measured *b) {
    return a->op == b->op && a->dtype == b->dtype && a->kinds == b->kinds && a->tf32 == b->tf32 &&
           a->has_bias == b->has_bias && memcmp(&a->g, &b->g, sizeof a->g) == 0;
}

/* ---- One measurement ---- */

/* The arguments of a task in memory of their own. */
typedef struct arguments {
    void *at[LEATI_MAX_INPUTS + LEATI_MAX_OUTPUTS];
    void *memory, *scratch;
    size_t scratch_bytes;
} arguments;

static size_t padded_bytes(const leati_desc *desc) {
    if (desc->rank < 0) return 0;
    return leati_device_align(leati_desc_bytes(desc));
}

static leat_status allocate(const leati_task *task, arguments *out, leat_error *err) {
    size_t total = 0, offset = 0;
    for (int i = 0; i < task->input_count; ++i) total += padded_bytes(&task->inputs[i]);
    for (int i = 0; i < task->output_count; ++i) total += padded_bytes(&task->outputs[i]);
    LEATI_TRY(task->device->class->allocate(task->device, total, &out->memory, err));
    for (int i = 0; i < task->input_count + task->output_count; ++i) {
        bool output = i >= task->input_count;
        const leati_desc *desc = output ? &task->outputs[i - task->input_count] : &task->inputs[i];
        bool absent = output ? task->unused >> (i - task->input_count) & 1 : desc->rank < 0;
        out->at[i] = absent ? NULL : (unsigned char *)out->memory + offset;
        offset += padded_bytes(desc);
    }
    return LEAT_OK;
}

static leat_status give_scratch(leati_device *device, arguments *a, size_t bytes, leat_error *err) {
    if (bytes <= a->scratch_bytes) return LEAT_OK;
    device->class->release(device, a->scratch);
    a->scratch_bytes = 0;
    LEATI_TRY(device->class->allocate(device, bytes, &a->scratch, err));
    a->scratch_bytes = bytes;
    return LEAT_OK;
}

/* Measures a run that is replayed, as a step of a plan is: the launches themselves take no time then. */
static leat_status measure(leati_device *device, const leati_kernel *kernel, arguments *a, int64_t *ns,
                           leat_error *err) {
    enum { replays = 2 };
    const leati_device_class *class = device->class;
    leati_recording *recording = NULL;
    LEATI_TRY(give_scratch(device, a, kernel->scratch_bytes, err));
    leati_run run = {.scratch = a->scratch, .device = device};
    LEATI_TRY(kernel->run(kernel, a->at, &run, err));
    LEATI_TRY(class->wait(device, err));
    const leati_cuda_conv_state *s = kernel->state;
    if (s->dnn.count > 0 && s->dnn.first >= s->dnn.count)
        return leati_fail(err, LEAT_ENOTSUP, "cuDNN refuses the convolution");
    LEATI_TRY(class->record(device, err));
    leat_status status = kernel->run(kernel, a->at, &run, err);
    leat_error ignored;
    leat_status ended = class->end_record(device, &recording, status == LEAT_OK ? err : &ignored);
    if (status == LEAT_OK) status = ended;
    if (status == LEAT_OK) status = class->replay(device, recording, err);
    if (status == LEAT_OK) status = class->stamp(device, 0, err);
    for (int i = 0; i < replays && status == LEAT_OK; ++i) status = class->replay(device, recording, err);
    if (status == LEAT_OK) status = class->stamp(device, 1, err);
    if (status == LEAT_OK) status = class->read_stamps(device, 2, ns, err);
    if (recording) class->destroy_recording(device, &recording);
    return status;
}

/* ---- The choice ---- */

static void choose(const leati_task *task, arguments *a, leati_cuda_conv_choice *out) {
    static const leati_cuda_conv_choice candidates[] = {
        {LEATI_CUDA_CONV_GEMM, -1},  {LEATI_CUDA_CONV_FOLDED, -1}, {LEATI_CUDA_CONV_DNN, -1},
        {LEATI_CUDA_CONV_PLANES, 0}, {LEATI_CUDA_CONV_PLANES, 1},  {LEATI_CUDA_CONV_PLANES, 2},
        {LEATI_CUDA_CONV_PLANES, 3}};
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; ++i) {
        leati_kernel kernel = {0};
        char why[LEATI_REASON_BYTES] = "";
        leat_error ignored = {0};
        int64_t ns = INT64_MAX;
        leat_status status = leati_cuda_conv_prepare(task, &kernel, candidates[i], why, &ignored);
        if (status == LEAT_OK && ((leati_cuda_conv_state *)kernel.state)->as_chosen &&
            measure(task->device, &kernel, a, &ns, &ignored) == LEAT_OK && ns < least) {
            least = ns;
            *out = candidates[i];
        }
        if (kernel.destroy) kernel.destroy(kernel.state);
    }
}

static leat_status remember(leati_cuda *cuda, const measured *m, leat_error *err) {
    struct leati_cuda_conv_choices *all = cuda->conv_choices;
    measured *list = leati_realloc(all->list, all->count + 1, sizeof *list);
    if (!list) return leati_fail_memory(err, sizeof *list, "measured convolutions");
    all->list = list;
    all->list[all->count++] = *m;
    return LEAT_OK;
}

leat_status leati_cuda_conv_choose(const leati_task *task, const leati_geometry *g,
                                   leati_cuda_conv_choice *out, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(task->device);
    const int64_t each = g->taps * (g->channels / g->groups);
    double products = (double)each * (double)(g->out_pixels * g->filters);
    /* What the own kernels serve beside f32. */
    bool few = g->channels < 8 || task->inputs[0].dtype == LEATI_BF16;
    bool f32 = task->inputs[0].dtype == LEAT_F32 && !cuda->device.tf32;
    *out = (leati_cuda_conv_choice){cuda->conv_way, -1};
    if (cuda->conv_way != LEATI_CUDA_CONV_RULES) return LEAT_OK;
    if (products < least_products || !task->measured || cuda->recording || g->groups != 1) return LEAT_OK;
    if (!f32 && !few) return LEAT_OK;
    if (!cuda->conv_choices) cuda->conv_choices = leati_calloc(1, sizeof *cuda->conv_choices);
    if (!cuda->conv_choices) return leati_fail_memory(err, sizeof *cuda->conv_choices, "convolutions");
    struct leati_cuda_conv_choices *all = cuda->conv_choices;
    measured m = describe(task, g);
    for (size_t i = 0; i < all->count; ++i)
        if (is_equal(&all->list[i], &m)) {
            *out = all->list[i].choice;
            return LEAT_OK;
        }
    if (all->spent_ns > most_ns) return LEAT_OK;
    arguments a = {0};
    leat_error ignored = {0};
    (void)leati_cuda_dnn(cuda, &ignored); /* to open a library is no measurement */
    int64_t before = leati_now_ns();
    if (allocate(task, &a, &ignored) == LEAT_OK) choose(task, &a, out);
    task->device->class->release(task->device, a.memory);
    task->device->class->release(task->device, a.scratch);
    all->spent_ns += leati_now_ns() - before;
    m.choice = *out;
    return remember(cuda, &m, err);
}
