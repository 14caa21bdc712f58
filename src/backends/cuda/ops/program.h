/* SPDX-License-Identifier: Apache-2.0 */
/* Builds kernels that are programs of element-wise steps (kernels/elementwise.h).  Room: backends/cuda. */
#ifndef LEATI_BACKENDS_CUDA_OPS_PROGRAM_H
#define LEATI_BACKENDS_CUDA_OPS_PROGRAM_H

#include "backends/cuda/cuda.h"
#include "backends/cuda/kernels/elementwise.h"

/* A program, and the indices of its inputs and outputs in args.  It is the state of its kernel. */
typedef struct leati_cuda_program {
    leati_cuda_program_args args;
    CUfunction function;
    leati_cuda_grid grid;
    int input_count, output_count, map_count, saved_count;
    bool draws;
    int input_arg[LEATI_CUDA_PROGRAM_INPUTS], output_arg[LEATI_CUDA_PROGRAM_OUTPUTS];
} leati_cuda_program;

/* Returns a program without steps for tensors of the shape of `whole`; NULL: no memory is left. */
leati_cuda_program *leati_cuda_program_new(const leati_desc *whole);

/* Adds an input of the shape `operand`, broadcast to `whole`, or an output.  Returns its index; -1: the program has no
 * room for it. */
int leati_cuda_program_input(leati_cuda_program *program, const leati_desc *whole, const leati_desc *operand,
                             int arg);
int leati_cuda_program_output(leati_cuda_program *program, const leati_desc *desc, int arg);

/* Adds a step whose source is an input; input: -1 if the step has none.  Returns NULL if the program has no room. */
leati_cuda_step *leati_cuda_program_step(leati_cuda_program *program, int what, int input);

/* Adds a step DROPOUT.  Returns NULL if the program has no room, or has such a step already. */
leati_cuda_step *leati_cuda_program_dropout(leati_cuda_program *program, const leati_desc *whole,
                                            const leati_attrs *attrs);

leati_cuda_function leati_cuda_function_of(const leati_eltwise *f);

/* Collapses the axes of `operand`, broadcast to `whole`. */
leati_cuda_axes leati_cuda_axes_of(const leati_desc *whole, const leati_desc *operand);

/* Fills *kernel, which owns the program from then on, also after a failure. */
leat_status leati_cuda_program_finish(leati_cuda_program *program, leati_device *device, leati_kernel *kernel,
                                      leat_error *err);

#endif
