/* SPDX-License-Identifier: Apache-2.0 */
/* MOVING_AVERAGE and the optimizers' updates: weights and slots after one step, compared with ref's. */
#include "ops/harness.h"

#define N              517 /* not a multiple of any vector's lanes */
#define SMALL          OP_FILLED(OP_UNIFORM, 0.001, 0.1, N)
#define LARGE          OP_FILLED(OP_UNIFORM, 1.0, 4.0, N)
#define TINY           OP_FILLED(OP_UNIFORM, -0.1, 0.1, N)
#define ZERO           OP_FILLED(OP_UNIFORM, 0.0, 0.0, N)
#define LOOKED_UP      OP_F32(4, 9, 5) /* the gradient of a lookup in a table, with its indices */
#define INDICES        OP_TYPED(LEAT_I32, 0, 29, 4, 9)
#define TABLE          OP_F32(90, 5)
#define SMALL_TABLE    OP_FILLED(OP_UNIFORM, 0.001, 0.1, 90, 5)
#define LARGE_TABLE    OP_FILLED(OP_UNIFORM, 1.0, 4.0, 90, 5)
#define TINY_TABLE     OP_FILLED(OP_UNIFORM, -0.1, 0.1, 90, 5)
#define SCALARS(count) OP_FILLED(OP_UNIFORM, 0.05, 0.9, count)

