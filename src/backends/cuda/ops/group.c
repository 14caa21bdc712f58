/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a group of element-wise ops into one program.  The result of a member stays in the accumulator for the
 * member after it; a result that is read later, or in another place, is saved.  Room: backends/cuda. */
#include <stdio.h>

#include "backends/cuda/ops/ops.h"
#include "backends/cuda/ops/program.h"
#include "base/error.h"
#include "tensor/bfloat16.h"

typedef struct compiler {
    const leati_group *group;
    leati_cuda_program *program;
    int place[LEATI_GROUP_MOST];    /* by member: where its result is saved; -1: nowhere */
    int last_use[LEATI_GROUP_MOST]; /* by member: the last member that reads its result; -1: none */
    bool busy[LEATI_CUDA_PROGRAM_SAVED];
} compiler;

/* The operand that member m combines with the accumulator, and the one that the accumulator must hold before.
 * swapped: the operands of BINARY have changed places. */
typedef struct operands {
    int32_t accumulated, other;
    bool swapped;
} operands;

static int32_t result_of(int m) {
    return -1 - m;
}

static operands operands_of(const leati_group *group, int m) {
    const leati_group_member *member = &group->members[m];
    operands out = {member->operands[0], member->operands[1], false};
    if (member->op == LEATI_OP_ELTWISE_BWD) out = (operands){member->operands[1], member->operands[0], false};
    if (member->op == LEATI_OP_BINARY && m > 0 && out.other == result_of(m - 1) &&
        out.accumulated != out.other)
        out = (operands){member->operands[1], member->operands[0], true};
    return out;
}

/* Returns true if some member reads the result of member m from where it is saved. */
static bool must_be_saved(const leati_group *group, int m) {
    for (int reader = m + 1; reader < group->length; ++reader) {
        operands read = operands_of(group, reader);
        if (read.other == result_of(m) || (read.accumulated == result_of(m) && reader != m + 1)) return true;
    }
    return false;
}

/* The step for `binary` with the accumulator as the second operand. */
static int swapped_step(int what) {
    switch (what) {
    case LEATI_CUDA_SUB: return LEATI_CUDA_SUB_FROM;
    case LEATI_CUDA_DIV: return LEATI_CUDA_DIVIDE;
    case LEATI_CUDA_GREATER: return LEATI_CUDA_LESS;
    case LEATI_CUDA_GREATER_EQUAL: return LEATI_CUDA_LESS_EQUAL;
    default: return what;
    }
}

/* Adds a step whose source is an operand of a member. */
static leati_cuda_step *add_step(compiler *c, int what, int32_t operand) {
    bool input = operand >= 0 && operand != LEATI_GROUP_NOTHING;
    leati_cuda_step *step = leati_cuda_program_step(c->program, what, input ? operand : -1);
    if (step && operand < 0) step->saved = (int8_t)c->place[-1 - operand];
    return step;
}

static leati_cuda_step *add_function(compiler *c, int what, int32_t operand, const leati_eltwise *f) {
    leati_cuda_step *step = add_step(c, what, operand);
    if (step) step->f = leati_cuda_function_of(f);
    return step;
}

static leati_cuda_step *add_binary(compiler *c, const leati_group_member *member, const operands *read) {
    int what = LEATI_CUDA_ADD + (int)member->attrs->binary.kind;
    leati_cuda_step *step = add_step(c, read->swapped ? swapped_step(what) : what, read->other);
    if (!step || !member->attrs->post.kinds) return step;
    return add_function(c, LEATI_CUDA_FUNCTION, LEATI_GROUP_NOTHING, &member->attrs->post.function);
}

/* Adds the steps of member m once the accumulator holds its operand.  Returns the last of them; NULL: the program has
 * no room. */