#define UPDATE(title, which, attributes, count, ...)                                                         \
    {                                                                                                        \
        .name = title, .op = LEATI_OP_##which, .attrs = {.update = {attributes}}, .input_count = (count),    \
        .inputs = {                                                                                          \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
#define WITH(...) __VA_ARGS__

const op_case cases_update[] = {
    {.name = "moving_average",
     .op = LEATI_OP_MOVING_AVERAGE,
     .attrs = {.moving_average = {0.9f}},
     .input_count = 2,
     .inputs = {OP_F32(7), OP_F32(7)}},
    UPDATE("sgd", UPDATE_SGD, WITH(0), 3, SCALARS(2), OP_F32(N), OP_F32(N)),
    UPDATE("sgd, momentum", UPDATE_SGD, WITH(.momentum = true), 4, SCALARS(2), OP_F32(N), OP_F32(N),
           OP_F32(N)),
    UPDATE("sgd, nesterov", UPDATE_SGD, WITH(.momentum = true, .nesterov = true), 4, SCALARS(2), OP_F32(N),
           OP_F32(N), OP_F32(N)),
    UPDATE("rmsprop", UPDATE_RMSPROP, WITH(0), 4, SCALARS(3), OP_F32(N), OP_F32(N), SMALL),
    UPDATE("adagrad", UPDATE_ADAGRAD, WITH(0), 4, SCALARS(2), OP_F32(N), OP_F32(N), SMALL),
    UPDATE("adadelta", UPDATE_ADADELTA, WITH(0), 5, SCALARS(3), OP_F32(N), OP_F32(N), SMALL, SMALL),
    UPDATE("adam", UPDATE_ADAM, WITH(0), 5, SCALARS(4), OP_F32(N), OP_F32(N), OP_F32(N), SMALL),
    UPDATE("adam, amsgrad", UPDATE_ADAM, WITH(.amsgrad = true), 6, SCALARS(4), OP_F32(N), OP_F32(N),
           OP_F32(N), SMALL, SMALL),
    UPDATE("adamax", UPDATE_ADAMAX, WITH(0), 5, SCALARS(4), OP_F32(N), OP_F32(N), OP_F32(N), SMALL),
    UPDATE("nadam", UPDATE_NADAM, WITH(0), 5, SCALARS(9), OP_F32(N), OP_F32(N), OP_F32(N), SMALL),
    UPDATE("lion", UPDATE_LION, WITH(0), 4, SCALARS(3), OP_F32(N), OP_F32(N), OP_F32(N)),
    UPDATE("sgd, decay", UPDATE_SGD, WITH(.decay = true), 3, SCALARS(3), OP_F32(N), OP_F32(N)),
    UPDATE("sgd, nesterov, decay", UPDATE_SGD, WITH(.momentum = true, .nesterov = true, .decay = true), 4,
           SCALARS(3), OP_F32(N), OP_F32(N), OP_F32(N)),
    UPDATE("rmsprop, decay", UPDATE_RMSPROP, WITH(.decay = true), 4, SCALARS(4), OP_F32(N), OP_F32(N), SMALL),
    UPDATE("adagrad, decay", UPDATE_ADAGRAD, WITH(.decay = true), 4, SCALARS(3), OP_F32(N), OP_F32(N), SMALL),
    UPDATE("adadelta, decay", UPDATE_ADADELTA, WITH(.decay = true), 5, SCALARS(4), OP_F32(N), OP_F32(N),
           SMALL, SMALL),
    UPDATE("adam, decay", UPDATE_ADAM, WITH(.decay = true), 5, SCALARS(5), OP_F32(N), OP_F32(N), OP_F32(N),
           SMALL),
    UPDATE("adam, amsgrad, decay", UPDATE_ADAM, WITH(.amsgrad = true, .decay = true), 6, SCALARS(5),
           OP_F32(N), OP_F32(N), OP_F32(N), SMALL, SMALL),
    UPDATE("adamax, decay", UPDATE_ADAMAX, WITH(.decay = true), 5, SCALARS(5), OP_F32(N), OP_F32(N),
           OP_F32(N), SMALL),
    UPDATE("nadam, decay", UPDATE_NADAM, WITH(.decay = true), 5, SCALARS(10), OP_F32(N), OP_F32(N), OP_F32(N),
           SMALL),
    UPDATE("lion, decay", UPDATE_LION, WITH(.decay = true), 4, SCALARS(4), OP_F32(N), OP_F32(N), OP_F32(N)),
    UPDATE("rmsprop, keras 3", UPDATE_RMSPROP, WITH(.as_keras3 = true), 4, SCALARS(5), OP_F32(N), OP_F32(N),
           SMALL),
    UPDATE("rmsprop, keras 3, momentum", UPDATE_RMSPROP, WITH(.as_keras3 = true, .accumulates = true), 5,
           SCALARS(5), OP_F32(N), OP_F32(N), SMALL, OP_F32(N)),
    UPDATE("rmsprop, keras 3, centered", UPDATE_RMSPROP, WITH(.as_keras3 = true, .centered = true), 5,
           SCALARS(5), OP_F32(N), OP_F32(N), LARGE, TINY),
    UPDATE("rmsprop, keras 3, everything", UPDATE_RMSPROP,
           WITH(.as_keras3 = true, .accumulates = true, .centered = true, .decay = true, .powers = true), 7,
           SCALARS(6), OP_F32(N), OP_F32(N), LARGE, OP_F32(N), TINY, LARGE),
    UPDATE("rmsprop, keras 3, powers", UPDATE_RMSPROP, WITH(.as_keras3 = true, .powers = true), 7, SCALARS(5),
           OP_F32(N), OP_F32(N), SMALL, OP_ABSENT, OP_ABSENT, LARGE),
    UPDATE("rmsprop, keras 3, momentum, powers", UPDATE_RMSPROP,
           WITH(.as_keras3 = true, .accumulates = true, .powers = true), 7, SCALARS(5), OP_F32(N), OP_F32(N),
           SMALL, OP_F32(N), OP_ABSENT, LARGE),
    UPDATE("adagrad, keras 3", UPDATE_ADAGRAD, WITH(.as_keras3 = true), 4, SCALARS(2), OP_F32(N), OP_F32(N),
           SMALL),
    UPDATE("adagrad, keras 3, powers", UPDATE_ADAGRAD, WITH(.as_keras3 = true, .powers = true), 5, SCALARS(2),
           OP_F32(N), OP_F32(N), SMALL, LARGE),
    UPDATE("adadelta, keras 3", UPDATE_ADADELTA, WITH(.as_keras3 = true), 5, SCALARS(4), OP_F32(N), OP_F32(N),
           SMALL, SMALL),
    UPDATE("adadelta, keras 3, powers", UPDATE_ADADELTA, WITH(.as_keras3 = true, .powers = true), 6,
           SCALARS(4), OP_F32(N), OP_F32(N), SMALL, SMALL, LARGE),
    UPDATE("adam, keras 3", UPDATE_ADAM, WITH(.as_keras3 = true), 5, SCALARS(4), OP_F32(N), OP_F32(N),
           OP_F32(N), SMALL),
    UPDATE("adam, keras 3, powers", UPDATE_ADAM, WITH(.as_keras3 = true, .powers = true), 7, SCALARS(4),
           OP_F32(N), OP_F32(N), OP_F32(N), SMALL, OP_ABSENT, LARGE),
    UPDATE("adam, keras 3, rows that nothing has moved", UPDATE_ADAM, WITH(.as_keras3 = true, .powers = true),
           7, SCALARS(4), OP_F32(N), ZERO, ZERO, ZERO, OP_ABSENT, ZERO),
    UPDATE("adam, keras 3, gradients that cancel", UPDATE_ADAM, WITH(.as_keras3 = true, .powers = true), 7,
           SCALARS(4), OP_F32(N), ZERO, ZERO, ZERO, OP_ABSENT, LARGE),
    UPDATE("adam, keras 3, amsgrad, powers, decay", UPDATE_ADAM,
           WITH(.as_keras3 = true, .amsgrad = true, .powers = true, .decay = true), 7, SCALARS(5), OP_F32(N),
           OP_F32(N), OP_F32(N), SMALL, SMALL, LARGE),
    UPDATE("adam, keras 3, amsgrad", UPDATE_ADAM, WITH(.as_keras3 = true, .amsgrad = true), 6, SCALARS(4),
           OP_F32(N), OP_F32(N), OP_F32(N), SMALL, SMALL),
    UPDATE("adamax, keras 3", UPDATE_ADAMAX, WITH(.as_keras3 = true), 5, SCALARS(4), OP_F32(N), OP_F32(N),
           OP_F32(N), SMALL),
    UPDATE("adamax, keras 3, powers", UPDATE_ADAMAX, WITH(.as_keras3 = true, .powers = true), 6, SCALARS(4),
           OP_F32(N), OP_F32(N), OP_F32(N), SMALL, LARGE),
    UPDATE("nadam, powers", UPDATE_NADAM, WITH(.powers = true), 6, SCALARS(9), OP_F32(N), OP_F32(N),
           OP_F32(N), SMALL, LARGE),
    UPDATE("sgd, rows", UPDATE_SGD, WITH(.rows = true), 5, SCALARS(2), LOOKED_UP, TABLE, OP_ABSENT, INDICES),
    UPDATE("sgd, nesterov, rows", UPDATE_SGD, WITH(.momentum = true, .nesterov = true, .rows = true), 5,
           SCALARS(2), LOOKED_UP, TABLE, TABLE, INDICES),
    UPDATE("sgd, decay, rows", UPDATE_SGD, WITH(.decay = true, .rows = true), 5, SCALARS(3), LOOKED_UP, TABLE,
           OP_ABSENT, INDICES),
    UPDATE("rmsprop, rows", UPDATE_RMSPROP, WITH(.rows = true), 7, SCALARS(3), LOOKED_UP, TABLE, SMALL_TABLE,
           OP_ABSENT, OP_ABSENT, INDICES),
    UPDATE("rmsprop, keras 3, everything, rows", UPDATE_RMSPROP,
           WITH(.as_keras3 = true, .accumulates = true, .centered = true, .decay = true, .powers = true,
                .rows = true),
           7, SCALARS(6), LOOKED_UP, TABLE, LARGE_TABLE, TABLE, TINY_TABLE, INDICES),
    UPDATE("adagrad, rows", UPDATE_ADAGRAD, WITH(.rows = true), 5, SCALARS(2), LOOKED_UP, TABLE, SMALL_TABLE,
           INDICES),
    UPDATE("adagrad, keras 3, decay, powers, rows", UPDATE_ADAGRAD,
           WITH(.as_keras3 = true, .decay = true, .powers = true, .rows = true), 5, SCALARS(3), LOOKED_UP,
           TABLE, SMALL_TABLE, INDICES),
    UPDATE("adadelta, keras 3, powers, rows", UPDATE_ADADELTA,
           WITH(.as_keras3 = true, .powers = true, .rows = true), 6, SCALARS(4), LOOKED_UP, TABLE,
           SMALL_TABLE, SMALL_TABLE, INDICES),
    UPDATE("adam, rows", UPDATE_ADAM, WITH(.rows = true), 7, SCALARS(4), LOOKED_UP, TABLE, TABLE, SMALL_TABLE,
           OP_ABSENT, INDICES),
    UPDATE("adam, keras 3, amsgrad, powers, rows", UPDATE_ADAM,
           WITH(.as_keras3 = true, .amsgrad = true, .powers = true, .rows = true), 7, SCALARS(4), LOOKED_UP,
           TABLE, TABLE, SMALL_TABLE, SMALL_TABLE, INDICES),
    UPDATE("adam, rows of a wide table", UPDATE_ADAM, WITH(.rows = true), 7, SCALARS(4), OP_F32(3, 5000),
           OP_F32(7, 5000), OP_F32(7, 5000), OP_FILLED(OP_UNIFORM, 0.001, 0.1, 7, 5000), OP_ABSENT,
           OP_TYPED(LEAT_F32, 1, 4, 3)),
    UPDATE("adamax, keras 3, powers, rows", UPDATE_ADAMAX,
           WITH(.as_keras3 = true, .powers = true, .rows = true), 6, SCALARS(4), LOOKED_UP, TABLE, TABLE,
           SMALL_TABLE, INDICES),
    UPDATE("nadam, rows", UPDATE_NADAM, WITH(.rows = true), 6, SCALARS(9), LOOKED_UP, TABLE, TABLE,
           SMALL_TABLE, INDICES),
    UPDATE("lion, rows of no lookup", UPDATE_LION, WITH(.rows = true), 5, SCALARS(3), OP_F32(0, 5), TABLE,
           TABLE, OP_TYPED(LEAT_I32, 0, 89, 0)),
    {0}};