static leati_cuda_step *add_member(compiler *c, const leati_group_member *member, const operands *read) {
    const leati_eltwise *f = &member->attrs->eltwise;
    switch (member->op) {
    case LEATI_OP_ELTWISE: return add_function(c, LEATI_CUDA_FUNCTION, LEATI_GROUP_NOTHING, f);
    case LEATI_OP_ELTWISE_BWD:
        return add_function(c, leati_eltwise_uses_dst(f) ? LEATI_CUDA_SLOPE_FROM_DST : LEATI_CUDA_SLOPE,
                            read->other, f);
    case LEATI_OP_BINARY: return add_binary(c, member, read);
    case LEATI_OP_DROPOUT: return leati_cuda_program_dropout(c->program, &c->group->whole, member->attrs);
    case LEATI_OP_CAST: {
        leati_eltwise times = {.function = LEATI_FN_LINEAR, .a = member->attrs->cast.scale};
        if (times.a == 1) return add_step(c, LEATI_CUDA_KEEP, LEATI_GROUP_NOTHING);
        return add_function(c, LEATI_CUDA_FUNCTION, LEATI_GROUP_NOTHING, &times);
    }
    default: return NULL;
    }
}

/* Finds a place for the result of member m.  Places whose value nobody reads any more are free. */
static int find_place(compiler *c, int m) {
    for (int earlier = 0; earlier < m; ++earlier)
        if (c->place[earlier] >= 0 && c->last_use[earlier] == m) c->busy[c->place[earlier]] = false;
    if (!must_be_saved(c->group, m)) return -1;
    for (int k = 0; k < LEATI_CUDA_PROGRAM_SAVED; ++k) {
        if (c->busy[k]) continue;
        c->busy[k] = true;
        if (c->program->saved_count <= k) c->program->saved_count = k + 1;
        return k;
    }
    return LEATI_GROUP_NOTHING;
}

/* Returns the reason why member m has no room in the program, or NULL. */
static const char *compile_member(compiler *c, int m) {
    const leati_group_member *member = &c->group->members[m];
    operands read = operands_of(c->group, m);
    if (m == 0 || read.accumulated != result_of(m - 1))
        if (!add_step(c, LEATI_CUDA_LOAD, read.accumulated)) return "too many steps";
    leati_cuda_step *last = add_member(c, member, &read);
    if (!last) return "too many steps, or two draws";
    c->place[m] = find_place(c, m);
    if (c->place[m] == LEATI_GROUP_NOTHING) return "too many values at once";
    last->save = (int8_t)c->place[m];
    if (member->output != LEATI_GROUP_NOTHING) last->store = (int8_t)member->output;
    return NULL;
}

static void count_uses(compiler *c) {
    for (int m = 0; m < c->group->length; ++m) {
        c->last_use[m] = c->place[m] = -1;
        for (int reader = m + 1; reader < c->group->length; ++reader)
            for (int k = 0; k < 2; ++k)
                if (c->group->members[reader].operands[k] == result_of(m)) c->last_use[m] = reader;
    }
}

static const char *compile(compiler *c) {
    const leati_group *group = c->group;
    for (int k = 0; k < group->input_count; ++k)
        if (leati_cuda_program_input(c->program, &group->whole, &group->inputs[k], k) < 0)
            return "too many inputs";
    for (int k = 0; k < group->output_count; ++k)
        if (leati_cuda_program_output(c->program, &group->outputs[k], group->input_count + k) < 0)
            return "too many outputs";
    count_uses(c);
    const char *reason = NULL;
    for (int m = 0; m < group->length && !reason; ++m) reason = compile_member(c, m);
    return reason;
}

leat_status leati_cuda_prepare_group(const leati_group *group, leati_kernel *kernel, char *why,
                                     leat_error *err) {
    if (group->members[group->length - 1].op == LEATI_OP_MOVING_AVERAGE)
        return leati_cuda_prepare_averages(group, kernel, why, err);
    if (group->members[0].op == LEATI_OP_SOFTMAX_XENT) return leati_cuda_prepare_xent(group, kernel, err);
    for (int m = 0; m < group->length; ++m)
        if (group->members[m].op == LEATI_OP_MATMUL)
            return leati_cuda_prepare_product(group, m, kernel, why, err);
    compiler c = {.group = group, .program = leati_cuda_program_new(&group->whole)};
    if (!c.program) return leati_fail_memory(err, sizeof *c.program, "a kernel");
    const char *reason = compile(&c);
    if (reason) {
        leati_cuda_free_state(c.program);
        snprintf(why, LEATI_REASON_BYTES, "%s", reason);
        return LEAT_OK;
    }
    LEATI_TRY(leati_cuda_program_finish(c.program, group->device, kernel, err));
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda, %d ops in one", group->length);
    return LEAT_OK;
}
